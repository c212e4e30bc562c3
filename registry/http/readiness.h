/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "call.h"

/*
 * Whether exports can be accepted: a thread checks everything that one needs every few seconds, so that many requests
 * cost no more than one, and none waits for what hangs.
 */
struct readiness;

struct readiness *readiness_start(struct service *s, struct err *e);
void readiness_stop(struct readiness *r);	/* accepts NULL */

/* GET /livez: the process runs; /healthz: PostgreSQL answers; /readyz: exports can be accepted. */
void read_alive(struct call *c);
void read_health(struct call *c);
void read_ready(struct call *c);
