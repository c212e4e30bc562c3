/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "topo/snapshot.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define MAGIC "topiary-snapshot 1"

struct reader {
	const char *start;		/* of the whole text */
	const char *name;
	unsigned line;
	struct snapshot *snapshot;
	struct err *err;
	bool ended;
};

static int wrong(struct reader *r, const char *what)
{
	return err_set(r->err, "%s:%u: %s", r->name, r->line, what);
}

static char *next_word(char **line)
{
	char *word = *line + strspn(*line, " \t");
	char *end = word + strcspn(word, " \t");

	*line = *end ? end + 1 : end;
	*end = '\0';
	return *word ? word : NULL;
}

static const struct shape *shape_named(const struct snapshot *s, const char *name)
{
	for (size_t i = 0; i < s->nshapes; i++)
		if (!strcmp(s->shapes[i].name, name))
			return s->shapes[i].shape;
	return NULL;
}

static int read_shape(struct reader *r, char *rest)
{
	struct snapshot *s = r->snapshot;
	struct snapshot_shape *bigger, *slot;
	char *name = next_word(&rest);

	if (!name)
		return wrong(r, "a shape without a name");
	if (shape_named(s, name))
		return wrong(r, "a shape with the name of another");
	if (!(bigger = realloc(s->shapes, (s->nshapes + 1) * sizeof(*bigger))))
		return wrong(r, "out of memory");
	s->shapes = bigger;
	slot = &bigger[s->nshapes];
	if (!(slot->shape = shape_parse(rest + strspn(rest, " \t"), r->err)))
		return err_within(r->err, "%s:%u", r->name, r->line);
	if (!(slot->name = strdup(name))) {
		shape_free(slot->shape);
		return wrong(r, "out of memory");
	}
	s->nshapes++;
	return 0;
}

static int read_nodes(struct reader *r, char *rest)
{
	struct snapshot *s = r->snapshot;
	struct snapshot_nodes *bigger;
	char *hosts = next_word(&rest), *name = next_word(&rest);
	const struct shape *shape = name ? shape_named(s, name) : NULL;

	if (!name || next_word(&rest))
		return wrong(r, "'nodes HOSTS SHAPE' is wanted");
	if (!shape)
		return wrong(r, "nodes of a shape that is not above");
	if (!(bigger = realloc(s->nodes, (s->nnodes + 1) * sizeof(*bigger))))
		return wrong(r, "out of memory");
	s->nodes = bigger;
	if (!(hosts = strdup(hosts)))
		return wrong(r, "out of memory");
	s->nodes[s->nnodes++] = (struct snapshot_nodes){ .hosts = hosts, .shape = shape };
	return 0;
}

static int read_end(struct reader *r, char *rest, const char *line_start)
{
	char hex[HASH_HEX], *sum = next_word(&rest);

	r->ended = true;
	if (!sum)
		return 0;
	hash_hex(r->start, line_start - r->start, hex);
	if (strncmp(sum, "sha256=", 7) || strcmp(sum + 7, hex))
		return wrong(r, "the checksum is not that of the lines above");
	return 0;
}

static int read_line(struct reader *r, char *line, const char *line_start)
{
	char *rest = line, *word = next_word(&rest);

	if (!word || *word == '#')
		return 0;
	if (r->ended)
		return wrong(r, "text after the end");
	if (!strcmp(word, "shape"))
		return read_shape(r, rest);
	if (!strcmp(word, "nodes"))
		return read_nodes(r, rest);
	if (!strcmp(word, "end"))
		return read_end(r, rest, line_start);
	return wrong(r, "'shape', 'nodes' or 'end' is wanted");
}

static int read_lines(struct reader *r, const char *text, size_t len)
{
	const char *end = text + len, *at = text;

	while (at < end) {
		const char *stop = memchr(at, '\n', end - at);
		size_t n = (stop ? stop : end) - at;
		char *line = strndup(at, n);
		int rc;

		r->line++;
		if (!line)
			return wrong(r, "out of memory");
		if (r->line == 1)
			rc = strcmp(line, MAGIC) ? wrong(r, "not a snapshot: '" MAGIC "' is wanted") : 0;
		else
			rc = read_line(r, line, at);
		free(line);
		if (rc)
			return -1;
		at += n + 1;
	}
	return r->ended ? 0 : wrong(r, "cut short: no 'end' line");
}

struct snapshot *snapshot_parse(const char *text, size_t len, const char *name, struct err *e)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	struct reader r = { .start = text, .name = name, .snapshot = s, .err = e };

	if (!s)
		err_set(e, "%s: out of memory", name);
	else if (memchr(text, '\0', len))
		err_set(e, "%s: not a text", name);
	else if (read_lines(&r, text, len) == 0)
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
	buf_puts(out, MAGIC "\n");
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
	buf_printf(out, "end sha256=%s\n", hex);
}
