/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/array.h"
#include "base/file.h"
#include "base/number.h"
#include "map/engine/solve.h"
#include "place.h"

/*
 * What libtopiary-reorder asks (lib/reorder/ask.h): of the processes of a communicator, which is to have each rank of
 * the grid or graph that the program wants. A process of its own, so that the mapping's time, memory and faults are not
 * the program's. The network and costs are those in files: a running program does not wait for the registry.
 */

#define MAX_BYTES ((size_t) 1 << 30)
#define NAME_SIZE 256
#define FEW 96	/* up to so many ranks a thorough search takes no noticeable time, either */
#define OWN_DOMAIN 0x80000000u	/* and more: the process is in no domain of the level, or is not alone in one */

struct process {
	unsigned rank, host;		/* in the communicator; index of its host, in the order of the first ranks */
	unsigned domain[LEVEL_COUNT];
	const char *name, *node;	/* of the host; as Slurm names it */
};

struct question {
	unsigned nprocesses, vertices;
	struct process *process;
	struct matrix_entries edges;
	struct buf text;
};

/* "7", "*" or "-": a domain, in none of those that there are, the node has none. 0 or -1. */
static int domain_read(const char *word, unsigned own, unsigned *out)
{
	if (!word || !*word || (word[1] && strchr("*-", *word)))
		return -1;
	*out = *word == '*' ? OWN_DOMAIN + own : 0;
	return strchr("*-", *word) ? 0 : number_read(&word, OWN_DOMAIN - 1, out) || *word ? -1 : 0;
}

/* "HOST NODE PACKAGE DIE NUMA L3 L2 CORE" */
static int process_read(char *line, struct string_map *hosts, struct process *out)
{
	char *rest = line;

	out->name = strsep(&rest, " ");
	out->node = rest ? strsep(&rest, " ") : NULL;
	if (!*out->name || !out->node || strlen(out->name) + strlen(out->node) >= NAME_SIZE)
		return -1;
	for (int l = LEVEL_NODE + 1; l < LEVEL_COUNT; l++)
		if (domain_read(rest ? strsep(&rest, " ") : NULL, out->rank, &out->domain[l]))
			return -1;
	/* The end of the line of the names is where the first level's word begins: both are one key. */
	size_t host = string_map_add_bytes(hosts, line, out->node + strlen(out->node) - line);

	out->host = host;
	return rest || host == STRING_MAP_NONE ? -1 : 0;
}

/* Lines: "PROCESSES RANKS", that of each process, "RANK RANK WEIGHT" of each edge. 0, or -1 with the line. */
static int question_read(struct question *q, struct err *e)
{
	char *rest = q->text.data, *line = rest ? strsep(&rest, "\n") : "";
	struct string_map hosts = {0};
	const char *at = line;
	unsigned n = 1;
	int rc = -1;

	if (!number_read(&at, MATRIX_MAX_RANKS, &q->nprocesses) && *at++ == ' ' &&
	    !number_read(&at, q->nprocesses, &q->vertices) && !*at && q->vertices &&
	    (q->process = calloc(q->nprocesses, sizeof(*q->process))))
		rc = 0;
	for (unsigned i = 0; !rc && i < q->nprocesses; i++, n++) {
		q->process[i].rank = i;
		rc = (line = strsep(&rest, "\n")) ? process_read(line, &hosts, &q->process[i]) : -1;
	}
	for (; !rc && rest && *rest; n++) {
		unsigned a, b, weight;

		at = strsep(&rest, "\n");
		rc = number_read(&at, q->vertices - 1, &a) || *at++ != ' ' ||
		     number_read(&at, q->vertices - 1, &b) || *at++ != ' ' || number_read(&at, INT_MAX, &weight) ||
		     *at || matrix_entries_add(&q->edges, a, b, weight) ? -1 : 0;
	}
	string_map_free(&hosts);
	return rc ? err_set(e, "line %u: not as libtopiary-reorder writes it", n) : 0;
}

static int by_place(const void *x, const void *y)
{
	const struct process *a = x, *b = y;
	int order = COMPARE(a->host, b->host);

	for (int l = LEVEL_NODE + 1; !order && l < LEVEL_COUNT; l++)
		order = COMPARE(a->domain[l], b->domain[l]);
	return order ?: COMPARE(a->rank, b->rank);
}

static const struct hierarchy_host *network_host(const struct hierarchy *network, const struct process *p)
{
	return hierarchy_find(network, p->name) ?: hierarchy_find(network, p->node);
}

/* A place for each process, those of a host side by side. A network that lacks a host is left out. */
static struct places *places_of(const struct question *q, const struct hierarchy *network, struct costs *costs,
				struct err *e)
{
	struct places *p = places_new();
	char name[NAME_SIZE + 2];
	int rc = p ? 0 : err_set(e, "out of memory");

	qsort(q->process, q->nprocesses, sizeof(*q->process), by_place);
	for (unsigned i = 0; network && i < q->nprocesses; i++)
		if (!network_host(network, &q->process[i]))
			network = NULL;
	for (unsigned i = 0; !rc && i < q->nprocesses; i++) {
		const struct process *process = &q->process[i];
		double between = p->cost[LEVEL_NODE];

		p->network = network;
		if (!i || process->host != process[-1].host) {
			/* As in place.c; costs between two NUMA nodes have no place here, those of levels do. */
			memcpy(p->cost, level_default_cost, sizeof(p->cost));
			if (places_costs(p, costs_of(costs, process->node) ?: "", NULL))
				memcpy(p->cost, level_default_cost, sizeof(p->cost));
			if (i)
				p->cost[LEVEL_NODE] = between;
		}
		snprintf(name, sizeof(name), "%s/%s", process->name, process->node);
		rc = places_add_process(p, name, network ? network_host(network, process)->at : NULL, process->domain,
					e);
	}
	if (!rc)
		return p;
	places_free(p);
	return NULL;
}

/* Prints the cost as it is and as it will be, then the process of each rank. */
static int answer(const struct question *q, const struct matrix *m, const struct places *p, struct err *e)
{
	unsigned *place_of = malloc(q->nprocesses * sizeof(*place_of));
	struct mapping found;
	double before;
	bool gains;

	if (!place_of)
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < q->nprocesses; i++)
		place_of[q->process[i].rank] = i;
	before = mapping_cost(m, p, place_of);
	free(place_of);
	if (mapping_solve(m, p, q->vertices <= FEW ? EFFORT_NORMAL : EFFORT_FAST, 1, &found, e))
		return -1;
	gains = found.cost < before;
	printf("%.15g %.15g\n", before, gains ? found.cost : before);
	for (unsigned v = 0; v < q->vertices; v++)
		printf("%u\n", gains ? q->process[found.place[v]].rank : v);
	mapping_free(&found);
	return 0;
}

struct args {
	const char *file;
};

static const struct cmd_syntax syntax = {
	NULL, "FILE", "Say which process of a communicator is to have each rank, so that neighbours are near each "
	"other. This is what libtopiary-reorder asks.", CMD_TEXT(file), "a FILE", NULL,
};

int cmd_reorder(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct question q = {0};
	struct args a = {0};
	struct hierarchy *network = NULL;
	struct costs costs = {0};
	struct places *p = NULL;
	struct matrix *m = NULL;
	const char *name;
	int rc = -1;

	if (cmd_parse(c, &syntax, &a, argc, argv, e))
		return -1;
	if (file_read_input(a.file, MAX_BYTES, &name, &q.text, e))
		return -1;
	if (question_read(&q, e)) {
		err_within(e, "%s", name);
	} else if (!(m = matrix_build(q.vertices, &q.edges))) {
		err_set(e, "out of memory");
	} else if (costs_load(c, access(c->settings.costs_file, F_OK) ? "default" : NULL, &costs, e) == 0) {
		network = access(c->settings.fabric_file, F_OK) ? NULL : published_network(c);
		if ((p = places_of(&q, network, &costs, e)))
			rc = answer(&q, m, p, e);
	}
	costs_free(&costs);
	places_free(p);
	hierarchy_free(network);
	matrix_free(m);
	free(q.edges.entry);
	free(q.process);
	buf_free(&q.text);
	return rc;
}
