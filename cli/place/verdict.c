/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "verdict.h"

static const char *const outcomes[VERDICT_COUNT] = {
	[VERDICT_PLACED] = "placed by Topiary", [VERDICT_LEFT] = "left to Slurm", [VERDICT_WAITS] = "waits",
};

static void add_counted(struct buf *out, unsigned n, enum level level)
{
	buf_printf(out, "%u %s", n, level_noun(level, n));
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
	struct request r = v->request;
	enum level level;
	char path[VERDICT_TEXT];

	if (v->unspread && v->unspread <= LEVEL_COUNT) {
		r.fit = FIT_SPREAD;
		r.level = v->unspread - 1;
	}
	level = level_of(&r);
	if (request_path_text(&r.path, path, sizeof(path))) {
		buf_printf(out, "%s on each node, otherwise wait", path);
		return;
	}
	if (level == LEVEL_NODE || r.fit == FIT_OFF)
		buf_puts(out, asked[r.fit].any);
	else
		buf_printf(out, "%s%s%s", asked[r.fit].before, level_noun(level, 1), asked[r.fit].after);
	buf_printf(out, " (fit %s%s%s)", fit_name(r.fit), r.level == LEVEL_NODE ? "" : ", level ",
		   r.level == LEVEL_NODE ? "" : level_name(r.level));
}

/* The tasks of all nodes, if the verdict has them, and what of them a node has. */
static void describe_wanted(const struct verdict *v, struct buf *out)
{
	unsigned all = v->all_tasks ? v->all_tasks : v->nodes == 1 ? v->tasks : 0, each = all ? all : v->tasks;
	bool sharing = v->cores_per_node && v->cores_per_node < v->tasks * v->task_cores;
	bool even = all && v->tasks && (uint64_t) v->tasks * v->nodes == all;

	if (!v->nodes || !each)
		return;
	buf_printf(out, "%s%u task%s", all ? "" : "up to ", each, PLURAL(each));
	if (!sharing && v->task_cores) {
		buf_puts(out, " of ");
		add_counted(out, v->task_cores, LEVEL_CORE);
	}
	if (v->nodes > 1 || v->more_nodes)
		buf_printf(out, " on %s%u%s node%s", all ? "" : "each of ", v->nodes, v->more_nodes ? " or more" : "",
			   v->nodes == 1 && !v->more_nodes ? "" : "s");
	else
		buf_puts(out, " on one node");
	if (all && v->tasks && v->nodes > 1)
		buf_printf(out, ", %s%u on each", even ? "" : "at most ", v->tasks);
	if (sharing) {
		buf_puts(out, v->nodes > 1 ? "; those of a node share " : "; they share ");
		add_counted(out, v->cores_per_node, LEVEL_CORE);
	}
	buf_puts(out, v->whole_nodes ? "; whole nodes" : "");
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

	if (verdict_lacks(v, level))
		return false;
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
	unsigned n = count_at(v, SCORE_BEYOND, LEVEL_NODE) + 1, cores = v->cores_per_node;
	enum level wanted = level_of(&v->request), level = wanted;

	/* What tasks that are to spread have is not known where Slurm divided them otherwise than planned. */
	if (level == LEVEL_NODE || v->outcome != VERDICT_PLACED || (v->request.fit == FIT_SPREAD && !v->tasks))
		return;
	/* Of tasks that share cores, cores were counted. */
	if (v->request.fit == FIT_SPREAD && cores && cores < v->tasks)
		n *= (v->tasks + cores - 1) / cores;
	/* In its place the next level out was counted. */
	while (level > LEVEL_NODE && verdict_lacks(v, level))
		level--;
	if (v->whole_nodes)
		buf_puts(out, "not considered: the job has all cores of its nodes");
	else if (level == LEVEL_NODE)
		buf_puts(out, "not considered");
	else if (v->request.fit == FIT_SPREAD && n == 1)
		buf_printf(out, "each task has its own %s", level_noun(level, 1));
	else if (v->request.fit == FIT_SPREAD)
		buf_printf(out, "up to %u tasks share one %s", n, level_noun(level, 1));
	else if (n == 1)
		buf_printf(out, "satisfied: all within one %s%s", level_noun(level, 1),
			   v->nodes > 1 ? " on each node" : "");
	else
		buf_printf(out, "not satisfied: in %u %s%s", n, level_noun(level, 2),
			   v->nodes > 1 ? " on the worst node" : "");
	if (level != wanted && !v->whole_nodes)
		buf_printf(out, "; %s node has no %s", v->nodes > 1 ? "the worst" : "the", level_noun(wanted, 2));
}

static void describe_cuts(const struct verdict *v, struct buf *out)
{
	size_t from = out->len;
	unsigned all = 0;

	for (enum level level = LEVEL_NUMA; level <= LEVEL_L3; level++) {
		unsigned cuts = count_at(v, SCORE_CUTS, level);

		all += cuts;
		if (cuts && !verdict_lacks(v, level))
			buf_printf(out, "%s%u split%s between %s", out->len > from ? ", " : "", cuts,
				   PLURAL(cuts), level_noun(level, 2));
	}
	if (out->len > from && v->nodes > 1)
		buf_puts(out, " on the worst node");
	if (!all && v->whole_tasks)
		buf_puts(out, "none is split");
}

static void describe_memory(const struct verdict *v, struct buf *out)
{
	if (!v->memory_far)
		return;
	buf_printf(out, "on %u of %u node%s, it requests more than the NUMA nodes of its cores have free: part of it"
		   " may be far", v->memory_far, v->nodes, PLURAL(v->nodes));
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

/*
 * The smallest domain that has all the cores, or the packages if no single domain has; of several that leave as many
 * the largest.
 */
static enum level holding_level(const struct verdict *v)
{
	enum level level = LEVEL_L2;

	while (level > LEVEL_PACKAGE && (count_at(v, SCORE_TOUCHED, level) != 1 || verdict_lacks(v, level)))
		level--;
	for (enum level outer = level;
	     outer-- > LEVEL_PACKAGE && count_at(v, SCORE_LEFT, outer) == count_at(v, SCORE_LEFT, level);)
		if (!verdict_lacks(v, outer))
			level = outer;
	return level;
}

static void describe_left(const struct verdict *v, struct buf *out)
{
	enum level level = v->request.fit == FIT_SPREAD ? level_of(&v->request) : holding_level(v);
	unsigned left = count_at(v, SCORE_LEFT, level), domains = count_at(v, SCORE_TOUCHED, level);
	const char *name = level_noun(level, domains);

	if (!domains || v->free_unknown || verdict_lacks(v, level))
		return;
	if (v->nodes > 1)
		buf_puts(out, "on the worst node, ");
	if (left)
		buf_printf(out, "%u ", left);
	if (v->request.fit == FIT_SPREAD)
		buf_printf(out, "%score%s of its %s %s used or reserved by others", left ? "" : "no ",
			   left > 1 ? "s" : "", name, left > 1 ? "are" : "is");
	else
		buf_printf(out, "%score%s left in its %s", left ? "free " : "exact fit, no free ", left > 1 ? "s" : "",
			   name);
	if (left && domains == 1 && v->request.fit != FIT_SPREAD)
		buf_puts(out, count_at(v, SCORE_BROKEN, level) ? ", which was entirely free"
							       : ", of which a part was not free before");
}

static void describe_room(const struct verdict *v, struct buf *out)
{
	/*
	 * Slurm found room for the cores: where it has more nodes than were offered they are from another offer, and of
	 * tasks to be spread, room is for one in each domain.
	 */
	if (!v->candidates || (v->outcome == VERDICT_LEFT &&
			       (v->candidates < v->nodes || (v->request.fit == FIT_SPREAD && !v->unknown))))
		return;
	buf_printf(out, "%u of ", v->room);
	add_counted(out, v->candidates, LEVEL_NODE);
	buf_puts(out, " offered by Slurm had room");
	if (v->unknown)
		buf_printf(out, "; %u %s not in the snapshot, or different there", v->unknown,
			   v->unknown == 1 ? "is" : "are");
}

static const struct {
	const char *name, *words;
} better[BETTER_COUNT] = {
	[BETTER_MEMORY] = { "memory", "less of its memory would be near its cores there" },
	[BETTER_KINDS] = { "kinds", "it would have cores of several kinds there" },
	[BETTER_DEVICES] = { "devices", "fewer of its cores and devices would be near each other there" },
	[BETTER_SHARING] = { "sharing", "its tasks would share cores there" },
	[BETTER_SPARE] = { "spare", "more of its cores would have no task there" },
	[BETTER_ORDER] = { "order", NULL },
	[BETTER_WORTH] = { "worth",
			   "it has free GPUs, more cores or more memory, which other jobs may need" },
	[BETTER_FREE] = { "free", "as good, and other jobs may need its free cores more" },
};

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
	if (v->better < BETTER_COUNT && better[v->better].words)
		buf_printf(out, "%s: %s", v->beside, better[v->better].words);
	else if (v->decided_row < 0)
		buf_printf(out, "%s is equally good%s", v->beside, v->better == BETTER_ORDER ?
			   "; the first node in Slurm's order was chosen" : "");
	else if (spread && row == SCORE_BEYOND)
		buf_printf(out, "%s: more tasks would share one %s there", v->beside, level_noun(level, 1));
	else if (spread && row == SCORE_LEFT)
		buf_printf(out, "%s: more cores of its %s are used or reserved by others", v->beside,
			   level_noun(level, 2));
	else
		buf_printf(out, "%s: %s%s%s there", v->beside, worse[row].before, level_noun(level, 2),
			   worse[row].after);
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

/* A line for each item. */
static void describe_cores(const struct verdict *v, struct buf *out)
{
	const char *at = v->cores;

	for (struct part p; part_next(&at, &p);)
		buf_printf(out, "%s%.*s%s%.*s", out->len ? "\n" : "", (int) p.nodes, p.text, p.nodes ? " " : "",
			   (int) (p.len - p.cores), p.text + p.cores);
}

void verdict_add_rows(const struct verdict *v, bool all, struct table *t)
{
	static const struct {
		const char *head;
		void (*describe)(const struct verdict *v, struct buf *out);
		bool detail;
	} rows[] = {
		{ "asked", describe_asked, false }, { "wanted", describe_wanted, true },
		{ "because", describe_reason, false }, { "cores", describe_cores, false },
		{ "touches", describe_touched, false }, { "level", describe_beyond, false },
		{ "tasks", describe_cuts, false }, { "memory", describe_memory, false },
		{ "GPUs", describe_gpus, false }, { "leaves", describe_left, true },
		{ "choice", describe_room, true }, { "beside", describe_beside, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *head = rows[i].head;
		struct buf words = {0};
		char *rest, *line;

		if (all || !rows[i].detail)
			rows[i].describe(v, &words);
		for (rest = words.len ? words.data : NULL; (line = strsep(&rest, "\n")); head = "") {
			table_label(t, head);
			table_cell(t, "%s", words.failed ? "out of memory" : line);
		}
		buf_free(&words);
	}
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

json_t *verdict_json(const struct verdict *v)
{
	bool placed = v->outcome == VERDICT_PLACED, decided = *v->beside && v->decided_row >= 0;
	json_t *counts = placed ? json_object() : json_null(), *cores = json_array(), *lacks = json_array(), *j;
	size_t len = strlen(v->cores), cut = strlen("...");
	const char *at = v->cores;
	char path[VERDICT_TEXT];
	bool has_path = request_path_text(&v->request.path, path, sizeof(path));
	struct part p;

	/* {"touched": {"package": 1, ...}, ...}: missing members are 0. */
	for (enum score_row row = 0; placed && row < SCORE_ROWS; row++) {
		json_t *levels = json_object();

		for (enum level level = LEVEL_NODE; level < LEVEL_CORE; level++)
			if (count_at(v, row, level))
				json_object_set_new(levels, level_name(level_of_count(v, row, level)),
						    json_integer(count_at(v, row, level)));
		json_object_set_new(counts, score_row_name(row), levels);
	}
	for (enum level level = LEVEL_PACKAGE; level < LEVEL_CORE; level++)
		if (verdict_lacks(v, level))
			json_array_append_new(lacks, json_string(level_name(level)));
	while (part_next(&at, &p))
		if (p.nodes)
			json_array_append_new(cores, json_pack("{s:s%, s:s%}", "nodes", p.text, p.nodes,
							       "cores", p.text + p.cores, p.len - p.cores));
	j = json_pack("{s:s, s:s, s:s, s:s?, s:I, s:I}", "outcome", outcome_name(v->outcome), "fit",
		      fit_name(v->request.fit), "level", level_name(v->request.level), "request",
		      has_path ? path : NULL, "tasks_per_node", (json_int_t) v->tasks, "cores_per_task",
		      (json_int_t) v->task_cores);
	for (unsigned i = 0; i < verdict_word_count; i++)
		if (verdict_words[i].kind == WORD_NUMBER && strcmp(verdict_words[i].name, "better"))
			json_object_set_new(j, verdict_words[i].name,
					    json_integer(verdict_number(v, &verdict_words[i])));
	json_object_set_new(j, "counts", counts);
	json_object_set_new(j, "lacks", lacks);
	json_object_set_new(j, "beside", *v->beside ? json_string(v->beside) : json_null());
	json_object_set_new(j, "decided", !decided ? json_null() :
			    json_pack("{s:s, s:s}", "row", score_row_name(v->decided_row), "level",
				      level_name(level_of_count(v, v->decided_row, v->decided_level))));
	json_object_set_new(j, "better_by", v->better < BETTER_COUNT && better[v->better].name ?
			    json_string(better[v->better].name) : json_null());
	json_object_set_new(j, "cores", cores);
	json_object_set_new(j, "cores_cut", json_boolean(len >= cut && !strcmp(v->cores + len - cut, "...")));
	json_object_set_new(j, "reason", *v->reason ? json_string(v->reason) : json_null());
	return j;
}
