/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <math.h>
#include <sysexits.h>

#include "base/log.h"
#include "cmd.h"
#include "table.h"
#include "trace/export.h"
#include "trace/formula.h"
#include "trace/reader.h"
#include "trace/view.h"
#include "player.h"
#include "advise.h"

#define VERBS "summary, phases, show, replay, html, advise or export"

struct args {
	struct cmd_words words;		/* the verb and the file */
	const struct trace_verb *verb;
	const char *level, *formulas, *metric, *phase;
	double at, speed;
	int mode, format;
};

/* --- inputs --- */

/* All events, each at `level` or its own, and the formulas. NULL on error. */
static struct trace_view *view_make(const struct args *a, const struct trace *t, const char *level, struct err *e)
{
	struct trace_view *v = trace_view_new(&t->head, a->mode);
	const char *path = a->words.list[1];
	struct formula_list l;

	if (!v || trace_view_add_events(v, a->level ? a->level : level, e) ||
	    trace_tree_formulas(a->formulas, &t->head, &l, e) || trace_view_add_list(v, &l, e)) {
		if (!v)
			err_set(e, "out of memory");
		trace_view_free(v);
		return NULL;
	}
	if (t->open_end)
		log_warning("%s: has no index: it is still being written, or was cut short; read %llu complete ticks",
			    path, (unsigned long long) t->ticks);
	for (const struct trace_metric *m = v->metrics; m < v->metrics + v->n; m++)
		if (*m->missing)
			log_warning("%s: %s is absent: %s is not counted at or below level %s", path, m->formula.name,
				    m->missing, v->head->levels[m->level].type);
	return v;
}

/* --- phases that the program named, in the file beside the trace --- */

static struct trace_phases *phases_read(const struct trace *t, const char *path, bool is_optional, struct err *e)
{
	char *file = trace_path_beside(path, ".phases");
	struct trace_phases *p = NULL;

	if (!file)
		err_set(e, "out of memory");
	else if (access(file, F_OK) && errno == ENOENT && !is_optional)
		err_set(e, "%s: %s: the program named no phase, topiary_phase(3)", file, strerror(ENOENT));
	else if (access(file, F_OK) == 0 && (p = trace_phases_read(file, t, e)) && p->left_out)
		log_warning("%s: %llu lines are left out: they are incomplete, or there are more than %u names", file,
			    (unsigned long long) p->left_out, TRACE_PHASES_MAX);
	free(file);
	return p;
}

/* Those of the file. NULL: there is none, or there is an error, which is a warning. */
static struct trace_phases *phases_beside(const struct trace *t, const char *path)
{
	struct err e = {""};
	struct trace_phases *p = phases_read(t, path, true, &e);

	if (!p && *e.text)
		log_warning("%s", e.text);
	return p;
}

/* Leave the ticks of a phase in the trace. */
static int phases_choose(struct trace *t, const char *path, const char *phase, bool is_joined, struct err *e)
{
	struct trace_phases *p = phases_read(t, path, false, e);
	int at = p ? trace_phases_find(p, phase) : -1, rc = -1;

	if (p && at < 0)
		err_set(e, "no phase '%s'; `topiary trace phases` lists them", phase);
	else if (p)
		rc = trace_phases_restrict(p, at, t, is_joined, e);
	trace_phases_free(p);
	return rc;
}

static int phases_json(const struct trace *t, const struct trace_phases *p, const int64_t *ticks, struct err *e)
{
	json_t *rows = json_array();

	for (const struct trace_phase *x = p->list; x < p->list + p->n; x++)
		json_array_append_new(rows, json_pack(
			"{s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:I}", "phase", x->name, "depth",
			(json_int_t) x->depth, "processes", (json_int_t) x->processes, "times", (json_int_t) x->times,
			"marks", (json_int_t) x->marks, "seconds", x->seconds / x->processes, "least", x->least,
			"greatest", x->greatest, "ticks", (json_int_t) ticks[x - p->list]));
	return cmd_print_new(json_pack("{s:s, s:I, s:f, s:I, s:o}", "node", t->head.node, "processes",
				       (json_int_t) p->processes, "seconds", t->end * 1e-9, "ticks",
				       (json_int_t) t->ticks, "phases", rows), e);
}

/* Times are a process's: the mean, and those of the processes that have least and most. */
static int phases_table(const struct trace *t, const struct trace_phases *p, const int64_t *ticks, struct err *e)
{
	struct table *table = table_new("PHASE|>PROCESSES|>TIMES|>MARKS|>SECONDS|>LEAST|>GREATEST|>TICKS");

	for (unsigned i = 0; i < p->n; i++) {
		const struct trace_phase *x = &p->list[i];

		table_cell(table, "%*s%s|%u|%llu|%llu|%.3f|%.3f|%.3f|%lld", 2 * (int) x->depth, "", x->name,
			   x->processes, (unsigned long long) x->times, (unsigned long long) x->marks,
			   x->seconds / x->processes, x->least, x->greatest, (long long) ticks[i]);
	}
	printf("%s: %u process%s, %llu tick%s in %.1f s\n\n", *t->head.node ? t->head.node : "node", p->processes,
	       p->processes == 1 ? "" : "es", (unsigned long long) t->ticks, PLURAL(t->ticks), t->end * 1e-9);
	return table_finish(table, e);
}

static int run_phases(const struct args *a, struct trace *t, struct err *e)
{
	struct trace_phases *p = phases_read(t, a->words.list[1], false, e);
	struct trace_interval *ticks = p ? trace_intervals(t, e) : NULL;
	bool *is_in = calloc(t->ticks + 1, sizeof(*is_in));
	int64_t counts[TRACE_PHASES_MAX];
	int rc = ticks ? is_in ? 0 : err_set(e, "out of memory") : -1;

	for (unsigned i = 0; rc == 0 && i < p->n; i++)
		if ((counts[i] = trace_phases_ticks(p, i, ticks, t->ticks, is_in)) < 0)
			rc = err_set(e, "out of memory");
	if (rc == 0)
		rc = a->format == TRACE_JSON ? phases_json(t, p, counts, e) : phases_table(t, p, counts, e);
	free(is_in);
	free(ticks);
	trace_phases_free(p);
	return rc;
}

/* --- summary --- */

static int print_json(const struct trace *t, const struct trace_view *v, struct err *e)
{
	json_t *rows = json_array();

	for (const struct trace_metric *m = v->metrics; m < v->metrics + v->n; m++)
		for (unsigned i = 0; i < m->n; i++) {
			const struct trace_level *l = &v->head->levels[m->level];
			struct trace_statistics s = trace_view_statistics(v, m - v->metrics, i);

			json_array_append_new(rows, json_pack(
				"{s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:I}", "metric", m->formula.name, "level", l->type,
				"object", (json_int_t) l->objects[i].index, "min", trace_json_value(s.min), "average",
				trace_json_value(s.average), "max", trace_json_value(s.max), "total",
				s.has_total ? json_integer(s.total) : json_null(), "absent", (json_int_t) s.absent));
		}
	return cmd_print_new(json_pack("{s:s, s:s, s:I, s:f, s:b, s:o}", "node", t->head.node, "topology",
				       t->head.topology, "ticks", (json_int_t) t->ticks, "seconds", t->end * 1e-9,
				       "complete", !t->open_end, "metrics", rows), e);
}

static int print_table(const struct trace *t, const struct trace_view *v, struct err *e)
{
	struct table *table = table_new("METRIC|LEVEL|>OBJECT|>MIN|>AVERAGE|>MAX|UNIT|>TOTAL|>ABSENT");
	char total[TRACE_TOTAL], least[TRACE_NUMBER], average[TRACE_NUMBER], most[TRACE_NUMBER];

	for (unsigned n = 0; n < v->n; n++) {
		const struct trace_metric *m = &v->metrics[n];
		/* The events come first (view_make), then the formulas. */
		struct trace_unit unit = trace_unit_of(n < v->head->nevents ? &v->head->events[n] : NULL, v->mode);

		for (unsigned i = 0; i < m->n; i++) {
			const struct trace_level *l = &v->head->levels[m->level];
			struct trace_statistics s = trace_unit_statistics(&unit, v, n, i);

			table_cell(table, "%s|%s|%u|%s|%s|%s|%s|%s|%llu", m->formula.name, l->type, l->objects[i].index,
				   trace_tree_number(s.min, least), trace_tree_number(s.average, average),
				   trace_tree_number(s.max, most), unit.text,
				   s.has_total ? trace_unit_total(&unit, s.total, total) : "-",
				   (unsigned long long) s.absent);
		}
	}
	printf("%s: %u PU%s, %llu tick%s in %.1f s\n\n", *t->head.node ? t->head.node : "node", t->head.pus,
	       PLURAL(t->head.pus), (unsigned long long) t->ticks, PLURAL(t->ticks), t->end * 1e-9);
	return table_finish(table, e);
}

static int run_summary(const struct args *a, struct trace *t, struct err *e)
{
	struct trace_view *v = view_make(a, t, "Machine", e);
	struct trace_block b = {0};
	int rc = v ? 0 : -1;

	for (unsigned i = 0; rc == 0 && i < t->nblocks; i++)
		rc = trace_read(t, i, &b, e) || trace_view_block(v, &b, e) ? -1 : 0;
	if (rc == 0)
		rc = a->format == TRACE_JSON ? print_json(t, v, e) : print_table(t, v, e);
	trace_block_free(&b);
	trace_view_free(v);
	return rc;
}

/* The values at a time; the average if it is NAN. All ticks count for the greatest ones. */
static int tree_read(struct trace_tree *t, const struct trace *from, double at, char *when, size_t size, struct err *e)
{
	bool is_found = isnan(at);
	struct trace_block b = {0};
	int rc = 0;

	snprintf(when, size, "average of %.1f s", from->end * 1e-9);
	for (unsigned i = 0; rc == 0 && i < from->nblocks; i++) {
		rc = trace_tree_read(t, from, i, &b, e);
		for (unsigned k = 0; rc == 0 && !is_found && k < b.n; k++) {
			if (b.times[k] * 1e-9 < at)
				continue;
			is_found = true;
			trace_tree_tick(t, &b, k);
			snprintf(when, size, "from %.3f to %.3f s", (k ? b.times[k - 1] : b.begin) * 1e-9,
				 b.times[k] * 1e-9);
		}
	}
	trace_block_free(&b);
	if (rc == 0 && !is_found)
		rc = err_set(e, "nothing at %.3f s: the trace ends at %.3f s", at, from->end * 1e-9);
	for (; rc == 0 && isnan(at) && t; t = t->beside)
		for (unsigned l = 0; l < t->n; l++)
			for (unsigned i = 0; i < t->levels[l].level->n; i++)
				t->levels[l].value[i] = trace_unit_statistics(&t->unit, t->view, l, i).average;
	return rc;
}

static int run_show(const struct args *a, struct trace *t, struct err *e)
{
	const char *level = a->level ? a->level : trace_tree_level_shown(&t->head);
	struct trace_tree_request how = { a->metric, level, a->mode, {0} };
	struct trace_tree tree = {0};
	char when[64];
	int rc = trace_tree_formulas(a->formulas, &t->head, &how.formulas, e) ||
		trace_tree_make(&tree, &t->head, &how, e) || tree_read(&tree, t, a->at, when, sizeof(when), e) ||
		trace_tree_print(&tree, when, e) ? -1 : 0;

	trace_tree_free(&tree);
	formula_list_free(&how.formulas);
	return rc;
}

static int run_replay(const struct args *a, struct trace *t, struct err *e)
{
	struct trace_phases *phases = phases_beside(t, a->words.list[1]);
	struct player_request how = { a->metric, a->level, a->formulas, a->speed > 0 ? a->speed : 1, true,
				   a->format == TRACE_JSON, false, a->mode, phases };
	int rc = player_show(t, &how, 0, e);

	trace_phases_free(phases);
	return rc;
}

static int run_html(const struct args *a, struct trace *t, struct err *e)
{
	struct trace_tree_request how = { a->metric, a->level ? a->level : "PU", TRACE_RATE, {0} };
	struct trace_phases *phases = phases_beside(t, a->words.list[1]);
	int rc = trace_tree_formulas(a->formulas, &t->head, &how.formulas, e);

	if (rc == 0)
		rc = trace_html(t, &how, phases, e);
	trace_phases_free(phases);
	formula_list_free(&how.formulas);
	return rc;
}

static int run_advise(const struct args *a, struct trace *t, struct err *e)
{
	const char *const *names = (const char *const *) a->words.list + 1;
	unsigned n = a->words.n - 1, opened = 1;
	struct trace **all = calloc(n, sizeof(*all));
	int rc = all ? 0 : err_set(e, "out of memory");

	for (; rc == 0 && opened < n; opened++)
		if (!(all[opened] = trace_open(names[opened], e)))
			rc = -1;
	if (rc == 0) {
		*all = t;
		rc = advise_traces(all, names, n, a->format == TRACE_JSON, e);
	}
	for (unsigned i = 1; all && i < opened; i++)
		trace_close(all[i]);
	free(all);
	return rc;
}

static int run_export(const struct args *a, struct trace *t, struct err *e)
{
	struct trace_phases *phases = a->format == TRACE_PAJE ? phases_beside(t, a->words.list[1]) : NULL;
	struct trace_view *v = view_make(a, t, NULL, e);
	int rc = v ? trace_export(t, v, phases, a->format ? (enum trace_format) a->format : TRACE_CSV, stdout, e) : -1;

	trace_phases_free(phases);
	trace_view_free(v);
	return rc;
}

/* --- the command --- */

/* Options that apply to some verbs only. */
enum { AT = 1, METRIC = 2, SPEED = 4, MODE = 8, FORMAT = 16, LEVEL = 32, PHASE = 64 };

static const struct trace_verb {
	const char *name;
	int (*run)(const struct args *a, struct trace *t, struct err *e);
	unsigned takes;
	bool has_times;			/* of the trace: ticks of a phase keep theirs */
} verbs[] = {
	{ "summary", run_summary, MODE | LEVEL | PHASE, false },
	{ "phases", run_phases, 0, true },
	{ "show", run_show, AT | METRIC | MODE | LEVEL | PHASE, true },
	{ "replay", run_replay, METRIC | SPEED | MODE | LEVEL, true },
	{ "html", run_html, METRIC | LEVEL | PHASE, true },
	{ "advise", run_advise, PHASE, false },
	{ "export", run_export, MODE | FORMAT | LEVEL | PHASE, true },
};

static const struct {
	unsigned option;
	const char *error;
} misplaced[] = {
	{ AT, "--at applies to show only" },
	{ METRIC, "--metric applies to show, replay and html only" },
	{ SPEED, "--speed applies to replay only" },
	{ MODE, "--accumulate and --per-tick apply to summary, show, replay and export only" },
	{ LEVEL, "--level and --formulas do not apply to advise and phases" },
	{ PHASE, "--phase does not apply to replay and phases" },
	{ FORMAT, "--csv and --paje apply to export only" },
};

/* -1: not a number. */
static double number_of(const char *text)
{
	char *end;
	double x = strtod(text, &end);

	return end == text || *end || text[strspn(text, "0123456789.")] ? -1 : x;
}

static void set_at(void *args, const char *text, struct argp_state *state)
{
	if ((((struct args *) args)->at = number_of(text)) < 0)
		argp_error(state, "--at=%s: expected seconds since the trace's start", text);
}

static void set_speed(void *args, const char *text, struct argp_state *state)
{
	double speed = ((struct args *) args)->speed = number_of(text);

	if (speed <= 0 || isinf(speed))
		argp_error(state, "--speed=%s: expected seconds of the trace a second", text);
}

static void check_together(void *args, struct argp_state *state)
{
	struct args *a = args;
	unsigned given = (isnan(a->at) ? 0 : AT) | (a->metric ? METRIC : 0) | (a->speed > 0 ? SPEED : 0) |
			 (a->mode == TRACE_RATE ? 0 : MODE) | (a->format ? FORMAT : 0) |
			 (a->level || a->formulas ? LEVEL : 0) | (a->phase ? PHASE : 0);

	for (size_t i = 0; a->words.n && i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(a->words.list[0], verbs[i].name))
			a->verb = &verbs[i];
	if (!a->words.n)
		argp_error(state, "expected " VERBS ", and a FILE");
	else if (!a->verb)
		argp_error(state, "%s: expected " VERBS "%s", a->words.list[0],
			   trace_is_file(a->words.list[0]) ? " before a trace" : ", and a FILE");
	else if (a->words.n < 2)
		argp_error(state, "%s: expected a FILE", a->verb->name);
	else if (a->words.n > 2 && a->verb->run != run_advise)
		argp_error(state, "%s: expected one FILE; advise takes several of one node", a->words.list[2]);
	for (size_t i = 0; a->verb && i < sizeof(misplaced) / sizeof(misplaced[0]); i++)
		if (given & ~a->verb->takes & misplaced[i].option)
			argp_error(state, "%s", misplaced[i].error);
	if (a->phase && a->words.n > 2)
		argp_error(state, "--phase applies to one FILE");
}

static const struct cmd_option options[] = {
	{ "level", 'l', "TYPE", CMD_TEXT(level),
	  "Sum events at this level of the tree: Machine, Package, NUMANode, L3Cache, Core, PU ... (default: Machine "
	  "for summary, L3Cache for show, PU for replay and html, the level where they are counted for export)" },
	{ "formulas", 'f', "FILE", CMD_TEXT(formulas),
	  "Metrics to compute too, each 'NAME {LEVEL, FORMULA}', instead of those that the trace has" },
	{ "metric", 'm', "NAME[,NAME...]", CMD_TEXT(metric),
	  "show, replay, html: this event or formula, and the values of up to 3 others beside (default: the first "
	  "event; html: all)" },
	{ "phase", 'p', "NAME", CMD_TEXT(phase),
	  "Only the ticks at which at least half of the program's processes were in this phase, topiary_phase(3)" },
	{ "at", 0, "SECONDS", CMD_SET(set_at), "show: the values at this time since the start (default: the average)" },
	{ "speed", 0, "N", CMD_SET(set_speed), "replay: seconds of the trace a second (default: 1)" },
	{ "accumulate", 'a', NULL, CMD_CONSTANT(mode, TRACE_ACCUMULATED),
	  "summary, show, replay, export: counters since the trace's start (default: per second)" },
	{ "per-tick", 0, NULL, CMD_CONSTANT(mode, TRACE_PER_TICK),
	  "summary, show, replay, export: counters since the tick before (default: per second)" },
	{ "csv", 0, NULL, CMD_CONSTANT(format, TRACE_CSV), "export: a line per tick, metric and object (default)" },
	{ "paje", 0, NULL, CMD_CONSTANT(format, TRACE_PAJE), "export: Paje's trace format" },
	{0},
};

static const struct cmd_syntax syntax = {
	options, "summary FILE\nphases FILE\nshow FILE\nreplay FILE\nhtml FILE\nadvise FILE...\nexport FILE",
	"Summarize a trace of a node's hardware events, show or replay it on the hardware tree, find what in the "
	"placement cost time, or write it to standard output as a page of HTML, as CSV, JSON or in Paje's format.",
	CMD_WORDS(words), NULL, check_together,
};

int cmd_trace(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = { .mode = TRACE_RATE, .at = NAN };
	struct trace *t;
	int rc;

	if (cmd_parse(c, &syntax, &a, argc, argv, e))
		return -1;
	if (c->json && a.format) {
		c->status = EX_USAGE;
		return err_set(e, "--json excludes --csv and --paje");
	}
	if (c->json)
		a.format = TRACE_JSON;
	if (!(t = trace_open(a.words.list[1], e)))
		return -1;
	rc = a.phase ? phases_choose(t, a.words.list[1], a.phase, !a.verb->has_times, e) : 0;
	if (rc == 0)
		rc = a.verb->run(&a, t, e);
	if (rc && (a.verb->run != run_advise || a.phase))
		err_within(e, "%s", a.words.list[1]);
	trace_close(t);
	return rc;
}
