/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "validate.h"

#include <jansson.h>
#include <string.h>

#include "hwcmp/compare.h"
#include "shape/shape.h"

bool validate_text(const struct buf *b)
{
	json_t *j = strlen(b->data) == b->len ? json_stringn(b->data, b->len) : NULL;
	bool is = j;

	json_decref(j);
	return is;
}

bool validate_line(const struct buf *b)
{
	for (size_t i = 0; i < b->len; i++)
		if ((unsigned char)b->data[i] < ' ' || b->data[i] == 0x7f)
			return false;
	return b->len && validate_text(b);
}

static bool is_fact(const char *line, const char *end)
{
	int tabs = 0;

	for (const char *p = line + strspn(line, "0123456789"); p < end; p++) {
		if ((unsigned char)*p < ' ' && *p != '\t')
			return false;
		if (tabs == 0 && *p != '\t')
			return false;
		tabs += *p == '\t';
	}
	return *line != '\t' && tabs == 3;
}

bool validate_facts(const struct buf *b)
{
	const char *end;

	for (const char *p = b->data; *p; p = end + 1)
		if (!(end = strchr(p, '\n')) || !is_fact(p, end))
			return false;
	return validate_text(b);
}

bool validate_shape(const struct buf *text, unsigned cores, unsigned pus)
{
	struct shape *s = validate_line(text) ? shape_parse(text->data, NULL) : NULL;
	bool fits = s && s->cores == cores && s->pus == pus;

	shape_free(s);
	return fits;
}

static bool is_change(json_t *change, int *severity)
{
	static const char *const keys[] = { "severity", "direction", "object", "what", "from", "to", "words" };
	const size_t n = sizeof(keys) / sizeof(keys[0]);
	const char *name = json_string_value(json_object_get(change, keys[0]));

	for (size_t i = 0; i < n; i++)
		if (!json_is_string(json_object_get(change, keys[i])))
			return false;
	*severity = severity_parse(name);
	return json_object_size(change) == n && *severity >= 0;
}

int validate_changes(const struct buf *text)
{
	json_t *list = json_loadb(text->data, text->len, JSON_REJECT_DUPLICATES, NULL), *change;
	int gravest = json_is_array(list) ? SEVERITY_IDENTITY : -1, severity;
	size_t i;

	json_array_foreach(list, i, change) {
		if (!is_change(change, &severity)) {
			gravest = -1;
			break;
		}
		gravest = severity > gravest ? severity : gravest;
	}
	json_decref(list);
	return gravest;
}
