/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/request.h"

#include <hwloc.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* A word with what may follow its colon or comma. */
enum tail { TAIL_NONE, TAIL_LEVEL, TAIL_SCOPE, TAIL_STRICT };

struct word {
	const char *word;
	int value;
	enum tail tail;
};

#define WORDS_MAX 5

static const struct option {
	const char *name;
	size_t field;		/* of struct bind_request, an enum */
	const char *takes;
	struct word words[WORDS_MAX];
} options[] = {
	{ "topo-place", offsetof(struct bind_request, place), "off, compact[:LEVEL], scatter[:LEVEL], mem", {
		{ "off", PLACE_OFF, 0 }, { "compact", PLACE_COMPACT, TAIL_LEVEL }, { "scatter", PLACE_SCATTER, TAIL_LEVEL },
		{ "mem", PLACE_MEM, 0 } } },
	{ "topo-membind", offsetof(struct bind_request, memory), "off, local, bind, interleave[:job|task]", {
		{ "off", MEMORY_OFF, 0 }, { "local", MEMORY_LOCAL, 0 }, { "bind", MEMORY_BIND, 0 },
		{ "interleave", MEMORY_INTERLEAVE, TAIL_SCOPE } } },
	{ "topo-omp", offsetof(struct bind_request, omp), "off, auto, gomp, kmp", {
		{ "off", OMP_OFF, 0 }, { "auto", OMP_AUTO, 0 }, { "gomp", OMP_GOMP, 0 }, { "kmp", OMP_KMP, 0 } } },
	{ "topo-hugepages", offsetof(struct bind_request, huge), "off, thp, hugetlb", {
		{ "off", HUGE_OFF, 0 }, { "thp", HUGE_THP, 0 }, { "hugetlb", HUGE_TLB, 0 } } },
	{ "topo-nic", offsetof(struct bind_request, nic), "off, auto, one, local, all, each but off with ,strict after it", {
		{ "off", NIC_OFF, 0 }, { "auto", NIC_AUTO, TAIL_STRICT }, { "one", NIC_ONE, TAIL_STRICT },
		{ "local", NIC_LOCAL, TAIL_STRICT }, { "all", NIC_ALL, TAIL_STRICT } } },
	{ "topo-report", offsetof(struct bind_request, report), "nothing, table, json, off", {
		{ "", REPORT_TABLE, 0 }, { "table", REPORT_TABLE, 0 }, { "json", REPORT_JSON, 0 }, { "off", REPORT_OFF, 0 } } },
};

#define COUNT (sizeof(options) / sizeof(options[0]))

typedef int tail_fn(struct bind_request *r, const char *text);

static int no_tail(struct bind_request *r, const char *text)
{
	(void) r;
	return *text ? -1 : 0;
}

static int level_tail(struct bind_request *r, const char *text)
{
	hwloc_obj_type_t type;

	memset(r->level, 0, sizeof(r->level));
	if (!*text)
		return 0;
	if (*text != ':' || strlen(text + 1) >= sizeof(r->level) || hwloc_type_sscanf(text + 1, &type, NULL, 0) ||
	    hwloc_obj_type_is_io(type) || type == HWLOC_OBJ_MISC)
		return -1;
	snprintf(r->level, sizeof(r->level), "%s", text + 1);
	return 0;
}

static int scope_tail(struct bind_request *r, const char *text)
{
	r->scope = strcmp(text, ":job") ? SCOPE_TASK : SCOPE_JOB;
	return !*text || !strcmp(text, ":task") || r->scope == SCOPE_JOB ? 0 : -1;
}

static int strict_tail(struct bind_request *r, const char *text)
{
	r->strict = !strcmp(text, ",strict");
	return !*text || r->strict ? 0 : -1;
}

static tail_fn *const tails[] = {
	[TAIL_NONE] = no_tail, [TAIL_LEVEL] = level_tail, [TAIL_SCOPE] = scope_tail, [TAIL_STRICT] = strict_tail,
};

static int set(const struct option *o, struct bind_request *r, const char *value)
{
	size_t len = strcspn(value, ":,");

	/* What an earlier word had after it goes with it. */
	for (const struct word *w = o->words; w < o->words + WORDS_MAX && w->word; w++)
		tails[w->tail](r, "");
	for (const struct word *w = o->words; w < o->words + WORDS_MAX && w->word; w++) {
		if (strlen(w->word) != len || memcmp(value, w->word, len))
			continue;
		memcpy((char *) r + o->field, &w->value, sizeof(w->value));
		return tails[w->tail](r, value + len);
	}
	return -1;
}

int bind_request_set(struct bind_request *r, const char *name, const char *value, struct err *e)
{
	struct bind_request new = *r;

	for (const struct option *o = options; o < options + COUNT; o++) {
		if (strcmp(name, o->name))
			continue;
		if (set(o, &new, value ? value : ""))
			return err_set(e, "--%s=%.60s: not one of %s", name, value ? value : "", o->takes);
		*r = new;
		return 0;
	}
	return err_set(e, "--%.60s: no such option", name);
}
