/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_PLAIN_H
#define TOPIARY_SPANK_PLAIN_H

/*
 * Text with a user's words in it, to be logged among others' lines: in place, each control character becomes '?', so that it is one
 * line and does nothing to a terminal. Returns text.
 */
char *plain(char *text);

#endif
