/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_FABRIC_READ_READERS_H
#define TOPIARY_FABRIC_READ_READERS_H

#include "fabric/model/lines.h"
#include "fabric/recognise/draft.h"

/* One reader for each format: reads the whole file into m. 0, or -1 with an error naming file and line. */
int read_ports(struct lines *l, struct fabric_draft *m);		/* ibnetdiscover -p */
int read_discovered(struct lines *l, struct fabric_draft *m);		/* ibnetdiscover */
int read_slurm(struct lines *l, struct fabric_draft *m);		/* topology.conf */
int read_yaml(struct lines *l, struct fabric_draft *m);		/* topology.yaml */

/* Output of ibnetdiscover that is not part of the fabric: comments, and its path when verbose. */
bool reader_is_chatter(const char *line);

/* Data rate in Mbit/s of "4x" and "QDR"; 0: unknown. */
unsigned reader_ib_mbps(const char *width, const char *speed);

#endif
