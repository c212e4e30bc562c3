/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_HTTP_SOCK_OWNER_H
#define TOPIARY_REGISTRY_HTTP_SOCK_OWNER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/*
 * The user of the process at the other end of a TCP connection. The kernel knows it when that end is on this host (in
 * this network namespace), and no credential need be trusted for it. fd is the connection, peer its other end. True
 * with *uid; false when the other end is on another host, or sock_diag(7) is not available.
 */
bool sock_owner(int fd, const struct sockaddr *peer, uid_t *uid);

#endif
