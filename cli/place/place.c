/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "place.h"

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cores.h"
#include "costs.h"
#include "shape/directory.h"
#include "shape/hostlist.h"

struct filling {
	const struct place_site *site;
	struct directory nodes;
	struct places *places;
	unsigned cpus;			/* of a task */
};

/* Called for each host of a job with its cores there; NULL: all cores. threads: of a core, 0: as it has PUs. */
typedef int host_each(void *data, const char *host, const char *cores, unsigned threads, struct err *e);

/* Where hosts come from: the command line, or Slurm's record of a job. */
struct source {
	int (*hosts)(const void *what, host_each *each, void *data, struct err *e);
	const void *what;
};

static const struct shape *shape_of(const struct filling *f, const char *host, struct err *e)
{
	const struct shape *shape = directory_shape(&f->nodes, host);

	if (!shape)
		err_set(e, "%s: this node is not in the snapshot", host);
	return shape;
}

static struct places *places_begin(const struct place_site *s, const struct hierarchy *network, struct err *e)
{
	struct places *p = places_new();

	if (!p) {
		err_set(e, "out of memory");
		return NULL;
	}
	p->network = network;
	p->planes = s->planes;
	return p;
}

static int is_connected(void *network, const char *host, const char *cores, unsigned threads, struct err *e)
{
	(void) cores, (void) threads;
	return hierarchy_find(network, host) ? 0 : err_set(e, "%s: this node is not in the network", host);
}

/* The site's network, unless it lacks a node and may be left out. */
static const struct hierarchy *network_for(const struct place_site *s, const struct source *from)
{
	void *network = (void *) s->network;

	return network && s->without && from->hosts(from->what, is_connected, network, s->without) ? NULL : network;
}

static int add_with_costs(const struct filling *f, const char *host, const struct shape *shape, const char *cores,
			  const char *costs, struct err *e)
{
	struct places *p = f->places;
	double between = p->cost[LEVEL_NODE];

	memcpy(p->cost, level_default_cost, sizeof(p->cost));
	if (places_costs(p, costs ? costs : "", e))
		return -1;
	/* Between two nodes the cost is the same both ways: that of the first node, for all. */
	if (p->nhosts)
		p->cost[LEVEL_NODE] = between;
	return places_add(p, host, shape, cores, f->cpus, e);
}

static int add_host(void *data, const char *host, const char *cores, unsigned threads, struct err *e)
{
	struct filling *f = data;
	const struct shape *shape = shape_of(f, host, e);
	const char *costs = f->site->costs ? costs_of(f->site->costs, host) : NULL;
	char all[32];
	int rc;

	if (!shape)
		return -1;
	f->places->threads = threads;
	snprintf(all, sizeof(all), "0-%u", shape->cores - 1);
	rc = add_with_costs(f, host, shape, cores ? cores : all, costs, e);
	if (rc && costs && f->places->numas.levels && costs_reject(f->site->costs, e))
		rc = add_with_costs(f, host, shape, cores ? cores : all, NULL, e);
	return rc;
}

static int place_fill(struct filling *f, const struct source *from, struct place_job *out, struct err *e)
{
	int rc = -1;

	if ((f->places = places_begin(f->site, network_for(f->site, from), e)) &&
	    directory_fill(&f->nodes, f->site->snapshot, e) == 0)
		rc = from->hosts(from->what, add_host, f, e);
	directory_free(&f->nodes);
	if (rc)
		places_free(f->places);
	else
		*out = (struct place_job){ .cpus = f->cpus, .places = f->places };
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

	return i->each(i->data, host, i->cores, 0, i->err);
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

int job_from_words(const char *words, const struct place_site *s, struct place_job *out, struct err *e)
{
	struct filling f = { .site = s, .cpus = s->cpus ? s->cpus : 1 };

	if (!words[strspn(words, ";")])
		return err_set(e, "'%s': no node given", words);
	return place_fill(&f, &(struct source){ words_hosts, words }, out, e);
}

int job_from_network(const struct place_site *s, struct place_job *out, struct err *e)
{
	struct places *p = places_begin(s, s->network, e);
	int rc = p ? 0 : -1;

	for (unsigned i = 0; rc == 0 && i < s->network->nhosts; i++)
		rc = places_add_inner(p, &s->network->hosts[i], e);
	if (rc) {
		places_free(p);
		return -1;
	}
	*out = (struct place_job){ .cpus = 1, .places = p };
	return 0;
}

int job_from_distances(const struct matrix *m, struct place_job *out, struct err *e)
{
	struct hierarchy_host nameless = { .name = "-", .inner = { .levels = 1, .size = { m->ranks }, .cost = { 1 } } };
	struct places *p = places_new();

	if (!p)
		return err_set(e, "out of memory");
	if (places_add_inner(p, &nameless, e) || places_distances(p, m, e)) {
		places_free(p);
		return -1;
	}
	*out = (struct place_job){ .cpus = 1, .places = p };
	return 0;
}

static int job_hosts(const void *job, host_each *each, void *data, struct err *e)
{
	return cores_each(job, each, data, e);
}

struct asked {
	const struct place_site *site;
	struct place_job *out;
};

static int fill_allocated(void *asked, const job_info_t *j, struct err *e)
{
	const struct asked *a = asked;
	struct filling f = { .site = a->site, .cpus = a->site->cpus };

	if (!f.cpus)
		f.cpus = j->cpus_per_task == NO_VAL16 || !j->cpus_per_task ? 1 : j->cpus_per_task;
	if (place_fill(&f, &(struct source){ job_hosts, j }, a->out, e))
		return -1;
	a->out->tasks = j->num_tasks == NO_VAL ? 0 : j->num_tasks;
	return 0;
}

int job_load(uint32_t id, const struct place_site *s, struct place_job *out, struct err *e)
{
	return cores_job(id, fill_allocated, &(struct asked){ s, out }, e);
}
