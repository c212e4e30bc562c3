/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "device_grant.h"

#include <stdlib.h>

#include "base/core_set.h"
#include "device_locality.h"

/* A job's cores on a node, and the node's devices of a kind. */
struct on_node {
	int node;
	uint64_t *mine;		/* owned; the list's sets follow */
	struct device_list list;
	unsigned known;		/* chosen devices whose near cores are known; the others are not in chosen[] */
	bool usable[DEVICE_LIST_MAX], chosen[DEVICE_LIST_MAX];
};

/* at: the node's first core in the job's. Free on->mine if true. */
static bool read_node(struct on_node *on, const job_resources_t *r, unsigned at, int node, const char *name,
		      const bitstr_t *devices)
{
	unsigned cores = glue_cores(node), words = core_set_words(cores), n = bit_size((bitstr_t *) devices);
	uint64_t *near;

	*on = (struct on_node){ .node = node };
	if (n > DEVICE_LIST_MAX || !(on->mine = calloc((n + 1) * words + 1, sizeof(*on->mine))))
		return false;
	near = on->mine + words;
	on->list = (struct device_list){ .n = n, .words = words, .near = near, .usable = on->usable };
	for (unsigned c = 0; c < cores && at + c < bit_size(r->core_bitmap); c++)
		if (bit_test(r->core_bitmap, at + c))
			core_set_add(on->mine, c);
	for (unsigned d = 0; d < n; d++)
		if (device_near(node, name, d, near + d * words) && bit_test((bitstr_t *) devices, d)) {
			on->chosen[d] = true;
			on->known++;
		}
	return true;
}

/* --- the choice --- */

static bool shares_gpus(int node)
{
	return device_state(node, "mps") || device_state(node, "shard");
}

/* What Slurm selected on a node or, where gres.conf tells no cores, will select: the first free ones. To be freed. */
static bitstr_t *selected_on(const gres_job_state_t *g, const gres_node_state_t *ns, int node)
{
	bitstr_t *out, *selected = g->gres_bit_select ? g->gres_bit_select[node] : NULL;
	uint64_t want = g->gres_cnt_node_select[node];
	int size = bit_size(ns->gres_bit_alloc);

	if (selected)
		return bit_size(selected) == size ? bit_copy(selected) : NULL;
	out = bit_alloc(size);
	for (int d = 0; d < size && want; d++)
		if (!bit_test(ns->gres_bit_alloc, d)) {
			bit_set(out, d);
			want--;
		}
	return out;
}

/* Links between the chosen devices, as gres.conf's Links= has them. */
static int links_among(const gres_node_state_t *ns, const struct on_node *on)
{
	int sum = 0;

	for (unsigned a = 0; ns->link_len == (int) on->list.n && a < on->list.n; a++)
		for (unsigned b = 0; on->chosen[a] && b < on->list.n; b++)
			sum += a != b && on->chosen[b] ? ns->links_cnt[a][b] : 0;
	return sum;
}

/* Whether others may replace the chosen devices; they are all of one type then. */
static bool read_usable(const gres_node_state_t *ns, struct on_node *on)
{
	unsigned first = 0;

	while (first < on->list.n && !on->chosen[first])
		first++;
	for (unsigned d = 0; d < on->list.n; d++) {
		bool same = device_type(ns, d) == device_type(ns, first);

		if (on->chosen[d] && !same)
			return false;
		on->usable[d] = same && !bit_test(ns->gres_bit_alloc, d);
	}
	return true;
}

static void select_chosen(gres_job_state_t *g, const struct on_node *on)
{
	bitstr_t **at;

	if (!g->gres_bit_select)
		g->gres_bit_select = xcalloc(g->total_node_cnt, sizeof(*g->gres_bit_select));
	at = &g->gres_bit_select[on->node];
	if (!*at)
		*at = bit_alloc(on->list.n);
	for (unsigned d = 0; d < on->list.n; d++)
		if (on->chosen[d])
			bit_set(*at, d);
		else
			bit_clear(*at, d);
}

static void choose_on(const job_record_t *job, gres_state_t *s, int node, unsigned at)
{
	gres_job_state_t *g = s->gres_data;
	const gres_node_state_t *ns = device_state(node, s->gres_name);
	bool may = ns && ns->gres_bit_alloc && (uint32_t) node < g->total_node_cnt && g->gres_cnt_node_select &&
		   !glue_without_gpus(node) && !shares_gpus(node);
	bitstr_t *was = may ? selected_on(g, ns, node) : NULL;
	struct on_node on;
	int links;

	if (was && read_node(&on, job->job_resrcs, at, node, s->gres_name, was)) {
		/* Each task has devices of its own: as many at a socket as its tasks need. */
		on.list.socket_cores = g->gres_per_task ? node_record_table_ptr[node]->cores : 0;
		links = links_among(ns, &on);
		if (on.known == (unsigned) bit_set_count(was) && on.known == g->gres_cnt_node_select[node] &&
		    read_usable(ns, &on) && device_choice_improve(&on.list, on.mine, on.chosen) &&
		    links_among(ns, &on) >= links)
			select_chosen(g, &on);
		free(on.mine);
	}
	FREE_NULL_BITMAP(was);
}

static void choose(const job_record_t *job, gres_state_t *s)
{
	const gres_job_state_t *g = s->gres_data;
	const job_resources_t *r = job->job_resrcs;
	unsigned at = 0;

	if (g->gres_per_socket || !strcasecmp(s->gres_name, "mps") || !strcasecmp(s->gres_name, "shard"))
		return;
	for (int i = glue_next(r->node_bitmap, 0); i >= 0; at += glue_cores(i), i = glue_next(r->node_bitmap, i + 1))
		choose_on(job, s, i, at);
}

/* Each kind of device that the job requests. */
static void each_kind(job_record_t *job, void (*act)(const job_record_t *job, gres_state_t *s))
{
	slurm_iterator_t it = job->gres_list_req ? list_iterator_create(job->gres_list_req) : NULL;
	gres_state_t *s;

	while (it && (s = list_next(it)))
		act(job, s);
	if (it)
		list_iterator_destroy(it);
}

void device_grant_choose(job_record_t *job)
{
	const job_resources_t *r = job->job_resrcs;

	if (r && r->node_bitmap && r->core_bitmap)
		each_kind(job, choose);
}

static void forget(const job_record_t *job, gres_state_t *s)
{
	gres_job_state_t *g = s->gres_data;

	(void) job;
	for (uint32_t i = 0; g->gres_bit_select && i < g->total_node_cnt; i++)
		FREE_NULL_BITMAP(g->gres_bit_select[i]);
	xfree(g->gres_bit_select);	/* Slurm makes one for as many nodes as there are by then */
}

void device_grant_forget(job_record_t *job)
{
	each_kind(job, forget);
}

/* --- the distance --- */

/* The GPUs of all types that the job has on its nth node: Slurm has a record of each type. NULL: none. To be freed. */
static bitstr_t *gpus_on(const job_record_t *job, unsigned nth)
{
	slurm_iterator_t it = list_iterator_create(job->gres_list_alloc);
	bitstr_t *out = NULL;
	gres_state_t *s;

	while ((s = list_next(it))) {
		const gres_job_state_t *g = s->gres_data;
		bitstr_t *of_type = g->gres_bit_alloc && nth < g->node_cnt && device_has_name(s, "gpu") ?
					    g->gres_bit_alloc[nth] : NULL;

		if (of_type && !out)
			out = bit_copy(of_type);
		else if (of_type && bit_size(of_type) == bit_size(out))
			bit_or(out, of_type);
	}
	list_iterator_destroy(it);
	return out;
}

struct device_distance device_distance(const job_record_t *job)
{
	const job_resources_t *r = job->job_resrcs;
	struct device_distance d = {0};
	unsigned at = 0, nth = 0;

	if (!job->gres_list_alloc || !r || !r->node_bitmap || !r->core_bitmap)
		return d;
	for (int i = glue_next(r->node_bitmap, 0); i >= 0;
	     at += glue_cores(i), nth++, i = glue_next(r->node_bitmap, i + 1)) {
		bitstr_t *gpus = gpus_on(job, nth);
		struct device_misfit m;
		struct on_node on;

		if (gpus && read_node(&on, r, at, i, "gpu", gpus)) {
			m = device_choice_misfit(&on.list, on.mine, on.chosen);
			d.gpus += on.known;
			d.gpus_unknown += bit_set_count(gpus) - on.known;
			d.gpus_far += m.devices;
			d.cores_far += on.known ? m.cores : 0;
			free(on.mine);
		}
		FREE_NULL_BITMAP(gpus);
	}
	return d;
}
