/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/file.h"
#include "doctor.h"

#define MAX_BYTES (256u << 20)	/* of scontrol about all nodes */

struct probe {
	const char *const *argv; /* or NULL: work */
	int (*work)(const struct doctor *d, struct buf *out, struct err *e);
	const struct doctor *doctor;
};

static int probe_run(int to, void *arg)
{
	const struct probe *p = arg;
	struct buf out = {0};
	struct err e = {""};
	int rc;

	if (p->argv) {
		dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
		dup2(to, STDOUT_FILENO);
		dup2(to, STDERR_FILENO);
		execvp(p->argv[0], (char **) p->argv);
		dprintf(to, "%s: %s", p->argv[0], strerror(errno));
		return 127;
	}
	rc = p->work(p->doctor, &out, &e);
	file_write(to, rc ? e.text : out.data, rc ? strlen(e.text) : out.len);
	return rc ? 1 : 0;
}

static int run(struct probe *p, struct buf *out, struct err *e)
{
	int rc = child_run(probe_run, p, DOCTOR_SECONDS, MAX_BYTES, out, e);

	if (rc > 0)
		err_set(e, "%.*s", out->len ? (int) strcspn(out->data, "\n") : 6, out->len ? out->data : "failed");
	return rc ? -1 : 0;
}

int doctor_run(const char *const argv[], struct buf *out, struct err *e)
{
	return run(&(struct probe){ .argv = argv }, out, e);
}

int doctor_limited(int (*work)(const struct doctor *d, struct buf *out, struct err *e), const struct doctor *d,
		   struct buf *out, struct err *e)
{
	return run(&(struct probe){ .work = work, .doctor = d }, out, e);
}
