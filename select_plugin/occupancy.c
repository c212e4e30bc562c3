/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "occupancy.h"

#include <search.h>

#include "base/core_set.h"
#include "score/numa_memory.h"

/* The occupancy of one node. */
struct node_use {
	uint32_t cores, offset;
	uint32_t busy_cores;
	uint64_t memory;
	uint64_t *busy;
	uint16_t *uses;		/* by core: jobs may share one */
	uint32_t *core_memory;	/* by core: units (numa_memory.h) of the jobs there */
};

/* What a job held when it was counted: Slurm's own record may have changed since. */
struct part {
	int node;
	bool suspended;		/* has the memory, but not the cores */
	uint64_t memory;
	uint32_t each;		/* units for each core */
	uint64_t *cores;
};

struct held {
	uint32_t job;
	unsigned nparts;
	struct part *parts;
	uint64_t *words;
};

static struct {
	bool known;
	int count;		/* nodes */
	unsigned node_words;	/* of the node with the most */
	struct node_use *nodes;	/* count + 1, the last for its offset */
	uint64_t *words;	/* of all nodes' busy, in their order */
	uint16_t *uses;
	uint32_t *core_memory;
	void *jobs;		/* struct held, by tsearch */
} all;

static int by_job(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	return COMPARE(x->job, y->job);
}

static void held_free(void *user)
{
	struct held *h = user;

	free(h->parts);
	free(h->words);
	free(h);
}

static struct held **held_find(uint32_t job)
{
	return tfind(&(struct held){ .job = job }, &all.jobs, by_job);
}

static void held_count(const struct held *h, bool in)
{
	for (unsigned i = 0; i < h->nparts; i++) {
		const struct part *p = &h->parts[i];
		struct node_use *r = &all.nodes[p->node];

		r->memory += in ? p->memory : -p->memory;
		core_set_each(core, p->cores, core_set_words(r->cores)) {
			r->core_memory[core] += in ? p->each : -p->each;
			if (p->suspended || (in ? r->uses[core]++ : --r->uses[core]))
				continue;
			if (in)
				core_set_add(r->busy, core);
			else
				core_set_remove(r->busy, core);
			r->busy_cores += in ? 1 : -1;
		}
	}
}

/*
 * The core bitmap has only the job's own nodes, each with as many bits as the node had cores when the job started. NULL
 * when memory is short.
 */
static struct held *held_read(const job_record_t *job)
{
	const job_resources_t *r = job->job_resrcs;
	unsigned words = 0, nodes = 0, at = 0, nth = 0;
	struct held *h = calloc(1, sizeof(*h));
	/*
	 * A job that an administrator suspended keeps its memory. One suspended by gang scheduling alternates with
	 * others and keeps everything.
	 */
	bool suspended = !(IS_JOB_RUNNING(job) || (IS_JOB_SUSPENDED(job) && job->priority));

	for (int i = glue_next(r->node_bitmap, 0); i >= 0; i = glue_next(r->node_bitmap, i + 1), nodes++)
		words += core_set_words(all.nodes[i].cores);
	if (!h || !(h->parts = calloc(nodes + 1, sizeof(*h->parts))) ||
	    !(h->words = calloc(words + 1, sizeof(*h->words)))) {
		if (h)
			held_free(h);
		return NULL;
	}
	h->job = job->job_id;
	words = 0;
	for (int i = glue_next(r->node_bitmap, 0); i >= 0; i = glue_next(r->node_bitmap, i + 1), nth++) {
		unsigned cores = all.nodes[i].cores;
		struct part *p = &h->parts[h->nparts];

		if (at + cores > bit_size(r->core_bitmap))
			break;
		*p = (struct part){ .node = i, .cores = h->words + words, .suspended = suspended,
				    .memory = r->memory_allocated ? r->memory_allocated[nth] : 0 };
		words += core_set_words(cores);
		/* A job that was shrunk has no CPUs on the nodes that it left. */
		if (!r->cpus || nth >= r->nhosts || r->cpus[nth]) {
			unsigned have = 0;

			for (unsigned c = 0; c < cores; c++)
				if (bit_test(r->core_bitmap, at + c)) {
					core_set_add(p->cores, c);
					have++;
				}
			p->each = have ? MIN(p->memory * NUMA_MEMORY_UNIT / have, UINT32_MAX / 256) : 0;
			h->nparts++;
		}
		at += cores;
	}
	return h;
}

static void held_drop(uint32_t job)
{
	struct held **found = held_find(job), *h = found ? *found : NULL;

	if (!h)
		return;
	held_count(h, false);
	tdelete(h, &all.jobs, by_job);
	held_free(h);
}

static int held_add(const job_record_t *job)
{
	const job_resources_t *r = job->job_resrcs;
	struct held *h;

	held_drop(job->job_id);
	if (!(IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job)) || !r || !r->node_bitmap || !r->core_bitmap ||
	    bit_size(r->node_bitmap) != all.count)
		return 0;
	if (!(h = held_read(job)))
		return -1;
	if (!tsearch(h, &all.jobs, by_job)) {
		held_free(h);
		return -1;
	}
	held_count(h, true);
	return 0;
}

static void held_clear(void)
{
	tdestroy(all.jobs, held_free);
	free(all.nodes);
	free(all.words);
	free(all.uses);
	free(all.core_memory);
	memset(&all, 0, sizeof(all));
}

void occupancy_forget(void)
{
	all.known = false;
}

void occupancy_add(const job_record_t *job)
{
	if (all.known && held_add(job))
		all.known = false;
}

void occupancy_drop(const job_record_t *job)
{
	if (all.known)
		held_drop(job->job_id);
}

static int nodes_make(void)
{
	uint32_t cores = 0, words = 0;

	all.count = node_record_count;
	if (!(all.nodes = calloc(all.count + 1, sizeof(*all.nodes))))
		return -1;
	for (int i = 0; i < all.count; i++) {
		all.nodes[i] = (struct node_use){ .cores = glue_cores(i), .offset = cores };
		cores += all.nodes[i].cores;
		words += core_set_words(all.nodes[i].cores);
		all.node_words = MAX(all.node_words, core_set_words(all.nodes[i].cores));
	}
	all.nodes[all.count].offset = cores;
	if (!(all.words = calloc(words + 1, sizeof(*all.words))) ||
	    !(all.uses = calloc(cores + 1, sizeof(*all.uses))) ||
	    !(all.core_memory = calloc(cores + 1, sizeof(*all.core_memory))))
		return -1;
	words = 0;
	for (int i = 0; i < all.count; i++) {
		struct node_use *r = &all.nodes[i];

		r->busy = all.words + words;
		r->uses = all.uses + r->offset;
		r->core_memory = all.core_memory + r->offset;
		words += core_set_words(r->cores);
	}
	return 0;
}

/* Slurm's own plugin, too, learns of nodes with other cores by node_init and reconfigure alone. */
int occupancy_sync(void)
{
	slurm_iterator_t it;
	job_record_t *job;
	int rc;

	if (all.known && all.count == node_record_count)
		return 0;
	held_clear();
	rc = nodes_make();
	it = list_iterator_create(job_list);
	while (rc == 0 && (job = list_next(it)))
		rc = held_add(job);
	list_iterator_destroy(it);
	if (rc)
		held_clear();
	all.known = rc == 0;
	return rc;
}

const uint64_t *occupancy_busy(int node)
{
	return all.nodes[node].busy;
}

unsigned occupancy_busy_cores(int node)
{
	return all.nodes[node].busy_cores;
}

uint64_t occupancy_memory(int node)
{
	return all.nodes[node].memory;
}

uint32_t occupancy_offset(int node)
{
	return all.nodes[node].offset;
}

unsigned occupancy_node_words(void)
{
	return all.node_words;
}

size_t occupancy_at(int node)
{
	return all.nodes[node].busy - all.words;
}

static size_t all_words(void)
{
	const struct node_use *last = &all.nodes[all.count - 1];

	return all.count ? last->busy - all.words + core_set_words(last->cores) : 0;
}

/* A copy has the busy cores of all nodes, and after these the memory of all cores. */
static size_t memory_bytes(void)
{
	return all.nodes[all.count].offset * sizeof(*all.core_memory);
}

uint64_t *occupancy_none(void)
{
	return calloc(1, (all_words() + 1) * sizeof(uint64_t) + memory_bytes());
}

const uint32_t *occupancy_core_memory(const uint64_t *copy, int node)
{
	const uint32_t *memory = copy ? (const uint32_t *) (copy + all_words()) : all.core_memory;

	return memory + all.nodes[node].offset;
}

uint64_t *occupancy_copy(void)
{
	uint64_t *copy = occupancy_none();

	if (!copy)
		return NULL;
	memcpy(copy + all_words(), all.core_memory, memory_bytes());
	return memcpy(copy, all.words, all_words() * sizeof(*copy));
}

void occupancy_without(const job_record_t *job, uint64_t *copy)
{
	struct held **found = held_find(job->job_id);

	for (unsigned i = 0; found && i < (*found)->nparts; i++) {
		const struct part *p = &(*found)->parts[i];
		unsigned words = core_set_words(all.nodes[p->node].cores);
		uint32_t *memory = (uint32_t *) occupancy_core_memory(copy, p->node);

		core_set_each(core, p->cores, words)
			memory[core] -= p->each;
		if (!p->suspended)
			core_set_subtract(copy + occupancy_at(p->node), p->cores, words);
	}
}

uint32_t *occupancy_of_partition(const part_record_t *part)
{
	uint32_t *cores = calloc(all.count + 1, sizeof(*cores));
	slurm_iterator_t it = list_iterator_create(job_list);
	struct held **found;
	job_record_t *job;

	while (cores && (job = list_next(it))) {
		found = job->part_ptr == part ? held_find(job->job_id) : NULL;
		for (unsigned i = 0; found && i < (*found)->nparts; i++) {
			const struct part *p = &(*found)->parts[i];

			if (!p->suspended)
				cores[p->node] += core_set_count(p->cores, core_set_words(all.nodes[p->node].cores));
		}
	}
	list_iterator_destroy(it);
	return cores;
}

/* --- exclusions --- */

static void clear_from(const bitstr_t *b, unsigned at, int node, uint64_t *cores)
{
	for (unsigned c = 0, n = glue_cores(node); c < n && at + c < bit_size((bitstr_t *) b); c++)
		if (bit_test((bitstr_t *) b, at + c))
			core_set_remove(cores, c);
}

static void set_but(bitstr_t *b, unsigned at, int node, const uint64_t *keep)
{
	for (unsigned c = 0, n = glue_cores(node); c < n; c++)
		if (!core_set_has(keep, c))
			bit_set(b, at + c);
}

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
void exclusion_apply(const slurm_exclusion_t *x, int node, uint64_t *cores)
{
	if (x && x->exc_cores && x->exc_cores[node])
		clear_from(x->exc_cores[node], 0, node, cores);
}

/* An array of all nodes without any bitmap, of the exclusion freed last: most concern few nodes. */
static bitstr_t **kept;
static int kept_nodes;

slurm_exclusion_t *exclusion_copy(const slurm_exclusion_t *came)
{
	slurm_exclusion_t *x = xmalloc(sizeof(*x));

	if (came)
		*x = *came;
	x->exc_cores = kept && kept_nodes == node_record_count ? kept :
		       xcalloc(node_record_count, sizeof(*x->exc_cores));
	if (x->exc_cores == kept)
		kept = NULL;
	for (int i = 0; came && came->exc_cores && i < node_record_count; i++)
		if (came->exc_cores[i])
			x->exc_cores[i] = bit_copy(came->exc_cores[i]);
	return x;
}

void exclusion_free(slurm_exclusion_t *x)
{
	for (int i = 0; i < node_record_count; i++)
		FREE_NULL_BITMAP(x->exc_cores[i]);
	xfree(kept);
	kept = x->exc_cores;
	kept_nodes = node_record_count;
	xfree(x);
}

void exclusion_keep(slurm_exclusion_t *x, int node, const uint64_t *keep)
{
	if (!x->exc_cores[node])
		x->exc_cores[node] = bit_alloc(glue_cores(node));
	set_but(x->exc_cores[node], 0, node, keep);
}
#else
static bitstr_t **kept;		/* never one */

void exclusion_apply(const slurm_exclusion_t *x, int node, uint64_t *cores)
{
	if (x)
		clear_from(x, occupancy_offset(node), node, cores);
}

slurm_exclusion_t *exclusion_copy(const slurm_exclusion_t *came)
{
	bitstr_t *x = bit_alloc(occupancy_offset(node_record_count));

	if (came)
		bit_or(x, (bitstr_t *) came);
	return x;
}

void exclusion_free(slurm_exclusion_t *x)
{
	FREE_NULL_BITMAP(x);
}

void exclusion_keep(slurm_exclusion_t *x, int node, const uint64_t *keep)
{
	set_but(x, occupancy_offset(node), node, keep);
}
#endif

/* --- shapes --- */

/* The levels that slurmd may report as sockets: packages, or by SlurmdParameters NUMA nodes or L3 caches. */
static const enum level socket_levels[] = { LEVEL_PACKAGE, LEVEL_NUMA, LEVEL_L3 };

enum level node_shape_level(const struct shape *shape, enum level level)
{
	unsigned has = 1u << LEVEL_NODE;

	for (size_t i = 0; shape && i < shape->ndomains; i++)
		has |= 1u << shape->domains[i].level;
	while (shape && !(has & 1u << level))
		level--;
	return level;
}

static bool shape_agrees(const struct shape *shape, const node_record_t *node)
{
	unsigned count[LEVEL_COUNT] = {0};

	/*
	 * Cores are what is chosen: slurm.conf may have fewer threads of each, and a PU may be offline. An uneven
	 * machine is one socket in slurm.conf; a line of CPUs= alone makes each core one.
	 */
	if (shape->cores != node->tot_cores || node->tot_sockets == 1 || node->tot_sockets == node->tot_cores)
		return shape->cores == node->tot_cores;
	for (size_t i = 0; i < shape->ndomains; i++)
		count[shape->domains[i].level]++;
	for (size_t i = 0; i < sizeof(socket_levels) / sizeof(socket_levels[0]); i++)
		if (count[socket_levels[i]] == node->tot_sockets)
			return true;
	return false;
}

const struct shape *node_shape_in(struct snapshot_view *v, const node_record_t *node)
{
	const struct shape *shape = node->name ? snapshot_view_shape(v, node->name) : NULL;
	bool first = shape && node->tot_cores && shape->cores > node->tot_cores;

	for (unsigned c = 0; first && c < shape->cores; c++)
		first = shape->threads[c] == node->threads;
	if (first)
		return snapshot_view_first_cores(v, shape, node->tot_cores);
	return shape && shape_agrees(shape, node) ? shape : NULL;
}

void node_difference_text(const node_record_t *node, const struct shape *of_snapshot, struct buf *out)
{
	if (!of_snapshot)
		buf_printf(out, "node %s is not in the snapshot", node->name);
	else
		buf_printf(out, "node %s has %u socket%s, %u core%s and %u CPU%s in slurm.conf, but %u core%s and"
			   " %u CPU%s in the snapshot", node->name, node->tot_sockets, PLURAL(node->tot_sockets),
			   node->tot_cores, PLURAL(node->tot_cores), node->tot_cores * node->threads,
			   PLURAL(node->tot_cores * node->threads), of_snapshot->cores, PLURAL(of_snapshot->cores),
			   of_snapshot->pus, PLURAL(of_snapshot->pus));
}

/* A node's shape, valid until the snapshot or the node changes: each decision needs it for each node. */
struct shape_entry {
	unsigned long serial;		/* of the view; 0: unknown */
	uint32_t cores, sockets, threads;
	const struct shape *shape;	/* NULL: no shape, or one that disagrees */
};

static struct shape_entry *entries;
static int entry_count;
static struct snapshot_view *view;
static unsigned long serial;

int node_shapes_begin(struct snapshot_view *v)
{
	view = v;
	serial = snapshot_view_serial(v);
	if (entries && entry_count == node_record_count)
		return 0;
	free(entries);
	entry_count = node_record_count;
	return (entries = calloc(entry_count + 1, sizeof(*entries))) ? 0 : -1;
}

const struct shape *node_shape(int node)
{
	const node_record_t *n = node_record_table_ptr[node];
	struct shape_entry now = { serial, n->tot_cores, n->tot_sockets, n->threads, NULL }, *was = &entries[node];

	if (was->serial != now.serial || was->cores != now.cores || was->sockets != now.sockets ||
	    was->threads != now.threads) {
		const struct shape *other = node_shape_of_snapshot(node);

		now.shape = node_shape_in(view, n);
		if (!now.shape && other && snapshot_view_first(view, n->name))
			error("topiary: node %s: the snapshot has %u cores and %u threads, but Slurm has %u"
			      " sockets, %u cores and %u threads a core: jobs are placed on it as without"
			      " Topiary, and those that require a placement do not start on it", n->name,
			      other->cores, other->pus, n->tot_sockets, n->tot_cores, n->threads);
		*was = now;
	}
	return was->shape;
}

const struct shape *node_shape_of_snapshot(int node)
{
	const node_record_t *n = node_record_table_ptr[node];

	return n->name ? snapshot_view_shape(view, n->name) : NULL;
}

void occupancy_end(void)
{
	held_clear();
	xfree(kept);
	free(entries);
	entries = NULL;
	entry_count = 0;
}
