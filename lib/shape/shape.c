/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/shape.h"

#include "base/array.h"
#include "base/number.h"

#define MAX_THREADS 1024u
#define NO_LEVEL (-1)		/* an object that is not a level */
#define OBJECT_WORK 16u
#define MAX_WORK (64u << 20)

/*
 * The text is parsed once for each object it stands for: `Type:N rest` reads `rest` N times. MAX_WORK limits the sum of
 * the bytes read and OBJECT_WORK for each object.
 */
struct walk {
	const char *text, *at;
	struct shape *shape;
	int parent;		/* the current domain */
	int depth;
	bool in_core;
	size_t work;
	struct err *err;
};

static int read_branch(struct walk *w);
static int read_memories(struct walk *w, bool *numa);

/* (name=value name=value): those that are read, 0 without. */
struct attributes {
	unsigned long long memory;
	unsigned tier, kind;
};

static int syntax_error(struct walk *w, const char *what)
{
	return err_set(w->err, "%s at '%.24s' in shape '%.120s'", what, w->at, w->text);
}

static void skip_space(struct walk *w)
{
	while (isspace((unsigned char) *w->at))
		w->at++;
}

static int domain_open(struct walk *w, enum level level)
{
	struct shape *s = w->shape;

	if (array_reserve(s->domains, s->ndomains, 1))
		return syntax_error(w, "out of memory");
	s->domains[s->ndomains] = (struct shape_domain){ .level = level, .first = s->cores, .parent = w->parent };
	w->parent = s->ndomains++;
	return 0;
}

static void domain_close(struct walk *w)
{
	struct shape_domain *d = &w->shape->domains[w->parent];

	d->cores = w->shape->cores - d->first;
	w->parent = d->parent;
}

static int core_add(struct walk *w, unsigned threads, unsigned kind)
{
	struct shape *s = w->shape;
	size_t has = s->kinds ? s->cores : 0;	/* cores whose kinds are listed */

	if (s->cores == SHAPE_MAX_CORES)
		return syntax_error(w, "too many cores");
	if (array_reserve(s->threads, s->cores, 1))
		return syntax_error(w, "out of memory");
	s->threads[s->cores++] = threads;
	s->pus += threads;
	/* Until a core is of another kind than 0 there is no list. */
	if (!kind && !s->kinds)
		return 0;
	if (array_reserve(s->kinds, has, s->cores - has))
		return syntax_error(w, "out of memory");
	memset(s->kinds + has, 0, s->cores - 1 - has);
	s->kinds[s->cores - 1] = kind;
	if (s->nkinds <= kind)
		s->nkinds = kind + 1;
	return 0;
}

/* A PU outside any core is a core of its own, as in hwloc's view of machines that do not report cores. */
static int pu_walk(struct walk *w, unsigned count)
{
	struct shape *s = w->shape;

	if (w->in_core) {
		if (count > MAX_THREADS - s->threads[s->cores - 1])
			return syntax_error(w, "too many PUs in a core");
		s->threads[s->cores - 1] += count;
		s->pus += count;
		return 0;
	}
	while (count--) {
		if (domain_open(w, LEVEL_CORE) || core_add(w, 1, 0))
			return -1;
		domain_close(w);
	}
	return 0;
}

static int object_walk(struct walk *w, int level, const struct attributes *a)
{
	if (level == LEVEL_CORE) {
		/* A core's own memory is a domain around the core: there are no levels within a core. */
		unsigned core = w->shape->cores;
		bool numa = false;

		if (w->in_core)
			return syntax_error(w, "core inside a core");
		if (read_memories(w, &numa) || domain_open(w, LEVEL_CORE) || core_add(w, 0, a->kind))
			return -1;
		w->in_core = true;
		if (read_branch(w))
			return -1;
		w->in_core = false;
		if (!w->shape->threads[core]) {
			w->shape->threads[core] = 1;
			w->shape->pus++;
		}
		domain_close(w);
		if (numa)
			domain_close(w);
		return 0;
	}
	if (level == NO_LEVEL || w->in_core)
		return read_branch(w);
	if (domain_open(w, level))
		return -1;
	if (level == LEVEL_NUMA) {
		w->shape->domains[w->parent].memory = a->memory;
		w->shape->domains[w->parent].tier = a->tier;
	}
	if (read_branch(w))
		return -1;
	domain_close(w);
	return 0;
}

/* The units of hwloc 2.9 (hwloc/topology-synthetic.c), which reads them in any case. */
static const struct {
	const char *name;
	unsigned long long bytes;
} units[] = {
	{ "", 1 },
	{ "kB", 1000ull }, { "MB", 1000000ull }, { "GB", 1000000000ull }, { "TB", 1000000000000ull },
	{ "KiB", 1ull << 10 }, { "MiB", 1ull << 20 }, { "GiB", 1ull << 30 }, { "TiB", 1ull << 40 },
};

static int read_memory(struct walk *w, const char *text, struct attributes *out)
{
	char *unit;
	unsigned long long n;

	errno = 0;
	n = strtoull(text, &unit, 10);
	if (!isdigit((unsigned char) *text) || errno)
		return syntax_error(w, "expected a memory size");
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t len = strlen(units[i].name);

		if (strcspn(unit, " )") == len && !strncasecmp(unit, units[i].name, len))
			return __builtin_mul_overflow(n, units[i].bytes, &out->memory) ?
			       syntax_error(w, "memory size out of range") : 0;
	}
	return syntax_error(w, "expected a memory unit");
}

static int read_tier(struct walk *w, const char *text, struct attributes *out)
{
	size_t n = strcspn(text, " )");
	char word[8] = "";
	int tier;

	if (n < sizeof(word))
		memcpy(word, text, n);
	if ((tier = tier_parse(word)) < 0)
		return syntax_error(w, "expected a tier of memory (dram, hbm, cxl, nvm, gpu)");
	out->tier = tier;
	return 0;
}

static int read_kind(struct walk *w, const char *text, struct attributes *out)
{
	unsigned kind = *text - '0';

	if (kind >= SHAPE_MAX_KINDS || !strchr(" )", text[1]))
		return syntax_error(w, "expected a kind of core from 0 to 7");
	out->kind = kind;
	return 0;
}

static const struct {
	const char *key;
	int (*read)(struct walk *w, const char *text, struct attributes *out);
} attributes[] = {
	{ "memory=", read_memory }, { "tier=", read_tier }, { "kind=", read_kind },
};

static int read_attributes(struct walk *w, struct attributes *out)
{
	const char *end = w->at + strcspn(w->at, ")");

	*out = (struct attributes){0};
	if (*w->at != '(')
		return 0;
	if (!*end)
		return syntax_error(w, "missing ')' after attributes");
	do {
		w->at++;
		for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
			size_t len = strlen(attributes[i].key);

			if (!strncasecmp(w->at, attributes[i].key, len) && attributes[i].read(w, w->at + len, out))
				return -1;
		}
		w->at += strcspn(w->at, " )");
	} while (w->at < end);
	w->at++;
	return 0;
}

static int read_type(struct walk *w, char *type, size_t size)
{
	size_t n = 0;

	while (isalnum((unsigned char) w->at[n]))
		n++;
	if (!n || n >= size)
		return syntax_error(w, "missing object type");
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

/* Type:N[(attributes)], followed by the contents of each of the N objects. */
static int read_element(struct walk *w)
{
	struct attributes attrs;
	unsigned long count;
	const char *rest;
	char type[24], *end;

	if (read_type(w, type, sizeof(type)))
		return -1;
	if (*w->at != ':' || !isdigit((unsigned char) w->at[1]))
		return syntax_error(w, "missing count");
	count = strtoul(w->at + 1, &end, 10);
	if (count < 1 || count > SHAPE_MAX_CORES)
		return syntax_error(w, "count out of range");
	w->at = end;
	if (read_attributes(w, &attrs))
		return -1;
	if (!strcasecmp(type, "PU"))
		return pu_walk(w, count);
	for (rest = w->at; count; count--) {
		w->at = rest;
		if (object_walk(w, type_level(type), &attrs))
			return -1;
		w->work += OBJECT_WORK + (w->at - rest);
		if (w->work > MAX_WORK)
			return syntax_error(w, "too many objects");
	}
	return 0;
}

static int bytes_add(struct walk *w, unsigned long long bytes, unsigned long long *sum)
{
	return __builtin_add_overflow(*sum, bytes, sum) ? syntax_error(w, "memory size out of range") : 0;
}

/*
 * The domain of the NUMA nodes attached to the current object: one for all, because their cores are the same. Its
 * memory is that of its first tier.
 */
static int numa_add(struct walk *w, const struct attributes *a, bool *numa)
{
	unsigned long long *others = &w->shape->numas.others;
	struct shape_domain *d;

	if (w->in_core)
		return 0;
	if (!*numa && domain_open(w, LEVEL_NUMA))
		return -1;
	d = &w->shape->domains[w->parent];
	if (!*numa || (a->memory && !d->memory))
		d->tier = a->tier;
	*numa = true;
	if (a->tier > d->tier)
		return bytes_add(w, a->memory, others);
	if (a->tier < d->tier) {
		if (bytes_add(w, d->memory, others))
			return -1;
		d->memory = 0;
		d->tier = a->tier;
	}
	return bytes_add(w, a->memory, &d->memory);
}

/* [NUMANode(attributes)], any number of them; *numa: whether their domain exists already. */
static int read_memories(struct walk *w, bool *numa)
{
	struct attributes attrs;
	char type[24];

	for (skip_space(w); *w->at == '['; skip_space(w)) {
		w->at++;
		if (read_type(w, type, sizeof(type)) || read_attributes(w, &attrs))
			return -1;
		skip_space(w);
		if (*w->at != ']')
			return syntax_error(w, "missing ']' after memory");
		w->at++;
		if (type_level(type) == LEVEL_NUMA && numa_add(w, &attrs, numa))
			return -1;
	}
	return 0;
}

static bool branch_ends(struct walk *w)
{
	skip_space(w);
	return !*w->at || strchr("|}+", *w->at);
}

/* The contents of one object: its memory, then its children. */
static int read_branch(struct walk *w)
{
	unsigned cores = w->shape->cores;
	bool numa = false;

	if (++w->depth > SHAPE_MAX_DEPTH)
		return syntax_error(w, "nested too deeply");
	if (read_memories(w, &numa))
		return -1;
	if (*w->at == '{') {
		do {
			w->at++;
			if (read_branch(w))
				return -1;
		} while (*w->at == '|');
		if (*w->at != '}')
			return syntax_error(w, "missing '}'");
		w->at++;
	} else if (!branch_ends(w) && read_element(w)) {
		return -1;
	}
	if (!branch_ends(w))
		return syntax_error(w, "unexpected text");
	if (!w->in_core && w->shape->cores == cores)
		return syntax_error(w, "no core");
	if (numa)
		domain_close(w);
	w->depth--;
	return 0;
}

/* TYPE@FIRST-LAST or TYPE@CORE, with a number after the type or none. */
static int read_device(struct walk *w)
{
	struct shape *s = w->shape;
	struct shape_device d;
	unsigned last;
	char *digits;

	if (read_type(w, d.type, sizeof(d.type)))
		return -1;
	for (digits = d.type + strlen(d.type); digits > d.type && isdigit((unsigned char) digits[-1]); digits--)
		;
	if (digits == d.type)
		return syntax_error(w, "missing type of a device");
	d.number = *digits ? atoi(digits) : -1;
	*digits = '\0';
	if (*w->at != '@' || !isdigit((unsigned char) w->at[1]))
		return syntax_error(w, "missing core list of a device");
	w->at++;
	if (!s->cores || number_read_range(&w->at, s->cores - 1, &d.first, &last))
		return syntax_error(w, "core of a device out of range");
	if (*w->at && !isspace((unsigned char) *w->at))
		return syntax_error(w, "unexpected text after a device");
	if (s->ndevices == SHAPE_MAX_DEVICES)
		return syntax_error(w, "too many devices");
	if (array_reserve(s->devices, s->ndevices, 1))
		return syntax_error(w, "out of memory");
	d.cores = last - d.first + 1;
	s->devices[s->ndevices++] = d;
	return 0;
}

/* Thousands of shapes are kept for a long time. */
static void array_shrink(void **array, size_t used, size_t size)
{
	void *smaller = used ? realloc(*array, used * size) : NULL;

	if (smaller)
		*array = smaller;
}

/*
 * Whether domain d is the NUMA node of its cores: the innermost with memory, or one without memory whose cores have
 * none that has.
 */
static bool is_inner_numa(const struct shape *s, size_t d)
{
	const struct shape_domain *at = &s->domains[d];
	unsigned end = at->first + at->cores;

	if (at->level != LEVEL_NUMA)
		return false;
	for (int around = at->parent; !at->memory && around >= 0; around = s->domains[around].parent)
		if (s->domains[around].memory)
			return false;
	for (d++; d < s->ndomains && s->domains[d].first < end; d++)
		if (s->domains[d].level == LEVEL_NUMA && (s->domains[d].memory || !at->memory))
			return false;
	return true;
}

static int numas_find(struct walk *w)
{
	struct shape *s = w->shape;
	struct shape_numas *n = &s->numas;
	unsigned cores = 0;
	bool single = false;

	for (size_t d = 0; d < s->ndomains; d++) {
		const struct shape_domain *at = &s->domains[d];

		if (!is_inner_numa(s, d)) {
			if (at->tier && bytes_add(w, at->memory, &n->others))
				return -1;
			continue;
		}
		if (array_reserve(n->domains, n->count, 1))
			return syntax_error(w, "out of memory");
		if (bytes_add(w, at->memory, &n->all))
			return -1;
		n->least = !n->count || at->memory < n->least ? at->memory : n->least;
		n->domains[n->count++] = d;
		cores += at->cores;
		single |= at->cores < 2;
	}
	if (n->count < 2 || cores != s->cores || single || !n->all)
		n->count = 0;
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
	s->nkinds = 1;
	if (domain_open(&w, LEVEL_NODE) || read_branch(&w))
		goto error;
	domain_close(&w);
	if (*w.at && *w.at != '+') {
		syntax_error(&w, "unexpected text");
		goto error;
	}
	if (*w.at == '+') {
		w.at++;
		skip_space(&w);
		do {
			if (read_device(&w))
				goto error;
			skip_space(&w);
		} while (*w.at);
	}
	if (numas_find(&w))
		goto error;
	/*
	 * Which of a type is which does not matter where all are near the same cores: these are numbered in their
	 * order.
	 */
	for (size_t i = 0; i < s->ndevices && s->ndevices <= 64; i++) {
		struct shape_device *d = &s->devices[i];
		int before = 0;
		bool alike = true;

		for (size_t k = 0; k < s->ndevices; k++) {
			const struct shape_device *o = &s->devices[k];

			if (strcasecmp(o->type, d->type))
				continue;
			alike &= o->first == d->first && o->cores == d->cores && (o->number < 0 || k < i);
			before += k < i;
		}
		if (alike && d->number < 0)
			d->number = before;
	}
	array_shrink((void **) &s->threads, s->cores, sizeof(*s->threads));
	array_shrink((void **) &s->domains, s->ndomains, sizeof(*s->domains));
	array_shrink((void **) &s->devices, s->ndevices, sizeof(*s->devices));
	array_shrink((void **) &s->kinds, s->kinds ? s->cores : 0, sizeof(*s->kinds));
	return s;
error:
	shape_free(s);
	return NULL;
}

static void cut(unsigned first, unsigned *count, unsigned end)
{
	if (first + *count > end)
		*count = first < end ? end - first : 0;
}

/* Domains and devices that have none of the cores are left out, or are near no core. */
struct shape *shape_first_cores(const struct shape *of, unsigned cores, struct err *e)
{
	struct shape *s = shape_parse(of->text, e);
	struct walk w = { .text = of->text, .at = of->text, .shape = s, .err = e };

	if (!s)
		return NULL;
	while (s->domains[s->ndomains - 1].first >= cores)
		s->ndomains--;
	for (size_t i = 0; i < s->ndomains; i++)
		cut(s->domains[i].first, &s->domains[i].cores, cores);
	for (size_t i = 0; i < s->ndevices; i++)
		cut(s->devices[i].first, &s->devices[i].cores, cores);
	while (s->cores > cores)
		s->pus -= s->threads[--s->cores];
	free(s->numas.domains);
	s->numas = (struct shape_numas){0};
	if (numas_find(&w)) {
		shape_free(s);
		return NULL;
	}
	return s;
}

void shape_free(struct shape *s)
{
	if (!s)
		return;
	free(s->text);
	free(s->threads);
	free(s->kinds);
	free(s->domains);
	free(s->numas.domains);
	free(s->devices);
	free(s);
}
