/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BASE_CONF_H
#define TOPIARY_BASE_CONF_H

#include <stddef.h>

#include "base/err.h"

enum conf_type {
	CONF_STRING,	/* char *, malloc'ed */
	CONF_UINT,	/* unsigned, in [min, max] */
};

/* One key of a Key=Value file, as Slurm's own files are written: keys in any case, '#' starts a comment line. */
struct conf_item {
	const char *key;
	enum conf_type type;
	size_t offset;		/* of the field in the target */
	const char *fallback;	/* the value when the file does not have the key */
	unsigned min, max;	/* CONF_UINT */
};

/*
 * Set every field of target from the fallbacks, then from path where it exists; items end with a NULL key.
 * An unknown key, a value out of range or a line that is none is an error naming file, line and key: 0, or -1 with
 * target holding nothing. An absent file is no error. Free with conf_free. lines, unless NULL, has an element for each
 * item: the line of the file that its value is from, 0 for the fallback.
 */
int conf_load(const char *path, const struct conf_item *items, void *target, unsigned *lines, struct err *e);
void conf_free(const struct conf_item *items, void *target);

#endif
