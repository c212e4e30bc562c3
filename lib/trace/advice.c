/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace/advice.h"

#include <math.h>

#include "base/order.h"
#include "trace/advice_facts.h"

/*
 * Parts are of a PU's or core's time. Recorded programs that compute keep their cores 0.9 to 1.0 busy, and what the
 * system does beside them is below IDLE. Rates are a second, of one PU where nothing else is said.
 */
#define IDLE 0.01
#define ACTIVE 0.05
#define ALONE 0.25		/* part of the run time in which one PU works */
#define WAITING 0.5		/* mean of the active PUs */
#define STARVED 0.3		/* seconds that threads waited for each PU that worked, a second */
#define UNEQUAL 0.3		/* between the domains of a level, or the mean of the PUs and the busiest */
#define CONTENDED 0.4		/* part of the intervals */
#define MANY_SHARED 0.5		/* of the PUs */
#define MOVES 0.5		/* a bound thread never migrates */
#define MOVES_LEAST 20		/* in all: threads migrate when they start */
#define FAULTS 20000		/* about 1 us each: 2 % of the time; fewer in all are a start */
#define FAR_PART 0.2
#define MANY_FILLS 1e6		/* 64 MB/s of a PU; below that, the memory is not what matters */
#define ONE_DOMAIN 1.6		/* times the mean of all domains */
#define SLOW_CLOCK 0.85		/* of the median; more than an eighth of the cores are another kind of core */
#define SLOW_CORES 8
#define SLOW_IPC 0.7		/* of the best domain */
#define ONE_MEMORY 0.8		/* of all memory */
#define MANY_CORES 0.9		/* of the most cores that worked in any interval */
#define FEWER_CORES 0.75
#define FEW_CORES 0.25
#define AS_MUCH 0.9
#define INTERVALS_LEAST 5u	/* and a tenth of all */

static bool has(const struct advice_facts *f, enum advice_role r)
{
	return r == TASKS ? f->tasks && f->tasks->n : f->event[r] >= 0;
}

/* --- sums up the tree --- */

static const struct trace_level *pus_of(const struct advice_facts *f)
{
	return &f->h->levels[trace_head_level(f->h, "PU")];
}

/* NAN: counted above this level. */
static double rate_of(const struct advice_facts *f, enum advice_role r, const struct trace_object *o)
{
	const struct trace_event *event = &f->h->events[f->event[r]];
	const struct trace_level *leaves = &f->h->levels[event->level];
	bool is_pu = leaves == pus_of(f);
	double sum = 0;
	unsigned found = 0;

	for (unsigned i = is_pu ? o->first : 0; i < (is_pu ? trace_object_end(o) : leaves->n); i++)
		if (leaves->objects[i].first >= o->first &&
		    trace_object_end(&leaves->objects[i]) <= trace_object_end(o)) {
			sum += f->rate[event->column + i];
			found++;
		}
	return found ? sum : NAN;
}

static double total_of(const struct advice_facts *f, enum advice_role r)
{
	struct trace_object all = { .count = f->h->pus };

	return rate_of(f, r, &all);
}

static const struct trace_level *cores_of(const struct advice_facts *f)
{
	return &f->h->levels[f->core];
}

/* 1: one PU of it all the time; 2: two of them. */
static double busy_of(const struct advice_facts *f, const struct trace_object *o)
{
	return rate_of(f, BUSY, o) * 1e-9;
}

static unsigned count_cores(const struct advice_facts *f, double least)
{
	const struct trace_level *cores = cores_of(f);
	unsigned n = 0;

	for (unsigned i = 0; i < cores->n; i++)
		n += busy_of(f, &cores->objects[i]) >= least;
	return n;
}

static unsigned count_idle_cores(const struct advice_facts *f)
{
	return cores_of(f)->n - count_cores(f, IDLE);
}

/* Cores within a domain, and how busy they are in the mean: 1 is one PU of each. */
static double domain_busy(const struct advice_facts *f, const struct trace_object *o)
{
	const struct trace_level *cores = cores_of(f);
	unsigned n = 0;

	for (unsigned i = 0; i < cores->n; i++)
		n += cores->objects[i].first >= o->first && cores->objects[i].first < trace_object_end(o);
	return n ? busy_of(f, o) / n : NAN;
}

/* A core is as busy as the busiest of its PUs: the mean of all cores. */
static double cores_busy(const struct advice_facts *f)
{
	const struct trace_level *cores = cores_of(f);
	double sum = 0;

	for (unsigned i = 0; i < cores->n; i++) {
		double most = 0;

		for (unsigned pu = cores->objects[i].first; pu < trace_object_end(&cores->objects[i]); pu++)
			most = fmax(most, busy_of(f, &(struct trace_object){ .first = pu, .count = 1 }));
		sum += most;
	}
	return sum / cores->n;
}

static void name_write(const struct trace_level *l, unsigned i, char *out, size_t size)
{
	snprintf(out, size, "%s %u", l->type, l->objects[i].index);
}

/* The objects of a level with the least and the greatest value of a function; false: fewer than two have one. */
struct range {
	unsigned low, high, n;
	double least, most, mean;
};

static bool range_find(const struct advice_facts *f, const struct trace_level *l,
		       double (*value)(const struct advice_facts *f, const struct trace_object *o), struct range *r)
{
	*r = (struct range){ .least = INFINITY, .most = -INFINITY };
	for (unsigned i = 0; i < l->n; i++) {
		double v = value(f, &l->objects[i]);

		if (isnan(v))
			continue;
		if (v < r->least)
			r->least = v, r->low = i;
		if (v > r->most)
			r->most = v, r->high = i;
		r->mean += (v - r->mean) / ++r->n;
	}
	return r->n > 1;
}

/* The widest level of memory or cache that divides the machine: NUMA nodes, L3 caches, packages. NULL: none does. */
static const struct trace_level *domains_of(const struct advice_facts *f)
{
	static const char *const types[] = { "NUMANode", "L3Cache", "Package" };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		int level = trace_head_level(f->h, types[i]);

		if (level >= 0 && f->h->levels[level].n > 1)
			return &f->h->levels[level];
	}
	return NULL;
}

/* --- rules: whether it is so, with the evidence --- */

#define SAY(...) (snprintf(out, size, __VA_ARGS__), true)

static bool find_idle(const struct advice_facts *f, char *out, size_t size)
{
	unsigned idle = count_idle_cores(f);

	return idle && count_cores(f, WORKING) && SAY("%u of %u cores ran nothing", idle, cores_of(f)->n);
}

static bool find_siblings(const struct advice_facts *f, char *out, size_t size)
{
	const struct trace_level *cores = cores_of(f);
	unsigned shared = 0, idle = count_idle_cores(f);

	for (unsigned i = 0; i < cores->n; i++) {
		const struct trace_object *core = &cores->objects[i];
		unsigned working = 0;

		for (unsigned pu = core->first; pu < trace_object_end(core); pu++)
			working += busy_of(f, &(struct trace_object){ .first = pu, .count = 1 }) >= WORKING;
		shared += working > 1;
	}
	return shared && idle &&
		SAY("%u of %u cores ran threads on several of their PUs, while %u ran nothing", shared, cores->n, idle);
}

static unsigned count_contended(const struct advice_facts *f)
{
	unsigned n = 0;

	for (unsigned pu = 0; pu < f->h->pus; pu++)
		n += f->contended[pu] >= CONTENDED * f->intervals;
	return n;
}

static bool find_shared(const struct advice_facts *f, char *out, size_t size)
{
	unsigned shared = count_contended(f), idle = count_idle_cores(f);

	return shared && idle &&
		SAY("%u of %u PUs were full and switched between threads, while %u of %u cores ran nothing", shared,
		    f->h->pus, idle, cores_of(f)->n);
}

/* Binding does not help these. */
static bool find_too_many(const struct advice_facts *f, char *out, size_t size)
{
	unsigned shared = count_contended(f);

	return shared >= MANY_SHARED * f->h->pus && !count_idle_cores(f) &&
		SAY("%u of %u PUs were full and switched between threads, and no core was idle", shared, f->h->pus);
}

static bool find_migrations(const struct advice_facts *f, char *out, size_t size)
{
	double moves = f->tasks && facts_at_pus(f, MIGRATIONS) ? advice_free_moves(f) : total_of(f, MIGRATIONS);
	unsigned active = count_cores(f, ACTIVE);

	if (has(f, SWITCHES) && find_too_many(f, out, size))
		return false;
	return active && moves * f->seconds >= MOVES_LEAST && moves / active >= MOVES &&
		SAY("threads moved between PUs %.0f times, %.1f times a second", moves * f->seconds, moves);
}

static bool find_alone(const struct advice_facts *f, char *out, size_t size)
{
	return count_cores(f, ACTIVE) > 1 && f->alone >= ALONE * f->seconds &&
		SAY("for %.0f of %.0f s only one PU worked", f->alone, f->seconds);
}

static bool find_uneven(const struct advice_facts *f, char *out, size_t size)
{
	static const char *const types[] = { "Package", "NUMANode", "L3Cache" };
	struct range r;
	char low[2 * TRACE_NAME], high[2 * TRACE_NAME];

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		int level = trace_head_level(f->h, types[i]);

		if (level < 0 || !range_find(f, &f->h->levels[level], domain_busy, &r) || r.most - r.least < UNEQUAL)
			continue;
		name_write(&f->h->levels[level], r.low, low, sizeof(low));
		name_write(&f->h->levels[level], r.high, high, sizeof(high));
		return r.most > 1 ? SAY("in the mean %.1f PUs of each core of %s were busy, %.1f of each core of %s",
					r.most, high, r.least, low) :
				    SAY("the cores of %s were busy for %.0f %% of the time, those of %s for %.0f %%",
					high, 100 * r.most, low, 100 * r.least);
	}
	return false;
}

static double active_busy(const struct advice_facts *f, const struct trace_object *o)
{
	double busy = busy_of(f, o);

	return busy >= ACTIVE ? busy : NAN;
}

/* While one PU worked alone, it was not the others' work that was uneven: the busiest has that time in its own. */
static bool find_imbalance(const struct advice_facts *f, char *out, size_t size)
{
	double alone = f->alone / f->seconds;
	struct range r;

	return range_find(f, pus_of(f), active_busy, &r) && r.most >= WORKING &&
		r.mean - alone / r.n < (1 - UNEQUAL / 2) * (r.most - alone) &&
		SAY("the busiest PU worked for %.0f %% of the time, the mean of the %u that worked is %.0f %%",
		    100 * r.most, r.n, 100 * r.mean);
}

/* The program's own threads are few enough, and something else has the PUs. */
static bool find_starved(const struct advice_facts *f, char *out, size_t size)
{
	double waited = total_of(f, DELAY) * 1e-9;
	struct range r;

	range_find(f, pus_of(f), active_busy, &r);
	return r.n && r.mean < FULL && waited >= STARVED * r.n &&
		SAY("threads that could run waited for their PU, %.1f s in each second on a PU, and the %u PU%s that "
		    "worked did so for %.0f %% of the time", waited / r.n, r.n, PLURAL(r.n), 100 * r.mean);
}

/* A program that computes on GPUs waits for them. */
static bool find_waiting(const struct advice_facts *f, char *out, size_t size)
{
	struct range r;

	if (has(f, DELAY) && find_starved(f, out, size))
		return false;
	for (unsigned t = 0; f->tasks && t < f->tasks->n; t++)
		if (*f->tasks->list[t].gpu)
			return false;
	return range_find(f, pus_of(f), active_busy, &r) && r.mean < WAITING &&
		SAY("the %u PUs that worked did so for %.0f %% of the time, in the mean", r.n, 100 * r.mean);
}

/* Programs and mapped files are read when they are first touched: that ends. */
static bool find_disk_faults(const struct advice_facts *f, char *out, size_t size)
{
	return 2 * f->disk_faults > f->intervals &&
		SAY("%.0f page faults a second waited for a disk, in %u of %u parts of the run", total_of(f, MAJOR),
		    f->disk_faults, f->intervals);
}

static bool find_faults(const struct advice_facts *f, char *out, size_t size)
{
	double faults = total_of(f, MINOR), busy = total_of(f, BUSY) * 1e-9;

	return count_cores(f, ACTIVE) && faults * f->seconds >= FAULTS && faults / busy >= FAULTS &&
		SAY("%.0f page faults a second of run time, about %.0f %% of it", faults / busy, faults / busy * 1e-4);
}

static double far_part(const struct advice_facts *f, const struct trace_object *o)
{
	double far = rate_of(f, FAR, o), all = far + rate_of(f, NEAR, o);

	return all > 0 ? far / all : NAN;
}

static bool find_far(const struct advice_facts *f, char *out, size_t size)
{
	const struct trace_level *domains = domains_of(f);
	struct trace_object all = { .count = f->h->pus };
	struct range r;
	char worst[2 * TRACE_NAME];
	double part = 0;
	int task = advice_far_task(f, MANY_FILLS, &part);

	if (task >= 0 && part >= FAR_PART)
		return SAY("%.0f %% of the memory accesses of rank %u were to far NUMA nodes, %.0f %% of all",
			   100 * part, f->tasks->list[task].rank, 100 * far_part(f, &all));
	if (!domains || total_of(f, NEAR) + total_of(f, FAR) < MANY_FILLS || !range_find(f, domains, far_part, &r) ||
	    far_part(f, &all) < FAR_PART)
		return false;
	name_write(domains, r.high, worst, sizeof(worst));
	return SAY("%.0f %% of all memory accesses were to far NUMA nodes, %.0f %% of those from %s",
		   100 * far_part(f, &all), 100 * r.most, worst);
}

static double misses_of(const struct advice_facts *f, const struct trace_object *o)
{
	return rate_of(f, MISSES, o);
}

static bool find_bandwidth(const struct advice_facts *f, char *out, size_t size)
{
	const struct trace_level *domains = domains_of(f);
	struct range r;
	char worst[2 * TRACE_NAME];

	if (!domains || !range_find(f, domains, misses_of, &r) || r.most < MANY_FILLS || r.most < ONE_DOMAIN * r.mean)
		return false;
	name_write(domains, r.high, worst, sizeof(worst));
	return SAY("%s has %.0f %% of all cache misses, and %u domains share them", worst,
		   100 * r.most / (r.mean * r.n), r.n);
}

static double clock_of(const struct advice_facts *f, const struct trace_object *o)
{
	double busy = rate_of(f, BUSY, o);

	return busy >= WORKING * 1e9 ? rate_of(f, CYCLES, o) / busy : NAN;
}

ORDER(compare_doubles, double, COMPARE(*x, *y))

static double median_clock(const struct advice_facts *f)
{
	const struct trace_level *cores = cores_of(f);
	double *all = calloc(cores->n, sizeof(*all)), median = NAN;
	unsigned n = 0;

	for (unsigned i = 0; all && i < cores->n; i++) {
		all[n] = clock_of(f, &cores->objects[i]);
		n += !isnan(all[n]);
	}
	if (n) {
		qsort(all, n, sizeof(*all), compare_doubles);
		median = all[n / 2];
	}
	free(all);
	return median;
}

static bool find_slow_clock(const struct advice_facts *f, char *out, size_t size)
{
	const struct trace_level *cores = cores_of(f);
	double median = median_clock(f);
	struct range r;
	unsigned n = 0;
	char slow[2 * TRACE_NAME];

	for (unsigned i = 0; i < cores->n; i++)
		n += clock_of(f, &cores->objects[i]) < SLOW_CLOCK * median;
	if (!n || !range_find(f, cores, clock_of, &r) || (n > 1 && n * SLOW_CORES > r.n))
		return false;
	name_write(cores_of(f), r.low, slow, sizeof(slow));
	return SAY("%s ran at %.2f GHz, the median core at %.2f GHz", slow, r.least, median);
}

static double ipc_of(const struct advice_facts *f, const struct trace_object *o)
{
	double busy = domain_busy(f, o);

	return busy >= WORKING ? rate_of(f, INSTRUCTIONS, o) / rate_of(f, CYCLES, o) : NAN;
}

static bool find_slow_domain(const struct advice_facts *f, char *out, size_t size)
{
	const struct trace_level *domains = domains_of(f);
	struct range r;
	char low[2 * TRACE_NAME], high[2 * TRACE_NAME];

	if (!domains || !range_find(f, domains, ipc_of, &r) || r.least >= SLOW_IPC * r.most)
		return false;
	name_write(domains, r.low, low, sizeof(low));
	name_write(domains, r.high, high, sizeof(high));
	return SAY("%.2f instructions a cycle in %s, %.2f in %s", r.least, low, r.most, high);
}

static double memory_of(const struct advice_facts *f, const struct trace_object *o)
{
	return rate_of(f, MEMORY, o);
}

static bool find_one_memory(const struct advice_facts *f, char *out, size_t size)
{
	int level = trace_head_level(f->h, "NUMANode");
	struct range memory, busy;
	char name[2 * TRACE_NAME];

	if (level < 0 || !range_find(f, &f->h->levels[level], memory_of, &memory) ||
	    !range_find(f, &f->h->levels[level], domain_busy, &busy) || busy.least < WORKING ||
	    memory.most < ONE_MEMORY * memory.mean * memory.n)
		return false;
	name_write(&f->h->levels[level], memory.high, name, sizeof(name));
	return SAY("%s holds %.0f %% of the memory, and the cores of %u NUMA nodes work on it", name,
		   100 * memory.most / (memory.mean * memory.n), busy.n);
}

/* The means of those intervals in which at least and at most so many cores worked. */
struct part_of_run {
	double cores, misses, instructions;	/* rates: a second */
	unsigned n;
};

static struct part_of_run part_find(const struct advice_facts *f, double least, double most)
{
	struct part_of_run p = {0};

	for (const struct advice_interval *i = f->each; i < f->each + f->intervals; i++)
		if (i->working >= least && i->working <= most) {
			p.n++;
			p.cores += (i->working - p.cores) / p.n;
			p.misses += (i->misses / f->length - p.misses) / p.n;
			p.instructions += (i->instructions / f->length - p.instructions) / p.n;
		}
	return p;
}

/* Where memory is the limit: the same instructions and the same misses a second, by fewer cores in parts of the run. */
static bool find_fewer(const struct advice_facts *f, char *out, size_t size)
{
	struct part_of_run many, few;
	unsigned most = 0;

	for (unsigned i = 0; i < f->intervals; i++)
		most = f->each[i].working > most ? f->each[i].working : most;
	many = part_find(f, MANY_CORES * most, most);
	few = part_find(f, fmax(1, FEW_CORES * most), FEWER_CORES * most);
	return fmin(many.n, few.n) >= fmax(INTERVALS_LEAST, f->intervals / 10) &&
		many.misses >= MANY_FILLS * many.cores && few.misses >= AS_MUCH * many.misses &&
		few.instructions >= AS_MUCH * many.instructions &&
		SAY("with %.0f cores working, %.0f %% of the instructions and %.0f %% of the cache misses a second "
		    "with %.0f", few.cores, 100 * few.instructions / many.instructions, 100 * few.misses / many.misses,
		    many.cores);
}

#define OF_TASKS TASKS, TASKS, TASKS	/* and of no event */

static const struct rule {
	const char *kind;
	enum advice_role needs[3];	/* what is not given is BUSY */
	bool (*find)(const struct advice_facts *f, char *out, size_t size);
	const char *remedy;
} rules[] = {
	{ "far GPU", { OF_TASKS }, advice_far_gpu, "give each rank the GPU near its cores: --topo-tasks=auto" },
	{ "far NIC", { OF_TASKS }, advice_far_nic,
	  "give each rank the device near its cores: --topo-nic=auto, and leave the variable unset" },
	{ "shared cores", { OF_TASKS }, advice_shared_cores,
	  "bind each rank to cores of its own: --topo-place=compact" },
	{ "outside threads", { BUSY, TASKS }, advice_outside,
	  "keep threads on their rank's cores: --topo-omp=auto, or correct the program's own binding" },
	{ "far policy", { OF_TASKS }, advice_far_policy, "keep memory where the rank runs: --topo-membind=local" },
	{ "idle cores", { BUSY }, find_idle,
	  "request fewer cores (-n, -c), or start a thread on each: --topo-omp=auto" },
	{ "siblings", { BUSY }, find_siblings,
	  "one thread a core: --hint=nomultithread, or --topo-place=scatter:core" },
	{ "shared PU", { BUSY, SWITCHES }, find_shared, "bind each task to cores of its own: --topo-place=compact" },
	{ "more threads than PUs", { BUSY, SWITCHES }, find_too_many,
	  "run as many threads as cores (--topo-omp=auto), request more (-n, -c), or see what else runs on them" },
	{ "migrations", { BUSY, MIGRATIONS }, find_migrations,
	  "bind tasks and threads: --topo-place=compact --topo-omp=auto" },
	{ "serial part", { BUSY }, find_alone, "run that part in parallel, or as a step with fewer cores" },
	{ "uneven domains", { BUSY }, find_uneven, "place the tasks evenly: --topo-place=scatter" },
	{ "load imbalance", { BUSY }, find_imbalance, "divide the work evenly, or give slow tasks more threads" },
	{ "starved", { BUSY, DELAY }, find_starved,
	  "other programs run on these PUs: --exclusive, or have the administrator look for them" },
	{ "waiting", { BUSY }, find_waiting,
	  "look at communication, I/O and other programs on these cores; fewer cores may do as well" },
	{ "disk faults", { BUSY, MAJOR }, find_disk_faults,
	  "if memory was short, request more: --mem; if files are mapped, read them from a faster file system" },
	{ "page faults", { BUSY, MINOR }, find_faults, "use large pages: --topo-hugepages=thp" },
	{ "far memory", { NEAR, FAR, FAR }, find_far,
	  "keep memory where the task runs: --topo-place=compact --topo-membind=bind" },
	{ "bandwidth", { BUSY, MISSES }, find_bandwidth,
	  "use the memory of all domains: --topo-fit=spread, --topo-place=scatter" },
	{ "slow clock", { BUSY, CYCLES }, find_slow_clock,
	  "have the administrator check the core; --exclude the node meanwhile" },
	{ "slow domain", { BUSY, CYCLES, INSTRUCTIONS }, find_slow_domain,
	  "look at its memory and its neighbours: --topo-membind=bind, --exclusive" },
	{ "one NUMA node", { BUSY, MEMORY }, find_one_memory,
	  "let each task touch its memory first, or --topo-membind=interleave" },
	{ "fewer cores", { BUSY, MISSES, INSTRUCTIONS }, find_fewer,
	  "fewer cores do as well (-n, -c), or use the memory of more NUMA nodes: --topo-fit=spread" },
};

#define RULES (sizeof(rules) / sizeof(rules[0]))

struct advice *advice_list(const struct advice_node *node, unsigned *n, struct err *e)
{
	struct advice *list = calloc(RULES, sizeof(*list));
	struct advice_facts f;

	if (!list)
		return err_null(e, "out of memory");
	if (facts_read(&f, node, e)) {
		free(list);
		return NULL;
	}
	if (node->sums) {
		node->sums->busy = has(&f, BUSY) ? cores_busy(&f) : NAN;
		node->sums->clock = has(&f, BUSY) && has(&f, CYCLES) ? median_clock(&f) : NAN;
	}
	for (*n = 0; *n < RULES; ++*n) {
		const struct rule *r = &rules[*n];
		struct advice *out = &list[*n];

		*out = (struct advice){ .kind = r->kind, .remedy = r->remedy };
		for (size_t i = 0; i < sizeof(r->needs) / sizeof(r->needs[0]) && out->result != ADVICE_UNKNOWN; i++)
			if (!has(&f, r->needs[i])) {
				out->result = ADVICE_UNKNOWN;
				snprintf(out->evidence, sizeof(out->evidence), "%s",
					 node->lack && r->needs[i] != TASKS ? node->lack : role_names[r->needs[i]]);
			}
		if (out->result != ADVICE_UNKNOWN && r->find(&f, out->evidence, sizeof(out->evidence)))
			out->result = ADVICE_FOUND;
		if (r->find == advice_far_gpu && f.tasks && f.tasks->n && f.tasks->list[0].by_gpu)
			out->remedy = advice_lacks_cores(&f) ?
				"let the step have cores near each GPU: srun without -c and --exact has all of the "
				"job's" :
				"request cores near each GPU: --gres-flags=enforce-binding, or --exclusive";
		if (r->find == find_migrations && f.tasks && f.tasks->n)
			out->remedy = "bind the threads of each rank: --topo-omp=auto";
		if (out->result == ADVICE_FOUND && r->find == find_disk_faults && has(&f, SWAPPED))
			out->remedy = 2 * total_of(&f, SWAPPED) >= total_of(&f, MAJOR) ?
				"memory was short, and pages were swapped in: request more: --mem" :
				"the pages are of mapped files, not swapped: read them from a faster file system";
	}
	facts_free(&f);
	return list;
}
