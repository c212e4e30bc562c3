/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "device_locality.h"

#include <stdlib.h>
#include <strings.h>

#include "node_shape.h"

/*
 * Devices of a node that are near the same cores or, by_socket, cores of the same socket: of these Slurm grants the
 * first free ones, whichever of the socket's cores the job has.
 */
struct group {
	const bitstr_t *near;	/* of the first; NULL: near all */
	int socket;		/* -1: they are near cores of several, or grouped by cores */
	uint64_t left;		/* free devices */
};

static bool has_amount(const gres_job_state_t *g)
{
	return g->gres_per_node || g->gres_per_task || g->gres_per_job;
}

static int has_name(void *gres, void *name)
{
	return !strcasecmp(((gres_state_t *) gres)->gres_name, name);
}

static const gres_node_state_t *node_devices(int node, const char *name)
{
	slurm_list_t all = node_record_table_ptr[node]->gres_list;
	gres_state_t *found = all ? list_find_first(all, has_name, (char *) name) : NULL;

	return found ? found->gres_data : NULL;
}

/* The fewest of these nodes that can have so many devices, by the node with the most. */
static uint32_t fewest_nodes(const bitstr_t *nodes, const char *name, uint64_t devices)
{
	uint64_t most = 0;

	for (int i = glue_next(nodes, 0); i >= 0 && most < devices; i = glue_next(nodes, i + 1)) {
		const gres_node_state_t *has = node_devices(i, name);

		most = has ? MAX(most, has->gres_cnt_avail) : most;
	}
	return most ? (devices + most - 1) / most : 1;
}

/* As Slurm has it (gres_select_util_job_mem_max()): --mem and --mem-per-cpu come before --mem-per-gpu. */
static uint64_t memory_each(const job_record_t *job, const struct job_request *req, const gres_job_state_t *g)
{
	uint64_t each = g->mem_per_gres ? g->mem_per_gres : g->def_mem_per_gres;

	return !req->counts_memory || job->bit_flags & JOB_MEM_SET || each == NO_VAL64 ? 0 : each;
}

/* GPUs come before other devices. --gres-per-socket is left to Slurm, which has its own notion of a socket. */
void device_locality_read(const job_record_t *job, const bitstr_t *nodes, struct job_request *req,
			  struct device_need *out)
{
	slurm_iterator_t it;
	gres_state_t *s;

	*out = (struct device_need){0};
	if (!job->gres_list_req)
		return;
	it = list_iterator_create(job->gres_list_req);
	while ((s = list_next(it))) {
		const gres_job_state_t *g = s->gres_data;
		bool single = req->max_nodes == 1;
		uint64_t cpus = g->cpus_per_gres ? g->cpus_per_gres : g->def_cpus_per_gres;

		if (g->gres_per_socket || !has_amount(g) || (out->name && strcasecmp(s->gres_name, "gpu")))
			continue;
		*out = (struct device_need){ .name = s->gres_name, .type = g->type_id, .per_task = g->gres_per_task,
					   .each = memory_each(job, req, g), .total = g->gres_per_job,
					   .on_each_node = g->gres_per_node,
					   .per_node = g->gres_per_node ? g->gres_per_node :
							single ? g->gres_per_job : 1 };
		req->min_cpus = MAX(req->min_cpus, cpus * MAX(out->per_node, out->per_task));
		if (g->gres_per_job)
			req->max_nodes = MAX(req->min_nodes, MIN(req->max_nodes, g->gres_per_job));
		job_request_at_least(req, fewest_nodes(nodes, out->name,
						       MAX(g->gres_per_job, g->gres_per_task * req->tasks)));
	}
	list_iterator_destroy(it);
}

static void add_cores(const bitstr_t *near, unsigned ncores, uint64_t *cores)
{
	for (unsigned c = 0; c < ncores; c++)
		if (!near || (c < bit_size((bitstr_t *) near) && bit_test((bitstr_t *) near, c)))
			core_set_add(cores, c);
}

static bool same_cores(const bitstr_t *a, const bitstr_t *b)
{
	return a && b
		? bit_size((bitstr_t *) a) == bit_size((bitstr_t *) b) && bit_equal((bitstr_t *) a, (bitstr_t *) b)
		: a == b;
}

static bool tells_cores(const gres_node_state_t *ns)
{
	for (unsigned t = 0; ns->topo_core_bitmap && t < ns->topo_cnt; t++)
		if (ns->topo_core_bitmap[t])
			return true;
	return false;
}

/* Free devices of a line of gres.conf. */
static uint64_t left_of(const gres_node_state_t *ns, uint32_t type, unsigned line)
{
	uint64_t have = ns->topo_gres_cnt_avail[line], gone = ns->topo_gres_cnt_alloc[line];

	return have <= gone || (type && ns->topo_type_id && ns->topo_type_id[line] != type) ? 0 : have - gone;
}

static int socket_of(const bitstr_t *near, unsigned each)
{
	int first = near && each ? bit_ffs((bitstr_t *) near) : -1;

	return first >= 0 && first / each == bit_fls((bitstr_t *) near) / each ? (int) (first / each) : -1;
}

static bool is_of_group(const struct group *g, const bitstr_t *near, int socket)
{
	return g->socket == socket && (socket >= 0 || same_cores(g->near, near));
}

/* each: cores of a socket; 0: by cores. */
static unsigned group_devices(const gres_node_state_t *ns, uint32_t type, unsigned each, struct group *groups)
{
	unsigned n = 0, g;

	for (unsigned t = 0; t < ns->topo_cnt; t++) {
		const bitstr_t *near = ns->topo_core_bitmap[t];
		int socket = socket_of(near, each);

		if (!left_of(ns, type, t))
			continue;
		for (g = 0; g < n && !is_of_group(&groups[g], near, socket); g++)
			;
		if (g == DEVICE_SETS_MAX)
			continue;
		if (g == n)
			groups[n++] = (struct group){ .near = near, .socket = socket };
		groups[g].left += left_of(ns, type, t);
	}
	return n;
}

/* Devices that are near the same cores are added up. */
static void add_share(struct device_set *s, unsigned first, unsigned cores, unsigned devices)
{
	unsigned at = 0;

	while (at < s->n && s->share[at].first + s->share[at].cores <= first)
		at++;
	if (at < s->n && s->share[at].first == first && s->share[at].cores == cores) {
		s->share[at].devices += devices;
		return;
	}
	s->odd |= s->n == DEVICE_SHARES_MAX || (at < s->n && s->share[at].first < first + cores);
	if (s->odd) {
		s->n = 0;
		return;
	}
	memmove(&s->share[at + 1], &s->share[at], (s->n++ - at) * sizeof(*s->share));
	s->share[at] = (struct device_share){ first, cores, devices };
}

static void add_share_of(struct device_set *s, const bitstr_t *near, unsigned devices)
{
	int first = near ? bit_ffs((bitstr_t *) near) : -1, cores = first < 0 ? 0 : bit_set_count((bitstr_t *) near);

	s->odd |= first < 0 || bit_fls((bitstr_t *) near) - first + 1 != cores;
	if (!s->odd)
		add_share(s, first, cores, devices);
	else
		s->n = 0;
}

/* The cores near the first so many free devices of a group. */
static void add_near(const gres_node_state_t *ns, uint32_t type, unsigned each, const struct group *g, uint64_t want,
		     unsigned ncores, uint64_t *cores, struct device_set *set)
{
	for (unsigned t = 0; t < ns->topo_cnt && want; t++) {
		const bitstr_t *near = ns->topo_core_bitmap[t];
		uint64_t left = left_of(ns, type, t);

		if (!left || !is_of_group(g, near, socket_of(near, each)))
			continue;
		add_cores(near, ncores, cores);
		add_share_of(set, near, MIN(want, left));
		want -= MIN(want, left);
	}
}

/* One group with those that have most, until they have enough devices together. False: they never have. */
static bool join_groups(const gres_node_state_t *ns, uint32_t type, unsigned each, struct group *groups, unsigned n,
			unsigned first, uint64_t want, unsigned ncores, uint64_t *cores, struct device_set *set)
{
	bool joined[DEVICE_SETS_MAX] = {0};

	for (unsigned next = first; next < n;) {
		const struct group *g = &groups[next];

		add_near(ns, type, each, g, want, ncores, cores, set);
		if (g->left >= want)
			return true;
		want -= g->left;
		joined[next] = true;
		next = n;
		for (unsigned i = 0; i < n; i++)
			if (!joined[i] && (next == n || groups[i].left > groups[next].left))
				next = i;
	}
	return false;
}

/* Each group with enough devices; if none has, each with others. */
static unsigned sets_of_groups(const gres_node_state_t *ns, uint32_t type, unsigned each, uint64_t want,
			       unsigned ncores, uint64_t *cores, struct device_set *sets)
{
	unsigned words = core_set_words(ncores), n, enough = 0;
	struct group groups[DEVICE_SETS_MAX];

	n = group_devices(ns, type, each, groups);
	for (unsigned g = 0; g < n; g++) {
		if (groups[g].left < want)
			continue;
		add_near(ns, type, each, &groups[g], want, ncores, cores + enough * words, &sets[enough]);
		enough++;
	}
	for (unsigned g = 0; !enough && g < n; g++)
		if (!join_groups(ns, type, each, groups, n, g, want, ncores, cores + g * words, &sets[g]))
			return 0;
	return enough ? enough : n;
}

/* The first free devices, with their places from the snapshot, if it has as many devices as Slurm. */
static unsigned set_of_shape(const struct device_need *need, const gres_node_state_t *ns, uint64_t want,
			     const struct shape *shape, uint64_t *cores, struct device_set *set)
{
	uint64_t count = 0, nth = 0;

	for (size_t i = 0; i < shape->ndevices; i++)
		count += !strcasecmp(shape->devices[i].type, need->name);
	if (!ns->gres_bit_alloc || count != ns->gres_cnt_avail || (uint64_t) bit_size(ns->gres_bit_alloc) != count)
		return 0;
	for (size_t i = 0; i < shape->ndevices && want; i++) {
		const struct shape_device *d = &shape->devices[i];

		if (strcasecmp(d->type, need->name) || bit_test(ns->gres_bit_alloc, nth++))
			continue;
		core_set_add_range(cores, d->first, d->cores);
		add_share(set, d->first, d->cores, 1);
		want--;
	}
	return want == 0;
}

unsigned device_locality_sets(const struct device_need *need, uint32_t tasks, int node, const struct shape *shape,
			      uint64_t *cores, struct device_set *sets)
{
	const gres_node_state_t *ns = need->name ? node_devices(node, need->name) : NULL;
	uint64_t want = need->per_task ? need->per_task * tasks : need->per_node;

	if (!ns || !want)
		return 0;
	memset(cores, 0, DEVICE_SETS_MAX * core_set_words(shape->cores) * sizeof(*cores));
	memset(sets, 0, DEVICE_SETS_MAX * sizeof(*sets));
	if (!tells_cores(ns))
		return set_of_shape(need, ns, want, shape, cores, sets);
	return sets_of_groups(ns, need->type, node_record_table_ptr[node]->cores, want, shape->cores, cores, sets);
}

bool device_wants_gpus(const job_record_t *job)
{
	return job->gres_list_req && list_find_first(job->gres_list_req, has_name, "gpu");
}

/* Add a device to the set of the same cores. n: sets so far. */
static unsigned add_to_sets(const uint64_t *near, unsigned words, uint64_t count, unsigned n, uint64_t *cores,
			    unsigned *devices)
{
	unsigned i = 0;

	while (i < n && memcmp(cores + i * words, near, words * sizeof(*near)))
		i++;
	if (i == DEVICE_SETS_MAX - 1)
		return DEVICE_SETS_MAX;
	if (i == n) {
		memcpy(cores + n * words, near, words * sizeof(*near));
		devices[n++] = 0;
	}
	devices[i] += count;
	return n;
}

static unsigned free_of_slurm(const gres_node_state_t *ns, const struct shape *shape, uint64_t *cores,
			      unsigned *devices)
{
	unsigned words = core_set_words(shape->cores), n;
	struct group groups[DEVICE_SETS_MAX];

	n = group_devices(ns, 0, 0, groups);
	for (unsigned g = 0; g < n; g++) {
		if (!groups[g].near || n == DEVICE_SETS_MAX)
			return 0;
		add_cores(groups[g].near, shape->cores, cores + g * words);
		devices[g] = groups[g].left;
	}
	return n;
}

static uint64_t gpus_of(const struct shape *shape)
{
	uint64_t count = 0;

	for (size_t i = 0; i < shape->ndevices; i++)
		count += !strcasecmp(shape->devices[i].type, "gpu");
	return count;
}

static unsigned free_of_shape(const gres_node_state_t *ns, const struct shape *shape, uint64_t *cores,
			      unsigned *devices)
{
	unsigned words = core_set_words(shape->cores), n = 0;
	uint64_t nth = 0, *near = cores + (DEVICE_SETS_MAX - 1) * words;

	if (!ns->gres_bit_alloc || (uint64_t) bit_size(ns->gres_bit_alloc) != gpus_of(shape))
		return 0;
	for (size_t i = 0; i < shape->ndevices && n < DEVICE_SETS_MAX; i++) {
		const struct shape_device *d = &shape->devices[i];

		if (strcasecmp(d->type, "gpu") || bit_test(ns->gres_bit_alloc, nth++))
			continue;
		memset(near, 0, words * sizeof(*near));
		core_set_add_range(near, d->first, d->cores);
		n = add_to_sets(near, words, 1, n, cores, devices);
	}
	return n;
}

unsigned device_free_gpus(int node, const struct shape *shape, uint64_t *cores, unsigned *devices)
{
	const gres_node_state_t *ns = node_devices(node, "gpu");

	if (!ns)
		return 0;
	memset(cores, 0, DEVICE_SETS_MAX * core_set_words(shape->cores) * sizeof(*cores));
	return tells_cores(ns) ? free_of_slurm(ns, shape, cores, devices) : free_of_shape(ns, shape, cores, devices);
}

/* Adds the cores near one GPU of a node. False when they are unknown. */
static bool add_near_gpu(int node, const gres_node_state_t *ns, int gpu, uint64_t *cores)
{
	const struct shape *shape = node_shape(node);
	uint64_t nth = 0;

	for (unsigned t = 0; tells_cores(ns) && ns->topo_gres_bitmap && t < ns->topo_cnt; t++) {
		bitstr_t *those = ns->topo_gres_bitmap[t];

		if (!those || gpu >= bit_size(those) || !bit_test(those, gpu))
			continue;
		add_cores(ns->topo_core_bitmap[t], glue_cores(node), cores);
		return true;
	}
	if (tells_cores(ns) || !shape || gpus_of(shape) != ns->gres_cnt_avail)
		return false;
	for (size_t i = 0; i < shape->ndevices; i++)
		if (!strcasecmp(shape->devices[i].type, "gpu") && nth++ == (uint64_t) gpu)
			core_set_add_range(cores, shape->devices[i].first, shape->devices[i].cores);
	return true;
}

/* mine: the job's cores on the node. cores: space for two sets. */
static void distance_on(int node, bitstr_t *granted, const uint64_t *mine, uint64_t *cores, struct device_distance *out)
{
	const gres_node_state_t *ns = node_devices(node, "gpu");
	unsigned words = core_set_words(glue_cores(node)), known = 0;
	uint64_t *near = cores, *any = cores + words;

	memset(any, 0, words * sizeof(*any));
	for (int gpu = ns ? glue_next(granted, 0) : -1; gpu >= 0; gpu = glue_next(granted, gpu + 1)) {
		memset(near, 0, words * sizeof(*near));
		if (!add_near_gpu(node, ns, gpu, near))
			continue;
		for (unsigned w = 0; w < words; w++)
			any[w] |= near[w];
		core_set_intersect(near, mine, words);
		out->gpus_far += !core_set_count(near, words);
		known++;
	}
	out->gpus += known;
	core_set_intersect(any, mine, words);
	out->cores_far += known ? core_set_count(mine, words) - core_set_count(any, words) : 0;
}

struct device_distance device_distance(const job_record_t *job)
{
	gres_state_t *s = job->gres_list_alloc ? list_find_first(job->gres_list_alloc, has_name, "gpu") : NULL;
	const gres_job_state_t *g = s ? s->gres_data : NULL;
	const job_resources_t *r = job->job_resrcs;
	struct device_distance d = {0};
	unsigned at = 0, nth = 0;

	if (!g || !g->gres_bit_alloc || !r || !r->node_bitmap || !r->core_bitmap)
		return d;
	for (int i = glue_next(r->node_bitmap, 0); i >= 0 && nth < g->node_cnt; i = glue_next(r->node_bitmap, i + 1)) {
		unsigned n = glue_cores(i), words = core_set_words(n);
		bitstr_t *granted = g->gres_bit_alloc[nth++];
		uint64_t *mine = granted ? calloc(3 * words + 1, sizeof(*mine)) : NULL;

		for (unsigned c = 0; mine && c < n && at + c < bit_size(r->core_bitmap); c++)
			if (bit_test(r->core_bitmap, at + c))
				core_set_add(mine, c);
		if (mine)
			distance_on(i, granted, mine, mine + words, &d);
		free(mine);
		at += n;
	}
	return d;
}

/* Of --gpus, the other nodes have at least one each. */
uint64_t device_memory(const struct device_need *need, const struct job_request *req, uint32_t tasks, int node)
{
	const gres_node_state_t *ns = need->each ? node_devices(node, need->name) : NULL;
	uint64_t n = need->per_task ? need->per_task * tasks : need->per_node;

	if (!ns)
		return 0;
	if (!need->per_task && !need->on_each_node)
		n = need->total ? MIN(need->total - MIN(req->min_nodes, need->total) + 1, ns->gres_cnt_avail) :
				  ns->gres_cnt_avail;
	return need->each * n;
}
