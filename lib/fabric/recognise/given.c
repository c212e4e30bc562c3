/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/recognise/draft.h"

#include <stdlib.h>


/* Adds the switches and hosts of a hierarchy, as cables from each group to its elements. */
static int hierarchy_unfold(const struct hierarchy *h, struct fabric_draft *m)
{
	unsigned *end = calloc(h->ngroups + 1, sizeof(*end));
	int rc = end ? 0 : -1, host;

	for (unsigned i = 0; i < h->ngroups && rc == 0; i++) {
		if ((rc = draft_end(m, END_SWITCH, h->groups[i].name)) < 0)
			break;
		end[i] = rc;
		rc = i ? draft_cable(m, end[h->groups[i].above], 0, end[i], 0, 0) : 0;
	}
	for (unsigned i = 0; i < h->nhosts && rc == 0; i++)
		rc = (host = draft_end(m, END_HOST, h->hosts[i].name)) < 0 ? -1 :
			draft_cable(m, end[h->hosts[i].group], 0, host, 0, 0);
	free(end);
	return rc;
}

static enum fabric_kind kind_of(const struct hierarchy *h)
{
	static const enum fabric_kind kinds[] = {
		[HIERARCHY_TREE] = FABRIC_FAT_TREE, [HIERARCHY_TORUS] = FABRIC_TORUS, [HIERARCHY_GRAPH] = FABRIC_GRAPH,
	};

	return h->nlevels > 1 || h->level[0].form != HIERARCHY_TREE ? kinds[h->level[0].form] : FABRIC_ONE_SWITCH;
}

/* The levels stated by the file are kept, not recognised from its links. */
struct fabric *fabric_given(struct hierarchy *h, struct err *e)
{
	struct fabric_draft *m = draft_new();
	struct fabric *f = NULL;

	if (!m || hierarchy_unfold(h, m))
		err_set(e, "out of memory");
	else
		f = draft_finish(m, NULL, e);
	draft_free(m);
	if (!f) {
		hierarchy_free(h);
		return NULL;
	}
	hierarchy_free(f->planes[0].levels);
	f->planes[0].levels = h;
	f->planes[0].kind = kind_of(h);
	f->given = true;
	return f;
}
