/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "place.h"

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include "base/array.h"
#include "base/file.h"
#include "base/log.h"
#include "cores.h"
#include "shape/hostlist.h"

/* --- what the registry publishes --- */

#define NETWORK_MAX_BYTES ((size_t) 256 << 20)

struct hierarchy *published_network(const struct cmd *c)
{
	const char *path = c->settings.fabric_file;
	struct hierarchy *h = NULL;
	struct buf text = {0};
	struct err e = {""};
	int rc = 0;

	if (access(path, F_OK) == 0) {
		rc = file_read(path, NETWORK_MAX_BYTES, &text, &e);
	} else if (access(c->settings.snapshot_file, R_OK)) {
		/* A registry that does not answer is reported when the snapshot is requested. */
		path = "/v1/fabric/levels";
		if (cmd_get(c, path, &text, &e))
			return NULL;
	} else {
		return NULL;
	}
	if (rc == 0)
		h = hierarchy_parse(text.data ? text.data : "", text.len, path, &e);
	if (!h)
		log_warning("%s: mapping without the network", e.text);
	buf_free(&text);
	return h;
}

struct snapshot *published_snapshot(const struct cmd *c, const char *path, struct err *e)
{
	const char *from = path ? path : c->settings.snapshot_file;
	struct buf text = {0};
	struct snapshot *s;
	struct err file, http;

	if (file_read(from, SNAPSHOT_MAX_BYTES, &text, &file)) {
		from = "/v1/snapshot";
		if (path)
			return err_null(e, "%s", file.text);
		if (cmd_get(c, from, &text, &http))
			return err_null(e, "no snapshot, neither from the file (%.200s) nor from the registry (%.200s)",
				file.text, http.text);
	}
	s = snapshot_parse(text.data ? text.data : "", text.len, from, e);
	buf_free(&text);
	return s;
}

/* --- costs within nodes --- */

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

static int text_parse(struct costs *c, struct err *e)
{
	char *rest = c->text, *line;
	int rc = 0;

	for (unsigned n = 1; (line = strsep(&rest, "\n")); n++) {
		char *hosts;

		line += strspn(line, " \t");
		if (!*line || *line == '#')
			continue;
		hosts = strsep(&line, " \t");
		if (line)
			line += strspn(line, " \t");
		if (!line || !*line)
			rc = err_set(e, "expected a host list and costs");
		else if ((rc = words_check(line, e)) == 0 && strcmp(hosts, "*"))
			rc = hostlist_expand(hosts, add_name, &(struct adding){ c, line, e }, e);
		else if (rc == 0 && c->others)
			rc = err_set(e, "*: given twice");
		else if (rc == 0)
			c->others = line;
		if (rc)
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
	if (option && !strcasecmp(option, "default"))
		return 0;
	if (option && !strcasecmp(option, "measured"))
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
		buf_printf(out, "of %u node%s from %s%s", c->used, PLURAL(c->used), c->source,
			   c->without ? ", " : "");
	if (c->without)
		buf_printf(out, "default for %u node%s", c->without, PLURAL(c->without));
	if (!c->used && !c->without)
		buf_puts(out, "those of the file with the network or distances");
}

/* --- places --- */

struct filling {
	const struct place_site *site;
	struct directory nodes;
	struct places *places;
	unsigned cpus;			/* of a task */
};

/* Called for each host of a job with its cores there; NULL: all cores. threads: of a core, 0: as it has PUs. */
typedef int host_each(void *data, const char *host, const char *cores, unsigned threads, struct err *e);

/* Where hosts come from: the command line, or Slurm's record of a job. */
struct source {
	int (*hosts)(const void *what, host_each *each, void *data, struct err *e);
	const void *what;
};

static struct places *places_begin(const struct place_site *s, const struct hierarchy *network, struct err *e)
{
	struct places *p = places_new();

	if (!p)
		return err_null(e, "out of memory");
	p->network = network;
	p->planes = s->planes;
	return p;
}

static int is_connected(void *network, const char *host, const char *, unsigned, struct err *e)
{
	return hierarchy_find(network, host) ? 0 : err_set(e, "%s: this node is not in the network", host);
}

static int add_with_costs(const struct filling *f, const char *host, const struct shape *shape, const char *cores,
			  const char *costs, struct err *e)
{
	struct places *p = f->places;
	double between = p->cost[LEVEL_NODE];

	memcpy(p->cost, level_default_cost, sizeof(p->cost));
	if (places_costs(p, costs ? costs : "", e))
		return -1;
	/* Between two nodes the cost is the same both ways: that of the first node, for all. */
	if (p->nhosts)
		p->cost[LEVEL_NODE] = between;
	return places_add(p, host, shape, cores, f->cpus, e);
}

static int add_host(void *data, const char *host, const char *cores, unsigned threads, struct err *e)
{
	struct filling *f = data;
	const struct shape *shape = directory_shape(&f->nodes, host);
	const char *costs = f->site->costs ? costs_of(f->site->costs, host) : NULL;
	char all[32];
	int rc;

	if (!shape)
		return err_set(e, "%s: this node is not in the snapshot", host);
	f->places->threads = threads;
	snprintf(all, sizeof(all), "0-%u", shape->cores - 1);
	rc = add_with_costs(f, host, shape, cores ? cores : all, costs, e);
	if (rc && costs && f->places->numas.levels && costs_reject(f->site->costs, e))
		rc = add_with_costs(f, host, shape, cores ? cores : all, NULL, e);
	return rc;
}

static int place_fill(struct filling *f, const struct source *from, struct place_job *out, struct err *e)
{
	void *network = (void *) f->site->network;
	int rc = -1;

	/* One that lacks a node may be left out. */
	if (network && f->site->without && from->hosts(from->what, is_connected, network, f->site->without))
		network = NULL;
	if ((f->places = places_begin(f->site, network, e)) &&
	    directory_fill(&f->nodes, f->site->snapshot, e) == 0)
		rc = from->hosts(from->what, add_host, f, e);
	directory_free(&f->nodes);
	if (rc)
		places_free(f->places);
	else
		*out = (struct place_job){ .cpus = f->cpus, .places = f->places };
	return rc;
}

struct item {
	host_each *each;
	void *data;
	const char *cores;
	struct err *err;
};

static int item_host(const char *host, void *data)
{
	const struct item *i = data;

	return i->each(i->data, host, i->cores, 0, i->err);
}

static int words_hosts(const void *words, host_each *each, void *data, struct err *e)
{
	char *copy = strdup(words), *rest = copy, *item;
	int rc = copy ? 0 : err_set(e, "out of memory");

	while (rc == 0 && (item = strsep(&rest, ";"))) {
		char *cores = strchr(item, '=');

		if (!*item)
			continue;
		if (cores)
			*cores++ = '\0';
		rc = hostlist_expand(item, item_host, &(struct item){ each, data, cores, e }, e);
	}
	free(copy);
	return rc;
}

int job_from_words(const char *words, const struct place_site *s, struct place_job *out, struct err *e)
{
	struct filling f = { .site = s, .cpus = s->cpus ? s->cpus : 1 };

	if (!words[strspn(words, ";")])
		return err_set(e, "'%s': no node given", words);
	return place_fill(&f, &(struct source){ words_hosts, words }, out, e);
}

int job_from_network(const struct place_site *s, struct place_job *out, struct err *e)
{
	struct places *p = places_begin(s, s->network, e);
	int rc = p ? 0 : -1;

	for (unsigned i = 0; rc == 0 && i < s->network->nhosts; i++)
		rc = places_add_inner(p, &s->network->hosts[i], e);
	if (rc) {
		places_free(p);
		return -1;
	}
	*out = (struct place_job){ .cpus = 1, .places = p };
	return 0;
}

int job_from_distances(const struct matrix *m, struct place_job *out, struct err *e)
{
	struct hierarchy_host nameless = { .name = "-", .inner = { .levels = 1, .size = { m->ranks }, .cost = { 1 } } };
	struct places *p = places_new();

	if (!p)
		return err_set(e, "out of memory");
	if (places_add_inner(p, &nameless, e) || places_distances(p, m, e)) {
		places_free(p);
		return -1;
	}
	*out = (struct place_job){ .cpus = 1, .places = p };
	return 0;
}

static int job_hosts(const void *job, host_each *each, void *data, struct err *e)
{
	return cores_each(job, each, data, e);
}

struct asked {
	const struct place_site *site;
	struct place_job *out;
};

static int fill_allocated(void *asked, const job_info_t *j, struct err *e)
{
	const struct asked *a = asked;
	struct filling f = { .site = a->site, .cpus = a->site->cpus };

	if (!f.cpus)
		f.cpus = j->cpus_per_task == NO_VAL16 || !j->cpus_per_task ? 1 : j->cpus_per_task;
	if (place_fill(&f, &(struct source){ job_hosts, j }, a->out, e))
		return -1;
	a->out->tasks = j->num_tasks == NO_VAL ? 0 : j->num_tasks;
	return 0;
}

int job_load(uint32_t id, const struct place_site *s, struct place_job *out, struct err *e)
{
	return cores_job(id, fill_allocated, &(struct asked){ s, out }, e);
}
