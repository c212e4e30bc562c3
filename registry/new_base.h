/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_NEW_BASE_H
#define TOPIARY_REGISTRY_NEW_BASE_H

#include "db.h"
#include "parser.h"

/* A document that is to be a base: all borrowed. */
struct new_base {
	const char *class, *shape, *node;
	const char *drift;		/* from the class's golden base, or NULL */
	const struct buf *xml;
	const struct parsed *parsed;
};

/*
 * Insert its rows, with its own form, in the transaction that is open; base and form are its keys. 0, 1 when there is such a base
 * already, -1.
 */
int base_insert(struct db *db, const struct new_base *n, char base[static DB_KEY], char form[static DB_KEY], struct err *e);

#endif
