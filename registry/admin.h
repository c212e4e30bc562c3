/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_ADMIN_H
#define TOPIARY_REGISTRY_ADMIN_H

#include "service.h"

/*
 * May whoever signed the request do what administrators do? Root or the user who runs topiaryd, now, for what c->node names. what is
 * for words: "accept a node". 0, or -1 with the reply filled.
 */
int admin_admit(struct call *c, const char *what);

#endif
