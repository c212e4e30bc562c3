/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_FABRIC_READ_SLURM_PARTS_H
#define TOPIARY_FABRIC_READ_SLURM_PARTS_H

#include "fabric/model/lines.h"
#include "fabric/recognise/make.h"

/* What topology.conf(5) says in a line and topology.yaml(5) in an item, for their readers to add to a fabric. */
struct slurm_record {
	char *name, *switches, *nodes, *speed, *block, *ring, *sizes;	/* NULL: not told; sizes is cut up */
};

enum { SLURM_BLOCK_SIZES = 16 };

struct slurm {
	struct lines *lines;		/* whose line is that of the record */
	struct making *making;
	struct mention *mentions;	/* by end */
	unsigned nmentions;
	unsigned *blocks, nblocks;
	unsigned sizes[SLURM_BLOCK_SIZES], nsizes;
	unsigned parent;		/* whose children are being added */
};

/* Each 0, or -1 with an error that names the line. */
int slurm_add(struct slurm *s, const struct slurm_record *r);

/*
 * What all records have to say together, where rc tells that each was fine; s is empty afterwards. rc, or -1 with an
 * error.
 */
int slurm_end(struct slurm *s, int rc);

#endif
