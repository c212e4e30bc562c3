/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "step_files.h"

#include <dirent.h>

#include "base/array.h"
#include "base/order.h"
#include "child.h"

#define PREFIX "topiary-"

bool step_files_is_id(const char *text)
{
	static const char *const words[] = { ".batch", ".interactive" };
	size_t digits = strspn(text, "0123456789");
	const char *rest = text + digits;

	if (!digits || digits > 10)
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(rest, words[i]))
			return true;
	return !*rest || (*rest == '.' && rest[1] && strspn(rest + 1, "0123456789") == strlen(rest + 1));
}

static void step_release(struct step_files *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		free(s->nodes[i].name);
		free(s->nodes[i].trace);
		free(s->nodes[i].tasks);
	}
	free(s->nodes);
	free(s->name);
}

void step_files_free(struct step_files *list, unsigned n)
{
	for (unsigned i = 0; list && i < n; i++)
		step_release(&list[i]);
	free(list);
}

/* --- a step's folder --- */

static struct step_node *node_of(struct step_files *s, const char *name, size_t len)
{
	for (unsigned i = 0; i < s->n; i++)
		if (strlen(s->nodes[i].name) == len && !memcmp(s->nodes[i].name, name, len))
			return &s->nodes[i];
	if (array_reserve(s->nodes, s->n, 1))
		return NULL;
	s->nodes[s->n] = (struct step_node){ .name = strndup(name, len) };
	return s->nodes[s->n].name ? &s->nodes[s->n++] : NULL;
}

/* NODE.trace or NODE.tasks; other files are ignored. */
static int file_add(struct step_files *s, const char *folder, const char *file)
{
	const char *dot = strrchr(file, '.');
	bool is_trace = dot && !strcmp(dot, ".trace");
	struct step_node *node;

	if (!dot || dot == file || (!is_trace && strcmp(dot, ".tasks")))
		return 0;
	if (!(node = node_of(s, file, dot - file)))
		return -1;
	return asprintf(is_trace ? &node->trace : &node->tasks, "%s/%s", folder, file) < 0 ? -1 : 0;
}

ORDER(by_name, struct step_node, strverscmp(x->name, y->name))

/* Adds a step if the folder has its files. */
static int folder_add(const char *folder, const char *name, struct step_files **list, unsigned *n, struct err *e)
{
	struct step_files s = { .name = strdup(name) };
	DIR *dir = opendir(folder);
	struct dirent *d;
	int rc = s.name ? 0 : -1;

	if (!dir) {
		free(s.name);
		return err_set(e, "%s: %s", folder, strerror(errno));
	}
	while (rc == 0 && (d = readdir(dir)))
		rc = file_add(&s, folder, d->d_name);
	closedir(dir);
	if (rc == 0 && s.n && array_reserve(*list, *n, 1) == 0) {
		qsort(s.nodes, s.n, sizeof(*s.nodes), by_name);
		(*list)[(*n)++] = s;
		return 0;
	}
	if (s.n || rc)
		rc = err_set(e, "out of memory");
	step_release(&s);
	return rc;
}

/* --- a job's --- */

static int steps_add(const char *where, const char *id, struct step_files **list, unsigned *n, struct err *e)
{
	size_t digits = strspn(id, "0123456789");
	char folder[PATH_MAX];
	DIR *dir = opendir(where);
	struct dirent *d;
	int rc = 0;

	while (dir && rc == 0 && (d = readdir(dir))) {
		const char *name = d->d_name + strlen(PREFIX);

		if (strncmp(d->d_name, PREFIX, strlen(PREFIX)) || !step_files_is_id(name) ||
		    (id[digits] ? strcmp(name, id) : strncmp(name, id, digits) || name[digits] != '.'))
			continue;
		if (snprintf(folder, sizeof(folder), "%s/%s", where, d->d_name) < (int) sizeof(folder))
			rc = folder_add(folder, name, list, n, e);
	}
	if (dir)
		closedir(dir);
	return rc;
}

ORDER(by_step, struct step_files, strverscmp(x->name, y->name))

/*
 * By scontrol(1), or sacct(1), which knows jobs that slurmctld has forgotten: as commands, because libslurm ends the
 * process where Slurm is not set up, as on a laptop to which a job's files were copied. Without a controller they try
 * for a minute each, which is longer than anybody waits. "": neither knows it.
 */
static void job_directory(uint32_t job, char *out, size_t size)
{
	char id[16];
	const struct { const char *argv[8], *before; } commands[] = {
		{ { "scontrol", "show", "job", id, NULL }, "WorkDir=" },
		{ { "sacct", "-nPX", "-j", id, "-o", "WorkDir", NULL }, "" },
	};

	*out = '\0';
	snprintf(id, sizeof(id), "%u", job);
	for (size_t i = 0; i < 2 && !*out; i++) {
		struct buf said = {0};

		cmd_program(commands[i].argv, STDERR_DROPPED, 10, 1 << 20, &said, NULL);
		for (char *rest = said.len ? said.data : NULL, *line; !*out && (line = strsep(&rest, "\n"));) {
			line += strspn(line, " ");
			if (!strncmp(line, commands[i].before, strlen(commands[i].before)))
				snprintf(out, size, "%s", line + strlen(commands[i].before));
		}
		buf_free(&said);
	}
}

static int job_find(const char *id, struct step_files **list, unsigned *n, struct err *e)
{
	char where[PATH_MAX] = "";

	if (steps_add(".", id, list, n, e))
		return -1;
	if (!*n)
		job_directory(strtoul(id, NULL, 10), where, sizeof(where));
	if (!*n && *where && steps_add(where, id, list, n, e))
		return -1;
	if (*n)
		qsort(*list, *n, sizeof(**list), by_step);
	else
		err_set(e, "%s: no " PREFIX "%s%s with traces here%s%s; if it ran with --topo-monitor, name the folder",
			id, id, strchr(id, '.') ? "" : ".*",
			*where ? ", nor in " : ", and Slurm does not know where it ran", where);
	return *n ? 0 : -1;
}

int step_files_find(const char *what, struct step_files **out, unsigned *n, struct err *e)
{
	const char *slash = strrchr(what, '/'), *last = slash ? slash + 1 : what;
	struct step_files *list = NULL;
	int rc;

	*n = 0;
	if (step_files_is_id(what)) {
		rc = job_find(what, &list, n, e);
	} else {
		last = !strncmp(last, PREFIX, strlen(PREFIX)) && step_files_is_id(last + strlen(PREFIX)) ?
			last + strlen(PREFIX) : what;
		rc = folder_add(what, last, &list, n, e);
		if (rc == 0 && !*n)
			rc = err_set(e, "%s: no traces in it", what);
	}
	if (rc) {
		step_files_free(list, *n);
		return -1;
	}
	*out = list;
	return 0;
}
