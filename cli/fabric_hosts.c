/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "cores.h"
#include "fabric.h"

bool hosts_has(const char *host, void *user)
{
	return hostset_has(user, host);
}

static int read_hosts(void *hosts, const job_info_t *job, struct err *e)
{
	struct hostset **h = hosts;

	if (!job->nodes || !*job->nodes)
		return err_set(e, "the job has no nodes");
	return (*h = hostset_parse(job->nodes, e)) ? 0 : -1;
}

struct hostset *hosts_of_job(uint32_t job, struct err *e)
{
	struct hostset *h = NULL;

	return cores_job(job, read_hosts, &h, e) ? NULL : h;
}
