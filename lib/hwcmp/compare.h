/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "hwxml/tree.h"

/*
 * Differences between two topologies as readable text: "NUMA node 3: memory 64 GiB -> 48 GiB", "mlx5_1 gone", "core 17
 * offline" (the machine has its PUs but they cannot be used). Called by topiaryd (drift) and by `topiary diff`, `drift`
 * and `verify`.
 *
 * Objects are matched by identity: processors and caches by the OS indexes of their PUs, memory by its OS index, PCI
 * devices by bus ID, OS devices by the device that they belong to, else by name; renumbering alone is reported as such.
 * An object that is gone includes its subtree: a missing package is one change, not a hundred, and a PCI device is
 * named after its OS device. Equal changes of several objects of a type are merged: "cores 16-19 offline". gp_index and
 * userdata are ignored.
 */
enum severity {
	SEVERITY_IDENTITY,	/* differs between identical nodes: names, serial numbers, addresses, pages */
	SEVERITY_COSMETIC,	/* versions of kernel, firmware, drivers; unknown infos: no effect on jobs */
	SEVERITY_WIRING,	/* same parts elsewhere: bus, locality, link, numbering, distances, groups */
	SEVERITY_SLOW,		/* measured to be slower than its class; never found by comparing topologies */
	SEVERITY_CAPACITY,	/* other resources: cores, memory, caches, GPUs, NICs, disks, models */
	SEVERITY_COUNT,
};

/* "identity", "cosmetic", "wiring", "slow", "capacity": constants; severity_parse gives -1 for another name. */
const char *severity_name(enum severity s);
int severity_parse(const char *name);

enum change_direction { CHANGE_GONE, CHANGE_EXTRA, CHANGE_CHANGED, DIRECTION_COUNT };
const char *change_direction_name(enum change_direction d);	/* "gone", "extra", "changed" */

struct change {
	enum severity severity;
	enum change_direction direction;	/* GONE also for less memory and offline cores, EXTRA for more memory */
	char *object;			/* as in tree_label, of the second tree when new there; "cores 3,16-19" */
	char *what;			/* "memory", "link speed", an info's name; "" when the object is gone or new */
	char *from, *to;		/* as in the XML, bytes for memory; "" for none; of several objects the first */
	char *words;			/* the sentence */
};

struct changes {
	struct change *list;		/* most severe first, then in document order */
	size_t n;
};
void changes_free(struct changes *c);

/* From a to b. 0, or -1 when memory is short. */
int compare_trees(const struct tree *a, const struct tree *b, struct changes *out, struct err *e);

/*
 * The severity of a change in the value of an <info> (or "memory", "pages 4096"), by its name alone: for documents that
 * differ in fields.
 */
enum severity compare_fact(const char *name);

/* The change of one such value, with its text. 0 or -1. */
int change_of_fact(const char *object, const char *name, const char *from, const char *to, struct change *out,
		   struct err *e);
void change_free(struct change *c);
/* As an object of jansson's (change_json.c), all members text; NULL on error. */
struct json_t *change_to_json(const struct change *c);

/*
 * The most severe change that a mode does not tolerate, or -1. Modes as in Flux's resource.verify: allow-extra
 * tolerates resources beyond the expected, allow-missing missing ones, strict neither, ignore everything. Identity is
 * always tolerated.
 */
enum verify_mode { VERIFY_STRICT, VERIFY_ALLOW_EXTRA, VERIFY_ALLOW_MISSING, VERIFY_IGNORE };
int verify_mode_parse(const char *name);	/* "strict", "allow-extra", ...; -1 */
int changes_verdict(const struct changes *c, enum verify_mode mode);
