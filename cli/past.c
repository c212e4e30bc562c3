/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "past.h"

#include <string.h>

#include "base/hash.h"
#include "shape/strings.h"

json_t *past_describe(const struct buf *xml, const struct tree *tree, const struct target *t, struct err *e)
{
	char sha256[HASH_HEX];
	struct strings s;
	json_t *j;

	if (strings_make(tree, &s, e))
		return NULL;
	hash_hex(xml->data, xml->len, sha256);
	j = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:I, s:s}", "node", t->node, "at", t->at, "hierarchy",
		      s.hierarchy, "cores_only", s.cores, "detail", s.detail, "allocation", s.allocation,
		      "cores", (int) s.ncores, "pus", (int) s.npus, "xml_bytes", (json_int_t) xml->len,
		      "sha256", sha256);
	strings_free(&s);
	if (!j)
		err_set(e, "out of memory");
	return j;
}

json_t *past_facts(const struct tree *tree, const struct target *t, struct err *e)
{
	json_t *list = json_array(), *j = NULL;
	struct buf text = {0};
	char *line, *rest;

	tree_facts(tree, &text);
	for (rest = text.data; rest && (line = strsep(&rest, "\n")) && *line;) {
		const char *object, *name;

		strsep(&line, "\t");
		object = strsep(&line, "\t");
		name = strsep(&line, "\t");
		json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "object", object, "fact", name,
						      "value", line));
	}
	if (!text.failed)
		j = json_pack("{s:s, s:s, s:O}", "node", t->node, "at", t->at, "facts", list);
	if (!j)
		err_set(e, "out of memory");
	json_decref(list);
	buf_free(&text);
	return j;
}
