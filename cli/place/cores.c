/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * libslurm returns a job's cores as an opaque struct that no call reads in every release, and scontrol truncates long
 * lists. So it is read here with Slurm's own header: its layout is stable within a release, and so is the soname of the
 * libslurm that we link.
 */
#include "src/common/slurm_xlator.h"
#include "src/common/bitstring.h"
#include "src/common/hostlist.h"
#include "src/common/job_resources.h"

#include "cores.h"

#include <slurm/slurm_errno.h>

#include "base/buf.h"

int cores_load(uint32_t id, job_info_msg_t **out)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
	slurm_step_id_t job = SLURM_STEP_ID_INITIALIZER;

	job.job_id = id;
	return slurm_load_job(out, job, SHOW_DETAIL);
#else
	return slurm_load_job(out, id, SHOW_DETAIL);
#endif
}

unsigned cores_allocated(const node_info_t *node)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
	return node->alloc_cpus;
#else
	uint16_t cpus = 0;

	slurm_get_select_nodeinfo(node->select_nodeinfo, SELECT_NODEDATA_SUBCNT, NODE_STATE_ALLOCATED, &cpus);
	return cpus;
#endif
}

int cores_job(uint32_t id, int (*with)(void *data, const job_info_t *job, struct err *e), void *data, struct err *e)
{
	job_info_msg_t *m = NULL;
	const job_info_t *job = NULL;
	int rc;

	slurm_init(NULL);
	if (cores_load(id, &m))
		return err_set(e, "job %u: %s", id, slurm_strerror(errno));
	for (uint32_t i = 0; !job && i < m->record_count; i++)
		if (m->job_array[i].job_id == id)
			job = &m->job_array[i];
	rc = job ? with(data, job, e) : err_set(e, "slurmctld does not know this job");
	slurm_free_job_info_msg(m);
	return rc ? err_within(e, "job %u", id) : 0;
}

/* The set bits among `count` bits from `first` on, as ranges numbered from 0. */
static void list_bits(struct buf *out, const bitstr_t *bits, uint32_t first, uint32_t count)
{
	for (uint32_t i = 0, from; i < count; i++) {
		if (!bit_test((bitstr_t *) bits, first + i))
			continue;
		for (from = i; i + 1 < count && bit_test((bitstr_t *) bits, first + i + 1); i++)
			;
		buf_printf(out, "%s%u", out->len ? "," : "", from);
		if (i > from)
			buf_printf(out, "-%u", i);
	}
}

/*
 * ThreadsPerCore in slurm.conf may be less than the hardware has, and the job may use fewer threads yet. Slurm counts
 * whole cores, unless it allocates single CPUs: then those that the job has.
 */
static unsigned host_threads(const job_info_t *job, uint32_t host, uint32_t cores)
{
	unsigned cpus = job->job_resrcs->cpus ? job->job_resrcs->cpus[host] : 0;
	unsigned threads = cores ? (cpus + cores - 1) / cores : 0;

	return job->threads_per_core && job->threads_per_core < threads ? job->threads_per_core : threads;
}

int cores_each(const job_info_t *job,
	       int (*each)(void *data, const char *host, const char *cores, unsigned threads, struct err *e),
	       void *data, struct err *e)
{
	const job_resources_t *r = job->job_resrcs;
	uint32_t first = 0, kind = 0, of_kind = 0;
	char *host;
	int rc = 0;

	if (!r || !r->nodes || !r->core_bitmap)
		return err_set(e, "the job has no nodes; is it running?");

	__auto_type hosts = hostlist_create(r->nodes);

	for (uint32_t i = 0; rc == 0 && i < r->nhosts && (host = hostlist_shift(hosts)); i++) {
		uint32_t count = r->sockets_per_node[kind] * r->cores_per_socket[kind];
		struct buf cores = {0};

		if ((uint64_t) first + count > (uint64_t) bit_size(r->core_bitmap))
			rc = err_set(e, "%s: Slurm's record of the job has fewer cores than its nodes", host);
		else
			list_bits(&cores, r->core_bitmap, first, count);
		if (cores.failed)
			rc = err_set(e, "%s: out of memory", host);
		if (rc == 0)
			rc = each(data, host, cores.len ? cores.data : "",
				  host_threads(job, i, bit_set_count_range(r->core_bitmap, first, first + count)), e);
		buf_free(&cores);
		free(host);
		first += count;
		if (++of_kind == r->sock_core_rep_count[kind]) {
			kind++;
			of_kind = 0;
		}
	}
	hostlist_destroy(hosts);
	return rc;
}
