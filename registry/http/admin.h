/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_HTTP_ADMIN_H
#define TOPIARY_REGISTRY_HTTP_ADMIN_H

#include "service.h"

/*
 * Admit an administrator's request: signed for the route's purpose by one of Admins or the user who runs topiaryd,
 * recently, for c->node, and sent from the registry's own host or one of AdminHosts (root of any node can sign as any
 * user). `what` completes the refusal: "accept a node". 0, or -1 with the reply filled. May wait for the resolver.
 */
int admin_admit(struct call *c, const char *what);

/* Is the verified claim about c->node, and recent? For requests of any user. 0, or -1 with the reply filled. */
int admin_check_claim(struct call *c);

/* Checks user and host alone, after the credential was verified; fills no reply. */
bool admin_check(struct call *c);

#endif
