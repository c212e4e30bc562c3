/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "changes.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

json_t *changes_to_json(const struct changes *c)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < c->n; i++)
		if (json_array_append_new(list, change_to_json(&c->list[i]))) {
			json_decref(list);
			return NULL;
		}
	return list;
}

static int direction_parse(const char *name)
{
	for (int d = 0; d < DIRECTION_COUNT; d++)
		if (!strcmp(change_direction_name(d), name))
			return d;
	return -1;
}

static char *member_text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return strdup(s ? s : "");
}

static int change_from_json(const json_t *o, struct change *out, struct err *e)
{
	const char *severity = json_string_value(json_object_get(o, "severity"));
	const char *direction = json_string_value(json_object_get(o, "direction"));
	int s = severity ? severity_parse(severity) : -1, d = direction ? direction_parse(direction) : -1;
	struct change c;

	if (s < 0 || d < 0 || !json_is_string(json_object_get(o, "words")))
		return err_set(e, "the registry's answer has a change without severity, direction or words");
	c = (struct change){ s, d, member_text(o, "object"), member_text(o, "what"), member_text(o, "from"),
			     member_text(o, "to"), member_text(o, "words") };
	if (!c.object || !c.what || !c.from || !c.to || !c.words) {
		change_free(&c);
		return err_set(e, "out of memory");
	}
	*out = c;
	return 0;
}

int changes_from_json(const json_t *list, struct changes *out, struct err *e)
{
	struct changes c = {0};
	const json_t *o;
	size_t i;

	if (!json_is_array(list))
		return err_set(e, "the registry's answer has no list of changes");
	if (!(c.list = calloc(json_array_size(list) + 1, sizeof(*c.list))))
		return err_set(e, "out of memory");
	json_array_foreach(list, i, o) {
		if (change_from_json(o, &c.list[c.n], e)) {
			changes_free(&c);
			return -1;
		}
		c.n++;
	}
	*out = c;
	return 0;
}

size_t changes_count(const struct changes *c, enum severity s)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		n += c->list[i].severity == s;
	return n;
}

json_t *changes_counts(const struct changes *c)
{
	json_t *o = json_object();

	/* Of a comparison, which finds no slow node. */
	for (int s = SEVERITY_COUNT - 1; o && s >= 0; s--)
		if (s != SEVERITY_SLOW)
			json_object_set_new(o, severity_name(s), json_integer(changes_count(c, s)));
	return o;
}

int drift_severity_parse(const char *name)
{
	int severity = severity_parse(name);

	return severity < SEVERITY_COSMETIC ? -1 : severity;
}

void change_print(const struct change *c, FILE *out)
{
	static const char *const colours[SEVERITY_COUNT] = {
		[SEVERITY_IDENTITY] = "\033[2m",
		[SEVERITY_COSMETIC] = "",
		[SEVERITY_WIRING] = "\033[33m",
		[SEVERITY_SLOW] = "\033[33m",
		[SEVERITY_CAPACITY] = "\033[31m",
	};
	bool coloured = isatty(fileno(out)) && *colours[c->severity];

	fprintf(out, "%s%-8s  ", coloured ? colours[c->severity] : "", severity_name(c->severity));
	for (const char *p = c->words; *p; p++)
		putc(iscntrl((unsigned char)*p) ? ' ' : *p, out);
	fprintf(out, "%s\n", coloured ? "\033[0m" : "");
}
