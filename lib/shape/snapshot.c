/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/snapshot.h"

#include "base/array.h"
#include "base/file.h"
#include "base/hash.h"
#include "shape/hostlist.h"

#define MAGIC "topiary-snapshot 1"
#define CHECKED_END "end sha256="

struct reader {
	const char *start;		/* of the whole text */
	const char *name;
	unsigned line;
	struct snapshot *snapshot;
	struct string_map names;		/* of the shapes, with their numbers */
	size_t domains;			/* of all shapes */
	struct err *err;
	bool sealed, ended;
};

/* One line: the words left in a copy, and its position in the text. */
struct line {
	char *rest;
	const char *at;
	size_t len;
};

static int line_error(struct reader *r, const char *what)
{
	return err_set(r->err, "%s:%u: %s", r->name, r->line, what);
}

static char *next_word(struct line *l)
{
	char *word = l->rest + strspn(l->rest, " \t");
	char *end = word + strcspn(word, " \t");

	l->rest = *end ? end + 1 : end;
	*end = '\0';
	return *word ? word : NULL;
}

static int read_sealed(struct reader *r, struct line *l)
{
	if (next_word(l))
		return line_error(r, "unexpected text after 'sealed'");
	r->sealed = true;
	return 0;
}

static int read_shape(struct reader *r, struct line *l)
{
	struct snapshot *s = r->snapshot;
	struct snapshot_shape *added;
	char *name = next_word(l);
	size_t number;

	if (array_reserve(s->shapes, s->nshapes, 1))
		return line_error(r, "out of memory");
	if (!name)
		return line_error(r, "missing shape name");
	number = string_map_add(&r->names, name);
	if (number == STRING_MAP_NONE)
		return line_error(r, "out of memory");
	if (number < s->nshapes)
		return line_error(r, "duplicate shape name");
	added = &s->shapes[s->nshapes];
	if (!(added->shape = shape_parse(l->rest + strspn(l->rest, " \t"), r->err)))
		return err_within(r->err, "%s:%u", r->name, r->line);
	if (!(added->name = strdup(name))) {
		shape_free(added->shape);
		return line_error(r, "out of memory");
	}
	s->nshapes++;
	r->domains += added->shape->ndomains;
	return r->domains > SNAPSHOT_MAX_DOMAINS ? line_error(r, "the shapes together are too large") : 0;
}

static int read_nodes(struct reader *r, struct line *l)
{
	struct snapshot *s = r->snapshot;
	char *hosts = next_word(l), *name = next_word(l);
	size_t number;

	if (array_reserve(s->nodes, s->nnodes, 1))
		return line_error(r, "out of memory");
	if (!name || next_word(l))
		return line_error(r, "expected 'nodes HOSTS SHAPE'");
	number = string_map_find(&r->names, name);
	if (number == STRING_MAP_NONE)
		return line_error(r, "undefined shape");
	if (!(hosts = strdup(hosts)))
		return line_error(r, "out of memory");
	s->nodes[s->nnodes++] = (struct snapshot_nodes){ .hosts = hosts, .shape = s->shapes[number].shape };
	return 0;
}

/*
 * A checksum must be written byte for byte as snapshot_end does: then every change is detected, even a blank before it.
 */
static int read_end(struct reader *r, struct line *l)
{
	char want[sizeof(CHECKED_END) + HASH_HEX] = CHECKED_END;

	r->ended = true;
	if (!next_word(l))
		return r->sealed ? line_error(r, "missing checksum") : 0;
	hash_hex(r->start, l->at - r->start, want + strlen(CHECKED_END));
	if (l->len != strlen(want) || memcmp(l->at, want, l->len))
		return line_error(r, "checksum does not match the lines above");
	r->snapshot->sealed = true;
	return 0;
}

static const struct {
	const char *word;
	int (*read)(struct reader *r, struct line *l);
} statements[] = {
	{ "sealed", read_sealed },
	{ "shape", read_shape },
	{ "nodes", read_nodes },
	{ "end", read_end },
};

static int read_line(struct reader *r, struct line *l)
{
	const char *word;

	if (r->line == 1)
		return strcmp(l->rest, MAGIC) ? line_error(r, "not a snapshot: expected '" MAGIC "'") : 0;
	word = next_word(l);
	if (r->snapshot->sealed)
		return line_error(r, "unexpected text after the checksum");
	if (!word || *word == '#')
		return 0;
	if (r->ended)
		return line_error(r, "unexpected text after the end");
	for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
		if (!strcmp(word, statements[i].word))
			return statements[i].read(r, l);
	return line_error(r, "expected 'shape', 'nodes' or 'end'");
}

static int read_lines(struct reader *r, const char *text, size_t len)
{
	const char *end = text + len, *stop;

	for (const char *at = text; at < end; at = stop + 1) {
		struct line l;
		char *copy;
		int rc;

		r->line++;
		if (!(stop = memchr(at, '\n', end - at)))
			return line_error(r, "truncated: no newline at the end");
		if (!(copy = strndup(at, stop - at)))
			return line_error(r, "out of memory");
		l = (struct line){ .rest = copy, .at = at, .len = stop - at };
		rc = read_line(r, &l);
		free(copy);
		if (rc)
			return -1;
	}
	return r->ended ? 0 : line_error(r, "truncated: no 'end' line");
}

struct snapshot *snapshot_parse(const char *text, size_t len, const char *name, struct err *e)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	struct reader r = { .start = text, .name = name, .snapshot = s, .err = e };
	int rc;

	if (!s)
		rc = err_set(e, "%s: out of memory", name);
	else if (len && memchr(text, '\0', len))
		rc = err_set(e, "%s: not a text file: contains a NUL byte", name);
	else
		rc = read_lines(&r, text, len);
	string_map_free(&r.names);
	if (rc == 0)
		return s;
	snapshot_free(s);
	return NULL;
}

void snapshot_free(struct snapshot *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nnodes; i++)
		free(s->nodes[i].hosts);
	for (size_t i = 0; i < s->nshapes; i++) {
		free(s->shapes[i].name);
		shape_free(s->shapes[i].shape);
	}
	free(s->nodes);
	free(s->shapes);
	free(s);
}

void snapshot_start(struct buf *out)
{
	buf_puts(out, MAGIC "\nsealed\n");
}

void snapshot_add_shape(struct buf *out, const char *name, const char *shape)
{
	buf_printf(out, "shape %s %s\n", name, shape);
}

void snapshot_add_nodes(struct buf *out, const char *hosts, const char *name)
{
	buf_printf(out, "nodes %s %s\n", hosts, name);
}

void snapshot_end(struct buf *out)
{
	char hex[HASH_HEX];

	hash_hex(out->data ? out->data : "", out->len, hex);
	buf_printf(out, CHECKED_END "%s\n", hex);
}

/* --- its file --- */

/* Of a snapshot: its database, or "", how many nodes `topiary forget` removed from it, and its nodes; 0: unknown. */
struct origin {
	char database[64];
	unsigned long removed;
	size_t nodes;
};

static struct origin origin_read(const struct buf *text, const struct snapshot *s)
{
	const char *at = text->len ? memmem(text->data, text->len, "\n" SNAPSHOT_DATABASE,
					    strlen("\n" SNAPSHOT_DATABASE)) : NULL;
	struct origin o = {0};

	if (at)
		sscanf(at, " " SNAPSHOT_DATABASE "%63s %lu", o.database, &o.removed);
	for (size_t i = 0; s && i < s->nnodes; i++) {
		struct hostset *set = hostset_parse(s->nodes[i].hosts, NULL);

		o.nodes += set ? hostset_names(set) : 0;
		hostset_free(set);
	}
	return o;
}

#define IF_MEANT "If it is meant: topiary snapshot --force -o"

static int check_origins(const char *path, const struct origin *old, const struct origin *new, struct err *e)
{
	unsigned long removed = new->removed > old->removed ? new->removed - old->removed : 0;

	if (!*old->database || !*new->database)
		return 0;
	if (strcmp(old->database, new->database))
		return err_set(e, "%s: not replaced by a snapshot of another database, %s; the file is of %s. Is "
			       "topiaryd's Database right? " IF_MEANT " %s", path, new->database, old->database, path);
	if (new->nodes && 2 * (new->nodes + removed) < old->nodes)
		return err_set(e, "%s: not replaced by a snapshot without most of its %zu nodes, which topiary forget"
			       " has not removed: was the database restored, or were rows deleted? They return when"
			       " they export: systemctl start topiary-recheck on them. " IF_MEANT " %s", path,
			       old->nodes, path);
	return 0;
}

int snapshot_compare(const char *path, const struct buf *text, bool force, struct err *e)
{
	struct snapshot *new = snapshot_parse(text->data ? text->data : "", text->len, "the new snapshot", e), *old;
	struct buf now = {0};
	int rc = 1;

	if (!new)
		return -1;
	if (!file_read(path, SNAPSHOT_MAX_BYTES, &now, NULL) && now.len == text->len &&
	    (!now.len || !memcmp(now.data, text->data, now.len))) {
		rc = 0;
	} else if (!force) {
		const struct origin to = origin_read(text, new);
		struct origin from;

		old = snapshot_parse(now.data ? now.data : "", now.len, path, NULL);
		from = origin_read(&now, old);
		/* A file that is damaged may be one with nodes: slurmctld still has what it read before. */
		if (!new->nnodes && (old ? old->nnodes : !access(path, F_OK)))
			rc = err_set(e, "%s: not replaced by a snapshot without nodes; is the registry's database"
				     " empty, or another one? " IF_MEANT " %s", path, path);
		else if (check_origins(path, &from, &to, e))
			rc = -1;
		snapshot_free(old);
	}
	snapshot_free(new);
	buf_free(&now);
	return rc;
}

int snapshot_replace(const char *path, const struct buf *text, bool force, struct err *e)
{
	int rc = snapshot_compare(path, text, force, e);

	return rc == 1 && file_replace(path, text->data, text->len, 0644, e) ? -1 : rc;
}

/* --- its nodes by name --- */

struct filling {
	struct directory *directory;
	const struct shape *shape;
	struct err *err;
};

static int directory_add_name(const char *name, void *user)
{
	struct filling *f = user;
	struct directory *d = f->directory;
	size_t known = d->names.count, i;

	if (array_reserve(d->shape, known, 1) || (i = string_map_add(&d->names, name)) == STRING_MAP_NONE)
		return err_set(f->err, "out of memory");
	if (i < known && d->shape[i] != f->shape)
		return err_set(f->err, "node %s has two shapes", name);
	d->shape[i] = f->shape;
	return 0;
}

int directory_fill(struct directory *d, const struct snapshot *s, struct err *e)
{
	struct filling f = { .directory = d, .err = e };
	struct hostlist_usage usage = {0};

	for (size_t i = 0; i < s->nnodes; i++) {
		f.shape = s->nodes[i].shape;
		if (hostlist_expand_more(s->nodes[i].hosts, &usage, directory_add_name, &f, e))
			return -1;
	}
	return 0;
}

void directory_free(struct directory *d)
{
	string_map_free(&d->names);
	free(d->shape);
	*d = (struct directory){0};
}

const struct shape *directory_shape(const struct directory *d, const char *node)
{
	size_t i = string_map_find(&d->names, node);
	char name[HOSTLIST_MAX_NAME + 1];

	/* The registry has lower case, and usually no domain, whatever slurm.conf has. */
	for (int domain = 1; i == STRING_MAP_NONE && domain >= 0; domain--) {
		snprintf(name, sizeof(name), "%s", node);
		if (hostlist_name_canonical(name, domain))
			i = string_map_find(&d->names, name);
	}
	return i == STRING_MAP_NONE ? NULL : d->shape[i];
}
