/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <yaml.h>

#include "base/array.h"
#include "fabric/read/readers.h"

/* Slurm's topology.conf(5) and topology.yaml(5). Errors name the current line of `lines`. */

/* --- tori and rings --- */

enum { GRID_DIMS = 3, GRID_MAX = 1024, GRID_CELLS = 1 << 20 };

/* A torus of switches, x fastest, built from lists of nodes. */
struct grid {
	unsigned dim[GRID_DIMS];
	unsigned *switches;	/* ends; freed by the caller */
	struct fabric_draft *draft;
	const char *name;
};

static int grid_add_switch(struct grid *g, unsigned at)
{
	char name[300];
	int end;

	snprintf(name, sizeof(name), "%.200s-%u-%u-%u", g->name, at % g->dim[0], at / g->dim[0] % g->dim[1],
		 at / g->dim[0] / g->dim[1]);
	if ((end = draft_end(g->draft, END_SWITCH, name)) < 0)
		return -1;
	g->switches[at] = end;
	return 0;
}

/* Cables to the next place in each dimension, from the last to the first; a dimension of two has one cable. */
static int grid_add_cables(struct grid *g, unsigned at)
{
	unsigned step = 1;

	for (unsigned d = 0; d < GRID_DIMS; step *= g->dim[d++]) {
		unsigned place = at / step % g->dim[d], next = place + 1 < g->dim[d] ? at + step : at - place * step;

		if (next != at && (g->dim[d] > 2 || place == 0) &&
		    draft_cable(g->draft, g->switches[at], 0, g->switches[next], 0, 0))
			return -1;
	}
	return 0;
}

/* Creates the switches, "NAME-X-Y-Z", and the cables between neighbours; fills dim. */
static int grid_begin(struct grid *g, struct lines *l, struct fabric_draft *m, const char *name)
{
	unsigned long cells = (unsigned long) g->dim[0] * g->dim[1] * g->dim[2];
	int rc = 0;

	if (cells > GRID_CELLS)
		return lines_wrong(l, "%.100s: more than %d positions", name, GRID_CELLS);
	g->draft = m;
	g->name = name;
	if (!(g->switches = calloc(cells, sizeof(*g->switches))))
		return lines_wrong(l, "out of memory");
	for (unsigned i = 0; i < cells && rc == 0; i++)
		rc = grid_add_switch(g, i);
	for (unsigned i = 0; i < cells && rc == 0; i++)
		rc = grid_add_cables(g, i);
	if (rc == 0)
		return 0;
	free(g->switches);
	g->switches = NULL;
	return lines_wrong(l, "out of memory");
}

struct filling {
	struct grid *grid;
	struct lines *lines;
	const unsigned *anchor, *dims;
	unsigned n, places;
	bool wrong;			/* lines_wrong has set the error */
};

static int node_add(const char *host, void *user)
{
	struct filling *f = user;
	unsigned x = f->n % f->dims[0], y = f->n / f->dims[0] % f->dims[1], z = f->n / f->dims[0] / f->dims[1];
	const unsigned *dim = f->grid->dim, *from = f->anchor;
	unsigned cell = from[0] + x + dim[0] * (from[1] + y + dim[1] * (from[2] + z));
	int end;

	if (f->n++ >= f->places)
		return 0;
	end = draft_end(f->grid->draft, END_HOST, host);
	f->wrong = end < 0 || draft_cable(f->grid->draft, f->grid->switches[cell], 0, end, 0, 0);
	return f->wrong ? lines_wrong(f->lines, "out of memory") : 0;
}

/* Places a node at each point of the box of these dims from anchor on. */
static int grid_place(struct grid *g, struct lines *l, const char *nodes, const unsigned *anchor, const unsigned *dims)
{
	struct filling f = { .grid = g, .lines = l, .anchor = anchor, .dims = dims,
			     .places = dims[0] * dims[1] * dims[2] };
	struct err own = {""};

	for (unsigned d = 0; d < GRID_DIMS; d++)
		if (anchor[d] + dims[d] > g->dim[d])
			return lines_wrong(l, "the region exceeds the torus");
	if (draft_each(g->draft, nodes, node_add, &f, &own))
		return f.wrong ? -1 : lines_wrong(l, "%s", own.text);
	return f.n == f.places ? 0 : lines_wrong(l, "%u nodes for %u positions", f.n, f.places);
}

static int name_count(const char *, void *user)
{
	++*(unsigned *) user;
	return 0;
}

/* Builds a ring of as many places as there are nodes. */
static int grid_ring(struct lines *l, struct fabric_draft *m, const char *name, const char *nodes)
{
	static const unsigned origin[GRID_DIMS];
	struct grid g = { .dim = { 0, 1, 1 } };
	struct err own = {""};
	int rc;

	if (hostlist_expand(nodes, name_count, &g.dim[0], &own))
		return lines_wrong(l, "%s", own.text);
	if (grid_begin(&g, l, m, name))
		return -1;
	rc = grid_place(&g, l, nodes, origin, g.dim);
	free(g.switches);
	return rc;
}

/* --- records --- */

/* The lines where an end was defined and first referred to; 0: never. */
struct mention {
	unsigned defined, used;
};

/* A line of topology.conf(5) or an item of topology.yaml(5). */
struct slurm_record {
	char *name, *switches, *nodes, *speed, *block, *ring, *sizes;	/* NULL: absent; sizes is modified */
};

enum { SLURM_BLOCK_SIZES = 16 };

struct slurm {
	struct lines *lines;		/* positioned at the record's line */
	struct fabric_draft *draft;
	struct mention *mentions;	/* by end */
	unsigned nmentions;
	unsigned *blocks, nblocks;
	unsigned sizes[SLURM_BLOCK_SIZES], nsizes;
	unsigned parent;		/* whose children are being added */
};

static struct mention *mention_of(struct slurm *s, unsigned end)
{
	while (end >= s->nmentions)
		if (!array_add(s->mentions, s->nmentions))
			return NULL;
	return &s->mentions[end];
}

static int add_child(struct slurm *s, enum draft_end_kind kind, const char *name)
{
	int end = draft_end(s->draft, kind, name);
	struct mention *mention = end < 0 ? NULL : mention_of(s, end);

	if (!mention || draft_cable(s->draft, s->parent, 0, end, 0, 0))
		return lines_wrong(s->lines, "out of memory");
	if (!mention->used)
		mention->used = s->lines->line;
	return 0;
}

static int child_host(const char *name, void *user)
{
	return add_child(user, END_HOST, name);
}

static int child_switch(const char *name, void *user)
{
	return add_child(user, END_SWITCH, name);
}

/* Errors of draft_each do not name the line; ours do. */
static int add_children(struct slurm *s, const char *list, int (*add)(const char *name, void *user))
{
	struct err *e = s->lines->err, own = {""};

	if (!list)
		return 0;
	if (e)
		e->text[0] = '\0';
	if (draft_each(s->draft, list, add, s, &own) == 0)
		return 0;
	return e && e->text[0] ? -1 : lines_wrong(s->lines, "%s", own.text);
}

static int switch_define(struct slurm *s, const char *name)
{
	int end = draft_end(s->draft, END_SWITCH, name);
	struct mention *mention = end < 0 ? NULL : mention_of(s, end);

	if (!mention)
		return lines_wrong(s->lines, "out of memory");
	if (mention->defined)
		return lines_wrong(s->lines, "%.100s: already defined in line %u", name, mention->defined);
	mention->defined = s->lines->line;
	s->parent = end;
	return 0;
}

static int slurm_add_block(struct slurm *s)
{
	if (array_reserve(s->blocks, s->nblocks, 1))
		return lines_wrong(s->lines, "out of memory");
	s->blocks[s->nblocks++] = s->parent;
	return 0;
}

static int read_sizes(struct slurm *s, char *list)
{
	char *save = NULL;

	for (char *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		unsigned last = s->nsizes ? s->sizes[s->nsizes - 1] : 0, size;

		if (!lines_word_number(word, 1u << 24, &size) || size <= last || (last && size % last))
			return lines_wrong(s->lines, "BlockSizes: '%.40s': not a multiple of the previous size", word);
		if (s->nsizes == SLURM_BLOCK_SIZES)
			return lines_wrong(s->lines, "BlockSizes: more than %u sizes", SLURM_BLOCK_SIZES);
		s->sizes[s->nsizes++] = size;
	}
	return 0;
}

static int slurm_add(struct slurm *s, const struct slurm_record *r)
{
	if (r->sizes)
		return read_sizes(s, r->sizes);
	if (r->ring && r->nodes && !r->name && !r->block && !r->switches)
		return grid_ring(s->lines, s->draft, r->ring, r->nodes);
	if (r->ring)
		return lines_wrong(s->lines, "a ring has Nodes only");
	if (!r->name == !r->block)
		return lines_wrong(s->lines, "missing SwitchName or BlockName");
	if (r->block && r->switches)
		return lines_wrong(s->lines, "a block has Nodes, not Switches");
	if (switch_define(s, r->name ? r->name : r->block) || (r->block && slurm_add_block(s)))
		return -1;
	return add_children(s, r->switches, child_switch) || add_children(s, r->nodes, child_host) ? -1 : 0;
}

static int check_defined(struct slurm *s)
{
	for (unsigned i = 0; i < s->nmentions; i++)
		if (s->mentions[i].used && !s->mentions[i].defined && draft_is_switch(s->draft, i)) {
			s->lines->line = s->mentions[i].used;
			return lines_wrong(s->lines, "%.100s: undefined switch", draft_key(s->draft, i));
		}
	return 0;
}

/* Joins blocks: as many in a row as make the next size, and all under one; a switch for each. */
static int join_blocks(struct slurm *s)
{
	for (unsigned level = 1; s->nblocks > 1 && level <= s->nsizes; level++) {
		bool top = level == s->nsizes;
		unsigned each = top ? s->nblocks : s->sizes[level] / s->sizes[level - 1], n = 0;

		for (unsigned i = 0; i < s->nblocks; i++) {
			char name[48];
			int end;

			snprintf(name, sizeof(name), top ? "blocks" : "blocks%u-%u", top ? 0 : s->sizes[level],
				 i / each);
			end = draft_end(s->draft, END_SWITCH, name);
			if (end < 0 || draft_cable(s->draft, end, 0, s->blocks[i], 0, 0))
				return lines_wrong(s->lines, "out of memory");
			if (i % each == 0)
				s->blocks[n++] = end;
		}
		s->nblocks = n;
	}
	return 0;
}

/* Checks all records together, if rc states that each was valid; s is empty afterwards. */
static int slurm_end(struct slurm *s, int rc)
{
	if (rc == 0)
		rc = check_defined(s);
	if (rc == 0 && s->nblocks && !s->nsizes)
		s->nsizes = 1;
	if (rc == 0)
		rc = join_blocks(s);
	free(s->mentions);
	free(s->blocks);
	return rc;
}

/* --- topology.conf --- */

/* One line of topology.conf(5), its values in place. */
static const struct {
	const char *key;
	size_t offset;
} conf_keys[] = {
	{ "SwitchName", offsetof(struct slurm_record, name) }, { "Switches", offsetof(struct slurm_record, switches) },
	{ "Nodes", offsetof(struct slurm_record, nodes) }, { "LinkSpeed", offsetof(struct slurm_record, speed) },
	{ "BlockName", offsetof(struct slurm_record, block) }, { "BlockSizes", offsetof(struct slurm_record, sizes) },
	{ "RingName", offsetof(struct slurm_record, ring) },
};

static char **field_of(struct slurm_record *r, const char *key, size_t len)
{
	for (size_t i = 0; i < sizeof(conf_keys) / sizeof(conf_keys[0]); i++)
		if (strlen(conf_keys[i].key) == len && !strncasecmp(conf_keys[i].key, key, len))
			return (char **) ((char *) r + conf_keys[i].offset);
	return NULL;
}

static int read_record(struct slurm *s, char *line)
{
	struct slurm_record r = {0};
	char *word;

	while ((word = lines_word_next(&line))) {
		size_t len = strcspn(word, "=");
		char **field = field_of(&r, word, len), *end;

		if (!strcasecmp(word, "Include"))
			return lines_wrong(s->lines, "Include is not followed: name the included file instead");
		if (!word[len] || !word[len + 1])
			return lines_wrong(s->lines, "'%.60s': expected Key=Value", word);
		if (!field)
			return lines_wrong(s->lines, "%.*s: unknown key", (int) (len < 60 ? len : 60), word);
		if (*field)
			return lines_wrong(s->lines, "%.*s: duplicate key", (int) len, word);
		*field = word + len + 1;
		end = *field + strlen(*field);
		if (**field == '"' && end > *field + 1 && end[-1] == '"') {
			end[-1] = '\0';
			++*field;
		}
	}
	return slurm_add(s, &r);
}

/* The next record: a line without its comment, and its continuations after '\'. NULL: the end, or s->lines->err. */
static char *record_next(struct slurm *s)
{
	char *line = lines_next(s->lines), *more;
	size_t len;

	if (!line)
		return NULL;
	line[strcspn(line, "#")] = '\0';
	while ((len = strlen(line)) && line[len - 1] == '\\') {
		line[len - 1] = '\0';
		more = s->lines->at;	/* with the blanks in front, as Slurm joins them: a list goes on without */
		if (!lines_next(s->lines))
			break;
		more[strcspn(more, "#")] = '\0';
		memmove(line + len - 1, more, strlen(more) + 1);
	}
	/* Slurm allows blanks around '='. */
	for (char *at = more = line; (*more = *at); at++)
		more += !isblank(*at) || (at[strspn(at, " \t")] != '=' && (more == line || more[-1] != '='));
	return line;
}

int read_slurm(struct lines *l, struct fabric_draft *m)
{
	struct slurm s = { .lines = l, .draft = m };
	char *record;
	int rc = 0;

	while (rc == 0 && (record = record_next(&s)))
		if (*record)
			rc = read_record(&s, record);
	return slurm_end(&s, rc);
}

/* --- topology.yaml --- */

/*
 * Slurm's topology.yaml(5): of several topologies the cluster's default, else the first. Trees and blocks have the
 * meaning of topology.conf. A torus3d or a ring becomes a switch for each place, with its node.
 */
struct yaml {
	struct lines *lines;
	struct fabric_draft *draft;
	struct slurm slurm;		/* of a tree or blocks */
	yaml_document_t document;
};

/* lines_wrong of the line where a node begins. */
#define wrong_at(y, at, ...) ((y)->lines->line = (at)->start_mark.line + 1, lines_wrong((y)->lines, __VA_ARGS__))

static yaml_node_t *node_of(struct yaml *y, int index)
{
	return yaml_document_get_node(&y->document, index);
}

static char *scalar_text(const yaml_node_t *n)
{
	return n && n->type == YAML_SCALAR_NODE ? (char *) n->data.scalar.value : NULL;
}

/* For an empty value `scontrol show topoconf` writes a key without a value, {} or []; JSON has null. */
static bool is_empty(const yaml_node_t *n)
{
	switch (n->type) {
	case YAML_MAPPING_NODE:
		return n->data.mapping.pairs.start == n->data.mapping.pairs.top;
	case YAML_SEQUENCE_NODE:
		return n->data.sequence.items.start == n->data.sequence.items.top;
	default:
		return n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
			(!n->data.scalar.length || !strcmp((const char *) n->data.scalar.value, "null"));
	}
}

/* The value of a key of a mapping, or NULL when there is none. */
static yaml_node_t *value_of(struct yaml *y, const yaml_node_t *map, const char *key)
{
	if (map->type != YAML_MAPPING_NODE)
		return NULL;
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++) {
		const char *name = scalar_text(node_of(y, p->key));

		if (name && !strcmp(name, key))
			return is_empty(node_of(y, p->value)) ? NULL : node_of(y, p->value);
	}
	return NULL;
}

/*
 * The host list of a key of a mapping: text, without the breaks of a folded or literal block, or the items of a list,
 * put together into out. NULL: there is none, or an error in y->lines->err.
 */
static const char *hosts_of(struct yaml *y, const yaml_node_t *map, const char *key, struct buf *out)
{
	const yaml_node_t *value = value_of(y, map, key);
	bool list = value && value->type == YAML_SEQUENCE_NODE;
	size_t n = list ? value->data.sequence.items.top - value->data.sequence.items.start : value ? 1 : 0;

	for (size_t i = 0; i < n; i++) {
		const char *text = scalar_text(list ? node_of(y, value->data.sequence.items.start[i]) : value);

		if (!text) {
			wrong_at(y, value, "expected names of hosts or switches, as text or as a list");
			return NULL;
		}
		buf_puts(out, i ? "," : "");
		for (; *text; text++)
			if (!strchr(" \t\r\n", *text))
				buf_add(out, text, 1);
	}
	if (out->failed)
		lines_wrong(y->lines, "out of memory");
	return out->failed || !n ? NULL : out->data;
}

/* The list of a key of a mapping, or NULL with an error. */
static yaml_node_t *list_of(struct yaml *y, const yaml_node_t *map, const char *key)
{
	yaml_node_t *list = value_of(y, map, key);

	if (list && list->type == YAML_SEQUENCE_NODE)
		return list;
	wrong_at(y, map, "expected a list of %s", key);
	return NULL;
}

/* Checks that a mapping has no keys but these. */
static int check_keys(struct yaml *y, const yaml_node_t *map, const char *const *known)
{
	if (map->type != YAML_MAPPING_NODE)
		return wrong_at(y, map, "expected a mapping");
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++) {
		const yaml_node_t *key = node_of(y, p->key);
		const char *name = scalar_text(key);
		size_t i = 0;

		while (name && known[i] && strcmp(known[i], name))
			i++;
		if (!name || !known[i])
			return wrong_at(y, key, "%.60s: unknown key", name ? name : "this");
	}
	return 0;
}

/* Calls a function for each item of a list. */
static int items_each(struct yaml *y, const yaml_node_t *list,
		      int (*add)(struct yaml *y, const yaml_node_t *item, void *user), void *user)
{
	for (yaml_node_item_t *i = list->data.sequence.items.start; i < list->data.sequence.items.top; i++)
		if (add(y, node_of(y, *i), user))
			return -1;
	return 0;
}

static int add_record(struct yaml *y, const yaml_node_t *item, const char *what)
{
	const bool is_switch = !strcmp(what, "switch");
	const char *const known[] = { what, "nodes", is_switch ? "children" : NULL, NULL };
	struct slurm_record r = {0};
	struct buf nodes = {0}, children = {0};
	char *name = scalar_text(value_of(y, item, what));
	int rc = -1;

	if (check_keys(y, item, known))
		return -1;
	*(is_switch ? &r.name : &r.block) = name;
	if ((value_of(y, item, "nodes") && !(r.nodes = (char *) hosts_of(y, item, "nodes", &nodes))) ||
	    (is_switch && value_of(y, item, "children") &&
	     !(r.switches = (char *) hosts_of(y, item, "children", &children))))
		goto end;
	y->lines->line = item->start_mark.line + 1;
	rc = name ? slurm_add(&y->slurm, &r) : lines_wrong(y->lines, "expected %s, a name", what);
end:
	buf_free(&nodes);
	buf_free(&children);
	return rc;
}

static int add_switch(struct yaml *y, const yaml_node_t *item, void *)
{
	return add_record(y, item, "switch");
}

static int add_block(struct yaml *y, const yaml_node_t *item, void *)
{
	return add_record(y, item, "block");
}

static int add_size(struct yaml *y, const yaml_node_t *item, void *)
{
	char *size = scalar_text(item);

	y->lines->line = item->start_mark.line + 1;
	return size ? read_sizes(&y->slurm, size) : lines_wrong(y->lines, "expected a number of nodes");
}

/* "x: 4, y: 4, z: 2", each from min up. */
static int read_xyz(struct yaml *y, const yaml_node_t *of, const char *key, unsigned min, unsigned out[GRID_DIMS])
{
	static const char *const known[] = { "x", "y", "z", NULL };
	const yaml_node_t *map = value_of(y, of, key);

	if (!map)
		return wrong_at(y, of, "expected %s with x, y and z", key);
	if (check_keys(y, map, known))
		return -1;
	for (unsigned d = 0; d < GRID_DIMS; d++) {
		const char *number = scalar_text(value_of(y, map, known[d]));

		if (!number || !lines_word_number(number, GRID_MAX, &out[d]) || out[d] < min)
			return wrong_at(y, map, "expected a number for each of x, y and z");
	}
	return 0;
}

/* The nodes of a region of a torus; without a region, of all of it. */
static int set_nodes(struct yaml *y, const yaml_node_t *of, struct grid *g, const unsigned *anchor,
		     const unsigned *dims)
{
	struct buf list = {0};
	const char *nodes = hosts_of(y, of, "nodes", &list);
	int rc = -1;

	y->lines->line = of->start_mark.line + 1;
	if (nodes)
		rc = grid_place(g, y->lines, nodes, anchor, dims);
	else if (!value_of(y, of, "nodes"))
		rc = lines_wrong(y->lines, "expected nodes");
	buf_free(&list);
	return rc;
}

static int set_region(struct yaml *y, const yaml_node_t *item, void *user)
{
	static const char *const known[] = { "anchor", "dims", "nodes", NULL };
	unsigned anchor[GRID_DIMS], dims[GRID_DIMS];

	return check_keys(y, item, known) || read_xyz(y, item, "anchor", 0, anchor) ||
			read_xyz(y, item, "dims", 1, dims)
		? -1
		: set_nodes(y, item, user, anchor, dims);
}

static int add_torus(struct yaml *y, const yaml_node_t *item, void *)
{
	static const char *const known[] = { "name", "dims", "nodes", "regions", "placements", NULL };
	static const unsigned origin[GRID_DIMS];
	const char *name = scalar_text(value_of(y, item, "name"));
	const yaml_node_t *regions = value_of(y, item, "regions");
	struct grid g = {0};
	int rc;

	if (check_keys(y, item, known) || read_xyz(y, item, "dims", 1, g.dim))
		return -1;
	y->lines->line = item->start_mark.line + 1;
	if (!name || grid_begin(&g, y->lines, y->draft, name))
		return name ? -1 : lines_wrong(y->lines, "expected name");
	if (!regions)
		rc = set_nodes(y, item, &g, origin, g.dim);
	else
		rc = list_of(y, item, "regions") ? items_each(y, regions, set_region, &g) : -1;
	free(g.switches);
	return rc;
}

static int add_ring(struct yaml *y, const yaml_node_t *item, void *)
{
	static const char *const known[] = { "ring", "nodes", NULL };
	const char *name = scalar_text(value_of(y, item, "ring")), *nodes;
	struct buf list = {0};
	int rc = -1;

	if (check_keys(y, item, known))
		return -1;
	nodes = hosts_of(y, item, "nodes", &list);
	y->lines->line = item->start_mark.line + 1;
	if (name && nodes)
		rc = grid_ring(y->lines, y->draft, name, nodes);
	else if (!name || !value_of(y, item, "nodes"))
		rc = lines_wrong(y->lines, "expected ring, a name, and nodes");
	buf_free(&list);
	return rc;
}

/* YAML 1.1 has many spellings of true. */
static bool is_true(const char *word)
{
	return word && (!strcasecmp(word, "true") || !strcasecmp(word, "yes") || !strcasecmp(word, "on"));
}

static int read_document(struct yaml *y)
{
	static const struct {
		const char *key, *list, *sizes;
		int (*add)(struct yaml *y, const yaml_node_t *item, void *user);
	} kinds[] = {
		{ "tree", "switches", NULL, add_switch }, { "block", "blocks", "block_sizes", add_block },
		{ "torus3d", "toruses", NULL, add_torus }, { "ring", "rings", NULL, add_ring },
	};
	yaml_node_t *list = yaml_document_get_root_node(&y->document), *first = NULL;

	if (!list || list->type != YAML_SEQUENCE_NODE ||
	    list->data.sequence.items.start == list->data.sequence.items.top) {
		y->lines->line = 1;
		return lines_wrong(y->lines, "expected a list of topologies");
	}
	for (yaml_node_item_t *i = list->data.sequence.items.start; i < list->data.sequence.items.top; i++) {
		yaml_node_t *topology = node_of(y, *i);

		if (!first || is_true(scalar_text(value_of(y, topology, "cluster_default"))))
			first = topology;
		if (is_true(scalar_text(value_of(y, topology, "cluster_default"))))
			break;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const yaml_node_t *of = value_of(y, first, kinds[i].key), *sizes = NULL;
		const char *const known[] = { kinds[i].list, kinds[i].sizes, NULL };

		if (!of)
			continue;
		if (check_keys(y, of, known) || (kinds[i].sizes && !(sizes = list_of(y, of, kinds[i].sizes))) ||
		    !(list = list_of(y, of, kinds[i].list)))
			return -1;
		return slurm_end(&y->slurm, (sizes && items_each(y, sizes, add_size, NULL)) ||
				 items_each(y, list, kinds[i].add, NULL) ? -1 : 0);
	}
	if (value_of(y, first, "flat"))
		return wrong_at(y, first, "topology/flat: it has no switches");
	return wrong_at(y, first, "expected a topology of tree, block, torus3d or ring");
}

int read_yaml(struct lines *l, struct fabric_draft *m)
{
	struct yaml y = { .lines = l, .draft = m, .slurm = { .lines = l, .draft = m } };
	yaml_parser_t parser;
	int rc;

	if (!yaml_parser_initialize(&parser))
		return lines_wrong(l, "out of memory");
	yaml_parser_set_input_string(&parser, (const unsigned char *) l->at, strlen(l->at));
	if (yaml_parser_load(&parser, &y.document)) {
		rc = read_document(&y);
		yaml_document_delete(&y.document);
	} else {
		l->line = parser.problem_mark.line + 1;
		rc = lines_wrong(l, "%s", parser.problem ? parser.problem : "out of memory");
	}
	yaml_parser_delete(&parser);
	return rc;
}
