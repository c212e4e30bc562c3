/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/write/export.h"

/* The number of a host among the leaves of the padded tree. */
static unsigned long long leaf_of(const struct hierarchy *h, const struct hierarchy_host *host)
{
	unsigned long long leaf = 0;

	for (unsigned l = 0; l < h->nlevels; l++)
		leaf = leaf * h->level[l].size + host->at[l];
	return leaf;
}

int fabric_write_scotch(const struct hierarchy *h, struct buf *out, struct err *e)
{
	unsigned long long leaves = 1;

	for (unsigned l = 0; l < h->nlevels; l++) {
		if (h->level[l].form != HIERARCHY_TREE)
			return err_set(e,
				       "not a tree: a Scotch target file cannot describe this network with its hosts");
		leaves *= h->level[l].size;
		if (leaves > 1u << 30)
			return err_set(e, "more leaves than Scotch supports");
	}
	if (leaves != h->nhosts) {
		buf_printf(out, "sub\n%u", h->nhosts);
		for (unsigned i = 0; i < h->nhosts; i++)
			buf_printf(out, " %llu", leaf_of(h, &h->hosts[i]));
		buf_puts(out, "\n");
	}
	buf_printf(out, "tleaf\n%u", h->nlevels);
	/* Scotch adds the costs of all levels climbed. */
	for (unsigned l = 0; l < h->nlevels; l++) {
		unsigned below = l + 1 < h->nlevels ? h->level[l + 1].cost[0] : 0, cost = h->level[l].cost[0];

		buf_printf(out, " %u %u", h->level[l].size, cost > below ? cost - below : 1);
	}
	buf_puts(out, "\n");
	return out->failed ? err_set(e, "out of memory") : 0;
}
