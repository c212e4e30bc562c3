/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "verdict.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *one, *many;
} nouns[LEVEL_COUNT] = {
	[LEVEL_NODE] = { "node", "nodes" }, [LEVEL_PACKAGE] = { "package", "packages" },
	[LEVEL_DIE] = { "die", "dies" }, [LEVEL_NUMA] = { "NUMA node", "NUMA nodes" },
	[LEVEL_L3] = { "L3 cache", "L3 caches" },
	[LEVEL_L2] = { "L2 cache", "L2 caches" }, [LEVEL_CORE] = { "core", "cores" },
};

static const char *const outcomes[VERDICT_COUNT] = {
	[VERDICT_PLACED] = "placed by Topiary", [VERDICT_LEFT] = "left to Slurm", [VERDICT_WAITS] = "waits",
};

static void add_counted(struct buf *out, unsigned n, enum level level)
{
	buf_printf(out, "%u %s", n, n == 1 ? nouns[level].one : nouns[level].many);
}

static unsigned count_at(const struct verdict *v, enum score_row row, enum level level)
{
	return score_count(&v->cost, row, level);
}

/* The level of the request; the default of spread is the L3 cache. */
static enum level level_of(const struct request *r)
{
	return r->fit == FIT_SPREAD && r->level == LEVEL_NODE ? LEVEL_L3 : r->level;
}

/* The level of a count: SCORE_BEYOND is about the level of the request. */
static enum level level_of_count(const struct verdict *v, enum score_row row, enum level level)
{
	return row == SCORE_BEYOND ? level_of(&v->request) : level;
}

static void describe_asked(const struct verdict *v, struct buf *out)
{
	static const struct {
		const char *any, *before, *after;	/* without a level; around the name of one */
	} asked[FIT_COUNT] = {
		[FIT_OFF] = { "Slurm's own choice", "", "" },
		[FIT_PREFER] = { "the fewest hardware boundaries crossed", "within one ", " if possible" },
		[FIT_REQUIRE] = { "the fewest hardware boundaries crossed", "within one ",
				  " on each node, otherwise wait" },
		[FIT_SPREAD] = { "", "one ", " per task if possible" },
	};
	const struct request *r = &v->request;
	enum level level = level_of(r);
	char path[VERDICT_TEXT];

	if (request_path_text(&r->path, path, sizeof(path))) {
		buf_printf(out, "%s on each node, otherwise wait", path);
		return;
	}
	if (level == LEVEL_NODE || r->fit == FIT_OFF)
		buf_puts(out, asked[r->fit].any);
	else
		buf_printf(out, "%s%s%s", asked[r->fit].before, nouns[level].one, asked[r->fit].after);
	buf_printf(out, " (fit %s%s%s)", fit_name(r->fit), r->level == LEVEL_NODE ? "" : ", level ",
		   r->level == LEVEL_NODE ? "" : level_name(r->level));
}

static void describe_wanted(const struct verdict *v, struct buf *out)
{
	bool sharing = v->cores_per_node && v->cores_per_node < v->tasks * v->task_cores;

	if (!v->nodes)
		return;
	buf_printf(out, "%u task%s %s ", v->tasks, v->tasks == 1 ? "" : "s", sharing ? "on" : "of");
	add_counted(out, sharing ? v->cores_per_node : v->task_cores, LEVEL_CORE);
	if (sharing && v->task_cores == 1)
		buf_printf(out, ", up to %u per core,", (v->tasks + v->cores_per_node - 1) / v->cores_per_node);
	if (v->nodes > 1)
		buf_printf(out, " on each of %u nodes", v->nodes);
	else
		buf_puts(out, " on one node");
}

static void describe_reason(const struct verdict *v, struct buf *out)
{
	buf_puts(out, v->reason);
}

/* Whether a level adds information: on a node without dies or L2 caches these count as packages or cores. */
static bool adds_information(const struct verdict *v, enum level level)
{
	const struct request_path *path = &v->request.path;
	unsigned given = v->cores_per_node ? v->cores_per_node : v->tasks * v->task_cores;
	unsigned cores = path->steps ? request_path_cores(path) : given;

	if (level == LEVEL_DIE)
		return count_at(v, SCORE_TOUCHED, LEVEL_DIE) != count_at(v, SCORE_TOUCHED, LEVEL_PACKAGE);
	return level < LEVEL_L3 || count_at(v, SCORE_TOUCHED, level) < cores;
}

static void describe_touched(const struct verdict *v, struct buf *out)
{
	size_t from = out->len;

	for (enum level level = LEVEL_PACKAGE; level <= LEVEL_L2; level++) {
		if (!count_at(v, SCORE_TOUCHED, level) || !adds_information(v, level))
			continue;
		buf_puts(out, out->len > from ? ", " : "");
		add_counted(out, count_at(v, SCORE_TOUCHED, level), level);
	}
	if (out->len > from && v->nodes > 1)
		buf_puts(out, " on the worst node");
}

static void describe_beyond(const struct verdict *v, struct buf *out)
{
	unsigned n = count_at(v, SCORE_BEYOND, LEVEL_NODE) + 1;
	enum level level = level_of(&v->request);

	if (level == LEVEL_NODE || v->outcome != VERDICT_PLACED)
		return;
	if (v->whole_nodes)
		buf_puts(out, "not considered: the job has all cores of its nodes");
	else if (v->request.fit == FIT_SPREAD && n == 1)
		buf_printf(out, "each task has its own %s", nouns[level].one);
	else if (v->request.fit == FIT_SPREAD)
		buf_printf(out, "up to %u tasks share one %s", n, nouns[level].one);
	else if (n == 1)
		buf_printf(out, "satisfied: all within one %s", nouns[level].one);
	else
		buf_printf(out, "not satisfied: in %u %s", n, nouns[level].many);
}

static void describe_cuts(const struct verdict *v, struct buf *out)
{
	size_t from = out->len;

	for (enum level level = LEVEL_NUMA; level <= LEVEL_L3; level++) {
		unsigned cuts = count_at(v, SCORE_CUTS, level);

		if (cuts)
			buf_printf(out, "%s%u split%s between %s", out->len > from ? ", " : "", cuts,
				   cuts == 1 ? "" : "s", nouns[level].many);
	}
	if (out->len == from && v->task_cores > 1)
		buf_puts(out, "none is split");
}

static void describe_memory(const struct verdict *v, struct buf *out)
{
	if (!v->memory_far)
		return;
	buf_printf(out, "on %u of %u node%s, more than the NUMA nodes of its cores have free: part of it is far",
		   v->memory_far, v->nodes, v->nodes == 1 ? "" : "s");
}

static void describe_gpus(const struct verdict *v, struct buf *out)
{
	if (v->gpus && !v->gpus_far && !v->cores_far)
		buf_printf(out, "%u, near its cores", v->gpus);
	if (v->gpus_far)
		buf_printf(out, "%u of %u %s far from all of its cores", v->gpus_far, v->gpus,
			   v->gpus_far == 1 ? "is" : "are");
	if (v->cores_far)
		buf_printf(out, "%s%u of its cores %s far from all of its GPUs", v->gpus_far ? ", " : "", v->cores_far,
			   v->cores_far == 1 ? "is" : "are");
	if (v->gpus_unknown)
		buf_printf(out, "%sof %u it is not known which cores are near (neither Cores= in gres.conf nor the"
			   " snapshot says it)", v->gpus ? "; " : "", v->gpus_unknown);
}

/* The smallest domain that has all the cores, or the packages if no single domain has. */
static enum level holding_level(const struct verdict *v)
{
	enum level level = LEVEL_L2, inner;

	while (level > LEVEL_PACKAGE && count_at(v, SCORE_TOUCHED, level) != 1)
		level--;
	/* On a node without this level its counts equal those of the level above. */
	for (inner = level;
	     level > LEVEL_PACKAGE && count_at(v, SCORE_LEFT, level - 1) == count_at(v, SCORE_LEFT, inner);
	     level--)
		;
	return level;
}

static void describe_left(const struct verdict *v, struct buf *out)
{
	enum level level = v->request.fit == FIT_SPREAD ? level_of(&v->request) : holding_level(v);
	unsigned left = count_at(v, SCORE_LEFT, level), domains = count_at(v, SCORE_TOUCHED, level);
	const char *name = domains == 1 ? nouns[level].one : nouns[level].many;

	if (!domains)
		return;
	if (left)
		buf_printf(out, "%u ", left);
	if (v->request.fit == FIT_SPREAD) {
		buf_printf(out, "%score%s of its %s %s used by other jobs", left ? "" : "no ", left > 1 ? "s" : "",
			   name, left > 1 ? "are" : "is");
		return;
	}
	buf_printf(out, "%score%s left in its %s", left ? "free " : "exact fit, no ", left > 1 ? "s" : "", name);
	if (left && domains == 1)
		buf_puts(out,
			 count_at(v, SCORE_BROKEN, level) ? ", which was entirely free"
						       : ", which was partly used before");
}

static void describe_room(const struct verdict *v, struct buf *out)
{
	if (!v->candidates)
		return;
	buf_printf(out, "%u of ", v->room);
	add_counted(out, v->candidates, LEVEL_NODE);
	buf_puts(out, " offered by Slurm had room");
}

/* How the next best node compares. */
static void describe_beside(const struct verdict *v, struct buf *out)
{
	static const struct {
		const char *before, *after;
	} worse[SCORE_ROWS] = {
		[SCORE_BEYOND] = { "the job would use more ", "" },
		[SCORE_CUTS] = { "more tasks would be split between ", "" },
		[SCORE_TOUCHED] = { "the job would use more ", "" },
		[SCORE_OPEN] = { "free cores would be left in more ", "" },
		[SCORE_BROKEN] = { "more entirely free ", " would be broken" },
		[SCORE_LEFT] = { "more free cores would be left in its ", "" },
	};
	bool spread = v->request.fit == FIT_SPREAD;
	enum score_row row = v->decided_row;
	enum level level = level_of_count(v, row, v->decided_level);

	if (!*v->beside)
		return;
	if (v->decided_row < 0)
		buf_printf(out, "%s is equally good; the first node in Slurm's order was chosen", v->beside);
	else if (spread && row == SCORE_BEYOND)
		buf_printf(out, "%s: more tasks would share one %s there", v->beside, nouns[level].one);
	else if (spread && row == SCORE_LEFT)
		buf_printf(out, "%s: other jobs use more cores of its %s", v->beside, nouns[level].many);
	else
		buf_printf(out, "%s: %s%s%s there", v->beside, worse[row].before, nouns[level].many, worse[row].after);
}

typedef void describe_fn(const struct verdict *v, struct buf *out);

static void add_row(struct table *t, const char *head, const char *words)
{
	table_label(t, head);
	table_cell(t, "%s", words);
}

static void add_described(struct table *t, const char *head, describe_fn *describe, const struct verdict *v)
{
	struct buf words = {0};

	describe(v, &words);
	if (words.failed || words.len)
		add_row(t, head, words.failed ? "out of memory" : words.data);
	buf_free(&words);
}

/* One item of the list of cores: "cn[1-2]:0-7", or "..." for the rest. */
struct part {
	const char *text;
	size_t nodes, cores, len;	/* length of the nodes, offset of the cores, length of all */
};

/* The next item after *at. */
static bool part_next(const char **at, struct part *out)
{
	*at += strspn(*at, " ");
	*out = (struct part){ .text = *at, .len = strcspn(*at, " ") };
	for (size_t i = 0; i < out->len; i++)
		if (out->text[i] == ':') {
			out->nodes = i;
			out->cores = i + 1;
		}
	*at += out->len;
	return out->len;
}

static void add_cores(struct table *t, const struct verdict *v)
{
	const char *at = v->cores, *head = "cores";
	struct part p;

	for (; part_next(&at, &p); head = "") {
		char words[sizeof(v->cores) + 8];

		snprintf(words, sizeof(words), "%.*s%s%.*s", (int) p.nodes, p.text, p.nodes ? " " : "",
			 (int) (p.len - p.cores), p.text + p.cores);
		add_row(t, head, words);
	}
}

void verdict_add_rows(const struct verdict *v, struct table *t)
{
	add_described(t, "asked", describe_asked, v);
	add_described(t, "wanted", describe_wanted, v);
	add_described(t, "because", describe_reason, v);
	add_cores(t, v);
	add_described(t, "touches", describe_touched, v);
	add_described(t, "level", describe_beyond, v);
	add_described(t, "tasks", describe_cuts, v);
	add_described(t, "memory", describe_memory, v);
	add_described(t, "GPUs", describe_gpus, v);
	add_described(t, "leaves", describe_left, v);
	add_described(t, "choice", describe_room, v);
	add_described(t, "beside", describe_beside, v);
}

const char *verdict_outcome(const struct verdict *v)
{
	return outcomes[v->outcome];
}

void verdict_asked(const struct verdict *v, struct buf *out)
{
	char path[VERDICT_TEXT];

	if (request_path_text(&v->request.path, path, sizeof(path)))
		buf_puts(out, path);
	else
		buf_printf(out, "%s%s%s", fit_name(v->request.fit), v->request.level == LEVEL_NODE ? "" : " ",
			   v->request.level == LEVEL_NODE ? "" : level_name(v->request.level));
}

/* {"touched": {"package": 1, ...}, ...}: missing members are 0. */
static json_t *counts_json(const struct verdict *v)
{
	json_t *rows = json_object();

	for (enum score_row row = 0; row < SCORE_ROWS; row++) {
		json_t *levels = json_object();

		for (enum level level = LEVEL_NODE; level < LEVEL_CORE; level++)
			if (count_at(v, row, level))
				json_object_set_new(levels, level_name(level_of_count(v, row, level)),
						    json_integer(count_at(v, row, level)));
		json_object_set_new(rows, score_row_name(row), levels);
	}
	return rows;
}

static json_t *cores_json(const struct verdict *v)
{
	json_t *list = json_array();
	const char *at = v->cores;
	struct part p;

	while (part_next(&at, &p))
		if (p.nodes)
			json_array_append_new(list, json_pack("{s:s%, s:s%}", "nodes", p.text, p.nodes,
							      "cores", p.text + p.cores, p.len - p.cores));
	return list;
}

static json_t *decided_json(const struct verdict *v)
{
	if (!*v->beside || v->decided_row < 0)
		return json_null();
	return json_pack("{s:s, s:s}", "row", score_row_name(v->decided_row), "level",
			 level_name(level_of_count(v, v->decided_row, v->decided_level)));
}

json_t *verdict_json(const struct verdict *v)
{
	size_t len = strlen(v->cores), cut = strlen("...");
	char path[VERDICT_TEXT];
	bool has_path = request_path_text(&v->request.path, path, sizeof(path)), placed = v->outcome == VERDICT_PLACED;

	return json_pack("{s:s, s:s, s:s, s:s?, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I,"
			 " s:o, s:s?, s:o, s:o, s:b, s:s?}",
			 "outcome", outcome_name(v->outcome), "fit", fit_name(v->request.fit),
			 "level", level_name(v->request.level), "request", has_path ? path : NULL,
			 "nodes", (json_int_t) v->nodes, "tasks_per_node", (json_int_t) v->tasks,
			 "cores_per_task", (json_int_t) v->task_cores, "cores_per_node",
			 (json_int_t) v->cores_per_node, "memory_far",
			 (json_int_t) v->memory_far, "gpus", (json_int_t) v->gpus, "gpus_far",
			 (json_int_t) v->gpus_far, "gpus_unknown", (json_int_t) v->gpus_unknown,
			 "cores_far", (json_int_t) v->cores_far, "candidates", (json_int_t) v->candidates,
			 "room", (json_int_t) v->room, "counts", placed ? counts_json(v) : json_null(),
			 "beside", *v->beside ? v->beside : NULL, "decided", decided_json(v), "cores", cores_json(v),
			 "cores_cut", (int) (len >= cut && !strcmp(v->cores + len - cut, "...")),
			 "reason", *v->reason ? v->reason : NULL);
}
