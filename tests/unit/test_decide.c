/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * What hostile requests cost, counted: the select plugin's own code on Slurm's own tables of nodes, with an inner
 * plugin that refuses all, or accepts all. The linker puts the counters before the functions that are called for each
 * node (room.mk).
 */
#include "../../select_plugin/steer.h"

#include "../../select_plugin/job_request.h"
#include "../../select_plugin/candidates.h"
#include "../../select_plugin/snapshot_watch.h"
#include "base/buf.h"
#include "score/score.h"
#include "table.h"

#define REQUESTS 200
#define SHAPES 150	/* more than any memo of a few has places */
#define LOOKS 50	/* at each node, in one decision: a dozen passes, some of which halve what it holds */
#define SUBMIT_LOOKS 14	/* when it is submitted: each shape is scored but once then */
#define LATER_LOOKS 120	/* also at the end of each job, and for each attempt at a later start */
#define JOBS 2		/* that run, for each node: a required placement is looked for at the end of each */

/*
 * The inner plugin's work is in the nodes that it is offered, each call also costing as a sixteenth of all of them. A
 * decision has a budget for now and one for later (budget.h), Slurm's own decision or what is required on all nodes,
 * and that again for later.
 */
#define OFFERED(nodes) (2 * budget_new(nodes).offers + 3 * (nodes))

/* Costs and choices, now, later and at last. */
#define SCORES(nodes) (6 * BUDGET_SCORES(nodes))

/* Of slurmctld. */
slurm_list_t job_list;
part_record_t *default_part_loc;

part_record_t *find_part_record(char *name)
{
	return strcmp(name, "p") ? NULL : default_part_loc;
}

static unsigned long looks, scores, calls, offered;

#define COUNTED(counter, type, name, parms, args)	\
	type __real_##name parms;			\
	type __wrap_##name parms;			\
	type __wrap_##name parms			\
	{						\
		counter++;				\
		return __real_##name args;		\
	}

COUNTED(looks, const struct score_cost *, fit_cost, (struct fit_cache *c, const struct shape *s, const uint64_t *f,
	const struct score_need *n, struct node_fit **o), (c, s, f, n, o))
COUNTED(looks, void, job_request_need, (const struct job_request *a, uint32_t t, int n, struct score_need *o),
	(a, t, n, o))
COUNTED(looks, uint32_t, job_request_capacity, (const struct job_request *a, unsigned f, int n), (a, f, n))
COUNTED(scores, int, score_pick, (const struct shape *s, const uint64_t *f, const struct score_need *n, uint64_t *o,
	struct score_cost *c), (s, f, n, o, c))
COUNTED(scores, struct score_table *, score_table_new,
	(const struct shape *s, const uint64_t *f, const struct score_need *n), (s, f, n))

static bool accepts;

static int inner JOB_TEST_PARMS
{
	calls++;
	offered += bit_set_count(nodes) + node_record_count / 16;
	if (accepts)
		job->start_time = time(NULL);
	/* As Slurm holds a job whose CPUs it does not find on the cores of an attempt. */
	if (!accepts && excluded) {
		job->priority = 0;
		job->state_reason = WAIT_HELD;
	}
	return accepts ? SLURM_SUCCESS : SLURM_ERROR;
}

/* --- the cluster */

static char *folder;
static unsigned seed = 11;

static const char *own_shape;	/* of all nodes, which have 8 cores then; NULL: they differ */

static unsigned cores_of(unsigned shape)
{
	return 8 * (own_shape ? 1 : 1 + shape % 16);
}

static FILE *file_of(const char *name)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_non_null(f = fopen(path, "w"));
	return f;
}

static config_record_t config = { .weight = 1 };

/* No two nodes have the same cores free: some of each are specialised, unless the test has a shape of its own. */
static void node_make(unsigned i)
{
	node_record_t *node = node_record_table_ptr[i] = xcalloc(1, sizeof(*node));

	node->name = xstrdup_printf("n%u", i);
	node->config_ptr = &config;
	node->tot_cores = cores_of(i % SHAPES);
	node->tot_sockets = 2;
	node->threads = node->tpc = 1;
	node->real_memory = 1000;
	node->node_spec_bitmap = bit_alloc(node->tot_cores);
	for (unsigned c = 0; c < node->tot_cores; c++)
		if (own_shape || rand_r(&seed) % 8)
			bit_set(node->node_spec_bitmap, c);
}

/* It holds an eighth of the cores of one to four nodes in a row, and ends at a time of its own. */
static void job_make(unsigned nth, unsigned first)
{
	job_record_t *job = calloc(1, sizeof(*job));
	job_resources_t *r = job->job_resrcs = calloc(1, sizeof(*r));
	unsigned last = first + rand_r(&seed) % 4, cores = 0, at = 0;

	last = MIN(last, (unsigned) node_record_count - 1);
	for (unsigned i = first; i <= last; i++)
		cores += node_record_table_ptr[i]->tot_cores;
	r->nhosts = last - first + 1;
	r->node_bitmap = bit_alloc(node_record_count);
	r->core_bitmap = bit_alloc(cores);
	bit_nset(r->node_bitmap, first, last);
	for (unsigned i = first; i <= last; at += node_record_table_ptr[i++]->tot_cores)
		for (unsigned c = 0; c < node_record_table_ptr[i]->tot_cores; c++)
			if (rand_r(&seed) % 8 == 0)
				bit_set(r->core_bitmap, at + c);
	job->magic = JOB_MAGIC;
	job->job_id = 1000 + nth;
	job->job_state = JOB_RUNNING;
	job->end_time = time(NULL) + 60 + rand_r(&seed) % 86400;
	list_append(job_list, job);
}

static void job_free(void *x)
{
	job_record_t *job = x;

	FREE_NULL_BITMAP(job->job_resrcs->node_bitmap);
	FREE_NULL_BITMAP(job->job_resrcs->core_bitmap);
	free(job->job_resrcs);
	free(job);
}

static void cluster_make(unsigned nodes, const char *mode)
{
	FILE *snapshot = file_of("snapshot"), *conf = file_of("topiary.conf");
	struct snapshot_view *v;

	fprintf(snapshot, "topiary-snapshot 1\n");
	for (unsigned s = 0; s < SHAPES && own_shape; s++)
		fprintf(snapshot, "shape S%u %s\n", s, own_shape);
	for (unsigned s = 0; s < SHAPES && !own_shape; s++)
		fprintf(snapshot, "shape S%u Package:2 %sL3Cache:%u Core:%u PU:1\n", s,
			s & 16 ? "NUMANode:1(memory=1GiB) " : "", s & 32 ? 2 : 4, cores_of(s) / (s & 32 ? 4 : 8));
	for (unsigned i = 0; i < nodes; i++)
		fprintf(snapshot, "nodes n%u S%u\n", i, i % SHAPES);
	fprintf(snapshot, "end\n");
	fclose(snapshot);
	fprintf(conf, "SnapshotFile=%s/snapshot\nSnapshotPoll=1\nTopoMode=%s\nObserveFile=%s/observed\n"
		"ObserveShare=20\n", folder, mode, folder);
	fclose(conf);
	node_record_count = nodes;
	node_record_table_ptr = xcalloc(nodes, sizeof(*node_record_table_ptr));
	for (unsigned i = 0; i < nodes; i++)
		node_make(i);
	job_list = list_create(job_free);
	for (unsigned i = 0; i < JOBS * nodes; i++)
		job_make(i, i % nodes);
	default_part_loc->node_bitmap = bit_alloc(nodes);
	bit_nset(default_part_loc->node_bitmap, 0, nodes - 1);
	snapshot_watch_drop();
	steer_start();
	while (!(v = snapshot_view_get()))
		usleep(10000);
	assert_int_equal(snapshot_view_nodes(v), nodes);
	snapshot_view_release(v);
}

static void cluster_free(void)
{
	steer_stop();
	for (unsigned i = 0; i < (unsigned) node_record_count; i++) {
		FREE_NULL_BITMAP(node_record_table_ptr[i]->node_spec_bitmap);
		xfree(node_record_table_ptr[i]->name);
		xfree(node_record_table_ptr[i]);
	}
	FREE_NULL_LIST(job_list);
	xfree(node_record_table_ptr);
	FREE_NULL_BITMAP(default_part_loc->node_bitmap);
}

/* --- requests */

static const char *const words[] = {
	"", "topo-fit=prefer", "topo-fit=prefer topo-level=l3", "topo-fit=require topo-level=l3",
	"topo-fit=require topo-level=l2", "topo-fit=require topo-level=numa", "topo-fit=require topo-level=package",
	"topo-fit=spread", "topo-fit=spread topo-level=l2", "topo-request=/core=1", "topo-request=/l3=2/core=1",
	"topo-request=/package=2/l3=1/core=1", "topo-request=/package=1/core=4", "topo-request=/package=65535/core=1",
	"topo-request=/l3=3/core=65535", "topo-mem=require", "topo-mem=require topo-fit=require topo-level=numa",
};

struct hostile {
	const char *words;
	uint32_t tasks, min_nodes, max_nodes;
	uint16_t cpus, per_node, min_cpus;
	bool overcommit, whole;
};

#define ONE_OF(...) \
	((uint32_t[]){ __VA_ARGS__ })[rand_r(&seed) % (sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))]

static struct hostile hostile_make(unsigned nth, uint32_t nodes)
{
	struct hostile h = { .words = words[nth % ROWS(words)] };

	h.min_nodes = ONE_OF(1, 1, 2, nodes / 2, nodes - 1, nodes);
	h.max_nodes = ONE_OF(h.min_nodes, nodes, nodes, 500000);
	h.tasks = ONE_OF(1, 7, 40 * nodes + 1, 40 * nodes + 1, 33 * nodes, 64 * nodes, nodes + 1, UINT32_MAX - 9,
			 1u << 31, NO_VAL);
	h.cpus = ONE_OF(1, 1, 1, 2, 3, 17, 64, 65533);
	h.per_node = ONE_OF(0, 0, 0, 1, 5, 65533);
	h.min_cpus = ONE_OF(1, 1, 1, 4, 17, 65533);
	h.overcommit = !(rand_r(&seed) % 16);
	h.whole = !(rand_r(&seed) % 8);
	return h;
}

static void tell(const struct hostile *h, const char *when, unsigned nodes)
{
	print_error("%s, of %u nodes: '%s' -n%u -N%u-%u -c%u --ntasks-per-node=%u --mincpus=%u%s%s: %lu looks, %lu"
		    " scores, %lu calls, %lu nodes offered\n", when, nodes, h->words, h->tasks, h->min_nodes,
		    h->max_nodes, h->cpus, h->per_node, h->min_cpus, h->overcommit ? " -O" : "",
		    h->whole ? " --exclusive" : "", looks, scores, calls, offered);
}

static struct counts {
	unsigned long looks, scores, calls, offered;
} most;

static void judge(const struct hostile *h, const char *when, unsigned nodes, unsigned most_looks, unsigned most_scores)
{
	bool good = looks <= most_looks && scores <= most_scores && offered <= OFFERED(nodes);

	most.looks = MAX(most.looks, looks / nodes);
	most.scores = MAX(most.scores, scores);
	most.calls = MAX(most.calls, calls);
	most.offered = MAX(most.offered, offered);
	if (!good)
		tell(h, when, nodes);
	assert_true(good);
	looks = scores = calls = offered = 0;
}

/* More than one of a node's two NUMA nodes has; only then does Slurm count memory. */
static uint64_t memory_count(const struct hostile *h)
{
	bool counts = strstr(h->words, "topo-mem");

	slurm_conf.select_type_param = CR_CORE | (counts ? CR_MEMORY : 0);
	return counts ? 600 : NO_VAL64;
}

static void submit(const struct hostile *h, unsigned nodes)
{
	job_desc_msg_t job;

	slurm_init_job_desc_msg(&job);
	job.comment = (char *) h->words;
	job.num_tasks = h->tasks;
	job.min_nodes = h->min_nodes;
	job.max_nodes = h->max_nodes;
	job.cpus_per_task = h->cpus;
	job.ntasks_per_node = h->per_node;
	job.pn_min_cpus = h->min_cpus;
	job.overcommit = h->overcommit;
	job.pn_min_memory = memory_count(h);
	topiary_submitted(&job, &err);
	judge(h, "submitted", nodes, SUBMIT_LOOKS * nodes, 2 * SHAPES + 1);
}

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
#define NO_WILL_RUN , NULL
#else
#define NO_WILL_RUN
#endif

/* A request as slurmctld's records of it; the caller sets the pointers between them. */
struct asked {
	job_record_t job;
	slurm_job_details_t details;
	multi_core_data_t mc;
};

static struct asked asked_make(const struct hostile *h)
{
	return (struct asked){
		.mc = { .boards_per_node = NO_VAL16, .sockets_per_board = NO_VAL16, .sockets_per_node = NO_VAL16,
			.cores_per_socket = NO_VAL16, .threads_per_core = NO_VAL16, .ntasks_per_board = NO_VAL16,
			.ntasks_per_socket = NO_VAL16, .ntasks_per_core = NO_VAL16 },
		.details = { .num_tasks = h->tasks, .cpus_per_task = h->cpus, .ntasks_per_node = h->per_node,
			     .pn_min_cpus = h->min_cpus, .min_cpus = MIN(h->tasks, 1000000),
			     .pn_min_memory = memory_count(h), .overcommit = h->overcommit,
			     .whole_node = h->whole ? WHOLE_NODE_REQUIRED : 0 },
		.job = { .magic = JOB_MAGIC, .job_id = 1, .comment = (char *) h->words,
			 .part_ptr = default_part_loc, .priority = 7 },
	};
}

static void decide(const struct hostile *h, uint16_t mode, const char *when, unsigned nodes)
{
	struct asked a = asked_make(h);
	bitstr_t *all = bit_copy(default_part_loc->node_bitmap);
	slurm_list_t preempted = NULL;

	a.job.details = &a.details;
	a.details.mc_ptr = &a.mc;
	steer_job_test(inner, &a.job, all, h->min_nodes, h->max_nodes, h->max_nodes, mode, NULL, &preempted, NULL
		       NO_WILL_RUN);
	assert_true(a.job.priority == 7 && a.job.state_reason != WAIT_HELD);
	judge(h, when, nodes, (SELECT_IS_MODE_WILL_RUN(mode) ? LATER_LOOKS : LOOKS) * nodes, SCORES(nodes));
	FREE_NULL_BITMAP(all);
	xfree(a.job.admin_comment);
}

static void run(unsigned nodes)
{
	cluster_make(nodes, "on");
	for (unsigned i = 0; i < REQUESTS; i++) {
		struct hostile h = hostile_make(i, nodes);

		submit(&h, nodes);
		accepts = i % 4 == 0;
		decide(&h, SELECT_MODE_TEST_ONLY, "TEST_ONLY", nodes);
		decide(&h, SELECT_MODE_RUN_NOW, "RUN_NOW", nodes);
		decide(&h, SELECT_MODE_WILL_RUN, "WILL_RUN", nodes);
	}
	print_message(
		"%u nodes: at most %lu looks a node, %lu scores, %lu calls with %lu nodes offered\n",
		nodes, most.looks, most.scores, most.calls, most.offered);
	most = (struct counts){0};
	cluster_free();
}

TEST(costs_are_linear_in_nodes)
{
	run(100);
	run(500);
}

/* --- TopoMode=observe */

#define DECISIONS 200000

static struct {
	const job_record_t *job;
	const bitstr_t *nodes;
	const slurm_exclusion_t *excluded;
	const slurm_list_t *preempted;
	uint32_t min_nodes, max_nodes, req_nodes;
	uint16_t mode;
	struct asked as;		/* the job's records, byte for byte */
	bitstr_t *content;		/* of nodes: before the call, and what the inner plugin left */
	unsigned long calls, starts;
	int rc;
} given;

static void assert_untouched(const struct asked *a)
{
	assert_memory_equal(&a->job, &given.as.job, sizeof(a->job));
	assert_memory_equal(&a->details, &given.as.details, sizeof(a->details));
	assert_memory_equal(&a->mc, &given.as.mc, sizeof(a->mc));
}

/* What it is given is what slurmctld gave; what it answers is drawn. */
static int inner_observed JOB_TEST_PARMS
{
	given.calls++;
	assert_true(job == given.job && nodes == given.nodes && excluded == given.excluded && !preemptees &&
		    preempted == given.preempted && min_nodes == given.min_nodes && max_nodes == given.max_nodes &&
		    req_nodes == given.req_nodes && mode == given.mode && bit_equal(nodes, given.content));
	assert_untouched((const struct asked *) job);
	if (rand_r(&seed) % 2)
		bit_clear(nodes, rand_r(&seed) % node_record_count);
	bit_copybits(given.content, nodes);
	given.rc = rand_r(&seed) % 2 ? SLURM_SUCCESS : SLURM_ERROR;
	return given.rc;
}

/* Slurm's choice: cores of one node. */
static job_resources_t *chosen_make(void)
{
	job_resources_t *r = calloc(1, sizeof(*r));
	unsigned node = rand_r(&seed) % node_record_count, cores = node_record_table_ptr[node]->tot_cores;

	r->nhosts = 1;
	r->node_bitmap = bit_alloc(node_record_count);
	r->core_bitmap = bit_alloc(cores);
	bit_set(r->node_bitmap, node);
	bit_nset(r->core_bitmap, 0, rand_r(&seed) % cores);
	return r;
}

static void observe(const struct hostile *h, uint16_t mode, bitstr_t *nodes, job_resources_t *chosen)
{
	struct asked a = asked_make(h);
	slurm_list_t preempted = NULL;
	int rc;

	a.job.details = &a.details;
	a.details.mc_ptr = &a.mc;
	memcpy(&given.as, &a, sizeof(a));
	bit_copybits(nodes, default_part_loc->node_bitmap);
	bit_copybits(given.content, nodes);
	given.job = &a.job;
	given.preempted = &preempted;
	given.min_nodes = h->min_nodes;
	given.max_nodes = given.req_nodes = h->max_nodes;
	given.mode = mode;
	rc = steer_job_test(inner_observed, &a.job, nodes, h->min_nodes, h->max_nodes, h->max_nodes, mode, NULL,
			    &preempted, NULL NO_WILL_RUN);
	assert_true(rc == given.rc && bit_equal(nodes, given.content) && !preempted);
	assert_untouched(&a);
	if (rc != SLURM_SUCCESS || mode != SELECT_MODE_RUN_NOW)
		return;
	given.starts++;
	a.job.job_state = given.as.job.job_state = JOB_RUNNING;
	a.job.job_resrcs = given.as.job.job_resrcs = chosen;
	steer_starting(&a.job);
	assert_untouched(&a);
}

TEST(observing_passes_on_what_slurmctld_gave_and_what_slurm_answers)
{
	static const uint16_t modes[] = { SELECT_MODE_RUN_NOW, SELECT_MODE_WILL_RUN, SELECT_MODE_TEST_ONLY };
	unsigned long lines = 0, other = 0, passed = 0, n;
	job_desc_msg_t desc;
	char line[1024], path[PATH_MAX];
	bitstr_t *nodes = bit_alloc(100);
	FILE *f;

	cluster_make(100, "observe");
	given.nodes = nodes;
	given.content = bit_copy(nodes);
	for (unsigned i = 0; i < DECISIONS;) {
		job_resources_t *chosen = chosen_make();
		struct hostile h = hostile_make(i, node_record_count);

		for (unsigned k = 0; k < 200; k++, i++)
			observe(&h, modes[i % ROWS(modes)], nodes, chosen);
		FREE_NULL_BITMAP(chosen->node_bitmap);
		FREE_NULL_BITMAP(chosen->core_bitmap);
		free(chosen);
	}
	assert_int_equal(given.calls, DECISIONS);
	slurm_init_job_desc_msg(&desc);
	desc.comment = "topo-request=/package=1/core=65535";
	assert_int_equal(topiary_submitted(&desc, &err), SUBMITTED_INACTIVE);
	assert_non_null(strstr(err.text, "TopoMode=observe"));
	cluster_free();
	snprintf(path, sizeof(path), "%s/observed", folder);
	assert_non_null(f = fopen(path, "r"));
	for (; fgets(line, sizeof(line), f); lines++) {
		assert_true(!strncmp(line, "observed=1 time=", 16) && strstr(line, " outcome="));
		other += strstr(line, " outcome=other ") != NULL;
		assert_int_equal(sscanf(strstr(line, " passed="), " passed=%lu", &n), 1);
		passed += n;
	}
	fclose(f);
	print_message("%lu starts: %lu compared, %lu of them with another choice, at most %lu passed\n", given.starts,
		      lines, other, passed);
	assert_true(lines && other && lines + passed <= given.starts);
	FREE_NULL_BITMAP(given.content);
	FREE_NULL_BITMAP(nodes);
}

/* What can never be placed is refused at submission, and nothing else. */
TEST(domains_around_some_cores)
{
	static const struct {
		const char *shape, *words;
		uint32_t tasks;
		const char *refusal;
		uint16_t on_socket, on_node;
	} rows[] = {
#define APART "Package:1 { Core:2 | NUMANode:1 Core:2 | Core:2 | NUMANode:1 Core:2 }"
#define AROUND "[NUMANode] { Package:1 NUMANode:1 Core:4 | Package:1 { NUMANode:1 Core:2 | L3Cache:1 Core:2 } }"
		{ APART, "topo-fit=require topo-level=numa", 2, NULL, 0, 0 },
		{ APART, "topo-fit=require topo-level=numa", 3, "3 cores in one NUMA node, but the largest has 2", 0,
		  0 },
		{ APART, "topo-fit=require topo-level=package", 8, NULL, 0, 0 },
		{ AROUND, "topo-fit=require topo-level=numa", 4, NULL, 0, 0 },
		{ AROUND, "topo-fit=require topo-level=l3", 5, "5 cores in one L3 cache, but the largest has", 0, 0 },
		{ APART, "topo-fit=require topo-level=numa", 1, "the job needs 3 cores in one NUMA node (with"
		  " --ntasks-per-socket=3 Slurm uses only nodes with room for 3 tasks), but the largest has 2", 3, 0 },
		{ APART, "topo-fit=require topo-level=numa", 2, "(with --ntasks-per-node=3 Slurm uses", 0, 3 },
		{ APART, "topo-fit=require topo-level=numa", 3, "3 cores in one NUMA node, but", 3, 3 },
	};
	job_desc_msg_t job;

	for (size_t i = 0; i < ROWS(rows); i++) {
		int rc;

		own_shape = rows[i].shape;
		cluster_make(1, "on");
		slurm_init_job_desc_msg(&job);
		job.comment = (char *) rows[i].words;
		job.num_tasks = rows[i].tasks;
		job.ntasks_per_socket = rows[i].on_socket ?: job.ntasks_per_socket;
		job.ntasks_per_node = rows[i].on_node ?: job.ntasks_per_node;
		job.min_nodes = job.max_nodes = 1;
		rc = topiary_submitted(&job, &err);
		if (!rc != !rows[i].refusal || (rc && !strstr(err.text, rows[i].refusal)))
			fail_msg("%s: %s -n%u: %s", rows[i].shape, rows[i].words, rows[i].tasks,
				 rc ? err.text : "accepted");
		cluster_free();
	}
	own_shape = NULL;
}

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
/* In place of Slurm's, which would load the plugin: the test's network is flat. */
int topology_g_get(topology_data_t type, char *name, void *data)
{
	(void) name;
	assert_int_equal(type, TOPO_DATA_REC_CNT);
	*(int *) data = 0;
	return SLURM_SUCCESS;
}
#endif

FIXTURE(begin)
{
	char conf[PATH_MAX];

	snprintf(conf, sizeof(conf), "%s/slurm.conf", folder = folder_new());
	setenv("SLURM_CONF", conf, 1);
	log_init("test_decide", (log_options_t) LOG_OPTS_INITIALIZER, 0, NULL);
	slurm_conf.select_type_param = CR_CORE;
	default_part_loc = calloc(1, sizeof(*default_part_loc));
	default_part_loc->max_share = 1;
	return default_part_loc ? 0 : -1;
}

TESTS_MAIN(begin, NULL)
