/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_PEER_H
#define TOPIARY_REGISTRY_PEER_H

#include "service.h"

/*
 * Does an export come from an address of the node it is for? munge proves that root signed it, on some host with the key, never
 * on which. PeerCheck (topiary.conf(5)) tells what happens otherwise; whoever speaks from the registry's own host is believed.
 */
struct peers;

/* NULL when memory is short. peers_free accepts NULL. */
struct peers *peers_new(void);
void peers_free(struct peers *p);

/* 0, or -1 and the reply says why. May wait for the resolver; what that says is remembered for a minute. */
int peer_admit(struct call *c);

#endif
