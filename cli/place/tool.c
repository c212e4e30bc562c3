/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors
 *
 * What the program of `make tool` has in place of curl, munge, Slurm's library and glibc's name services. */
#include <pwd.h>

#include "client/cred.h"
#include "client/http.h"
#include "cores.h"

#define LACKS "this topiary is a single static file without %s: use an installed one"

struct passwd *getpwnam(const char *)
{
	return NULL;
}

int http_do(const struct settings *, const struct http_request *, struct http_answer *, struct err *e)
{
	return err_set(e, LACKS, "a client of the registry");
}

void http_free(struct http_answer *)
{
}

char *http_escape(const char *segment)
{
	return strdup(segment);
}

char *cred_sign(const struct claim *, uid_t, const char *, struct err *e)
{
	return err_set(e, LACKS, "munge"), NULL;
}

int cores_job(uint32_t, int (*)(void *, const job_info_t *job, struct err *e), void *, struct err *e)
{
	return err_set(e, LACKS, "Slurm's library");
}

int cores_each(const job_info_t *,
	       int (*)(void *, const char *host, const char *cores, unsigned threads, struct err *e), void *,
	       struct err *e)
{
	return err_set(e, LACKS, "Slurm's library");
}
