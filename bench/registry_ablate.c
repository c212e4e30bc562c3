/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "delta/base_cache.h"
#include "delta/pack.h"

/*
 * Linked with all of topiaryd into build/bench/topiaryd_ablate, for `bench/registry.py ablate`: the linker's --wrap
 * redirects the functions below here, and the environment's TOPIARY_WITHOUT names the one part that does nothing. So
 * topiaryd itself needs no switch. Prototypes are repeated, since rooms do not include each other; registry/upkeep/
 * upkeep_steps.h, reencode.h and registry/store/bases.h have them.
 */

struct upkeep_run;
struct bases;
struct base_encoding;

static bool is_off(const char *part)
{
	const char *without = getenv("TOPIARY_WITHOUT");

	return without && !strcmp(without, part);
}

#define STEP(function, part) \
	int __real_##function(struct upkeep_run *p, struct err *e); \
	int __wrap_##function(struct upkeep_run *p, struct err *e); \
	int __wrap_##function(struct upkeep_run *p, struct err *e) \
	{ \
		return is_off(part) ? 0 : __real_##function(p, e); \
	}

STEP(rebase_patches, "rebase_patches")
STEP(baseline_vote_run, "baseline_vote")
STEP(rebase_accepted, "rebase_accepted")
STEP(rebase_layouts, "rebase_layouts")

int __real_bases_match(struct bases *b, const char *doc, size_t len,
		       int (*rank)(const struct cached_base *b, const void *user), const void *user,
		       const struct cached_base **cached, struct buf *diff, struct field_layout *wider);
int __wrap_bases_match(struct bases *b, const char *doc, size_t len,
		       int (*rank)(const struct cached_base *b, const void *user), const void *user,
		       const struct cached_base **cached, struct buf *diff, struct field_layout *wider);
int __real_base_encode(struct upkeep_run *p, int base, const struct buf *xml, struct base_encoding *out,
		       struct err *e);
int __wrap_base_encode(struct upkeep_run *p, int base, const struct buf *xml, struct base_encoding *out,
		       struct err *e);
int __real_pack_make(const char *base, size_t base_len, const char *doc, size_t len, struct pack *out, struct err *e);
int __wrap_pack_make(const char *base, size_t base_len, const char *doc, size_t len, struct pack *out, struct err *e);

/* No base differs in fields alone: what follows is what topiaryd does with a document of another structure. */
int __wrap_bases_match(struct bases *b, const char *doc, size_t len,
		       int (*rank)(const struct cached_base *b, const void *user), const void *user,
		       const struct cached_base **cached, struct buf *diff, struct field_layout *wider)
{
	return is_off("fields") ? -1 : __real_bases_match(b, doc, len, rank, user, cached, diff, wider);
}

int __wrap_base_encode(struct upkeep_run *p, int base, const struct buf *xml, struct base_encoding *out,
		       struct err *e)
{
	return is_off("fields") ? 1 : __real_base_encode(p, base, xml, out, e);
}

/* A patch as large as the document compressed alone is never stored: the document becomes a base. */
int __wrap_pack_make(const char *base, size_t base_len, const char *doc, size_t len, struct pack *out, struct err *e)
{
	bool off = is_off("patches");

	return __real_pack_make(off ? NULL : base, off ? 0 : base_len, doc, len, out, e);
}
