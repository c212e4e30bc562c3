/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "fabric/recognise/draft.h"
#include "fabric/read/readers.h"

#define MAX_BYTES ((size_t) 256 << 20)

static int read_paper(struct lines *l, struct fabric_draft *m);

/* The reader of a file, by the beginning of its first line that is not a comment. */
static const struct {
	const char *start;
	int (*read)(struct lines *l, struct fabric_draft *m);
} forms[] = {
	{ "SW ", read_ports }, { "CA ", read_ports }, { "RT ", read_ports },
	{ "vendid=", read_discovered }, { "devid=", read_discovered }, { "sysimgguid=", read_discovered },
	{ "switchguid=", read_discovered }, { "caguid=", read_discovered }, { "rtguid=", read_discovered },
	{ "Switch\t", read_discovered }, { "Switch ", read_discovered },
	{ "Ca\t", read_discovered }, { "Ca ", read_discovered },
	{ "SwitchName=", read_slurm }, { "Switches=", read_slurm }, { "Nodes=", read_slurm },
	{ "BlockName=", read_slurm }, { "BlockSizes=", read_slurm }, { "RingName=", read_slurm },
	{ "Include ", read_slurm },
	{ "---", read_yaml }, { "%YAML", read_yaml }, { "- ", read_yaml },
	{ "tree ", read_paper }, { "torus ", read_paper }, { "graph ", read_paper }, { "node ", read_paper },
};

struct source {
	const char *text, *name;
	size_t len;
};

/* Reached when there are several files: read_source reads a single one itself. */
static int read_paper(struct lines *l, struct fabric_draft *m)
{
	(void) m;
	return lines_wrong(l, "a file of this format cannot be combined with others");
}

static const char *first_line(struct lines *l)
{
	char *line;

	while ((line = lines_next(l)))
		if (!reader_is_chatter(line))
			return line;
	return NULL;
}

static int (*form_of(const char *line))(struct lines *l, struct fabric_draft *m)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (!strncasecmp(line, forms[i].start, strlen(forms[i].start)))
			return forms[i].read;
	return NULL;
}

static int read_source(const struct source *s, struct fabric_draft *m, struct hierarchy **given, struct err *e)
{
	int (*read)(struct lines *l, struct fabric_draft *m) = NULL;
	struct lines l;
	const char *line;
	int rc = -1;

	if (lines_open(&l, s->text, s->len, s->name, e))
		return -1;
	if (!(line = first_line(&l)))
		err_set(e, "%s: empty", s->name);
	else if (!(read = form_of(line)))
		lines_wrong(&l, "'%.40s': unknown format; expected ibnetdiscover output, topology.conf, topology.yaml, "
			    "a tree or a torus", line);
	lines_close(&l);
	if (!read)
		return -1;
	if (read == read_paper && given) {
		*given = hierarchy_parse(s->text, s->len, s->name, e);
		return *given ? 0 : -1;
	}
	if (lines_open(&l, s->text, s->len, s->name, e))
		return -1;
	rc = read(&l, m);
	lines_close(&l);
	return rc;
}

static struct fabric *fabric_finish(const struct fabric_draft *m, const struct fabric_names *names,
				    struct hierarchy *given, struct err *e)
{
	return given ? fabric_given(given, e) : draft_finish(m, names, e);
}

struct fabric *fabric_parse(const char *text, size_t len, const char *name, const struct fabric_names *names,
			    struct err *e)
{
	const struct source s = { text, name, len };
	struct fabric_draft *m = draft_new();
	struct hierarchy *given = NULL;
	struct fabric *f = NULL;

	if (!m)
		err_set(e, "%s: out of memory", name);
	else if (read_source(&s, m, &given, e) == 0)
		f = fabric_finish(m, names, given, e);
	draft_free(m);
	return f;
}

static int read_path(const char *path, struct fabric_draft *m, struct hierarchy **given, struct err *e)
{
	struct source s = {0};
	struct buf b = {0};
	int rc = file_read_input(path, MAX_BYTES, &s.name, &b, e);

	s.text = b.data ? b.data : "";
	s.len = b.len;
	if (rc == 0)
		rc = read_source(&s, m, given, e);
	buf_free(&b);
	return rc;
}

struct fabric *fabric_read(const char *const *paths, size_t n, const struct fabric_names *names, struct err *e)
{
	struct fabric_draft *m = draft_new();
	struct hierarchy *given = NULL;
	struct fabric *f = NULL;
	int rc = m && n ? 0 : err_set(e, n ? "out of memory" : "no input file");

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = read_path(paths[i], m, n == 1 ? &given : NULL, e);
	if (rc == 0)
		f = fabric_finish(m, names, given, e);
	draft_free(m);
	return f;
}
