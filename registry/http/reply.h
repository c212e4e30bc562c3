/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_HTTP_ANSWER_H
#define TOPIARY_REGISTRY_HTTP_ANSWER_H

#include <microhttpd.h>

#include "service.h"

/*
 * Queue the reply; libmicrohttpd owns its body afterwards. A successful GET carries an ETag, and is answered 304 when
 * If-None-Match names it (RFC 9110, sections 8.8.3 and 13.1.2). Called by server.c.
 */
enum MHD_Result reply_send(struct MHD_Connection *conn, struct call *c, bool read);

#endif
