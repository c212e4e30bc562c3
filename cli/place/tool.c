/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors
 *
 * What the program of `make tool` has in place of curl, munge, Slurm's library and glibc's name services. */
#include <pwd.h>

#include "client/cred.h"
#include "client/http.h"
#include "cores.h"

#define LACKS "this topiary is a single static file without %s: use an installed one"

struct passwd *getpwnam(const char *name)
{
	(void) name;
	return NULL;
}

int http_do(const struct settings *s, const struct http_request *r, struct http_answer *a, struct err *e)
{
	(void) s, (void) r, (void) a;
	return err_set(e, LACKS, "a client of the registry");
}

void http_free(struct http_answer *a)
{
	(void) a;
}

char *http_escape(const char *segment)
{
	return strdup(segment);
}

char *cred_sign(const struct claim *c, uid_t reader, const char *socket, struct err *e)
{
	(void) c, (void) reader, (void) socket;
	return err_set(e, LACKS, "munge"), NULL;
}

int cores_job(uint32_t id, int (*with)(void *data, const job_info_t *job, struct err *e), void *data, struct err *e)
{
	(void) id, (void) with, (void) data;
	return err_set(e, LACKS, "Slurm's library");
}

int cores_each(const job_info_t *job,
	       int (*each)(void *data, const char *host, const char *cores, unsigned threads, struct err *e),
	       void *data, struct err *e)
{
	(void) job, (void) each, (void) data;
	return err_set(e, LACKS, "Slurm's library");
}
