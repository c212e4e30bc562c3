/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "replay/audit.h"

#include <stdarg.h>

#include "base/array.h"
#include "base/core_set.h"
#include "base/number.h"
#include "base/order.h"
#include "shape/hostlist.h"

#define NODE_SHARES 4		/* that a core may be in, before a node's jobs are not believed */

static int finding_add(struct audit_finding **list, size_t *n, const char *host, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static int finding_add(struct audit_finding **list, size_t *n, const char *host, const char *fmt, ...)
{
	struct audit_finding *f = NULL;
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (size_t i = 0; i < *n && !f; i++)
		f = strcmp((*list)[i].text, text) ? NULL : &(*list)[i];
	if (!f && (!(f = array_add(*list, *n)) || !(f->text = strdup(text))))
		return -1;
	f->n++;
	buf_printf(&f->hosts, "%s%s", f->hosts.len ? "," : "", host);
	return f->hosts.failed ? -1 : 0;
}

/* --- what slurm.conf says of a node, and what it is --- */

static unsigned count_of(const struct audit *u, const struct cluster_kind *k, int level)
{
	return u->domains[k->index * JUDGED_LEVELS + level].n;
}

/* Adds what differs; whether Slurm's numbers of cores are those of the hardware. */
static bool node_compare_conf(struct audit *u, const struct scontrol_node *n, const struct cluster_kind *k,
			      bool *failed)
{
#define SAY(...) (*failed |= finding_add(&u->findings, &u->nfindings, n->name, __VA_ARGS__) != 0)
	const struct shape *s = k->shape;
	unsigned packages = count_of(u, k, JUDGED_PACKAGE), l3 = count_of(u, k, JUDGED_L3);
	unsigned numa = count_of(u, k, JUDGED_NUMA), threads = s->pus / s->cores;
	bool same = (unsigned long long) n->sockets * n->cores == s->cores;

	if (n->affinity)
		SAY("drained: cores of a GPU do not match the boundaries of sockets");
	if (!same)
		SAY("slurm.conf has %u x %u cores, the hardware %u: jobs are not audited", n->sockets, n->cores,
		    s->cores);
	else if (packages && n->sockets != packages)
		SAY("slurm.conf has %u sockets, the hardware %u package%s%s", n->sockets, packages, PLURAL(packages),
		    n->sockets == l3 && n->sockets == numa ? ": as many as L3 caches and NUMA nodes" :
		    n->sockets == l3 ? ": as many as L3 caches (l3cache_as_socket)" :
		    n->sockets == numa ? ": as many as NUMA nodes (numa_node_as_socket)" : "");
	if (same && s->pus == threads * s->cores && n->threads != threads)
		SAY("slurm.conf has %u thread%s per core, the hardware %u", n->threads, PLURAL(n->threads), threads);
	if (n->core_spec)
		SAY("%u core%s reserved (CoreSpecCount)", n->core_spec, PLURAL(n->core_spec));
	else if (*n->reserved)
		SAY("CPUs reserved (CPUSpecList)");
	if (same && n->core_spec && !*n->reserved)
		SAY("which cores are reserved is not shown: jobs are not audited");
	return same && n->threads && (!n->core_spec || *n->reserved);
#undef SAY
}

/* A list of CPUs as a set of cores. The number of cores, 0: not one of this node's. */
static unsigned set_parse(const char *list, unsigned threads, const struct cluster_kind *k, uint64_t *set)
{
	unsigned first, last;

	for (;; list++) {
		if (number_read_range(&list, k->shape->cores * threads - 1, &first, &last) || (*list && *list != ','))
			return 0;
		core_set_add_range(set, first / threads, last / threads - first / threads + 1);
		if (!*list)
			return core_set_count(set, k->words);
	}
}

/* Domains of the level that together have each core once; none otherwise. */
static int domains_find(const struct cluster_kind *k, int level, struct audit_domains *out)
{
	const struct shape *s = k->shape;
	const struct cluster_ranges *at = &k->at[judged_level(level)];
	bool numas = level == JUDGED_NUMA && s->numas.count;	/* with one tier of memory, others are beside it */
	size_t n = numas ? s->numas.count : at->list == at[-1].list ? 0 : at->n;
	unsigned cores = 0;

	if (!(out->list = calloc(n + 1, sizeof(*out->list))))
		return -1;
	for (size_t i = 0; i < n; i++) {
		const struct shape_domain *d = numas ? &s->domains[s->numas.domains[i]] : NULL;

		out->list[i] = d ? (struct cluster_range){ d->first, d->cores } : at->list[i];
		cores += out->list[i].cores;
	}
	out->n = cores == s->cores ? n : 0;
	return 0;
}

static int nodes_prepare(struct audit *u, struct err *e)
{
	struct cluster *c = u->cluster;
	bool failed = !(u->domains = calloc(c->nkinds * JUDGED_LEVELS + 1, sizeof(*u->domains))) ||
		!(u->node = calloc(c->n, sizeof(*u->node))) || !(u->reserved = calloc(c->n, sizeof(*u->reserved))) ||
		!(u->fill = calloc(c->n, sizeof(*u->fill)));

	for (size_t i = 0; !failed && i < c->nkinds; i++)
		for (int level = 0; level < JUDGED_LEVELS; level++)
			failed |= domains_find(&c->kinds[i], level, &u->domains[i * JUDGED_LEVELS + level]) != 0;
	for (size_t i = 0; !failed && i < c->n; i++) {
		size_t at = string_map_find(&u->s.names, c->nodes[i].name);
		const struct cluster_kind *k = c->nodes[i].kind;
		const struct scontrol_node *n = &u->s.nodes[at];

		failed |= string_map_add(&u->names, c->nodes[i].name) == STRING_MAP_NONE ||
			!(u->reserved[i] = calloc(k->words, sizeof(uint64_t)));
		if (!failed && node_compare_conf(u, n, k, &failed)) {
			u->node[i] = n;
			if (*n->reserved && !set_parse(n->reserved, n->threads, k, u->reserved[i])) {
				u->node[i] = NULL;
				failed |= finding_add(&u->findings, &u->nfindings, n->name,
						      "CPUSpecList is not a list of its CPUs: jobs are not audited");
			}
		}
	}
	return failed ? err_set(e, "out of memory") : 0;
}

/* --- the cores of jobs --- */

struct sharing {
	struct audit *u;
	unsigned job;
	const struct scontrol_share *share;
	const char *fault;
};

static int share_node(const char *name, void *user)
{
	struct sharing *s = user;
	struct audit *u = s->u;
	const struct scontrol_job *j = &u->s.jobs[s->job];
	size_t i = string_map_find(&u->names, name), known = string_map_find(&u->s.names, name);
	const struct cluster_kind *k;
	struct audit_alloc *a;

	if (known == STRING_MAP_NONE)
		s->fault = "it has a node that scontrol does not show";
	else if (i == STRING_MAP_NONE || !u->node[i])
		s->fault = "a node of it has no topology, or slurm.conf describes it otherwise";
	else if (u->fill[i]++ >= NODE_SHARES * u->cluster->nodes[i].kind->shape->cores)
		s->fault = "more jobs have cores of a node than it can have";
	if (s->fault)
		return -1;
	k = u->cluster->nodes[i].kind;
	if (!(a = array_add(u->allocs, u->nallocs)))
		return -1;
	*a = (struct audit_alloc){ .job = s->job, .node = i, .holds = j->state == JOB_HOLDS,
				   .start = j->start, .end = j->end, .gres = s->share->gres, .memory = s->share->memory,
			     .set = calloc(k->words, sizeof(uint64_t)) };
	if (!a->set)
		return -1;
	a->cores = set_parse(s->share->cpus, s->share->of_cores ? 1 : u->node[i]->threads, k, a->set);
	u->judged[s->job].nodes++;
	u->judged[s->job].cores += a->cores;
	if (!a->cores)
		s->fault = "its CPU_IDs are not CPUs of its node (22.05 prints 127 bytes of them: use --json)";
	return a->cores ? 0 : -1;
}

ORDER(by_node, struct audit_alloc, COMPARE(x->node, y->node) ?: COMPARE(x->start, y->start) ?: COMPARE(x->job, y->job))

static int jobs_prepare(struct audit *u, struct err *e)
{
	unsigned *cpus = calloc(u->s.njobs + 1, sizeof(*cpus));

	if (!cpus || !(u->judged = calloc(u->s.njobs + 1, sizeof(*u->judged))))
		return free(cpus), err_set(e, "out of memory");
	for (size_t i = 0; i < u->s.njobs; i++) {
		struct scontrol_job *j = &u->s.jobs[i];
		struct sharing s = { .u = u, .job = i, .fault = j->fault };
		size_t before = u->nallocs;

		u->running += j->state == JOB_HOLDS;
		/* It had cores, and they are not shown: what was free when others began is not known. */
		if (j->state == JOB_ENDED && !j->nshares && j->end > j->start)
			u->known_since = 0;
		if (j->state == JOB_OTHER && !j->fault)
			continue;
		if (!s.fault && !j->nshares && j->state == JOB_HOLDS)
			s.fault = "its cores are not shown: run scontrol with -d";
		for (size_t k = 0; u->cluster && !s.fault && k < j->nshares; k++) {
			struct err why = {""};

			s.share = &j->shares[k];
			if (hostlist_expand(s.share->hosts, share_node, &s, &why) && !s.fault)
				s.fault = "its Nodes are not a host list";
		}
		for (size_t k = before; k < u->nallocs; k++)
			cpus[i] += u->allocs[k].cores * u->node[u->allocs[k].node]->threads;
		/* NumCPUs may be less than its cores have threads, not more: then CPU_IDs were cut. */
		if (!s.fault && u->cluster && j->cpus > cpus[i])
			s.fault = "it has fewer CPU_IDs than CPUs (22.05 prints 127 bytes of them: use --json)";
		if (!s.fault && u->cluster && j->state == JOB_HOLDS) {
			u->judged[i].done = true;
			u->audited++;
			u->spread += j->spread;
		}
		if (s.fault && (j->state == JOB_HOLDS || j->fault) &&
		    finding_add(&u->faults, &u->nfaults, j->id, "%s", s.fault))
			return free(cpus), err_set(e, "out of memory");
	}
	free(cpus);
	if (u->nallocs)
		qsort(u->allocs, u->nallocs, sizeof(*u->allocs), by_node);
	return 0;
}

ORDER(descending, unsigned, COMPARE(*y, *x))

static unsigned touched(const struct audit_domains *d, const uint64_t *set)
{
	unsigned n = 0;

	for (size_t i = 0; i < d->n; i++)
		n += cluster_range_count(set, d->list[i]) > 0;
	return n;
}

/* The least number of domains that have so many cores of the set: those with the most first. */
static unsigned least(const struct audit_domains *d, const uint64_t *set, unsigned cores, unsigned *scratch)
{
	unsigned n = 0, sum = 0;

	for (size_t i = 0; i < d->n; i++)
		scratch[i] = cluster_range_count(set, d->list[i]);
	qsort(scratch, d->n, sizeof(*scratch), descending);
	while (n < d->n && sum < cores)
		sum += scratch[n++];
	return n;
}

/* GRES of a job on a node: "gpu:a100:2(IDX:0-1),gpu:v100:1(IDX:2),nic:1(IDX:0)". */
static void judge_gpus(const struct audit *u, const struct audit_alloc *a, struct audit_judged *v)
{
	const struct shape *s = u->cluster->nodes[a->node].kind->shape;

	for (const char *at = a->gres, *list; (at = strstr(at, "gpu")); at++) {
		size_t len = strcspn(at, "(");
		unsigned first, last;

		if ((at > a->gres && at[-1] != ',') || (at[3] != ':' && at[3] != '(') || strncmp(at + len, "(IDX:", 5))
			continue;
		for (list = at + len + 5; !number_read_range(&list, 4095, &first, &last); list += *list == ',')
			for (unsigned gpu = first; gpu <= last; gpu++) {
				const struct shape_device *d = s->devices, *end = s->ndevices ? d + s->ndevices : d;
				bool near = false;

				while (d < end && (strcmp(d->type, "GPU") || d->number != (int) gpu))
					d++;
				for (unsigned c = 0; d < end && !near && c < d->cores; c++)
					near = core_set_has(a->set, d->first + c);
				v->gpus++;
				v->gpus_unknown += d == end;
				v->gpus_far += d < end && !near;
			}
	}
}

/* The jobs on one node, by their start. held: cores of those that began before and still run. */
static int judge_node(struct audit *u, struct audit_alloc *a, size_t n, struct err *e)
{
	const struct cluster_kind *k = u->cluster->nodes[a->node].kind;
	const struct scontrol_node *node = u->node[a->node];
	unsigned words = k->words, cores = k->shape->cores, cpus = 0;
	unsigned *scratch = calloc(cores + 1, sizeof(*scratch));
	unsigned long long *promised = calloc(k->shape->numas.count + 1, sizeof(*promised));
	uint64_t *held = calloc(words * 5 + 1, sizeof(*held)), *free_set = held + words, *all = free_set + words;
	uint64_t *seen = all + words, *usable = seen + words;	/* usable: also cores reserved since the job has them */
	bool shared = false;
	size_t before = 0;

	if (!scratch || !promised || !held) {
		free(scratch), free(promised), free(held);
		return err_set(e, "out of memory");
	}
	core_set_complement(all, u->reserved[a->node], cores);
	for (size_t i = 0; i < n; i++) {
		struct audit_judged *v = &u->judged[a[i].job];
		const struct scontrol_job *j = &u->s.jobs[a[i].job];
		bool known = u->known_since && a[i].start >= u->known_since;

		for (; before < i && a[before].start < a[i].start; before++)
			for (unsigned w = 0; u->judged[a[before].job].done && w < words; w++)
				held[w] |= a[before].set[w];
		if (!a[i].holds)
			continue;
		for (unsigned w = 0; w < words; w++) {
			shared |= (seen[w] & a[i].set[w]) != 0;
			seen[w] |= a[i].set[w];
		}
		cpus += a[i].cores * node->threads;
		if (!v->done)
			continue;
		for (unsigned w = 0; w < words; w++) {
			free_set[w] = (all[w] & ~held[w]) | a[i].set[w];
			usable[w] = all[w] | a[i].set[w];
		}
		for (int level = 0; level < JUDGED_LEVELS; level++) {
			const struct audit_domains *d = &u->domains[k->index * JUDGED_LEVELS + level];
			unsigned task = j->task_cpus;

			v->had[level] += touched(d, a[i].set);
			v->need[level] += least(d, usable, a[i].cores, scratch);
			v->room[level] += least(d, free_set, a[i].cores, scratch);
			for (size_t r = 0; r < d->n && task > 1; r++) {
				v->whole[level] += cluster_range_count(a[i].set, d->list[r]) * node->threads / task;
				v->task_fits[level] |= d->list[r].cores * node->threads >= task;
			}
		}
		if (known) {
			for (size_t b = 0; b < n; b++)
				for (unsigned w = 0; b != i && a[b].start <= a[i].start &&
				     (a[b].holds || a[b].end >= a[i].start) && w < words; w++)
					free_set[w] &= ~a[b].set[w];
			for (unsigned w = 0; w < words; w++)
				free_set[w] |= a[i].set[w];
			for (int level = 0; level < JUDGED_LEVELS; level++)
				v->then[level] += least(&u->domains[k->index * JUDGED_LEVELS + level], free_set,
							a[i].cores, scratch);
		}
		judge_gpus(u, &a[i], v);
		for (unsigned m = 0; m < k->shape->numas.count; m++) {
			const struct shape_domain *d = &k->shape->domains[k->shape->numas.domains[m]];
			struct cluster_range r = { d->first, d->cores };

			if (cluster_range_count(a[i].set, r) == a[i].cores)
				promised[m] += a[i].memory;
		}
	}
	for (unsigned m = 0; m < k->shape->numas.count; m++) {
		unsigned long long has = k->shape->domains[k->shape->numas.domains[m]].memory >> 20;

		u->promised += has && promised[m] > has;
	}
	u->shared += shared;
	u->hidden += node->allocated > cpus;
	free(scratch), free(promised), free(held);
	return 0;
}

/* The leaf switches that a job of a partition could have: how many of the partition's nodes each has, descending. */
struct leaves {
	const struct slurm_parts *all;
	unsigned *sizes;
};

static int leaves_find(const struct audit *u, const char *partition, struct leaves *out)
{
	const struct slurm_parts *n = out->all = scontrol_leaves(&u->s, partition);
	bool shown = false;	/* a node in no partition has no list, as all have none where they are not shown */

	for (size_t i = 0; i < u->s.nnodes; i++)
		shown |= u->s.nodes[i].partitions != NULL;
	if (!n || !n->n)
		return 0;
	if (!(out->sizes = calloc(n->n, sizeof(*out->sizes))))
		return -1;
	for (size_t i = 0; i < u->s.nnodes; i++)
		if (n->of[i] != SLURM_PART_NONE &&
		    (!shown || !*partition || scontrol_has_partition(u->s.nodes[i].partitions, partition)))
			out->sizes[n->of[i]]++;
	qsort(out->sizes, n->n, sizeof(*out->sizes), descending);
	return 0;
}

/* By the topology of the job's partition. */
static int judge_switches(struct audit *u, struct err *e)
{
	struct { unsigned job, leaf; } key;
	struct string_map pairs = {0}, partitions = {0};
	unsigned *of = calloc(u->s.njobs + 1, sizeof(*of));	/* by job: its nodes on a known leaf switch */
	struct leaves *list = NULL, **has = calloc(u->s.njobs + 1, sizeof(struct leaves *));
	size_t n = 0;
	int rc = of && has ? 0 : -1;

	for (size_t i = 0; !rc && i < u->s.njobs; i++)
		if (u->judged[i].done && string_map_add(&partitions, u->s.jobs[i].partition) == STRING_MAP_NONE)
			rc = -1;
	if (!rc && !(list = calloc(partitions.count + 1, sizeof(*list))))
		rc = -1;
	for (size_t i = 0; !rc && i < u->s.njobs; i++) {
		size_t at = u->judged[i].done ? string_map_find(&partitions, u->s.jobs[i].partition) : STRING_MAP_NONE;

		if (at == n)
			rc = leaves_find(u, u->s.jobs[i].partition, &list[n++]);
		has[i] = at != STRING_MAP_NONE && list[at].sizes ? &list[at] : NULL;
	}
	for (size_t i = 0; !rc && i < u->nallocs; i++) {
		const struct audit_alloc *a = &u->allocs[i];
		size_t before = pairs.count;

		key.job = a->job;
		key.leaf = has[a->job] ? has[a->job]->all->of[u->node[a->node] - u->s.nodes] : SLURM_PART_NONE;
		if (key.leaf == SLURM_PART_NONE)
			continue;
		of[a->job]++;
		if (string_map_add_bytes(&pairs, &key, sizeof(key)) == STRING_MAP_NONE)
			rc = -1;
		u->judged[a->job].had[AUDIT_SWITCH] += pairs.count > before;
	}
	for (size_t i = 0; !rc && i < u->s.njobs; i++) {
		struct audit_judged *v = &u->judged[i];
		unsigned sum = 0, need = 0;

		while (has[i] && of[i] == v->nodes && need < has[i]->all->n && sum < v->nodes)
			sum += has[i]->sizes[need++];
		v->need[AUDIT_SWITCH] = sum >= v->nodes ? need : 0;
	}
	string_map_free(&pairs);
	string_map_free(&partitions);
	for (size_t i = 0; i < n; i++)
		free(list[i].sizes);
	free(list);
	free(has);
	free(of);
	return rc ? err_set(e, "out of memory") : 0;
}

static int judge(struct audit *u, struct err *e)
{
	int rc = 0;

	for (size_t i = 0, end; !rc && i < u->nallocs; i = end) {
		for (end = i; end < u->nallocs && u->allocs[end].node == u->allocs[i].node;)
			end++;
		rc = judge_node(u, &u->allocs[i], end - i, e);
	}
	if (!rc)
		rc = judge_switches(u, e);
	for (size_t i = 0; !rc && i < u->s.njobs; i++) {
		struct audit_judged *v = &u->judged[i];

		for (int level = 0; level < JUDGED_LEVELS; level++)
			if (v->task_fits[level] && u->s.jobs[i].tasks > v->whole[level])
				v->spanning[level] = u->s.jobs[i].tasks - v->whole[level];
	}
	return rc;
}

bool audit_is_split(const struct audit *u, size_t job, int level)
{
	const struct audit_judged *v = &u->judged[job];

	return v->done && v->need[level] && v->had[level] > v->need[level] &&
		(level == AUDIT_SWITCH || !u->s.jobs[job].spread);
}

struct audit_sums audit_sum(const struct audit *u, int level)
{
	struct audit_sums s = {0};

	for (size_t i = 0; i < u->s.njobs; i++) {
		const struct audit_judged *v = &u->judged[i];
		bool judged = v->done && v->need[level] && (level == AUDIT_SWITCH || !u->s.jobs[i].spread);

		s.judged += judged;
		if (judged)
			s.over[v->had[level] - v->need[level] < AUDIT_OVER ? v->had[level] - v->need[level] :
			       AUDIT_OVER - 1]++;
		s.spanning += v->done && level < JUDGED_LEVELS && v->spanning[level];
		if (!audit_is_split(u, i, level))
			continue;
		s.split++;
		if (level != AUDIT_SWITCH && v->room[level] >= v->had[level])
			s.forced++;
		else if (level != AUDIT_SWITCH && v->then[level] && v->then[level] < v->had[level])
			s.better++;
		else if (level != AUDIT_SWITCH && v->then[level])
			s.forced++;
		else
			s.unknown++;
	}
	return s;
}

int audit_run(struct audit *u, struct err *e)
{
	if ((u->cluster && nodes_prepare(u, e)) || jobs_prepare(u, e))
		return -1;
	return u->cluster ? judge(u, e) : 0;
}

void audit_free(struct audit *u)
{
	for (size_t i = 0; i < u->nallocs; i++)
		free(u->allocs[i].set);
	for (size_t i = 0; u->domains && i < u->cluster->nkinds * JUDGED_LEVELS; i++)
		free(u->domains[i].list);
	for (size_t i = 0; u->reserved && i < u->cluster->n; i++)
		free(u->reserved[i]);
	for (size_t i = 0; i < u->nfindings; i++)
		free(u->findings[i].text), buf_free(&u->findings[i].hosts);
	for (size_t i = 0; i < u->nfaults; i++)
		free(u->faults[i].text), buf_free(&u->faults[i].hosts);
	free(u->findings), free(u->faults), free(u->domains), free(u->reserved), free(u->node);
	free(u->fill), free(u->judged), free(u->allocs);
	string_map_free(&u->names);
	cluster_free(u->cluster);
	scontrol_free(&u->s);
}
