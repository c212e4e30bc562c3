/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "slurm_asked.h"

#include "shape/hostlist.h"

struct reading {
	struct slurm_parts *parts;
	const struct string_map *names;
	unsigned char *seen;	/* in how many parts each is */
};

/* The value of a word KEY=value in a line. NULL: none. */
static char *value_of(char *line, const char *key)
{
	size_t n = strlen(key);

	for (char *at = line; (at = strstr(at, key)); at += n)
		if ((at == line || at[-1] == ' ') && at[n] == '=')
			return at + n + 1;
	return NULL;
}

static int name_add(const char *name, void *map)
{
	return string_map_add(map, name) == STRING_MAP_NONE ? -1 : 0;
}

static int node_count(const char *name, void *reading)
{
	struct reading *r = reading;
	struct slurm_parts *p = r->parts;
	size_t at = string_map_find(r->names, name);

	p->list[p->n - 1].all++;
	if (at == STRING_MAP_NONE)
		return 0;
	p->list[p->n - 1].nodes++;
	p->of[at] = r->seen[at]++ ? SLURM_PART_NONE : p->n - 1;
	r->seen[at] -= r->seen[at] > 2;
	return 0;
}

void slurm_parts_free(struct slurm_parts *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->list[i].name);
	free(p->list);
	free(p->of);
	*p = (struct slurm_parts){0};
}

int slurm_parts_read(struct slurm_parts *p, const struct string_map *names, const char *topology, unsigned unit)
{
	struct reading r = { p, names, NULL };
	char *copy = strdup(topology), *rest = copy;
	int rc = copy ? 0 : -1;

	*p = (struct slurm_parts){0};
	for (char *line; rc == 0 && (line = strsep(&rest, "\n"));) {
		char *name = value_of(line, unit ? "BlockName" : "SwitchName"), *nodes = value_of(line, "Nodes");
		char *words = unit ? value_of(line, "BlockSize") : NULL;
		unsigned size = words ? strtoul(words, NULL, 10) : 0;
		struct slurm_part *list;

		if (!name && unit)
			name = value_of(line, "AggregatedBlock");
		if (!name || !nodes || value_of(line, "Switches") || size < unit || (p->n && size > p->size))
			continue;
		name[strcspn(name, " ")] = '\0';
		nodes[strcspn(nodes, " ")] = '\0';
		if (!p->n || size < p->size) {		/* only these count */
			free(r.seen);
			slurm_parts_free(p);
			p->size = size;
			r.seen = calloc(names->count + 1, 1);
			if (!r.seen || !(p->of = malloc((names->count + 1) * sizeof(*p->of)))) {
				rc = -1;
				break;
			}
			memset(p->of, 0xff, names->count * sizeof(*p->of));
		}
		if (!(list = reallocarray(p->list, p->n + 1, sizeof(*list))))
			rc = -1;
		else if (!((p->list = list)[p->n++] = (struct slurm_part){ .name = strdup(name) }).name)
			rc = -1;
		else
			rc = hostlist_expand(nodes, node_count, &r, NULL);
	}
	free(copy);
	free(r.seen);
	return rc ? -1 : !p->n;
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
	/* topology/block ignores a segment that is larger than the job; tori have segments, too. */
	unit = a->segment && a->segment <= nodes ? a->segment : nodes;
	if (slurm_parts_read(&p, &names, topology, unit) == 0) {
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
	} else if (a->segment && !strstr(topology, "BlockName=") && !strstr(topology, "TorusName=")) {
		buf_printf(out, "--segment=%u had no effect: the topology of its partition has no blocks\n",
			   a->segment);
	}
end:
	slurm_parts_free(&p);
	string_map_free(&names);
}
