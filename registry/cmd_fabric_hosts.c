/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_fabric.h"
#include "topo/hostlist.h"

struct hosts {
	char **names;		/* sorted */
	size_t n;
};

void hosts_free(struct hosts *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->n; i++)
		free(h->names[i]);
	free(h->names);
	free(h);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *) a, *(char *const *) b);
}

bool hosts_has(const char *host, void *user)
{
	const struct hosts *h = user;

	return bsearch(&host, h->names, h->n, sizeof(*h->names), compare);
}

static int add(const char *name, void *user)
{
	struct hosts *h = user;
	char **grown = h->n & (h->n - 1) ? h->names : realloc(h->names, (h->n ? 2 * h->n : 1) * sizeof(*grown));

	if (!grown)
		return -1;
	h->names = grown;
	if (!(grown[h->n] = strdup(name)))
		return -1;
	h->n++;
	return 0;
}

struct hosts *hosts_of_list(const char *list, struct err *e)
{
	struct hosts *h = calloc(1, sizeof(*h));

	err_set(e, "out of memory");
	if (!h || hostlist_expand(list, add, h, e)) {
		hosts_free(h);
		return NULL;
	}
	qsort(h->names, h->n, sizeof(*h->names), compare);
	return h;
}

static const job_info_t *record_of(const job_info_msg_t *m, uint32_t job)
{
	for (uint32_t i = 0; i < m->record_count; i++)
		if (m->job_array[i].job_id == job)
			return &m->job_array[i];
	return NULL;
}

struct hosts *hosts_of_job(uint32_t job, struct err *e)
{
	job_info_msg_t *m = NULL;
	const job_info_t *record;
	struct hosts *h = NULL;

	slurm_init(NULL);
	if (slurm_load_job(&m, job, 0)) {
		err_set(e, "job %u: %s", job, slurm_strerror(errno));
		return NULL;
	}
	record = record_of(m, job);
	if (!record || !record->nodes || !*record->nodes)
		err_set(e, "job %u: it has no nodes", job);
	else
		h = hosts_of_list(record->nodes, e);
	slurm_free_job_info_msg(m);
	return h;
}
