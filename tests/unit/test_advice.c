/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors
 *
 * Made traces of programs whose placement has one fault, and of others that have none: advice finds the fault, and none
 * in the others. Programs are drawn from what recorded ones do, and faults from mild to extreme, without regard to the
 * rules' limits.
 */
#include <math.h>
#include <sys/mman.h>

#include "topology.h"
#include "table.h"
#include "trace/advice.h"
#include "trace/writer.h"

OWNS(struct trace *, trace_close)

#define TRACES 1000u /* with a fault, and as many without */
#define SECOND 1e9

enum { BUSY, SWITCHES, MIGRATIONS, MINOR, MAJOR, CYCLES, INSTRUCTIONS, MISSES, NEAR, FAR, MEMORY, DELAY, SWAPPED,
       EVENTS };
static const struct {
	const char *name, *level;
	enum trace_kind kind;
} events[EVENTS] = {
	{ "busy", "PU", TRACE_COUNTER },
	{ "context_switches", "PU", TRACE_COUNTER },
	{ "migrations", "PU", TRACE_COUNTER },
	{ "minor_faults", "PU", TRACE_COUNTER },
	{ "major_faults", "PU", TRACE_COUNTER },
	{ "cycles", "PU", TRACE_COUNTER },
	{ "instructions", "PU", TRACE_COUNTER },
	{ "l3_misses", "PU", TRACE_COUNTER },
	{ "near_fills", "PU", TRACE_COUNTER },
	{ "far_fills", "PU", TRACE_COUNTER },
	{ "memory_used", "NUMANode", TRACE_GAUGE },
	{ "run_delay", "Machine", TRACE_COUNTER },
	{ "swapped_in", "Machine", TRACE_COUNTER },
};

/* All but the last have several NUMA nodes, and the first three SMT. */
static const char *const machines[] = {
	"Package:2 [NUMANode] L3Cache:2 Core:4 PU:2", "Package:1 NUMANode:2 L3Cache:2 Core:2 PU:2",
	"Package:2 [NUMANode] L3Cache:1 Core:8 PU:2", "Package:2 NUMANode:2 L3Cache:2 Core:4 PU:1",
	"Package:2 [NUMANode] L3Cache:1 Core:6 PU:1", "Package:1 [NUMANode] L3Cache:1 Core:8 PU:1",
};
enum { SMT = 3, SEVERAL = 5 };

/* What is planted: its name in advice, and how many of the machines, the first ones, can have it. */
#define ALL ROWS(machines)
#define FAULT_LIST(X) \
	X(CLEAN, "", ALL) \
	X(IDLE, "idle cores", ALL) \
	X(SIBLINGS, "siblings", SMT) \
	X(SHARED, "shared PU", ALL) \
	X(MOVING, "migrations", ALL) \
	X(SERIAL, "serial part", ALL) \
	X(UNEVEN, "uneven domains", SEVERAL) \
	X(IMBALANCE, "load imbalance", ALL) \
	X(WAITING, "waiting", ALL) \
	X(DISK_FAULTS, "disk faults", ALL) \
	X(FAULTING, "page faults", ALL) \
	X(FAR_MEMORY, "far memory", SEVERAL) \
	X(BANDWIDTH, "bandwidth", SEVERAL) \
	X(SLOW_CLOCK, "slow clock", ALL) \
	X(SLOW_DOMAIN, "slow domain", SEVERAL) \
	X(ONE_NUMA_NODE, "one NUMA node", SEVERAL) \
	X(FEWER_CORES, "fewer cores", ALL) \
	X(FAR_GPU, "far GPU", ALL) \
	X(FAR_NIC, "far NIC", ALL) \
	X(SHARED_CORES, "shared cores", ALL) \
	X(OUTSIDE, "outside threads", ALL) \
	X(FAR_POLICY, "far policy", SEVERAL) \
	X(TOO_MANY, "more threads than PUs", ALL) \
	X(STARVED, "starved", ALL) \
	/* What looks like a fault and is none. */ \
	X(COLD_FILES, "", ALL) \
	X(SHORT_SERIAL, "", ALL) \
	X(KINDS_OF_CORES, "", ALL) \
	X(GPU_HOST, "", ALL) \
	X(ASLEEP, "", ALL)

#define FAULT_NAME(name, kind, machines) name,
#define FAULT_ROW(name, kind, machines) [name] = { kind, machines },
enum fault { FAULT_LIST(FAULT_NAME) FAULTS };
static const struct {
	const char *kind;
	unsigned nmachines;
} faults[FAULTS] = { FAULT_LIST(FAULT_ROW) };

static double between(double low, double high)
{
	return low + (high - low) * drand48();
}

/* From low to high, each order of magnitude as often. */
static double magnitude(double low, double high)
{
	return low * pow(high / low, drand48());
}

static unsigned below(unsigned n)
{
	return drand48() * n;
}

/* --- a program: what each PU does in a second while it works */

enum { PUS = 64 };
struct program {
	double busy[PUS], switches[PUS], clock[PUS], ipc[PUS], misses[PUS], far[PUS], memory[PUS];
	double moves, minor, major, phases; /* phases: part of the ticks in which all wait for I/O */
	double cold;			    /* part of the ticks that has the major faults; 0: all */
	double serial;			    /* part of the ticks in which PU 0 works alone */
	double delay, swapped;		    /* seconds a PU that works, a second; a part of the major faults */
	double halved, half_rate;	    /* part in which half of the cores work, each so many times as much */
};

static const struct trace_level *level_of(const struct trace_head *h, const char *type)
{
	return &h->levels[trace_head_level(h, type)];
}

/* One thread for each core or for each PU; ranks compute, or wait for each other in the kernel, a little. */
static void program_make(struct program *p, const struct trace_head *h)
{
	const struct trace_level *cores = level_of(h, "Core"), *numas = level_of(h, "NUMANode");
	bool every_pu = below(2), blocks = below(3) == 0;
	double busy = blocks ? between(0.7, 0.9) : between(0.93, 1), uneven = between(0, 0.03);
	double ghz = between(2, 3.6);
	double ipc = magnitude(0.3, 3), misses = magnitude(1e4, 3e7), far = between(0, 0.08),
	       memory = magnitude(1e8, 1e11);

	*p = (struct program){ .halved = below(3) ? 0 : between(0.05, 0.15),
			       .half_rate = between(0.9, 1.1),
			       .phases = below(2) * between(0, 0.1),
			       .moves = below(2) * between(0, 0.02),
			       .minor = magnitude(1, 5000) };
	for (unsigned c = 0; c < cores->n; c++)
		for (unsigned i = 0; i < (every_pu ? cores->objects[c].count : 1); i++) {
			unsigned pu = cores->objects[c].first + i;

			p->busy[pu] = fmin(1, busy * (1 - uneven * between(0, 2)));
			p->switches[pu] = blocks ? magnitude(50, 2000) : between(0, 8);
			p->clock[pu] = ghz * between(0.96, 1);
			p->ipc[pu] = ipc * between(0.9, 1.1);
			p->misses[pu] = misses * between(0.8, 1.2);
			p->far[pu] = numas->n > 1 ? far * between(0.5, 1.5) : 0;
		}
	for (unsigned i = 0; i < numas->n; i++)
		p->memory[i] = memory * between(0.7, 1.3);
}

static void core_stop(struct program *p, const struct trace_object *core)
{
	for (unsigned i = core->first; i < core->first + core->count; i++)
		p->busy[i] = p->switches[i] = 0;
}

/* Some cores stop; half of the others at most have what they did: another thread on the core, or on the same PU. */
static void threads_move(struct program *p, const struct trace_level *cores, bool to_sibling)
{
	unsigned n = 1 + below(cores->n / 2), from = below(cores->n);

	for (unsigned i = 0; i < n; i++) {
		const struct trace_object *core = &cores->objects[(from + i) % cores->n];
		unsigned pu = cores->objects[(from + n + i) % cores->n].first;

		core_stop(p, core);
		p->busy[pu] = fmax(p->busy[pu], between(0.97, 1));
		if (to_sibling) {
			p->busy[pu + 1] = p->busy[pu] * between(0.97, 1);
			p->clock[pu + 1] = p->clock[pu];
		} else {
			p->switches[pu] = magnitude(60, 400);
		}
	}
}

/* All PUs below an object of the level, by a factor. */
static void domain_scale(const struct trace_head *h, const char *type, double *value, double by)
{
	const struct trace_level *l = level_of(h, type);
	const struct trace_object *o = &l->objects[below(l->n)];

	for (unsigned i = o->first; i < o->first + o->count; i++)
		value[i] *= by;
}

static void pus_scale(double *value, double by)
{
	for (unsigned i = 0; i < PUS; i++)
		value[i] *= by;
}

static void fault_plant(struct program *p, const struct trace_head *h, enum fault fault)
{
	const struct trace_level *cores = level_of(h, "Core"), *numas = level_of(h, "NUMANode");
	const struct trace_object *one = &cores->objects[below(cores->n)];

	switch (fault) {
	case IDLE:
		for (unsigned n = 1 + below(3 * cores->n / 4), from = below(cores->n), i = 0; i < n; i++)
			core_stop(p, &cores->objects[(from + i) % cores->n]);
		break;
	case SIBLINGS:
	case SHARED:
		threads_move(p, cores, fault == SIBLINGS);
		break;
	case MOVING:
		p->moves = magnitude(1, 50);
		break;
	case SERIAL:
		p->serial = between(0.3, 0.7);
		break;
	case ASLEEP:	/* all that it does is to start */
		pus_scale(p->busy, magnitude(1e-5, 1e-3));
		break;
	case UNEVEN:
		domain_scale(h,
			     below(2)				     ? "NUMANode"
				     : level_of(h, "Package")->n > 1 ? "Package"
								     : "L3Cache",
			     p->busy, between(0.05, 0.5));
		break;
	case IMBALANCE:
		for (unsigned i = 0; i < PUS; i++)
			p->busy[i] *= i >= one->first && i < one->first + one->count ? 1 : between(0.55, 0.75);
		break;
	case WAITING:
		pus_scale(p->busy, between(0.1, 0.45));
		break;
	case STARVED:	/* by a program that is not recorded */
		pus_scale(p->busy, between(0.1, 0.8));
		p->delay = between(0.5, 3);
		break;
	case DISK_FAULTS:
	case COLD_FILES:
		p->swapped = fault == DISK_FAULTS ? below(2) : 0;
		p->major = magnitude(100, 10000);
		p->cold = fault == COLD_FILES ? between(0.05, 0.3) : 0;
		break;
	case TOO_MANY:
		for (unsigned c = 0; c < cores->n; c++)
			for (unsigned i = cores->objects[c].first, from = i; i < from + cores->objects[c].count; i++) {
				p->busy[i] = between(0.97, 1);
				p->switches[i] = magnitude(60, 400);
				p->clock[i] = p->clock[from];
				p->ipc[i] = p->ipc[from];
				p->misses[i] = p->misses[from];
			}
		p->moves = below(2) * magnitude(1, 50);
		p->phases = 0;
		break;
	case SHORT_SERIAL:
		p->serial = between(0.1, 0.2);
		break;
	case KINDS_OF_CORES:
		for (unsigned c = 0; c < cores->n; c += 3)
			for (unsigned i = cores->objects[c].first; i < trace_object_end(&cores->objects[c]); i++)
				p->clock[i] *= 0.7;
		break;
	case GPU_HOST:
		pus_scale(p->busy, between(0.1, 0.45));
		break;
	case FAULTING:
		p->minor = magnitude(40000, 500000);
		break;
	case FAR_MEMORY:
		for (unsigned i = 0; i < PUS; i++) {
			p->misses[i] = fmax(p->misses[i], 2e6);
			p->far[i] = between(0.3, 0.9);
		}
		break;
	case BANDWIDTH:
		for (unsigned i = 0; i < PUS; i++)
			p->misses[i] = p->misses[i] > 0 ? between(5e4, 2e5) : 0;
		domain_scale(h, "NUMANode", p->misses, magnitude(30, 100));
		break;
	case SLOW_CLOCK:
		for (unsigned i = one->first; i < one->first + one->count; i++)
			p->clock[i] *= between(0.4, 0.75);
		break;
	case SLOW_DOMAIN:
		domain_scale(h, "NUMANode", p->ipc, between(0.3, 0.6));
		break;
	case ONE_NUMA_NODE:
		for (unsigned i = 0, at = below(numas->n); i < numas->n; i++)
			p->memory[i] = i == at ? 1e10 : magnitude(1e6, 1e8);
		break;
	case FEWER_CORES:
		for (unsigned i = 0; i < PUS; i++)
			p->misses[i] = fmax(p->misses[i], 2e6);
		p->halved = between(0.3, 0.6);
		p->half_rate = between(1.97, 2.1);
		break;
	default:
		break;
	}
}

/* --- where its ranks were */

static void list_add(char *list, long value)
{
	sprintf(list + strlen(list), "%s%ld", *list ? "," : "", value);
}

/* A rank on some of the cores, consecutive ones. */
static void rank_write(FILE *to, const struct trace_head *h, unsigned rank, unsigned first, unsigned n,
		       enum fault fault)
{
	static const char *const gpus[] = { "", "0 near", "0 near,1 far", "2" };
	const struct trace_level *cores = level_of(h, "Core"), *pus = level_of(h, "PU"),
				 *numas = level_of(h, "NUMANode");
	char core_list[512] = "", pu_list[1024] = "", numa_list[128] = "", memory[256] = "default";
	long other = 0;

	for (unsigned c = first; c < first + n; c++) {
		list_add(core_list, cores->objects[c].index);
		for (unsigned i = cores->objects[c].first; i < cores->objects[c].first + cores->objects[c].count; i++)
			list_add(pu_list, pus->objects[i].os_index);
	}
	for (unsigned i = 0; i < numas->n; i++) {
		const struct trace_object *o = &numas->objects[i];
		unsigned pu = cores->objects[first].first, end = cores->objects[first + n - 1].first;

		if (o->first <= end && o->first + o->count > pu)
			list_add(numa_list, o->os_index);
		else
			other = o->os_index;
	}
	if (below(2))
		sprintf(memory, "bind:%s", numa_list);
	if (fault == FAR_POLICY)
		sprintf(memory, "bind:%ld", other);
	fprintf(to, "{\"rank\":%u,\"cores\":\"%s\",\"cpus_os\":\"%s\",\"numa\":\"%s\",", rank, core_list, pu_list,
		numa_list);
	fprintf(to, "\"memory\":\"%s\",\"gpu\":\"%s\",", memory,
		fault == FAR_GPU    ? (below(2) ? "1 far" : "2 far,3 far")
		: fault == GPU_HOST ? "0 near"
		: fault == WAITING  ? ""
				    : gpus[below(ROWS(gpus))]);
	fprintf(to, "\"nic_far\":%s}\n", fault == FAR_NIC ? "\"mlx5_0 (mlx5_1 is near)\"" : "null");
}

/* One to as many as there are cores, with equal shares of them. Of a fault, some ranks have it. */
static struct trace_tasks *tasks_make(const struct trace_head *h, enum fault fault)
{
	const struct trace_level *cores = level_of(h, "Core"), *numas = level_of(h, "NUMANode");
	unsigned least = fault == SHARED_CORES || fault == OUTSIDE ? 2 : fault == FAR_POLICY ? numas->n : 1;
	unsigned share, ranks, bad;
	int fd = memfd_create("tasks", MFD_CLOEXEC);
	FILE *to = fdopen(fd, "w");
	struct trace_tasks *t;
	char path[64];

	do
		share = 1 + below(cores->n);
	while (cores->n % share || cores->n / share < least || cores->n / share % least ||
	       (fault == MOVING && share == 1));
	ranks = cores->n / share;
	bad = below(ranks);
	fprintf(to, "{\"tasks\":1,\"step\":\"7.0\",\"node\":\"cn1\",\"nodes\":1,\"cores\":\"0-%u\"}\n", cores->n - 1);
	for (unsigned i = 0; i < ranks; i++) {
		bool is_bad = i == bad || fault == WAITING || (fault && below(3) == 0);

		if (fault == OUTSIDE && i == bad)
			continue;
		rank_write(to, h, i, (fault == SHARED_CORES && i == bad ? (i + 1) % ranks : i) * share, share,
			   is_bad ? fault : CLEAN);
	}
	fflush(to);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_made(t = trace_tasks_read(path, &err));
	fclose(to);
	return t;
}

/* --- its trace */

static double some(double rate, double seconds)
{
	/* Rare events happen or not; of many, about as many as expected. */
	double n = rate * seconds;

	return n > 50 ? n * between(0.9, 1.1) : (unsigned) (n + drand48());
}

enum who { EVERYBODY, ALONE, HALF };

static void tick_make(const struct program *p, const struct trace_head *h, double seconds, double load, bool first,
		      enum who who, double major, uint64_t *values)
{
	double rate = who == HALF ? p->half_rate : 1, delay = 0, from_disk = 0;

	for (unsigned i = 0; i < h->pus; i++) {
		double works = (who == ALONE ? i == 0 : who == HALF ? i < h->pus / 2 : 1) * load;
		double busy = fmin(1, p->busy[i] * works * between(0.98, 1)) * seconds;
		double cycles = busy * p->clock[i] * 1e9, misses = p->misses[i] * busy * rate;
		double value[EVENTS] = {
			[BUSY] = busy * SECOND,
			[SWITCHES] = some(p->switches[i], seconds * works),
			[MIGRATIONS] = busy > 0 ? some(p->moves, seconds) : 0,
			[MINOR] = busy > 0 ? some(p->minor, busy) + (first ? magnitude(100, 50000) : 0) : 0,
			[MAJOR] = busy > 0 ? some(major / h->pus, seconds) + (first ? below(3) : 0) : 0,
			[CYCLES] = cycles,
			[INSTRUCTIONS] = cycles * p->ipc[i] * rate * between(0.97, 1.03),
			[MISSES] = misses,
			[NEAR] = misses * (1 - p->far[i]),
			[FAR] = misses * p->far[i],
		};

		for (unsigned x = 0; x < MEMORY; x++)
			values[h->events[x].column + i] = value[x];
		delay += busy > 0 ? (p->delay + between(0, 0.02)) * seconds : 0;
		from_disk += value[MAJOR];
	}
	values[h->events[DELAY].column] = delay * SECOND;
	values[h->events[SWAPPED].column] = from_disk * p->swapped;
	for (unsigned i = 0; i < h->levels[h->events[MEMORY].level].n; i++)
		values[h->events[MEMORY].column + i] = p->memory[i] * between(0.98, 1.02);
}

/* Of all PUs of a machine, or of some. */
static struct trace_head head_make(const char *machine, hwloc_const_bitmap_t pus)
{
	struct trace_head h = { .node = "cn1", .period = SECOND };
	OWNED(hwloc_topology_destroy) hwloc_topology_t t = synthetic_load(machine);

	assert_int_equal(trace_head_tree(&h, t, pus, &err), 0);
	assert_non_null(h.events = calloc(EVENTS, sizeof(*h.events)));
	for (; h.nevents < EVENTS; h.nevents++) {
		struct trace_event *x = &h.events[h.nevents];

		strcpy(x->name, events[h.nevents].name);
		x->kind = events[h.nevents].kind;
		x->level = trace_head_level(&h, events[h.nevents].level);
	}
	assert_ok(trace_head_check(&h, &err));
	return h;
}

enum { TICKS = 90 };
struct run {
	const struct trace_head *h;
	unsigned ticks;
	uint64_t end[TICKS], *values;	/* values[tick * columns + column] */
};

/* The program starts within the first second and ends within the last one. */
static void run_make(struct run *r, const struct trace_head *h, const struct program *p)
{
	unsigned serial, halved;
	uint64_t now = 0;

	*r = (struct run){ .h = h, .ticks = 20 + below(TICKS - 20) };
	assert_non_null(r->values = calloc((size_t) r->ticks * h->columns, sizeof(*r->values)));
	serial = p->serial * r->ticks;
	halved = p->halved * r->ticks;
	for (unsigned tick = 0; tick < r->ticks; tick++) {
		double seconds = between(0.97, 1.03), load = !tick || tick == r->ticks - 1 ? between(0.3, 1) : 1;

		if (drand48() < p->phases)
			load *= between(0.3, 0.6);
		r->end[tick] = now += seconds * SECOND;
		tick_make(p, h, seconds, load, !tick,
			  tick > 1 && tick <= serial + 1		  ? ALONE
			  : tick > serial + 1 && tick <= serial + halved + 1 ? HALF
									     : EVERYBODY,
			  !p->cold || tick < p->cold * r->ticks ? p->major : 0, r->values + tick * h->columns);
	}
}

/*
 * What one of several recorders, each on a part of the PUs, writes of it, where `ranks` share the memory of each NUMA
 * node.
 */
static struct trace *run_trace(const struct run *r, struct trace_head *h, unsigned ranks, unsigned recorders)
{
	int fd = memfd_create("advice", MFD_CLOEXEC), copy = dup(fd);
	OWNED(free) uint64_t *values = calloc(h->columns, sizeof(*values));
	struct trace_writer *w = trace_writer_new(fd, "made", h, &err);
	struct trace *t;

	assert_non_null(w);
	for (unsigned tick = 0; tick < r->ticks; tick++) {
		for (unsigned x = 0; x < EVENTS; x++) {
			const struct trace_level *l = &h->levels[h->events[x].level];

			for (unsigned i = 0; i < l->n; i++)
				values[h->events[x].column + i] =
					r->values[tick * r->h->columns + r->h->events[x].column + l->objects[i].index] /
					(x == MEMORY ? ranks : x > MEMORY ? recorders : 1);
		}
		assert_int_equal(trace_writer_tick(w, r->end[tick], values, &err), 0);
	}
	assert_int_equal(trace_writer_close(w, &err), 0);
	assert_made(t = trace_open_fd(copy, "made", &err));
	return t;
}

struct score {
	unsigned made, found, others;
};

static void one_trace(enum fault fault, struct score *score)
{
	FREED(trace_head_free) struct trace_head h = head_make(machines[below(faults[fault].nmachines)], NULL);
	struct program p;
	struct run r;
	OWNED(trace_close) struct trace *t;
	struct trace_tasks *tasks;
	OWNED(free) struct advice *list;
	unsigned n;

	program_make(&p, &h);
	fault_plant(&p, &h, fault);
	tasks = tasks_make(&h, fault);
	/* Of ranks with one core each it is other programs that move. */
	if (!*faults[fault].kind && hwloc_bitmap_weight(tasks->list[0].cores) == 1)
		fault_plant(&p, &h, MOVING);
	run_make(&r, &h, &p);
	t = run_trace(&r, &h, 1, 1);
	free(r.values);
	assert_made(list = advice_list(&(struct advice_node){ &t, &(const char *){ "made" }, 1, tasks, NULL, NULL }, &n,
				       &err));
	score->made++;
	for (unsigned i = 0; i < n; i++) {
		bool planted = !strcmp(list[i].kind, faults[fault].kind);

		assert_int_not_equal(list[i].result, ADVICE_UNKNOWN);
		/* A starved program does not wait for others, and only memory that was swapped lacks. */
		assert_false(fault == STARVED && !strcmp(list[i].kind, "waiting") && list[i].result == ADVICE_FOUND);
		if (fault == DISK_FAULTS && planted && list[i].result == ADVICE_FOUND)
			assert_int_equal(!!strstr(list[i].remedy, "--mem"), p.swapped > 0);
		/* Ranks that are bound need no other place. */
		if (fault == MOVING && planted && list[i].result == ADVICE_FOUND)
			assert_null(strstr(list[i].remedy, "--topo-place"));
		score->found += planted && list[i].result == ADVICE_FOUND;
		score->others += !planted && list[i].result == ADVICE_FOUND;
		if (!*faults[fault].kind && list[i].result == ADVICE_FOUND)
			print_message("false: %s: %s\n", list[i].kind, list[i].evidence);
	}
	trace_tasks_free(tasks);
}

TEST(finds_what_was_planted)
{
	struct score score[FAULTS] = { { 0 } }, all = { 0 }, clean = { 0 };

	srand48(20160816);
	for (unsigned i = 0; i < TRACES; i++) {
		one_trace(1 + i % (FAULTS - 1), &score[1 + i % (FAULTS - 1)]);
		one_trace(CLEAN, &score[CLEAN]);
	}
	print_message("%-22s %6s %6s %s\n", "planted", "traces", "found", "other findings");
	for (unsigned i = 0; i < FAULTS; i++) {
		bool is_clean = !*faults[i].kind;

		print_message("%-22s %6u %6u %6u\n", is_clean ? "nothing" : faults[i].kind, score[i].made,
			      score[i].found, score[i].others);
		all.made += is_clean ? 0 : score[i].made;
		all.found += score[i].found;
		clean.made += is_clean ? score[i].made : 0;
		clean.others += is_clean ? score[i].others : 0;
	}
	assert_true(all.found >= 0.99 * all.made);
	assert_true(clean.others <= 0.01 * clean.made);
}

/* Each rank of a step has a trace of the cores that it is bound to: together they are as one of all of them. */
TEST(ranks_are_one_program)
{
	srand48(7);
	for (unsigned i = 0; i < 200; i++) {
		enum fault fault = i % FAULTS;
		const char *machine = machines[below(faults[fault].nmachines)];
		struct trace_head h = head_make(machine, NULL), part[4];
		unsigned ranks = 2 + below(2) * 2, n, nparts;
		const char *names[] = { "a", "b", "c", "d" };
		OWNED(free) struct advice *whole, *parts;
		struct trace *t, *each[4];
		struct program p;
		struct run r;

		program_make(&p, &h);
		fault_plant(&p, &h, fault);
		run_make(&r, &h, &p);
		t = run_trace(&r, &h, 1, 1);
		for (unsigned k = 0; k < ranks; k++) {
			OWNED(hwloc_bitmap_free) hwloc_bitmap_t pus = hwloc_bitmap_alloc();

			hwloc_bitmap_set_range(pus, k * h.pus / ranks, (k + 1) * h.pus / ranks - 1);
			part[k] = head_make(machine, pus);
			each[k] = run_trace(&r, &part[k], 1 + (ranks - 1) / level_of(&h, "NUMANode")->n, ranks);
		}
		whole = advice_list(&(struct advice_node){ &t, names, 1, NULL, NULL, NULL }, &n, &err);
		parts = advice_list(&(struct advice_node){ each, names, ranks, NULL, NULL, NULL }, &nparts, &err);
		assert_ok(!whole || !parts || n != nparts);
		for (unsigned k = 0; k < n; k++)
			if (whole[k].result != parts[k].result)
				fail_msg("%s: %s: '%s', '%s'", machine, whole[k].kind, whole[k].evidence,
					 parts[k].evidence);
		free(r.values);
		trace_close(t);
		trace_head_free(&h);
		for (unsigned k = 0; k < ranks; k++) {
			trace_close(each[k]);
			trace_head_free(&part[k]);
		}
	}
}

TEST(traces_must_belong_together)
{
	static const struct { const char *node, *event; int64_t start; const char *error; } rows[] = {
		{ "cn1", "busy", 0, NULL },
		{ "cn2", "busy", 0, "b: it is of node cn2, and a of cn1" },
		{ "cn1", "idle", 0, "b: it has other events than a" },
		{ "cn1", "busy", 1000 * (int64_t) SECOND, "b: it was recorded at another time than the others" },
	};
	static const char *const names[] = { "a", "b" };
	FREED(trace_head_free) struct trace_head a = head_make(machines[0], NULL);
	struct program p;
	struct run r;

	program_make(&p, &a);
	run_make(&r, &a, &p);
	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(trace_head_free) struct trace_head b = head_make(machines[0], NULL);
		struct trace *t[2] = { run_trace(&r, &a, 1, 1) };
		OWNED(free) struct advice *list;
		struct err e = { "" };
		unsigned n;

		strcpy(b.node, rows[i].node);
		strcpy(b.events[0].name, rows[i].event);
		b.start = rows[i].start;
		t[1] = run_trace(&r, &b, 1, 1);
		list = advice_list(&(struct advice_node){ .traces = t, .names = names, .n = 2 }, &n, &e);
		assert_int_equal(!list, rows[i].error != NULL);
		if (rows[i].error)
			assert_string_equal(e.text, rows[i].error);
		trace_close(t[0]);
		trace_close(t[1]);
	}
	free(r.values);
}

/*
 * The experiment of Denoyelle, Goglin and Jeannot, section 5 (bench/walk.c): threads with small and large
 * lists on two packages. Packed, each cache has one kind, and that with the large lists more than twice the misses of
 * either cache when threads are scattered: this is found, and the scattered run has nothing.
 */
TEST(scattered_or_packed)
{
	static const struct { double small, large; bool is_packed; } rows[] = {
		{ 3e6, 9e6, false }, { 2e4, 14e6, true },
	};
	FREED(trace_head_free) struct trace_head h = head_make("Package:2 [NUMANode] L3Cache:1 Core:4 PU:1", NULL);

	srand48(2016);
	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(trace_close) struct trace *t;
		OWNED(free) struct advice *list;
		struct program p;
		struct run r;
		unsigned n;

		program_make(&p, &h);
		p.halved = 0;
		for (unsigned pu = 0; pu < h.pus; pu++) {
			bool is_large = rows[i].is_packed ? pu >= h.pus / 2 : pu % 2;

			p.misses[pu] = is_large ? rows[i].large : rows[i].small;
		}
		run_make(&r, &h, &p);
		t = run_trace(&r, &h, 1, 1);
		list = advice_list(&(struct advice_node){ &t, &(const char *){ "walk" }, 1, NULL, NULL, NULL }, &n,
				   &err);
		assert_non_null(list);
		for (unsigned k = 0; k < n; k++) {
			bool is_due = rows[i].is_packed && !strcmp(list[k].kind, "bandwidth");

			assert_int_equal(list[k].result == ADVICE_FOUND, is_due);
			assert_true(!is_due || (strstr(list[k].evidence, "NUMANode 1 has 100 %") &&
						strstr(list[k].remedy, "--topo-place=scatter")));
		}
		free(r.values);
	}
}

TESTS_MAIN(NULL, NULL)
