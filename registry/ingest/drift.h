/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "store/bases.h"
#include "parser.h"

/*
 * Differences of a document from its class's baseline (hwcmp/compare.h), except identity (names, serial numbers,
 * addresses): a JSON list of changes, most severe first, and the highest severity, a constant. Both NULL without drift.
 * Free with drift_free. Called by encode.c and the steps of upkeep.
 */
struct drift {
	char *json;
	const char *severity;
};
void drift_free(struct drift *d);

/* For a document that differs from a base in fields of its layout alone: needs no parser. 0 or -1. */
int drift_of_fields(const struct cached_base *cached, const struct buf *xml, struct drift *out, struct err *e);

/* For any other, against a base's document, or against that of the class's baseline. 0 or -1. */
struct drift_comparer {
	struct bases *bases;
	struct db *db;
	struct parser *parser;
	bool *refused;		/* set when the document can never be compared; or NULL */
	int *kept;		/* the worker that has parsed the document (parser_read), or NULL */
};
int drift_from_base(const struct drift_comparer *c, int base, const char *node, const struct buf *xml,
		    struct drift *out, struct err *e);
int drift_from_class(const struct drift_comparer *c, int class, const char *node, const struct buf *xml,
		     struct drift *out, struct err *e);
