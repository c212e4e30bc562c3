/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/strings.h"

#include "delta/field_layout.h"
#include "shape/tier.h"

/* --- children of an object --- */

/*
 * The children of one object as text; adjacent equal ones are counted: "Core:8 PU:2", or in braces where they differ.
 */
struct runs {
	unsigned n, count;	/* runs before the last one; children in the last */
	const char *type;	/* of the last one, NULL if there is none; borrowed */
	struct buf done, last;
};

static void run_flush(struct runs *r)
{
	buf_printf(&r->done, "%s%s:%u", r->n++ ? " | " : "", r->type, r->count);
	buf_add(&r->done, r->last.data, r->last.len);
}

/* Adds a child of this type, with the text that follows its count: attributes and everything below it. */
static void runs_add(struct runs *r, const char *type, const struct buf *body)
{
	if (r->type && !strcmp(r->type, type) && r->last.len == body->len &&
	    (!body->len || !memcmp(r->last.data, body->data, body->len))) {
		r->count++;
		return;
	}
	if (r->type)
		run_flush(r);
	r->type = type;
	r->count = 1;
	r->last.len = 0;
	buf_add(&r->last, body->data, body->len);
	r->last.failed |= body->failed;
}

/* Appends " Core:8 PU:2" or " { Core:6 PU:2 | Core:8 PU:1 }" to out, nothing if there was no child, and empties r. */
static void runs_append(struct runs *r, struct buf *out)
{
	if (!r->type)
		return;
	run_flush(r);
	buf_puts(out, r->n > 1 ? " { " : " ");
	buf_add(out, r->done.data, r->done.len);
	buf_puts(out, r->n > 1 ? " }" : "");
	out->failed |= r->done.failed | r->last.failed;
	r->n = r->count = 0;
	r->type = NULL;
	r->done.len = r->last.len = 0;
}

static void runs_free(struct runs *r)
{
	buf_free(&r->done);
	buf_free(&r->last);
}

/* --- memory and cores alone --- */

/* For each core, the innermost object around it that has memory of its own, or -1: holder[] by the core's object. */
static long *holders_of(const struct tree *t, const struct tree_extent *s)
{
	bool *holds = calloc(t->n, sizeof(*holds));
	long *holder = calloc(t->n, sizeof(*holder));

	for (size_t i = 0; holds && i < t->n; i++)
		if (tree_object_is(t, i, "NUMANode"))
			holds[tree_extent_around(t, s, i)] = true;
	for (size_t i = 0; holds && holder && i < t->n; i++)
		holder[i] = holds[i] ? (long)i : i ? holder[t->objects[i].parent] : -1;
	free(holds);
	return holder;
}

/* Whether every core has memory, and the cores of each memory are contiguous. -1 when memory is short. */
static int are_whole(const struct tree *t, const struct tree_extent *s, const long *holder)
{
	bool *left = calloc(t->n, sizeof(*left));
	int whole = left ? 1 : -1;
	long at = -2;		/* of no core yet */

	for (size_t i = 0; whole > 0 && i < t->n; i++) {
		if (s[i].core != (long)i || holder[i] == at)
			continue;
		if (at >= 0)
			left[at] = true;
		at = holder[i];
		whole = at >= 0 && !left[at];
	}
	free(left);
	return whole;
}

static void cell_end(struct runs *cores, struct runs *cells, struct buf *body)
{
	body->len = 0;
	runs_append(cores, body);
	if (body->len)
		runs_add(cells, "NUMANode", body);
}

/*
 * Appends a tree reduced to memory and cores to out: " NUMANode:2 Core:16 PU:2". NUMA nodes with the same cores count
 * as one, and of several around a core the innermost counts. If a core has no memory, or the cores of a memory are not
 * contiguous, only cores and PUs are written. 0, or -1 when memory is short.
 */
static int cells_append(const struct tree *t, const struct tree_extent *s, struct buf *out)
{
	long *holder = holders_of(t, s), at = -1;
	int whole = holder ? are_whole(t, s, holder) : -1;
	struct runs cores = {0}, cells = {0};
	struct buf body = {0};

	for (size_t i = 0; whole >= 0 && i < t->n; i++) {
		if (s[i].core != (long) i)
			continue;
		if (whole && holder[i] != at)
			cell_end(&cores, &cells, &body);
		at = holder[i];
		body.len = 0;
		buf_printf(&body, " PU:%u", s[i].pus);
		runs_add(&cores, "Core", &body);
	}
	if (whole > 0)
		cell_end(&cores, &cells, &body);
	runs_append(whole > 0 ? &cells : &cores, out);
	out->failed |= body.failed;
	buf_free(&body);
	runs_free(&cores);
	runs_free(&cells);
	free(holder);
	return whole < 0 || out->failed ? -1 : 0;
}

/* --- the tree --- */

/*
 * A tree as one line of text (shape/shape.h), appended to out, beginning with a blank. Contains the levels of
 * shape/level.h and other objects with memory, because otherwise a shape would have its memory in the wrong place; or
 * all objects, and the sizes of caches. A PU outside any core counts as a core. An object without PU is left out, and
 * its memory is that of the object around. All memory within a core is the core's. 0, or -1 when memory is short.
 */
struct outline {
	bool all;
	/* The attributes of a NUMA node, appended to out without parentheses; NULL for none. */
	void (*memory)(const struct tree *t, size_t numa, struct buf *out);
	const unsigned char *tiers;	/* by object: write those of NUMA nodes (strings_tiers); NULL for none */
	const unsigned char *kinds;	/* by object: write those of cores (strings_core_kinds); NULL for none */
};

#define MAX_DEPTH 64

/* The objects from the root down to the current one. */
struct nest {
	struct nest *home;		/* the one whose text contains this one's children: itself, or one above */
	struct nest *core;		/* the core that it is or belongs to */
	bool bare;			/* no child in the tree yet */
	struct buf memories;
	struct runs children;
};

struct writer {
	const struct tree *tree;
	const struct tree_extent *extents;
	const struct outline *how;
	struct nest nests[MAX_DEPTH];
	struct buf body;
};

/* An object and all below it; t: its nest, whose text is added to that of the nest around. */
static void object_append(struct writer *w, size_t object, struct nest *t)
{
	const struct tree_object *o = &w->tree->objects[object];
	struct nest *up = t == w->nests ? NULL : t - 1;
	bool is_pu = tree_object_is(w->tree, object, "PU"),
		written = !up || w->how->all || (o->type->level && (!up->core || is_pu));

	t->home = written ? t : up->home;
	t->core = up && up->core ? up->core : tree_object_is(w->tree, object, "Core") ? t : NULL;
	t->bare = true;
	t->memories.len = 0;
	for (size_t i = object + 1; i < w->extents[object].next;) {
		enum xml_family family = w->tree->objects[i].type->family;

		if (family == FAMILY_TREE) {
			t->bare = false;
			object_append(w, i, t + 1);
		} else if (tree_object_is(w->tree, i, "NUMANode")) {
			struct buf *out;

			if (t->bare && !t->core)
				t->home = t;
			out = t->core ? &t->core->memories : &t->home->memories;
			w->body.len = 0;
			if (w->how->memory)
				w->how->memory(w->tree, i, &w->body);
			if (w->how->tiers && w->how->tiers[i])
				buf_printf(&w->body, "%stier=%s", w->body.len ? " " : "", tier_name(w->how->tiers[i]));
			if (w->body.len)
				buf_printf(out, " [NUMANode(%s)]", w->body.data);
			else
				buf_puts(out, " [NUMANode]");
		}
		/* NUMA nodes may be below memory-side caches. */
		i = family == FAMILY_MEMORY ? i + 1 : w->extents[i].next;
	}
	if (!up || t->home != t)
		return;
	if (!is_pu && !t->children.type) {
		buf_add(&up->home->memories, t->memories.data, t->memories.len);
		return;
	}
	w->body.len = 0;
	if (!is_pu && w->how->all && tree_number(o, "cache_size", 0))
		buf_printf(&w->body, "(size=%llu)", tree_number(o, "cache_size", 0));
	if ((!is_pu || !t->core) && w->how->kinds && w->how->kinds[object])
		buf_printf(&w->body, "(kind=%u)", w->how->kinds[object]);
	if (!is_pu || !t->core)
		buf_add(&w->body, t->memories.data, t->memories.len);
	/* A PU outside any core. */
	if (is_pu && !t->core)
		buf_puts(&w->body, " PU:1");
	if (!is_pu)
		runs_append(&t->children, &w->body);
	runs_add(&up->home->children, !is_pu ? o->type->name : t->core ? "PU" : "Core", &w->body);
}

static int outline_append(const struct tree *t, const struct tree_extent *extents, const struct outline *how,
			  struct buf *out)
{
	struct writer *w = calloc(1, sizeof(*w));

	if (!w)
		return -1;
	w->tree = t;
	w->extents = extents;
	w->how = how;
	object_append(w, 0, w->nests);
	buf_add(out, w->nests[0].memories.data, w->nests[0].memories.len);
	runs_append(&w->nests[0].children, out);
	out->failed |= w->body.failed;
	buf_free(&w->body);
	for (size_t i = 0; i < MAX_DEPTH; i++) {
		out->failed |= w->nests[i].memories.failed;
		buf_free(&w->nests[i].memories);
		runs_free(&w->nests[i].children);
	}
	free(w);
	return out->failed ? -1 : 0;
}

/* --- OS indexes --- */

#define MAX_LOOPS 8

struct indexes {
	unsigned *list;
	size_t n;
	bool unknown;		/* an object has no index */
};

static void index_add(struct indexes *x, const struct tree_object *o)
{
	x->unknown |= o->os_index < 0;
	x->list[x->n++] = o->os_index;
}

/*
 * Whether the object has its memory in the text, or it is written as that of the core or the object around (struct
 * outline).
 */
static bool keeps_memory(const struct tree *t, const struct tree_extent *s, size_t object)
{
	const struct tree_extent *o = &s[object];

	return t->objects[object].type->family == FAMILY_TREE && o->pus && (o->core < 0 || o->core == (long)object);
}

/* hwloc numbers memory inside an object before memory attached to it. */
static void numas_gather(const struct tree *t, const struct tree_extent *s, size_t object, struct indexes *x)
{
	for (size_t i = object + 1; i < s[object].next; i = s[i].next)
		if (keeps_memory(t, s, i))
			numas_gather(t, s, i, x);
	for (size_t i = object + 1; i < s[object].next; i = keeps_memory(t, s, i) ? s[i].next : i + 1)
		if (tree_object_is(t, i, "NUMANode"))
			index_add(x, &t->objects[i]);
}

struct loop {
	size_t step, n;
};

/* The loop with step `by`. */
static struct loop loop_find(const struct indexes *x, size_t by)
{
	struct loop l = { 1, 1 };

	while (l.step < x->n && x->list[l.step] != by)
		l.step++;
	while (l.step * l.n < x->n && x->list[l.step * l.n] == by * l.n)
		l.n++;
	return l;
}

/* The number of loops that express the list, 0 if it cannot be expressed. */
static size_t loops_find(const struct indexes *x, struct loop *loops)
{
	size_t n = 0, by = 1;

	for (; by < x->n && n < MAX_LOOPS; by *= loops[n++].n)
		if ((loops[n] = loop_find(x, by)).n < 2)
			return 0;
	if (by != x->n)
		return 0;
	for (size_t i = 0; i < x->n; i++) {
		size_t value = 0;

		by = 1;
		for (size_t k = 0; k < n; by *= loops[k++].n)
			value += i / loops[k].step % loops[k].n * by;
		if (x->list[i] != value)
			return 0;
	}
	return n;
}

/* Inserts the attribute after the first `mark` of the text, into its parentheses if it has some. */
static void attribute_insert(struct buf *text, const char *mark, const struct indexes *x)
{
	struct loop loops[MAX_LOOPS];
	struct buf out = {0};
	char *at = text->data ? strstr(text->data, mark) : NULL;
	size_t n = 0;

	while (n < x->n && x->list[n] == n)
		n++;
	if (!at || text->failed || x->unknown || n == x->n)
		return;
	at += strlen(mark);
	at += strspn(at, "0123456789");
	at += *at == '(' ? strcspn(at, ")") : 0;
	buf_add(&out, text->data, at - text->data);
	buf_puts(&out, *at == ')' ? " indexes=" : "(indexes=");
	n = loops_find(x, loops);
	for (size_t i = 0; i < n; i++)
		buf_printf(&out, "%s%zu*%zu", i ? ":" : "", loops[i].step, loops[i].n);
	for (size_t i = 0; !n && i < x->n; i++)
		buf_printf(&out, "%s%u", i ? "," : "", x->list[i]);
	buf_puts(&out, *at == ')' ? "" : ")");
	buf_puts(&out, at);
	buf_free(text);
	*text = out;
}

/*
 * Inserts OS indexes into a synthetic description of the tree where they are not 0, 1, 2, ...: indexes= at the first PU
 * for all PUs of the node in logical order, and at the first NUMA node for all NUMA nodes, those inside an object
 * before its own. As loops where possible (hwloc manual, "Synthetic topologies"): "2*8:1*2" counts 0,8,1,9,... 0, or -1
 * when memory is short.
 */
static int indexes_append(const struct tree *t, const struct tree_extent *extents, struct buf *text)
{
	struct indexes x = { .list = malloc((t->n + 1) * sizeof(*x.list)) };

	if (!x.list)
		return -1;
	for (size_t i = 0; i < t->n; i++)
		if (tree_object_is(t, i, "PU"))
			index_add(&x, &t->objects[i]);
	attribute_insert(text, " PU:", &x);
	x.n = 0;
	x.unknown = false;
	numas_gather(t, extents, 0, &x);
	attribute_insert(text, "[NUMANode", &x);
	free(x.list);
	return text->failed ? -1 : 0;
}

/* --- the strings --- */

static void memory_nominally(const struct tree *t, size_t numa, struct buf *out)
{
	unsigned long long bytes = tree_number(&t->objects[numa], "local_memory", 0);

	if (bytes)
		buf_printf(out, "memory=%llu", field_memory_nominal(bytes));
}

/* hwloc reads memorysidecachesize from 2.10 on. */
static void memory_exactly(const struct tree *t, size_t numa, struct buf *out)
{
	const struct tree_object *o = &t->objects[numa], *around = &t->objects[o->parent];
	unsigned long long bytes = tree_number(o, "local_memory", 0);
	unsigned long long cache = tree_object_is(t, o->parent, "MemCache") ? tree_number(around, "cache_size", 0) : 0;

	if (bytes)
		buf_printf(out, "memory=%llu", bytes);
	if (cache)
		buf_printf(out, "%smemorysidecachesize=%llu", out->len ? " " : "", cache);
}

static int hierarchy_write(const struct tree *t, const struct tree_extent *s, struct buf *out)
{
	static const struct outline how = { .all = false, .memory = NULL };

	return outline_append(t, s, &how, out);
}

static int detail_write(const struct tree *t, const struct tree_extent *s, struct buf *out)
{
	static const struct outline how = { .all = true, .memory = memory_exactly };

	return outline_append(t, s, &how, out) || indexes_append(t, s, out) ? -1 : 0;
}

static int allocation_write(const struct tree *t, const struct tree_extent *s, struct buf *out)
{
	unsigned char *tiers = strings_tiers(t, s), *kinds = strings_core_kinds(t, s);
	struct outline how = { .all = false, .memory = memory_nominally, .tiers = tiers, .kinds = kinds };
	int rc = -1;

	if (tiers && kinds)
		rc = outline_append(t, s, &how, out) || strings_devices(t, s, out) ? -1 : 0;
	free(tiers);
	free(kinds);
	return rc;
}

/* Each begins with a blank, which is removed. */
static char *string_make(int (*write)(const struct tree *, const struct tree_extent *, struct buf *),
			 const struct tree *t, const struct tree_extent *s)
{
	struct buf out = {0};
	char *text = write(t, s, &out) == 0 && out.len ? strdup(out.data + 1) : NULL;

	buf_free(&out);
	return text;
}

int strings_make(const struct tree *t, struct strings *out, struct err *e)
{
	struct tree_extent *s = tree_extents(t);
	struct strings made;

	if (!s)
		return err_set(e, "out of memory");
	if (!s[0].pus) {
		free(s);
		return err_set(e, "the topology has no PU");
	}
	made = (struct strings){
		.cores = string_make(cells_append, t, s),
		.hierarchy = string_make(hierarchy_write, t, s),
		.detail = string_make(detail_write, t, s),
		.allocation = string_make(allocation_write, t, s),
		.ncores = s[0].cores,
		.npus = s[0].pus,
	};
	free(s);
	if (!made.cores || !made.hierarchy || !made.detail || !made.allocation) {
		strings_free(&made);
		return err_set(e, "out of memory");
	}
	*out = made;
	return 0;
}

void strings_free(struct strings *s)
{
	free(s->cores);
	free(s->hierarchy);
	free(s->detail);
	free(s->allocation);
	*s = (struct strings){0};
}
