/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/model/json.h"

#include <string.h>

static const char *form_name(enum hierarchy_form form)
{
	static const char *const names[] = { "tree", "torus", "graph" };

	return names[form];
}

static json_t *numbers_json(const unsigned *list, size_t n)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(array, json_integer(list[i]));
	return array;
}

static json_t *level_json(const struct hierarchy_level *l)
{
	json_t *j = json_pack("{s:s, s:I, s:o, s:o, s:I}", "form", form_name(l->form), "size", (json_int_t) l->size,
			      "dimensions", numbers_json(l->dim, l->dims), "costs", numbers_json(l->cost, l->dims),
			      "pruned", (json_int_t) l->pruned);

	if (l->hops)
		json_object_set_new(j, "hops", numbers_json(l->hops, (size_t) l->size * l->size));
	return j;
}

static json_t *levels_json(const struct hierarchy *h)
{
	json_t *levels = json_array();

	for (unsigned l = 0; h && l < h->nlevels; l++)
		json_array_append_new(levels, level_json(&h->level[l]));
	return levels;
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

static json_t *node_json(const struct fabric_node *n)
{
	json_t *plane = n->plane == FABRIC_NO_PLANE ? json_null() : json_integer(n->plane);
	json_t *j = json_pack("{s:s, s:o, s:o}", "name", n->name, "guid", guid_json(n->guid), "plane", plane);

	if (n->description && strcmp(n->description, n->name))
		json_object_set_new(j, "told", json_string(n->description));	/* omitted unless it is UTF-8 */
	if (n->is_switch)
		json_object_set_new(j, "rank", json_integer(n->rank));
	else
		json_object_set_new(j, "known", json_boolean(n->named));
	return j;
}

static json_t *nodes_json(const struct fabric *f, unsigned from, unsigned to)
{
	json_t *nodes = json_array();

	for (unsigned i = from; i < to; i++)
		json_array_append_new(nodes, node_json(&f->nodes[i]));
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

static json_t *odd_json(const struct fabric *f)
{
	json_t *lines = json_array();
	struct buf odd = {0};
	char *save = NULL;

	fabric_list_anomalies(f, &odd);
	for (char *line = odd.data ? strtok_r(odd.data, "\n", &save) : NULL; line; line = strtok_r(NULL, "\n", &save))
		json_array_append_new(lines, json_string(line));
	buf_free(&odd);
	return lines;
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
	json_t *j = fabric_json_parts(f), *planes = json_object_get(j, "planes"), *plane;
	size_t i;

	json_array_foreach(planes, i, plane) {
		json_object_set_new(plane, "levels", levels_json(f->planes[i].levels));
		json_object_set_new(plane, "places", places_json(f->planes[i].levels));
	}
	if (j)
		json_object_set_new(j, "odd", odd_json(f));
	return j;
}
