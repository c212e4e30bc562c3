/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_OPENAPI_H
#define TOPIARY_REGISTRY_OPENAPI_H

#include "service.h"

/* docs/openapi.yaml, of this very version: it is part of the program. */
void read_openapi(struct call *c);

#endif
