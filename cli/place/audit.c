/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <sys/stat.h>

#include "base/array.h"
#include "base/file.h"
#include "base/log.h"
#include "base/order.h"
#include "base/printable.h"
#include "child.h"
#include "cmd.h"
#include "place.h"
#include "replay/audit.h"
#include "shape/inventory.h"
#include "shape/strings.h"
#include "table.h"
#include "target.h"

#define OUTPUT_MAX_BYTES (2u << 30)
#define OUTPUT_SECONDS 300
#define WORST 10

static const char *const level_keys[AUDIT_LEVELS] = { "package", "numa", "l3", "switch" };

/* --- command line --- */

struct args {
	const char *jobs, *nodes, *snapshot, *sacct, *html;
	bool collect, observed;
	unsigned days;			/* of the past; 0: none */
	char **topologies, **switches;	/* NODES=FILE, or a folder; PARTITIONS=FILE, or a file */
	size_t ntopologies, nswitches;
};

static void add_word(char ***list, size_t *n, const char *text, struct argp_state *state)
{
	char **slot = array_add(*list, *n);

	if (!slot)
		argp_failure(state, EXIT_FAILURE, 0, "out of memory");
	else
		*slot = (char *) text;
}

static void add_topology(void *args, const char *text, struct argp_state *state)
{
	struct args *a = args;

	add_word(&a->topologies, &a->ntopologies, text, state);
}

static void add_switches(void *args, const char *text, struct argp_state *state)
{
	struct args *a = args;

	add_word(&a->switches, &a->nswitches, text, state);
}

static void check_args(void *args, struct argp_state *state)
{
	const struct args *a = args;

	if (!a->jobs != !a->nodes)
		argp_error(state, "--jobs and --nodes go together: both are of one cluster at one time");
	if (a->nodes && a->days && !a->sacct && !a->observed)
		argp_error(state, "--days needs --sacct where --nodes is given: both are of one cluster");
}

static const struct cmd_option options[] = {
	{ "jobs", 0, "FILE", CMD_TEXT(jobs), "Read this output of `scontrol -d show job` instead of running it" },
	{ "nodes", 0, "FILE", CMD_TEXT(nodes), "Read this output of `scontrol show node` instead of running it" },
	{ "switches", 0, "[PARTITIONS=]FILE", CMD_SET(add_switches),
	  "Read this output of `scontrol show topology`, or topology.conf; of partitions that have a topology of their "
	  "own, that of `scontrol show topology NAME`. May be given several times" },
	{ "topology", 0, "NODES=FILE", CMD_SET(add_topology),
	  "The hwloc XML of these nodes and of those with equal sockets, cores and threads; or a folder with NODE.xml. "
	  "May be given several times" },
	{ "snapshot", 0, "FILE", CMD_TEXT(snapshot), "The nodes' hardware from a snapshot of Topiary's" },
	{ "collect", 0, NULL, CMD_FLAG(collect), "Run lstopo by srun on one node of each kind whose XML is missing" },
	{ "days", 0, "N", CMD_NUMBER(days, 1, 36500),
	  "Replay the jobs of the last N days, from sacct, as Slurm places them and as Topiary would; with --observed, "
	  "only starts of these days" },
	{ "sacct", 0, "FILE", CMD_TEXT(sacct), "Replay the jobs of this output of sacct, as `topiary replay`" },
	{ "observed", 0, NULL, CMD_FLAG(observed), "Add what TopoMode=observe recorded on this host" },
	{ "html", 0, "FILE", CMD_OUTPUT(html), "Write the report also as one page with pictures" },
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
	struct past past;
	struct observed *observed;
};

static int program_run(const char *const argv[], enum cmd_stderr how, struct buf *out, struct err *e)
{
	int rc = cmd_program(argv, how, OUTPUT_SECONDS, OUTPUT_MAX_BYTES, out, e);

	if (rc > 0) {
		buf_free(out);
		err_set(e, "%s ended with status %d", argv[0], rc);
	}
	return rc ? -1 : 0;
}

static int input_read(const char *file, const char *const argv[], struct buf *out, const char **name, struct err *e)
{
	*name = argv[0];
	return file ? file_read_input(file, OUTPUT_MAX_BYTES, name, out, e) : program_run(argv, STDERR_OURS, out, e);
}

/* A topology that partitions have as their own. */
struct topology {
	const char *name;
	struct buf partitions;		/* "a,b" */
};

struct topologies {
	struct topology *list;
	size_t n;
	const char *partition;
	bool failed;
};

static void partition_word(void *user, const char *key, char *value, const char *, bool begins)
{
	struct topologies *t = user;
	size_t i = 0;

	if (begins)
		t->partition = value;
	if (begins || strcmp(key, "Topology"))
		return;
	while (i < t->n && strcmp(t->list[i].name, value))
		i++;
	if (i == t->n && !array_add(t->list, t->n)) {
		t->failed = true;
		return;
	}
	t->list[i].name = value;
	buf_printf(&t->list[i].partitions, "%s%s", t->list[i].partitions.len ? "," : "", t->partition);
	t->failed |= t->list[i].partitions.failed;
}

/* The cluster's topology, and those that partitions have as their own (since 25.05). One that is not shown is flat. */
static int switches_read(struct scontrol *s, const struct args *a, struct err *e)
{
	static const char *const show[] = { "scontrol", "-a", "-o", "show", "partition", NULL };
	struct topologies own = {0};
	struct buf b = {0}, shown = {0};
	const char *name;
	struct err why;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < a->nswitches; i++) {
		char *text = a->switches[i], *file = access(text, F_OK) ? strchr(text, '=') : NULL;

		if (file)
			*file++ = '\0';
		rc = file_read_input(file ? file : text, OUTPUT_MAX_BYTES, &name, &b, e) ||
			scontrol_read_switches(s, &b, name, file ? text : NULL, e) ? -1 : 0;
	}
	if (rc || a->nswitches || a->nodes)
		return rc;
	if (!program_run(show, STDERR_OURS, &shown, NULL)) {
		buf_add(&shown, "", 1);
		if (!shown.failed)
			scontrol_words(shown.data, "PartitionName", partition_word, &own);
	}
	if (own.failed || shown.failed)
		rc = err_set(e, "out of memory");
	for (size_t i = 0; rc == 0 && i <= own.n; i++) {
		const struct topology *t = i ? &own.list[i - 1] : NULL;
		const char *const topology[] = { "scontrol", "show", "topology", t ? t->name : NULL, NULL };

		/* Of a cluster without a topology scontrol says that on stderr, and succeeds. */
		int failed = program_run(topology, STDERR_DROPPED, &b, &why);

		if (failed)
			buf_free(&b);
		if (scontrol_read_switches(s, &b, "scontrol show topology", t ? t->partitions.data : NULL, &why) ||
		    failed)
			log_warning("%s; switches %s%s are not counted", why.text, t ? "of partitions " : "",
				    t ? t->partitions.data : "of the cluster");
	}
	for (size_t i = 0; i < own.n; i++)
		buf_free(&own.list[i].partitions);
	free(own.list);
	buf_free(&shown);
	return rc;
}

static int scontrol_read(struct input *u, const struct args *a, struct err *e)
{
	static const char *const nodes[] = { "scontrol", "-a", "show", "node", NULL };
	static const char *const jobs[] = { "scontrol", "-a", "-d", "show", "job", NULL };
	static const char *const config[] = { "scontrol", "show", "config", NULL };
	struct buf b = {0};
	const char *name, *age;
	long long now = time(NULL);

	if (input_read(a->nodes, nodes, &b, &name, e) || scontrol_read_nodes(&u->audit.s, &b, name, e) ||
	    input_read(a->jobs, jobs, &b, &name, e) || scontrol_read_jobs(&u->audit.s, &b, name, e))
		return -1;
	if (switches_read(&u->audit.s, a, e))
		return -1;
	/* slurmctld still shows jobs that ended in the last MinJobAge seconds. */
	if (!a->nodes && !program_run(config, STDERR_OURS, &b, NULL)) {
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
	struct tree *t = tree_of_file(file, e);
	int rc = t ? strings_make(t, out, e) : -1;

	if (t && rc)
		err_within(e, "%s", file);
	tree_free(t);
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
	bool known = false;
	struct given *g;
	struct stat st;

	if (file) {
		char *hosts = strndup(what, file - what);

		if (!hosts || !(g = array_add(*list, *n)))
			return free(hosts), err_set(e, "out of memory");
		g->nodes = hostset_parse(hosts, e);
		free(hosts);
		for (size_t i = 0; g->nodes && i < u->audit.s.nnodes; i++)
			known |= hostset_has(g->nodes, u->audit.s.nodes[i].name);
		if (g->nodes && !known)
			log_warning("--topology %s: scontrol shows none of these nodes", what);
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
		known = true;
		if (xml_shape(path, &strings, &why)) {
			log_warning("%s; the node counts as one without XML", why.text);
			continue;
		}
		if (!(g = array_add(*list, *n)))
			return strings_free(&strings), err_set(e, "out of memory");
		*g = (struct given){ .strings = strings, .node = &u->audit.s.nodes[i] };
	}
	if (!known)
		log_warning("--topology %s: no file is called NODE.xml after a node that scontrol shows", what);
	return 0;
}

/* --collect: one node of each kind, into the working folder; if possible one with free CPUs. */
static int collect(struct input *u, struct args *a, struct err *e)
{
	size_t n = u->audit.s.nnodes;

	if (cmd_writable("NODE.xml", e))
		return err_within(e, "--collect writes a file for each kind of node");
	for (size_t i = 0; i < 2 * n; i++) {
		const struct scontrol_node *node = &u->audit.s.nodes[i % n];
		bool full = node->allocated >= node->sockets * node->cores * node->threads;
		struct kind *k = kind_of(u, node);
		const char *const argv[] = { "srun", "-Q", "-N1", "-n1", "-t5", "-w", node->name, "lstopo-no-graphics",
					     "--of", "xml", "--whole-system", NULL };
		char file[300], *option;
		struct buf b = {0};
		struct err why;

		if (!k)
			return err_set(e, "out of memory");
		if (k->shape || k->node || node->away || (full && i < n))
			continue;
		k->node = node->name;
		snprintf(file, sizeof(file), "%s.xml", node->name);
		if (program_run(argv, STDERR_OURS, &b, &why) || cmd_write(file, &b, &why)) {
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

/* What cannot be known of the past is a warning: the jobs that run now are reported all the same. */
static int past_days(struct input *u, const struct args *a, struct err *e)
{
	char since[32];
	const char *const sacct[] = { "sacct", "-aXP", "-S", since, "-o",
		"JobID,Submit,Start,End,NNodes,NCPUS,ReqMem,AllocTRES,Timelimit,NodeList,Comment", NULL };
	const char *name;
	struct buf b = {0};
	struct err why;

	snprintf(since, sizeof(since), "now-%udays", a->days);
	u->past.cluster = u->audit.cluster;
	if (!u->audit.cluster)
		log_warning("past jobs are not replayed: no node has a topology");
	else if (input_read(a->sacct, sacct, &b, &name, a->sacct ? e : &why)) {
		if (a->sacct)
			return -1;
		log_warning("past jobs are not replayed: %s", why.text);
	} else {
		return past_read(&u->past, &b, name, true, e) || past_run(&u->past, 0, e) ? -1 : 0;
	}
	u->past.cluster = NULL;
	return 0;
}

/* --- report --- */

/* cli/place/audit_page.html */
#define HOLE "@DATA@"
static const char page[] =
#include "audit_page.inc"
	;

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

ORDER(by_badness, struct worst, COMPARE(y->bad, x->bad) ?: COMPARE(x->job, y->job))

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

static const struct total { const char *key, *one, *text; } totals[] = {
	{ "spread_by_request", "job", "that asked for sockets or tasks per socket; not counted at these levels" },
	{ "gpus_far", "job", "with GPUs that are near none of its cores" },
	{ "gpus_unknown", "job", "with GPUs whose place is not known" },
	{ "numa_promised_twice", "NUMA node", "whose jobs were promised more memory than there is" },
	{ "nodes_with_hidden_jobs", "node", "with more CPUs allocated than the jobs that were read have (PrivateData, "
	  "or jobs that began or ended meanwhile)" },
	{ "node_records_refused", "node record", "cut short, without a valid name, or with that of another" },
	{ "nodes_with_shared_cores", "node",
	  "where several jobs have the same cores (OverSubscribe, scontrol suspend)" },
};
#define TOTALS (sizeof(totals) / sizeof(totals[0]))

/* As a host list, where it is one: ids of jobs, and names of hostile nodes, are printed as they are. */
static json_t *folded(const struct buf *list, bool hosts)
{
	struct buf b = {0};
	json_t *j;

	if (!hosts || hostlist_fold(list->data, &b, NULL))
		buf_puts(&b, list->data);
	j = b.failed ? NULL : json_string(printable(b.data));
	buf_free(&b);
	return j;
}

static json_t *findings_json(const struct audit_finding *list, size_t n, bool hosts)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(array, json_pack("{s:s, s:i, s:o}", "finding", list[i].text, "count",
						       (int) list[i].n, hosts ? "nodes" : "jobs",
						       folded(&list[i].hosts, hosts)));
	return array;
}

static json_t *level_json(const struct audit *u, int level)
{
	struct audit_sums s = audit_sum(u, level);
	json_t *over = json_array();

	for (int i = 0; i < AUDIT_OVER; i++)
		json_array_append_new(over, json_integer(s.over[i]));
	return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:o}", "noun", noun(level, 2), "jobs", (int) s.judged,
			 "split", (int) s.split, "none_better_free", (int) s.forced, "better_was_free", (int) s.better,
			 "unknown", (int) s.unknown, "tasks_span", (int) s.spanning, "over", over);
}

static json_t *job_json(const struct audit *u, size_t i)
{
	const struct audit_judged *v = &u->judged[i];
	json_t *j = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:b}", "job", u->s.jobs[i].id, "nodes", (int) v->nodes,
			      "cores", (int) v->cores, "gpus", (int) v->gpus, "gpus_far", (int) v->gpus_far,
			      "gpus_unknown", (int) v->gpus_unknown, "spread_by_request", (int) u->s.jobs[i].spread);

	for (int level = 0; level < AUDIT_LEVELS; level++)
		if (v->need[level])
			json_object_set_new(j, level_keys[level],
					    json_pack("{s:i, s:i, s:i, s:i}", "on", (int) v->had[level], "needs",
						      (int) v->need[level], "free_at_most", (int) v->room[level],
						      "tasks_span", level < JUDGED_LEVELS ?
						      (int) v->spanning[level] : 0));
	return j;
}

/* The hardware that there is, by kind; and the kinds of slurm.conf of which none is known. */
static void kinds_add(const struct input *in, json_t *known, json_t *unknown)
{
	const struct audit *u = &in->audit;

	for (size_t i = 0; u->cluster && i < u->cluster->nkinds; i++) {
		const struct shape *s = u->cluster->kinds[i].shape;
		unsigned nodes = 0, gpus = 0;
		json_t *k;

		for (size_t n = 0; n < u->cluster->n; n++)
			nodes += u->cluster->nodes[n].kind->index == i;
		for (unsigned d = 0; d < s->ndevices; d++)
			gpus += !strcmp(s->devices[d].type, "GPU");
		k = json_pack("{s:i, s:i, s:i, s:i}", "nodes", (int) nodes, "cores", (int) s->cores, "threads",
			      (int) (s->pus / s->cores), "gpus", (int) gpus);
		for (int level = 0; level < JUDGED_LEVELS; level++)
			json_object_set_new(k, level_keys[level],
					    json_integer(u->domains[i * JUDGED_LEVELS + level].n));
		json_array_append_new(known, k);
	}
	for (size_t i = 0; i < in->nkinds; i++) {
		const struct kind *k = &in->kinds[i];

		if (k->nwithout)
			json_array_append_new(unknown, json_pack("{s:i, s:i, s:i, s:i, s:o, s:s, s:b}", "sockets",
								 (int) k->sockets, "cores", (int) k->cores, "threads",
								 (int) k->threads, "count", (int) k->nwithout, "nodes",
								 folded(&k->without, true), "one", k->node,
								 "several_topologies", (int) k->differ));
	}
}

/* All that is reported; jobs: each of them, too. NULL on error. */
static json_t *report_new(const struct input *in, bool with_jobs, struct err *e)
{
	const struct audit *u = &in->audit;
	json_t *by_level = json_object(), *jobs = json_array(), *kinds = json_array(), *unknown = json_array();
	json_t *bad = json_array(), *notes = json_array();
	json_t *r = json_pack("{s:i, s:i, s:i, s:i}", "running", (int) u->running, "audited", (int) u->audited,
			      "nodes", (int) u->s.nnodes, "nodes_without_topology", (int) without(in));
	unsigned total[TOTALS];
	struct worst *worst;
	size_t n;
	unsigned far = 0, far_unknown = 0;

	for (size_t i = 0; u->judged && i < u->s.njobs; i++) {
		far += u->judged[i].done && u->judged[i].gpus_far;
		far_unknown += u->judged[i].done && u->judged[i].gpus_unknown;
	}
	memcpy(total, (unsigned[TOTALS]){ u->spread, far, far_unknown, u->promised, u->hidden, u->s.refused,
	       u->shared }, TOTALS * sizeof(*total));
	for (size_t i = 0; i < TOTALS; i++) {
		json_object_set_new(r, totals[i].key, json_integer(total[i]));
		if (total[i])
			json_array_append_new(notes, json_sprintf("%u %s%s %s", total[i], totals[i].one,
								  PLURAL(total[i]), totals[i].text));
	}
	for (int level = 0; u->cluster && level < AUDIT_LEVELS; level++)
		json_object_set_new(by_level, level_keys[level], level_json(u, level));
	for (size_t i = 0; with_jobs && u->cluster && i < u->s.njobs; i++)
		if (u->judged[i].done)
			json_array_append_new(jobs, job_json(u, i));
	kinds_add(in, kinds, unknown);
	worst = worst_find(u, &n, e);
	for (size_t i = 0; worst && i < n; i++) {
		struct buf b = {0};

		say_job(u, worst[i].job, &b);
		json_array_append_new(bad, json_string(b.failed ? "" : printable(b.data)) ?: json_null());
		buf_free(&b);
	}
	json_object_set_new(r, "notes", notes);
	json_object_set_new(r, "levels", by_level);
	json_object_set_new(r, "nodes_otherwise", findings_json(u->findings, u->nfindings, true));
	json_object_set_new(r, "not_audited", findings_json(u->faults, u->nfaults, false));
	json_object_set_new(r, "worst", bad);
	json_object_set_new(r, "kinds", kinds);
	json_object_set_new(r, "kinds_without_topology", unknown);
	json_object_set_new(r, "jobs", jobs);
	if (in->past.cluster)
		json_object_set_new(r, "past", past_json(&in->past));
	if (in->observed)
		json_object_set_new(r, "observed", observed_json(in->observed));
	if (!worst || !r)
		json_decref(r), r = NULL;
	free(worst);
	return r;
}

static void print_findings(const char *head, const json_t *list, const char *key)
{
	const json_t *o;
	size_t i;

	if (json_array_size(list))
		printf("\n%s\n", head);
	json_array_foreach(list, i, o) {
		unsigned n = cmd_number(o, "count");
		const char *names = cmd_text(o, key);

		printf("  %u %.*s%s: %s (%.200s%s)\n", n, (int) strlen(key) - 1, key, PLURAL(n),
		       cmd_text(o, "finding"), names, strlen(names) > 200 ? "..." : "");
	}
}

static int print_table(const struct input *in, const json_t *r, struct err *e)
{
	static const char *const cells[] = { "none_better_free", "better_was_free", "unknown", "tasks_span" };
	const json_t *unknown = json_object_get(r, "kinds_without_topology"), *k;
	unsigned running = cmd_number(r, "running"), nodes = cmd_number(r, "nodes");
	unsigned audited = cmd_number(r, "audited");
	struct table *t = !audited ? NULL : table_new("LEVEL|>JOBS|>ON MORE THAN NEEDED|>%|>NONE BETTER FREE"
						      "|>BETTER WAS FREE|>NOT KNOWN|>TASKS SPAN");
	size_t i;

	printf("%u running job%s, of which %u audited, on %u node%s; %u without topology\n\n", running, PLURAL(running),
	       audited, nodes, PLURAL(nodes), without(in));
	if (!running)
		puts("No job is running, so that there is nothing to audit.");
	else if (!audited)
		puts("No job was audited: what is missing is below.");
	for (int level = 0; t && level < AUDIT_LEVELS; level++) {
		const json_t *l = json_object_get(json_object_get(r, "levels"), level_keys[level]);
		unsigned jobs = cmd_number(l, "jobs"), split = cmd_number(l, "split");

		if (!jobs)
			continue;
		table_cell(t, "%s", cmd_text(l, "noun"));
		table_cell(t, "%u", jobs);
		table_cell(t, "%u", split);
		table_cell(t, "%.1f", 100. * split / jobs);
		table_colour(t, split * 10 > jobs ? COLOUR_RED : split ? COLOUR_YELLOW : COLOUR_GREEN);
		for (i = 0; i < sizeof(cells) / sizeof(cells[0]); i++)
			table_cell(t, level == AUDIT_SWITCH && i != 2 ? "-" : "%u", (unsigned) cmd_number(l, cells[i]));
	}
	if (t && table_finish(t, e))
		return -1;
	json_array_foreach(json_object_get(r, "notes"), i, k)
		puts(json_string_value(k));
	print_findings("Nodes that slurm.conf describes otherwise than the hardware is, or in part:",
		       json_object_get(r, "nodes_otherwise"), "nodes");
	print_findings("Jobs that were not audited:", json_object_get(r, "not_audited"), "jobs");
	json_array_foreach(json_object_get(r, "worst"), i, k)
		printf("%s  %s\n", i ? "" : "\nThe worst:\n", json_string_value(k));
	if (json_array_size(unknown))
		puts("\nNodes without topology. One XML for each kind is needed, for --topology (or use --collect):");
	json_array_foreach(unknown, i, k) {
		const char *names = cmd_text(k, "nodes"), *one = cmd_text(k, "one");

		unsigned threads = cmd_number(k, "threads");

		printf("  %u with %u x %u cores and %u thread%s each: %.200s%s%s\n    " COLLECT "\n",
		       (unsigned) cmd_number(k, "count"), (unsigned) cmd_number(k, "sockets"),
		       (unsigned) cmd_number(k, "cores"), threads, PLURAL(threads), names,
		       strlen(names) > 200 ? "..." : "",
		       json_is_true(json_object_get(k, "several_topologies")) ? " (this kind has several topologies)" :
		       "", one, one);
	}
	if (in->past.cluster) {
		puts("\nPast jobs, simulated in one queue without partitions, priorities and limits, from an empty "
		     "cluster:");
		if (past_table(&in->past, e))
			return -1;
	}
	if (in->observed)
		puts("\nObserved by slurmctld (TopoMode=observe):");
	return in->observed ? observed_table(in->observed, e) : 0;
}

int cmd_audit(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = {0};
	struct input in = {0};
	json_t *r = NULL;
	int rc;

	/* For what is run: the words of scontrol as they are read. */
	setenv("LC_ALL", "C", 1);
	rc = cmd_parse(c, &syntax, &a, argc, argv, e) || scontrol_read(&in, &a, e) ||
	     topologies_read(&in, c, &a, e) || audit_run(&in.audit, e) ||
	     ((a.sacct || (a.days && !a.nodes)) && past_days(&in, &a, e)) ||
	     (a.observed && !(in.observed = observed_read(c, NULL, a.days, e))) ||
	     !(r = report_new(&in, c->json, e)) ? -1 : 0;
	if (!rc)
		rc = c->json ? cmd_print_json(r, e) : print_table(&in, r, e);
	if (!rc && a.html) {
		struct buf out = {0};
		char when[32] = "";
		time_t now = time(NULL);

		strftime(when, sizeof(when), "%F %R", localtime(&now));
		json_object_set_new(r, "time", json_string(when));
		json_object_del(r, "jobs");
		buf_add(&out, page, strstr(page, HOLE) - page);
		cmd_add_json(&out, r);
		buf_puts(&out, strstr(page, HOLE) + strlen(HOLE));
		rc = out.failed ? err_set(e, "%s: out of memory", a.html) : cmd_write(a.html, &out, e);
		buf_free(&out);
	}
	json_decref(r);
	observed_free(in.observed);
	jobs_free(&in.past.jobs);
	audit_free(&in.audit);
	for (size_t i = 0; i < in.nkinds; i++)
		buf_free(&in.kinds[i].without);
	free(in.kinds);
	string_map_free(&in.kind_names);
	inventory_free(in.inventory);
	snapshot_free(in.snapshot);
	free(a.topologies);
	free(a.switches);
	return rc;
}
