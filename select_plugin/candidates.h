/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_CANDIDATES_H
#define TOPIARY_SELECT_CANDIDATES_H

#include "device.h"
#include "job_request.h"

/*
 * Limits the work that one decision may cause beside Slurm's own decision, so that no request makes a decision cost
 * much more than twice as much.
 *
 * Slurm's work grows with the nodes that it is offered. All attempts of a decision together offer it little more nodes
 * than there are candidates. Each attempt also counts as a sixteenth of the candidates, because Slurm's tables cover
 * all nodes. Attempts without a substitute (Slurm's own decision; a required placement on all nodes at once) are made
 * even if the budget is used up.
 *
 * Computing the cost of one set of free cores takes several times what Slurm spends on a node. BUDGET_SCORES is the
 * number of costs that a decision may add to the cache (fit_cache_allow).
 */
struct budget {
	uint64_t offers, attempt;	/* nodes that may still be offered; what an attempt costs besides its nodes */
	bool refused;			/* an attempt was not made */
};

/* On small clusters a decision is cheap whatever it tries. */
#define BUDGET_LEAST 128
#define BUDGET_SCORES(candidates) (512 + (candidates) / 16)

/*
 * Numbers of tasks that one attempt may try on nodes, where tasks are divided unevenly: if their memory must be near,
 * and on so few nodes for any job.
 */
#define BUDGET_DIVISION(candidates) (1024 + (candidates))
#define BUDGET_DIVISION_NODES 32

static inline struct budget budget_new(unsigned candidates)
{
	return (struct budget){ .offers = (uint64_t) candidates * 5 / 4 + BUDGET_LEAST, .attempt = candidates / 16 };
}

static inline bool budget_exhausted(const struct budget *b)
{
	return b->offers <= b->attempt;
}

/* Whether the budget allows one more attempt with so many nodes; if so, they are charged to it. */
static inline bool budget_draw(struct budget *b, unsigned nodes)
{
	uint64_t cost = nodes + b->attempt;

	if (cost > b->offers) {
		b->refused = true;
		return false;
	}
	b->offers -= cost;
	return true;
}

/* Of the tasks of a node with so many threads per core; 0 tasks: of none. */
struct candidate_tasks {
	uint32_t tasks, nodes;
	uint16_t threads, tasks_per_core;
	bool shares_cores;
	struct score_need need;
};

/* All candidates of one job among some nodes. */
struct candidate_set {
	const job_record_t *job;
	struct job_request *req;
	const bitstr_t *nodes;		/* the nodes to search */
	const slurm_exclusion_t *excluded;
	const uint64_t *taken;		/* allocated cores and their memory (occupancy_copy); NULL: as now */
	uint32_t *of_partition;		/* by node: cores of the jobs of a partition with MaxCPUsPerNode; else NULL */
	struct device_need devices;
	bool starts;			/* the job is to start now, not planned */
	bool gpus;			/* it may have the cores of RestrictedCoresPerGPU */
	bool queue_first;		/* as of its candidates: for the job's time limit */
	bool local_only;			/* only candidates near the devices */
	bool spare_gpus;		/* of equally good cores those not near free GPUs, if the job has none */
	struct candidate_node *list;
	unsigned count, candidates;	/* candidates: nodes to search; the wrapped plugin changes nodes */
	unsigned room;			/* of these, nodes with room for the job now: for the verdict */
	unsigned unknown;		/* of these, nodes without a usable shape */
	bool no_steps;			/* the last plan has fewer GPUs on its first nodes than a step's tasks need */
	struct budget budget;
	struct candidate_tasks need;		/* the last one */
	uint64_t *free_cores, *sets;	/* space for one node */
	struct near_memo *near;		/* what devices of such nodes cost, of some nodes before; or NULL */
	struct score_limit *limits;
	unsigned limits_max;
};

/* The cost cache; each decision may add BUDGET_SCORES entries. */
extern struct fit_cache candidates_cache;

/*
 * Call it before the first candidates_find and after node_shapes_begin. The caller sets job, req, nodes, excluded and
 * taken. Returns 0, or -1 when memory is short.
 */
int candidates_begin(struct candidate_set *s);
void candidates_end(struct candidate_set *s);

/* Space for a list of all nodes, as s->list is: either may become the other. */
struct candidate_node *candidates_list_new(void);

/* Frees the cost cache and all that is kept between decisions. */
void candidates_clear(void);

/* Starts a new budget and a new allowance of costs; candidates_begin sets the first. */
void candidates_budget(struct candidate_set *s);

/*
 * Finds all candidates for `tasks` tasks, or, with 0, for as many tasks as each node holds; on a node that has none,
 * for or_tasks unless that is 0. The list then has only these, in the order of the nodes. Nodes set in `but` (by node,
 * or NULL) are skipped.
 */
void candidates_find(struct candidate_set *s, uint32_t tasks, uint32_t or_tasks, const bool *but);

/*
 * For requirements that do not depend on shares of tasks: finds on each node the largest free domain that meets the
 * requirement, with all its cores. Returns the most that these can hold.
 */
struct job_holding candidates_domains(struct candidate_set *s);

/* The same for one node; out is untouched when it has none. */
bool candidates_domain_on(struct candidate_set *s, int node, struct candidate_node *out);

/*
 * For a node on which Slurm just gave the job so many cores: finds the best cores of that number. False when there is
 * no candidate.
 */
bool candidates_given_on(struct candidate_set *s, int node, unsigned cores, struct candidate_node *out);

/* Searches one node again after it changed. Returns whether it has a candidate now. */
bool candidates_find_on(struct candidate_set *s, uint32_t tasks, int node, struct candidate_node *out);

/*
 * The most tasks that a node has a candidate for, or 0, and the least: 1, except for a path, which fixes the number of
 * cores. It is at most candidates_capacity.
 */
uint32_t candidates_range_on(struct candidate_set *s, int node, uint32_t *least);
uint32_t candidates_capacity(const struct candidate_set *s);

/*
 * The numbers of tasks up to `most` that a node has a candidate for (struct chooser). Not each below the most where
 * memory must be near: that of one core is in one NUMA node, that of eight in up to eight.
 */
uint32_t candidates_holds_on(struct candidate_set *s, int node, uint32_t most, uint64_t *holds,
			     struct candidate_node *one);

/*
 * The first large enough node that has no usable shape in the snapshot, and so no candidate, of those that the job
 * names before others; -1: none that it may have.
 */
int candidates_unknown(const struct candidate_set *s);

/* The first node with free cores for tasks that MaxCPUsPerNode and the partition's jobs there exclude; -1: none. */
int candidates_capped(const struct candidate_set *s);

/*
 * Takes from the cores of a node those that no job may have (CoreSpecCount, CpuSpecList) or, without gpus, those that
 * jobs with GPUs alone may have (RestrictedCoresPerGPU).
 */
void candidates_keep_usable(int node, bool gpus, uint64_t *cores);

/* CPUs of a node that the jobs of a partition with MaxCPUsPerNode have. */
uint32_t candidates_partition_cpus(const struct candidate_set *s, int node);

/*
 * The cores of a candidate, valid as long as its cost; with spare_gpus, others of the same cost where these leave more
 * GPUs their cores. NULL when memory is short or the allowance of costs is used up. Nothing is computed twice.
 */
const uint64_t *candidate_cores(struct candidate_set *s, const struct candidate_node *candidate);

#endif
