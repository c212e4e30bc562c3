/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/conf.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct load {
	const struct conf_item *items;
	void *target;
	unsigned *lines, line;	/* line: that was read last */
	FILE *file;
	char why[256];
};

static int key_set(const struct conf_item *item, void *target, const char *value, char *why, size_t size)
{
	void *field = (char *) target + item->offset;
	unsigned long n;
	char *end;

	if (item->type == CONF_STRING) {
		char *copy = strdup(value);

		if (!copy)
			return -1;
		free(*(char **) field);
		*(char **) field = copy;
		return 0;
	}
	errno = 0;
	n = strtoul(value, &end, 10);
	if (errno || end == value || *end || *value == '-' || n < item->min || n > item->max) {
		snprintf(why, size, "%s=%s: expected a number from %u to %u", item->key, value, item->min, item->max);
		return -1;
	}
	*(unsigned *) field = n;
	return 0;
}

static int on_value(void *user, const char *section, const char *key, const char *value)
{
	struct load *l = user;

	for (const struct conf_item *i = l->items; i->key && !*section; i++) {
		if (strcasecmp(i->key, key))
			continue;
		if (l->lines)
			l->lines[i - l->items] = l->line;
		return key_set(i, l->target, value, l->why, sizeof(l->why)) == 0;
	}
	if (!*l->why)
		snprintf(l->why, sizeof(l->why), "unknown key '%s%s%s'", section, *section ? "." : "", key);
	return 0;
}

/* inih counts lines, too, but names none to on_value. */
static char *next_line(char *text, int size, void *user)
{
	struct load *l = user;

	l->line++;
	return fgets(text, size, l->file);
}

void conf_free(const struct conf_item *items, void *target)
{
	for (const struct conf_item *i = items; i->key; i++) {
		char **field = (char **) ((char *) target + i->offset);

		if (i->type == CONF_STRING) {
			free(*field);
			*field = NULL;
		}
	}
}

int conf_load(const char *path, const struct conf_item *items, void *target, unsigned *lines, struct err *e)
{
	struct load l = { .items = items, .target = target, .lines = lines };
	int line = 0;

	for (const struct conf_item *i = items; i->key; i++) {
		if (lines)
			lines[i - items] = 0;
		if (i->type == CONF_STRING)
			*(char **) ((char *) target + i->offset) = NULL;
		if (key_set(i, target, i->fallback, l.why, sizeof(l.why)))
			goto error;
	}
	if (!(l.file = fopen(path, "re"))) {
		if (errno == ENOENT)
			return 0;
		snprintf(l.why, sizeof(l.why), "%s", strerror(errno));
		goto error;
	}
	line = ini_parse_stream(next_line, &l, on_value, &l);
	fclose(l.file);
	if (!line)
		return 0;
error:
	conf_free(items, target);
	if (line > 0)
		return err_set(e, "%s:%d: %s", path, line, *l.why ? l.why : "not a Key=Value line");
	return err_set(e, "%s: %s", path, *l.why ? l.why : "cannot be read");
}
