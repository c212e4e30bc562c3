/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TOPO_XML_OUTLINE_H
#define TOPIARY_TOPO_XML_OUTLINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "topo/xml_grammar.h"

#define OUTLINE_DEPTH 64

/*
 * The shape text (topo/shape.h) of a tree whose objects go by in document order, which is hwloc's logical order. Told are the
 * levels of ours and whatever else carries memory, because a shape would have its memory in the wrong place without it. A PU
 * outside any core counts as a core of its own. An object without PU is not told, its memory is the parent's.
 */
struct outline {
	struct tier {
		const struct xml_type *type;
		size_t home;			/* the tier that tells of this one's children: itself, or one around it */
		bool bare;			/* no child of the tree yet */
		unsigned memories;
		unsigned runs;			/* runs of equal children before the last */
		struct buf done;		/* their text */
		const char *last_type;		/* the last run, NULL while there is none */
		unsigned last_count;
		struct buf last;
	} tiers[OUTLINE_DEPTH];
	size_t depth;
	struct buf scratch;
};

/* The next three follow the document: an object of the tree opens, a NUMA node hangs on the open one, the open one closes. */
int outline_open(struct outline *o, const struct xml_type *type);	/* -1 where the type cannot stand */
void outline_memory(struct outline *o);
int outline_close(struct outline *o);					/* -1 for a core without PU */

/* When all is closed: the text, NUL-terminated, to be freed by the caller; NULL when memory is short. */
char *outline_take(struct outline *o);
void outline_free(struct outline *o);

#endif
