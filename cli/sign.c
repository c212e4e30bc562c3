/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdio.h>
#include <time.h>

#include "base/file.h"
#include "base/user.h"
#include "client/cred.h"
#include "cmd.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

char *cmd_sign(const struct cmd *c, const char *purpose, const char *what, const char *sha256, size_t length,
	       struct err *e)
{
	struct claim claim = { .length = length };
	struct buf boot = {0};
	struct timespec now;
	uid_t reader;

	if (user_uid(c->settings.registry_user, &reader, e) || file_read(BOOT_ID, 64, &boot, e))
		return NULL;
	clock_gettime(CLOCK_REALTIME, &now);
	claim.seq = now.tv_sec * 1000000000ull + now.tv_nsec;
	snprintf(claim.purpose, sizeof(claim.purpose), "%s", purpose);
	snprintf(claim.node, sizeof(claim.node), "%s", what);
	snprintf(claim.boot_id, sizeof(claim.boot_id), "%.36s", boot.data);
	snprintf(claim.sha256, sizeof(claim.sha256), "%s", sha256);
	buf_free(&boot);
	return cred_sign(&claim, reader, c->settings.munge_socket, e);
}
