/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_FABRIC_READ_SLURM_PARTS_H
#define TOPIARY_FABRIC_READ_SLURM_PARTS_H

#include "fabric/model/lines.h"
#include "fabric/recognise/draft.h"

/* A line of topology.conf(5) or an item of topology.yaml(5), for their readers to add to a fabric. */
struct slurm_record {
	char *name, *switches, *nodes, *speed, *block, *ring, *sizes;	/* NULL: absent; sizes is modified */
};

enum { SLURM_BLOCK_SIZES = 16 };

struct slurm {
	struct lines *lines;		/* positioned at the record's line */
	struct fabric_draft *draft;
	struct mention *mentions;	/* by end */
	unsigned nmentions;
	unsigned *blocks, nblocks;
	unsigned sizes[SLURM_BLOCK_SIZES], nsizes;
	unsigned parent;		/* whose children are being added */
};

/* Each 0, or -1 with an error that names the line. */
int slurm_add(struct slurm *s, const struct slurm_record *r);

/*
 * Checks all records together, if rc states that each was valid; s is empty afterwards. Returns rc, or -1 with an
 * error.
 */
int slurm_end(struct slurm *s, int rc);

#endif
