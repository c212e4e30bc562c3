/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "occupancy.h"

#include <search.h>
#include <stdlib.h>

#include "base/core_set.h"
#include "score/numa_memory.h"

/* The occupancy of one node. */
struct room {
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
	struct room *rooms;	/* count + 1, the last for its offset */
	uint64_t *words;	/* of all rooms' busy, in their order */
	uint16_t *uses;
	uint32_t *core_memory;
	void *jobs;		/* struct held, by tsearch */
} all;

static int by_job(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	return (x->job > y->job) - (x->job < y->job);
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

static void room_add(struct room *r, unsigned core, const struct part *p)
{
	r->core_memory[core] += p->each;
	if (p->suspended || r->uses[core]++)
		return;
	core_set_add(r->busy, core);
	r->busy_cores++;
}

static void room_hold(struct room *r, unsigned core, const struct part *p)
{
	r->core_memory[core] -= p->each;
	if (p->suspended || --r->uses[core])
		return;
	core_set_remove(r->busy, core);
	r->busy_cores--;
}

static void held_count(const struct held *h, bool in)
{
	for (unsigned i = 0; i < h->nparts; i++) {
		const struct part *p = &h->parts[i];
		struct room *r = &all.rooms[p->node];

		r->memory += in ? p->memory : -p->memory;
		core_set_each(core, p->cores, core_set_words(r->cores))
			(in ? room_add : room_hold)(r, core, p);
	}
}

/*
 * A job that an administrator suspended keeps its memory. One suspended by gang scheduling alternates with others and
 * keeps everything.
 */
static bool holds_cores(const job_record_t *job)
{
	return IS_JOB_RUNNING(job) || (IS_JOB_SUSPENDED(job) && job->priority);
}

/* The core bitmap has only the job's own nodes, each with as many bits as the node had cores when the job started. */
static void part_read(struct part *p, const job_record_t *job, int nth, unsigned at)
{
	const job_resources_t *r = job->job_resrcs;
	unsigned cores = all.rooms[p->node].cores, have;

	p->memory = r->memory_allocated ? r->memory_allocated[nth] : 0;
	p->suspended = !holds_cores(job);
	for (unsigned c = 0; c < cores; c++)
		if (bit_test(r->core_bitmap, at + c))
			core_set_add(p->cores, c);
	have = core_set_count(p->cores, core_set_words(cores));
	p->each = have ? MIN(p->memory * NUMA_MEMORY_UNIT / have, UINT32_MAX / 256) : 0;
}

static bool is_counted(const job_record_t *job)
{
	const job_resources_t *r = job->job_resrcs;

	return (IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job)) && r && r->node_bitmap && r->core_bitmap &&
	       bit_size(r->node_bitmap) == all.count;
}

/* NULL when memory is short. */
static struct held *held_read(const job_record_t *job)
{
	const job_resources_t *r = job->job_resrcs;
	unsigned words = 0, nodes = 0, at = 0, nth = 0;
	struct held *h = calloc(1, sizeof(*h));

	for (int i = glue_next(r->node_bitmap, 0); i >= 0; i = glue_next(r->node_bitmap, i + 1), nodes++)
		words += core_set_words(all.rooms[i].cores);
	if (!h || !(h->parts = calloc(nodes + 1, sizeof(*h->parts))) ||
	    !(h->words = calloc(words + 1, sizeof(*h->words)))) {
		if (h)
			held_free(h);
		return NULL;
	}
	h->job = job->job_id;
	words = 0;
	for (int i = glue_next(r->node_bitmap, 0); i >= 0; i = glue_next(r->node_bitmap, i + 1), nth++) {
		unsigned cores = all.rooms[i].cores;
		struct part *p = &h->parts[h->nparts];

		if (at + cores > bit_size(r->core_bitmap))
			break;
		*p = (struct part){ .node = i, .cores = h->words + words };
		words += core_set_words(cores);
		/* A job that was shrunk has no CPUs on the nodes that it left. */
		if (!r->cpus || nth >= r->nhosts || r->cpus[nth]) {
			part_read(p, job, nth, at);
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
	struct held *h;

	held_drop(job->job_id);
	if (!is_counted(job))
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
	free(all.rooms);
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

static int rooms_make(void)
{
	uint32_t cores = 0, words = 0;

	all.count = node_record_count;
	if (!(all.rooms = calloc(all.count + 1, sizeof(*all.rooms))))
		return -1;
	for (int i = 0; i < all.count; i++) {
		all.rooms[i] = (struct room){ .cores = glue_cores(i), .offset = cores };
		cores += all.rooms[i].cores;
		words += core_set_words(all.rooms[i].cores);
		all.node_words = MAX(all.node_words, core_set_words(all.rooms[i].cores));
	}
	all.rooms[all.count].offset = cores;
	if (!(all.words = calloc(words + 1, sizeof(*all.words))) ||
	    !(all.uses = calloc(cores + 1, sizeof(*all.uses))) ||
	    !(all.core_memory = calloc(cores + 1, sizeof(*all.core_memory))))
		return -1;
	words = 0;
	for (int i = 0; i < all.count; i++) {
		struct room *r = &all.rooms[i];

		r->busy = all.words + words;
		r->uses = all.uses + r->offset;
		r->core_memory = all.core_memory + r->offset;
		words += core_set_words(r->cores);
	}
	return 0;
}

static int read_jobs(void)
{
	slurm_iterator_t it = list_iterator_create(job_list);
	job_record_t *job;
	int rc = 0;

	while (rc == 0 && (job = list_next(it)))
		rc = held_add(job);
	list_iterator_destroy(it);
	return rc;
}

/* Slurm's own plugin, too, learns of nodes with other cores by node_init and reconfigure alone. */
int occupancy_sync(void)
{
	if (all.known && all.count == node_record_count)
		return 0;
	held_clear();
	if (rooms_make() || read_jobs()) {
		held_clear();
		return -1;
	}
	all.known = true;
	return 0;
}

const uint64_t *occupancy_busy(int node)
{
	return all.rooms[node].busy;
}

unsigned occupancy_busy_cores(int node)
{
	return all.rooms[node].busy_cores;
}

uint64_t occupancy_memory(int node)
{
	return all.rooms[node].memory;
}

uint32_t occupancy_offset(int node)
{
	return all.rooms[node].offset;
}

unsigned occupancy_node_words(void)
{
	return all.node_words;
}

size_t occupancy_at(int node)
{
	return all.rooms[node].busy - all.words;
}

static size_t all_words(void)
{
	const struct room *last = &all.rooms[all.count - 1];

	return all.count ? last->busy - all.words + core_set_words(last->cores) : 0;
}

/* A copy has the busy cores of all nodes, and after these the memory of all cores. */
static size_t memory_bytes(void)
{
	return all.rooms[all.count].offset * sizeof(*all.core_memory);
}

uint64_t *occupancy_none(void)
{
	return calloc(1, (all_words() + 1) * sizeof(uint64_t) + memory_bytes());
}

const uint32_t *occupancy_core_memory(const uint64_t *copy, int node)
{
	const uint32_t *memory = copy ? (const uint32_t *) (copy + all_words()) : all.core_memory;

	return memory + all.rooms[node].offset;
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
		unsigned words = core_set_words(all.rooms[p->node].cores);
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
				cores[p->node] += core_set_count(p->cores, core_set_words(all.rooms[p->node].cores));
		}
	}
	list_iterator_destroy(it);
	return cores;
}

void occupancy_end(void)
{
	held_clear();
}
