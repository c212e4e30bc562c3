/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "device_locality.h"

#include <stdlib.h>
#include <strings.h>

#include "node_shape.h"

int device_has_name(void *gres, void *name)
{
	return !strcasecmp(((gres_state_t *) gres)->gres_name, name);
}

const gres_node_state_t *device_state(int node, const char *name)
{
	slurm_list_t all = node_record_table_ptr[node]->gres_list;
	gres_state_t *found = all ? list_find_first(all, device_has_name, (char *) name) : NULL;

	return found ? found->gres_data : NULL;
}

uint64_t device_count(const struct device_need *need, uint32_t tasks)
{
	return need->per_task ? need->per_task * tasks : need->per_node;
}

/* The devices of a type, or of all (0), that a node has, and those of them that jobs have. */
static void devices_of_type(const gres_node_state_t *ns, uint32_t type, uint64_t *have, uint64_t *gone)
{
	*have = ns && !type ? ns->gres_cnt_avail : 0;
	*gone = ns && !type ? ns->gres_cnt_alloc : 0;
	for (unsigned t = 0; ns && type && t < ns->type_cnt; t++)
		if (ns->type_id[t] == type) {
			*have = ns->type_cnt_avail[t];
			*gone = ns->type_cnt_alloc[t];
		}
}

bool device_fits(const struct device_need *need, uint32_t tasks, int node, bool now)
{
	uint64_t have, gone;

	if (!need->name)
		return true;
	devices_of_type(device_state(node, need->name), need->type, &have, &gone);
	return have >= device_count(need, tasks) + (now ? gone : 0);
}

/* The fewest of these nodes that can have so many devices of a type, by the node with the most. */
static uint32_t fewest_nodes(const bitstr_t *nodes, const char *name, uint32_t type, uint64_t devices)
{
	uint64_t most = 0;

	for (int i = glue_next(nodes, 0); i >= 0 && most < devices; i = glue_next(nodes, i + 1)) {
		uint64_t have, gone;

		devices_of_type(device_state(i, name), type, &have, &gone);
		most = MAX(most, have);
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
		bool single;
		uint64_t cpus = g->cpus_per_gres ? g->cpus_per_gres : g->def_cpus_per_gres;

		if (g->gres_per_socket || !(g->gres_per_node || g->gres_per_task || g->gres_per_job) ||
		    (out->name && strcasecmp(s->gres_name, "gpu")))
			continue;
		*out = (struct device_need){ .name = s->gres_name, .type = g->type_id, .per_task = g->gres_per_task,
					   .each = memory_each(job, req, g), .total = g->gres_per_job,
					   .on_each_node = g->gres_per_node };
		if (g->gres_per_job)
			req->max_nodes = MAX(req->min_nodes, MIN(req->max_nodes, g->gres_per_job));
		job_request_at_least(req, fewest_nodes(nodes, out->name, out->type,
						       MAX(g->gres_per_job, g->gres_per_task * req->tasks)));
		single = req->max_nodes == 1 || (req->first == 1 && req->last == 1);
		out->per_node = g->gres_per_node ? g->gres_per_node : single && g->gres_per_job ? g->gres_per_job : 1;
		req->min_cpus = MAX(req->min_cpus, cpus * MAX(out->per_node, out->per_task));
	}
	list_iterator_destroy(it);
}

/* near: NULL for all cores. */
static void add_cores(const bitstr_t *near, unsigned ncores, uint64_t *cores)
{
	if (!near)
		core_set_add_range(cores, 0, ncores);
	for (int c = near ? glue_next(near, 0) : -1; c >= 0 && (unsigned) c < ncores; c = glue_next(near, c + 1))
		core_set_add(cores, c);
}

static bool tells_cores(const gres_node_state_t *ns)
{
	for (unsigned t = 0; ns->topo_core_bitmap && t < ns->topo_cnt; t++)
		if (ns->topo_core_bitmap[t])
			return true;
	return false;
}

/* The line of gres.conf with a device; topo_cnt: none has it. */
static unsigned line_of(const gres_node_state_t *ns, unsigned device)
{
	unsigned t = 0;

	while (t < ns->topo_cnt && !(ns->topo_gres_bitmap && ns->topo_gres_bitmap[t] &&
				     device < bit_size(ns->topo_gres_bitmap[t]) &&
				     bit_test(ns->topo_gres_bitmap[t], device)))
		t++;
	return t;
}

uint32_t device_type(const gres_node_state_t *ns, unsigned device)
{
	unsigned line = line_of(ns, device);

	return line < ns->topo_cnt && ns->topo_type_id ? ns->topo_type_id[line] : 0;
}

static bool is_of_type(const gres_node_state_t *ns, uint32_t type, unsigned line)
{
	return !type || !ns->topo_type_id || line >= ns->topo_cnt || ns->topo_type_id[line] == type;
}

/* Free devices of a line of gres.conf. */
static uint64_t left_of(const gres_node_state_t *ns, uint32_t type, unsigned line)
{
	uint64_t have = ns->topo_gres_cnt_avail[line], gone = ns->topo_gres_cnt_alloc[line];

	return have <= gone || !is_of_type(ns, type, line) ? 0 : have - gone;
}

/* Adds devices near the cores in the set after the last group. Those near a seventeenth set are left out. */
static void group_add(struct device_groups *g, uint64_t *cores, unsigned words, unsigned devices)
{
	unsigned i = 0;

	while (i < g->n && memcmp(cores + i * words, cores + g->n * words, words * sizeof(*cores)))
		i++;
	if (i == DEVICE_SHARES_MAX)
		return;
	if (i == g->n)
		g->devices[g->n++] = 0;
	g->devices[i] += devices;
}

static void groups_of_slurm(const gres_node_state_t *ns, uint32_t type, unsigned ncores, uint64_t *cores,
			    struct device_groups *g)
{
	unsigned words = core_set_words(ncores);

	for (unsigned t = 0; t < ns->topo_cnt; t++) {
		uint64_t left = left_of(ns, type, t);

		if (!left)
			continue;
		memset(cores + g->n * words, 0, words * sizeof(*cores));
		add_cores(ns->topo_core_bitmap[t], ncores, cores + g->n * words);
		group_add(g, cores, words, left);
	}
}

/*
 * The snapshot's devices of a kind by number, which is Slurm's index. False: not all numbers are known, or Slurm has
 * more or fewer of them, so that its numbers may be others.
 */
static bool numbered(const gres_node_state_t *ns, const char *name, const struct shape *shape,
		     const struct shape_device *by_number[static DEVICE_LIST_MAX])
{
	unsigned count = 0;

	memset(by_number, 0, DEVICE_LIST_MAX * sizeof(*by_number));
	for (size_t i = 0; i < shape->ndevices; i++) {
		const struct shape_device *d = &shape->devices[i];

		if (strcasecmp(d->type, name) || d->number < 0)
			continue;
		if (d->number >= (int) DEVICE_LIST_MAX || by_number[d->number])
			return false;
		by_number[d->number] = d;
		count++;
	}
	for (unsigned n = 0; n < count; n++)
		if (!by_number[n])
			return false;
	return ns->gres_bit_alloc && count == ns->gres_cnt_avail && (uint64_t) bit_size(ns->gres_bit_alloc) == count;
}

static void groups_of_shape(const gres_node_state_t *ns, const char *name, uint32_t type, const struct shape *shape,
			    uint64_t *cores, struct device_groups *g)
{
	const struct shape_device *by_number[DEVICE_LIST_MAX];
	unsigned words = core_set_words(shape->cores);

	if (!numbered(ns, name, shape, by_number))
		return;
	for (unsigned n = 0; n < ns->gres_cnt_avail; n++) {
		if (bit_test(ns->gres_bit_alloc, n) || !is_of_type(ns, type, line_of(ns, n)))
			continue;
		memset(cores + g->n * words, 0, words * sizeof(*cores));
		core_set_add_range(cores + g->n * words, by_number[n]->first, by_number[n]->cores);
		group_add(g, cores, words, 1);
	}
}

/* By their first cores, so that of equally good sets the one with the lowest cores comes first. */
static void groups_sort(struct device_groups *g, uint64_t *cores, unsigned words)
{
	uint64_t *spare = cores + DEVICE_SHARES_MAX * words;

	for (unsigned i = 1; i < g->n; i++)
		for (unsigned k = i; k; k--) {
			uint64_t *a = cores + (k - 1) * words, *b = a + words;
			unsigned devices = g->devices[k];

			if (core_set_next(a, words, 0) <= core_set_next(b, words, 0))
				break;
			memcpy(spare, a, words * sizeof(*a));
			memcpy(a, b, words * sizeof(*a));
			memcpy(b, spare, words * sizeof(*a));
			g->devices[k] = g->devices[k - 1];
			g->devices[k - 1] = devices;
		}
}

static uint32_t type_granted(const gres_node_state_t *ns, unsigned want)
{
	int first = ns && ns->gres_bit_alloc ? bit_ffc(ns->gres_bit_alloc) : -1;
	uint32_t type = first < 0 ? 0 : device_type(ns, first);
	uint64_t have, gone;

	devices_of_type(ns, type, &have, &gone);
	return have >= gone + want ? type : 0;
}

void device_groups_read(const char *name, uint32_t type, unsigned want, int node, const struct shape *shape,
			uint64_t *cores, struct device_groups *out)
{
	const gres_node_state_t *ns = device_state(node, name);

	*out = (struct device_groups){ .cores = cores };
	type = type || !want ? type : type_granted(ns, want);
	if (ns && tells_cores(ns))
		groups_of_slurm(ns, type, shape->cores, cores, out);
	else if (ns)
		groups_of_shape(ns, name, type, shape, cores, out);
	groups_sort(out, cores, core_set_words(shape->cores));
}

bool device_wants_gpus(const job_record_t *job)
{
	return job->gres_list_req && list_find_first(job->gres_list_req, device_has_name, "gpu");
}

bool device_near(int node, const char *name, unsigned device, uint64_t *cores)
{
	const struct shape_device *by_number[DEVICE_LIST_MAX];
	const gres_node_state_t *ns = device_state(node, name);
	const struct shape *shape = node_shape(node);
	unsigned line = ns ? line_of(ns, device) : 0;

	if (ns && tells_cores(ns)) {
		if (line < ns->topo_cnt)
			add_cores(ns->topo_core_bitmap[line], glue_cores(node), cores);
		return line < ns->topo_cnt;
	}
	if (!ns || !shape || !numbered(ns, name, shape, by_number) || device >= ns->gres_cnt_avail)
		return false;
	core_set_add_range(cores, by_number[device]->first, by_number[device]->cores);
	return true;
}

/* Of --gpus, the other nodes have at least one each. */
uint64_t device_memory(const struct device_need *need, const struct job_request *req, uint32_t tasks, int node)
{
	const gres_node_state_t *ns = need->each ? device_state(node, need->name) : NULL;
	uint64_t n = device_count(need, tasks);

	if (!ns)
		return 0;
	if (!need->per_task && !need->on_each_node)
		n = need->total ? MIN(need->total - MIN(req->min_nodes, need->total) + 1, ns->gres_cnt_avail) :
				  ns->gres_cnt_avail;
	return need->each * n;
}
