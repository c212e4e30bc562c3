/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

#include "../table.h"
#include "now.h"
#include "shape/hostlist.h"

/*
 * `topiary fragmentation`: what of the cluster is entirely free now, at each level of the hardware, for jobs that want
 * whole domains. A GPU counts as free with its cores if no job has it nor a core near it.
 */
#define PICTURES 40	/* nodes that are drawn without --all */

struct args {
	const char *nodes;
	bool all;
};

static const struct cmd_option options[] = {
	{ "nodes", 'n', "LIST", CMD_TEXT(nodes), "Only of these nodes (default: all)" },
	{ "all", 'a', NULL, CMD_FLAG(all), "Draw all nodes, not the first 40 that are partly used" },
	{0},
};

static const struct cmd_syntax syntax = {
	options, "",
	"Count the packages, NUMA nodes, caches and GPUs that are entirely free now, and draw the nodes.\vIn the "
	"picture each character is a core: . free, # in use, x reserved for the system; | separates packages, a blank "
	"L3 caches.",
	{ .form = ARG_NONE }, NULL, NULL,
};

struct counts {
	unsigned all, free, partly;
};

enum { GPU = LEVEL_CORE, KINDS };	/* in the place of cores: GPUs */

/* "gpu:a100:2(IDX:0-1,5)" or "gpu:(null):0(IDX:N/A)": whether a list of what is in use has this GPU. */
static bool gpu_in_use(const char *used, int number)
{
	for (const char *at = used; at && (at = strstr(at, "gpu")); at += strlen("gpu")) {
		const char *list = strstr(at, "IDX:"), *end = list ? strchr(list, ')') : NULL;
		unsigned from, to;

		for (list = end ? list + strlen("IDX:") : NULL; list && list < end;) {
			int n = sscanf(list, "%9u-%9u", &from, &to);

			if (n > 0 && (unsigned) number >= from && (unsigned) number <= (n > 1 ? to : from))
				return true;
			list += strcspn(list, ",)") + 1;
		}
	}
	return false;
}

static void node_count(const struct now_node *node, struct counts counts[KINDS])
{
	const struct shape *s = node->shape;

	for (size_t i = 0; i < s->ndomains; i++) {
		struct counts *c = &counts[s->domains[i].level];
		unsigned n = now_count(node->free, s->domains[i].first, s->domains[i].cores);

		if (s->domains[i].level >= LEVEL_CORE || !s->domains[i].cores)
			continue;
		c->all++;
		c->free += n == s->domains[i].cores;
		c->partly += n && n < s->domains[i].cores;
	}
	/* Of a GPU that jobs share, Slurm's record does not say that it is in use. */
	if (strstr(node->info->gres ? node->info->gres : "", "shard") ||
	    strstr(node->info->gres ? node->info->gres : "", "mps"))
		return;
	for (size_t i = 0; i < s->ndevices; i++) {
		const struct shape_device *d = &s->devices[i];
		unsigned n = now_count(node->free, d->first, d->cores);
		bool used = false;

		/* Of a GPU whose number is not known, it is not known whether it is in use. */
		if (strcmp(d->type, "GPU") || d->number < 0)
			continue;
		for (size_t k = 0; k < node->nholders; k++)
			used |= gpu_in_use(node->holders[k].gres, d->number);
		counts[GPU].all++;
		counts[GPU].free += !used && n == d->cores;
		counts[GPU].partly += !used && n < d->cores;
	}
}

static void node_draw(const struct now_node *node, struct buf *out)
{
	const struct shape *s = node->shape;
	char *before = calloc(s->cores + 1, 1);

	for (size_t i = 0; before && i < s->ndomains; i++)
		if (s->domains[i].level == LEVEL_PACKAGE || s->domains[i].level == LEVEL_L3)
			before[s->domains[i].first] |= s->domains[i].level == LEVEL_PACKAGE ? 2 : 1;
	for (unsigned c = 0; before && c < s->cores; c++) {
		bool used = false;

		for (size_t i = 0; i < node->nholders; i++)
			used |= core_set_has(node->holders[i].cores, c);
		if (c && before[c])
			buf_puts(out, before[c] & 2 ? "|" : " ");
		buf_puts(out, core_set_has(node->free, c) ? "." : used ? "#" : "x");
	}
	free(before);
}

static int print_table(const struct counts counts[KINDS], unsigned nodes, const unsigned left_out[], json_t *drawn,
		       size_t not_drawn, struct err *e)
{
	static const char *const why[] = {
		[NOW_DOWN] = "down, drained or not responding",
		[NOW_UNKNOWN] = "not in the snapshot, or different there",
		[NOW_HIDDEN] = "with jobs that you may not see",
	};
	struct table *t = table_new("LEVEL|>ALL|>WHOLLY FREE|>PARTLY FREE|>IN USE");
	const char *name;
	json_t *cores;

	for (int k = LEVEL_NODE; k < KINDS; k++) {
		if (!counts[k].all)
			continue;
		table_cell(t, "%s|%u|%u|%u|%u", k == GPU ? "GPU with its cores" : level_noun(k, 1), counts[k].all,
			   counts[k].free, counts[k].partly, counts[k].all - counts[k].free - counts[k].partly);
	}
	if (table_finish(t, e))
		return -1;
	printf("%u node%s", nodes, PLURAL(nodes));
	for (enum now_state s = NOW_DOWN; s <= NOW_HIDDEN; s++)
		if (left_out[s])
			printf("; without %u %s", left_out[s], why[s]);
	puts("");
	if (!json_object_size(drawn))
		return 0;
	puts("");
	t = table_new("|");
	json_object_foreach(drawn, name, cores)
		table_cell(t, "%s|%s", name, json_string_value(cores));
	if (not_drawn)
		table_cell(t, "...|%zu more that are partly used: --all", not_drawn);
	return table_finish(t, e);
}

struct wanted {
	const struct now *now;
	bool *of;
	struct err *err;
};

static int want(const char *name, void *wanted)
{
	struct wanted *w = wanted;
	size_t at = string_map_find(&w->now->names, name);

	if (at == STRING_MAP_NONE)
		return err_set(w->err, "%s: slurmctld does not know this node", name);
	w->of[at] = true;
	return 0;
}

int cmd_fragmentation(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct counts counts[KINDS] = {0};
	unsigned left_out[NOW_HIDDEN + 1] = {0}, nodes = 0;
	json_t *drawn = json_object(), *levels = json_object();
	size_t not_drawn = 0;
	struct args a = {0};
	struct now now = {0};
	bool *of = NULL;
	int rc;

	rc = cmd_parse(c, &syntax, &a, argc, argv, e) || now_load(c, &now, e) ? -1 : 0;
	if (rc == 0 && !(of = calloc(now.n + 1, 1)))
		rc = err_set(e, "out of memory");
	if (rc == 0)
		rc = a.nodes ? hostlist_expand(a.nodes, want, &(struct wanted){ &now, of, e }, e) : 0;
	for (size_t i = 0; rc == 0 && i < now.n; i++) {
		const struct now_node *node = &now.nodes[i];
		struct buf picture = {0};
		unsigned n;

		if (a.nodes && !of[i])
			continue;
		if (node->state) {
			left_out[node->state]++;
			continue;
		}
		nodes++;
		node_count(node, counts);
		n = now_count(node->free, 0, node->shape->cores);
		if (!a.all && !a.nodes && (!n || n == node->shape->cores))
			continue;
		if (!a.all && !a.nodes && json_object_size(drawn) >= PICTURES) {
			not_drawn++;
			continue;
		}
		node_draw(node, &picture);
		if (picture.len && !picture.failed)
			json_object_set_new(drawn, node->info->name, json_string(picture.data));
		buf_free(&picture);
	}
	for (int k = LEVEL_NODE; rc == 0 && k < KINDS; k++)
		if (counts[k].all)
			json_object_set_new(levels, k == GPU ? "gpu" : level_name(k), json_pack(
				"{s:i, s:i, s:i}", "all", counts[k].all, "free", counts[k].free, "partly",
				counts[k].partly));
	if (rc == 0 && c->json)
		rc = cmd_print_new(json_pack("{s:i, s:i, s:i, s:i, s:O, s:O}", "nodes", nodes, "down",
					     left_out[NOW_DOWN], "unknown", left_out[NOW_UNKNOWN], "hidden",
					     left_out[NOW_HIDDEN], "levels", levels, "drawn", drawn), e);
	else if (rc == 0)
		rc = print_table(counts, nodes, left_out, drawn, not_drawn, e);
	json_decref(levels);
	json_decref(drawn);
	now_free(&now);
	free(of);
	return rc;
}
