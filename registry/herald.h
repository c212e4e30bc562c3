/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_HERALD_H
#define TOPIARY_REGISTRY_HERALD_H

#include "pass.h"

/*
 * Tell the site of drift: run DriftHook once for each node that newly is not what its class is, the gravest first, as DriftHook NODE
 * SEVERITY with the changes as JSON on its standard input (parser_compare) and TOPIARY_NODE, TOPIARY_SEVERITY and TOPIARY_CLASS in an
 * otherwise empty environment. What it prints is logged. When it fails or takes more than half a minute, it is run again at the next
 * passes, three times in all. It is noted as told only afterwards: a hook that topiaryd's end cut short is run again.
 * 0, or -1 with an error: no such program, or one that others could change, is run for nobody.
 */
int herald_run(struct pass *p, struct err *e);

#endif
