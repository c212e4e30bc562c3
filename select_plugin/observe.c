/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * Notes. slurmctld calls with its job and node locks held, so that one call is here at a time; `decided` needs no lock
 * of its own. Lines for the file are in `writer`, under its mutex: slurmctld never waits for a file. The thread takes
 * them every WRITE_SECONDS and appends them, unlocked.
 */
#include "observe.h"

#include <pthread.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "occupancy.h"
#include "plan.h"

#define FILE_BYTES (16u << 20)	/* then it becomes FILE.1, in the place of the one before */
#define QUEUE_BYTES (1u << 20)	/* lines that wait for a file system; others are dropped, and counted */
#define WRITE_SECONDS 2

/* What Slurm's plugin was asked last; job NULL: nothing. */
static struct {
	const job_record_t *job;
	struct job_request req;
	const char *why;
	bitstr_t *offered;
	slurm_exclusion_t *excluded;	/* NULL: nothing */
} decided;

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	pthread_t thread;
	bool running, stop;
	char *path, *old;
	struct buf lines;
	unsigned dropped;
} writer = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static bool spare_gpus;
static unsigned share, passed;		/* percent; starts that were not compared since the last line */
static uint64_t spent, cpu_before;	/* ns: by comparisons, and by the process before the first */

/* --- the file --- */

static int file_open(void)
{
	return open(writer.path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0640);
}

static void lines_append(const struct buf *lines, unsigned dropped)
{
	static int reported;
	struct stat st;
	int fd = file_open(), rc = 0;

	if (fd < 0 || fstat(fd, &st) || (!S_ISREG(st.st_mode) && (errno = EINVAL)) ||
	    file_write(fd, lines->data, lines->len))
		rc = errno;
	else if ((uint64_t) st.st_size + lines->len > FILE_BYTES && rename(writer.path, writer.old))
		rc = errno;
	if (fd >= 0)
		close(fd);
	if (rc && rc != reported)
		error("topiary: ObserveFile=%s: %s: comparisons are not kept until it can be written", writer.path,
		      strerror(rc));
	if (dropped)
		error("topiary: ObserveFile=%s: %u comparison%s dropped, because the file system is too slow",
		      writer.path, dropped, PLURAL(dropped));
	reported = rc;
}

static void *write_thread(void *unused)
{
	bool stop = false;

	while (!stop) {
		double until = clock_now() + WRITE_SECONDS;
		struct buf lines;
		unsigned dropped;

		pthread_mutex_lock(&writer.mutex);
		while (!writer.stop && clock_wait(&writer.wake, &writer.mutex, until) != ETIMEDOUT)
			;
		stop = writer.stop;
		lines = writer.lines;
		dropped = writer.dropped;
		writer.lines = (struct buf){0};
		writer.dropped = 0;
		pthread_mutex_unlock(&writer.mutex);
		if (lines.len && !lines.failed)
			lines_append(&lines, dropped);
		buf_free(&lines);
	}
	return unused;
}

int observe_start(const struct settings *s, struct err *e)
{
	pthread_condattr_t monotonic;
	struct stat st;
	int rc, fd;

	writer.path = xstrdup(s->observe_file);
	writer.old = xstrdup_printf("%s.1", s->observe_file);
	writer.stop = false;
	spare_gpus = !strcasecmp(s->topo_gpu_cores, "spare");
	share = s->observe_share;
	spent = passed = 0;
	cpu_before = clock_nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
	if ((fd = file_open()) < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		err_set(e, "ObserveFile=%s: %s: set it to a file that slurmctld's user can write", s->observe_file,
			fd < 0 ? strerror(errno) : "not a regular file");
		if (fd >= 0)
			close(fd);
		return -1;
	}
	close(fd);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&writer.wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if ((rc = pthread_create(&writer.thread, NULL, write_thread, NULL)))
		return err_set(e, "ObserveFile=%s: no thread to write it: %s", s->observe_file, strerror(rc));
	writer.running = true;
	return 0;
}

static void decided_forget(void)
{
	if (decided.excluded)
		exclusion_free(decided.excluded);
	decided.excluded = NULL;
	decided.job = NULL;
}

void observe_stop(void)
{
	decided_forget();
	FREE_NULL_BITMAP(decided.offered);
	if (writer.running) {
		pthread_mutex_lock(&writer.mutex);
		writer.stop = true;
		pthread_cond_signal(&writer.wake);
		pthread_mutex_unlock(&writer.mutex);
		pthread_join(writer.thread, NULL);
		pthread_cond_destroy(&writer.wake);
	}
	writer.running = false;
	xfree(writer.path);
	xfree(writer.old);
}

/* --- a comparison --- */

static const enum level levels[] = { LEVEL_PACKAGE, LEVEL_NUMA, LEVEL_L3 };
#define LEVELS (sizeof(levels) / sizeof(levels[0]))

/* A choice of nodes and cores, counted. */
struct placement {
	unsigned nodes, cores, touched[LEVELS], opened[LEVELS], opened_nodes;
	int first;
};

/* -1: the node has no shape, or the allowance of costs is used up. */
static int placement_add(struct placement *p, int node, const uint64_t *cores)
{
	const struct shape *shape = node_shape(node);
	unsigned words = core_set_words(glue_cores(node));
	struct score_need need = { .cores = core_set_count(cores, words), .task_cores = 1, .fit = FIT_PREFER };
	const uint64_t *busy = occupancy_busy(node);
	const struct score_cost *cost;
	struct node_fit *fit;

	/* Of these cores alone, all of which are needed: what they are on. */
	if (!shape || !(cost = fit_cost(&candidates_cache, shape, cores, &need, &fit)))
		return -1;
	for (size_t l = 0; l < LEVELS; l++)
		p->touched[l] += score_count(cost, SCORE_TOUCHED, levels[l]);
	for (size_t i = 0; i < shape->ndomains; i++) {
		const struct shape_domain *d = &shape->domains[i];
		bool has = false, was_idle = true;

		for (unsigned c = d->first; c < d->first + d->cores; c++) {
			has |= core_set_has(cores, c);
			was_idle &= !core_set_has(busy, c);
		}
		for (size_t l = 0; has && was_idle && l < LEVELS; l++)
			p->opened[l] += d->level == levels[l];
	}
	p->opened_nodes += !occupancy_busy_cores(node);
	p->first = p->nodes++ ? p->first : node;
	p->cores += need.cores;
	return 0;
}

/* NULL: the choice could be made; else why the job would be left to Slurm. */
static const char *choose(struct plan *p, struct candidate_set *s)
{
	bool made;

	while (!(made = plan_make(p, s) && p->choice.count) && job_request_relax(s->req)) {
		plan_end(p);
		s->need = (struct candidate_tasks){0};
	}
	if (!made)
		return s->budget.refused || candidates_cache.refused ? "the search was cut short" : NO_PLACEMENT;
	/* There Slurm chooses the nodes, unless those of one leaf are as near together: the cores on its nodes. */
	if (plan_slurm_picks_nodes(s) && (s->req->share[1].nodes || !plan_in_leaf(p, s))) {
		plan_end(p);
		return plan_given(p, s) ? NULL : NO_PLACEMENT;
	}
	return NULL;
}

static void placement_write(const char *name, const unsigned *slurm, const unsigned *topiary, struct buf *out)
{
	buf_printf(out, " %s=%u,%u,%u/%u,%u,%u", name, slurm[0], slurm[1], slurm[2], topiary[0], topiary[1],
		   topiary[2]);
}

static void line_add(const job_record_t *job, const struct placement *slurm, const struct placement *topiary,
		     const char *outcome, const char *why)
{
	struct buf line = {0};
	const char *partition = job->part_ptr && job->part_ptr->name ? job->part_ptr->name : "-";

	buf_printf(&line, "observed=1 time=%lld job=%u partition=%s nodes=%u cores=%u outcome=%s",
		   (long long) time(NULL), job->job_id, strpbrk(partition, " \t\r\n") ? "?" : partition, slurm->nodes,
		   slurm->cores, outcome);
	if (slurm->nodes)
		buf_printf(&line, " slurm=%s", node_record_table_ptr[slurm->first]->name);
	if (why)
		buf_puts(&line, " why=");
	for (; why && *why; why++)
		buf_add(&line, *why == ' ' ? "_" : why, 1);
	if (topiary) {
		buf_printf(&line, " topiary=%s", node_record_table_ptr[topiary->first]->name);
		placement_write("touched", slurm->touched, topiary->touched, &line);
		placement_write("opened", slurm->opened, topiary->opened, &line);
		buf_printf(&line, " opened_nodes=%u/%u", slurm->opened_nodes, topiary->opened_nodes);
	}
	buf_printf(&line, " passed=%u\n", passed);
	pthread_mutex_lock(&writer.mutex);
	if (line.failed || writer.lines.len + line.len > QUEUE_BYTES) {
		writer.dropped++;
	} else {
		buf_add(&writer.lines, line.data, line.len);
		passed = 0;
	}
	pthread_mutex_unlock(&writer.mutex);
	buf_free(&line);
}

static void compare(job_record_t *job, struct snapshot_view *v)
{
	const job_resources_t *r = job->job_resrcs;
	struct candidate_set s = { .job = job, .req = &decided.req, .nodes = decided.offered,
				   .excluded = decided.excluded, .starts = true, .spare_gpus = spare_gpus };
	struct placement slurm = {0}, topiary = {0};
	const char *why = decided.why;
	unsigned words, at = 0, nth = 0;
	uint64_t *got = NULL;
	struct plan p = {0};
	bool ready, same = true, known = true;

	fit_cache_begin(&candidates_cache, snapshot_view_serial(v));
	if (occupancy_sync() || node_shapes_begin(v))
		return;
	occupancy_drop(job);	/* read with all others, it has its cores already */
	words = occupancy_node_words();
	ready = !candidates_begin(&s) && (got = calloc(bit_set_count(r->node_bitmap) * words + 1, sizeof(*got)));
	for (int i = glue_next(r->node_bitmap, 0); ready && i >= 0; i = glue_next(r->node_bitmap, i + 1), nth++) {
		for (unsigned c = 0; c < glue_cores(i) && at + c < bit_size(r->core_bitmap); c++)
			if (bit_test(r->core_bitmap, at + c))
				core_set_add(got + nth * words, c);
		at += glue_cores(i);
		known &= !placement_add(&slurm, i, got + nth * words);
	}
	if (ready && !why)
		why = known ? choose(&p, &s) : "its nodes are not in the snapshot, or different there";
	for (unsigned i = 0; ready && !why && i < p.choice.count; i++) {
		const struct candidate_node *c = &p.choice.list[i];
		const uint64_t *cores = candidate_cores(&s, c);

		if (!cores || placement_add(&topiary, c->node, cores)) {
			why = "the search was cut short";
			break;
		}
		same &= bit_test(r->node_bitmap, c->node) &&
			!memcmp(cores, got + bit_set_count_range(r->node_bitmap, 0, c->node) * words,
				core_set_words(glue_cores(c->node)) * sizeof(*cores));
	}
	if (!ready)
		why = "slurmctld is out of memory";
	same &= topiary.nodes == slurm.nodes;
	line_add(job, &slurm, why ? NULL : &topiary, !why ? same ? "same" : "other" :
		 job_request_waits(&decided.req) && !strcmp(why, NO_PLACEMENT) ? "waits" : "left", why);
	plan_end(&p);
	candidates_end(&s);
	free(got);
}

void observe_decided(const job_record_t *job, const struct job_request *req, const char *why, const bitstr_t *offered,
		     const slurm_exclusion_t *excluded)
{
	if (!writer.running)
		return;
	decided_forget();
	if (!decided.offered || bit_size(decided.offered) != bit_size((bitstr_t *) offered)) {
		FREE_NULL_BITMAP(decided.offered);
		decided.offered = bit_copy((bitstr_t *) offered);
	} else {
		bit_copybits(decided.offered, (bitstr_t *) offered);
	}
	decided.job = job;
	decided.req = *req;
	decided.why = why;
	if (!glue_excludes_cores(excluded))
		return;
	if (occupancy_sync())
		decided.job = NULL;
	else
		decided.excluded = exclusion_copy(excluded);
}

void observe_starting(job_record_t *job)
{
	const job_resources_t *r = job->job_resrcs;
	struct snapshot_view *v;
	uint64_t began;

	if (!writer.running || decided.job != job || !r || !r->node_bitmap || !r->core_bitmap ||
	    bit_size(r->node_bitmap) != node_record_count || bit_size(decided.offered) != node_record_count) {
		decided_forget();
		return;
	}
	v = snapshot_view_get();
	if (!v || spent / share * 100 > clock_nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_before) {
		passed++;
	} else {
		began = clock_nanoseconds(CLOCK_THREAD_CPUTIME_ID);
		compare(job, v);
		spent += clock_nanoseconds(CLOCK_THREAD_CPUTIME_ID) - began;
	}
	snapshot_view_release(v);
	decided_forget();
}
