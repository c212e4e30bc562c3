/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_IMAGES_H
#define TOPIARY_SPANK_IMAGES_H

#include <stdbool.h>

#include "clip.h"
#include "export.h"

/*
 * The topologies made on this node, for all later steps with the same cores of the same export: RunDir/cache, root's own,
 * KEY.xml and KEY.shm, the same files as those of the steps that use them. Only whole files get there, and each by one link(2), so
 * that steps need no lock and a crash leaves at most a KEY.xml alone. The longest unused go first.
 */
struct images_key {
	char text[200];
};

/* The folder below RunDir, made if it is not there. A descriptor, or -1: steps then do without. */
int images_open(int root);

/* cores: NULL for all. */
struct images_key images_key(const struct export *x, const char *cores, bool here);

/* Link both into a step's folder. 1, or 0 with the folder as it was: there is none. */
int images_take(int images, const struct images_key *key, int dir);

/* Keep what a step has made. That it cannot be is no error. */
void images_keep(int images, const struct images_key *key, const struct clipped *made);

#endif
