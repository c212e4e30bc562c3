/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "place.h"
#include "table.h"

#define DAYS_MAX 36500
#define LINE_MAX_BYTES 1024	/* the select plugin writes shorter ones */

struct args {
	const char *file;
	unsigned days;
};

static const struct cmd_option options[] = {
	{ "file", 0, "FILE", CMD_TEXT(file), "Read FILE, and FILE.1 before it; by default ObserveFile" },
	{ "days", 0, "N", CMD_NUMBER(days, 1, DAYS_MAX), "Only starts of the last N days" },
	{0},
};

static const struct cmd_syntax syntax = {
	options, NULL,
	"Report how Topiary would have placed the jobs that slurmctld started with TopoMode=observe.",
	{ .form = ARG_NONE }, NULL, NULL,
};

/* Of Slurm's choice, and of Topiary's. */
enum side { SLURM, TOPIARY, SIDES };

static const char *const domains[] = { "packages", "NUMA nodes", "L3 caches" };
#define DOMAINS (sizeof(domains) / sizeof(domains[0]))

/* How the starts of one partition compare. Packages, NUMA nodes and L3 caches in which a job has cores are touched. */
enum verdict_count {
	BETTER,		/* Topiary's choice touches fewer of one kind and more of none */
	EQUAL,		/* as many of each */
	WORSE,
	EITHER,		/* fewer of one kind and more of another */
	LEFT,		/* Topiary would have left it to Slurm */
	WAITS,		/* it would have waited for what it requires */
	VERDICTS
};
static const char *const verdict_names[VERDICTS] = { "better", "equal", "worse", "either", "left", "waits" };

struct partition {
	char *name;
	unsigned long passed, compared, count[VERDICTS];
};

struct observed {
	struct string_map names;
	struct partition *partitions;	/* by the number of the name */
	struct partition all;
	unsigned long touched[SIDES][DOMAINS], opened[SIDES][DOMAINS], opened_nodes[SIDES], unreadable;
	long long since, first, last;
};

/* The value of a word, of `size` bytes at most with its end. False: it has none. */
static bool word_read(const char *line, const char *name, char *value, size_t size)
{
	size_t n = strlen(name), len;

	for (const char *at = line; *(at += strspn(at, " \n")); at += strcspn(at, " \n"))
		if (!strncmp(at, name, n) && at[n] == '=') {
			len = strcspn(at + n + 1, " \n");
			if (len >= size)
				return false;
			memcpy(value, at + n + 1, len);
			value[len] = '\0';
			return true;
		}
	return false;
}

static bool counts_read(const char *line, const char *name, unsigned out[SIDES][DOMAINS])
{
	char value[96];
	int used = 0;

	return word_read(line, name, value, sizeof(value)) &&
	       sscanf(value, "%9u,%9u,%9u/%9u,%9u,%9u%n", &out[SLURM][0], &out[SLURM][1], &out[SLURM][2],
		      &out[TOPIARY][0], &out[TOPIARY][1], &out[TOPIARY][2], &used) == 6 && !value[used];
}

/* Counts a line, unless it is older than asked for. 0, or -1 when memory is short. */
static int line_read(struct observed *r, const char *line)
{
	char time[24], name[256], outcome[16], number[16], nodes[32];
	unsigned touched[SIDES][DOMAINS], opened[SIDES][DOMAINS], opened_nodes[SIDES];
	bool compared, fewer = false, more = false;
	enum verdict_count v;
	struct partition *p;
	unsigned long passed;
	long long at;
	size_t known = r->names.count, i;
	char *end;

	if (strncmp(line, "observed=1 ", 11) || !strchr(line, '\n') || !word_read(line, "time", time, sizeof(time)) ||
	    !word_read(line, "partition", name, sizeof(name)) ||
	    !word_read(line, "outcome", outcome, sizeof(outcome)) ||
	    !word_read(line, "passed", number, sizeof(number)) || (at = strtoll(time, &end, 10)) <= 0 || *end)
		goto unreadable;
	passed = strtoul(number, &end, 10);
	compared = !strcmp(outcome, "same") || !strcmp(outcome, "other");
	if (*end || (compared && (!counts_read(line, "touched", touched) || !counts_read(line, "opened", opened) ||
				  !word_read(line, "opened_nodes", nodes, sizeof(nodes)) ||
				  sscanf(nodes, "%9u/%9u", &opened_nodes[SLURM], &opened_nodes[TOPIARY]) != 2)) ||
	    (!compared && strcmp(outcome, "left") && strcmp(outcome, "waits")))
		goto unreadable;
	if (at < r->since)
		return 0;
	if ((i = string_map_add(&r->names, name)) == STRING_MAP_NONE)
		return -1;
	if (i == known) {
		struct partition *more_of = reallocarray(r->partitions, known + 1, sizeof(*more_of));

		if (!more_of)
			return -1;
		r->partitions = more_of;
		r->partitions[i] = (struct partition){ .name = strdup(name) };
		if (!r->partitions[i].name)
			return -1;
	}
	for (size_t d = 0; compared && d < DOMAINS; d++) {
		fewer |= touched[TOPIARY][d] < touched[SLURM][d];
		more |= touched[TOPIARY][d] > touched[SLURM][d];
		for (enum side s = 0; s < SIDES; s++) {
			r->touched[s][d] += touched[s][d];
			r->opened[s][d] += opened[s][d];
		}
	}
	for (enum side s = 0; compared && s < SIDES; s++)
		r->opened_nodes[s] += opened_nodes[s];
	v = !compared ? (*outcome == 'l' ? LEFT : WAITS) : fewer ? (more ? EITHER : BETTER) : more ? WORSE : EQUAL;
	for (int k = 0; k < 2; k++) {
		p = k ? &r->all : &r->partitions[i];
		p->passed += passed;
		p->compared++;
		p->count[v]++;
	}
	r->first = r->first && r->first < at ? r->first : at;
	r->last = r->last > at ? r->last : at;
	return 0;
unreadable:
	r->unreadable++;
	return 0;
}

/* A file that does not exist is empty. */
static int file_load(struct observed *r, const char *path, bool *found, struct err *e)
{
	FILE *f = fopen(path, "re");
	char line[LINE_MAX_BYTES];
	int rc = 0;

	if (!f && errno == ENOENT)
		return 0;
	if (!f)
		return err_set(e, "%s: %s", path, strerror(errno));
	*found = true;
	while (rc == 0 && fgets(line, sizeof(line), f)) {
		rc = line_read(r, line);
		while (!strchr(line, '\n') && fgets(line, sizeof(line), f))
			;
	}
	if (rc)
		err_set(e, "%s: out of memory", path);
	else if (ferror(f))
		rc = err_set(e, "%s: %s", path, strerror(errno));
	fclose(f);
	return rc;
}

static json_t *partition_json(const struct partition *p)
{
	json_t *o = json_pack("{sI sI}", "starts", (json_int_t) (p->compared + p->passed), "compared",
			      (json_int_t) p->compared);

	for (size_t v = 0; o && v < VERDICTS; v++)
		json_object_set_new(o, verdict_names[v], json_integer(p->count[v]));
	return o;
}

json_t *observed_json(const struct observed *r)
{
	json_t *o = partition_json(&r->all), *by = json_object(), *row;

	for (size_t i = 0; i < r->names.count; i++)
		json_object_set_new(by, r->partitions[i].name, partition_json(&r->partitions[i]));
	json_object_set_new(o, "partitions", by);
	json_object_set_new(o, "first", json_integer(r->first));
	json_object_set_new(o, "last", json_integer(r->last));
	json_object_set_new(o, "unreadable", json_integer(r->unreadable));
	for (size_t d = 0; d < DOMAINS; d++) {
		row = json_pack("{sI sI sI sI}", "touched_slurm", (json_int_t) r->touched[SLURM][d], "touched_topiary",
				(json_int_t) r->touched[TOPIARY][d], "opened_slurm", (json_int_t) r->opened[SLURM][d],
				"opened_topiary", (json_int_t) r->opened[TOPIARY][d]);
		json_object_set_new(o, domains[d], row);
	}
	row = json_pack("{sI sI}", "opened_slurm", (json_int_t) r->opened_nodes[SLURM], "opened_topiary",
			(json_int_t) r->opened_nodes[TOPIARY]);
	json_object_set_new(o, "nodes", row);
	return o;
}

int observed_table(const struct observed *r, struct err *e)
{
	struct table *t = table_new("partition|>starts|>compared|>better|>equal|>worse|>either|>left|>waits");
	char day[2][32] = { "", "" };

	for (int i = 0; i < 2; i++) {
		time_t when = i ? r->last : r->first;
		struct tm tm;

		if (localtime_r(&when, &tm))
			strftime(day[i], sizeof(day[i]), "%F %R", &tm);
	}
	printf("Starts from %s to %s\n", day[0], day[1]);
	for (size_t i = 0; i <= r->names.count && t; i++) {
		const struct partition *p = i < r->names.count ? &r->partitions[i] : &r->all;

		if (i == r->names.count && i == 1)
			break;
		table_cell(t, "%s|%lu|%lu", p == &r->all ? "all" : p->name, p->compared + p->passed, p->compared);
		for (size_t v = 0; v < VERDICTS; v++)
			table_cell(t, "%lu", p->count[v]);
	}
	if (table_finish(t, e))
		return -1;
	putchar('\n');
	t = table_new("of compared jobs|>used, Slurm|>used, Topiary|>idle before, Slurm|>idle before, Topiary");
	for (size_t d = 0; t && d < DOMAINS; d++)
		table_cell(t, "%s|%lu|%lu|%lu|%lu", domains[d], r->touched[SLURM][d], r->touched[TOPIARY][d],
			   r->opened[SLURM][d], r->opened[TOPIARY][d]);
	if (t)
		table_cell(t, "nodes|-|-|%lu|%lu", r->opened_nodes[SLURM], r->opened_nodes[TOPIARY]);
	if (table_finish(t, e))
		return -1;
	printf("\nbetter: Topiary's choice is on fewer packages, NUMA nodes or L3 caches, and on more of none;\n"
	       "left: Topiary would have left the job to Slurm. All jobs would have started when they did, but\n"
	       "for those that wait: they require a placement that was not free. Idle before: what a choice\n"
	       "takes from jobs that need whole ones.\n");
	if (r->unreadable)
		printf("%lu line%s cannot be read.\n", r->unreadable, PLURAL(r->unreadable));
	return 0;
}

void observed_free(struct observed *r)
{
	for (size_t i = 0; r && r->partitions && i < r->names.count; i++)
		free(r->partitions[i].name);
	if (r) {
		string_map_free(&r->names);
		free(r->partitions);
	}
	free(r);
}

struct observed *observed_read(const struct cmd *c, const char *file, unsigned days, struct err *e)
{
	struct observed *r = calloc(1, sizeof(*r));
	char old[PATH_MAX];
	bool found = false;
	int rc;

	file = file ? file : c->settings.observe_file;
	if (!r)
		rc = err_set(e, "out of memory");
	else if (snprintf(old, sizeof(old), "%s.1", file) >= (int) sizeof(old))
		rc = err_set(e, "%s: %s", file, strerror(ENAMETOOLONG));
	else {
		r->since = days ? time(NULL) - days * 86400ll : 0;
		rc = file_load(r, old, &found, e) || file_load(r, file, &found, e) ? -1 : 0;
	}
	if (rc == 0 && !found)
		rc = err_set(e, "%s: not on this host: run it where slurmctld runs with TopoMode=observe", file);
	else if (rc == 0 && !r->all.compared)
		rc = err_set(e, "%s: no start that was compared%s%s", file, days ? " in these days" : "",
			     r->unreadable ? "; its lines cannot be read" : "");
	if (rc) {
		observed_free(r);
		return NULL;
	}
	return r;
}

int cmd_observed(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args args = {0};
	struct observed *r = cmd_parse(c, &syntax, &args, argc, argv, e) ? NULL :
		observed_read(c, args.file, args.days, e);
	int rc = !r ? -1 : c->json ? cmd_print_new(observed_json(r), e) : observed_table(r, e);

	observed_free(r);
	return rc;
}
