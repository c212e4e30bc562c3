/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_UPKEEP_HERALD_H
#define TOPIARY_REGISTRY_UPKEEP_HERALD_H

#include "upkeep_run.h"

/*
 * Runs DriftHook once for each node that newly drifts from its class, most severe first: DriftHook NODE SEVERITY, the
 * changes as JSON on standard input (parser_compare), and TOPIARY_NODE, TOPIARY_SEVERITY and TOPIARY_CLASS in an
 * otherwise empty environment. Its output is logged. When it fails or takes more than half a minute, it is run again in
 * later runs of upkeep, three times in all. Marked as reported only afterwards: a hook interrupted by topiaryd's stop
 * is run again. A step of upkeep. 0, or -1 with an error: the program is missing, or writable by others.
 */
int drift_hook_run(struct upkeep_run *p, struct err *e);

#endif
