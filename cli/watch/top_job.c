/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "top_job.h"

#include <signal.h>
#include <sysexits.h>

#include "base/log.h"
#include "doctor/doctor.h"
#include "shape/hostlist.h"

#define STEP_NAME "topiary-top"	/* of the readers' step: not shown itself */
#define STEPS_MAX 32u		/* of a job, the newest */
#define LOOK_SECONDS 2u

/* --- what Slurm knows */

struct step {
	char id[32];		/* "7.0" */
	uint32_t number;	/* plus 1; 0: the batch script, or a shell of salloc */
	char *nodes;
};

struct steps {
	struct step list[STEPS_MAX];
	unsigned n;
};

static void steps_free(struct steps *s)
{
	for (unsigned i = 0; i < s->n; i++)
		free(s->list[i].nodes);
	s->n = 0;
}

/* squeue's lines without a headline. It fails, too, where there is no such job or node. */
static int squeue(struct top_job *j, struct buf *out, struct err *e, const char *format, const char *about,
		  const char *value, const char *more)
{
	const char *const argv[] = { "squeue", "-h", "-a", "-o", format, about, value, more, NULL };
	int rc = doctor_run(argv, out, e);

	j->silent |= rc && !strcasestr(e->text, "invalid");
	return rc;
}

/* Those that run; Slurm's own step for processes of elsewhere, and ours, have nothing to show. */
static int steps_of(struct top_job *j, const char *job, struct steps *s, struct err *e)
{
	struct buf text = {0};
	char *rest, *line;
	int rc = squeue(j, &text, e, "%i %N %j", "-j", job, "-s");

	s->n = 0;
	for (rest = text.data; rc == 0 && (line = strsep(&rest, "\n"));) {
		char *id = strsep(&line, " "), *nodes = strsep(&line, " ");

		if (line && strchr(id, '.') && isdigit((unsigned char) *id) && !strstr(id, ".extern") &&
		    !strchr(id, '+') && strcmp(line, STEP_NAME)) {
			/* The newest first, so that of two that could be shown it is the one. */
			const char *name = strchr(id, '.') + 1;
			struct step new = {0};
			unsigned at = s->n;

			if (isdigit((unsigned char) *name))
				new.number = strtoul(name, NULL, 10) + 1;
			if (s->n == STEPS_MAX)	/* of so many at a time the oldest is not looked for */
				free(s->list[--at].nodes);
			else
				s->n++;
			snprintf(new.id, sizeof(new.id), "%s", id);
			new.nodes = strdup(nodes);
			for (; at && s->list[at - 1].number < new.number; at--)
				s->list[at] = s->list[at - 1];
			s->list[at] = new;
		}
	}
	buf_free(&text);
	return rc;
}

/* --- what is to be shown */

static void feed_add(struct buf *feed, const char *name, const struct steps *s)
{
	buf_printf(feed, "%s%s=", feed->len ? "/" : "", name);
	for (unsigned i = 0; i < s->n; i++)
		buf_printf(feed, "%s%s", i ? "," : "", s->list[i].id);
}

static int feed_set(struct top_job *j, struct buf *feed, const char *nodes, unsigned names, struct err *e)
{
	struct hostset *set = hostset_parse(nodes, e);

	if (!set)
		return -1;
	free(j->nodes);
	free(j->feed);
	j->nodes = strdup(nodes);
	j->feed = feed->data;
	j->expected = names * hostset_names(set);
	*feed = (struct buf){0};
	hostset_free(set);
	return j->nodes && j->feed ? 0 : err_set(e, "out of memory");
}

static int find_job(struct top_job *j, struct err *e)
{
	size_t n = strcspn(j->what, ".");
	struct buf text = {0}, feed = {0};
	struct steps steps = {0}, one = { .n = 1 };
	char job[32], id[sizeof(j->id) + sizeof(j->step) + 1], *rest, *nodes;
	int rc;

	snprintf(job, sizeof(job), "%.*s", (int) n, j->what);
	snprintf(j->step, sizeof(j->step), "%s", j->what[n] ? j->what + n + 1 : "");
	j->follows = !*j->step;
	if (squeue(j, &text, e, "%A %T %N", "-j", job, NULL)) {
		buf_free(&text);
		return err_within(e, "job %s", job);
	}
	rest = text.len ? text.data : NULL;
	snprintf(j->id, sizeof(j->id), "%s", rest ? strsep(&rest, " ") : "");
	snprintf(j->state, sizeof(j->state), "%s", rest ? strsep(&rest, " ") : "");
	nodes = rest ? strsep(&rest, "\n") : NULL;
	if (!nodes)
		rc = err_set(e, "job %s has ended", job);
	else if (rest && *rest)
		rc = err_set(e, "job %s is several; name one, as squeue has it", job);
	else if (strcmp(j->state, "RUNNING"))
		rc = err_set(e, "job %s does not run: %s", job, j->state);
	else if ((rc = steps_of(j, j->id, &steps, e)) == 0 && !steps.n)
		rc = err_set(e, "job %s has no step that runs", job);
	snprintf(id, sizeof(id), "%s.%s", j->id, j->step);
	for (unsigned i = 0; rc == 0 && *j->step && i < steps.n; i++)
		if (!strcmp(steps.list[i].id, id)) {
			one.list[0] = steps.list[i];
			nodes = one.list[0].nodes;
		}
	if (rc == 0 && *j->step && !one.list[0].nodes)
		rc = err_set(e, "step %s does not run", id);
	if (rc == 0) {
		feed_add(&feed, "", *j->step ? &one : &steps);
		rc = feed_set(j, &feed, nodes, 1, e);
		buf_free(&feed);
	}
	if (rc == 0) {
		j->newest = steps.list[0].number;
		snprintf(j->name, sizeof(j->name), "job %s%s%s", j->id, *j->step ? "." : "", j->step);
	}
	steps_free(&steps);
	buf_free(&text);
	return rc;
}

/* The user's jobs there; the readers are in the first of them, as one user may read what all of that user's left. */
static int find_node(struct top_job *j, struct err *e)
{
	char uid[16], *rest, *line;
	struct buf text = {0}, feed = {0};
	unsigned names = 0;
	int rc;

	snprintf(uid, sizeof(uid), "--user=%u", (unsigned) getuid());
	rc = squeue(j, &text, e, "%A %T", "-w", j->what, uid);
	*j->id = '\0';
	for (rest = text.data; rc == 0 && (line = strsep(&rest, "\n"));) {
		const char *id = strsep(&line, " ");
		struct steps steps = {0};

		if (!line || strcmp(line, "RUNNING") || steps_of(j, id, &steps, e) || !steps.n)
			continue;
		if (!*j->id)
			snprintf(j->id, sizeof(j->id), "%s", id);
		feed_add(&feed, id, &steps);
		names++;
		steps_free(&steps);
	}
	if (rc == 0)
		rc = names ? feed_set(j, &feed, j->what, names, e) :
			     err_set(e, "node %s: none of your jobs runs there; `topiary top` on it shows all of it",
				     j->what);
	snprintf(j->name, sizeof(j->name), "%s", j->what);
	j->follows = true;
	buf_free(&feed);
	buf_free(&text);
	return rc;
}

bool top_job_is_name(const char *what)
{
	size_t n = strspn(what, "0123456789_");

	return isdigit((unsigned char) *what) && n < 24 &&
	       (!what[n] || (what[n] == '.' && what[n + 1] && strlen(what + n) < 16 &&
			     strspn(what + n + 1, "0123456789abcehinrtv") == strlen(what + n + 1)));
}

bool top_job_is_node(const char *what)
{
	struct top_job j = {0};
	struct buf text = {0};
	struct err unheard;
	bool is_node = isalpha((unsigned char) *what) &&
		!what[strspn(what, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")] &&
		!squeue(&j, &text, &unheard, "%A", "-w", what, NULL);

	buf_free(&text);
	return is_node;
}

int top_job_find(struct top_job *j, struct err *e)
{
	int rc;

	do {
		j->silent = false;
		rc = j->is_node ? find_node(j, e) : find_job(j, e);
	} while (rc && j->is_again && j->silent && !sleep(LOOK_SECONDS));
	return rc;
}

void top_job_free(struct top_job *j)
{
	free(j->nodes);
	free(j->feed);
	j->nodes = j->feed = NULL;
}

/* --- the readers */

/* Is there something that the readers running now do not look at? Until slurmctld answers there is what was. */
static enum { SAME, NEWER, ENDED } look(struct top_job *j)
{
	struct top_job now = { .cmd = j->cmd, .what = j->what, .is_node = j->is_node };
	struct err e;
	bool found = top_job_find(&now, &e) == 0, newer;

	if (now.silent && !j->silent)
		log_warning("%s: slurmctld does not answer: %s; what runs is shown on", j->name, e.text);
	j->silent = now.silent;
	newer = found && (j->is_node ? strcmp(now.feed, j->feed) != 0 : now.newest > j->newest);
	top_job_free(&now);
	return newer ? NEWER : found || j->silent ? SAME : ENDED;
}

static bool goes_on(void *user)
{
	struct top_job *j = user;

	j->newer = j->follows && look(j) == NEWER;
	return !j->newer;
}

static int gather(struct top_job *j, int fd, enum top_gather_end *how, struct err *e)
{
	const char *config = j->cmd->config ? j->cmd->config : getenv("TOPIARY_CONF");
	char jobid[32], nodes[16], tasks[16], *command[32];
	const char *const words[] = {
		"srun", "--overlap", jobid, "-w", j->nodes, nodes, tasks, "--ntasks-per-node=1", "--mem=0",
		"--mpi=none", "--no-kill", "--kill-on-bad-exit=0", "--wait=0", "--immediate=30", "--quiet",
		"--job-name=" STEP_NAME, "--export=NONE", "--chdir=/", "--topo-monitor=off",
		j->cmd->settings.topiary_command, "top", "--feed", j->feed, config ? "--config" : NULL, config, NULL,
	};
	const struct top_gather_request r = {
		.command = command, .expected = j->expected, .type = j->is_node ? "Jobs" : "Job", .name = j->name,
		.of = j->is_node ? "job " : "", .fd = fd, .goes_on = goes_on, .user = j,
	};
	struct hostset *set = hostset_parse(j->nodes, e);

	if (!set)
		return -1;
	snprintf(jobid, sizeof(jobid), "--jobid=%s", j->id);
	snprintf(nodes, sizeof(nodes), "-N%zu", hostset_names(set));
	snprintf(tasks, sizeof(tasks), "-n%zu", hostset_names(set));
	hostset_free(set);
	memcpy(command, words, sizeof(words));
	/* A job's shell has the job's options for srun in its environment; none is meant for the readers. */
	extern char **environ;

	for (char **at = environ; *at;) {
		size_t n = strcspn(*at, "=");
		char name[256];

		if ((!strncmp(*at, "SLURM_", 6) || !strncmp(*at, "SRUN_", 5)) && strncmp(*at, "SLURM_CONF", 10) &&
		    strncmp(*at, "SLURM_JWT", 9) && n < sizeof(name)) {
			snprintf(name, sizeof(name), "%.*s", (int) n, *at);
			unsetenv(name);	/* moves what follows here */
		} else {
			at++;
		}
	}
	return top_gather_run(&r, how, e);
}

int top_job_record(struct top_job *j, int fd, struct err *e)
{
	enum top_gather_end how = GATHER_ENDED;
	int rc = gather(j, fd, &how, e);

	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	if (rc && !j->is_again)
		return EXIT_FAILURE;
	if (how == GATHER_FULL)
		return TOP_JOB_AGAIN;
	if (how == GATHER_STOPPED)
		return j->newer ? TOP_JOB_AGAIN : EXIT_SUCCESS;
	if (how == GATHER_LOST && look(j) == SAME && !j->silent)
		log_warning("%s: srun ended before the steps did: %s", j->name, e->text);
	*e = (struct err){""};
	/* Between two steps of a job. */
	while (j->follows)
		switch (look(j)) {
		case NEWER:
			return TOP_JOB_AGAIN;
		case ENDED:
			return EXIT_SUCCESS;
		case SAME:
			sleep(LOOK_SECONDS);
		}
	return EXIT_SUCCESS;
}
