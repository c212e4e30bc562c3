/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_ANSWER_H
#define TOPIARY_REGISTRY_ANSWER_H

#include <microhttpd.h>

#include "service.h"

/*
 * Queue the reply; its body is libmicrohttpd's afterwards. What was read (GET) and went well carries an ETag, so that a client that
 * has it already is told just that (RFC 9110, sections 8.8.3 and 13.1.2).
 */
enum MHD_Result answer_send(struct MHD_Connection *conn, struct call *c, bool read);

#endif
