/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_DRIFT_H
#define TOPIARY_REGISTRY_DRIFT_H

#include "bases.h"
#include "parser.h"

/*
 * How a document differs from what its class is expected to be (topo/compare.h), beyond what tells twins apart: a JSON list of changes,
 * gravest first, and the gravest severity, a constant. Both NULL when it does not. Free with drift_free.
 */
struct drift {
	char *json;
	const char *severity;
};
void drift_free(struct drift *d);

/* Of a document that differs from a base in fields of its form alone: no parser is asked. 0 or -1. */
int drift_of_fields(const struct book *book, const struct buf *xml, struct drift *out, struct err *e);

/* Of any other, against a base's document, or against that of the class's golden base. 0 or -1. */
struct comparer {
	struct bases *bases;
	struct db *db;
	struct parser *parser;
};
int drift_from_base(const struct comparer *c, int base, const char *node, const struct buf *xml, struct drift *out, struct err *e);
int drift_from_class(const struct comparer *c, int class, const char *node, const struct buf *xml, struct drift *out, struct err *e);

#endif
