/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwcmp/compare_parts.h"

void comparison_remark(struct comparison *c, const struct tree *t, size_t object, enum severity s, enum direction d,
		       const char *what, const char *from, const char *to, struct buf *tail)
{
	c->scratch.len = 0;
	tree_label(t, object, &c->scratch);
	c->r.failed |= c->scratch.failed;
	remark_add(&c->r, s, d, object, tree_kind(&t->objects[object]),
		   c->scratch.failed ? "" : c->scratch.data, what, from, to, tail);
}
