/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "advise_map.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "map/engine/solve.h"
#include "map/matrix/matrix.h"
#include "place/place.h"

#define SEED 1
#define GAIN 0.1		/* of the present cost; runs of one mapping differ by less */

static unsigned count_ranks(const struct advise_map *a)
{
	unsigned n = 0;

	for (unsigned i = 0; i < a->n; i++)
		n += a->nodes[i]->n;
	return n;
}

static int check_ranks(const struct advise_map *a, unsigned ranks, struct err *e)
{
	if (!ranks)
		return err_set(e, "%s: no ranks in its files NODE.tasks, which --topo-monitor writes", a->step);
	if (a->n < a->nodes[0]->nodes)
		return err_set(e, "%s: NODE.tasks of %u of its %u nodes is missing", a->step, a->nodes[0]->nodes - a->n,
			       a->nodes[0]->nodes);
	for (unsigned i = 0; i < a->n; i++)
		for (unsigned t = 0; t < a->nodes[i]->n; t++)
			if (a->nodes[i]->list[t].rank >= ranks)
				return err_set(e, "%s: %s.tasks has rank %u, and all nodes have %u ranks together",
					       a->step, a->nodes[i]->node, a->nodes[i]->list[t].rank, ranks);
	return 0;
}

/* A rank's place is its first core, so that those of several cores are mapped alike: "cn1=0,4;cn2=0,4". */
static int words_make(const struct advise_map *a, struct buf *words, struct err *e)
{
	hwloc_bitmap_t firsts = hwloc_bitmap_alloc();
	int rc = firsts ? 0 : err_set(e, "out of memory");

	for (unsigned i = 0; rc == 0 && i < a->n; i++) {
		const struct trace_tasks *t = a->nodes[i];
		char *list = NULL;

		hwloc_bitmap_zero(firsts);
		for (unsigned k = 0; k < t->n; k++)
			if (!hwloc_bitmap_iszero(t->list[k].cores))
				hwloc_bitmap_set(firsts, hwloc_bitmap_first(t->list[k].cores));
		if ((unsigned) hwloc_bitmap_weight(firsts) < t->n)
			rc = err_set(e, "%s: the ranks of %s are not bound to cores of their own, see --topo-place",
				     a->step, t->node);
		else if (hwloc_bitmap_list_asprintf(&list, firsts) < 0)
			rc = err_set(e, "out of memory");
		else if (t->n)
			buf_printf(words, "%s%s=%s", words->len ? ";" : "", t->node, list);
		free(list);
	}
	hwloc_bitmap_free(firsts);
	return rc || words->failed ? rc ? rc : err_set(e, "out of memory") : 0;
}

static int place_find(const struct places *p, const char *host, unsigned core)
{
	for (unsigned i = 0; i < p->nplaces; i++)
		if (p->core[p->leaf[p->place[i].leaf]] == core && !strcmp(p->hosts[p->place[i].host], host))
			return i;
	return -1;
}

/* place[rank], or NULL with an error. */
static unsigned *places_now(const struct advise_map *a, const struct places *p, unsigned ranks, struct err *e)
{
	unsigned *place = calloc(ranks, sizeof(*place));

	if (!place)
		err_set(e, "out of memory");
	for (unsigned i = 0; place && i < a->n; i++)
		for (unsigned k = 0; place && k < a->nodes[i]->n; k++) {
			const struct trace_task *t = &a->nodes[i]->list[k];
			int at = place_find(p, a->nodes[i]->node, hwloc_bitmap_first(t->cores));

			if (at >= 0) {
				place[t->rank] = at;
				continue;
			}
			err_set(e, "%s: core %d of rank %u is not in the snapshot's shape of %s", a->step,
				hwloc_bitmap_first(t->cores), t->rank, a->nodes[i]->node);
			free(place);
			place = NULL;
		}
	return place;
}

static void judge(const struct matrix *m, const char *name, double now, const struct mapping *best, struct advice *out)
{
	const char *slash = strrchr(name, '/');

	if (now <= 0 || best->cost > (1 - GAIN) * now)
		return;
	out->result = ADVICE_FOUND;
	snprintf(out->evidence, sizeof(out->evidence), "the messages of the %u ranks in %.80s cost %.4g where the "
		 "ranks are, %.4g with the best mapping found: %.0f %% less", m->ranks, slash ? slash + 1 : name, now,
		 best->cost, 100 * (now - best->cost) / now);
}

static int compare(const struct advise_map *a, const char *name, const struct matrix *m, const struct places *p,
		   struct advice *out, struct err *e)
{
	unsigned *place = places_now(a, p, m->ranks, e);
	struct mapping best;
	int rc = place ? mapping_solve(m, p, EFFORT_NORMAL, SEED, &best, e) : -1;

	if (rc == 0) {
		judge(m, name, mapping_cost(m, p, place), &best, out);
		mapping_free(&best);
	}
	free(place);
	return rc;
}

static int places_load(const struct cmd *c, const struct advise_map *a, struct hierarchy *network,
		       struct place_job *job, struct err *e)
{
	struct err without = {""};
	struct snapshot *s = published_snapshot(c, a->snapshot, e);
	struct costs costs = {0};
	struct place_site site = { .snapshot = s, .network = network, .without = &without, .costs = &costs };
	struct buf words = {0};
	int rc = s && !costs_load(c, a->snapshot ? "default" : NULL, &costs, e) && !words_make(a, &words, e) ?
		 job_from_words(words.data ? words.data : "", &site, job, e) : -1;

	buf_free(&words);
	costs_free(&costs);
	snapshot_free(s);
	return rc;
}

static int map_check(const struct cmd *c, const struct advise_map *a, const char *name, struct advice *out,
		     struct err *e)
{
	unsigned ranks = count_ranks(a);
	struct place_job job = {0};
	struct hierarchy *network = NULL;
	struct matrix *whole, *m = NULL;
	int rc = -1;

	if (check_ranks(a, ranks, e) || !(whole = matrix_read(name, e)))
		return -1;
	if (ranks > whole->ranks)
		err_set(e, "%s: the matrix has %u ranks, the step %u", name, whole->ranks, ranks);
	else if (!(m = matrix_range(whole, 0, ranks)))
		err_set(e, "out of memory");
	network = m && !a->snapshot ? published_network(c) : NULL;
	if (m && !places_load(c, a, network, &job, e))
		rc = compare(a, name, m, job.places, out, e);
	places_free(job.places);
	hierarchy_free(network);
	matrix_free(m);
	matrix_free(whole);
	return rc;
}

int advise_map(const struct cmd *c, const struct advise_map *a, struct advice *out, struct err *e)
{
	const char *name = a->matrix ? a->matrix : a->n ? a->nodes[0]->capture : "";
	struct err why;

	*out = (struct advice){ .kind = "mapping", .remedy = "map the ranks by it: sbatch --topo-matrix=FILE" };
	if (!*name || (!a->matrix && access(name, R_OK)))
		err_set(&why, "--matrix");
	else if (!map_check(c, a, name, out, &why))
		return 0;
	if (a->matrix)
		return err_set(e, "%s", why.text);
	out->result = ADVICE_UNKNOWN;
	snprintf(out->evidence, sizeof(out->evidence), "%.250s", why.text);
	return 0;
}
