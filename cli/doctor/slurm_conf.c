/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "slurm_conf.h"

#include <glob.h>
#include <regex.h>

#include "base/array.h"
#include "base/file.h"

#define CONF_MAX (64u << 20)
#define FILES_MAX 256	/* a file that includes itself ends here */

static const char *const patterns[] = {
	[CONF_SLURM] = "^[[:space:]]*([[:alnum:]_.]+)[[:space:]]*[-+*/]?=[[:space:]]*(\"[^\"]*\"|[^[:space:]]+)"
		       "([[:space:]]|$)",
	[CONF_PLUGSTACK] = "^[[:space:]]*(optional|required)[[:space:]]+([^[:space:]].*)$",
};

struct reader {
	struct slurm_conf *conf;
	regex_t key, include;
};

/* A line as Slurm sees it: no comment, continued lines joined; from[i] is where in the text text[i] is, or ends. */
struct joined {
	char *text;
	size_t *from, n;
	unsigned line, lines;	/* number of the first, and how many */
	bool open;		/* the text ends in it */
};

static int file_add(struct reader *r, const char *path, struct err *e);

/* The line at *at, which is advanced, with those that continue it. 0, or -1 when memory is short. */
static int line_join(const struct buf *b, size_t *at, struct joined *out)
{
	bool more = true;

	out->line += out->lines;
	out->n = out->lines = 0;
	out->open = false;
	while (more && *at < b->len) {
		const char *stop = memchr(b->data + *at, '\n', b->len - *at);
		size_t next = stop ? (size_t) (stop - b->data) + 1 : b->len, end = next - (stop != NULL), last;
		size_t slashes = 0;
		bool escaped = false;

		for (size_t i = *at; i < end; i++) {
			if (b->data[i] == '#' && !escaped)
				end = i;
			else
				escaped = b->data[i] == '\\' && !escaped;
		}
		/* It is continued by an odd number of backslashes, of which the last goes. */
		for (last = end; last > *at && isspace((unsigned char) b->data[last - 1]);)
			last--;
		while (last > *at + slashes && b->data[last - 1 - slashes] == '\\')
			slashes++;
		if ((more = slashes % 2))
			end = last - 1;
		out->open = next == b->len && (more || !stop);
		if (array_reserve(out->text, out->n, end - *at + 1) || array_reserve(out->from, out->n, end - *at + 1))
			return -1;
		for (size_t i = *at; i < end; i++) {
			out->text[out->n] = b->data[i];
			out->from[out->n++] = i;
		}
		out->from[out->n] = end;
		out->lines++;
		*at = next;
	}
	if (array_reserve(out->text, out->n, 1))
		return -1;
	out->text[out->n] = '\0';
	return 0;
}

static int key_add(struct reader *r, size_t file, const struct joined *l, const regmatch_t *m, size_t offset,
		   struct err *e)
{
	size_t from = offset + m[2].rm_so, to = offset + m[2].rm_eo;
	struct conf_key *k = array_add(r->conf->keys, r->conf->nkeys);
	bool quoted;

	while (to > from + 1 && isspace((unsigned char) l->text[to - 1]))
		to--;
	quoted = l->text[from] == '"' && to > from + 1 && l->text[to - 1] == '"';
	if (k)
		*k = (struct conf_key){
			.name = strndup(l->text + offset + m[1].rm_so, m[1].rm_eo - m[1].rm_so),
			.value = strndup(l->text + from + quoted, to - from - 2 * quoted),
			.file = file, .begin = l->from[offset + m[1].rm_so], .at = l->from[from],
			.len = l->from[to - 1] + 1 - l->from[from], .line = l->line,
			.from = malloc((to - from + 1) * sizeof(*k->from)),
		};
	if (k && k->from)
		memcpy(k->from, l->from + from + quoted, (to - from + 1 - quoted) * sizeof(*k->from));
	return k && k->name && k->value && k->from ? 0 : err_set(e, "out of memory");
}

/* The keys of a line, of a node's or partition's only the first; or the files that it includes. */
static int line_read(struct reader *r, size_t file, const struct joined *l, struct err *e)
{
	static const char *const records[] = { "NodeName", "PartitionName", "NodeSet", "DownNodes", "FrontendName" };
	regmatch_t m[4];

	if (regexec(&r->include, l->text, 4, m, 0) == 0) {
		char *pattern = NULL, *name = strndup(l->text + m[1].rm_so, m[1].rm_eo - m[1].rm_so);
		glob_t found = {0};
		int rc = 0;

		if (!name || !(pattern = slurm_conf_beside(r->conf->files[file].path, name)))
			rc = err_set(e, "out of memory");
		if (rc == 0 && glob(pattern, GLOB_NOMAGIC, NULL, &found) == 0)
			for (size_t i = 0; i < found.gl_pathc && rc == 0; i++)
				rc = file_add(r, found.gl_pathv[i], e);
		globfree(&found);
		free(pattern);
		free(name);
		return rc;
	}
	for (size_t at = 0; at <= l->n && regexec(&r->key, l->text + at, 4, m, 0) == 0; at += m[2].rm_eo) {
		if (key_add(r, file, l, m, at, e))
			return -1;
		for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++)
			if (!strcasecmp(records[i], r->conf->keys[r->conf->nkeys - 1].name))
				return 0;
	}
	return 0;
}

static int file_add(struct reader *r, const char *path, struct err *e)
{
	struct slurm_conf *c = r->conf;
	struct joined l = { .line = 1 };
	size_t file = c->nfiles, at = 0;
	struct conf_file *f;
	int rc = 0;

	if (file == FILES_MAX)
		return err_set(e, "%s: more than %d files are included", path, FILES_MAX);
	if (!(f = array_add(c->files, c->nfiles)) || !(f->path = strdup(path)))
		return err_set(e, "out of memory");
	if (file_read(path, CONF_MAX, &f->text, e))
		return -1;
	if (f->text.len > 3 && !memcmp(f->text.data, "\xef\xbb\xbf", 3))
		return err_set(e, "%s:1: starts with a byte order mark, which Slurm refuses: save it without", path);
	while (rc == 0 && at < c->files[file].text.len)
		rc = line_join(&c->files[file].text, &at, &l) ? err_set(e, "out of memory") : line_read(r, file, &l, e);
	c->files[file].open = l.open;
	free(l.text);
	free(l.from);
	return rc;
}

int slurm_conf_read(struct slurm_conf *c, const char *path, enum conf_kind kind, struct err *e)
{
	struct reader r = { .conf = c };
	int rc;

	*c = (struct slurm_conf){0};
	if (regcomp(&r.key, patterns[kind], REG_EXTENDED | REG_ICASE))
		return err_set(e, "out of memory");
	if (regcomp(&r.include, "^[[:space:]]*include[[:space:]]+([^[:space:]]+)", REG_EXTENDED | REG_ICASE)) {
		regfree(&r.key);
		return err_set(e, "out of memory");
	}
	rc = file_add(&r, path, e);
	regfree(&r.key);
	regfree(&r.include);
	return rc;
}

void slurm_conf_free(struct slurm_conf *c)
{
	for (size_t i = 0; i < c->nkeys; i++) {
		free(c->keys[i].name);
		free(c->keys[i].value);
		free(c->keys[i].from);
	}
	for (size_t i = 0; i < c->nfiles; i++) {
		free(c->files[i].path);
		buf_free(&c->files[i].text);
	}
	free(c->keys);
	free(c->files);
	*c = (struct slurm_conf){0};
}

const struct conf_key *slurm_conf_find(const struct slurm_conf *c, const char *name)
{
	for (size_t i = c->nkeys; i-- > 0;)
		if (!strcasecmp(c->keys[i].name, name))
			return &c->keys[i];
	return NULL;
}

void slurm_conf_repeated(const struct slurm_conf *c, const char *name, void (*report)(void *user, const char *finding),
			 void *user)
{
	const struct conf_key *last = slurm_conf_find(c, name);
	struct err e;

	for (const struct conf_key *k = c->keys; last && k < last; k++)
		if (!strcasecmp(k->name, name)) {
			err_set(&e, "%s:%u: %s=%s has no effect: %s:%u sets it again to %s", c->files[k->file].path,
				k->line, name, k->value, c->files[last->file].path, last->line, last->value);
			report(user, e.text);
		}
}

const char *slurm_conf_path(void)
{
	static const char usual[] = "/etc/slurm/slurm.conf";
	const char *named = getenv("SLURM_CONF");

	return named ? named : access(usual, F_OK) && access(SLURM_CONF_CONFIGLESS, F_OK) == 0 ?
	       SLURM_CONF_CONFIGLESS : usual;
}

char *slurm_conf_beside(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	struct buf b = {0};

	buf_printf(&b, "%.*s%s", *name == '/' || !slash ? 0 : (int) (slash - path) + 1, path, name);
	if (b.failed)
		buf_free(&b);
	return b.data;
}
