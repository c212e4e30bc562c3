/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "drift.h"

#include <jansson.h>

#include "hwcmp/compare.h"

/*
 * Notes
 *
 * No data. Any thread, with its connection; bases are acquired while their text is compared.
 */

static void add_value(const struct line_index *text, const struct field *f, struct buf *out)
{
	const char *value = text->text + text->starts[f->line] + f->start;

	buf_add(out, value, strcspn(value, "\""));
}

/* Appends to list when the field differs in more than identity. */
static int field_drift(const struct cached_base *cached, size_t i, const struct line_index *doc, json_t *list,
		       enum severity *worst,
		       struct err *e)
{
	const struct base_field_fact *fact = &base_metadata(cached)->facts[i];
	struct buf from = {0}, to = {0};
	struct change c;
	int rc = 0;

	if (compare_fact(fact->name) == SEVERITY_IDENTITY)
		return 0;
	add_value(&cached->lines, &cached->layout.fields[i], &from);
	add_value(doc, &cached->layout.fields[i], &to);
	if (from.failed || to.failed)
		rc = err_set(e, "out of memory");
	else if (strcmp(from.data, to.data) &&
		 (rc = change_of_fact(fact->object, fact->name, from.data, to.data, &c, e)) == 0) {
		if (c.severity > SEVERITY_IDENTITY)
			json_array_append_new(list, change_to_json(&c));
		*worst = c.severity > *worst ? c.severity : *worst;
		change_free(&c);
	}
	buf_free(&from);
	buf_free(&to);
	return rc;
}

/* The fields of most layouts hold identity alone. */
static bool may_drift(const struct cached_base *cached)
{
	const struct base_metadata *meta = base_metadata(cached);

	for (size_t i = 0; i < cached->layout.n; i++)
		if (compare_fact(meta->facts[i].name) != SEVERITY_IDENTITY)
			return true;
	return meta->drift;
}

int drift_of_fields(const struct cached_base *cached, const struct buf *xml, struct drift *out, struct err *e)
{
	struct drift d = {0};
	enum severity worst;
	struct line_index doc;
	json_t *list;
	int rc = 0, severity;

	if (!may_drift(cached)) {
		*out = d;
		return 0;
	}
	if (line_index_build(xml->data, xml->len, &doc))
		return err_set(e, "out of memory");
	const struct base_metadata *meta = base_metadata(cached);
	json_t *changes = meta->drift ? json_loads(meta->drift, 0, NULL) : NULL, *first;

	list = changes ? changes : json_array();
	first = json_array_get(list, 0);
	severity = first ? severity_parse(json_string_value(json_object_get(first, "severity"))) : -1;
	worst = severity > 0 ? severity : SEVERITY_IDENTITY;
	for (size_t i = 0; rc == 0 && i < cached->layout.n; i++)
		rc = field_drift(cached, i, &doc, list, &worst, e);
	if (rc == 0 && worst > SEVERITY_IDENTITY) {
		d = (struct drift){ json_dumps(list, JSON_COMPACT), severity_name(worst) };
		rc = d.json ? 0 : err_set(e, "out of memory");
	}
	json_decref(list);
	line_index_free(&doc);
	if (rc == 0)
		*out = d;
	return rc;
}

int drift_from_base(const struct drift_comparer *c, int base, const char *node, const struct buf *xml,
		    struct drift *out, struct err *e)
{
	const struct cached_base *cached = bases_acquire(c->bases, c->db, base, e);
	struct drift d = {0};
	struct buf expected;
	enum parser_result rc;
	int worst;

	if (!cached)
		return -1;
	expected = (struct buf){ .data = cached->text, .len = cached->len };
	rc = parser_compare(c->parser, node, &expected, xml, 1, c->kept, &d.json, &worst, e);
	bases_release(c->bases, cached);
	if (rc == PARSER_REFUSED && c->refused)
		*c->refused = true;
	if (rc != PARSER_OK)
		return -1;
	if (worst > SEVERITY_IDENTITY)
		d.severity = severity_name(worst);
	else
		drift_free(&d);
	*out = d;
	return 0;
}

int drift_from_class(const struct drift_comparer *c, int class, const char *node, const struct buf *xml,
		     struct drift *out, struct err *e)
{
	char baseline[DB_KEY];
	int rc = db_query_key(c->db, baseline, e, "SELECT baseline FROM class WHERE id = $1", 1, &DB_NUMBER(class));

	if (rc <= 0)
		return rc ? -1 : err_set(e, "class c%d does not exist any more", class);
	return drift_from_base(c, atoi(baseline), node, xml, out, e);
}

void drift_free(struct drift *d)
{
	free(d->json);
	*d = (struct drift){0};
}
