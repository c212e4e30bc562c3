/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_HTTP_FSCK_SERVE_H
#define TOPIARY_REGISTRY_HTTP_FSCK_SERVE_H

#include "service.h"

/*
 * POST /v1/fsck and /v1/fsck/repair: check a batch of stored documents (fsck.h), from ?after=, which is `next` of the
 * previous reply. Signed by an administrator (admin.h) with FSCK_CLAIM or FSCK_REPAIR_CLAIM in place of a node and the
 * hash of the text of `after`. The admit functions are called first: 0, or -1 with the reply filled.
 */
#define FSCK_CLAIM "fsck"
#define FSCK_REPAIR_CLAIM "fsck-repair"
int fsck_admit(struct call *c);
int fsck_repair_admit(struct call *c);
void fsck_post(struct call *c);

#endif
