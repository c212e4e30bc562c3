/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "topo/shape.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_THREADS 1024u
#define NO_LEVEL (-1)		/* an object that groups nothing we cut at */

/*
 * The text is walked once for each object it stands for: `Type:N rest` reads `rest` N times. Every walk to the end of a branch
 * gives at least one core or fails, so that SHAPE_MAX_CORES bounds the work on any text.
 */
struct walk {
	const char *text, *at;
	struct shape *shape;
	size_t room_domains, room_cores;
	int parent;		/* the domain we are in */
	int depth;
	bool in_core;
	struct err *err;
};

static int branch(struct walk *w);

static int wrong(struct walk *w, const char *what)
{
	return err_set(w->err, "%s at '%.24s' in shape '%.120s'", what, w->at, w->text);
}

static void skip_space(struct walk *w)
{
	while (isspace((unsigned char) *w->at))
		w->at++;
}

static int grow(void **array, size_t *room, size_t used, size_t size)
{
	size_t more = *room ? *room * 2 : 64;
	void *bigger;

	if (used < *room)
		return 0;
	if (!(bigger = realloc(*array, more * size)))
		return -1;
	*array = bigger;
	*room = more;
	return 0;
}

static int domain_open(struct walk *w, enum level level)
{
	struct shape *s = w->shape;

	if (grow((void **) &s->domains, &w->room_domains, s->ndomains, sizeof(*s->domains)))
		return wrong(w, "out of memory");
	s->domains[s->ndomains] = (struct domain){ .level = level, .first = s->cores, .parent = w->parent };
	w->parent = s->ndomains++;
	return 0;
}

static void domain_close(struct walk *w)
{
	struct domain *d = &w->shape->domains[w->parent];

	d->cores = w->shape->cores - d->first;
	w->parent = d->parent;
}

static int core_add(struct walk *w, unsigned threads)
{
	struct shape *s = w->shape;

	if (s->cores == SHAPE_MAX_CORES)
		return wrong(w, "too many cores");
	if (grow((void **) &s->threads, &w->room_cores, s->cores, sizeof(*s->threads)))
		return wrong(w, "out of memory");
	s->threads[s->cores++] = threads;
	s->pus += threads;
	return 0;
}

static int core_walk(struct walk *w)
{
	unsigned core = w->shape->cores;

	if (w->in_core)
		return wrong(w, "a core within a core");
	if (domain_open(w, LEVEL_CORE) || core_add(w, 0))
		return -1;
	w->in_core = true;
	if (branch(w))
		return -1;
	w->in_core = false;
	if (!w->shape->threads[core]) {
		w->shape->threads[core] = 1;
		w->shape->pus++;
	}
	domain_close(w);
	return 0;
}

/* A PU outside any core is one by itself, as hwloc sees machines that do not tell of cores. */
static int pu_walk(struct walk *w, unsigned count)
{
	unsigned *threads = &w->shape->threads[w->shape->cores - (w->in_core ? 1 : 0)];

	if (count > MAX_THREADS && w->in_core)
		return wrong(w, "too many PUs in a core");
	if (w->in_core) {
		*threads += count;
		w->shape->pus += count;
		return 0;
	}
	while (count--) {
		if (domain_open(w, LEVEL_CORE) || core_add(w, 1))
			return -1;
		domain_close(w);
	}
	return 0;
}

static int object_walk(struct walk *w, int level)
{
	if (level == LEVEL_CORE)
		return core_walk(w);
	if (level == NO_LEVEL)
		return branch(w);
	if (domain_open(w, level) || branch(w))
		return -1;
	domain_close(w);
	return 0;
}

static int skip_attributes(struct walk *w)
{
	if (*w->at != '(')
		return 0;
	w->at += strcspn(w->at, ")");
	if (*w->at != ')')
		return wrong(w, "attributes without ')'");
	w->at++;
	return 0;
}

static int read_type(struct walk *w, char *type, size_t size)
{
	size_t n = 0;

	while (isalnum((unsigned char) w->at[n]))
		n++;
	if (!n || n >= size)
		return wrong(w, "a type is missing");
	memcpy(type, w->at, n);
	type[n] = '\0';
	w->at += n;
	return 0;
}

static int type_level(const char *type)
{
	int level = level_parse(type);

	return level == LEVEL_NODE ? NO_LEVEL : level;
}

/* Type:N[(attributes)], and for each of the N objects all that follows. */
static int element(struct walk *w)
{
	unsigned long count;
	const char *rest;
	char type[24], *end;

	if (read_type(w, type, sizeof(type)))
		return -1;
	if (*w->at != ':' || !isdigit((unsigned char) w->at[1]))
		return wrong(w, "a count is missing");
	count = strtoul(w->at + 1, &end, 10);
	if (count < 1 || count > SHAPE_MAX_CORES)
		return wrong(w, "a count out of range");
	w->at = end;
	if (skip_attributes(w))
		return -1;
	if (!strcasecmp(type, "PU"))
		return pu_walk(w, count);
	for (rest = w->at; count; count--) {
		w->at = rest;
		if (object_walk(w, type_level(type)))
			return -1;
	}
	return 0;
}

/* [NUMANode(attributes)]: memory of the object we are in; several make one domain, for their cores are the same. */
static int memory(struct walk *w, bool *numa)
{
	char type[24];

	w->at++;
	if (read_type(w, type, sizeof(type)) || skip_attributes(w))
		return -1;
	skip_space(w);
	if (*w->at != ']')
		return wrong(w, "memory without ']'");
	w->at++;
	if (type_level(type) != LEVEL_NUMA || *numa)
		return 0;
	*numa = true;
	return domain_open(w, LEVEL_NUMA);
}

static int braces(struct walk *w)
{
	do {
		w->at++;
		if (branch(w))
			return -1;
	} while (*w->at == '|');
	if (*w->at != '}')
		return wrong(w, "braces without '}'");
	w->at++;
	return 0;
}

static bool branch_ends(struct walk *w)
{
	skip_space(w);
	return !*w->at || *w->at == '|' || *w->at == '}';
}

/* All that is below one object: its memory, then its children. */
static int branch(struct walk *w)
{
	unsigned cores = w->shape->cores;
	bool numa = false;

	if (++w->depth > SHAPE_MAX_DEPTH)
		return wrong(w, "nested too deep");
	skip_space(w);
	while (*w->at == '[') {
		if (memory(w, &numa))
			return -1;
		skip_space(w);
	}
	if (*w->at == '{') {
		if (braces(w))
			return -1;
	} else if (!branch_ends(w) && element(w)) {
		return -1;
	}
	if (!branch_ends(w))
		return wrong(w, "text after the end");
	if (!w->in_core && w->shape->cores == cores)
		return wrong(w, "no core");
	if (numa)
		domain_close(w);
	w->depth--;
	return 0;
}

struct shape *shape_parse(const char *text, struct err *e)
{
	struct shape *s = calloc(1, sizeof(*s));
	struct walk w = { .text = text, .at = text, .shape = s, .parent = -1, .err = e };

	if (!s || !(s->text = strdup(text))) {
		err_set(e, "out of memory");
		goto error;
	}
	if (domain_open(&w, LEVEL_NODE) || branch(&w))
		goto error;
	domain_close(&w);
	if (*w.at) {
		wrong(&w, "text after the end");
		goto error;
	}
	return s;
error:
	shape_free(s);
	return NULL;
}

void shape_free(struct shape *s)
{
	if (!s)
		return;
	free(s->text);
	free(s->threads);
	free(s->domains);
	free(s);
}
