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
};

/* Who is called for each host of a job, with its cores there; NULL: all of them. */
typedef int host_each(void *data, const char *host, const char *cores, struct err *e);

/* What tells the hosts: words, or Slurm's record of a job. */
struct source {
	int (*hosts)(const void *what, host_each *each, void *data, struct err *e);
	const void *what;
};

static const struct shape *shape_of(const struct filling *f, const char *host, struct err *e)
{
	const struct shape *shape = directory_shape(&f->nodes, host);

	if (!shape)
		err_set(e, "%s: the snapshot does not know this node", host);
	return shape;
}

static struct places *places_begin(const struct site *s, const struct hierarchy *network, struct err *e)
{
	struct places *p = places_new();

	if (!p) {
		err_set(e, "out of memory");
		return NULL;
	}
	p->network = network;
	p->planes = s->planes;
	if (!s->costs || places_costs(p, s->costs, e) == 0)
		return p;
	places_free(p);
	return NULL;
}

static int is_connected(void *network, const char *host, const char *cores, struct err *e)
{
	(void) cores;
	return hierarchy_find(network, host) ? 0 : err_set(e, "%s: the network does not know this node", host);
}

/* The site's, unless it may be left out and lacks a node. */
static const struct hierarchy *network_for(const struct site *s, const struct source *from)
{
	void *network = (void *) s->network;

	return network && s->without && from->hosts(from->what, is_connected, network, s->without) ? NULL : network;
}

static int add_host(void *data, const char *host, const char *cores, struct err *e)
{
	struct filling *f = data;
	const struct shape *shape = shape_of(f, host, e);
	char all[32];

	if (!shape)
		return -1;
	snprintf(all, sizeof(all), "0-%u", shape->cores - 1);
	return places_add(f->places, host, shape, cores ? cores : all, f->cpus, e);
}

static int fill(struct filling *f, const struct source *from, struct job *out, struct err *e)
{
	int rc = -1;

	if ((f->places = places_begin(f->site, network_for(f->site, from), e)) && directory_fill(&f->nodes, f->site->snapshot, e) == 0)
		rc = from->hosts(from->what, add_host, f, e);
	directory_free(&f->nodes);
	if (rc)
		places_free(f->places);
	else
		*out = (struct job){ .cpus = f->cpus, .places = f->places };
	return rc;
}

struct item {
	host_each *each;
	void *data;
	const char *cores;
	struct err *err;
};

static int item_host(const char *host, void *data)
{
	const struct item *i = data;

	return i->each(i->data, host, i->cores, i->err);
}

static int item_hosts(char *item, host_each *each, void *data, struct err *e)
{
	char *cores = strchr(item, '=');

	if (cores)
		*cores++ = '\0';
	return hostlist_expand(item, item_host, &(struct item){ each, data, cores, e }, e);
}

static int words_hosts(const void *words, host_each *each, void *data, struct err *e)
{
	char *copy = strdup(words), *save = NULL;
	int rc = copy ? 0 : err_set(e, "out of memory");

	for (char *item = copy ? strtok_r(copy, ";", &save) : NULL; item && rc == 0; item = strtok_r(NULL, ";", &save))
		rc = item_hosts(item, each, data, e);
	free(copy);
	return rc;
}

int job_from_words(const char *words, const struct site *s, struct job *out, struct err *e)
{
	struct filling f = { .site = s, .cpus = s->cpus ? s->cpus : 1 };

	if (!words[strspn(words, ";")])
		return err_set(e, "'%s': no node", words);
	return fill(&f, &(struct source){ words_hosts, words }, out, e);
}

int job_from_network(const struct site *s, struct job *out, struct err *e)
{
	struct places *p = places_begin(s, s->network, e);
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

static int job_hosts(const void *job, host_each *each, void *data, struct err *e)
{
	return cores_each(job, each, data, e);
}

static int fill_allocated(const job_info_t *j, const struct site *s, struct job *out, struct err *e)
{
	struct filling f = { .site = s, .cpus = s->cpus };

	if (!f.cpus)
		f.cpus = j->cpus_per_task == NO_VAL16 || !j->cpus_per_task ? 1 : j->cpus_per_task;
	if (fill(&f, &(struct source){ job_hosts, j }, out, e))
		return -1;
	out->tasks = j->num_tasks == NO_VAL ? 0 : j->num_tasks;
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
	rc = j ? fill_allocated(j, s, out, e) : err_set(e, "slurmctld does not know it");
	slurm_free_job_info_msg(m);
	return rc ? err_within(e, "job %u", id) : 0;
}
