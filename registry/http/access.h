/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_HTTP_READER_H
#define TOPIARY_REGISTRY_HTTP_READER_H

#include "service.h"

/*
 * Access control of reads. A GET may carry a credential signed for CLAIM_READ and the node in the path, or ACCESS_CLAIM
 * where the path has none. Without one the reader is anonymous; with one it is a user, or an administrator (admin.h).
 * What Linux shows to root alone (hwxml/redact.h) goes to administrators only, unless PublishSerials is yes;
 * ReadFacts selects who may read facts. Each returns 0, or -1 with the reply filled.
 */
#define ACCESS_CLAIM "registry"
int access_admit(struct call *c);
int access_admit_facts(struct call *c);

/* Whether the reader may see what is redacted for others. */
bool access_sees_serials(const struct call *c);

#endif
