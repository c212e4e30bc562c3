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
#include "topo/directory.h"
#include "topo/hostlist.h"

struct filling {
	const struct site *site;
	struct directory nodes;
	struct places *places;
	unsigned cpus;			/* of a task */
	const char *cores;		/* for words; NULL: all */
	struct err *err;
};

static const struct shape *shape_of(const struct filling *f, const char *host, struct err *e)
{
	const struct shape *shape = directory_shape(&f->nodes, host);

	if (!shape)
		err_set(e, "%s: the snapshot does not know this node", host);
	return shape;
}

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

static int filling_begin(struct filling *f, struct err *e)
{
	return !(f->places = places_begin(f->site, e)) || directory_fill(&f->nodes, f->site->snapshot, e) ? -1 : 0;
}

/* The places are out's if all went well. */
static int filling_end(struct filling *f, int rc, unsigned tasks, struct job *out)
{
	directory_free(&f->nodes);
	if (rc)
		places_free(f->places);
	else
		*out = (struct job){ .tasks = tasks, .cpus = f->cpus, .places = f->places };
	return rc;
}

static int add_words(const char *host, void *data)
{
	struct filling *f = data;
	const struct shape *shape = shape_of(f, host, f->err);
	char all[32];

	if (!shape)
		return -1;
	snprintf(all, sizeof(all), "0-%u", shape->cores - 1);
	return places_add(f->places, host, shape, f->cores ? f->cores : all, f->cpus, f->err);
}

static int add_item(struct filling *f, char *item, struct err *e)
{
	char *cores = strchr(item, '=');

	if (cores)
		*cores++ = '\0';
	f->cores = cores;
	return hostlist_expand(item, add_words, f, e);
}

int job_from_words(const char *words, const struct site *s, struct job *out, struct err *e)
{
	struct filling f = { .site = s, .cpus = s->cpus ? s->cpus : 1, .err = e };
	char *copy = strdup(words), *save = NULL, *item;
	int rc = copy ? filling_begin(&f, e) : err_set(e, "out of memory");

	if (rc == 0)
		for (item = strtok_r(copy, ";", &save); item && rc == 0; item = strtok_r(NULL, ";", &save))
			rc = add_item(&f, item, e);
	free(copy);
	if (rc == 0 && !f.places->nplaces)
		rc = err_set(e, "'%s': no node", words);
	return filling_end(&f, rc, 0, out);
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
	const struct shape *shape = shape_of(f, host, e);

	return shape ? places_add(f->places, host, shape, cores, f->cpus, e) : -1;
}

static int fill(const job_info_t *j, const struct site *s, struct job *out, struct err *e)
{
	struct filling f = { .site = s, .cpus = s->cpus };
	int rc;

	if (!f.cpus)
		f.cpus = j->cpus_per_task == NO_VAL16 || !j->cpus_per_task ? 1 : j->cpus_per_task;
	rc = filling_begin(&f, e) || cores_each(j, add_allocated, &f, e) ? -1 : 0;
	return filling_end(&f, rc, j->num_tasks == NO_VAL ? 0 : j->num_tasks, out);
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
