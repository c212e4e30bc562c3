/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwcmp/compare.h"

#include <stdlib.h>
#include <string.h>

#include "hwcmp/compare_parts.h"

void comparison_remark(struct comparison *c, const struct tree *t, size_t object, enum severity s,
		       enum change_direction d, const char *what, const char *from, const char *to, struct buf *tail)
{
	c->scratch.len = 0;
	tree_label(t, object, &c->scratch);
	c->r.failed |= c->scratch.failed;
	compare_remark_add(&c->r, s, d, object, tree_kind(&t->objects[object]),
			   c->scratch.failed ? "" : c->scratch.data, what, from, to, tail);
}

static void compare_formats(struct comparison *c)
{
	const struct tree *a = c->m.side[0].t, *b = c->m.side[1].t;
	const char *from = compare_match_exporter(a), *to = compare_match_exporter(b);
	struct buf tail = {0};

	if (c->m.newer < 0)
		return;
	if (!strcmp(a->version, b->version)) {
		buf_printf(&tail, ": hwloc %s -> %s, export format %s", from, to, a->version);
		comparison_remark(c, a, 0, SEVERITY_IDENTITY, CHANGE_CHANGED, "hwloc", from, to, &tail);
		return;
	}
	buf_printf(&tail, ": export format %s -> %s", a->version, b->version);
	if (*from && *to && strcmp(from, to))
		buf_printf(&tail, " (hwloc %s -> %s)", from, to);
	comparison_remark(c, a, 0, SEVERITY_IDENTITY, CHANGE_CHANGED, "export format", a->version, b->version, &tail);
}

static void compare_pairs(struct comparison *c)
{
	const struct compare_side *s = &c->m.side[0];

	for (size_t i = 0; i < s->t->n; i++)
		if (s->partner[i] >= 0) {
			compare_values(c, i, s->partner[i]);
			compare_place(c, i, s->partner[i]);
		}
}

int compare_trees(const struct tree *a, const struct tree *b, struct changes *out, struct err *e)
{
	struct comparison c = {0};
	int rc;

	if (compare_match_make(a, b, &c.m))
		return err_set(e, "out of memory");
	if ((c.reported = calloc(a->n, sizeof(*c.reported)))) {
		compare_formats(&c);
		compare_pairs(&c);
		compare_allowed(&c);
		compare_presence(&c, true);
		compare_presence(&c, false);
		compare_extras(&c.m, &c.r);
	}
	c.r.failed |= !c.reported;
	rc = compare_remarks_finish(&c.r, out);
	free(c.reported);
	buf_free(&c.scratch);
	compare_match_free(&c.m);
	return rc ? err_set(e, "out of memory") : 0;
}
