/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/log.h"
#include "base/printable.h"
#include "child.h"
#include "cmd.h"
#include "hwxml/canon.h"
#include "hwxml/tree.h"
#include "place.h"
#include "replay/audit.h"
#include "shape/inventory.h"
#include "shape/strings.h"
#include "table.h"

#define OUTPUT_MAX_BYTES (2u << 30)
#define OUTPUT_SECONDS 300
#define WORST 10

static const char *const level_keys[AUDIT_LEVELS] = { "package", "numa", "l3", "switch" };

/* --- command line --- */

struct args {
	const char *jobs, *nodes, *switches, *snapshot;
	bool collect;
	char **topologies;		/* NODES=FILE, or a folder */
	size_t ntopologies;
};

static void add_topology(void *args, const char *text, struct argp_state *state)
{
	struct args *a = args;
	char **slot = array_add(a->topologies, a->ntopologies);

	if (!slot)
		argp_failure(state, EXIT_FAILURE, 0, "out of memory");
	else
		*slot = (char *) text;
}

static void check_args(void *args, struct argp_state *state)
{
	const struct args *a = args;

	if (!a->jobs != !a->nodes)
		argp_error(state, "--jobs and --nodes go together: both are of one cluster at one time");
}

static const struct cmd_option options[] = {
	{ "jobs", 0, "FILE", CMD_TEXT(jobs), "Read this output of `scontrol -d show job` instead of running it" },
	{ "nodes", 0, "FILE", CMD_TEXT(nodes), "Read this output of `scontrol show node` instead of running it" },
	{ "switches", 0, "FILE", CMD_TEXT(switches),
	  "Read this output of `scontrol show topology`, or topology.conf" },
	{ "topology", 0, "NODES=FILE", CMD_SET(add_topology),
	  "The hwloc XML of these nodes and of those with equal sockets, cores and threads; or a folder with NODE.xml. "
	  "May be given several times" },
	{ "snapshot", 0, "FILE", CMD_TEXT(snapshot), "The nodes' hardware from a snapshot of Topiary's" },
	{ "collect", 0, NULL, CMD_FLAG(collect), "Run lstopo by srun on one node of each kind whose XML is missing" },
	{0},
};

static const struct cmd_syntax syntax = {
	options, NULL,
	"Report how the running jobs of this cluster are placed on its hardware. It reads what every user may read, "
	"needs neither daemon nor plugin, and changes nothing.",
	{0}, NULL, check_args,
};

/* --- inputs --- */

/* Nodes that slurm.conf describes alike: they share a topology. */
struct kind {
	unsigned sockets, cores, threads;
	const char *shape;		/* NULL: none given */
	bool differ;			/* several were given: a node without its own has none */
	const char *node;		/* one of them without a shape */
	struct buf without;		/* names of nodes without a shape */
	unsigned nwithout;
};

struct input {
	struct audit audit;
	struct string_map kind_names;
	struct kind *kinds;
	size_t nkinds;
	struct inventory *inventory;
	struct snapshot *snapshot;
};

static int program_run(const char *const argv[], struct buf *out, struct err *e)
{
	int rc = cmd_program(argv, STDERR_OURS, OUTPUT_SECONDS, OUTPUT_MAX_BYTES, out, e);

	if (rc > 0) {
		buf_free(out);
		err_set(e, "%s ended with status %d", argv[0], rc);
	}
	return rc ? -1 : 0;
}

static int input_read(const char *file, const char *const argv[], struct buf *out, const char **name, struct err *e)
{
	*name = argv[0];
	return file ? file_read_input(file, OUTPUT_MAX_BYTES, name, out, e) : program_run(argv, out, e);
}

static int scontrol_read(struct input *u, const struct args *a, struct err *e)
{
	static const char *const nodes[] = { "scontrol", "-a", "show", "node", NULL };
	static const char *const jobs[] = { "scontrol", "-a", "-d", "show", "job", NULL };
	static const char *const switches[] = { "scontrol", "show", "topology", NULL };
	static const char *const config[] = { "scontrol", "show", "config", NULL };
	struct buf b = {0};
	const char *name, *age;
	struct err unused;
	long long now = time(NULL);

	if (input_read(a->nodes, nodes, &b, &name, e) || scontrol_read_nodes(&u->audit.s, &b, name, e) ||
	    input_read(a->jobs, jobs, &b, &name, e) || scontrol_read_jobs(&u->audit.s, &b, name, e))
		return -1;
	if (a->switches || !a->nodes) {
		if (input_read(a->switches, switches, &b, &name, a->switches ? e : &unused))
			return a->switches ? -1 : 0;
		if (scontrol_read_switches(&u->audit.s, &b, name, e))
			return -1;
	}
	/* slurmctld still shows jobs that ended in the last MinJobAge seconds. */
	if (!a->nodes && !program_run(config, &b, &unused)) {
		buf_add(&b, "", 1);
		age = b.failed ? NULL : strstr(b.data, "\nMinJobAge");
		if (age && (age = strchr(age, '=')))
			u->audit.known_since = now - strtoll(age + 1, NULL, 10) + 2;
		buf_free(&b);
	}
	return 0;
}

static int xml_shape(const char *file, struct strings *out, struct err *e)
{
	struct buf xml = {0};
	struct tree *t = NULL;
	int rc = file_read(file, CANON_MAX_BYTES, &xml, e);

	if (!rc && !(t = tree_parse(xml.data ? xml.data : "", xml.len, file, e)))
		rc = -1;
	if (!rc && (rc = strings_make(t, out, e)))
		err_within(e, "%s", file);
	tree_free(t);
	buf_free(&xml);
	return rc;
}

static struct kind *kind_of(struct input *u, const struct scontrol_node *n)
{
	char key[64];
	size_t i, known = u->nkinds;

	snprintf(key, sizeof(key), "%u/%u/%u", n->sockets, n->cores, n->threads);
	i = string_map_add(&u->kind_names, key);
	if (i == STRING_MAP_NONE || (i == known && !array_add(u->kinds, u->nkinds)))
		return NULL;
	if (i == known)
		u->kinds[i] = (struct kind){ .sockets = n->sockets, .cores = n->cores, .threads = n->threads };
	return &u->kinds[i];
}

struct given {
	struct strings strings;
	struct hostset *nodes;		/* or NULL, and */
	const struct scontrol_node *node;
};

/* Nodes with an own shape are added to the inventory, and it is that of their kind. */
static int given_use(struct input *u, const struct given *g, const char **own, struct err *e)
{
	const char *text = g->strings.allocation;

	for (size_t i = 0; i < u->audit.s.nnodes; i++) {
		const struct scontrol_node *n = &u->audit.s.nodes[i];
		struct kind *k;

		if (own[i] || (g->nodes ? !hostset_has(g->nodes, n->name) : n != g->node))
			continue;
		if (!(k = kind_of(u, n)))
			return err_set(e, "out of memory");
		own[i] = text;
		k->differ |= k->shape && strcmp(k->shape, text);
		k->shape = text;
	}
	return 0;
}

static int given_read(struct input *u, const char *what, struct given **list, size_t *n, struct err *e)
{
	const char *file = strchr(what, '=');
	struct given *g;
	struct stat st;

	if (file) {
		char *hosts = strndup(what, file - what);

		if (!hosts || !(g = array_add(*list, *n)))
			return free(hosts), err_set(e, "out of memory");
		g->nodes = hostset_parse(hosts, e);
		free(hosts);
		return g->nodes ? xml_shape(file + 1, &g->strings, e) : err_within(e, "--topology %s", what);
	}
	if (stat(what, &st) || !S_ISDIR(st.st_mode))
		return err_set(e, "--topology %s: neither NODES=FILE nor a folder", what);
	for (size_t i = 0; i < u->audit.s.nnodes; i++) {
		struct strings strings;
		char path[PATH_MAX];
		struct err why;

		snprintf(path, sizeof(path), "%s/%s.xml", what, u->audit.s.nodes[i].name);
		if (strchr(u->audit.s.nodes[i].name, '/') || access(path, F_OK))
			continue;
		if (xml_shape(path, &strings, &why)) {
			log_warning("%s; the node counts as one without XML", why.text);
			continue;
		}
		if (!(g = array_add(*list, *n)))
			return strings_free(&strings), err_set(e, "out of memory");
		*g = (struct given){ .strings = strings, .node = &u->audit.s.nodes[i] };
	}
	return 0;
}

/* --collect: one node of each kind, into the working folder. */
static int collect(struct input *u, struct args *a, struct err *e)
{
	size_t n = u->audit.s.nnodes;

	for (size_t i = 0; i < n; i++) {
		const struct scontrol_node *node = &u->audit.s.nodes[i];
		struct kind *k = kind_of(u, node);
		const char *const argv[] = { "srun", "-Q", "-N1", "-n1", "-t5", "-w", node->name, "lstopo-no-graphics",
					     "--of", "xml", "--whole-system", NULL };
		char file[300], *option;
		struct buf b = {0};
		struct err why;

		if (!k)
			return err_set(e, "out of memory");
		if (k->shape || k->node)
			continue;
		k->node = node->name;
		snprintf(file, sizeof(file), "%s.xml", node->name);
		if (program_run(argv, &b, &why) || cmd_write(file, &b, &why)) {
			log_warning("lstopo on %s: %s", node->name, why.text);
		} else if (asprintf(&option, "%s=%s", node->name, file) < 0) {
			return buf_free(&b), err_set(e, "out of memory");
		} else {
			log_info("wrote %s", file);
			add_topology(a, option, NULL);
		}
		buf_free(&b);
	}
	return 0;
}

/* The cluster of the nodes with a topology. */
static int topologies_read(struct input *u, const struct cmd *c, struct args *a, struct err *e)
{
	const char **own = calloc(u->audit.s.nnodes, sizeof(*own));
	struct given *given = NULL;
	struct buf text = {0};
	size_t n = 0, done = 0, added = 0, with = 0;
	int rc = own && (u->inventory = inventory_new()) ? 0 : err_set(e, "out of memory");
	struct directory d = {0};

	for (size_t pass = 0; !rc && pass <= a->collect; pass++) {
		if (pass)
			rc = collect(u, a, e);
		for (; !rc && done < a->ntopologies; done++)
			rc = given_read(u, a->topologies[done], &given, &n, e);
		for (; !rc && added < n; added++)
			rc = given_use(u, &given[added], own, e);
	}
	/* Of Topiary's own, where there is one: what has been read so far is preferred. */
	if (!rc && (a->snapshot || (!a->ntopologies && !a->nodes))) {
		struct err why;

		u->snapshot = published_snapshot(c, a->snapshot, a->snapshot ? e : &why);
		rc = u->snapshot ? directory_fill(&d, u->snapshot, e) : a->snapshot ? -1 : 0;
	}
	for (size_t i = 0; !rc && i < u->audit.s.nnodes; i++) {
		const struct scontrol_node *node = &u->audit.s.nodes[i];
		const struct shape *shape = directory_shape(&d, node->name);
		struct kind *k = kind_of(u, node);
		const char *shape_text = own[i] ? own[i] : shape ? shape->text : k && !k->differ ? k->shape : NULL;

		if (!k || (!shape_text && k->without.failed))
			rc = err_set(e, "out of memory");
		else if (shape_text)
			rc = inventory_add(u->inventory, node->name, shape_text, e);
		else {
			k->node = node->name;
			k->nwithout++;
			buf_printf(&k->without, "%s%s", k->without.len ? "," : "", node->name);
		}
		with += shape_text != NULL;
	}
	directory_free(&d);
	snapshot_free(u->snapshot);
	u->snapshot = NULL;
	if (!rc && with &&
	    ((rc = inventory_snapshot(u->inventory, NULL, &text, e)) ||
	     !(u->snapshot = snapshot_parse(text.data, text.len, "the nodes' topologies", e)) ||
	     !(u->audit.cluster = cluster_new(u->snapshot, e))))
		rc = -1;
	buf_free(&text);
	for (size_t i = 0; i < n; i++) {
		strings_free(&given[i].strings);
		hostset_free(given[i].nodes);
	}
	for (size_t i = 0; i < u->nkinds; i++)
		u->kinds[i].shape = NULL;
	free(given);
	free(own);
	return rc;
}

/* --- report --- */

static const char *noun(int level, unsigned n)
{
	return level == AUDIT_SWITCH ? n == 1 ? "leaf switch" : "leaf switches" : level_noun(judged_level(level), n);
}

/* How badly a job lies; 0: well. */
static unsigned badness(const struct audit *u, size_t job)
{
	static const unsigned weight[AUDIT_LEVELS] = { 16, 4, 1, 4 };
	const struct audit_judged *v = &u->judged[job];
	unsigned sum = v->done ? v->gpus_far * 16 : 0;

	for (int level = 0; level < AUDIT_LEVELS; level++) {
		sum += audit_is_split(u, job, level) ? weight[level] * (v->had[level] - v->need[level]) : 0;
		sum += v->done && level < JUDGED_LEVELS ? weight[level] * v->spanning[level] : 0;
	}
	return sum;
}

static void say_job(const struct audit *u, size_t job, struct buf *out)
{
	const struct scontrol_job *j = &u->s.jobs[job];
	const struct audit_judged *v = &u->judged[job];
	const char *sep = ": ";
	bool forced = true, better = false, split = false;

	buf_printf(out, "job %s (%.40s), %u core%s on %u node%s", j->id, j->name, v->cores, PLURAL(v->cores), v->nodes,
		   PLURAL(v->nodes));
	for (int level = 0; level < AUDIT_LEVELS; level++) {
		if (!audit_is_split(u, job, level))
			continue;
		buf_printf(out, "%son %u %s where %u can hold %s", sep, v->had[level], noun(level, v->had[level]),
			   v->need[level], level == AUDIT_SWITCH ? "its nodes" : "them");
		sep = ", ";
		if (level == AUDIT_SWITCH)
			continue;
		split = true;
		forced &= v->room[level] >= v->had[level] || (v->then[level] && v->then[level] >= v->had[level]);
		better |= v->then[level] && v->then[level] < v->had[level];
	}
	for (int level = 0; level < JUDGED_LEVELS; level++)
		if (v->spanning[level] && !(level && v->spanning[level - 1])) {
			buf_printf(out, "%sat least %u of its %u tasks span%s %s", sep, v->spanning[level], j->tasks,
				   v->spanning[level] == 1 ? "s" : "", noun(level, 2));
			sep = ", ";
		}
	if (v->gpus_far)
		buf_printf(out, "%s%u of its %u GPUs %s near none of its cores", sep, v->gpus_far, v->gpus,
			   v->gpus_far == 1 ? "is" : "are");
	if (split)
		buf_puts(out, better ? "; cores that were free when it began lie on fewer" :
			 forced ? "; other jobs held the cores that lie on fewer" :
			 "; whether such cores were free when it began is not known");
}

struct worst {
	size_t job;
	unsigned bad;
};

static int by_badness(const void *a, const void *b)
{
	const struct worst *x = a, *y = b;

	return x->bad != y->bad ? (y->bad > x->bad) - (y->bad < x->bad) : (x->job > y->job) - (x->job < y->job);
}

static struct worst *worst_find(const struct audit *u, size_t *n, struct err *e)
{
	struct worst *list = calloc(u->s.njobs + 1, sizeof(*list));

	*n = 0;
	if (!list)
		return err_set(e, "out of memory"), NULL;
	for (size_t i = 0; u->cluster && i < u->s.njobs; i++)
		if ((list[*n] = (struct worst){ i, badness(u, i) }).bad)
			++*n;
	qsort(list, *n, sizeof(*list), by_badness);
	*n = *n < WORST ? *n : WORST;
	return list;
}

/* The number of nodes without topology. */
static unsigned without(const struct input *in)
{
	unsigned n = 0;

	for (size_t i = 0; i < in->nkinds; i++)
		n += in->kinds[i].nwithout;
	return n;
}

#define COLLECT "srun -N1 -n1 -t5 -w %s lstopo-no-graphics --of xml --whole-system > %s.xml"

static const struct total { const char *key, *text; } totals[] = {
	{ "spread_by_request", "jobs asked for sockets or tasks per socket; not counted at these levels" },
	{ "gpus_far", "jobs with GPUs that are near none of their cores" },
	{ "gpus_unknown", "jobs with GPUs whose place is not known" },
	{ "numa_promised_twice", "NUMA nodes whose jobs were promised more memory than they have" },
	{ "nodes_with_hidden_jobs", "nodes with more CPUs allocated than the jobs that were read have (PrivateData, or "
	  "jobs that began or ended meanwhile)" },
	{ "node_records_refused", "records of nodes without a valid name, or with that of another" },
	{ "nodes_with_shared_cores", "nodes where several jobs have the same cores (OverSubscribe)" },
};
#define TOTALS (sizeof(totals) / sizeof(totals[0]))

static void totals_find(const struct audit *u, unsigned out[static TOTALS])
{
	unsigned far = 0, unknown = 0;

	for (size_t i = 0; u->judged && i < u->s.njobs; i++) {
		far += u->judged[i].done && u->judged[i].gpus_far;
		unknown += u->judged[i].done && u->judged[i].gpus_unknown;
	}
	memcpy(out, (unsigned[TOTALS]){ u->spread, far, unknown, u->promised, u->hidden, u->s.refused, u->shared },
	       TOTALS * sizeof(*out));
}

/* As a host list, where it is one: names of hostile nodes are printed as they are. */
static void fold(const struct audit_finding *f, struct buf *out)
{
	struct err unused;

	if (hostlist_fold(f->hosts.data, out, &unused))
		buf_add(out, f->hosts.data, f->hosts.len);
}

static void print_findings(const char *head, const struct audit_finding *list, size_t n, bool nodes)
{
	if (n)
		printf("\n%s\n", head);
	for (size_t i = 0; i < n; i++) {
		struct buf b = {0};

		if (nodes)
			fold(&list[i], &b);
		buf_printf(&b, "%s", nodes ? "" : list[i].hosts.data);
		if (!b.failed)
			printf("  %u %s%s: %s (%.200s%s)\n", list[i].n, nodes ? "node" : "job", PLURAL(list[i].n),
			       list[i].text, printable(b.data), b.len > 200 ? "..." : "");
		buf_free(&b);
	}
}

static int print_table(const struct input *in, struct err *e)
{
	const struct audit *u = &in->audit;
	static const struct table_column columns[] = {
		{ "LEVEL", TABLE_LEFT }, { "JOBS", TABLE_RIGHT }, { "ON MORE THAN NEEDED", TABLE_RIGHT },
		{ "%", TABLE_RIGHT }, { "NONE BETTER FREE", TABLE_RIGHT }, { "BETTER WAS FREE", TABLE_RIGHT },
		{ "NOT KNOWN", TABLE_RIGHT }, { "TASKS SPAN", TABLE_RIGHT }, {0},
	};
	struct table *t = table_new(columns);
	unsigned total[TOTALS];
	struct worst *worst;
	size_t n;
	int rc;

	printf("%u running job%s, of which %u audited, on %zu node%s; %u without topology\n\n", u->running,
	       PLURAL(u->running), u->audited, u->s.nnodes, PLURAL(u->s.nnodes), without(in));
	for (int level = 0; u->cluster && level < AUDIT_LEVELS; level++) {
		struct audit_sums s = audit_sum(u, level);

		if (!s.judged)
			continue;
		table_cell(t, "%s", noun(level, 2));
		table_cell(t, "%u", s.judged);
		table_cell(t, "%u", s.split);
		table_cell(t, "%.1f", 100. * s.split / s.judged);
		table_colour(t, s.split * 10 > s.judged ? COLOUR_RED : s.split ? COLOUR_YELLOW : COLOUR_GREEN);
		table_cell(t, level == AUDIT_SWITCH ? "-" : "%u", s.forced);
		table_cell(t, level == AUDIT_SWITCH ? "-" : "%u", s.better);
		table_cell(t, "%u", s.unknown);
		table_cell(t, level == AUDIT_SWITCH ? "-" : "%u", s.spanning);
	}
	rc = table_finish(t, e);
	totals_find(u, total);
	for (size_t i = 0; i < TOTALS; i++)
		if (total[i])
			printf("%u %s\n", total[i], totals[i].text);
	print_findings("Nodes that slurm.conf describes otherwise than the hardware is, or in part:", u->findings,
		       u->nfindings, true);
	print_findings("Jobs that were not audited:", u->faults, u->nfaults, false);
	if (!(worst = worst_find(u, &n, e)))
		return -1;
	if (n)
		puts("\nThe worst:");
	for (size_t i = 0; i < n; i++) {
		struct buf b = {0};

		say_job(u, worst[i].job, &b);
		if (!b.failed)
			printf("  %s\n", printable(b.data));
		buf_free(&b);
	}
	free(worst);
	if (without(in))
		puts("\nNodes without topology. One XML for each kind is needed, for --topology (or use --collect):");
	for (size_t i = 0; i < in->nkinds; i++) {
		const struct kind *k = &in->kinds[i];
		struct audit_finding f = { .hosts = k->without };
		struct buf b = {0};

		if (!k->nwithout)
			continue;
		fold(&f, &b);
		if (!b.failed)
			printf("  %u with %u x %u cores and %u threads each: %.200s%s%s\n    " COLLECT "\n",
			       k->nwithout, k->sockets, k->cores, k->threads, printable(b.data),
			       b.len > 200 ? "..." : "", k->differ ? " (this kind has several topologies)" : "",
			       k->node, k->node);
		buf_free(&b);
	}
	return rc;
}

static json_t *findings_json(const struct audit_finding *list, size_t n, const char *key)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(array, json_pack("{s:s, s:i, s:o}", "finding", list[i].text, "count",
						       (int) list[i].n, key, json_string(list[i].hosts.data) ?:
						       json_null()));
	return array;
}

static int print_json(const struct input *in, struct err *e)
{
	const struct audit *u = &in->audit;
	json_t *by_level = json_object(), *jobs = json_array(), *kinds = json_array(), *bad = json_array();
	json_t *answer = json_pack("{s:i, s:i, s:i, s:i}", "running", (int) u->running, "audited", (int) u->audited,
				   "nodes", (int) u->s.nnodes, "nodes_without_topology", (int) without(in));
	unsigned total[TOTALS];
	struct worst *worst;
	size_t n;

	totals_find(u, total);
	for (size_t i = 0; i < TOTALS; i++)
		json_object_set_new(answer, totals[i].key, json_integer(total[i]));
	for (int level = 0; u->cluster && level < AUDIT_LEVELS; level++) {
		struct audit_sums s = audit_sum(u, level);

		json_object_set_new(by_level, level_keys[level],
				    json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "jobs", (int) s.judged, "split",
					      (int) s.split, "none_better_free", (int) s.forced, "better_was_free",
					      (int) s.better, "unknown", (int) s.unknown, "tasks_span",
					      (int) s.spanning));
	}
	for (size_t i = 0; u->cluster && i < u->s.njobs; i++) {
		const struct audit_judged *v = &u->judged[i];
		json_t *j;

		if (!v->done)
			continue;
		j = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:b}", "job", u->s.jobs[i].id, "nodes", (int) v->nodes,
			      "cores", (int) v->cores, "gpus", (int) v->gpus, "gpus_far", (int) v->gpus_far,
			      "gpus_unknown", (int) v->gpus_unknown, "spread_by_request", (int) u->s.jobs[i].spread);
		for (int level = 0; level < AUDIT_LEVELS; level++)
			if (v->need[level])
				json_object_set_new(j, level_keys[level],
						    json_pack("{s:i, s:i, s:i, s:i}", "on", (int) v->had[level],
							      "needs", (int) v->need[level], "free_at_most",
							      (int) v->room[level], "tasks_span",
							      level < JUDGED_LEVELS ? (int) v->spanning[level] : 0));
		json_array_append_new(jobs, j);
	}
	for (size_t i = 0; i < in->nkinds; i++)
		if (in->kinds[i].nwithout)
			json_array_append_new(kinds, json_pack("{s:i, s:i, s:i, s:i, s:o, s:b}", "sockets",
							       (int) in->kinds[i].sockets, "cores",
							       (int) in->kinds[i].cores, "threads",
							       (int) in->kinds[i].threads, "count",
							       (int) in->kinds[i].nwithout, "nodes",
							       json_string(in->kinds[i].without.data) ?: json_null(),
							       "several_topologies", (int) in->kinds[i].differ));
	if (!(worst = worst_find(u, &n, e)))
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct buf b = {0};

		say_job(u, worst[i].job, &b);
		json_array_append_new(bad, json_string(b.failed ? "" : printable(b.data)) ?: json_null());
		buf_free(&b);
	}
	free(worst);
	json_object_set_new(answer, "levels", by_level);
	json_object_set_new(answer, "nodes_otherwise", findings_json(u->findings, u->nfindings, "nodes"));
	json_object_set_new(answer, "not_audited", findings_json(u->faults, u->nfaults, "jobs"));
	json_object_set_new(answer, "worst", bad);
	json_object_set_new(answer, "kinds_without_topology", kinds);
	json_object_set_new(answer, "jobs", jobs);
	return cmd_print_new(answer, e);
}

int cmd_audit(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = {0};
	struct input in = {0};
	int rc;

	/* For what is run: the words and times of scontrol as they are read. */
	setenv("LC_ALL", "C", 1);
	setenv("SLURM_TIME_FORMAT", "standard", 1);
	rc = cmd_parse(c, &syntax, &a, argc, argv, e) || scontrol_read(&in, &a, e) ||
	     topologies_read(&in, c, &a, e) || audit_run(&in.audit, e) ? -1 : 0;
	if (!rc)
		rc = c->json ? print_json(&in, e) : print_table(&in, e);
	audit_free(&in.audit);
	for (size_t i = 0; i < in.nkinds; i++)
		buf_free(&in.kinds[i].without);
	free(in.kinds);
	string_map_free(&in.kind_names);
	inventory_free(in.inventory);
	snapshot_free(in.snapshot);
	free(a.topologies);
	return rc;
}
