/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "slurm_asked.h"

#include "base/string_map.h"
#include "shape/hostlist.h"

/* A leaf switch or a block, and how many of the job's nodes are in it. */
struct group {
	char *name;
	unsigned nodes, all;
};

struct groups {
	struct string_map job;		/* its nodes */
	unsigned char *seen;		/* in how many groups each is */
	struct group *now, *list;
	size_t n;
};

static int name_add(const char *name, void *map)
{
	return string_map_add(map, name) == STRING_MAP_NONE ? -1 : 0;
}

static int name_count(const char *name, void *groups)
{
	struct groups *g = groups;
	size_t at = string_map_find(&g->job, name);

	g->now->all++;
	if (at != STRING_MAP_NONE) {
		g->now->nodes++;
		g->seen[at] += g->seen[at] < 2;
	}
	return 0;
}

/* The value of a word KEY=value in a line, which is cut after it. NULL: none. */
static char *value_of(char *line, const char *key)
{
	size_t n = strlen(key);

	for (char *at = line; (at = strstr(at, key)); at += n)
		if ((at == line || at[-1] == ' ') && at[n] == '=')
			return at + n + 1;
	return NULL;
}

/* The groups that have nodes of the job. 0, or -1 if the topology does not have each of them exactly once. */
static int groups_read(struct groups *g, const char *kind, const char *text)
{
	char *copy = strdup(text), *rest = copy;
	int rc = copy ? 0 : -1;

	memset(g->seen, 0, g->job.count);
	for (char *line; rc == 0 && (line = strsep(&rest, "\n"));) {
		char *name = value_of(line, kind), *nodes = value_of(line, "Nodes");
		struct group *list;

		if (!name || !nodes || value_of(line, "Switches"))
			continue;
		name[strcspn(name, " ")] = '\0';
		nodes[strcspn(nodes, " ")] = '\0';
		if (!(list = reallocarray(g->list, g->n + 1, sizeof(*list))) || !(name = strdup(name))) {
			g->list = list ? list : g->list;
			rc = -1;
			break;
		}
		g->list = list;
		list[g->n] = (struct group){ .name = name };
		g->now = &list[g->n++];
		rc = hostlist_expand(nodes, name_count, g, NULL);
	}
	for (size_t i = 0; i < g->job.count; i++)
		if (g->seen[i] != 1)
			rc = -1;
	free(copy);
	return rc;
}

static void groups_clear(struct groups *g)
{
	for (size_t i = 0; i < g->n; i++)
		free(g->list[i].name);
	free(g->list);
	g->list = NULL;
	g->n = 0;
}

/* "sw1: 2, sw2: 1" */
static unsigned groups_print(const struct groups *g, struct buf *out)
{
	unsigned n = 0;

	for (size_t i = 0; i < g->n; i++)
		if (g->list[i].nodes)
			buf_printf(out, "%s%s: %u", n++ ? ", " : "", g->list[i].name, g->list[i].nodes);
	return n;
}

void slurm_asked_check(const struct slurm_asked *a, const char *topology, struct buf *out)
{
	struct groups g = {0};
	unsigned used, largest = 0, nodes;
	bool whole = true;

	if (hostlist_expand(a->nodes, name_add, &g.job, NULL) || !(g.seen = calloc(g.job.count + 1, 1)))
		goto end;
	nodes = g.job.count;
	if (a->switches && groups_read(&g, "SwitchName", topology) == 0) {
		struct buf where = {0};

		if ((used = groups_print(&g, &where)) > a->switches && !where.failed)
			buf_printf(out, "--switches=%u was not kept: its nodes are on %u leaf switches (%s); Slurm "
				   "waits for them only as long as --switches=%u@TIME and max_switch_wait of "
				   "slurm.conf allow\n", a->switches, used, where.data, a->switches);
		buf_free(&where);
	}
	groups_clear(&g);
	if (groups_read(&g, "BlockName", topology) == 0 && g.n) {
		struct buf where = {0};

		used = groups_print(&g, &where);
		for (size_t i = 0; i < g.n; i++) {
			whole &= !a->segment || g.list[i].nodes % a->segment == 0;
			largest = g.list[i].all > largest ? g.list[i].all : largest;
		}
		/* A segment that is larger than each block is for aggregated ones. */
		if (!whole && a->segment <= largest && !where.failed)
			buf_printf(out, "--segment=%u was not kept: its %u nodes are in blocks of %s\n", a->segment,
				   nodes, where.data);
		else if (!a->segment && used > 1 && nodes <= largest && !where.failed)
			buf_printf(out, "its %u nodes are in %u blocks (%s), and would fit into one\n", nodes, used,
				   where.data);
		buf_free(&where);
	}
end:
	groups_clear(&g);
	string_map_free(&g.job);
	free(g.seen);
}
