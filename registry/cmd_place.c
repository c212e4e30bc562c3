/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "cmd_place.h"

#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_cores.h"

static bool list_has(const char *hosts, const char *host)
{
	__auto_type list = slurm_hostlist_create(hosts);
	bool has = list && slurm_hostlist_find(list, host) >= 0;

	if (list)
		slurm_hostlist_destroy(list);
	return has;
}

static const struct shape *shape_of(const struct snapshot *s, const char *host, struct err *e)
{
	for (size_t i = 0; i < s->nnodes; i++)
		if (list_has(s->nodes[i].hosts, host))
			return s->nodes[i].shape;
	err_set(e, "%s: the snapshot does not know this node", host);
	return NULL;
}

/* Call each for every host of a list until one fails. */
static int hosts_each(const char *hosts, int (*each)(void *data, const char *host, struct err *e), void *data, struct err *e)
{
	__auto_type list = slurm_hostlist_create(hosts);
	char *host;
	int rc = 0;

	if (!list || slurm_hostlist_count(list) == 0)
		rc = err_set(e, "'%s': not a host list", hosts);
	while (rc == 0 && (host = slurm_hostlist_shift(list))) {
		rc = each(data, host, e);
		free(host);
	}
	if (list)
		slurm_hostlist_destroy(list);
	return rc;
}

struct filling {
	const struct snapshot *snapshot;
	struct places *places;
	const job_info_t *job;		/* for a job of Slurm's */
	const char *cores;		/* for words; NULL: all */
};

/* A host that stands twice would be two hosts to the mapping and one to the launcher. */
static bool is_known(const struct places *p, const char *host)
{
	for (unsigned i = 0; i < p->nhosts; i++)
		if (!strcmp(p->hosts[i], host))
			return true;
	return false;
}

static int add_words(void *data, const char *host, struct err *e)
{
	struct filling *f = data;
	const struct shape *shape = shape_of(f->snapshot, host, e);
	char all[32];

	if (!shape)
		return -1;
	if (is_known(f->places, host))
		return err_set(e, "%s: named twice", host);
	snprintf(all, sizeof(all), "0-%u", shape->cores - 1);
	return places_add(f->places, host, shape, f->cores ? f->cores : all, e);
}

static int add_item(struct filling *f, char *item, struct err *e)
{
	char *cores = strchr(item, '=');

	if (cores)
		*cores++ = '\0';
	f->cores = cores;
	return hosts_each(item, add_words, f, e);
}

int job_from_words(const char *words, const struct snapshot *s, struct job *out, struct err *e)
{
	struct filling f = { .snapshot = s, .places = places_new() };
	char *copy = strdup(words), *save = NULL, *item;
	int rc = copy && f.places ? 0 : err_set(e, "out of memory");

	if (rc == 0)
		for (item = strtok_r(copy, ";", &save); item && rc == 0; item = strtok_r(NULL, ";", &save))
			rc = add_item(&f, item, e);
	free(copy);
	if (rc == 0 && !f.places->nplaces)
		rc = err_set(e, "'%s': no node", words);
	if (rc) {
		places_free(f.places);
		return -1;
	}
	*out = (struct job){ .places = f.places };
	return 0;
}

/* Places are cores: a task of several would need several places side by side. */
static int check_task_size(const job_info_t *j, const char *host, const struct shape *shape, struct err *e)
{
	unsigned cpus = j->cpus_per_task == NO_VAL16 ? 1 : j->cpus_per_task;

	if (cpus > shape->threads[0])
		return err_set(e, "%s: cpus-per-task is %u, more than the %u CPU(s) of a core: only tasks of one core are mapped",
			       host, cpus, shape->threads[0]);
	return 0;
}

static int add_allocated(void *data, const char *host, const char *cores, struct err *e)
{
	struct filling *f = data;
	const struct shape *shape = shape_of(f->snapshot, host, e);

	if (!shape || check_task_size(f->job, host, shape, e))
		return -1;
	return places_add(f->places, host, shape, cores, e);
}

static int fill(const job_info_t *j, const struct snapshot *s, struct job *out, struct err *e)
{
	struct filling f = { .snapshot = s, .job = j, .places = places_new() };

	if (!f.places)
		return err_set(e, "out of memory");
	if (cores_each(j, add_allocated, &f, e)) {
		places_free(f.places);
		return -1;
	}
	*out = (struct job){ .tasks = j->num_tasks == NO_VAL ? 0 : j->num_tasks, .places = f.places };
	return 0;
}

static const job_info_t *record_of(const job_info_msg_t *m, uint32_t id)
{
	for (uint32_t i = 0; i < m->record_count; i++)
		if (m->job_array[i].job_id == id)
			return &m->job_array[i];
	return NULL;
}

int job_load(uint32_t id, const struct snapshot *s, struct job *out, struct err *e)
{
	job_info_msg_t *m = NULL;
	const job_info_t *j;
	int rc;

	slurm_init(NULL);
	if (cores_load(id, &m))
		return err_set(e, "job %u: %s", id, slurm_strerror(errno));
	j = record_of(m, id);
	rc = j ? fill(j, s, out, e) : err_set(e, "slurmctld does not know it");
	slurm_free_job_info_msg(m);
	return rc ? err_within(e, "job %u", id) : 0;
}
