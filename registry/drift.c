/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "drift.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/compare.h"

static json_t *change_json(const struct change *c)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "severity", severity_name(c->severity), "direction",
			 direction_name(c->direction), "object", c->object, "what", c->what, "from", c->from, "to", c->to,
			 "words", c->words);
}

static void value_at(const struct lined *text, const struct field *f, struct buf *out)
{
	const char *value = text->text + text->starts[f->line] + f->start;

	buf_add(out, value, strcspn(value, "\""));
}

/* One field: noted in list when the node differs from its base in more than what tells twins apart. */
static int field_drift(const struct book *book, size_t i, const struct lined *doc, json_t *list, enum severity *worst,
		       struct err *e)
{
	const struct field_fact *fact = &((const struct base_note *) book->note)->facts[i];
	struct buf from = {0}, to = {0};
	struct change c;
	int rc = 0;

	if (compare_fact(fact->name) == SEVERITY_IDENTITY)
		return 0;
	value_at(&book->lines, &book->fields.fields[i], &from);
	value_at(doc, &book->fields.fields[i], &to);
	if (from.failed || to.failed)
		rc = err_set(e, "out of memory");
	else if (strcmp(from.data, to.data) && (rc = change_of_fact(fact->object, fact->name, from.data, to.data, &c, e)) == 0) {
		if (c.severity > SEVERITY_IDENTITY)
			json_array_append_new(list, change_json(&c));
		*worst = c.severity > *worst ? c.severity : *worst;
		change_free(&c);
	}
	buf_free(&from);
	buf_free(&to);
	return rc;
}

static void base_drift(const struct base_note *note, json_t **list, enum severity *worst)
{
	json_t *changes = note->drift ? json_loads(note->drift, 0, NULL) : NULL, *first;
	int severity;

	*list = changes ? changes : json_array();
	first = json_array_get(*list, 0);
	severity = first ? severity_parse(json_string_value(json_object_get(first, "severity"))) : -1;
	*worst = severity > 0 ? severity : SEVERITY_IDENTITY;
}

/* Most forms have fields for nothing else than what tells twins apart. */
static bool may_drift(const struct book *book)
{
	const struct base_note *note = book->note;

	for (size_t i = 0; i < book->fields.n; i++)
		if (compare_fact(note->facts[i].name) != SEVERITY_IDENTITY)
			return true;
	return note->drift;
}

int drift_of_fields(const struct book *book, const struct buf *xml, struct drift *out, struct err *e)
{
	struct drift d = {0};
	enum severity worst;
	struct lined doc;
	json_t *list;
	int rc = 0;

	if (!may_drift(book)) {
		*out = d;
		return 0;
	}
	if (lined_make(xml->data, xml->len, &doc))
		return err_set(e, "out of memory");
	base_drift(book->note, &list, &worst);
	for (size_t i = 0; rc == 0 && i < book->fields.n; i++)
		rc = field_drift(book, i, &doc, list, &worst, e);
	if (rc == 0 && worst > SEVERITY_IDENTITY) {
		d = (struct drift){ json_dumps(list, JSON_COMPACT), severity_name(worst) };
		rc = d.json ? 0 : err_set(e, "out of memory");
	}
	json_decref(list);
	lined_free(&doc);
	if (rc == 0)
		*out = d;
	return rc;
}

int drift_from_base(const struct comparer *c, int base, const char *node, const struct buf *xml, struct drift *out, struct err *e)
{
	const struct book *book = bases_take(c->bases, c->db, base, e);
	struct drift d = {0};
	struct buf expected;
	int worst, rc;

	if (!book)
		return -1;
	expected = (struct buf){ .data = book->text, .len = book->len };
	rc = parser_compare(c->parser, node, &expected, xml, 1, &d.json, &worst, e) == PARSER_OK ? 0 : -1;
	shelf_put(bases_shelf(c->bases), book);
	if (rc)
		return -1;
	if (worst > SEVERITY_IDENTITY)
		d.severity = severity_name(worst);
	else
		drift_free(&d);
	*out = d;
	return 0;
}

int drift_from_class(const struct comparer *c, int class, const char *node, const struct buf *xml, struct drift *out, struct err *e)
{
	char key[DB_KEY], golden[DB_KEY];
	int rc;

	snprintf(key, sizeof(key), "%d", class);
	rc = db_key(c->db, golden, e, "SELECT golden FROM class WHERE id = $1", 1, &DB_TEXT(key));
	if (rc <= 0)
		return rc ? -1 : err_set(e, "class c%d is no more", class);
	return drift_from_base(c, atoi(golden), node, xml, out, e);
}

void drift_free(struct drift *d)
{
	free(d->json);
	*d = (struct drift){0};
}
