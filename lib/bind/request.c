/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/request.h"

/* What may follow a keyword. */
enum suffix { SUFFIX_NONE, SUFFIX_LEVEL, SUFFIX_SCOPE, SUFFIX_TIER, SUFFIX_STRICT };

struct keyword {
	const char *word;
	int value;
	enum suffix suffix;
};

#define KEYWORDS_MAX 9

static const struct bind_option {
	const char *name, *key;	/* key: of topiary.conf, or NULL */
	size_t field;		/* of struct bind_request, an enum */
	const char *values;
	struct keyword keywords[KEYWORDS_MAX];
} options[] = {
	{ "topo-tasks", "TopoTasks", offsetof(struct bind_request, tasks), "off, auto", {
		{ "off", TASKS_OFF, 0 }, { "auto", TASKS_AUTO, 0 } } },
	{ "topo-place", "TopoPlace", offsetof(struct bind_request, place),
		"off, compact[:LEVEL], scatter[:LEVEL], mem, gpu; LEVEL is machine, package, die, numa, l4, l3, l2, "
		"l1, core or pu", {
		{ "off", PLACE_OFF, 0 }, { "compact", PLACE_COMPACT, SUFFIX_LEVEL },
			{ "scatter", PLACE_SCATTER, SUFFIX_LEVEL },
		{ "mem", PLACE_MEM, 0 }, { "gpu", PLACE_GPU, 0 } } },
	{ "topo-membind", "TopoMembind", offsetof(struct bind_request, memory),
		"off, local, bind, interleave[:job|task], or hbm, dram, capacity, bandwidth, latency, each optionally "
		"followed by :job or :task and by ,strict; or prefer,job or bind,job", {
		{ "off", MEMORY_OFF, 0 }, { "local", MEMORY_LOCAL, 0 }, { "bind", MEMORY_BIND, 0 },
		{ "interleave", MEMORY_INTERLEAVE, SUFFIX_SCOPE },
		{ "hbm", MEMORY_HBM, SUFFIX_TIER }, { "dram", MEMORY_DRAM, SUFFIX_TIER },
		{ "capacity", MEMORY_CAPACITY, SUFFIX_TIER }, { "bandwidth", MEMORY_BANDWIDTH, SUFFIX_TIER },
		{ "latency", MEMORY_LATENCY, SUFFIX_TIER } } },
	/* The former name of topo-membind=prefer,job and bind,job. */
	{ "topo-mems", "TopoMems", offsetof(struct bind_request, mems), "off, prefer, strict", {
		{ "off", MEMS_OFF, 0 }, { "prefer", MEMS_PREFER, 0 }, { "strict", MEMS_STRICT, 0 } } },
	{ "topo-omp", "TopoOmp", offsetof(struct bind_request, omp), "off, auto, gomp, kmp", {
		{ "off", OMP_OFF, 0 }, { "auto", OMP_AUTO, 0 }, { "gomp", OMP_GOMP, 0 }, { "kmp", OMP_KMP, 0 } } },
	{ "topo-hugepages", NULL, offsetof(struct bind_request, huge), "off, thp, hugetlb, 1G", {
		{ "off", HUGE_OFF, 0 }, { "thp", HUGE_THP, 0 }, { "hugetlb", HUGE_TLB, 0 },
		{ "1G", HUGE_1G, 0 } } },
	{ "topo-nic", "TopoNic", offsetof(struct bind_request, nic),
		"off, auto, one, local, all, each but off optionally followed by ,strict", {
		{ "off", NIC_OFF, 0 }, { "auto", NIC_AUTO, SUFFIX_STRICT }, { "one", NIC_ONE, SUFFIX_STRICT },
		{ "local", NIC_LOCAL, SUFFIX_STRICT }, { "all", NIC_ALL, SUFFIX_STRICT } } },
	{ "topo-report", NULL, offsetof(struct bind_request, report), "table, json, off, or no value", {
		{ "", REPORT_TABLE, 0 }, { "table", REPORT_TABLE, 0 }, { "json", REPORT_JSON, 0 },
			{ "off", REPORT_OFF, 0 } } },
	{ "topo-hwloc", "TopoHwloc", offsetof(struct bind_request, hwloc), "on, off",
		{ { "on", HWLOC_STEP, 0 }, { "off", HWLOC_OWN, 0 } } },
	{ "topo-reorder", NULL, offsetof(struct bind_request, reorder), "on, report, off, or no value", {
		{ "", REORDER_ON, 0 }, { "on", REORDER_ON, 0 }, { "report", REORDER_REPORT, 0 },
			{ "off", REORDER_OFF, 0 } } },
};

#define COUNT (sizeof(options) / sizeof(options[0]))

typedef int suffix_fn(struct bind_request *r, const char *text);

static int no_suffix(struct bind_request *r, const char *text)
{
	(void) r;
	return *text ? -1 : 0;
}

/* hwloc_type_sscanf(3) takes what begins with a name, too. */
static int level_suffix(struct bind_request *r, const char *text)
{
	static const char *const levels[] = {
		"machine", "package", "socket", "die", "group", "numa", "numanode", "l4", "l4cache", "l3", "l3cache",
		"l2", "l2cache", "l1", "l1cache", "l1d", "l1dcache", "core", "pu",
	};

	memset(r->level, 0, sizeof(r->level));
	if (!*text)
		return 0;
	for (size_t i = 0; *text == ':' && i < sizeof(levels) / sizeof(levels[0]); i++)
		if (!strcasecmp(text + 1, levels[i])) {
			strcpy(r->level, text + 1);
			return 0;
		}
	return -1;
}

static int scope_suffix(struct bind_request *r, const char *text)
{
	r->scope = strcasecmp(text, ":job") ? SCOPE_TASK : SCOPE_JOB;
	return !*text || !strcasecmp(text, ":task") || r->scope == SCOPE_JOB ? 0 : -1;
}

/* [:job|:task][,strict] */
static int tier_suffix(struct bind_request *r, const char *text)
{
	size_t len = strcspn(text, ",");
	char scope[8] = "";

	r->memory_strict = !strcasecmp(text + len, ",strict");
	if (len >= sizeof(scope) || (text[len] && !r->memory_strict))
		return -1;
	memcpy(scope, text, len);
	return scope_suffix(r, scope);
}

static int strict_suffix(struct bind_request *r, const char *text)
{
	r->strict = !strcasecmp(text, ",strict");
	return !*text || r->strict ? 0 : -1;
}

static suffix_fn *const suffixes[] = {
	[SUFFIX_NONE] = no_suffix, [SUFFIX_LEVEL] = level_suffix, [SUFFIX_SCOPE] = scope_suffix,
		[SUFFIX_TIER] = tier_suffix, [SUFFIX_STRICT] = strict_suffix,
};

/* The policies of --topo-membind for all that the job runs. */
enum { JOB_POLICIES = 3 };
static const struct { const char *value; enum bind_mems mems; } of_job[JOB_POLICIES] = {
	{ "off", MEMS_OFF }, { "prefer,job", MEMS_PREFER }, { "bind,job", MEMS_STRICT },
};

static int set_option(const struct bind_option *o, struct bind_request *r, const char *value)
{
	size_t len = strcspn(value, ":,");

	for (size_t i = 0; o->field == offsetof(struct bind_request, memory) && i < JOB_POLICIES; i++)
		if (!strcasecmp(value, of_job[i].value)) {
			r->mems = of_job[i].mems;
			value = "off";
			len = strlen(value);
		}

	/* The suffix of an earlier value is reset with it. */
	for (const struct keyword *w = o->keywords; w < o->keywords + KEYWORDS_MAX && w->word; w++)
		suffixes[w->suffix](r, "");
	for (const struct keyword *w = o->keywords; w < o->keywords + KEYWORDS_MAX && w->word; w++) {
		if (strlen(w->word) != len || strncasecmp(value, w->word, len))
			continue;
		memcpy((char *) r + o->field, &w->value, sizeof(w->value));
		return suffixes[w->suffix](r, value + len);
	}
	return -1;
}

int bind_request_set(struct bind_request *r, const char *name, const char *value, struct err *e)
{
	struct bind_request new = *r;

	for (const struct bind_option *o = options; o < options + COUNT; o++) {
		bool is_option = !strcmp(name, o->name);

		if (!is_option && (!o->key || strcmp(name, o->key)))
			continue;
		if (set_option(o, &new, value ? value : ""))
			return err_set(e, "%s%s=%.60s: invalid value, expected one of: %s", is_option ? "--" : "", name,
				       value ? value : "", o->values);
		*r = new;
		return 0;
	}
	return err_set(e, "--%.60s: unknown Topiary option", name);
}

void bind_request_print(const struct bind_request *r, struct buf *out)
{
	for (const struct bind_option *o = options; o < options + COUNT; o++) {
		const struct keyword *w = o->keywords;
		int value;

		memcpy(&value, (const char *) r + o->field, sizeof(value));
		while (!*w->word || w->value != value)
			w++;
		buf_printf(out, "%s%s=%s", out->len ? " " : "", o->name, w->word);
		if (w->suffix == SUFFIX_LEVEL && *r->level)
			buf_printf(out, ":%s", r->level);
		if ((w->suffix == SUFFIX_SCOPE || w->suffix == SUFFIX_TIER) && r->scope == SCOPE_JOB)
			buf_puts(out, ":job");
		if ((w->suffix == SUFFIX_TIER && r->memory_strict) || (w->suffix == SUFFIX_STRICT && r->strict))
			buf_puts(out, ",strict");
	}
}

int bind_request_read(struct bind_request *r, const char *words, struct err *e)
{
	char *copy = strdup(words), *rest = copy, *name, *value;
	int rc = copy ? 0 : err_set(e, "out of memory");

	while (!rc && (name = value = strsep(&rest, " "))) {
		strsep(&value, "=");
		rc = bind_request_set(r, name, value, e);
	}
	free(copy);
	return rc;
}

void bind_request_auto(struct bind_request *r, bool (*is_set)(const char *name))
{
	static const struct { const char *name, *value; } values[] = {
		{ "topo-place", "gpu" },	/* without GPUs: mem */
		{ "topo-membind", "local" },
		{ "topo-omp", "auto" },
		{ "topo-nic", "auto" },
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (!is_set || !is_set(values[i].name))
			bind_request_set(r, values[i].name, values[i].value, NULL);
}
