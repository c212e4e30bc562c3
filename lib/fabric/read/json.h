/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <jansson.h>

#include "fabric/model/fabric.h"

/*
 * A fabric as JSON, and back: what `topiary fabric export --format=json` writes and what the registry keeps. GUIDs are
 * 16 hexadecimal digits, or null.
 *	planes[]	kind, switches, hosts, links, cables
 *	switches[]	name, guid, plane, rank, told
 *	hosts[]		name, guid, plane, known, told, adapters[] of guid and port
 *	links[]		a, b, cables, mbps
 *	text		the levels, where a file gave them (fabric/model/hierarchy.h); else null
 * fabric_json has also each plane's levels and places, and odd[]. told is left out where it is the name. NULL when
 * memory is short.
 */
json_t *fabric_json(const struct fabric *f);
json_t *fabric_json_parts(const struct fabric *f);

/*
 * The fabric of these switches, hosts and links, recognised again, or that of text. names[] of guid and node, which may
 * be absent, states the hosts of adapters. name is for errors, which state the place: "fabric: links[3]: ...". NULL on
 * error.
 */
struct fabric *fabric_of_json(const json_t *j, const char *name, struct err *e);
