/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "device.h"

#include "occupancy.h"

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

uint64_t device_of_type(const struct device_type_need *t, uint32_t tasks)
{
	return t->per_task ? t->per_task * tasks : t->per_node;
}

uint64_t device_count(const struct device_need *need, uint32_t tasks)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < need->ntypes; i++)
		sum += device_of_type(&need->types[i], tasks);
	return sum;
}

bool device_fits(const struct device_need *need, uint32_t tasks, int node, bool now)
{
	for (unsigned i = 0; i < need->ntypes; i++) {
		uint64_t have, gone;

		devices_of_type(device_state(node, need->name), need->types[i].type, &have, &gone);
		if (have < device_of_type(&need->types[i], tasks) + (now ? gone : 0))
			return false;
	}
	return true;
}

bool device_same(const struct device_need *need, int node, int other)
{
	uint64_t have[2], gone;

	for (unsigned i = 0; i < need->ntypes; i++) {
		devices_of_type(device_state(node, need->name), need->types[i].type, &have[0], &gone);
		devices_of_type(device_state(other, need->name), need->types[i].type, &have[1], &gone);
		if (have[0] != have[1])
			return false;
	}
	return true;
}

uint64_t device_available(const struct device_need *need, int node)
{
	const struct device_type_need *most = need->types;
	uint64_t have, gone;

	for (unsigned i = 1; i < need->ntypes; i++)
		most = need->types[i].total > most->total ? &need->types[i] : most;
	devices_of_type(device_state(node, need->name), most->type, &have, &gone);
	return have;
}

uint32_t device_tasks(const struct device_need *need, uint32_t tasks, int node, bool now)
{
	while (tasks > 1 && !device_fits(need, tasks, node, now))
		tasks--;
	return tasks;
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

/* GPUs come before other devices. --gres-per-socket is left to Slurm, which has its own notion of a socket. */
void device_locality_read(slurm_list_t devices, bool memory_set, const bitstr_t *nodes, struct job_request *req,
			  struct device_need *out)
{
	uint64_t cpus[DEVICE_TYPES_MAX];
	slurm_iterator_t it;
	gres_state_t *s;
	bool one_node;

	*out = (struct device_need){0};
	if (!devices)
		return;
	it = list_iterator_create(devices);
	while ((s = list_next(it))) {
		const gres_job_state_t *g = s->gres_data;
		uint64_t memory = g->mem_per_gres ? g->mem_per_gres : g->def_mem_per_gres;

		if (g->gres_per_socket || !(g->gres_per_node || g->gres_per_task || g->gres_per_job) ||
		    (out->name && strcasecmp(s->gres_name, "gpu")))
			continue;
		if (out->name && strcasecmp(s->gres_name, out->name))
			*out = (struct device_need){0};
		if (out->ntypes == DEVICE_TYPES_MAX)
			break;
		/* As in gres_select_util_job_mem_max(): --mem and --mem-per-cpu come before --mem-per-gpu. */
		out->each = req->counts_memory && !memory_set && memory != NO_VAL64 ? memory : 0;
		out->name = s->gres_name;
		out->by_task |= g->gres_per_task > 0;
		cpus[out->ntypes] = g->cpus_per_gres ? g->cpus_per_gres : g->def_cpus_per_gres;
		out->types[out->ntypes] = (struct device_type_need){
			.type = g->type_id, .per_node = g->gres_per_node, .per_task = g->gres_per_task,
			.total = g->gres_per_job, .on_each_node = g->gres_per_node };
		if (g->gres_per_job)
			req->max_nodes = MAX(req->min_nodes, MIN(req->max_nodes, g->gres_per_job));
		job_request_at_least(req, fewest_nodes(nodes, out->name, g->type_id,
						       MAX(g->gres_per_job, g->gres_per_task * req->tasks)));
		/* Of a core for each task Slurm counts one CPU: as many as tasks, too few for those of more devices. */
		if (req->own_cores && !g->gres_per_task && cpus[out->ntypes] * g->total_gres > req->tasks)
			job_request_relax(req);
		out->ntypes++;
	}
	list_iterator_destroy(it);
	one_node = req->max_nodes == 1 || (req->first == 1 && req->last == 1);
	for (unsigned i = 0; i < out->ntypes; i++) {
		struct device_type_need *t = &out->types[i];

		if (!t->on_each_node)
			t->per_node = one_node && t->total ? t->total : 1;
		req->min_cpus = MAX(req->min_cpus, cpus[i] * MAX(t->per_node, t->per_task));
		if (t->total && !t->on_each_node && !t->per_task) {
			req->devices = MAX(req->devices, t->total);
			req->device_cpus = cpus[i];
		}
	}
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

/* At most so many of the type. */
static void groups_of_slurm(const gres_node_state_t *ns, uint32_t type, uint64_t most, unsigned ncores, uint64_t *cores,
			    struct device_groups *g)
{
	unsigned words = core_set_words(ncores);

	for (unsigned t = 0; t < ns->topo_cnt && most; t++) {
		uint64_t have = ns->topo_gres_cnt_avail[t], gone = ns->topo_gres_cnt_alloc[t], n;

		if (have <= gone || !is_of_type(ns, type, t))
			continue;
		memset(cores + g->n * words, 0, words * sizeof(*cores));
		add_cores(ns->topo_core_bitmap[t], ncores, cores + g->n * words);
		n = MIN(have - gone, most);
		group_add(g, cores, words, n);
		most -= n;
	}
}

struct device_bounds device_bounds(const char *name, uint32_t type, int node, const struct shape *shape,
				   enum level level, unsigned domains)
{
	const gres_node_state_t *ns = device_state(node, name);
	int cores = glue_cores(node), socket = node_record_table_ptr[node]->cores;
	struct device_bounds out = { .most = UINT64_MAX };
	bool sockets = true;	/* each domain has all cores of a socket, and no device is near all */
	unsigned with = 0;

	if (!shape || !ns || !tells_cores(ns))
		return out;
	out.most = 0;
	for (size_t i = 0; i < shape->ndomains; i++) {
		const struct shape_domain *d = &shape->domains[i];
		int from = d->first / socket * socket;
		uint64_t near = 0;

		if (d->level != level)
			continue;
		for (unsigned t = 0; t < ns->topo_cnt; t++) {
			const bitstr_t *at = ns->topo_core_bitmap[t];
			int core = at ? glue_next(at, from) : from;

			sockets &= at && (glue_next(at, 0) >= socket || glue_next(at, cores - socket) < 0);
			if (is_of_type(ns, type, t) && core >= 0 &&
			    core / socket <= (int) (d->first + d->cores - 1) / socket)
				near += ns->topo_gres_cnt_avail[t];
		}
		sockets &= d->cores >= (unsigned) socket;
		with += near > 0;
		out.most = MAX(out.most, near * domains);
	}
	out.least = !sockets ? 0 : with < domains ? UINT64_MAX : domains;
	return out;
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

static void groups_of_shape(const gres_node_state_t *ns, const char *name, uint32_t type, uint64_t most,
			    const struct shape *shape, uint64_t *cores, struct device_groups *g)
{
	const struct shape_device *by_number[DEVICE_LIST_MAX];
	unsigned words = core_set_words(shape->cores);

	if (!numbered(ns, name, shape, by_number))
		return;
	for (unsigned n = 0; n < ns->gres_cnt_avail && most; n++) {
		if (bit_test(ns->gres_bit_alloc, n) || !is_of_type(ns, type, line_of(ns, n)))
			continue;
		memset(cores + g->n * words, 0, words * sizeof(*cores));
		core_set_add_range(cores + g->n * words, by_number[n]->first, by_number[n]->cores);
		group_add(g, cores, words, 1);
		most--;
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

/* The type of which Slurm grants so many of any: that of the first free one if it has enough, else 0. */
static uint32_t type_granted(const gres_node_state_t *ns, uint64_t want)
{
	int first = ns->gres_bit_alloc && want ? bit_ffc(ns->gres_bit_alloc) : -1;
	uint64_t have, gone;

	if (first < 0)
		return 0;
	devices_of_type(ns, device_type(ns, first), &have, &gone);
	return have >= gone + want ? device_type(ns, first) : 0;
}

void device_groups_read(const struct device_need *need, uint32_t tasks, int node, const struct shape *shape,
			uint64_t *cores, struct device_groups *out)
{
	const gres_node_state_t *ns = device_state(node, need->name);

	*out = (struct device_groups){ .cores = cores };
	for (unsigned i = 0; ns && i < need->ntypes; i++) {
		uint64_t want = device_of_type(&need->types[i], tasks), most = need->ntypes > 1 ? want : UINT64_MAX;
		uint32_t type = need->types[i].type ? need->types[i].type : type_granted(ns, want);

		if (tells_cores(ns))
			groups_of_slurm(ns, type, most, shape->cores, cores, out);
		else
			groups_of_shape(ns, need->name, type, most, shape, cores, out);
	}
	groups_sort(out, cores, core_set_words(shape->cores));
}

bool device_wants_gpus(const job_record_t *job)
{
	return job->gres_list_req && list_find_first(job->gres_list_req, device_has_name, "gpu");
}

static int counts_cpus(void *gres, void *unused)
{
	const gres_job_state_t *g = ((gres_state_t *) gres)->gres_data;

	(void) unused;
	return !g->gres_per_task && (g->cpus_per_gres || g->def_cpus_per_gres);
}

unsigned device_cpus(const job_record_t *job)
{
	const gres_state_t *s = job->gres_list_req ? list_find_first(job->gres_list_req, counts_cpus, NULL) : NULL;
	const gres_job_state_t *g = s ? s->gres_data : NULL;

	return !g ? 0 : g->cpus_per_gres ? g->cpus_per_gres : g->def_cpus_per_gres;
}

/* Adds the cores near the nth device of a kind on a node to cores[]. False where they are unknown. */
static bool device_near(int node, const char *name, unsigned device, uint64_t *cores)
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
	uint64_t sum = 0, have, gone;

	for (unsigned i = 0; ns && i < need->ntypes; i++) {
		const struct device_type_need *t = &need->types[i];

		devices_of_type(ns, t->type, &have, &gone);
		sum += t->per_task || t->on_each_node ? device_of_type(t, tasks) :
						       MIN(t->total - MIN(req->min_nodes, t->total) + 1, have);
	}
	return need->each * sum;
}

/* A job's cores on a node, and the node's devices of a kind. */
struct on_node {
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

	*on = (struct on_node){0};
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

static void choose_on(const job_record_t *job, gres_state_t *s, int node, unsigned at)
{
	gres_job_state_t *g = s->gres_data;
	const gres_node_state_t *ns = device_state(node, s->gres_name);
	bool may = ns && ns->gres_bit_alloc && (uint32_t) node < g->total_node_cnt && g->gres_cnt_node_select &&
		   !glue_without_gpus(node) && !device_state(node, "mps") && !device_state(node, "shard");
	bitstr_t *was = may ? selected_on(g, ns, node) : NULL;
	struct on_node on;
	int links;

	if (was && read_node(&on, job->job_resrcs, at, node, s->gres_name, was)) {
		/* Each task has devices of its own: as many at a socket as its tasks need. */
		on.list.socket_cores = g->gres_per_task ? node_record_table_ptr[node]->cores : 0;
		links = links_among(ns, &on);
		if (on.known == (unsigned) bit_set_count(was) && on.known == g->gres_cnt_node_select[node] &&
		    read_usable(ns, &on) && device_choice_improve(&on.list, on.mine, on.chosen) &&
		    links_among(ns, &on) >= links) {
			if (!g->gres_bit_select)
				g->gres_bit_select = xcalloc(g->total_node_cnt, sizeof(*g->gres_bit_select));
			FREE_NULL_BITMAP(g->gres_bit_select[node]);
			g->gres_bit_select[node] = bit_alloc(on.list.n);
			for (unsigned d = 0; d < on.list.n; d++)
				if (on.chosen[d])
					bit_set(g->gres_bit_select[node], d);
		}
		free(on.mine);
	}
	FREE_NULL_BITMAP(was);
}

void device_grant_choose(job_record_t *job)
{
	const job_resources_t *r = job->job_resrcs;
	slurm_iterator_t it = job->gres_list_req && r && r->node_bitmap && r->core_bitmap ?
			      list_iterator_create(job->gres_list_req) : NULL;
	gres_state_t *s;

	while (it && (s = list_next(it))) {
		const gres_job_state_t *g = s->gres_data;
		unsigned at = 0;

		if (g->gres_per_socket || !strcasecmp(s->gres_name, "mps") || !strcasecmp(s->gres_name, "shard"))
			continue;
		for (int i = glue_next(r->node_bitmap, 0); i >= 0; i = glue_next(r->node_bitmap, i + 1)) {
			choose_on(job, s, i, at);
			at += glue_cores(i);
		}
	}
	if (it)
		list_iterator_destroy(it);
}

void device_grant_forget(job_record_t *job)
{
	slurm_iterator_t it = job->gres_list_req ? list_iterator_create(job->gres_list_req) : NULL;
	gres_state_t *s;

	while (it && (s = list_next(it))) {
		gres_job_state_t *g = s->gres_data;

		for (uint32_t i = 0; g->gres_bit_select && i < g->total_node_cnt; i++)
			FREE_NULL_BITMAP(g->gres_bit_select[i]);
		xfree(g->gres_bit_select);	/* Slurm makes one for as many nodes as there are by then */
	}
	if (it)
		list_iterator_destroy(it);
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

bool device_even(const job_record_t *job)
{
	const job_resources_t *r = job->job_resrcs;
	int first = r && r->node_bitmap && job->gres_list_alloc ? glue_next(r->node_bitmap, 0) : -1, gpus = -1, n;
	unsigned nth = 0;

	for (int i = first; i >= 0; i = glue_next(r->node_bitmap, i + 1), gpus = n) {
		bitstr_t *on = gpus_on(job, nth++);

		n = on ? bit_set_count(on) : 0;
		FREE_NULL_BITMAP(on);
		if ((gpus >= 0 && n != gpus) || node_record_table_ptr[i]->tpc != node_record_table_ptr[first]->tpc)
			return false;
	}
	return true;
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
