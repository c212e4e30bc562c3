/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "cables.h"

#include <math.h>

#include "base/array.h"
#include "base/child.h"
#include "base/string_map.h"
#include "child.h"
#include "cmd.h"
#include "table.h"

/* --- between two hosts --- */

/*
 * The cables from each switch and host to `to` on a shortest path, NO_ROUTE: there is none, and the number of shortest
 * paths, trunks counted cable by cable. Hosts pass nothing on.
 */
enum { NO_ROUTE = ~0u };

json_t *cables_routes(const struct fabric *f, unsigned from, unsigned to)
{
	unsigned *cables = calloc(f->nnodes + 1, sizeof(*cables));
	double *paths = calloc(f->nnodes + 1, sizeof(*paths));
	json_t *list = cables && paths ? json_array() : NULL;

	if (list) {
		bool more = true;

		memset(cables, 0xff, f->nnodes * sizeof(*cables));
		cables[to] = 0;
		paths[to] = 1;
		for (unsigned at = 0; more; at++) {
			more = false;
			for (unsigned i = 0; i < 2 * f->nlinks; i++) {
				const struct fabric_link *l = &f->links[i / 2];
				unsigned near = i % 2 ? l->a : l->b, far = i % 2 ? l->b : l->a;

				if (cables[near] != at || (near >= f->nswitches && near != to) ||
				    (cables[far] != NO_ROUTE && cables[far] != at + 1))
					continue;
				cables[far] = at + 1;
				paths[far] += paths[near] * l->count;
				more = true;
			}
		}
	}
	for (unsigned i = 0; list && i < f->nlinks; i++) {
		const struct fabric_link *first = &f->links[i], *l = first;
		unsigned at = first->a, mbps = l->mbps / l->count;
		json_t *switches = json_array();
		double ways = l->count * paths[at];

		while (first->b == from && cables[at] != NO_ROUTE && at != to) {
			unsigned next = to, k = 0;

			json_array_append_new(switches, json_string(f->nodes[at].name));
			for (; k < f->nlinks; k++) {
				l = &f->links[k];
				next = l->a == at ? l->b : l->a;
				if ((l->a == at || l->b == at) && cables[next] + 1 == cables[at] &&
				    (next < f->nswitches || next == to))
					break;
			}
			mbps = l->mbps / l->count < mbps ? l->mbps / l->count : mbps;
			at = next;
		}
		if (at == to && json_array_size(switches))
			json_array_append_new(list, json_pack("{s:i, s:i, s:I, s:i, s:O}", "plane",
				(int) f->nodes[first->a].plane, "cables", (int) cables[first->a] + 1, "paths",
				(json_int_t) fmin(ways, 1e15), "mbps", (int) mbps, "switches", switches));
		json_decref(switches);
	}
	free(cables);
	free(paths);
	return list;
}

int cables_print_route(const json_t *route, const char *from, const char *to, struct err *e)
{
	const json_t *list = json_object_get(route, "routes"), *r, *name;
	struct table *t = table_new(">PLANE|>CABLES|>PATHS|>GBIT/S|ROUTE");
	size_t i, k;

	if (!json_array_size(list)) {
		table_free(t);
	} else {
		json_array_foreach(list, i, r) {
			struct buf path = {0};

			json_array_foreach(json_object_get(r, "switches"), k, name)
				buf_printf(&path, "%s > ", json_string_value(name));
			table_cell(t, "%d|%d|%lld", (int) cmd_number(r, "plane"), (int) cmd_number(r, "cables"),
				   cmd_number(r, "paths"));
			table_cell(t, cmd_number(r, "mbps") ? "%.3g" : "-", cmd_number(r, "mbps") / 1000.0);
			table_cell(t, "%s > %s%s", from, path.failed ? "" : path.data, to);
			buf_free(&path);
		}
		if (table_finish(t, e))
			return -1;
	}
	json_array_foreach(json_object_get(route, "costs"), i, r)
		printf("plane %d: cost %d\n", (int) cmd_number(r, "plane"), (int) cmd_number(r, "cost"));
	return 0;
}

/* --- discovered --- */

#define DISCOVER_SECONDS 600
#define DISCOVER_BYTES ((size_t) 256 << 20)

/*
 * The first of these that this host has and that succeeds: what it prints, by one command after the other. The last
 * knows the links of this host alone.
 */
static const struct cables_tool tools[] = {
	{ "ibnetdiscover", { { "ibnetdiscover" } }, false },
	{ "opareport", { { "opareport", "-o", "links" } }, false },
	{ "lldpcli", { { "lldpcli", "-f", "keyvalue", "show", "chassis" },
		       { "lldpcli", "-f", "keyvalue", "show", "neighbors" } }, true },
};

const struct cables_tool *cables_discover(struct buf *out, struct err *e)
{
	char path[PATH_MAX];
	unsigned present = 0;

	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
		int rc = 0;

		if (!child_program(tools[i].name, path))
			continue;
		present++;
		for (unsigned k = 0; !rc && k < 2 && tools[i].commands[k][0]; k++) {
			struct buf one = {0};

			rc = cmd_program(tools[i].commands[k], STDERR_OURS, DISCOVER_SECONDS, DISCOVER_BYTES, &one, e);
			if (rc > 0)
				err_set(e, "exit status %d", rc);
			else if (!rc && !one.len)
				rc = !k && err_set(e, "no output");
			buf_add(out, one.data ? one.data : "", one.len);
			buf_free(&one);
		}
		if (!rc && !out->failed)
			return &tools[i];
		fprintf(stderr, "topiary: %s: %s\n", tools[i].name, rc ? e->text : "out of memory");
		buf_free(out);
	}
	return err_null(e, present ? "no tool of this host has found a network" :
		"none of ibnetdiscover, opareport and lldpcli is installed");
}

/* What a cable was and is; count 0: there is none. */
struct cables {
	const char *a, *b;
	unsigned count[2], mbps[2];	/* mbps: of one */
};

static int cables_add(struct cables **list, struct string_map *names, const struct fabric *f, unsigned when)
{
	for (unsigned i = 0; i < f->nlinks; i++) {
		const struct fabric_link *l = &f->links[i];
		struct buf key = {0};
		size_t had = names->count, at;

		buf_printf(&key, "%s %s", f->nodes[l->a].name, f->nodes[l->b].name);
		at = key.failed ? STRING_MAP_NONE : string_map_add(names, key.data);
		buf_free(&key);
		if (at == STRING_MAP_NONE || array_reserve(*list, at, 1))
			return -1;
		if (names->count > had)
			(*list)[at] = (struct cables){ f->nodes[l->a].name, f->nodes[l->b].name, {0}, {0} };
		(*list)[at].count[when] = l->count;
		(*list)[at].mbps[when] = l->mbps / l->count;
	}
	return 0;
}

json_t *cables_drift(const struct fabric *before, const struct fabric *now)
{
	struct cables *list = NULL;
	struct string_map names = {0};
	json_t *drift = json_array();
	int rc = cables_add(&list, &names, before, 0) || cables_add(&list, &names, now, 1) ? -1 : 0;

	for (size_t i = 0; !rc && i < names.count; i++) {
		const struct cables *c = &list[i];
		const char *severity = !c->count[0] || !c->count[1] ? "wiring" :
			c->count[0] != c->count[1] ? "capacity" :
			c->mbps[0] != c->mbps[1] && c->mbps[0] && c->mbps[1] ? "slow" : NULL;

		if (severity)
			json_array_append_new(drift, json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:i}", "severity",
				severity, "a", c->a, "b", c->b, "cables_before", (int) c->count[0], "cables",
				(int) c->count[1], "mbps_before", (int) c->mbps[0], "mbps", (int) c->mbps[1]));
	}
	string_map_free(&names);
	free(list);
	if (!rc)
		return drift;
	json_decref(drift);
	return NULL;
}

static void drift_cell(struct table *t, const json_t *d, const char *count, const char *mbps)
{
	int n = cmd_number(d, count);

	if (!n)
		table_cell(t, "-");
	else if (cmd_number(d, mbps))
		table_cell(t, "%d x %.3g Gbit/s", n, cmd_number(d, mbps) / 1000.0);
	else
		table_cell(t, "%d cable%s", n, PLURAL(n));
}

int cables_print_drift(const json_t *drift, struct err *e)
{
	struct table *t = table_new("SEVERITY|BETWEEN|AND|BEFORE|NOW");
	const json_t *d;
	size_t i;

	if (!json_array_size(drift)) {
		table_free(t);
		return puts("no cable differs from the registry's fabric") == EOF ? err_set(e, "cannot write") : 0;
	}
	json_array_foreach(drift, i, d) {
		table_cell(t, "%s", cmd_text(d, "severity"));
		table_severity(t, cmd_text(d, "severity"));
		table_cell(t, "%s|%s", cmd_text(d, "a"), cmd_text(d, "b"));
		drift_cell(t, d, "cables_before", "mbps_before");
		drift_cell(t, d, "cables", "mbps");
	}
	return table_finish(t, e);
}
