/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/model/hierarchy.h"

#include "base/array.h"
#include "base/order.h"
#include "fabric/model/lines.h"
#include "fabric/model/names.h"

struct hierarchy *hierarchy_new(void)
{
	return calloc(1, sizeof(struct hierarchy));
}

void hierarchy_free(struct hierarchy *h)
{
	if (!h)
		return;
	for (unsigned i = 0; i < h->nhosts; i++) {
		free(h->hosts[i].name);
		free(h->hosts[i].inner.leaf);
	}
	for (unsigned i = 0; i < h->ngroups; i++)
		free(h->groups[i].name);
	for (unsigned l = 0; l < HIERARCHY_LEVELS; l++)
		free(h->level[l].hops);
	free(h->hosts);
	free(h->groups);
	free(h);
}

int hierarchy_add_group(struct hierarchy *h, const char *name, unsigned level, unsigned above, unsigned at)
{
	char *copy;

	if (array_reserve(h->groups, h->ngroups, 1) || !(copy = strdup(name)))
		return -1;
	h->groups[h->ngroups] = (struct hierarchy_group){ copy, level, above, at };
	return h->ngroups++;
}

struct hierarchy_host *hierarchy_add_host(struct hierarchy *h, const char *name, unsigned group, const unsigned *at)
{
	struct hierarchy_host *host;
	char *copy;

	if (array_reserve(h->hosts, h->nhosts, 1) || !(copy = strdup(name)))
		return NULL;
	host = &h->hosts[h->nhosts++];
	*host = (struct hierarchy_host){ .name = copy, .group = group };
	memcpy(host->at, at, sizeof(host->at));
	return host;
}

static int hosts_compare(const void *a, const void *b)
{
	const struct hierarchy_host *x = a, *y = b;
	int order = 0;

	for (unsigned l = 0; !order && l < HIERARCHY_LEVELS; l++)
		order = COMPARE(x->at[l], y->at[l]);
	return order ?: strcmp(x->name, y->name);
}

void hierarchy_sort(struct hierarchy *h)
{
	if (h->nhosts)
		qsort(h->hosts, h->nhosts, sizeof(*h->hosts), hosts_compare);
}

const struct hierarchy_host *hierarchy_find(const struct hierarchy *h, const char *name)
{
	for (unsigned i = 0; i < h->nhosts; i++)
		if (!strcmp(h->hosts[i].name, name))
			return &h->hosts[i];
	return NULL;
}

static double torus_cost(const struct hierarchy_level *level, unsigned a, unsigned b)
{
	double sum = 0;

	for (unsigned d = 0; d < level->dims; d++) {
		unsigned x = a % level->dim[d], y = b % level->dim[d], hops = x < y ? y - x : x - y;

		if (hops > level->dim[d] - hops)
			hops = level->dim[d] - hops;
		sum += (double) hops * level->cost[d];
		a /= level->dim[d];
		b /= level->dim[d];
	}
	return sum;
}

double hierarchy_level_cost(const struct hierarchy_level *level, unsigned a, unsigned b)
{
	switch (level->form) {
	case HIERARCHY_TORUS:
		return torus_cost(level, a, b);
	case HIERARCHY_GRAPH:
		return (double) level->hops[(size_t) a * level->size + b] * level->cost[0];
	case HIERARCHY_TREE:
		break;
	}
	return level->cost[0];
}

unsigned hierarchy_distance(const struct hierarchy *h, const struct hierarchy_host *a, const struct hierarchy_host *b)
{
	for (unsigned l = 0; l < h->nlevels; l++)
		if (a->at[l] != b->at[l])
			return hierarchy_level_cost(&h->level[l], a->at[l], b->at[l]);
	return 0;
}

/* --- the text --- */

#define MAX_SIZE (1u << 24)	/* elements of a level, leaves of a host */
#define MAX_COST 1000000000u
#define MAX_GRAPH 8192u
#define MAX_HOPS 10000u

struct parser {
	struct lines lines;
	struct hierarchy *h;
	unsigned depth[HIERARCHY_LEVELS];	/* the line that first stated a level */
};

/* "DIMENSIONS SIZE COST ...": the common part of all lines, and the product of the sizes. */
struct shape {
	unsigned dims, size[HIERARCHY_INNER], cost[HIERARCHY_INNER], product;
};

static int read_shape(struct parser *p, char **at, unsigned most, struct shape *s)
{
	char *word = lines_word_next(at);

	if (!word || !lines_word_number(word, most, &s->dims) || !s->dims)
		return lines_wrong(&p->lines, "expected a number of dimensions, 1 to %u", most);
	s->product = 1;
	for (unsigned d = 0; d < s->dims; d++) {
		char *size = lines_word_next(at), *cost = lines_word_next(at);

		if (!size || !lines_word_number(size, MAX_SIZE, &s->size[d]) || !s->size[d] ||
		    s->size[d] > MAX_SIZE / s->product)
			return lines_wrong(&p->lines, "dimension %u: expected a size (product of all sizes at most %u)",
					   d + 1, MAX_SIZE);
		if (!cost || !lines_word_number(cost, MAX_COST, &s->cost[d]))
			return lines_wrong(&p->lines, "dimension %u: expected a cost, 0 to %u", d + 1, MAX_COST);
		s->product *= s->size[d];
	}
	return 0;
}

/* "-1" or "COUNT INDEX ...": a list of indices, ascending; for -1, NULL and the count of all. */
static int read_indices(struct parser *p, char **at, unsigned product, unsigned **list, unsigned *count)
{
	char *word = lines_word_next(at);
	unsigned *indices;

	if (word && !strcmp(word, "-1")) {
		*list = NULL;
		*count = product;
		return lines_word_next(at) ? lines_wrong(&p->lines, "unexpected text after -1") : 0;
	}
	if (!word || !lines_word_number(word, product, count) || !*count || *count > strlen(*at))
		return lines_wrong(&p->lines, "expected -1, or a count from 1 to %u followed by as many indices",
				   product);
	if (!(indices = calloc(*count, sizeof(*indices))))
		return lines_wrong(&p->lines, "out of memory");
	for (unsigned i = 0; i < *count; i++)
		if (!(word = lines_word_next(at)) || !lines_word_number(word, product - 1, &indices[i]) ||
		    (i && indices[i] <= indices[i - 1])) {
			free(indices);
			return lines_wrong(&p->lines, "index %u of %u: must be below %u and above the previous one",
					   i + 1, *count, product);
		}
	if (lines_word_next(at)) {
		free(indices);
		return lines_wrong(&p->lines, "more than %u indices", *count);
	}
	*list = indices;
	return 0;
}

/* The next line that is not a comment, or NULL with an error. */
static char *next_line(struct parser *p, const char *wanted)
{
	char *line;

	while ((line = lines_next(&p->lines))) {
		line[strcspn(line, "#")] = '\0';
		if (*line)
			return line;
	}
	if (wanted)
		lines_wrong(&p->lines, "unexpected end of file, expected %s", wanted);
	return NULL;
}

/* A level has one form and cost in all branches; its size is that of the largest. */
static int set_level(struct parser *p, unsigned l, const struct hierarchy_level *new)
{
	struct hierarchy_level *level = &p->h->level[l];

	if (!p->depth[l]) {
		*level = *new;
		p->depth[l] = p->lines.line;
		return 0;
	}
	if (level->form != new->form || level->dims != new->dims ||
	    memcmp(level->cost, new->cost, sizeof(level->cost)) ||
	    (new->form == HIERARCHY_TORUS &&memcmp(level->dim, new->dim, sizeof(level->dim))))
		return lines_wrong(&p->lines, "kind or cost differs from line %u at this level", p->depth[l]);
	if (level->size < new->size)
		level->size = level->dim[0] = new->size;
	return 0;
}

/* Sets the levels of a line: one for a torus, one for each dimension of a tree. Returns their number, or -1. */
static int set_levels(struct parser *p, unsigned l, enum hierarchy_form form, const struct shape *s)
{
	struct hierarchy_level torus = { .form = form, .size = s->product, .dims = s->dims, .pruned = 100 };
	unsigned n = form == HIERARCHY_TREE ? s->dims : 1;

	if (l + n > HIERARCHY_LEVELS)
		return lines_wrong(&p->lines, "more than %u levels above a host", HIERARCHY_LEVELS);
	if (form != HIERARCHY_TREE) {
		memcpy(torus.dim, s->size, sizeof(torus.dim));
		memcpy(torus.cost, s->cost, sizeof(torus.cost));
		return set_level(p, l, &torus) ? -1 : 1;
	}
	for (unsigned d = 0; d < n; d++) {
		struct hierarchy_level tree = { .form = HIERARCHY_TREE, .size = s->size[d], .dims = 1,
						.dim = { s->size[d] },
						.cost = { s->cost[d] }, .pruned = 100 };

		if (set_level(p, l + d, &tree))
			return -1;
	}
	return n;
}

/* "switch-32-0": the path from the top. */
static int add_group(struct parser *p, unsigned level, unsigned above, const unsigned *at)
{
	char name[16 * HIERARCHY_LEVELS] = "fabric";
	int len = snprintf(name, sizeof(name), level ? "switch" : "fabric"), group;

	for (unsigned l = 0; l < level; l++)
		len += snprintf(name + len, sizeof(name) - len, "-%u", at[l]);
	group = hierarchy_add_group(p->h, name, level, above, level ? at[level - 1] : 0);
	return group < 0 ? lines_wrong(&p->lines, "out of memory") : group;
}

static int parse_host(struct parser *p, char *at, unsigned level, unsigned group, const unsigned *place)
{
	char *name = lines_word_next(&at), *form = lines_word_next(&at);
	struct hierarchy_inner inner = {0};
	struct hierarchy_host *host;
	struct shape s;

	if (!level)
		return lines_wrong(&p->lines, "node before the first tree or torus");
	if (p->h->nhosts && level != p->h->nlevels)
		return lines_wrong(&p->lines, "%.100s: %u levels above it, other nodes have %u", name ? name : "node",
				   level, p->h->nlevels);
	if (name && !names_fit(name))
		return lines_wrong(&p->lines, "'%.100s': invalid host name", name);
	if (!form || strcmp(form, "tree"))
		return lines_wrong(&p->lines, "expected 'node HOST tree ...'");
	if (read_shape(p, &at, HIERARCHY_INNER, &s) || read_indices(p, &at, s.product, &inner.leaf, &inner.nleaves))
		return -1;
	inner.levels = s.dims;
	memcpy(inner.size, s.size, sizeof(inner.size));
	memcpy(inner.cost, s.cost, sizeof(inner.cost));
	if (!(host = hierarchy_add_host(p->h, name, group, place))) {
		free(inner.leaf);
		return lines_wrong(&p->lines, "out of memory");
	}
	host->inner = inner;
	p->h->nlevels = level;
	return 0;
}

static int parse_block(struct parser *p, unsigned level, unsigned group, unsigned *place);

/*
 * Parses the elements of a group's line, each followed by its own block; a tree of several dimensions becomes nested
 * groups.
 */
static int parse_elements(struct parser *p, unsigned level, unsigned n, unsigned group, unsigned *place,
			  const struct shape *s, const unsigned *list, unsigned count)
{
	unsigned groups[HIERARCHY_LEVELS] = { group };

	for (unsigned i = 0; i < count; i++) {
		unsigned index = list ? list[i] : i, below = s->product;
		bool fresh = i == 0;

		for (unsigned d = 0; d < n; d++) {
			unsigned at = n == 1 ? index : index / (below /= s->size[d]) % s->size[d];
			int inside;

			fresh |= place[level + d] != at;
			place[level + d] = at;
			if (d + 1 == n || !fresh)
				continue;
			if ((inside = add_group(p, level + d + 1, groups[d], place)) < 0)
				return -1;
			groups[d + 1] = inside;
		}
		if (parse_block(p, level + n, groups[n - 1], place))
			return -1;
	}
	return 0;
}

/* "hops H ...": a line for each element but the first, with its hops to those before it. */
static int parse_hops(struct parser *p, struct hierarchy_level *level)
{
	size_t n = level->size;

	if (n > MAX_GRAPH || n * (n - 1) > strlen(p->lines.at))
		return lines_wrong(&p->lines, "graph of %zu elements: more than %u, or hops missing", n, MAX_GRAPH);
	if (!(level->hops = calloc(n * n, sizeof(*level->hops))))
		return lines_wrong(&p->lines, "out of memory");
	for (size_t a = 1; a < n; a++) {
		char *at = next_line(p, "hops"), *word = at ? lines_word_next(&at) : NULL;

		if (!word || strcmp(word, "hops"))
			return at ? lines_wrong(&p->lines, "expected 'hops ...'") : -1;
		for (size_t b = 0; b < a; b++) {
			unsigned *hops = &level->hops[a * n + b];

			if (!(word = lines_word_next(&at)) || !lines_word_number(word, MAX_HOPS, hops) || !*hops)
				return lines_wrong(&p->lines, "expected %zu hop counts, 1 to %u each", a, MAX_HOPS);
			level->hops[b * n + a] = *hops;
		}
		if (lines_word_next(&at))
			return lines_wrong(&p->lines, "more than %zu hop counts", a);
	}
	return 0;
}

/* The words of a group's line. An alltoall costs the same between any two elements, as a tree of one level does. */
static const struct group_word {
	const char *word;
	enum hierarchy_form form;
	unsigned most;			/* dimensions */
} group_words[] = {
	{ "tree", HIERARCHY_TREE, HIERARCHY_LEVELS }, { "torus", HIERARCHY_TORUS, HIERARCHY_DIMS },
	{ "graph", HIERARCHY_GRAPH, 1 }, { "alltoall", HIERARCHY_TREE, 1 }, { "ring", HIERARCHY_TORUS, 1 },
};

static int parse_group(struct parser *p, const struct group_word *w, char *at, unsigned level, unsigned above,
		       unsigned *place)
{
	unsigned *list, count;
	struct shape s = {0};
	int n, group, rc;

	if (level >= HIERARCHY_LEVELS)
		return lines_wrong(&p->lines, "more than %u levels above a host", HIERARCHY_LEVELS);
	if (w->form == HIERARCHY_GRAPH && level)
		return lines_wrong(&p->lines, "graph is allowed in the first line only");
	if (read_shape(p, &at, w->most, &s) ||
	    (n = set_levels(p, level, w->form, &s)) < 0 || (group = add_group(p, level, above, place)) < 0)
		return -1;
	if (read_indices(p, &at, s.product, &list, &count))
		return -1;
	rc = w->form == HIERARCHY_GRAPH ? parse_hops(p, &p->h->level[level]) : 0;
	if (rc == 0)
		rc = parse_elements(p, level, n, group, place, &s, list, count);
	for (int d = 0; d < n; d++)
		place[level + d] = 0;
	free(list);
	return rc;
}

static int parse_block(struct parser *p, unsigned level, unsigned group, unsigned *place)
{
	static const char words[] = "tree, torus, graph, alltoall, ring or node";
	char *line = next_line(p, words), *word;

	if (!line)
		return -1;
	word = lines_word_next(&line);
	if (!strcmp(word, "node"))
		return parse_host(p, line, level, group, place);
	for (size_t i = 0; i < sizeof(group_words) / sizeof(group_words[0]); i++)
		if (!strcmp(word, group_words[i].word))
			return parse_group(p, &group_words[i], line, level, group, place);
	return lines_wrong(&p->lines, "'%.60s': expected %s", word, words);
}

ORDER(names_compare, char *const, strcmp(*x, *y))

static int check_names(struct parser *p)
{
	const char **names = calloc(p->h->nhosts + 1, sizeof(*names));
	int rc = 0;

	if (!names)
		return lines_wrong(&p->lines, "out of memory");
	for (unsigned i = 0; i < p->h->nhosts; i++)
		names[i] = p->h->hosts[i].name;
	qsort(names, p->h->nhosts, sizeof(*names), names_compare);
	for (unsigned i = 1; i < p->h->nhosts && rc == 0; i++)
		if (!strcmp(names[i - 1], names[i]))
			rc = err_set(p->lines.err, "%s: node %.100s is defined twice", p->lines.name, names[i]);
	free(names);
	return rc;
}

struct hierarchy *hierarchy_parse(const char *text, size_t len, const char *name, struct err *e)
{
	struct parser p = {0};
	unsigned place[HIERARCHY_LEVELS] = {0};
	int rc;

	if (lines_open(&p.lines, text, len, name, e))
		return NULL;
	if (!(p.h = hierarchy_new()))
		rc = err_set(e, "%s: out of memory", name);
	else if ((rc = parse_block(&p, 0, 0, place)) == 0 && next_line(&p, NULL))
		rc = lines_wrong(&p.lines, "more elements than the first line declares");
	if (rc == 0)
		rc = check_names(&p);
	lines_close(&p.lines);
	if (rc) {
		hierarchy_free(p.h);
		return NULL;
	}
	hierarchy_sort(p.h);
	return p.h;
}

/*
 * The children of each group, in order: the first, and for each the next; ~0u ends. Groups without hosts are left out.
 */
struct below {
	unsigned *group, *next_group, *host, *next_host;
	unsigned *hosts;	/* by group: hosts below it */
};

static void below_free(struct below *b)
{
	free(b->group);
	free(b->next_group);
	free(b->host);
	free(b->next_host);
	free(b->hosts);
}

static int below_make(const struct hierarchy *h, struct below *b)
{
	*b = (struct below){ calloc(h->ngroups + 1, sizeof(unsigned)), calloc(h->ngroups + 1, sizeof(unsigned)),
			     calloc(h->ngroups + 1, sizeof(unsigned)), calloc(h->nhosts + 1, sizeof(unsigned)),
			     calloc(h->ngroups + 1, sizeof(unsigned)) };
	if (!b->group || !b->next_group || !b->host || !b->next_host || !b->hosts) {
		below_free(b);
		return -1;
	}
	memset(b->group, 0xff, h->ngroups * sizeof(unsigned));
	memset(b->host, 0xff, h->ngroups * sizeof(unsigned));
	for (unsigned i = h->nhosts; i-- > 0;) {
		b->next_host[i] = b->host[h->hosts[i].group];
		b->host[h->hosts[i].group] = i;
		b->hosts[h->hosts[i].group]++;
	}
	for (unsigned i = h->ngroups; i-- > 1;) {
		unsigned above = h->groups[i].above;

		if (!b->hosts[i])
			continue;
		b->hosts[above] += b->hosts[i];
		b->next_group[i] = b->group[above];
		b->group[above] = i;
	}
	return 0;
}

static void write_indices(struct buf *out, const unsigned *list, unsigned count, unsigned all)
{
	if (count == all) {
		buf_puts(out, " -1\n");
		return;
	}
	buf_printf(out, " %u", count);
	for (unsigned i = 0; i < count; i++)
		buf_printf(out, " %u", list[i]);
	buf_puts(out, "\n");
}

static int write_group(const struct hierarchy *h, const struct below *b, unsigned g, unsigned *indices, struct buf *out)
{
	static const char *const forms[] = {
		[HIERARCHY_TREE] = "tree", [HIERARCHY_TORUS] = "torus", [HIERARCHY_GRAPH] = "graph",
	};
	const struct hierarchy_level *level = &h->level[h->groups[g].level];
	unsigned n = 0;

	for (unsigned i = b->group[g]; i != ~0u; i = b->next_group[i])
		indices[n++] = h->groups[i].at;
	for (unsigned i = b->host[g]; i != ~0u; i = b->next_host[i])
		indices[n++] = h->hosts[i].at[h->groups[g].level];
	buf_printf(out, "%s %u", forms[level->form], level->dims);
	for (unsigned d = 0; d < level->dims; d++)
		buf_printf(out, " %u %u", level->dim[d], level->cost[d]);
	write_indices(out, indices, n, level->size);
	for (size_t from = 1; level->hops && from < level->size; from++) {
		buf_puts(out, "hops");
		for (size_t to = 0; to < from; to++)
			buf_printf(out, " %u", level->hops[from * level->size + to]);
		buf_puts(out, "\n");
	}
	for (unsigned i = b->group[g]; i != ~0u; i = b->next_group[i])
		if (write_group(h, b, i, indices, out))
			return -1;
	for (unsigned i = b->host[g]; i != ~0u; i = b->next_host[i]) {
		static const struct hierarchy_inner leaf = { .levels = 1, .size = { 1 }, .cost = { 1 } };
		const struct hierarchy_inner *inner = h->hosts[i].inner.levels ? &h->hosts[i].inner : &leaf;
		unsigned all = 1;

		buf_printf(out, "node %s tree %u", h->hosts[i].name, inner->levels);
		for (unsigned d = 0; d < inner->levels; d++) {
			buf_printf(out, " %u %u", inner->size[d], inner->cost[d]);
			all *= inner->size[d];
		}
		write_indices(out, inner->leaf, inner->leaf ? inner->nleaves : all, all);
	}
	return out->failed ? -1 : 0;
}

int hierarchy_write(const struct hierarchy *h, struct buf *out, struct err *e)
{
	unsigned *indices;
	struct below b;
	int rc = -1;

	if (!h->nhosts)
		return err_set(e, "the network has no hosts");
	if (below_make(h, &b))
		return err_set(e, "out of memory");
	if ((indices = calloc(h->ngroups + h->nhosts, sizeof(*indices))))
		rc = write_group(h, &b, 0, indices, out);
	free(indices);
	below_free(&b);
	return rc ? err_set(e, "out of memory") : 0;
}
