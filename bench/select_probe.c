/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * Preloaded into a real slurmctld of its own: asks two select plugins the same questions about the same jobs and nodes,
 * one after the other, and tells how long each took. Ours stands before Slurm's in PluginDir as ever; both are called
 * by their own handles, so that both see the one state that Slurm's keeps. Jobs are records that slurmctld made from
 * real submissions; they are started and ended here, as select_nodes() and deallocate_nodes() of slurmctld do but for
 * all that talks to a node.
 *
 * Driven through two FIFOs, a line each way:
 *	begin SEED		hold all locks for good; nodes are idle; answers "NODES CORES"
 *	fill PERCENT		start and end jobs until so much is allocated; answers "JOBS CORES"
 *	time MODE NAME COUNT MS	ask COUNT times, or for MS milliseconds, with a job ended and another started before
 *				each, MODE: a number of Slurm's; answers "RC-OURS RC-STOCK NOW-OURS NOW-STOCK
 *				NS-OURS NS-STOCK CPU-OURS CPU-STOCK" a line, then "done"
 */
#include "../select_plugin/steer.h"

#include "base/std.h"
#include "src/slurmctld/locks.h"
#include "src/slurmctld/node_scheduler.h"

#include <dlfcn.h>
#include <pthread.h>

#define KINDS_MAX 32
#define DAY 86400
#define LEAST 10		/* decisions, however long they take */

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
#define ARRAY_SPLIT(job) job_array_split(job, true)
#else
#define ARRAY_SPLIT(job) job_array_split(job)
#endif
/* Since 23.11 an exclusion of nothing is no NULL. */
#define EXCLUDES_NOTHING (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0) ? &(slurm_exclusion_t){0} : NULL)

typedef int (*job_call_t)(job_record_t *);

struct plugin {
	slurm_job_test_t test;
	job_call_t set, fini;
};

/* What is submitted: an array held, whose tasks are split off one by one; those that ended wait for their next turn. */
struct kind {
	job_record_t *meta;
	unsigned nodes, cores;		/* cores on each node */
	job_record_t **idle;
	size_t nidle, room;
};

struct running {
	job_record_t *job;
	struct kind *kind;
};

static struct plugin ours, stock;
static struct kind kinds[KINDS_MAX];
static size_t nkinds;
static struct running *running;
static size_t nrunning, running_room;
static unsigned *used;			/* cores of each node */
static unsigned long total, allocated;
static uint64_t chance_state;
static FILE *answer;

static uint64_t chance(uint64_t below)
{
	/* xorshift64* (Vigna 2016) */
	chance_state ^= chance_state >> 12;
	chance_state ^= chance_state << 25;
	chance_state ^= chance_state >> 27;
	return (chance_state * 2685821657736338717u >> 11) % below;
}

static void *grown(void *array, size_t count, size_t *room, size_t size)
{
	if (count < *room)
		return array;
	*room = *room ? 2 * *room : 64;
	return realloc(array, *room * size);
}

static int plugin_find(struct plugin *p, const char *path)
{
	void *handle = path ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;

	if (!handle)
		return -1;
	p->test = (slurm_job_test_t) dlsym(handle, "select_p_job_test");
	p->set = (job_call_t) dlsym(handle, "select_p_select_nodeinfo_set");
	p->fini = (job_call_t) dlsym(handle, "select_p_job_fini");
	return p->test && p->set && p->fini ? 0 : -1;
}

/* --- jobs */

static int add_kind(void *x, void *arg)
{
	job_record_t *job = x;
	struct kind k = { .meta = job };

	(void) arg;
	if (nkinds < KINDS_MAX && job->array_recs && sscanf(job->name, "fill-%ux%u", &k.nodes, &k.cores) == 2)
		kinds[nkinds++] = k;
	return 0;
}

static job_record_t *job_of(struct kind *k)
{
	job_record_t *job = k->meta;

	if (k->nidle)
		return k->idle[--k->nidle];
	if (job->array_recs->task_cnt < 3)
		return NULL;
	job->array_task_id = bit_ffs(job->array_recs->task_id_bitmap);
	k->meta = ARRAY_SPLIT(job);
	return job;
}

static void job_rest(struct kind *k, job_record_t *job)
{
	k->idle = grown(k->idle, k->nidle, &k->room, sizeof(*k->idle));
	k->idle[k->nidle++] = job;
}

static int ask(const struct plugin *p, job_record_t *job, bitstr_t *nodes, uint16_t mode)
{
	uint32_t min_nodes, max_nodes, req_nodes;
	slurm_list_t preempted = NULL;
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
	will_run_data_t *will_run = NULL;
#endif
	int rc;

	job->start_time = 0;
	job->best_switch = true;
	get_node_cnts(job, 0, job->part_ptr, &min_nodes, &req_nodes, &max_nodes);
	rc = p->test(job, nodes, min_nodes, max_nodes, req_nodes, mode, NULL, &preempted, EXCLUDES_NOTHING
		     WILL_RUN_ARG);
	FREE_NULL_LIST(preempted);
	return rc;
}

static void count_cores(const job_record_t *job, int by)
{
	const job_resources_t *r = job->job_resrcs;
	unsigned at = 0;

	for (int i = bit_ffs(r->node_bitmap), n = 0; i >= 0 && (unsigned) n < r->nhosts; i++) {
		unsigned cores;

		if (!bit_test(r->node_bitmap, i))
			continue;
		cores = bit_set_count_range(r->core_bitmap, at, at + node_record_table_ptr[i]->tot_cores);
		at += node_record_table_ptr[i]->tot_cores;
		used[i] += by * (int) cores;
		allocated += by * (long) cores;
		n++;
	}
}

/* As select_nodes() of slurmctld. */
static bool job_start(struct kind *k, bitstr_t *nodes)
{
	job_record_t *job = job_of(k);
	time_t now = time(NULL);

	if (!job)
		return false;
	if (ask(&ours, job, nodes, SELECT_MODE_RUN_NOW) != SLURM_SUCCESS) {
		job_rest(k, job);
		return false;
	}
	job->node_bitmap = bit_copy(nodes);
	job->start_time = now - chance(DAY);
	job->end_time = now + 60 + chance(DAY);
	xfree(job->nodes);
	job->nodes = xstrdup(job->job_resrcs->nodes);
	job->node_cnt = bit_set_count(nodes);
	job->job_state = JOB_RUNNING;
	ours.set(job);
	last_job_update = now;
	count_cores(job, 1);
	running = grown(running, nrunning, &running_room, sizeof(*running));
	running[nrunning++] = (struct running){ job, k };
	return true;
}

static struct kind *job_end(size_t i, bitstr_t *freed)
{
	job_record_t *job = running[i].job;
	struct kind *k = running[i].kind;

	count_cores(job, -1);
	job->job_state = JOB_COMPLETE;
	ours.fini(job);
	last_job_update = time(NULL);
	if (freed)
		bit_or(freed, job->node_bitmap);
	FREE_NULL_BITMAP(job->node_bitmap);
	job->job_state = JOB_PENDING;
	running[i] = running[--nrunning];
	job_rest(k, job);
	return k;
}

/* --- load */

static unsigned *shuffled(unsigned count)
{
	unsigned *order = calloc(count, sizeof(*order));

	for (unsigned i = 0, j; i < count; i++) {
		j = chance(i + 1);
		order[i] = order[j];
		order[j] = i;
	}
	return order;
}

static unsigned node_cores(unsigned i)
{
	return node_record_table_ptr[i]->tot_cores;
}

static bool start_at(const unsigned *order, unsigned at, unsigned percent, struct kind *k)
{
	bitstr_t *nodes = bit_alloc(node_record_count);
	unsigned found = 0;
	bool good;

	for (unsigned i = 0; found < k->nodes && i < 64 && i < (unsigned) node_record_count; i++) {
		unsigned node = order[(at + i) % node_record_count];
		/* Up to 10 percent of a node's cores more or less, ever the same for a node. */
		int share = (int) percent - 10 + (int) ((node * 2654435761u >> 16) % 21);

		if (share > 0 && (used[node] + k->cores) * 100 <= node_cores(node) * MIN(share, 100) && ++found)
			bit_set(nodes, node);
		else if (!i)
			break;
	}
	good = found == k->nodes && job_start(k, nodes);
	FREE_NULL_BITMAP(nodes);
	return good;
}

static void fill(unsigned percent)
{
	unsigned *order = shuffled(node_record_count);

	while (nrunning && allocated * 100 > total * percent)
		job_end(chance(nrunning), NULL);
	for (int i = 0; i < node_record_count; i++)
		for (unsigned failed = 0; failed < 12 && allocated * 100 < total * percent;)
			failed += !start_at(order, i, percent, &kinds[chance(nkinds)]);
	free(order);
	fprintf(answer, "%zu %lu\n", nrunning, allocated);
}

/* One job ends and one of its kind starts there or nearby: what a busy cluster does between two decisions. */
static void change(void)
{
	bitstr_t *nodes = bit_alloc(node_record_count);
	struct kind *k;

	if (nrunning) {
		k = job_end(chance(nrunning), nodes);
		for (int i = 0; i < 8; i++)
			bit_set(nodes, chance(node_record_count));
		job_start(k, nodes);
	}
	FREE_NULL_BITMAP(nodes);
}

/* --- time */

struct told {
	int rc;
	bool now;
	uint64_t wall, cpu;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

static struct told ask_timed(const struct plugin *p, job_record_t *job, const bitstr_t *all, uint16_t mode)
{
	bitstr_t *nodes = bit_copy((bitstr_t *) all);
	struct told t;
	uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID), wall = clock_ns(CLOCK_MONOTONIC);

	t.rc = ask(p, job, nodes, mode);
	t.wall = clock_ns(CLOCK_MONOTONIC) - wall;
	t.cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	t.now = t.rc == SLURM_SUCCESS && job->start_time <= time(NULL);
	FREE_NULL_BITMAP(nodes);
	return t;
}

static int find_by_name(void *x, void *key)
{
	job_record_t *job = x;

	return IS_JOB_PENDING(job) && !xstrcmp(job->name, key);
}

static void time_both(uint16_t mode, const char *name, unsigned count, unsigned ms)
{
	job_record_t *job = list_find_first(job_list, find_by_name, (void *) name);
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + ms * UINT64_C(1000000);
	bitstr_t *all = bit_alloc(node_record_count);
	struct told told[2], *a = &told[0], *b = &told[1];

	if (!job)
		fprintf(answer, "no job named %s\n", name);
	bit_nset(all, 0, node_record_count - 1);
	for (unsigned i = 0; job && i < count && (i < LEAST || clock_ns(CLOCK_MONOTONIC) < end); i++) {
		change();
		for (int turn = 0; turn < 2; turn++) {
			bool is_ours = (i + turn) % 2;

			told[is_ours] = ask_timed(is_ours ? &ours : &stock, job, all, mode);
		}
		fprintf(answer, "%d %d %d %d %lu %lu %lu %lu\n", b->rc, a->rc, b->now, a->now, b->wall, a->wall,
			b->cpu, a->cpu);
	}
	FREE_NULL_BITMAP(all);
	fprintf(answer, "done\n");
}

/* --- the thread */

static void begin(uint64_t seed)
{
	slurmctld_lock_t all = { .conf = WRITE_LOCK, .job = WRITE_LOCK, .node = WRITE_LOCK, .part = WRITE_LOCK,
				 .fed = WRITE_LOCK };

	lock_slurmctld(all);
	chance_state = seed * 2 + 1;
	used = calloc(node_record_count, sizeof(*used));
	for (int i = 0; i < node_record_count; i++) {
		node_record_table_ptr[i]->node_state = NODE_STATE_IDLE;
		make_node_idle(node_record_table_ptr[i], NULL);
		total += node_cores(i);
	}
	list_for_each(job_list, add_kind, NULL);
	fprintf(answer, "%d %lu\n", node_record_count, total);
}

static void obey(const char *line)
{
	unsigned long seed;
	unsigned percent, count, ms;
	uint16_t mode;
	char name[64];

	if (sscanf(line, "begin %lu", &seed) == 1)
		begin(seed);
	else if (sscanf(line, "fill %u", &percent) == 1)
		fill(percent);
	else if (sscanf(line, "time %" SCNu16 " %63s %u %u", &mode, name, &count, &ms) == 4)
		time_both(mode, name, count, ms);
	else
		fprintf(answer, "not understood: %s\n", line);
	fflush(answer);
}

static void *serve(void *folder)
{
	char path[4096], line[256];
	FILE *orders;

	snprintf(path, sizeof(path), "%s/orders", (char *) folder);
	orders = fopen(path, "r");
	snprintf(path, sizeof(path), "%s/answers", (char *) folder);
	answer = fopen(path, "w");
	if (!orders || !answer)
		return NULL;
	if (plugin_find(&stock, getenv("PROBE_STOCK")))
		fprintf(answer, "Slurm's plugin is not loaded\n");
	else if (plugin_find(&ours, getenv("PROBE_OURS")))
		fprintf(answer, "our plugin is not loaded\n");
	else
		fprintf(answer, "ready\n");
	fflush(answer);
	while (fgets(line, sizeof(line), orders))
		obey(line);
	return NULL;
}

__attribute__((constructor)) static void probe_start(void)
{
	char *folder = getenv("PROBE_FOLDER");
	pthread_t thread;

	/* None of slurmctld's children is to have this. */
	unsetenv("LD_PRELOAD");
	if (folder && !pthread_create(&thread, NULL, serve, strdup(folder)))
		pthread_detach(thread);
	unsetenv("PROBE_FOLDER");
}
