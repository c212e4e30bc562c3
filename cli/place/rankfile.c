/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"
#include "map/matrix/numbers.h"
#include "map/rankfile/rankfile.h"
#include "shape/hostset.h"

/* --- OS numbers of PUs --- */

/* Frees the tree, which may be NULL after an error. */
static struct numbers *numbers_of_tree(struct tree *t, const char *name, struct err *e)
{
	struct numbers *n = t ? numbers_of(t, e) : NULL;

	if (t && !n)
		err_within(e, "%s", name);
	tree_free(t);
	return n;
}

static struct numbers *numbers_of_node(const struct cmd *c, const char *host, struct err *e)
{
	struct target node = {0};

	return target_parse(host, &node, e) ? NULL : numbers_of_tree(tree_of_target(c, &node, e), host, e);
}

/* Hosts without places are skipped; of a host named twice the first file counts. */
static int hosts_fill(const char *list, const char *file, struct places *p, struct err *e)
{
	struct hostset *hosts = hostset_parse(list, e);
	int rc = hosts ? 0 : -1;

	for (unsigned h = 0; rc == 0 && h < p->nhosts; h++)
		if (!p->numbers[h] && hostset_has(hosts, p->hosts[h]))
			rc = (p->numbers[h] = numbers_of_tree(tree_of_file(file, e), file, e)) ? 0 : -1;
	hostset_free(hosts);
	return rc;
}

static int words_fill(char *words, struct places *p, struct err *e)
{
	char *save = NULL;

	for (char *item = strtok_r(words, ";", &save); item; item = strtok_r(NULL, ";", &save)) {
		char *file = strchr(item, '=');

		if (!file)
			return err_set(e, "'%s': expected HOSTS=FILE", item);
		*file++ = '\0';
		if (hosts_fill(item, file, p, e))
			return -1;
	}
	return 0;
}

/*
 * Fill in places->numbers, the OS CPU numbers of each host: from the topology file that `words` names for it
 * ("HOSTS=FILE[;HOSTS=FILE]..."), otherwise from the registry. 0, or -1 with an error naming the host or file.
 */
static int numbers_load(const struct cmd *c, const char *words, struct places *p, struct err *e)
{
	char *copy = strdup(words ? words : "");
	int rc = -1;

	p->numbers = calloc(p->nhosts + 1, sizeof(*p->numbers));
	if (!copy || !p->numbers)
		err_set(e, "out of memory");
	else
		rc = words_fill(copy, p, e);
	free(copy);
	for (unsigned h = 0; !rc && h < p->nhosts; h++)
		if (!p->numbers[h] && !(p->numbers[h] = numbers_of_node(c, p->hosts[h], e)))
			rc = err_within(e, "%s: no topology with its OS CPU numbers", p->hosts[h]);
	return rc;
}

/* --- formats --- */

typedef int each_fn(void *data, const char *format, struct err *e);

static int formats_each(const char *formats, each_fn *each, void *data, struct err *e)
{
	char *copy = strdup(formats), *save = NULL;
	int rc = copy ? 0 : err_set(e, "out of memory");

	for (char *one = copy ? strtok_r(copy, ",", &save) : NULL; one && !rc; one = strtok_r(NULL, ",", &save))
		rc = each(data, one, e);
	free(copy);
	return rc;
}

static bool formats_are_several(const struct rankfile_output *o)
{
	return strchr(o->formats, ',');
}

static int check_one(void *data, const char *format, struct err *e)
{
	(void) data;
	return rankfile_check(format, e);
}

int rankfile_output_check(const struct rankfile_output *o, struct err *e)
{
	if (formats_each(o->formats, check_one, NULL, e))
		return -1;
	if ((formats_are_several(o) || o->env) && !o->file)
		return err_set(e, "%s requires -o FILE", o->env ? "--env" : "more than one format");
	return 0;
}

struct outgoing {
	const struct cmd *c;
	const struct rankfile_output *o;
	struct places *places;
	const struct mapping *mapping;
	struct buf env;
};

/* The launcher may have another working directory: its environment gets absolute paths. */
static int env_add(struct outgoing *out, const char *format, const char *file, struct err *e)
{
	char path[PATH_MAX];

	if (!realpath(file, path))
		return err_set(e, "%s: %s", file, strerror(errno));
	return rankfile_env(format, out->places, out->mapping, path, &out->env, e);
}

static int write_one(void *data, const char *format, struct err *e)
{
	struct outgoing *out = data;
	char file[PATH_MAX];
	struct buf text = {0};
	int rc;

	snprintf(file, sizeof(file), formats_are_several(out->o) ? "%s.%s" : "%s",
		 out->o->file ? out->o->file : "", format);
	if (rankfile_wants_numbers(format) && !out->places->numbers &&
	    numbers_load(out->c, out->o->topology, out->places, e))
		return err_within(e, "%s", format);
	rc = rankfile_write(format, out->places, out->mapping, &text, e);
	if (!rc)
		rc = cmd_write(*file ? file : NULL, &text, e);
	buf_free(&text);
	return rc || !out->o->env ? rc : env_add(out, format, file, e);
}

int rankfile_output_write(const struct cmd *c, const struct rankfile_output *o, struct places *p,
			  const struct mapping *m, struct err *e)
{
	struct outgoing out = { .c = c, .o = o, .places = p, .mapping = m };
	int rc = formats_each(o->formats, write_one, &out, e);

	if (!rc && o->env)
		rc = cmd_write(o->env, &out.env, e);
	buf_free(&out.env);
	return rc;
}
