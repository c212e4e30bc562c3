/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_WATCH_SCREEN_H
#define TOPIARY_CLI_WATCH_SCREEN_H

#include <stdbool.h>

#include "player.h"

/*
 * A trace on the whole terminal: a box for each object of the tree, below that of what contains it, with its name, its
 * value, and a bar from green over yellow to red relative to the greatest value at its level. As many levels as fit,
 * unless the user folds others. The only caller of ncurses; for top.c.
 */

/* Is standard output a terminal that is large enough and known, and standard input one too? */
bool screen_is_possible(void);

/*
 * Show the trace until the user quits, a signal ends it, or its recorder, if there is one, has ended (with an error, if
 * the player stays). speed: seconds of
 * the trace a second; INFINITY: each tick as soon as it is there. 0 or -1, with the terminal as before.
 */
int screen_run(struct player *p, double speed, struct err *e);

#endif
