/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_HTTP_INGEST_H
#define TOPIARY_REGISTRY_HTTP_INGEST_H

#include "service.h"

/*
 * PUT /v1/nodes/NAME/boot and .../topology, sent by topiary-agent. The admit functions run before the body is read: 0,
 * or -1 with the reply filled.
 */
int export_admit(struct call *c);
int export_admit_zstd(struct call *c);
void export_boot(struct call *c);
void export_topology(struct call *c);

#endif
