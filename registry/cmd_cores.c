/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * libslurm hands out a job's cores as an opaque struct, and no call reads it in every release; scontrol cuts a long list short. So
 * it is read here by Slurm's own header. Its layout holds within a release, as does the name of the libslurm that we are linked with.
 */
#include "src/common/slurm_xlator.h"
#include "src/common/bitstring.h"
#include "src/common/hostlist.h"
#include "src/common/job_resources.h"

#include "cmd_cores.h"

#include <stdlib.h>

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

/* The set ones of count bits, the first of which is number 0. */
static void list_bits(struct buf *out, const bitstr_t *bits, uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (bit_test((bitstr_t *) bits, first + i))
			buf_printf(out, "%s%u", out->len ? "," : "", i);
}

static int host_cores(const job_resources_t *r, uint32_t first, uint32_t count, struct buf *out, struct err *e)
{
	if ((uint64_t) first + count > (uint64_t) bit_size(r->core_bitmap))
		return err_set(e, "Slurm tells of fewer cores than its nodes have");
	list_bits(out, r->core_bitmap, first, count);
	return out->failed ? err_set(e, "out of memory") : 0;
}

int cores_each(const job_info_t *job, int (*each)(void *data, const char *host, const char *cores, struct err *e), void *data,
	       struct err *e)
{
	const job_resources_t *r = job->job_resrcs;
	uint32_t first = 0, kind = 0, of_kind = 0;
	char *host;
	int rc = 0;

	if (!r || !r->nodes || !r->core_bitmap)
		return err_set(e, "it has no nodes (is it running?)");

	__auto_type hosts = hostlist_create(r->nodes);

	for (uint32_t i = 0; rc == 0 && i < r->nhosts && (host = hostlist_shift(hosts)); i++) {
		uint32_t count = r->sockets_per_node[kind] * r->cores_per_socket[kind];
		struct buf cores = {0};

		if ((rc = host_cores(r, first, count, &cores, e)) == 0)
			rc = each(data, host, cores.len ? cores.data : "", e);
		else
			err_within(e, "%s", host);
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
