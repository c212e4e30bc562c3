/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <math.h>

#include "base/child.h"
#include "base/log.h"
#include "learned.h"
#include "map/engine/solve.h"
#include "map/rankfile/rankfile.h"
#include "place.h"
#include "shape/hostlist.h"
#include "table.h"
#include "target.h"

/* --- rank files --- */

#define FORMAT_MAX 32

/* The outputs of a mapping. */
struct rankfile_output {
	const char *formats;	/* "plain", or several: "openmpi,srun" */
	const char *file;	/* NULL: standard output; with several formats the prefix: FILE.openmpi, FILE.srun */
	const char *env;	/* a file for the launchers' environment, or NULL */
	const char *topology;	/* the nodes' XML for OS numbers: "HOSTS=FILE[;HOSTS=FILE]...", or NULL */
};

/* Frees the tree, which may be NULL after an error. */
static struct numbers *numbers_of_tree(struct tree *t, const char *name, struct err *e)
{
	struct numbers *n = t ? numbers_of(t, e) : NULL;

	if (t && !n)
		err_within(e, "%s", name);
	tree_free(t);
	return n;
}

/*
 * Fill in places->numbers, the OS CPU numbers of each host: from the topology file that `words` names for it
 * ("HOSTS=FILE[;HOSTS=FILE]...", of a host named twice the first; hosts without places are skipped), otherwise from the
 * registry. 0, or -1 with an error naming the host or file.
 */
static int numbers_load(const struct cmd *c, const char *words, struct places *p, struct err *e)
{
	char *copy = strdup(words ? words : "");
	int rc = 0;

	p->numbers = calloc(p->nhosts + 1, sizeof(*p->numbers));
	if (!copy || !p->numbers)
		rc = err_set(e, "out of memory");
	for (char *rest = copy, *item; rc == 0 && (item = strsep(&rest, ";"));) {
		char *file = strchr(item, '=');
		struct hostset *hosts = NULL;

		if (!*item)
			continue;
		if (file)
			*file++ = '\0';
		if (!file || !(hosts = hostset_parse(item, e)))
			rc = file ? -1 : err_set(e, "'%s': expected HOSTS=FILE", item);
		for (unsigned h = 0; rc == 0 && h < p->nhosts; h++)
			if (!p->numbers[h] && hostset_has(hosts, p->hosts[h]))
				rc = (p->numbers[h] = numbers_of_tree(tree_of_file(file, e), file, e)) ? 0 : -1;
		hostset_free(hosts);
	}
	free(copy);
	for (unsigned h = 0; !rc && h < p->nhosts; h++) {
		struct target node = {0};

		if (!p->numbers[h] && target_parse(p->hosts[h], &node, e) == 0)
			p->numbers[h] = numbers_of_tree(tree_of_target(c, &node, e), p->hosts[h], e);
		if (!p->numbers[h])
			rc = err_within(e, "%s: no topology with its OS CPU numbers", p->hosts[h]);
	}
	return rc;
}

/* The next word of a list "openmpi,srun"; false after the last. */
static bool format_next(const char **at, char one[static FORMAT_MAX])
{
	size_t n;

	*at += strspn(*at, ",");
	n = strcspn(*at, ",");
	snprintf(one, FORMAT_MAX, "%.*s", (int) n, *at);
	*at += n;
	return n;
}

static int rankfile_output_check(const struct rankfile_output *o, struct err *e)
{
	char format[FORMAT_MAX];

	for (const char *at = o->formats; format_next(&at, format);)
		if (rankfile_check(format, e))
			return -1;
	if ((strchr(o->formats, ',') || o->env) && !o->file)
		return err_set(e, "%s requires -o FILE", o->env ? "--env" : "more than one format");
	return 0;
}

static void rankfile_output_name(const struct rankfile_output *o, const char *format, char file[static PATH_MAX])
{
	snprintf(file, PATH_MAX, strchr(o->formats, ',') ? "%s.%s" : "%s", o->file ? o->file : "", format);
}

static int rankfile_output_writable(const struct rankfile_output *o, struct err *e)
{
	char format[FORMAT_MAX], file[PATH_MAX];

	for (const char *at = o->formats; o->file && format_next(&at, format);) {
		rankfile_output_name(o, format, file);
		if (cmd_writable(file, e))
			return -1;
	}
	return 0;
}

static int rankfile_output_write(const struct cmd *c, const struct rankfile_output *o, struct places *p,
			  const struct mapping *m, struct err *e)
{
	char format[FORMAT_MAX], file[PATH_MAX], path[PATH_MAX];
	struct buf env = {0};
	int rc = 0;

	for (const char *at = o->formats; rc == 0 && format_next(&at, format);) {
		struct buf text = {0};

		rankfile_output_name(o, format, file);
		if (rankfile_wants_numbers(format) && !p->numbers && numbers_load(c, o->topology, p, e))
			rc = err_within(e, "%s", format);
		else if (rankfile_write(format, p, m, &text, e) || cmd_write(*file ? file : NULL, &text, e))
			rc = -1;
		/* The launcher may have another working directory: its environment gets absolute paths. */
		else if (o->env)
			rc = realpath(file, path) ? rankfile_env(format, p, m, path, &env, e) :
						    err_set(e, "%s: %s", file, strerror(errno));
		buf_free(&text);
	}
	if (rc == 0 && o->env)
		rc = cmd_write(o->env, &env, e);
	buf_free(&env);
	return rc;
}

/* --- what a mapping costs --- */

static double gain(double from, double to)
{
	return from > 0 ? 100 * (from - to) / from : 0;
}

static int as_json(const struct mapping *m, const struct places *p, const char *costs, FILE *out, struct err *e)
{
	json_t *j = json_pack("{s:s, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:s, s:f}",
			      "costs", costs,
			      "ranks", (int) m->ranks, "places", (int) p->nplaces, "hosts", (int) p->nhosts,
			      "network_levels", (int) (p->network ? p->network->nlevels : 0), "cost", m->cost,
			      "cheapest", m->cheapest,
			      "block", m->block, "cyclic", m->cyclic, "scotch", m->scotch,
			      "gain_over_block", gain(m->block, m->cost), "gain_over_cyclic", gain(m->cyclic, m->cost),
			      "busiest_nic", m->nic, "busiest_nic_block", m->nic_block, "method", m->method,
			      "seconds", m->seconds);
	int rc = j ? json_dumpf(j, out, JSON_COMPACT) : -1;

	json_decref(j);
	return rc || fputc('\n', out) == EOF || fflush(out) ? err_set(e, "cannot write the costs") : 0;
}

static int as_table(const struct mapping *m, const struct places *p, const char *costs, FILE *out, struct err *e)
{
	const struct {
		const char *name;
		double cost;
	} rows[] = {
		{ "block", m->block }, { "cyclic", m->cyclic }, { "scotch alone", m->scotch }, { m->method, m->cost },
	};
	struct table *t = table_new("MAPPING|>COST|>GAIN %");
	int rc;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		table_cell(t, "%s%s|%.6g|%.1f", i == 3 ? "chosen: " : "", rows[i].name, rows[i].cost,
			   gain(rows[i].cost, m->cost));
	rc = table_print(t, out);
	table_free(t);
	if (rc)
		return err_set(e, "cannot write the costs");
	fprintf(out, "%u rank%s on %u place%s of %u node%s, mapped in %.2f s; gain: relative to the chosen mapping\n",
		m->ranks, PLURAL(m->ranks), p->nplaces, PLURAL(p->nplaces), p->nhosts,
		PLURAL(p->nhosts), m->seconds);
	if (m->cheapest < m->cost)
		fprintf(out, "the cheapest mapping found costs %.6g; by the matrix's messages it may not be the "
			"fastest\n", m->cheapest);
	fprintf(out, "costs %s\n", costs);
	fprintf(out, "busiest node: %.6g bytes exchanged with other nodes, %.6g with block\n", m->nic, m->nic_block);
	return 0;
}

/* --- the command --- */

struct args {
	const char *matrix, *learned, *order, *tag, *nodes, *arch, *distances, *snapshot, *per_node, *costs;
	struct rankfile_output output;
	unsigned job, ranks, seed, cpus, plane;
	int effort, fill;
	bool explain, explain_json, block;
};

enum { ANY_PLANE = ~0u };

static void set_explain(void *args, const char *text, struct argp_state *state)
{
	struct args *a = args;

	if (text && strcmp(text, "json"))
		argp_error(state, "--explain=%s: expected --explain (a table) or --explain=json", text);
	a->explain = true;
	a->explain_json = text;
}

static void check_together(void *args, struct argp_state *state)
{
	const char *job = getenv("SLURM_JOB_ID");
	struct args *a = args;
	struct err e;

	if (!!a->matrix + !!a->learned + !!a->order != 1)
		argp_error(state, "one of --matrix, --learned and --order is required");
	if (a->order && strcmp(a->order, "fabric"))
		argp_error(state, "--order=%s: expected fabric", a->order);
	if (a->order && (a->block || a->distances || a->effort != EFFORT_NORMAL || a->seed != 1))
		argp_error(state, "--order excludes --block, --distances, --effort and --seed");
	if (a->learned && (!a->output.file || !a->ranks || a->block || a->explain))
		argp_error(state, "--learned requires -o FILE and --ranks, and excludes --block and --explain");
	if (a->plane != ANY_PLANE && !a->arch)
		argp_error(state, "--plane requires --arch");
	if (a->job && a->nodes)
		argp_error(state, "--job and --nodes exclude each other");
	if (!a->job && !a->nodes && !a->arch && !a->distances) {
		if (!job)
			argp_error(state, "outside a job one of --job, --nodes, --arch or --distances is required");
		a->job = cmd_arg_number(state, "SLURM_JOB_ID", job, 1, UINT32_MAX);
	}
	if (!a->job && !a->nodes && !a->arch && strcmp(a->output.formats, "plain"))
		argp_error(state, "--distances has no host names: only --format=plain can be written");
	if (a->block && a->explain)
		argp_error(state, "--block and --explain exclude each other");
	if (rankfile_output_check(&a->output, &e))
		argp_error(state, "%s", e.text);
	if (a->job && !a->per_node && job && a->job == strtoul(job, NULL, 10))
		a->per_node = getenv("SLURM_TASKS_PER_NODE");
}

static const struct cmd_option options[] = {
	{ "matrix", 0, "FILE", CMD_TEXT(matrix), "The communication matrix; see topiary matrix" },
	{ "learned", 0, "PROGRAM", CMD_TEXT(learned), "The matrix that --topo-matrix=auto has learned of this "
	  "program; print a verdict as JSON, and write files only if a mapping gains" },
	{ "order", 0, "fabric", CMD_WORD(order), "Without a matrix: number the ranks node after node, in an order of "
	  "the nodes by which rings and trees cost least in the network" },
	{ "tag", 0, "TAG", CMD_TEXT(tag), "The tag of the learned matrix" },
	{ "job", 0, "ID", CMD_NUMBER(job, 1, UINT32_MAX),
	  "Map onto the cores of this running job (default: $SLURM_JOB_ID)" },
	{ "nodes", 0, "HOSTS[=CORES];...", CMD_TEXT(nodes),
	  "Map onto these cores instead, without Slurm; without CORES, all cores of a node" },
	{ "arch", 0, "FILE", CMD_TEXT(arch),
	  "The network above the nodes (default: FabricFile, or the registry's); without --job and --nodes also the "
	  "nodes themselves, if the file describes them" },
	{ "plane", 0, "N", CMD_NUMBER(plane, 0, UINT32_MAX),
	  "Use this plane of the network, from 0 (default: the plane with the most hosts)" },
	{ "distances", 0, "FILE", CMD_TEXT(distances), "A matrix of costs between places, instead of costs by level" },
	{ "snapshot", 0, "FILE", CMD_TEXT(snapshot), "The nodes' hardware, instead of SnapshotFile or the registry" },
	{ "format", 0, "NAME", CMD_WORD(output.formats),
	  "The format of the rank file: plain (default), openmpi, openmpi-seq, openmpi5, mpich, "
	  "intelmpi, mvapich2, cray or srun; with several, a,b, -o FILE writes FILE.a and FILE.b" },
	{ "env", 0, "FILE", CMD_OUTPUT(output.env),
	  "Write the environment variables that the launcher needs to FILE, NAME=value per line" },
	{ "topology", 0, "HOSTS=FILE;...", CMD_TEXT(output.topology),
	  "The nodes' exported XML, for formats that use OS CPU numbers (default: from the registry)" },
	{ "block", 0, NULL, CMD_FLAG(block), "Keep each rank on its node under block distribution, and map only within "
	  "nodes, for launchers that number ranks node by node" },
	{ "ranks", 0, "N", CMD_NUMBER(ranks, 1, UINT32_MAX),
	  "Map N ranks (default: the job's tasks, or all ranks of the matrix)" },
	{ "tasks-per-node", 0, "LIST", CMD_TEXT(per_node), "At most so many ranks on each node, e.g. \"6(x2),5\" "
	  "(default: $SLURM_TASKS_PER_NODE inside the job)" },
	{ "cpus-per-task", 0, "N", CMD_NUMBER(cpus, 1, UINT32_MAX), "CPUs of each rank (default: the job's, or 1)" },
	{ "fill", 0, "HOW", CMD_KEYWORD(fill, places_fill_parse, "compact, spread, auto"),
	  "If there are more places than ranks, use the first ones (compact), the same number per node (spread), or "
	  "the cheapest (auto, default)" },
	{ "costs", 0, "COSTS", CMD_TEXT(costs),
	  "Costs of a unit of traffic within nodes: measured (default if the registry has them), default, LEVEL=N,..., "
	  "or FILE" },
	{ "effort", 0, "HOW", CMD_KEYWORD(effort, mapping_effort_parse, "fast, normal, high"),
	  "Search effort: fast, normal (default) or high" },
	{ "seed", 0, "N", CMD_NUMBER(seed, 0, UINT32_MAX),
	  "Random seed; equal seeds give equal mappings (default: 1)" },
	{ "explain", 0, "json", CMD_OPTIONAL(set_explain),
	  "Print the cost of the mapping beside block, cyclic and Scotch, on standard error "
	  "if the rank file goes to standard output" },
	{ "output", 'o', "FILE", CMD_TEXT(output.file), "Write the rank file to FILE, atomically" },
	{0},
};

static const struct cmd_syntax syntax = {
	options, "", "Map the ranks of a job to its cores and write a rank file.", {0}, NULL, check_together,
};

/* Nodes from Slurm or by name, their shapes from the snapshot; or those of the network. */
static int load_job(const struct cmd *c, const struct args *a, struct place_site *site, struct place_job *job,
		    struct err *e)
{
	struct snapshot *s = NULL;
	struct matrix *m;
	int rc = 0;

	if (a->job || a->nodes) {
		if (!(site->snapshot = s = published_snapshot(c, a->snapshot, e)))
			return -1;
		rc = a->nodes ? job_from_words(a->nodes, site, job, e) : job_load(a->job, site, job, e);
		snapshot_free(s);
	} else if (site->network && job_from_network(site, job, e)) {
		rc = err_within(e, "%s", a->arch);
	}
	if (rc || !a->distances)
		return rc;
	if (!(m = matrix_read(a->distances, e)))
		return -1;
	rc = job->places ? places_distances(job->places, m, e) : job_from_distances(m, job, e);
	matrix_free(m);
	return rc ? err_within(e, "%s", a->distances) : 0;
}

/* As many ranks as the job has tasks; a larger matrix is truncated. */
static struct matrix *load_matrix(const char *path, unsigned ranks, struct err *e)
{
	struct matrix *whole = matrix_read(path, e), *head = NULL;

	if (!whole || !ranks || ranks == whole->ranks)
		return whole;
	if (ranks > whole->ranks)
		err_set(e, "%s: the matrix has %u rank%s, but the job has %u tasks", path, whole->ranks,
			PLURAL(whole->ranks), ranks);
	else if (!(head = matrix_range(whole, 0, ranks)))
		err_set(e, "%s: out of memory", path);
	else
		log_warning("%s: the matrix has %u ranks, the job %u task%s: only the first %u %s mapped", path,
			    whole->ranks, ranks, PLURAL(ranks), ranks, ranks == 1 ? "is" : "are");
	matrix_free(whole);
	return head;
}

/* "6(x2)" or "5": a count and the number of consecutive hosts that have it; returns what follows, or NULL. */
static const char *read_count(const char *at, unsigned *count, unsigned *times)
{
	int used = 0, more = 0;

	*times = 1;
	if (sscanf(at, "%9u%n", count, &used) != 1 || !*count)
		return NULL;
	at += used;
	if (*at == '(' && (sscanf(at, "(x%9u)%n", times, &more) != 1 || !more || !*times))
		return NULL;
	return at + more;
}

/*
 * "6(x2),5", the format of SLURM_TASKS_PER_NODE: the tasks of each host. 0, or -1 for a syntax error or another number
 * of hosts.
 */
static int read_tasks(const char *at, unsigned *tasks, unsigned hosts)
{
	unsigned n = 0, count, times;

	while ((at = read_count(at, &count, &times)) && times <= hosts - n) {
		while (times--)
			tasks[n++] = count;
		if (!*at)
			return n == hosts ? 0 : -1;
		if (*at++ != ',')
			return -1;
	}
	return -1;
}

/* Slurm allocates CPUs, which are parts of cores with several PUs, and each node has its share of the tasks. */
static int fit_tasks(struct places *p, const struct args *a, struct err *e)
{
	unsigned *tasks = malloc(p->nhosts * sizeof(*tasks));
	int rc = 0;

	if (!tasks)
		return err_set(e, "out of memory");
	memset(tasks, 0xff, p->nhosts * sizeof(*tasks));
	if (a->per_node && read_tasks(a->per_node, tasks, p->nhosts))
		rc = err_set(e, "--tasks-per-node='%s' does not fit a job of %u node%s", a->per_node, p->nhosts,
			     PLURAL(p->nhosts));
	else
		rc = places_fit(p, tasks, a->fill, e);
	free(tasks);
	return rc;
}

static int make_room(const struct place_job *job, const struct args *a, unsigned ranks, struct err *e)
{
	struct places *p = job->places;

	if ((a->per_node || ranks > p->nplaces) && fit_tasks(p, a, e))
		return -1;
	if (ranks > p->nplaces && job->cpus < 2)
		return err_set(e, "%u ranks, but the job has only %u place%s", ranks, p->nplaces,
			       PLURAL(p->nplaces));
	if (ranks > p->nplaces)
		return err_set(e, "%u ranks of %u CPUs, but the job's cores have only %u such place%s", ranks,
			       job->cpus, p->nplaces, PLURAL(p->nplaces));
	return places_fill(p, ranks, a->fill, e);
}

static unsigned hosts_connected(const struct fabric *f)
{
	unsigned n = 0;

	for (unsigned i = f->nswitches; i < f->nnodes; i++)
		n += f->nodes[i].plane != FABRIC_NO_PLANE;
	return n;
}

/* If the network also defines the nodes, none may be left out unless a plane was requested. */
static const struct hierarchy *network_of(const struct fabric *f, const struct args *a, struct err *e)
{
	unsigned plane = a->plane == ANY_PLANE ? 0 : a->plane;
	const struct hierarchy *h = plane < f->nplanes ? f->planes[plane].levels : NULL;

	if (!h && a->plane == ANY_PLANE)
		err_set(e, "%s: the network has no hosts", a->arch);
	else if (!h)
		err_set(e, "%s: no plane %u with hosts", a->arch, plane);
	else if (a->plane == ANY_PLANE && !a->job && !a->nodes && h->nhosts < hosts_connected(f))
		err_set(e, "%s: only %u of %u hosts are in one plane; select a plane with --plane=N", a->arch,
			h->nhosts, hosts_connected(f));
	else
		return h;
	return NULL;
}

static int map_job(const struct cmd *c, const struct args *a, struct place_job *job, const struct costs *costs,
		   struct err *e)
{
	struct matrix *m = load_matrix(a->matrix, a->ranks ? a->ranks : job->tasks, e);
	int (*solve)(const struct matrix *, const struct places *, enum mapping_effort, unsigned, struct mapping *,
		     struct err *) = a->block ? mapping_blocks : mapping_solve;
	struct mapping mapping;
	int rc = -1;

	if (m && make_room(job, a, m->ranks, e) == 0 && solve(m, job->places, a->effort, a->seed, &mapping, e) == 0) {
		if (!a->explain || !isnan(mapping.scotch) || mapping_compare(m, job->places, a->seed, &mapping, e) == 0)
			rc = rankfile_output_write(c, &a->output, job->places, &mapping, e);
		if (rc == 0 && a->explain) {
			struct buf text = {0};

			costs_describe(costs, &text);
			rc = text.failed ? err_set(e, "out of memory") :
				(a->explain_json ? as_json : as_table)(&mapping, job->places, text.data,
								       a->output.file ? stdout : stderr, e);
			buf_free(&text);
		}
		mapping_free(&mapping);
	}
	matrix_free(m);
	return rc;
}

/* --- the order of the network --- */

static int order_job(const struct cmd *c, const struct args *a, struct place_job *job, const struct err *without,
		     struct err *e)
{
	unsigned ranks = a->ranks ? a->ranks : job->tasks ? job->tasks : job->places->nplaces;
	struct mapping mapping;
	struct mapping_order o;
	int rc = -1;

	if (!job->places->network)
		return *without->text ? err_set(e, "%s", without->text) :
			err_set(e, "no network is known: topiary fabric import stores one in the registry, and "
				"topiaryd writes it to FabricFile (%s)", c->settings.fabric_file);
	if (make_room(job, a, ranks, e) || mapping_order(job->places, ranks, &mapping, &o, e))
		return -1;
	rc = rankfile_output_write(c, &a->output, job->places, &mapping, e);
	mapping_free(&mapping);
	if (!rc && a->explain_json)
		rc = cmd_print_new(json_pack("{s:i, s:f, s:f, s:f, s:f}", "hosts", (int) o.hosts, "ring", o.ring,
					     "trees", o.trees, "ring_before", o.ring_before, "trees_before",
					     o.trees_before), e);
	else if (!rc && o.ring == o.ring_before && o.trees == o.trees_before)
		fprintf(stderr, "topiary: ranks stay in Slurm's order of %u node%s: none is found by which rings and "
			"trees cost less in the network (ring %.6g, trees %.6g)\n", o.hosts, PLURAL(o.hosts), o.ring,
			o.trees);
	else if (!rc)
		fprintf(stderr, "topiary: ranks are in the order of the network: costs between neighbours of the ring "
			"%.6g, in Slurm's order %.6g, of the trees %.6g, in Slurm's order %.6g\n", o.ring,
			o.ring_before, o.trees, o.trees_before);
	return rc;
}

/* A mapping must gain so much, in percent of the cost in block order, to be worth another order of ranks. */
#define LEAST_GAIN 5

/*
 * For srun (spank_plugin/launch/srun_side.c): the matrix of the program, if it is to be used. 0, or -1 with the reason
 * why not.
 */
static int learned_find(const struct args *a, struct learned *out, struct err *why)
{
	char key[LEARNED_KEY], id[LEARNED_ID], path[PATH_MAX];
	const char *tag = a->tag ? a->tag : "";
	struct learned own;
	struct err other;
	bool missing;
	int rc;

	if (learned_key(child_program(a->learned, path) ? path : a->learned, tag, key, why))
		return -1;
	learned_id(a->ranks, tag, key, id);
	if (!learned_read(id, &own, &missing, why) && (learned_is_stable(&own) || own.nruns > 1)) {
		*out = own;
		return learned_is_stable(out) ? 0 : err_set(why, "the last two runs of this program differ");
	}
	if (!own.matrix && !missing)
		return -1;
	rc = learned_resize(&own, a->ranks, out, &other);
	if (rc && own.matrix)
		err_set(why, "one run of this program is recorded, and two must agree; %s", other.text);
	else if (rc)
		err_set(why, "no run of this program with %u ranks is recorded yet; %s", a->ranks, other.text);
	learned_free(&own);
	return rc;
}

/* Writes the files of a mapping that gains, and *less, by how much. 0, or -1 with the reason why there is none. */
static int learned_map(const struct cmd *c, const struct args *a, const struct place_job *job,
		       const struct learned *l, double *less, struct err *why)
{
	struct mapping mapping;
	int rc;

	if (make_room(job, a, a->ranks, why) ||
	    mapping_solve(l->matrix, job->places, a->effort, a->seed, &mapping, why))
		return -1;
	*less = floor(gain(mapping.block, mapping.cost));
	if (*less < LEAST_GAIN && mapping.cheapest < mapping.cost)
		rc = err_set(why, "a mapping has %.0f %% less communication, but by its messages the program may not "
			     "run faster", floor(gain(mapping.block, mapping.cheapest)));
	else if (*less < LEAST_GAIN)
		rc = err_set(why, "a mapping gains %.0f %%", *less);
	else
		rc = rankfile_output_write(c, &a->output, job->places, &mapping, why);
	mapping_free(&mapping);
	return rc;
}

/* What srun does, and says. Frees l. */
static int learned_verdict(bool placed, struct learned *l, double less, struct err *why)
{
	char text[512];
	json_t *j;

	if (placed)
		snprintf(text, sizeof(text), "ranks placed by run %u of this program (%u ranks%s%s): %.0f %% "
			 "less communication (bytes x distance) than block", l->run[l->nruns - 1].job, l->recorded,
			 *l->resized ? ", " : "", l->resized, less);
	else
		snprintf(text, sizeof(text), "ranks stay where Slurm places them: %.440s", why->text);
	j = json_pack("{s:b, s:b, s:s}", "placed", placed, "settled", l->matrix && !*l->resized &&
		      learned_is_settled(l), "text", text);
	learned_free(l);
	return cmd_print_new(j, why);
}

int cmd_map(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = {
		.output.formats = "plain", .seed = 1, .effort = EFFORT_NORMAL, .fill = FILL_AUTO, .plane = ANY_PLANE,
	};
	struct place_site site = {0};
	struct hierarchy *published = NULL;
	struct fabric *fabric = NULL;
	struct place_job job = {0};
	struct costs costs = {0};
	struct err without = {""};
	struct learned l = {0};
	double less = 0;
	int rc = -1;

	if (cmd_parse(c, &syntax, &a, argc, argv, e) || rankfile_output_writable(&a.output, e))
		return -1;
	/* Before anything that takes time: most programs that srun starts are not learned. */
	if (a.learned && learned_find(&a, &l, e))
		return learned_verdict(false, &l, 0, e);
	a.explain |= c->json && !a.block;
	a.explain_json |= c->json;
	if (a.arch && (!(fabric = fabric_read(&a.arch, 1, NULL, e)) || !(site.network = network_of(fabric, &a, e))))
		goto out;
	if (!a.arch && !a.distances && !a.snapshot)
		site.network = published = published_network(c);
	if (costs_load(c, !a.costs && (a.snapshot || a.distances) ? "default" : a.costs, &costs, e))
		goto out;
	site.planes = fabric;
	site.costs = &costs;
	site.cpus = a.cpus;
	/* The network that the registry published is used if it has all of the nodes. */
	site.without = published ? &without : NULL;
	if (load_job(c, &a, &site, &job, e) == 0) {
		if (*without.text && !a.order)
			log_warning("%s; mapping without the network", without.text);
		if (a.costs && !strcasecmp(a.costs, "measured") && costs.without)
			log_warning("nodes without measured costs, which have default costs: %u of %u", costs.without,
				    costs.used + costs.without);
		rc = a.order ? order_job(c, &a, &job, &without, e) :
		     a.learned ? learned_map(c, &a, &job, &l, &less, e) : map_job(c, &a, &job, &costs, e);
	}
out:
	if (a.learned)
		rc = learned_verdict(!rc, &l, less, e);
	costs_free(&costs);
	places_free(job.places);
	hierarchy_free(published);
	fabric_free(fabric);
	return rc;
}
