/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_HTTP_READS_H
#define TOPIARY_REGISTRY_HTTP_READS_H

#include "service.h"

/* GET of nodes, facts, drift, shapes and classes from PostgreSQL's views (sql/0002_views.sql). Each fills the reply. */
void read_nodes(struct call *c);
void read_node(struct call *c);
void read_node_facts(struct call *c);
void read_node_drift(struct call *c);
void read_node_costs(struct call *c);
void read_facts(struct call *c);
void read_drift(struct call *c);
void read_shapes(struct call *c);
void read_classes(struct call *c);
void read_snapshot(struct call *c);

#endif
