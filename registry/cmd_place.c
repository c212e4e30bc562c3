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
	const struct site *site;
	struct places *places;
	unsigned cpus;			/* of a task */
	const char *cores;		/* for words; NULL: all */
};

static struct places *places_begin(const struct site *s, struct err *e)
{
	struct places *p = places_new();

	if (!p) {
		err_set(e, "out of memory");
		return NULL;
	}
	p->network = s->network;
	if (!s->costs || places_costs(p, s->costs, e) == 0)
		return p;
	places_free(p);
	return NULL;
}

static int add_words(void *data, const char *host, struct err *e)
{
	struct filling *f = data;
	const struct shape *shape = shape_of(f->site->snapshot, host, e);
	char all[32];

	if (!shape)
		return -1;
	snprintf(all, sizeof(all), "0-%u", shape->cores - 1);
	return places_add(f->places, host, shape, f->cores ? f->cores : all, f->cpus, e);
}

static int add_item(struct filling *f, char *item, struct err *e)
{
	char *cores = strchr(item, '=');

	if (cores)
		*cores++ = '\0';
	f->cores = cores;
	return hosts_each(item, add_words, f, e);
}

int job_from_words(const char *words, const struct site *s, struct job *out, struct err *e)
{
	struct filling f = { .site = s, .places = places_begin(s, e), .cpus = s->cpus ? s->cpus : 1 };
	char *copy = strdup(words), *save = NULL, *item;
	int rc = copy ? 0 : err_set(e, "out of memory");

	if (!f.places)
		rc = -1;
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
	*out = (struct job){ .cpus = f.cpus, .places = f.places };
	return 0;
}

int job_from_network(const struct site *s, struct job *out, struct err *e)
{
	struct places *p = places_begin(s, e);
	int rc = p ? 0 : -1;

	for (unsigned i = 0; rc == 0 && i < s->network->nhosts; i++)
		rc = places_add_inner(p, &s->network->hosts[i], e);
	if (rc) {
		places_free(p);
		return -1;
	}
	*out = (struct job){ .cpus = 1, .places = p };
	return 0;
}

int job_from_distances(const struct matrix *m, struct job *out, struct err *e)
{
	struct hierarchy_host nameless = { .name = "-", .inner = { .levels = 1, .size = { m->ranks }, .cost = { 1 } } };
	struct places *p = places_new();

	if (!p)
		return err_set(e, "out of memory");
	if (places_add_inner(p, &nameless, e) || places_distances(p, m, e)) {
		places_free(p);
		return -1;
	}
	*out = (struct job){ .cpus = 1, .places = p };
	return 0;
}

static int add_allocated(void *data, const char *host, const char *cores, struct err *e)
{
	struct filling *f = data;
	const struct shape *shape = shape_of(f->site->snapshot, host, e);

	return shape ? places_add(f->places, host, shape, cores, f->cpus, e) : -1;
}

static int fill(const job_info_t *j, const struct site *s, struct job *out, struct err *e)
{
	struct filling f = { .site = s, .places = places_begin(s, e) };

	if (!f.places)
		return -1;
	f.cpus = s->cpus ? s->cpus : j->cpus_per_task == NO_VAL16 || !j->cpus_per_task ? 1 : j->cpus_per_task;
	if (cores_each(j, add_allocated, &f, e)) {
		places_free(f.places);
		return -1;
	}
	*out = (struct job){ .tasks = j->num_tasks == NO_VAL ? 0 : j->num_tasks, .cpus = f.cpus, .places = f.places };
	return 0;
}

static const job_info_t *record_of(const job_info_msg_t *m, uint32_t id)
{
	for (uint32_t i = 0; i < m->record_count; i++)
		if (m->job_array[i].job_id == id)
			return &m->job_array[i];
	return NULL;
}

int job_load(uint32_t id, const struct site *s, struct job *out, struct err *e)
{
	job_info_msg_t *m = NULL;
	const job_info_t *j;
	int rc;

	slurm_init(NULL);
	if (slurm_load_job(&m, id, SHOW_DETAIL))
		return err_set(e, "job %u: %s", id, slurm_strerror(errno));
	j = record_of(m, id);
	rc = j ? fill(j, s, out, e) : err_set(e, "slurmctld does not know it");
	slurm_free_job_info_msg(m);
	return rc ? err_within(e, "job %u", id) : 0;
}
