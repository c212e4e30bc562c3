/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_PRINTABLE_H
#define TOPIARY_SPANK_PRINTABLE_H

/*
 * For every message that may contain text of a user's: replace control characters by '?' in place, so that it stays
 * one log line and cannot control a terminal. Returns text.
 */
char *printable(char *text);

#endif
