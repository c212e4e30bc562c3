/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <getopt.h>
#include <slurm/spank.h>

#include "base/buf.h"
#include "base/settings.h"
#include "bind/request.h"
#include "monitor/ask.h"

/*
 * The --topo-* options: their table, their values and the site's defaults. dispatch.c registers them; everything else
 * reads `options`.
 *
 * A value is "" or was validated when Slurm passed it. --topo-fit, --topo-level and --topo-request are validated
 * (score/request.h) but not stored: only slurmctld acts on them, from the job record.
 */
struct options {
	char matrix[4096];	/* --topo-matrix: auto[:TAG], off ("" on the node), or on the submit side absolute and
				   readable, on the node as received */
	char order[16];		/* --topo-order: fabric, off ("" on the node) */
	char capture[4000];	/* --topo-capture: the same, of a file to write; suffixes are added to it */
	struct monitor_request monitor;	/* --topo-monitor */
	struct bind_request bind;	/* --topo-place and the other options of bind/request.h */
};

extern struct options options;

/* Did the user set this option ("topo-place"), as opposed to the site's default? */
bool options_set_by_user(const char *name);

/* All options for getopt_long(3), with an entry of zeros at the end. */
const struct option *options_names(void);

/* Append the options of the user's that have an effect on the nodes: "--topo-omp, --topo-matrix". */
void options_list_given(struct buf *out);

/* Did the user ask for places of tasks, by --topo-place or --topo-tasks? After options_resolve. */
bool options_place_ranks(void);

/* Append the options of the user's that apply to single tasks: "--topo-omp, --topo-nic". */
void options_list_per_task(struct buf *out);

/* Validate an option of batch jobs and store its text or path; there is room for size bytes. 0, or -1 with an error. */
typedef int options_path_fn(const char *name, const char *value, char *out, size_t size, struct err *e);

/* The one for the node, which does not look at the file: the user's own process opens it later. */
options_path_fn options_copy_path;

/* slurm_spank_init: register the options with Slurm. A name that Slurm refuses is logged. Always 0. */
int options_register(spank_t sp, options_path_fn *resolve);

/* The tag, "" for none, of a value of --topo-matrix that is auto[:TAG]; NULL for any other. */
const char *options_learned_tag(const char *value);

/*
 * On the submit side, when all options of a component of a heterogeneous job have been read: the job's control
 * environment has those of this component alone. Returns its number, 0 for the first one and for all other jobs.
 */
unsigned options_end_component(spank_t sp);

/*
 * slurm_spank_init_post_opt, called by dispatch.c: with --topo-tasks=auto, set the options that the user has not.
 * Always 0.
 */
int options_resolve(spank_t sp, int argc, char **argv);

/*
 * The site's defaults (TopoPlace and others) for tasks whose user sets nothing; before Slurm passes the user's. A bad
 * one is logged.
 */
void options_apply_site(const struct settings *s);
