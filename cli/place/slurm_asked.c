/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "slurm_asked.h"

#include "shape/hostlist.h"

static int name_add(const char *name, void *map)
{
	return string_map_add(map, name) == STRING_MAP_NONE ? -1 : 0;
}

/* "sw1: 2, sw2: 1", if each node is in one: in how many they are, and how many whole units these have. */
static unsigned parts_print(const struct slurm_parts *p, size_t nodes, unsigned unit, unsigned *units, struct buf *out)
{
	unsigned n = 0;

	for (size_t i = 0; i < nodes; i++)
		if (p->of[i] == SLURM_PART_NONE)
			return 0;
	*units = 0;
	for (size_t i = 0; i < p->n; i++) {
		if (p->list[i].nodes)
			buf_printf(out, "%s%s: %u", n++ ? ", " : "", p->list[i].name, p->list[i].nodes);
		*units += p->list[i].nodes / unit;
	}
	return out->failed ? 0 : n;
}

void slurm_asked_check(const struct slurm_asked *a, const char *topology, struct buf *out)
{
	struct string_map names = {0};
	struct slurm_parts p = {0};
	struct buf where = {0};
	unsigned used, nodes, units, unit, largest = 0;
	int rc;

	if (hostlist_expand(a->nodes, name_add, &names, NULL) || !(nodes = names.count))
		goto end;
	if (a->switches && (rc = slurm_parts_read(&p, &names, topology, 0)) >= 0) {
		if (rc)
			buf_printf(out, "--switches=%u had no effect: the topology of its partition has no switches\n",
				   a->switches);
		else if ((used = parts_print(&p, nodes, 1, &units, &where)) > a->switches)
			buf_printf(out, "--switches=%u was not kept: its nodes are on %u leaf switches (%s); Slurm "
				   "waits for them only as long as --switches=%u@TIME and max_switch_wait of "
				   "slurm.conf allow\n", a->switches, used, where.data, a->switches);
		buf_free(&where);
	}
	slurm_parts_free(&p);
	/* topology/block ignores a segment that is larger than the job; rings and tori have segments, too. */
	unit = a->segment && a->segment <= nodes ? a->segment : nodes;
	if (slurm_parts_read(&p, &names, topology, unit) == 0 && !p.rings) {
		used = parts_print(&p, nodes, unit, &units, &where);
		for (size_t i = 0; i < p.n; i++)
			largest = p.list[i].all > largest ? p.list[i].all : largest;
		if (used && largest >= unit && units < nodes / unit && unit == a->segment)
			buf_printf(out, "--segment=%u was not kept: its %u nodes are in blocks of %s\n", a->segment,
				   nodes, where.data);
		else if (used && largest >= unit && units < nodes / unit)
			buf_printf(out, "its %u nodes are in %u blocks (%s), and would fit into one\n", nodes, used,
				   where.data);
		buf_free(&where);
	} else if (a->segment && !p.rings && !strstr(topology, "BlockName=") && !strstr(topology, "TorusName=")) {
		buf_printf(out, "--segment=%u had no effect: the topology of its partition has no blocks\n",
			   a->segment);
	}
end:
	slurm_parts_free(&p);
	string_map_free(&names);
}
