/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "steer.h"

#include "candidates.h"
#include "occupancy.h"
#include "score/numa_memory.h"
#include "shape/hostlist.h"

/* An empty node as a job sees it: without the cores that slurm.conf reserves for the system or for jobs with GPUs. */
struct empty_node {
	const struct shape *shape;
	int node;
	bool gpus;
};

static bool same_bits(const bitstr_t *a, const bitstr_t *b)
{
	return a == b || (a && b && bit_equal((bitstr_t *) a, (bitstr_t *) b));
}

static bool same_cores(const struct empty_node *a, const struct empty_node *b)
{
	return a->shape == b->shape && same_bits(node_record_table_ptr[a->node]->node_spec_bitmap,
						 node_record_table_ptr[b->node]->node_spec_bitmap) &&
	       (a->gpus || same_bits(glue_without_gpus(a->node), glue_without_gpus(b->node)));
}

/* NULL when memory is short. */
static uint64_t *cores_at(const struct empty_node *empty)
{
	uint64_t *cores = malloc((core_set_words(empty->shape->cores) + 1) * sizeof(*cores));

	if (cores) {
		core_set_fill(cores, empty->shape->cores);
		candidates_keep_usable(empty->node, empty->gpus, cores);
	}
	return cores;
}

/* The largest number of cores in one domain of an empty node. Nothing is known when memory is short: all. */
static unsigned largest_domain(const struct empty_node *empty, enum level level)
{
	const struct shape *shape = empty->shape;
	uint64_t *all = cores_at(empty);
	struct score_need need = { .task_cores = 1, .fit = FIT_REQUIRE, .level = level };
	struct score_table *t = NULL;
	unsigned most = shape->cores;

	if (all)
		t = score_table_new(shape, all, &need);
	if (t)
		most = score_table_within(t);
	score_table_free(t);
	free(all);
	return most;
}

/* Whether an empty node has such cores with such memory. Nothing is known when memory is short: true. */
static bool empty_node_has(const struct empty_node *empty, struct score_need need, struct numa_memory memory)
{
	const struct shape *shape = empty->shape;
	uint64_t *all = cores_at(empty);
	struct score_limit *limits = malloc((shape->cores + 1) * sizeof(*limits));
	uint32_t *used = calloc(shape->cores + 1, sizeof(*used));
	struct score_cost cost;
	bool has = true;

	if (all && limits && used) {
		memory.used = used;
		need.nlimits = numa_memory_limits(shape, &memory, need.cores, all, limits, shape->cores);
		need.limits = limits;
		has = score_pick(shape, all, &need, NULL, &cost) <= 0;
	}
	free(all);
	free(limits);
	free(used);
	return has;
}

/*
 * Nodes of one shape with the same cores give the same answer: a hash table of twice as many slots as shapes, for one
 * submission.
 */
struct answers {
	struct answer {
		struct empty_node at;
		unsigned cores;
	} *of;
	size_t size;
};

#define ANSWERS_LOOKS 64	/* slots that are looked at for a node */

/*
 * The cores of the largest domain or, of a path on an empty node, its cores, 0 if the node does not have it. Of a node
 * that finds no slot nothing is known: all.
 */
static unsigned cores_of(const struct job_request *req, const struct empty_node *empty, struct answers *all)
{
	const struct request_path *path = &req->request.path;
	struct score_need need = { .cores = request_path_cores(path), .task_cores = 1, .fit = FIT_REQUIRE,
				   .path = path };
	size_t at = (uintptr_t) empty->shape / _Alignof(max_align_t) % all->size;
	struct answer *a = &all->of[at];

	for (unsigned i = 1; i < ANSWERS_LOOKS && a->at.shape && !same_cores(&a->at, empty); i++)
		a = &all->of[(at + i) % all->size];
	if (!a->at.shape)
		*a = (struct answer){ *empty, !path->steps ? largest_domain(empty, req->request.level) :
					      empty_node_has(empty, need, (struct numa_memory){0}) ? need.cores : 0 };
	else if (!same_cores(&a->at, empty))
		return path->steps ? need.cores : empty->shape->cores;
	return a->cores;
}

/* The nodes of the job's partitions, or of the default one. NULL when no partition is known. */
static bitstr_t *nodes_of(const job_desc_msg_t *job)
{
	bitstr_t *nodes = bit_alloc(node_record_count);
	char *names = xstrdup(job->partition), *rest = names, *name;
	part_record_t *part;

	if (!names && default_part_loc && default_part_loc->node_bitmap)
		bit_or(nodes, default_part_loc->node_bitmap);
	while (rest && (name = strsep(&rest, ",")))
		if ((part = find_part_record(name)) && part->node_bitmap)
			bit_or(nodes, part->node_bitmap);
	xfree(names);
	return nodes;
}

/*
 * Removes nodes that the job excludes; keeps only those that it names if it may have no others. Returns the named
 * nodes, or NULL. Lists are not expanded: those with names that Slurm does not know are refused by Slurm, later.
 */
static struct hostset *keep_named(const job_desc_msg_t *job, uint32_t max_nodes, bitstr_t *nodes)
{
	struct hostset *named = job->req_nodes ? hostset_parse(job->req_nodes, NULL) : NULL,
		       *excluded = job->exc_nodes ? hostset_parse(job->exc_nodes, NULL) : NULL;
	uint32_t count = 0;

	for (int i = glue_next(nodes, 0); i >= 0 && (named || excluded); i = glue_next(nodes, i + 1)) {
		const node_record_t *node = node_record_table_ptr[i];

		if (!node || !node->name || (excluded && hostset_has(excluded, node->name)))
			bit_clear(nodes, i);
		else if (named && hostset_has(named, node->name))
			count++;
	}
	for (int i = glue_next(nodes, 0); i >= 0 && named && count >= max_nodes; i = glue_next(nodes, i + 1))
		if (!hostset_has(named, node_record_table_ptr[i]->name))
			bit_clear(nodes, i);
	hostset_free(excluded);
	return named;
}

/*
 * The result of a search of all nodes. A node that is missing from the snapshot may be a single domain. A path has a
 * fixed number of cores on a node, hence a least and a largest number of tasks, by the threads of a core.
 */
#define RANGES_MAX 8

struct finding {
	const struct device_need *devices;
	bool bound;			/* --gres-flags=enforce-binding */
	struct amount {
		uint64_t most, sum;	/* on a node, on all nodes */
	} bindable[DEVICE_TYPES_MAX], supplied;	/* devices of each type, by that; those for which there are the CPUs */
	struct job_holding holding;
	unsigned known, largest;	/* cores of the largest domain */
	int differs;			/* a node of which slurm.conf and snapshot disagree; -1: none */
	bool needs_it;			/* the job names it */
	bool missing;			/* a node is not in the snapshot */
	struct task_range {
		uint32_t least, most, nodes, named;
	} range[RANGES_MAX];		/* of a path; named: nodes that the job names */
	unsigned ranges;		/* more than RANGES_MAX: not all are known */
	int node;			/* that with the largest; of a path one that has it and that the job names */
	const struct shape *shape;	/* its shape; NULL: unknown */
	uint64_t step_tasks;		/* if no node has more of them than the one before it */
	uint32_t step_least;
	int named;			/* a node that the job names and that holds no task; -1: none */
	unsigned named_cores;		/* of its largest domain */
};

static void range_add(struct finding *f, uint32_t least, uint32_t most, bool named)
{
	unsigned i = 0;

	while (i < f->ranges && i < RANGES_MAX && (f->range[i].least != least || f->range[i].most != most))
		i++;
	if (i == f->ranges && f->ranges++ < RANGES_MAX)
		f->range[i] = (struct task_range){ .least = least, .most = most };
	if (i < RANGES_MAX) {
		f->range[i].nodes++;
		f->range[i].named += named;
	}
}

static void amount_add(struct amount *a, uint64_t there)
{
	a->most = MAX(a->most, there);
	a->sum += there;
}

/* Whether so many nodes may have as much. */
static bool amount_has(const struct amount *a, uint32_t nodes, uint64_t wanted)
{
	return a->most >= wanted || MIN(a->sum, a->most * nodes) >= wanted;
}

/* Of the tasks that a node has cores for, those whose devices and cores may be at the same sockets. */
static uint32_t tasks_bound(struct finding *f, const struct job_request *req, const struct shape *shape, int node,
			    uint32_t tasks)
{
	const struct request_step *step = req->request.path.steps ? req->request.path.step :
					  &(struct request_step){ req->request.level, 1 };
	const struct device_need *d = f->devices;
	uint32_t fits = tasks;

	enum level level = node_shape_level(shape, step->level);

	for (unsigned i = 0; f->bound && i < d->ntypes; i++) {
		const struct device_type_need *t = &d->types[i];
		struct device_bounds b = device_bounds(d->name, t->type, node, shape, level, step->count),
				     all = device_bounds(d->name, 0, node, shape, level, step->count);

		amount_add(&f->bindable[i], tasks ? MIN(b.most, t->total) : 0);
		while (fits && (device_of_type(t, fits) > b.most || device_count(d, fits) > all.most))
			fits--;
		if (MAX(t->total, device_of_type(t, fits)) < b.least)
			fits = 0;
	}
	return fits;
}

/* Nothing is known when memory is short. */
static struct finding finding_search(const struct job_request *req, const struct device_need *devices, bool gpus,
				     bool bound, struct snapshot_view *v, const bitstr_t *nodes,
				     const struct hostset *named)
{
	struct finding f = { .devices = devices, .bound = bound, .node = -1, .named = -1, .differs = -1 };
	struct answers answers = {0};

	snapshot_view_shapes(v, &answers.size);
	answers.size = 2 * answers.size + 1;
	if (!(answers.of = calloc(answers.size, sizeof(*answers.of))))
		return f;
	for (int i = glue_next(nodes, 0); i >= 0; i = glue_next(nodes, i + 1)) {
		const node_record_t *node = node_record_table_ptr[i];
		const struct shape *shape = node ? node_shape_in(v, node) : NULL;
		unsigned path = request_path_cores(&req->request.path), cores;
		struct empty_node empty;
		uint32_t tasks, least;
		bool differs, needs_it;

		if (!node)
			continue;
		needs_it = named && hostset_has(named, node->name);
		differs = !shape && node->name && snapshot_view_shape(v, node->name);
		f.missing |= !shape && !differs;
		if (differs && !f.needs_it) {
			f.needs_it = needs_it;
			f.differs = f.differs < 0 || f.needs_it ? i : f.differs;
		}
		empty = (struct empty_node){ shape, i, gpus };
		cores = shape				   ? cores_of(req, &empty, &answers)
			: !path || path <= node->tot_cores ? path ? path : node->tot_cores
							   : 0;
		tasks = device_tasks(devices, job_request_capacity(req, cores, i), i, false);
		tasks = tasks_bound(&f, req, shape, i, tasks);
		least = path ? job_request_fewest(req, cores, i) : 1;
		tasks = tasks < MAX(req->node_room, least) || !least ? 0 : tasks;
		job_request_hold(req, 0, tasks, &f.holding);
		if (tasks) {
			f.step_least = f.step_least ? MIN(f.step_least, tasks) : tasks;
			f.step_tasks += f.step_least;
		}
		if (tasks && req->device_cpus)
			amount_add(&f.supplied, MIN(device_available(devices, i),
						    cores * node->tpc / req->device_cpus));
		if (path && tasks)
			range_add(&f, least, req->node_tasks ? MIN(tasks, req->node_tasks) : tasks, needs_it);
		f.known += shape != NULL;
		if (shape && !tasks && needs_it) {
			f.named = i;
			f.named_cores = cores;
		}
		if (f.node >= 0 && cores <= f.largest && !(path && needs_it && cores))
			continue;
		f.largest = cores;
		f.node = i;
		f.shape = shape;
	}
	free(answers.of);
	return f;
}

static bool range_has(const struct task_range *r, const struct chooser_share *share)
{
	return share->nodes && share->tasks >= r->least && share->tasks <= r->most;
}

/*
 * Whether the tasks can be divided evenly over so many nodes, the named ones among them, with the tasks of each just
 * those of the path. Slurm divides uneven shares by filling one node after another.
 */
static bool path_divides(const struct finding *f, uint32_t tasks, uint32_t nodes)
{
	uint32_t one = 0, other = 0, either = 0, most = 0, least = 0, only_one = 0, only_other = 0;
	struct chooser_share share[2];

	if (!shares_divide(share, tasks, nodes))
		return false;
	for (const struct task_range *r = f->range; r < f->range + f->ranges; r++) {
		bool has_one = range_has(r, &share[0]), has_other = range_has(r, &share[1]);

		if (r->named && !has_one && !has_other)
			return false;
		one += has_one ? r->nodes : 0;
		other += has_other ? r->nodes : 0;
		either += has_one || has_other ? r->nodes : 0;
		only_one += has_other ? 0 : r->named;
		only_other += has_one ? 0 : r->named;
		most = MAX(most, r->most);
		least = MAX(least, r->least);
	}
	if (share[1].nodes && least > 1 && (uint64_t) (nodes - 1) * most + least > tasks)
		return false;
	return one >= share[0].nodes && other >= share[1].nodes && either >= nodes && only_one <= share[0].nodes &&
	       only_other <= share[1].nodes;
}

/*
 * Of CPUs for each device, whether so many nodes need all cores of the path: of one with fewer devices than others
 * Slurm takes off those that no device needs.
 */
static bool path_needed(const struct job_request *req, const struct finding *f, uint32_t nodes)
{
	struct job_request least = *req;
	struct score_need need;

	if (!req->device_cpus || f->ranges > 1)
		return true;
	shares_divide(least.share, req->tasks, nodes);
	least.devices -= req->devices % nodes;
	job_request_need(&least, req->devices % nodes ? 1 : least.share[0].tasks, f->node, &need);
	return need.cores == request_path_cores(&req->request.path);
}

/* Whether the nodes may have all devices of --gpus=N near the job's cores. */
static bool binds(const struct job_request *req, const struct finding *f)
{
	for (unsigned i = 0; f->bound && i < f->devices->ntypes; i++)
		if (!amount_has(&f->bindable[i], req->max_nodes, f->devices->types[i].total))
			return false;
	return true;
}

/* Whether they may have all devices with the CPUs of --cpus-per-gpu. */
static bool cpus_suffice(const struct job_request *req, const struct finding *f)
{
	return req->overcommit || !req->device_cpus || amount_has(&f->supplied, req->max_nodes, req->devices);
}

/*
 * Whether a step has the GPUs of its tasks (fewer_gpus_first() in plan.c) if the job has all the nodes that hold any.
 */
static bool steps_start(const struct job_request *req, const struct finding *f)
{
	return !f->devices->by_task || req->tasks_per_core != 1 || req->min_nodes != f->holding.nodes ||
	       f->step_tasks >= req->tasks;
}

static bool may_hold(const struct job_request *req, const struct finding *f)
{
	uint32_t to = MIN(MIN(req->max_nodes, f->holding.nodes), req->tasks);
	bool any_share = req->device_cpus && req->min_nodes != req->max_nodes;

	if (f->named >= 0 || !job_request_may_hold(req, &f->holding) || !binds(req, f) || !cpus_suffice(req, f) ||
	    !steps_start(req, f))
		return false;
	if (!req->request.path.steps || req->overcommit || f->ranges > RANGES_MAX)
		return true;
	/* Of CPUs for each device it depends on the number of nodes how many tasks one may have. */
	for (uint32_t nodes = req->min_nodes; nodes <= to; nodes++)
		if (path_needed(req, f, nodes) && (any_share || path_divides(f, req->tasks, nodes)))
			return true;
	return false;
}

/* need: cores of one task on the named node, or of `each` tasks on a node; room: why so many, or "". */
static int refuse_path(const struct job_request *req, const struct finding *f, const char *path, uint32_t each,
		       unsigned need, const char *room, struct err *e)
{
	unsigned cores = request_path_cores(&req->request.path);

	if (f->named >= 0 && !f->named_cores)
		return err_set(e, "--topo-request=%s: node %s does not have these domains", path,
			       node_record_table_ptr[f->named]->name);
	if (!f->holding.nodes && !f->largest)
		return err_set(e, "--topo-request=%s: no node that the job may get has these domains", path);
	if (f->holding.nodes < req->min_nodes && f->holding.nodes)
		return err_set(e, "--topo-request=%s: the job needs %u node%s with these domains, but only %u %s them",
			       path, req->min_nodes, PLURAL(req->min_nodes), f->holding.nodes,
			       f->holding.nodes == 1 ? "has" : "have");
	if (req->device_cpus && req->max_nodes > 1)
		return err_set(e, "--topo-request=%s requests exactly %u core%s on each node, but not each needs as"
			       " many for its part of %u GPUs with %u CPUs each: request as many cores as these need",
			       path, cores, PLURAL(cores), req->devices, req->device_cpus);
	if (need == cores || (!*room && req->tasks > 1 && req->min_nodes != req->max_nodes))
		return err_set(e, "--topo-request=%s requests %u core%s on each node, but the job's %u tasks cannot be"
			       " divided evenly among nodes that have these domains so that those of each need as many",
			       path, cores, PLURAL(cores), req->tasks);
	return err_set(e, "--topo-request=%s requests exactly %u core%s on each node, but %u task%s %u there%s:"
		       " request as many cores as the tasks need", path, cores, PLURAL(cores), each,
		       each == 1 ? " needs" : "s need", need, room);
}

static int refusal_write(const struct job_request *req, const struct finding *f, struct err *e)
{
	enum level at = node_shape_level(f->shape, req->request.level);
	const char *level = level_name(req->request.level), *domain = level_noun(at, 1);
	const struct device_need *devices = f->devices;
	unsigned long long count = device_count(devices, 1);
	uint64_t least = 0;
	uint32_t nodes = MAX(req->min_nodes, MIN(req->max_nodes, f->holding.nodes)),
		 own = f->named >= 0 || req->overcommit ? 1 : (req->tasks + nodes - 1) / nodes,
		 each = MAX(own, req->node_room);
	char path[128], gpus[96] = "", room[128] = "";
	const char *option = req->request.path.steps ? "--topo-request" : "--topo-fit=require";
	struct score_need need;

	if (devices->name && !strcasecmp(devices->name, "gpu"))
		snprintf(gpus, sizeof(gpus), "%s with %.0llu%sGPUs", at == LEVEL_NODE ? "" : " of a node",
			 count > 1 ? count : 0, count > 1 ? " " : "");
	else if (devices->name)
		snprintf(gpus, sizeof(gpus), "%s with gres/%s", at == LEVEL_NODE ? "" : " of a node", devices->name);
	for (const struct device_type_need *t = devices->types; t < devices->types + devices->ntypes; t++)
		least = t->total && (!least || t->total < least) ? t->total : least;
	if (least && !devices->by_task && least <= req->max_nodes)
		snprintf(gpus + strlen(gpus), sizeof(gpus) - strlen(gpus), " (%u %s: at most %u node%s)",
			 (uint32_t) least, devices->ntypes > 1 ? "of a type" : "in all", (uint32_t) least,
			 PLURAL(least));
	/* Or fewer tasks on each of more nodes would do. */
	if (each > own || (each > 1 && each == req->node_room && !f->holding.nodes && req->min_nodes < req->max_nodes))
		snprintf(room, sizeof(room), " (with --ntasks-per-%s=%u Slurm uses only nodes with room for %u tasks)",
			 req->node_tasks == each ? "node" : "socket", each, each);
	job_request_need(req, each, f->named >= 0 ? f->named : f->node, &need);
	if (f->holding.nodes && !cpus_suffice(req, f))
		return err_set(e, "%s cannot be met: the job needs %u GPUs with %u CPUs each, but the nodes that it may"
			       " get have at most %llu with as many CPUs in such cores", option, req->devices,
			       req->device_cpus,
			       (unsigned long long) MIN(f->supplied.sum, f->supplied.most * req->max_nodes));
	if (job_request_may_hold(req, &f->holding) && !steps_start(req, f))
		return err_set(e, "%s cannot be met: with --ntasks-per-core=1 and devices for each task, Slurm starts"
			       " no fewer tasks of a step on a node than on the next, and so the job's nodes hold %llu"
			       " of its %u", option,
			       (unsigned long long) f->step_tasks, req->tasks);
	if (request_path_text(&req->request.path, path, sizeof(path)))
		return refuse_path(req, f, path, each, need.cores, room, e);
	if (f->named >= 0)
		return err_set(e, "node %s cannot meet the requirement: %s %u core%s in one %s%s, but its largest has"
			       " %u", node_record_table_ptr[f->named]->name, need.cores > need.task_cores ?
			       "the job needs" : "a task needs", need.cores, PLURAL(need.cores), domain, room,
			       f->named_cores);
	if (req->max_nodes > f->holding.nodes && f->holding.nodes >= req->min_nodes)
		return err_set(e, "--topo-fit=require --topo-level=%s: with the tasks of each node in one %s there is"
			       " room for %llu of the job's %u%s; the largest %s has %u core%s", level, domain,
			       (unsigned long long) f->holding.tasks, req->tasks, room, domain, f->largest,
			       PLURAL(f->largest));
	if (need.cores > f->largest)
		return err_set(e, "--topo-fit=require --topo-level=%s: the job needs %u core%s in one %s%s%s, but the"
			       " largest has %u", level, need.cores, PLURAL(need.cores), domain, gpus, room,
			       f->largest);
	return err_set(e, "--topo-fit=require --topo-level=%s: the job needs %u node%s with %u core%s in one %s%s%s,"
		       " but only %u %s", level, req->min_nodes, PLURAL(req->min_nodes), need.cores,
		       PLURAL(need.cores), domain, gpus, room, f->holding.nodes,
		       f->holding.nodes == 1 ? "has" : "have");
}

/* A requirement that is ruled out by --gres-flags=enforce-binding alone. */
static int refuse_bound(const struct job_request *req, const struct device_need *devices, struct err *e)
{
	bool gpus = !strcasecmp(devices->name, "gpu");

	return err_set(e, "%s cannot be met: with --gres-flags=enforce-binding Slurm allocates only cores near the"
		       " job's %s%s and only those near its cores, and too few nodes that it may get have them so",
		       req->request.path.steps ? "--topo-request" : "--topo-fit=require", gpus ? "" : "gres/",
		       gpus ? "GPUs" : devices->name);
}

/* The job would wait until an administrator has changed slurm.conf, or the node another topology. */
static int refuse_different(const struct job_request *req, const struct finding *f, const struct snapshot_view *v,
			    struct err *e)
{
	const node_record_t *n = node_record_table_ptr[f->differs];
	struct buf text = {0};

	node_difference_text(n, snapshot_view_shape(v, n->name), &text);
	err_set(e, "--topo-%s cannot be met: %s%s",
		req->request.path.steps ? "request" : req->request.fit == FIT_REQUIRE ? "fit=require" : "mem=require",
		f->needs_it ? "" : "slurm.conf and the snapshot disagree about each node that the job may get: ",
		text.failed ? n->name : text.data);
	buf_free(&text);
	return -1;
}

/* Why no partition of the job can have the placement, in the words for one of them; NULL if one can. */
static const char *partitions_check(const job_desc_msg_t *job, const char *(*check)(const part_record_t *part))
{
	char *names = xstrdup(job->partition), *rest = names, *name;
	const char *why = names ? NULL : check(default_part_loc);
	bool can = false;
	part_record_t *part;

	while (rest && (name = strsep(&rest, ",")))
		if ((part = find_part_record(name))) {
			why = check(part);
			can |= !why;
		}
	xfree(names);
	return can ? NULL : why;
}

static const char *memory_there(const part_record_t *part)
{
	uint32_t flags = part && part->cr_type ? part->cr_type : slurm_conf.select_type_param;

	return flags & CR_MEMORY ? NULL : "SelectTypeParameters does not allocate memory (CR_Core_Memory)";
}

/* NULL where the job names several, or one that is unknown. */
static const part_record_t *partition_of(const job_desc_msg_t *job)
{
	return job->partition ? find_part_record(job->partition) : default_part_loc;
}

/*
 * What the partition has for each GPU Slurm sets when it first looks at the job (_set_gpu_defaults() of cons_tres).
 * Known as in default_memory. The cluster's DefMemPerGPU has effect beside a partition's DefMemPerCPU, too: there Slurm
 * takes what select_p_reconfigure() has read.
 */
static void default_gpus(job_desc_msg_t *job, slurm_list_t asked)
{
	const part_record_t *part = partition_of(job);
	slurm_iterator_t it = asked && part ? list_iterator_create(asked) : NULL;
	bool cpus_given = glue_given16(job->cpus_per_task);
	uint64_t cpus = 0;
	gres_state_t *s;

	while (it && (s = list_next(it))) {
		gres_job_state_t *g = s->gres_data;

		if (!device_has_name(s, "gpu"))
			continue;
		g->def_mem_per_gres = glue_gpu_default(part, JOB_DEF_MEM_PER_GPU);
		if (cpus_given)
			continue;
		g->def_cpus_per_gres = glue_gpu_default(part, JOB_DEF_CPU_PER_GPU);
		if (!g->cpus_per_gres)
			cpus = MAX(cpus, g->gres_per_task * g->def_cpus_per_gres);
	}
	if (it)
		list_iterator_destroy(it);
	if (cpus)
		job->cpus_per_task = MIN(cpus, NO_VAL16 - 1);
}

/* Slurm gives it later to a job that states none; known where the job names one partition at most. */
static void default_memory(const job_desc_msg_t *job, struct job_request *req)
{
	const part_record_t *part = partition_of(job);
	uint64_t memory = part && part->def_mem_per_cpu ? part->def_mem_per_cpu : slurm_conf.def_mem_per_cpu;

	if (!part || (memory & ~MEM_PER_CPU) == 0)
		return;
	req->memory_per_cpu = memory & MEM_PER_CPU;
	req->memory = memory & ~MEM_PER_CPU;
}

/* What the empty nodes of one shape, memory and number of devices hold. */
struct memory_kind {
	struct empty_node first;	/* of them */
	struct numa_memory memory;
	const struct device_need *need;
	unsigned nodes, threads;
	uint64_t *holds;		/* a set: the numbers of tasks */
};

#define MEMORY_KINDS 64
#define MEMORY_TRIES 512		/* sets of cores that are chosen for one submission */
#define MEMORY_TASKS 65535

/* Returns the number of kinds, kind_of[] has that of each node; 0: a shape is not known, or there are too many. */
static unsigned memory_kinds_read(const struct device_need *need, bool gpus, const bitstr_t *nodes,
				  struct snapshot_view *v, struct memory_kind *kinds, short *kind_of)
{
	unsigned n = 0, k;

	for (int i = glue_next(nodes, 0); i >= 0; i = glue_next(nodes, i + 1)) {
		const node_record_t *node = node_record_table_ptr[i];
		struct empty_node empty = { node ? node_shape_in(v, node) : NULL, i, gpus };
		uint64_t memory;

		if (!empty.shape)
			return 0;
		memory = node->real_memory > node->mem_spec_limit ? node->real_memory - node->mem_spec_limit : 0;
		for (k = 0; k < n; k++)
			if (same_cores(&kinds[k].first, &empty) && kinds[k].memory.capacity == memory &&
			    kinds[k].threads == node->tpc && device_same(need, kinds[k].first.node, i))
				break;
		if (k == MEMORY_KINDS)
			return 0;
		if (k == n)
			kinds[n++] = (struct memory_kind){ .first = empty, .memory.capacity = memory, .need = need,
							   .threads = node->tpc };
		kinds[k].nodes++;
		kind_of[i] = k;
	}
	return n;
}

/* MB that some tasks need of such a node. */
static uint64_t memory_wanted(const struct job_request *req, const struct memory_kind *kind, uint32_t tasks)
{
	uint64_t of_devices = device_memory(kind->need, req, tasks, kind->first.node);

	return of_devices ? of_devices : job_request_memory(req, tasks);
}

static bool memory_holds(const struct job_request *req, const struct memory_kind *kind, uint32_t tasks)
{
	struct numa_memory memory = kind->memory;
	struct score_need need;

	/* Slurm uses no core of a node with room for fewer tasks than node_room. */
	job_request_need(req, MAX(tasks, req->node_room), kind->first.node, &need);
	memory.wanted = memory_wanted(req, kind, tasks);
	return memory.wanted <= memory.capacity && need.cores <= kind->first.shape->cores &&
	       device_fits(kind->need, tasks, kind->first.node, false) && empty_node_has(&kind->first, need, memory);
}

/* Whether they hold even shares on the fewest nodes that the job may have, as they do most jobs. */
static bool memory_evenly(const struct job_request *req, const struct memory_kind *kinds, unsigned n, bool named)
{
	const struct chooser_share *share = req->share;
	unsigned nodes = 0;

	for (unsigned k = 0; k < n; k++) {
		bool holds = memory_holds(req, &kinds[k], share[0].tasks) &&
			     (!share[1].nodes || memory_holds(req, &kinds[k], share[1].tasks));

		if (!holds && named)
			return false;
		nodes += holds ? kinds[k].nodes : 0;
	}
	return nodes >= req->min_nodes;
}

/* As struct chooser_division has it: 0, or 1 with no division, or -1: unknown. Sets what each kind holds. */
static int memory_divide(const struct job_request *req, const bitstr_t *nodes, const struct hostset *named,
			 struct memory_kind *kinds, unsigned n, const short *kind_of)
{
	struct chooser_division d = { .tasks = MAX(req->tasks, 1), .min_nodes = req->min_nodes,
				      .max_nodes = req->max_nodes };
	uint32_t most = req->node_tasks ? MIN(d.tasks, req->node_tasks) : d.tasks, left = MEMORY_TRIES;
	int rc = d.tasks > MEMORY_TASKS ? -1 : 0;

	for (unsigned k = 0; rc == 0 && k < n; k++) {
		uint32_t room = MIN(most, job_request_capacity(req, kinds[k].first.shape->cores, kinds[k].first.node));

		kinds[k].holds = calloc(core_set_words(d.tasks + 1), sizeof(*kinds[k].holds));
		if (!kinds[k].holds || room > left)
			rc = -1;
		for (uint32_t t = 1; rc == 0 && t <= room; t++)
			if (memory_holds(req, &kinds[k], t))
				core_set_add(kinds[k].holds, t);
		left -= MIN(left, room);
	}
	for (int i = glue_next(nodes, 0); rc == 0 && i >= 0; i = glue_next(nodes, i + 1))
		if (chooser_division_add(&d, kinds[kind_of[i]].holds, 0,
				 named && hostset_has(named, node_record_table_ptr[i]->name)) < 0)
			rc = -1;
	rc = rc ? rc : chooser_division_find(&d);
	chooser_division_free(&d);
	return rc;
}

/* "n1 and 2 others hold 1-3,6, n4 holds none" */
static void holds_print(const struct memory_kind *kinds, unsigned n, uint32_t most, struct buf *out)
{
	for (unsigned k = 0; k < n && k < 4; k++) {
		bool any = false;

		buf_printf(out, "%s%s", k ? ", " : "", node_record_table_ptr[kinds[k].first.node]->name);
		if (kinds[k].nodes > 1)
			buf_printf(out, " and %u other%s", kinds[k].nodes - 1, PLURAL(kinds[k].nodes - 1));
		buf_puts(out, kinds[k].nodes > 1 ? " hold " : " holds ");
		for (uint32_t t = 1, last; t <= most; t = last + 1) {
			last = t;
			if (!core_set_has(kinds[k].holds, t))
				continue;
			while (last < most && core_set_has(kinds[k].holds, last + 1))
				last++;
			buf_printf(out, last > t ? "%s%u-%u" : "%s%u", any ? "," : "", t, last);
			any = true;
		}
		buf_puts(out, any ? "" : "none");
	}
	buf_puts(out, n > 4 ? ", and others" : "");
}

static int memory_refuse(const struct job_request *req, const bitstr_t *nodes, const struct memory_kind *kinds,
			 unsigned n, struct err *e)
{
	bool one = req->max_nodes == 1 || req->tasks < 2, each = req->memory_per_cpu && !one;
	bool each_device = kinds->need->each && !one;
	uint64_t memory = each ? req->memory : each_device ? kinds->need->each :
			  memory_wanted(req, kinds, MAX(req->tasks, 1));
	uint32_t count = bit_set_count((bitstr_t *) nodes);
	enum level level = req->request.level;
	struct score_need need;
	struct buf text = {0};
	char path[128];

	job_request_need(req, MAX(req->tasks, 1), kinds->first.node, &need);
	if (one)
		buf_printf(&text, "no node that the job may get has %u core%s", need.cores, PLURAL(need.cores));
	else if (req->min_nodes == req->max_nodes)
		buf_printf(&text, "the job's %u tasks cannot be divided among %u nodes that each have cores",
			   req->tasks, req->min_nodes);
	else if (req->max_nodes < count)
		buf_printf(&text, "the job's %u tasks cannot be divided among %u to %u nodes that each have cores",
			   req->tasks, req->min_nodes, req->max_nodes);
	else
		buf_printf(&text, "the job's %u tasks cannot be divided among nodes that each have cores", req->tasks);
	if (request_path_text(&req->request.path, path, sizeof(path)))
		buf_printf(&text, " at %s", path);
	else if (req->request.fit == FIT_REQUIRE && level != LEVEL_NODE)
		buf_printf(&text, " in one %s", level_noun(level, 1));
	if (memory)
		buf_printf(&text, " whose NUMA nodes hold %llu MB%s", (unsigned long long) memory,
			   each ? " for each CPU" : each_device ? " for each GPU" : "");
	if (!one)
		buf_puts(&text, ": ");
	if (!one)
		holds_print(kinds, n, req->tasks, &text);
	err_set(e, "%s: %s", req->asked_memory ? "--topo-mem=require" : "TopoMem=require in slurmctld's topiary.conf",
		text.failed ? "no nodes hold the job's memory so" : text.data);
	buf_free(&text);
	return -1;
}

/* Memory that must be near, on empty nodes, in whatever way the tasks are divided. */
static int memory_check(const struct job_request *req, const struct device_need *devices, bool gpus,
			struct snapshot_view *v, const bitstr_t *nodes, const struct hostset *named, struct err *e)
{
	short *kind_of = calloc(node_record_count + 1, sizeof(*kind_of));
	struct memory_kind kinds[MEMORY_KINDS];
	unsigned n = kind_of ? memory_kinds_read(devices, gpus, nodes, v, kinds, kind_of) : 0;
	int rc = 0;

	if (n && !memory_evenly(req, kinds, n, named) &&
	    memory_divide(req, nodes, named, kinds, n, kind_of) > 0)
		rc = memory_refuse(req, nodes, kinds, n, e);
	for (unsigned k = 0; k < n; k++)
		free(kinds[k].holds);
	free(kind_of);
	return rc;
}

int submitted_ignored(const job_desc_msg_t *job, const char *why, struct err *e)
{
	struct request none = { .fit = FIT_OFF };
	struct err other;
	const char *left;
	struct job_request req;

	if (job_request_read_submitted(job, &none, &req, &left, &other) || !req.asked)
		return 0;
	err_set(e, "--topo-fit, --topo-request and --topo-mem have no effect: %s", why);
	return 1;
}

static int placement_check(const job_desc_msg_t *job, slurm_list_t asked, const struct request *site,
			   struct snapshot_view *v, struct err *e)
{
	struct device_need devices;
	struct finding f;
	const char *why, *left, *uncounted;
	struct job_request req;
	struct hostset *named;
	bitstr_t *nodes;
	bool near, no_memory = job->pn_min_memory == NO_VAL64 && !job->mem_per_tres;
	bool bound = job->bitflags & GRES_ENFORCE_BIND, gpus = glue_lists_gpus(asked);
	int rc;

	if (job_request_read_submitted(job, site, &req, &why, e))
		return -1;
	near = req.request.memory == FIT_REQUIRE && !req.whole_nodes;
	uncounted = near ? partitions_check(job, memory_there) : NULL;
	req.counts_memory = near && !uncounted;
	near = near && (req.asked_memory || !uncounted);
	if (req.request.fit == FIT_OFF && !near)
		return 0;
	left = req.asked || near ? partitions_check(job, job_request_left_there) : NULL;
	why = left ? left : why ? why : near ? uncounted : NULL;
	if (near && why && req.asked_memory)
		return err_set(e, "--topo-mem=require cannot be met: %s", why);
	if (why && req.request.fit != FIT_REQUIRE)
		return submitted_ignored(job, why, e);
	if ((req.request.fit != FIT_REQUIRE && !near) || req.whole_nodes)
		return 0;
	if (why)
		return err_set(e, "%s cannot be met: %s",
			       req.request.path.steps ? "--topo-request" : "--topo-fit=require", why);
	if (!v)
		return 0;
	if (near && no_memory)
		default_memory(job, &req);
	if (near)
		job_request_relax(&req);
	nodes = nodes_of(job);
	device_locality_read(asked, job->pn_min_memory != NO_VAL64, nodes, &req, &devices);
	for (int i = glue_next(nodes, 0); i >= 0; i = glue_next(nodes, i + 1))
		if (node_record_table_ptr[i] && !device_fits(&devices, 1, i, false))
			bit_clear(nodes, i);
	named = keep_named(job, req.max_nodes, nodes);
	f = finding_search(&req, &devices, gpus, bound, v, nodes, named);
	if ((req.request.fit == FIT_REQUIRE || req.asked_memory) &&
	    (f.needs_it || (f.differs >= 0 && !f.known && !f.missing)))
		rc = refuse_different(&req, &f, v, e);
	else if (req.request.fit == FIT_REQUIRE && f.known && !may_hold(&req, &f)) {
		if (bound)
			f = finding_search(&req, &devices, gpus, false, v, nodes, named);
		rc = !f.known ? 0 : may_hold(&req, &f) ? refuse_bound(&req, &devices, e) : refusal_write(&req, &f, e);
	} else {
		rc = near ? memory_check(&req, &devices, gpus, v, nodes, named, e) : 0;
	}
	hostset_free(named);
	FREE_NULL_BITMAP(nodes);
	if (rc || !near || !req.asked_memory || !no_memory || req.memory || devices.each ||
	    (job->partition && strchr(job->partition, ',')))
		return rc;
	err_set(e, "--topo-mem=require has no effect: the job requests no memory (--mem, --mem-per-cpu), and its"
		   " partition has no default");
	return 1;
}

int submitted_check(const job_desc_msg_t *job, const struct request *site, struct snapshot_view *v, struct err *e)
{
	job_desc_msg_t read = *job;
	slurm_list_t asked = NULL;
	int rc = glue_devices_submitted(&read, &asked);

	default_gpus(&read, asked);
	rc = rc ? 0 : placement_check(&read, asked, site, v, e);
	FREE_NULL_LIST(asked);
	/* Comments are free text, so such a word is no reason to refuse the job. */
	return rc ? rc : request_comment_unknown(job->comment, e) != 0;
}
