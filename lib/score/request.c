/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/request.h"

#include "shape/shape.h"

#define SEPARATORS " \t\r\n\v\f,;"
#define LONGEST_VALUE 128	/* longer than any valid value: the longest path has 78 bytes */

static const char *const fits[FIT_COUNT] = {
	[FIT_OFF] = "off", [FIT_PREFER] = "prefer", [FIT_REQUIRE] = "require", [FIT_SPREAD] = "spread",
};

int fit_parse(const char *word)
{
	for (int i = 0; i < FIT_COUNT; i++)
		if (!strcasecmp(word, fits[i]))
			return i;
	return -1;
}

const char *fit_name(enum fit fit)
{
	return fit < FIT_COUNT ? fits[fit] : "?";
}

int request_weight_parse(const char *word)
{
	static const char *const weights[] = {
		[WEIGHT_JOB] = "job", [WEIGHT_LONG] = "long", [WEIGHT_QUEUE] = "queue",
	};

	for (int i = 0; i <= WEIGHT_QUEUE; i++)
		if (!strcasecmp(word, weights[i]))
			return i;
	return -1;
}

bool request_queue_first(const struct request *r, unsigned long long limit_minutes)
{
	return r->weight == WEIGHT_QUEUE || (r->weight == WEIGHT_LONG && limit_minutes > WEIGHT_LONG_MINUTES);
}

struct option;
typedef int set_fn(const struct option *o, struct request *r, const char *value, struct err *e);
static set_fn set_fit, set_level, set_path, set_memory;

static const struct option {
	const char *name, *dashes;
	set_fn *set;
	const char *fit;	/* the option that sets the fit */
	enum fit last;		/* of the valid values */
} options[] = {
	{ "topo-fit", "--", set_fit, "--topo-fit", FIT_SPREAD },
	{ "topo-level", "--", set_level, "--topo-fit", FIT_SPREAD },
	{ "topo-request", "--", set_path, "--topo-fit", FIT_SPREAD },
	{ "topo-mem", "--", set_memory, "--topo-mem", FIT_REQUIRE },
	{ "TopoFit", "", set_fit, "TopoFit", FIT_REQUIRE },
	{ "TopoLevel", "", set_level, "TopoFit", FIT_REQUIRE },
	{ "TopoMem", "", set_memory, "TopoMem", FIT_REQUIRE },
};

#define COUNT (sizeof(options) / sizeof(options[0]))

/* As far as the last valid value; -1 with an error. */
static int fit_read(const struct option *o, const char *value, struct err *e)
{
	int fit = fit_parse(value);

	if (fit >= 0 && fit <= (int) o->last)
		return fit;
	return err_set(e, "invalid value, expected one of: off, prefer, require%s",
		       o->last == FIT_SPREAD ? ", spread" : "");
}

static int set_fit(const struct option *o, struct request *r, const char *value, struct err *e)
{
	int fit = fit_read(o, value, e);

	if (fit >= 0 && !r->path.steps)
		r->fit = fit;
	return fit < 0 ? -1 : 0;
}

static int set_memory(const struct option *o, struct request *r, const char *value, struct err *e)
{
	int fit = fit_read(o, value, e);

	if (fit >= 0)
		r->memory = fit;
	return fit < 0 ? -1 : 0;
}

static int set_level(const struct option *o, struct request *r, const char *value, struct err *e)
{
	int level = level_parse(value);

	if (!strcasecmp(value, "off"))
		return err_set(e, "not a level; %s=off leaves the choice to Slurm", o->fit);
	if (level < 0 || level == LEVEL_CORE)
		return err_set(e, "invalid value, expected one of: package, die, numa, l3, l2, node");
	if (!r->path.steps)
		r->level = level;
	return 0;
}

static const char *const kinds[] = {
	[REQUEST_ANY_KIND] = "", [REQUEST_PERFORMANCE] = ":performance", [REQUEST_EFFICIENCY] = ":efficiency",
};

/* Cuts ":performance" or ":efficiency" off a name. */
static int kind_read(char *name, enum request_kind *kind, struct err *e)
{
	char *suffix = name + strcspn(name, ":");

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		if (strcasecmp(suffix, kinds[k]))
			continue;
		*suffix = '\0';
		*kind = k;
		return 0;
	}
	return err_set(e, "invalid kind '%s', expected core:performance or core:efficiency", suffix + 1);
}

static int add_step(struct request_path *p, const char *name, unsigned count, struct err *e)
{
	int level = level_parse(name);
	const struct request_step *outer = p->steps ? &p->step[p->steps - 1] : NULL;

	if (level <= LEVEL_NODE)
		return err_set(e, "invalid level '%s', expected one of: package, die, numa, l3, l2, core", name);
	if (outer && level <= (int) outer->level)
		return err_set(e, "levels go inwards, but %s does not lie within %s", level_name(level),
			       level_name(outer->level));
	if (!count)
		return err_set(e, "%s=0: expected a number from 1", name);
	if (count > SHAPE_MAX_CORES / (outer ? request_path_cores(p) : 1))
		return err_set(e, "more cores than a node may have (%u)", SHAPE_MAX_CORES);
	p->step[p->steps++] = (struct request_step){ level, count };
	return 0;
}

static int set_path(const struct option *, struct request *r, const char *value, struct err *e)
{
	struct request_path path = {0};
	char name[24], count[6];
	int used;

	do {
		used = 0;
		if (sscanf(value, "/%23[a-zA-Z0-9:]=%5[0-9]%n", name, count, &used) != 2 || !strchr("/", value[used]))
			return err_set(e, "not of the form /package=1/l3=2/core=4");
		if (kind_read(name, &path.kind, e) || add_step(&path, name, atoi(count), e))
			return -1;
		if (path.kind && path.step[path.steps - 1].level != LEVEL_CORE)
			return err_set(e, "only cores have a kind: core%s", kinds[path.kind]);
	} while (*(value += used));
	if (path.step[path.steps - 1].level != LEVEL_CORE)
		return err_set(e, "the last level must be core");
	r->fit = FIT_REQUIRE;
	r->level = LEVEL_NODE;
	r->path = path;
	return 0;
}

/* For messages: values are user input of any kind, and go into logs. */
static const char *printable(const char *value, char out[static 65])
{
	size_t n = 0;

	for (; value[n] && n < 64; n++)
		out[n] = value[n] < ' ' || value[n] > '~' ? '?' : value[n];
	out[n] = '\0';
	return out;
}

int request_set(struct request *r, const char *name, const char *value, struct err *e)
{
	char text[65];

	for (const struct option *o = options; o < options + COUNT; o++) {
		if (strcmp(name, o->name))
			continue;
		if (!o->set(o, r, value, e))
			return 0;
		return err_within(e, "%s%s=%s", o->dashes, name, printable(value, text));
	}
	return err_set(e, "%s: unknown option, expected one of: topo-fit, topo-level, topo-request,"
		       " topo-mem", printable(name, text));
}

/* The option that this word of a comment, of len bytes, sets, or NULL. */
static const struct option *option_of(const char *word, size_t len)
{
	for (const struct option *o = options; o < options + COUNT; o++) {
		size_t n = strlen(o->name);

		if (*o->dashes && n < len && word[n] == '=' && !memcmp(word, o->name, n))
			return o;
	}
	return NULL;
}

static int set_word(struct request *r, const char *word, size_t len, struct err *e)
{
	size_t dashes = len > 2 && !memcmp(word, "--", 2) ? 2 : 0;
	const struct option *o = option_of(word + dashes, len - dashes);
	char value[LONGEST_VALUE];

	if (!o)
		return 0;
	dashes += strlen(o->name) + 1;
	snprintf(value, sizeof(value), "%.*s", (int) (len - dashes), word + dashes);
	return request_set(r, o->name, value, e);
}

int request_comment(struct request *r, const char *comment, struct err *e)
{
	struct request new = *r;
	size_t len;

	for (const char *at = comment ? comment : ""; *(at += strspn(at, SEPARATORS)); at += len) {
		len = strcspn(at, SEPARATORS);
		if (set_word(&new, at, len, e))
			return -1;
	}
	*r = new;
	return 0;
}

int request_comment_unknown(const char *comment, struct err *e)
{
	char word[LONGEST_VALUE], text[65];
	size_t len;

	for (const char *at = comment ? comment : ""; *(at += strspn(at, SEPARATORS)); at += len) {
		size_t dashes = strncmp(at, "--", 2) ? 0 : 2;

		len = strcspn(at, SEPARATORS);
		if (strncmp(at + dashes, "topo-", 5) || option_of(at + dashes, len - dashes))
			continue;
		snprintf(word, sizeof(word), "%.*s", (int) len, at);
		return err_set(e, "--comment: '%s' has no effect, expected topo-fit=, topo-level=, topo-request= or"
			       " topo-mem=", printable(word, text));
	}
	return 0;
}

unsigned request_path_cores(const struct request_path *path)
{
	unsigned cores = path->steps > 0;

	for (unsigned i = 0; i < path->steps; i++)
		cores *= path->step[i].count;
	return cores;
}

size_t request_path_text(const struct request_path *path, char *text, size_t size)
{
	size_t len = 0;

	if (size)
		*text = '\0';
	for (unsigned i = 0; i < path->steps; i++) {
		size_t at = len < size ? len : size;

		len += snprintf(text + at, size - at, "/%s%s=%u", level_name(path->step[i].level),
				i + 1 < path->steps ? "" : kinds[path->kind], path->step[i].count);
	}
	return len;
}
