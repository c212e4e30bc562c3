/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "replay/slurm_parts.h"

#include "base/array.h"
#include "shape/hostlist.h"

#define BLANKS " \t\r"

struct reading {
	struct slurm_parts *parts;
	const struct string_map *names;
	unsigned char *seen;	/* in how many parts each is */
};

/* The value of a word KEY=value in a line. NULL: none, or an empty one. */
static char *value_of(char *line, const char *key)
{
	size_t n = strlen(key);

	for (char *at = line; (at = strstr(at, key)); at += n)
		if ((at == line || strchr(BLANKS, at[-1])) && at[n] == '=')
			return strchr(BLANKS, at[n + 1]) || !strncmp(at + n + 1, "(null)", 6) ? NULL : at + n + 1;
	return NULL;
}

static int node_count(const char *name, void *reading)
{
	struct reading *r = reading;
	struct slurm_parts *p = r->parts;
	size_t at = string_map_find(r->names, name);
	unsigned *member = p->rings ? array_add(p->list[p->n - 1].members, p->list[p->n - 1].nmembers) : NULL;

	p->list[p->n - 1].all++;
	if (p->rings && !member)
		return -1;
	if (member)
		*member = at == STRING_MAP_NONE ? SLURM_PART_NONE : at;
	if (at == STRING_MAP_NONE)
		return 0;
	p->list[p->n - 1].nodes++;
	p->of[at] = r->seen[at]++ ? SLURM_PART_NONE : p->n - 1;
	r->seen[at] -= r->seen[at] > 2;
	return 0;
}

void slurm_parts_free(struct slurm_parts *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->list[i].name);
		free(p->list[i].members);
	}
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
		bool ring = unit && !name && (name = value_of(line, "RingName"));
		struct slurm_part *list;

		if (!name && unit)
			name = value_of(line, "AggregatedBlock");
		if (*line == '#' || !name || !nodes || value_of(line, "Switches") || (size < unit && !ring) ||
		    (p->n && size > p->size))
			continue;
		name[strcspn(name, BLANKS)] = '\0';
		nodes[strcspn(nodes, BLANKS)] = '\0';
		if (!p->n || size < p->size) {		/* only these count */
			free(r.seen);
			slurm_parts_free(p);
			p->size = size;
			p->rings = ring;
			r.seen = calloc(names->count + 1, 1);
			if (!r.seen || !(p->of = malloc((names->count + 1) * sizeof(*p->of)))) {
				rc = -1;
				break;
			}
			memset(p->of, 0xff, names->count * sizeof(*p->of));
		}
		if ((list = array_add(p->list, p->n)) && (list->name = strdup(name)))
			rc = hostlist_expand(nodes, node_count, &r, NULL);
		else
			rc = -1;
	}
	free(copy);
	free(r.seen);
	if (rc)
		slurm_parts_free(p);
	return rc ? -1 : !p->n;
}
