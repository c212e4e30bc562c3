/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "costs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/log.h"
#include "map/places/places.h"
#include "shape/hostlist.h"

#define COSTS_MAX_BYTES ((size_t) 16 << 20)
#define REGISTRY "/v1/costs"

struct adding {
	struct costs *costs;
	const char *words;
	struct err *err;
};

static int add_name(const char *name, void *user)
{
	struct adding *a = user;
	struct costs *c = a->costs;
	size_t before = c->names.count, i = string_map_add(&c->names, name);

	if (i == STRING_MAP_NONE)
		return err_set(a->err, "out of memory");
	if (i < before)
		return err_set(a->err, "%s: node given twice", name);
	if (array_reserve(c->of, i, 1))
		return err_set(a->err, "out of memory");
	c->of[i] = a->words;
	return 0;
}

/* Bad words are an error of the file, whether or not the job has a node of that line. */
static int words_check(const char *words, struct err *e)
{
	struct places *p = places_new();
	int rc = p ? places_costs(p, words, e) : err_set(e, "out of memory");

	places_free(p);
	return rc;
}

static int line_add(struct costs *c, char *line, struct err *e)
{
	char *hosts = strsep(&line, " \t");

	if (line)
		line += strspn(line, " \t");
	if (!line || !*line)
		return err_set(e, "expected a host list and costs");
	if (words_check(line, e))
		return -1;
	if (strcmp(hosts, "*"))
		return hostlist_expand(hosts, add_name, &(struct adding){ c, line, e }, e);
	if (c->others)
		return err_set(e, "*: given twice");
	c->others = line;
	return 0;
}

static int text_parse(struct costs *c, struct err *e)
{
	char *rest = c->text, *line;

	for (unsigned n = 1; (line = strsep(&rest, "\n")); n++) {
		line += strspn(line, " \t");
		if (*line && *line != '#' && line_add(c, line, e))
			return err_within(e, "%s:%u", c->source, n);
	}
	return 0;
}

static int file_load(const char *path, struct costs *c, struct err *e)
{
	struct buf text = {0};

	c->source = path;
	if (file_read(path, COSTS_MAX_BYTES, &text, e))
		return -1;
	buf_puts(&text, "");
	if (!(c->text = text.data) || text.failed)
		return err_set(e, "%s: out of memory", path);
	if (strlen(text.data) != text.len)
		return err_set(e, "%s: not a text file", path);
	return text_parse(c, e);
}

/* CostsFile, or, if there is no SnapshotFile either, the registry's. */
static int published_load(const struct cmd *cmd, struct costs *c, struct err *e)
{
	struct buf text = {0};

	c->is_published = true;
	if (access(cmd->settings.costs_file, F_OK) == 0)
		return file_load(cmd->settings.costs_file, c, e);
	if (access(cmd->settings.snapshot_file, R_OK) == 0)
		return 0;
	c->source = REGISTRY;
	if (cmd_get(cmd, REGISTRY, &text, e))
		return -1;
	c->text = text.data;
	return text_parse(c, e);
}

/* Published costs that cannot be read are a warning, unless they were requested. */
int costs_load(const struct cmd *cmd, const char *option, struct costs *out, struct err *e)
{
	struct err why = {""};

	*out = (struct costs){ .source = "default" };
	if (option && !strcmp(option, "default"))
		return 0;
	if (option && !strcmp(option, "measured"))
		return published_load(cmd, out, e);
	if (option && strchr(option, '=') && *option != '/' && *option != '.') {
		out->source = "--costs";
		out->others = option;
		return words_check(option, e);
	}
	if (option)
		return file_load(option, out, e) ? err_within(e, "--costs") : 0;
	if (published_load(cmd, out, &why) == 0)
		return 0;
	/* A registry that does not answer is reported when the snapshot is requested. */
	if (strcmp(out->source, REGISTRY))
		log_warning("%s: mapping with default costs", why.text);
	costs_free(out);
	*out = (struct costs){ .source = "default" };
	return 0;
}

void costs_free(struct costs *c)
{
	string_map_free(&c->names);
	free(c->of);
	free(c->text);
	*c = (struct costs){0};
}

const char *costs_of(struct costs *c, const char *node)
{
	size_t i = c->names.count ? string_map_find(&c->names, node) : STRING_MAP_NONE;
	const char *words = i == STRING_MAP_NONE ? c->others : c->of[i];

	*(words ? &c->used : &c->without) += 1;
	return words;
}

bool costs_reject(struct costs *c, const struct err *why)
{
	if (!c->is_published)
		return false;
	if (!c->rejected++)
		log_warning("%s; %s: measured with other hardware, using default costs", why->text, c->source);
	c->used--;
	c->without++;
	return true;
}

void costs_describe(const struct costs *c, struct buf *out)
{
	buf_puts(out, "within nodes: ");
	if (c->used)
		buf_printf(out, "of %u node%s from %s%s", c->used, c->used == 1 ? "" : "s", c->source,
			   c->without ? ", " : "");
	if (c->without)
		buf_printf(out, "default for %u node%s", c->without, c->without == 1 ? "" : "s");
	if (!c->used && !c->without)
		buf_puts(out, "those of the file with the network or distances");
}
