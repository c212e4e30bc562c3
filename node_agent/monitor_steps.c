/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors
 *
 * Notes. The list is of the directories in RunDir, one entry a step, and belongs to the monitor's only thread. They are
 * root's; whose step it is comes from ASK_FILE, read without following links. Steps are compared with each other
 * before anything is read for them: what a step may see depends on whose PUs are beside its own.
 */
#include "monitor_steps.h"

#include <dirent.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "hwview/image.h"
#include "monitor_trace.h"

#define STEPS_MAX 4096u
#define OVERLAP_MAX 16u		/* recorded steps of one user on a PU (srun --overlap): each has descriptors for it */

struct monitor_step {
	char name[32];			/* of its directory: "7.0" */
	int dir;
	uid_t uid;
	hwloc_bitmap_t cpus;		/* of its topology, NULL: it did not ask yet, or cannot be read */
	hwloc_bitmap_t shared;		/* of these, those that another user's step has, too */
	struct monitor_trace *trace;	/* NULL: not recorded */
	bool is_known;			/* its ASK_FILE was looked at */
	bool is_here;			/* in this look */
};

struct monitor_steps {
	const char *run_dir;
	int root, events;		/* RunDir; inotify(7) */
	struct monitor_step *list;
	unsigned n;
};

/* --- one step --- */

/* ASK_FILE of a step: 1, or 0 if there is none, or -1 with an error. */
static int ask_read(int dir, struct monitor_ask *ask, struct err *e)
{
	int fd = openat(dir, ASK_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[ASK_SIZE + 1] = "";
	struct stat st;
	ssize_t n = -1;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_set(e, ASK_FILE ": %s", strerror(errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid || (st.st_mode & 022))
		err_set(e, ASK_FILE ": not a file of root's");
	else if (st.st_size > (off_t) ASK_SIZE || (n = read(fd, text, ASK_SIZE)) < 0)
		err_set(e, ASK_FILE ": cannot be read, or has more than %u bytes", ASK_SIZE);
	close(fd);
	if (n < 0)
		return -1;
	return monitor_ask_parse(text, ask, e) ? err_within(e, ASK_FILE) : 1;
}

/* Would it be one too many of its user's on some PU? Those that have ended are closed at the end of this look. */
static bool overlap_is_full(const struct monitor_steps *m, const struct monitor_step *s)
{
	int n = hwloc_bitmap_last(s->cpus) + 1, pu;
	unsigned *of_pu = n > 0 ? calloc(n, sizeof(*of_pu)) : NULL;
	bool is_full = false;

	for (const struct monitor_step *other = m->list; of_pu && other < m->list + m->n; other++)
		if (other->trace && other->uid == s->uid &&
		    !faccessat(other->dir, ASK_FILE, F_OK, AT_SYMLINK_NOFOLLOW))
			for (pu = 0; pu < n; pu++)
				if (hwloc_bitmap_isset(other->cpus, pu) && hwloc_bitmap_isset(s->cpus, pu))
					is_full |= ++of_pu[pu] >= OVERLAP_MAX;
	free(of_pu);
	return is_full;
}

static void step_record(const struct monitor_steps *m, struct monitor_step *s, const struct monitor_ask *ask)
{
	char path[PATH_MAX];
	hwloc_topology_t t;
	struct err e;

	s->uid = ask->uid;
	snprintf(path, sizeof(path), "%s/%s", m->run_dir, s->name);
	if (image_adopt(path, &t, &e)) {
		log_warning("step %s: not recorded: %s", s->name, e.text);
		return;
	}
	s->cpus = hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(t));
	s->shared = hwloc_bitmap_alloc();
	if (ask->request.hz && s->cpus && overlap_is_full(m, s))
		log_warning("step %s: not recorded: %u steps of uid %u that share PUs with it are recorded already",
			    s->name, OVERLAP_MAX, (unsigned) s->uid);
	else if (ask->request.hz && s->cpus && s->shared &&
		 !(s->trace = monitor_trace_new(s->dir, s->name, ask, t, &e)))
		log_warning("step %s: not recorded: %s", s->name, e.text);
	hwloc_topology_destroy(t);
}

/* Is it still in the directory? Its first complete ASK_FILE decides what is recorded. */
static void step_look(const struct monitor_steps *m, struct monitor_step *s)
{
	struct monitor_ask ask;
	struct err e;
	int rc = ask_read(s->dir, &ask, &e);

	if (rc == 0 && !s->is_known)
		return;		/* not yet */
	s->is_here = rc != 0;
	if (s->is_known || !rc)
		return;
	s->is_known = true;
	if (rc < 0)
		log_warning("step %s: not recorded: %s", s->name, e.text);
	else
		step_record(m, s, &ask);
}

static void step_free(struct monitor_step *s)
{
	if (s->trace)
		monitor_trace_end(s->trace, s->dir, s->shared);
	hwloc_bitmap_free(s->cpus);
	hwloc_bitmap_free(s->shared);
	close(s->dir);
}

/* --- all --- */

/* A directory of root's that is not known yet; it is watched before it is looked at. NULL if it is none. */
static struct monitor_step *step_add(struct monitor_steps *m, const char *name)
{
	struct monitor_step s = { .dir = -1 };
	char path[PATH_MAX];
	struct stat st;

	if (m->n == STEPS_MAX || strlen(name) >= sizeof(s.name) || array_reserve(m->list, m->n, 1))
		return NULL;
	s.dir = openat(m->root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s.dir < 0)
		return NULL;
	if (fstat(s.dir, &st) || st.st_uid || (st.st_mode & 022)) {
		close(s.dir);
		return NULL;
	}
	snprintf(s.name, sizeof(s.name), "%s", name);
	snprintf(path, sizeof(path), "%s/%s", m->run_dir, name);
	inotify_add_watch(m->events, path, IN_CREATE | IN_DELETE | IN_ONLYDIR | IN_DONT_FOLLOW);
	m->list[m->n] = s;
	return &m->list[m->n++];
}

/* A directory of that name may be another by now: that of a job that was requeued. */
static bool is_same_directory(const struct monitor_steps *m, const struct monitor_step *s)
{
	struct stat a, b;

	return !fstat(s->dir, &a) && !fstatat(m->root, s->name, &b, AT_SYMLINK_NOFOLLOW) && a.st_ino == b.st_ino &&
	       a.st_dev == b.st_dev;
}

static void steps_scan(struct monitor_steps *m)
{
	int fd = openat(m->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);

	for (struct dirent *d; folder && (d = readdir(folder));) {
		struct monitor_step *s;

		if (!isdigit((unsigned char) *d->d_name))
			continue;
		for (s = m->list; s < m->list + m->n && strcmp(s->name, d->d_name); s++)
			;
		if (s < m->list + m->n && !is_same_directory(m, s))
			continue;	/* ends in this look, and is found in the next */
		if (s == m->list + m->n)
			s = step_add(m, d->d_name);
		if (s) {
			s->is_here = true;
			step_look(m, s);
		}
	}
	if (folder)
		closedir(folder);
	else if (fd >= 0)
		close(fd);
}

void monitor_steps_look(struct monitor_steps *m)
{
	char space[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	bool again = false;

	while (read(m->events, space, sizeof(space)) > 0)
		;
	for (unsigned i = 0; i < m->n; i++)
		m->list[i].is_here = false;
	steps_scan(m);
	for (unsigned i = 0; i < m->n;)
		if (m->list[i].is_here) {
			i++;
		} else {
			again |= faccessat(m->root, m->list[i].name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
				!is_same_directory(m, &m->list[i]);
			step_free(&m->list[i]);
			m->list[i] = m->list[--m->n];
		}
	if (again)
		steps_scan(m);
	for (unsigned i = 0; i < m->n; i++)
		if (m->list[i].trace) {
			struct monitor_step *s = &m->list[i];
			bool had = !hwloc_bitmap_iszero(s->shared);
			char *list = NULL;

			hwloc_bitmap_zero(s->shared);
			for (unsigned k = 0; k < m->n; k++)
				if (m->list[k].cpus && m->list[k].uid != s->uid)
					hwloc_bitmap_or(s->shared, s->shared, m->list[k].cpus);
			hwloc_bitmap_and(s->shared, s->shared, s->cpus);
			if (!had && !hwloc_bitmap_iszero(s->shared) && hwloc_bitmap_list_asprintf(&list, s->shared) > 0)
				log_info("step %s: PUs %s are not recorded while another user's step has them, too",
					 s->name, list);
			free(list);
		}
}

int64_t monitor_steps_tick(struct monitor_steps *m)
{
	uint64_t next = UINT64_MAX, here = clock_nanoseconds(CLOCK_MONOTONIC);

	for (unsigned i = 0; i < m->n; i++) {
		struct monitor_trace *t = m->list[i].trace;

		if (!t)
			continue;
		if (monitor_trace_due(t) <= here)
			monitor_trace_tick(t, m->list[i].shared);
		if (monitor_trace_due(t) < next)
			next = monitor_trace_due(t);
	}
	here = clock_nanoseconds(CLOCK_MONOTONIC);
	return next == UINT64_MAX ? -1 : next > here ? (int64_t) (next - here) : 0;
}

void monitor_steps_each(const struct monitor_steps *m,
			void (*each)(void *user, const char *step, hwloc_const_bitmap_t cpus, bool is_recorded),
			void *user)
{
	for (unsigned i = 0; i < m->n; i++)
		if (m->list[i].cpus)
			each(user, m->list[i].name, m->list[i].cpus, m->list[i].trace);
}

int monitor_steps_fd(const struct monitor_steps *m)
{
	return m->events;
}

struct monitor_steps *monitor_steps_new(const char *run_dir, struct err *e)
{
	struct monitor_steps *m = calloc(1, sizeof(*m));

	if (!m)
		return err_null(e, "out of memory");
	m->run_dir = run_dir;
	m->root = open(run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	m->events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (m->root >= 0 && m->events >= 0 &&
	    inotify_add_watch(m->events, run_dir, IN_CREATE | IN_DELETE | IN_ONLYDIR) >= 0)
		return m;
	err_set(e, "%s: %s", run_dir, strerror(errno));
	monitor_steps_free(m);
	return NULL;
}

void monitor_steps_free(struct monitor_steps *m)
{
	if (!m)
		return;
	for (unsigned i = 0; i < m->n; i++)
		step_free(&m->list[i]);
	free(m->list);
	if (m->events >= 0)
		close(m->events);
	if (m->root >= 0)
		close(m->root);
	free(m);
}
