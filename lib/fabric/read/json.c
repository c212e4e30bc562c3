/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/read/json.h"

#include <stdarg.h>

#include "fabric/model/names.h"
#include "fabric/recognise/draft.h"

/* --- written --- */

static json_t *numbers_json(const unsigned *list, size_t n)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(array, json_integer(list[i]));
	return array;
}

/* Each host with its position on every level, and its switches, from the top. */
static json_t *places_json(const struct hierarchy *h)
{
	json_t *hosts = json_array();

	for (unsigned i = 0; h && i < h->nhosts; i++) {
		const struct hierarchy_host *host = &h->hosts[i];
		json_t *path = json_array();

		for (unsigned g = host->group;; g = h->groups[g].above) {
			json_array_insert_new(path, 0, json_string(h->groups[g].name));
			if (!h->groups[g].level)
				break;
		}
		json_array_append_new(hosts, json_pack("{s:s, s:o, s:o}", "host", host->name,
						       "at", numbers_json(host->at, h->nlevels),
						       "path", path));
	}
	return hosts;
}

static json_t *planes_json(const struct fabric *f)
{
	json_t *planes = json_array();

	for (unsigned i = 0; i < f->nplanes; i++) {
		const struct fabric_plane *p = &f->planes[i];

		json_array_append_new(planes, json_pack("{s:s, s:I, s:I, s:I, s:I}", "kind", fabric_kind_name(p->kind),
							"switches", (json_int_t) p->switches,
							"hosts", (json_int_t) p->hosts,
							"links", (json_int_t) p->links,
							"cables", (json_int_t) p->cables));
	}
	return planes;
}

static json_t *guid_json(uint64_t guid)
{
	return guid ? json_sprintf("%016llx", (unsigned long long) guid) : json_null();
}

static json_t *nodes_json(const struct fabric *f, unsigned from, unsigned to)
{
	json_t *nodes = json_array();

	for (const struct fabric_node *n = &f->nodes[from]; n < &f->nodes[to]; n++) {
		json_t *plane = n->plane == FABRIC_NO_PLANE ? json_null() : json_integer(n->plane);
		json_t *j = json_pack("{s:s, s:o, s:o}", "name", n->name, "guid", guid_json(n->guid), "plane", plane);

		if (n->description && strcmp(n->description, n->name))
			json_object_set_new(j, "told", json_string(n->description));	/* omitted unless it is UTF-8 */
		json_object_set_new(j, n->is_switch ? "rank" : "known",
				    n->is_switch ? json_integer(n->rank) : json_boolean(n->named));
		json_array_append_new(nodes, j);
	}
	return nodes;
}

static json_t *hosts_json(const struct fabric *f)
{
	json_t *hosts = nodes_json(f, f->nswitches, f->nnodes), *host;
	size_t i;

	json_array_foreach(hosts, i, host)
		json_object_set_new(host, "adapters", json_array());
	for (i = 0; i < f->nadapters; i++) {
		const struct fabric_adapter *a = &f->adapters[i];

		host = json_array_get(hosts, a->host - f->nswitches);
		json_array_append_new(json_object_get(host, "adapters"),
				      json_pack("{s:o, s:o}", "guid", guid_json(a->guid), "port", guid_json(a->port)));
	}
	return hosts;
}

static json_t *links_json(const struct fabric *f)
{
	json_t *links = json_array();

	for (unsigned i = 0; i < f->nlinks; i++) {
		const struct fabric_link *l = &f->links[i];

		json_array_append_new(links, json_pack("{s:s, s:s, s:I, s:I}", "a", f->nodes[l->a].name,
						       "b", f->nodes[l->b].name,
						       "cables", (json_int_t) l->count, "mbps", (json_int_t) l->mbps));
	}
	return links;
}

/* The levels as the file stated them: the switches, derived from them, do not have all of that. */
static json_t *text_json(const struct fabric *f)
{
	struct buf text = {0};
	json_t *j;

	if (!f->given || hierarchy_write(f->planes[0].levels, &text, NULL))
		return json_null();
	j = json_string(text.data);
	buf_free(&text);
	return j;
}

json_t *fabric_json_parts(const struct fabric *f)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "text", text_json(f), "planes", planes_json(f),
			 "switches", nodes_json(f, 0, f->nswitches), "hosts", hosts_json(f), "links", links_json(f));
}

json_t *fabric_json(const struct fabric *f)
{
	static const char *const forms[] = { "tree", "torus", "graph" };
	json_t *j = fabric_json_parts(f), *planes = json_object_get(j, "planes"), *plane, *odd = json_array();
	struct buf lines = {0};
	char *save = NULL;
	size_t i;

	json_array_foreach(planes, i, plane) {
		const struct hierarchy *h = f->planes[i].levels;
		json_t *levels = json_array();

		for (const struct hierarchy_level *l = h ? h->level : NULL; l && l < h->level + h->nlevels; l++) {
			json_t *level = json_pack("{s:s, s:I, s:o, s:o, s:I}", "form", forms[l->form],
						  "size", (json_int_t) l->size,
						  "dimensions", numbers_json(l->dim, l->dims),
						  "costs", numbers_json(l->cost, l->dims),
						  "pruned", (json_int_t) l->pruned);

			if (l->hops)
				json_object_set_new(level, "hops", numbers_json(l->hops, (size_t) l->size * l->size));
			json_array_append_new(levels, level);
		}
		json_object_set_new(plane, "levels", levels);
		json_object_set_new(plane, "places", places_json(h));
	}
	fabric_list_anomalies(f, &lines);
	for (char *line = lines.data ? strtok_r(lines.data, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		json_array_append_new(odd, json_string(line));
	buf_free(&lines);
	json_object_set_new(j, "odd", odd);
	return j;
}

/* --- read --- */

enum { MAX_NAME = 255, MAX_CABLES = 1 << 20 };	/* of all links together */

/* The current position in the document. */
struct reading {
	const char *name, *list;
	size_t at;
	struct fabric_draft *draft;
	json_t *ends;		/* ends of switches and hosts, by name */
	unsigned cables;
	struct err *err;
};

static int item_error(const struct reading *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int item_error(const struct reading *r, const char *fmt, ...)
{
	char what[300];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	return err_set(r->err, "%s: %s[%zu]: %s", r->name, r->list, r->at, what);
}

/* A GUID of o; 0 if it is null or absent. */
static int read_guid(const struct reading *r, const json_t *o, const char *key, uint64_t *out)
{
	const json_t *value = json_object_get(o, key);
	const char *text = json_string_value(value);
	uint64_t guid;
	int used = 0;

	*out = 0;
	if (!value || json_is_null(value))
		return 0;
	if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16 ||
	    sscanf(text, "%16" SCNx64 "%n", &guid, &used) != 1)
		return item_error(r, "%s: expected 16 hexadecimal digits or null", key);
	*out = guid;
	return 0;
}

static const char *read_name(const struct reading *r, const json_t *o, const char *key)
{
	const char *name = json_string_value(json_object_get(o, key));

	if (name && names_fit(name) && strlen(name) <= MAX_NAME)
		return name;
	item_error(r, "%s: expected a name: letters, digits, '.', '_' and '-'", key);
	return NULL;
}

/* Creates the end of a switch or host with its name and description. */
static int begin_end(struct reading *r, const json_t *o, enum draft_end_kind kind, const char *name)
{
	const char *told = json_string_value(json_object_get(o, "told"));
	int end;

	if (json_object_get(r->ends, name))
		return item_error(r, "%s: duplicate name", name);
	if ((end = draft_end(r->draft, kind, name)) < 0 || json_object_set_new(r->ends, name, json_integer(end)) ||
	    (told && draft_describe(r->draft, end, told, strlen(told))))
		return item_error(r, "out of memory");
	return end;
}

static int read_switch(struct reading *r, const json_t *o)
{
	const char *name = read_name(r, o, "name");
	uint64_t guid;
	int end;

	if (!name || read_guid(r, o, "guid", &guid) || (end = begin_end(r, o, END_SWITCH, name)) < 0)
		return -1;
	draft_guid(r->draft, end, guid, 0, 0);
	return draft_name(r->draft, end, name) ? item_error(r, "out of memory") : 0;
}

/* The adapters of an unknown host are those of one card: the GUID of the first is any number for it. */
static int read_adapter(struct reading *r, const json_t *o, int end, const char *host, uint64_t *card)
{
	uint64_t guid, port;

	if (read_guid(r, o, "guid", &guid) || read_guid(r, o, "port", &port))
		return -1;
	if (!guid && !port)
		return item_error(r, "adapter without a GUID");
	draft_guid(r->draft, end, guid, port, 0);
	*card = *card ? *card : guid ? guid : port;
	return (host ? draft_name(r->draft, end, host) : draft_system(r->draft, end, *card, true)) ?
		item_error(r, "out of memory") : 0;
}

/* All cables are attributed to the first adapter: the document does not have the adapter of each. */
static int read_host(struct reading *r, const json_t *o)
{
	const json_t *adapters = json_object_get(o, "adapters"), *known = json_object_get(o, "known"), *adapter;
	const char *name = read_name(r, o, "name"), *host = json_is_true(known) ? name : NULL;
	char key[MAX_NAME + 32];
	uint64_t card = 0;
	size_t i;
	int end;

	if (!name)
		return -1;
	if (!json_is_boolean(known) || !json_is_array(adapters))
		return item_error(r, "%s: expected known (true or false) and a list of adapters", name);
	if (!host && !json_array_size(adapters))
		return item_error(r, "%s: an unknown host needs an adapter", name);
	if ((end = begin_end(r, o, json_array_size(adapters) ? END_ADAPTER : END_HOST, name)) < 0)
		return -1;
	json_array_foreach(adapters, i, adapter) {
		snprintf(key, sizeof(key), "%s %zu", name, i);
		if ((i && (end = draft_end(r->draft, END_ADAPTER, key)) < 0) || read_adapter(r, adapter, end, host,
											&card))
			return -1;
	}
	return 0;
}

static int read_end(const struct reading *r, const json_t *o, const char *key)
{
	const char *name = json_string_value(json_object_get(o, key));
	const json_t *end = name ? json_object_get(r->ends, name) : NULL;

	return end ? (int) json_integer_value(end) :
	       item_error(r, "%s: neither a switch nor a host of the fabric", key);
}

static int read_link(struct reading *r, const json_t *o)
{
	int a = read_end(r, o, "a"), b = a < 0 ? -1 : read_end(r, o, "b");
	json_int_t count = json_integer_value(json_object_get(o, "cables")),
		   mbps = json_integer_value(json_object_get(o, "mbps"));

	if (b < 0)
		return -1;
	if (count < 1 || count > MAX_CABLES - (json_int_t) r->cables)
		return item_error(r, "cables: expected a number from 1; the sum may be at most %d", MAX_CABLES);
	if (mbps < 0 || mbps > UINT32_MAX)
		return item_error(r, "mbps: expected a number up to %u", UINT32_MAX);
	r->cables += count;
	for (json_int_t i = 0; i < count; i++)
		if (draft_cable(r->draft, a, 0, b, 0, mbps / count + (i < mbps % count)))
			return item_error(r, "out of memory");
	return 0;
}

static int read_list(struct reading *r, const json_t *j, const char *list,
		     int (*read)(struct reading *r, const json_t *o))
{
	const json_t *array = json_object_get(j, list), *o;

	r->list = list;
	if (!json_is_array(array))
		return err_set(r->err, "%s: missing list of %s", r->name, list);
	json_array_foreach(array, r->at, o)
		if (read(r, o))
			return -1;
	return 0;
}

static int read_names(struct reading *r, const json_t *j, struct fabric_names *names)
{
	const json_t *array = json_object_get(j, "names"), *o;
	uint64_t guid;

	r->list = "names";
	json_array_foreach(array, r->at, o) {
		const char *node = read_name(r, o, "node");

		if (!node || read_guid(r, o, "guid", &guid) || fabric_names_add(names, guid, node, r->err))
			return -1;
	}
	return 0;
}

struct fabric *fabric_of_json(const json_t *j, const char *name, struct err *e)
{
	const json_t *text = json_object_get(j, "text");
	struct hierarchy *h;

	if (!json_is_string(text)) {
		struct reading r = { .name = name, .draft = draft_new(), .ends = json_object(), .err = e };
		struct fabric_names *names = fabric_names_new();
		struct fabric *f = NULL;

		if (!r.draft || !r.ends || !names)
			err_set(e, "%s: out of memory", name);
		else if (read_list(&r, j, "switches", read_switch) == 0 && read_list(&r, j, "hosts", read_host) == 0 &&
			 read_list(&r, j, "links", read_link) == 0 && read_names(&r, j, names) == 0)
			f = draft_finish(r.draft, names, e);
		fabric_names_free(names);
		json_decref(r.ends);
		draft_free(r.draft);
		return f;
	}
	h = hierarchy_parse(json_string_value(text), json_string_length(text), name, e);
	return h ? fabric_given(h, e) : NULL;
}
