/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/* A target for each reader of fabrics, FORM of room.mk: how what it reads begins. */
#include "fuzz.h"
#include "fabric/model/fabric.h"
#include "fabric/write/export.h"

enum { any, discovered, paper, ports, slurm, yaml };
static const char *const begin[] = {
	[any] = "", [discovered] = "Switch\t2 \"S-0000000000000001\"\t\t# \"s\" base port 0 lid 1 lmc 0\n",
	[paper] = "tree 2 2 10 1 1\n",
	[ports] = "SW  1  1 0x0000000000000001 4x QDR - CA  2  1 0x0000000000000002 ( 's' - 'h HCA-1' )\n",
	[slurm] = "SwitchName=s ", [yaml] = "---\n- topology: a\n",
};

/* What is written is read again, and written again the same. */
static void write_twice(const struct hierarchy *h)
{
	struct buf once = {0}, twice = {0};
	struct hierarchy *again;

	if (hierarchy_write(h, &once, NULL) == 0) {
		again = hierarchy_parse(once.data, once.len, "once", NULL);
		if (!again || hierarchy_write(again, &twice, NULL) || strcmp(once.data, twice.data))
			abort();
		hierarchy_free(again);
	}
	buf_free(&once);
	buf_free(&twice);
}

static void check_places(const struct hierarchy *h)
{
	for (unsigned i = 0; i < h->nhosts; i++) {
		if (h->hosts[i].group >= h->ngroups || h->groups[h->hosts[i].group].level + 1 != h->nlevels)
			abort();
		for (unsigned l = 0; l < h->nlevels; l++)
			if (h->hosts[i].at[l] >= h->level[l].size)
				abort();
		hierarchy_distance(h, &h->hosts[0], &h->hosts[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = begin_with(begin[FORM], data, &size);
	struct fabric *f = fabric_parse(&(struct fabric_text){ text, "fuzz", size }, 1, NULL, NULL);
	struct buf out = {0};

	free(text);
	if (!f)
		return 0;
	for (unsigned i = 0; i < f->nplanes; i++)
		if (f->planes[i].levels) {
			check_places(f->planes[i].levels);
			write_twice(f->planes[i].levels);
			fabric_write_scotch(f->planes[i].levels, &out, NULL);
		}
	fabric_write_slurm(f, NULL, &out, NULL);
	fabric_write_slurm_yaml(f, NULL, &out, NULL);
	fabric_write_dot(f, NULL, &out, NULL);
	fabric_list_anomalies(f, &out);
	buf_free(&out);
	fabric_free(f);
	return 0;
}
