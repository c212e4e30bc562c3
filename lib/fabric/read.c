/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "fabric/readers.h"

#define MAX_BYTES ((size_t) 256 << 20)

static int read_paper(struct lines *l, struct making *m);

/* How the first line that is no comment begins, and who reads the file then. */
static const struct {
	const char *start;
	int (*read)(struct lines *l, struct making *m);
} forms[] = {
	{ "SW ", read_ports }, { "CA ", read_ports }, { "RT ", read_ports },
	{ "vendid=", read_discovered }, { "devid=", read_discovered }, { "sysimgguid=", read_discovered },
	{ "switchguid=", read_discovered }, { "caguid=", read_discovered }, { "rtguid=", read_discovered },
	{ "Switch\t", read_discovered }, { "Switch ", read_discovered }, { "Ca\t", read_discovered }, { "Ca ", read_discovered },
	{ "SwitchName=", read_slurm }, { "Switches=", read_slurm }, { "Nodes=", read_slurm },
	{ "BlockName=", read_slurm }, { "BlockSizes=", read_slurm },
	{ "tree ", read_paper }, { "torus ", read_paper }, { "node ", read_paper },
};

struct source {
	const char *text, *name;
	size_t len;
};


/* Reached when there are several files: read_source reads one alone by itself. */
static int read_paper(struct lines *l, struct making *m)
{
	(void) m;
	return lines_wrong(l, "the only file there may be when it is of this form");
}

/* The switches and hosts of a hierarchy, as cables from each group to what is in it. */
static int unfold(const struct hierarchy *h, struct making *m)
{
	unsigned *end = calloc(h->ngroups + 1, sizeof(*end));
	int rc = end ? 0 : -1, host;

	for (unsigned i = 0; i < h->ngroups && rc == 0; i++) {
		if ((rc = making_end(m, END_SWITCH, h->groups[i].name)) < 0)
			break;
		end[i] = rc;
		rc = i ? making_cable(m, end[h->groups[i].above], 0, end[i], 0, 0) : 0;
	}
	for (unsigned i = 0; i < h->nhosts && rc == 0; i++)
		rc = (host = making_end(m, END_HOST, h->hosts[i].name)) < 0 ? -1 :
			making_cable(m, end[h->hosts[i].group], 0, host, 0, 0);
	free(end);
	return rc;
}

static const char *first_line(struct lines *l)
{
	char *line;

	while ((line = lines_next(l)))
		if (!is_chatter(line))
			return line;
	return NULL;
}

static int (*form_of(const char *line))(struct lines *l, struct making *m)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (!strncasecmp(line, forms[i].start, strlen(forms[i].start)))
			return forms[i].read;
	return NULL;
}

static int read_source(const struct source *s, struct making *m, struct hierarchy **given, struct err *e)
{
	int (*read)(struct lines *l, struct making *m) = NULL;
	struct lines l;
	const char *line;
	int rc = -1;

	if (lines_open(&l, s->text, s->len, s->name, e))
		return -1;
	if (!(line = first_line(&l)))
		err_set(e, "%s: nothing in it", s->name);
	else if (!(read = form_of(line)))
		lines_wrong(&l, "'%.40s': neither ibnetdiscover's output, Slurm's topology.conf nor a tree or torus", line);
	lines_close(&l);
	if (!read)
		return -1;
	if (read == read_paper && given) {
		if (!(*given = hierarchy_parse(s->text, s->len, s->name, e)))
			return -1;
		return unfold(*given, m) ? err_set(e, "%s: out of memory", s->name) : 0;
	}
	if (lines_open(&l, s->text, s->len, s->name, e))
		return -1;
	rc = read(&l, m);
	lines_close(&l);
	return rc;
}

/* What a file says of its levels counts, not what they look like. */
static struct fabric *finish(struct making *m, const struct fabric_names *names, struct hierarchy *given, struct err *e)
{
	struct fabric *f = making_finish(m, names, e);
	struct fabric_plane *p;

	if (!f || !given) {
		hierarchy_free(given);
		return f;
	}
	p = &f->planes[0];
	hierarchy_free(p->levels);
	p->levels = given;
	f->given = true;
	if (given->level[0].form == HIERARCHY_TORUS)
		p->kind = FABRIC_TORUS;
	else
		p->kind = given->nlevels > 1 ? FABRIC_FAT_TREE : FABRIC_ONE_SWITCH;
	return f;
}

struct fabric *fabric_parse(const char *text, size_t len, const char *name, const struct fabric_names *names, struct err *e)
{
	const struct source s = { text, name, len };
	struct making *m = making_new();
	struct hierarchy *given = NULL;
	struct fabric *f = NULL;

	if (!m)
		err_set(e, "%s: out of memory", name);
	else if (read_source(&s, m, &given, e))
		hierarchy_free(given);
	else
		f = finish(m, names, given, e);
	making_free(m);
	return f;
}

/* All of standard input, as it comes through a pipe. */
static int read_stdin(struct buf *out, struct err *e)
{
	size_t n = 1;
	char *room;

	while (n && out->len <= MAX_BYTES && (room = buf_reserve(out, 65536)))
		out->len += n = fread(room, 1, 65536, stdin);
	if (out->failed)
		return err_set(e, "standard input: out of memory");
	if (ferror(stdin))
		return err_set(e, "standard input: %s", strerror(errno));
	return out->len > MAX_BYTES ? err_set(e, "standard input: more than %zu bytes", MAX_BYTES) : 0;
}

static int read_path(const char *path, struct making *m, struct hierarchy **given, struct err *e)
{
	bool piped = !strcmp(path, "-");
	struct source s = { .name = piped ? "standard input" : path };
	struct buf b = {0};
	int rc = piped ? read_stdin(&b, e) : file_read(path, MAX_BYTES, &b, e);

	s.text = b.data ? b.data : "";
	s.len = b.len;
	if (rc == 0)
		rc = read_source(&s, m, given, e);
	buf_free(&b);
	return rc;
}

struct fabric *fabric_read(const char *const *paths, size_t n, const struct fabric_names *names, struct err *e)
{
	struct making *m = making_new();
	struct hierarchy *given = NULL;
	struct fabric *f = NULL;
	int rc = m && n ? 0 : err_set(e, n ? "out of memory" : "no file");

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = read_path(paths[i], m, n == 1 ? &given : NULL, e);
	if (rc == 0)
		f = finish(m, names, given, e);
	else
		hierarchy_free(given);
	making_free(m);
	return f;
}
