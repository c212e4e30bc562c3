/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "fabric/model/lines.h"
#include "fabric/recognise/draft.h"

/* One reader for each format: reads the whole file into m. 0, or -1 with an error naming file and line. */
int read_slurm(struct lines *l, struct fabric_draft *m);		/* topology.conf */
int read_yaml(struct lines *l, struct fabric_draft *m);		/* topology.yaml */
