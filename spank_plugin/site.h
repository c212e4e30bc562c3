/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_SITE_H
#define TOPIARY_SPANK_SITE_H

#include <slurm/spank.h>

/*
 * slurm_spank_init on the node: what the site gives to tasks whose user does not say, before Slurm hands over what the
 * user says. Always 0.
 */
int site_defaults(spank_t sp, int argc, char **argv);

#endif
