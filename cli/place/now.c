/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "now.h"

#include <pwd.h>
#include <slurm/slurm_errno.h>

#include "base/order.h"
#include "cores.h"
#include "place.h"
#include "shape/hostlist.h"

#define NEVER ((time_t) INT64_MAX)

struct adding {
	struct now *now;
	const job_info_t *job;
	uint32_t host;	/* number of the next among the job's */
};

/* Each core of a list "0-5,12" of cores, or of CPUs of which a core has so many. */
static void list_remove(uint64_t *set, const char *list, unsigned cpus, unsigned cores)
{
	unsigned from, to;

	for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		int n = sscanf(at, "%9u-%9u", &from, &to);

		for (unsigned c = from; n > 0 && c <= (n > 1 ? to : from); c++)
			if (c / cpus < cores)
				core_set_remove(set, c / cpus);
	}
}

static int holder_add(void *adding, const char *host, const char *cores, unsigned, struct err *e)
{
	struct adding *a = adding;
	size_t at = string_map_find(&a->now->names, host);
	struct now_node *node = at == STRING_MAP_NONE ? NULL : &a->now->nodes[at];
	const char *gres = a->host < a->job->gres_detail_cnt ? a->job->gres_detail_str[a->host] : NULL;
	struct now_holder *list;
	unsigned words;

	a->host++;
	if (!node || !node->shape || !*cores)
		return 0;
	/* scontrol suspend, which sets the priority to 0, frees cores but not GPUs; gang scheduling frees neither. */
	if ((a->job->job_state & JOB_STATE_BASE) == JOB_SUSPENDED && !a->job->priority)
		cores = "";
	words = core_set_words(node->shape->cores);
	if (!(list = reallocarray(node->holders, node->nholders + 1, sizeof(*list))))
		return err_set(e, "out of memory");
	node->holders = list;
	list[node->nholders] = (struct now_holder){ a->job, calloc(words, sizeof(uint64_t)), gres };
	if (!list[node->nholders].cores)
		return err_set(e, "out of memory");
	core_set_fill(list[node->nholders].cores, node->shape->cores);
	list_remove(list[node->nholders].cores, cores, 1, node->shape->cores);
	core_set_complement(list[node->nholders].cores, list[node->nholders].cores, node->shape->cores);
	list_remove(node->free, cores, 1, node->shape->cores);
	node->nholders++;
	return 0;
}

static int node_add(struct now *n, const node_info_t *info, struct err *e)
{
	struct now_node *node = &n->nodes[n->n++];
	uint32_t state = info->node_state, base = state & NODE_STATE_BASE;

	node->info = info;
	if (string_map_add(&n->names, info->name) == STRING_MAP_NONE)
		return err_set(e, "out of memory");
	node->shape = directory_shape(&n->directory, info->name);
	if (base == NODE_STATE_DOWN || base == NODE_STATE_FUTURE || base == NODE_STATE_UNKNOWN ||
	    state & (NODE_STATE_DRAIN | NODE_STATE_FAIL | NODE_STATE_MAINT | NODE_STATE_NO_RESPOND))
		node->state = NOW_DOWN;
	if (!node->shape || node->shape->cores != (unsigned) info->sockets * info->cores) {
		node->shape = NULL;
		node->state = node->state ? node->state : NOW_UNKNOWN;
		return 0;
	}
	if (!(node->free = calloc(core_set_words(node->shape->cores), sizeof(uint64_t))))
		return err_set(e, "out of memory");
	core_set_fill(node->free, node->shape->cores);
	list_remove(node->free, info->cpu_spec_list, info->threads ? info->threads : 1, node->shape->cores);
	return 0;
}

int now_load(const struct cmd *c, struct now *out, struct err *e)
{
	int rc = 0;

	*out = (struct now){0};
	slurm_init(NULL);
	if (!(out->snapshot = published_snapshot(c, NULL, e)) || directory_fill(&out->directory, out->snapshot, e))
		return -1;
	if (slurm_load_node(0, &out->slurm_nodes, SHOW_ALL | SHOW_DETAIL) ||
	    slurm_load_partitions(0, &out->partitions, SHOW_ALL) ||
	    slurm_load_jobs(0, &out->jobs, SHOW_ALL | SHOW_DETAIL))
		return err_set(e, "slurmctld: %s", slurm_strerror(errno));
	if (!(out->nodes = calloc(out->slurm_nodes->record_count + 1, sizeof(*out->nodes))))
		return err_set(e, "out of memory");
	for (uint32_t i = 0; rc == 0 && i < out->slurm_nodes->record_count; i++)
		if (out->slurm_nodes->node_array[i].name)
			rc = node_add(out, &out->slurm_nodes->node_array[i], e);
	for (uint32_t i = 0; rc == 0 && i < out->jobs->record_count; i++) {
		job_info_t *j = &out->jobs->job_array[i];
		uint32_t base = j->job_state & JOB_STATE_BASE;

		/* A job without a limit, or past it by slurmctld's clock, ends at no time that is known. */
		if (j->time_limit == INFINITE || j->end_time <= out->jobs->last_update)
			j->end_time = NEVER;
		if (base == JOB_RUNNING || base == JOB_SUSPENDED || j->job_state & JOB_COMPLETING)
			if (cores_each(j, holder_add, &(struct adding){ out, j, 0 }, e) && strstr(e->text, "memory"))
				rc = -1;
	}
	for (size_t i = 0; i < out->n; i++) {
		/*
		 * Jobs that PrivateData hides from this user, or a job whose cores are not in its record: the CPUs do
		 * not add up.
		 */
		unsigned words = out->nodes[i].shape ? core_set_words(out->nodes[i].shape->cores) : 0, known = 0;
		unsigned threads = out->nodes[i].info->threads ? out->nodes[i].info->threads : 1;

		for (size_t k = 0; k < out->nodes[i].nholders; k++)
			for (unsigned w = 0; w < words; w++)
				known += __builtin_popcountll(out->nodes[i].holders[k].cores[w]);
		if (out->nodes[i].shape && !out->nodes[i].state &&
		    known * threads < cores_allocated(out->nodes[i].info))
			out->nodes[i].state = NOW_HIDDEN;
	}
	return rc;
}

void now_free(struct now *n)
{
	for (size_t i = 0; i < n->n; i++) {
		for (size_t k = 0; k < n->nodes[i].nholders; k++)
			free(n->nodes[i].holders[k].cores);
		free(n->nodes[i].holders);
		free(n->nodes[i].free);
	}
	free(n->nodes);
	string_map_free(&n->names);
	directory_free(&n->directory);
	snapshot_free(n->snapshot);
	free(n->topology);
	if (n->slurm_nodes)
		slurm_free_node_info_msg(n->slurm_nodes);
	if (n->partitions)
		slurm_free_partition_info_msg(n->partitions);
	if (n->jobs)
		slurm_free_job_info_msg(n->jobs);
	*n = (struct now){0};
}

/* --- the first free domain --- */

unsigned now_count(const uint64_t *set, unsigned first, unsigned cores)
{
	unsigned n = 0;

	for (unsigned c = first; c < first + cores; c++)
		n += core_set_has(set, c);
	return n;
}

ORDER(holder_compare, struct now_holder, COMPARE(x->job->end_time, y->job->end_time))

/* When the domain of d has so many free cores, by the limits of jobs; those that have to end until then are marked. */
static void domain_wait(const struct now *n, const struct now_node *node, unsigned cores, struct now_domain *d,
			bool *marks)
{
	unsigned has = now_count(node->free, d->first, d->cores);

	/* All that is not reserved for the system. */
	if (!cores) {
		cores = has;
		for (size_t i = 0; i < node->nholders; i++)
			cores += now_count(node->holders[i].cores, d->first, d->cores);
	}
	d->at = 0;
	for (size_t i = 0; i < node->nholders && has < cores; i++) {
		unsigned more = now_count(node->holders[i].cores, d->first, d->cores);

		if (!more)
			continue;
		if (marks)
			marks[node->holders[i].job - n->jobs->job_array] = true;
		d->at = node->holders[i].job->end_time;
		has += more;
	}
	if (has < cores)
		d->at = NEVER;
}

struct allowed {
	const struct now *now;
	unsigned char *of;	/* by node: 1 in its partition, 2 named, 4 excluded */
	unsigned char bit;
};

static int allow(const char *name, void *allowed)
{
	struct allowed *a = allowed;
	size_t at = string_map_find(&a->now->names, name);

	if (at != STRING_MAP_NONE)
		a->of[at] |= a->bit;
	return 0;
}

ORDER(domain_compare, struct now_domain, COMPARE(x->at, y->at) ?: COMPARE(x->node, y->node))

ORDER(end_compare, job_info_t *const, COMPARE((*x)->end_time, (*y)->end_time))

/* The first domain of a node with so many cores; at is NEVER if there is none. */
static struct now_domain node_first(const struct now *n, struct now_node *node, enum level level, unsigned cores)
{
	struct now_domain best = { .at = NEVER };
	unsigned number = 0;
	bool has = false;

	if (node->nholders)
		qsort(node->holders, node->nholders, sizeof(*node->holders), holder_compare);
	/* A level that the node lacks counts as the next one out, as in the score. */
	for (enum level l = level; !has; l--)
		for (size_t k = 0; k < node->shape->ndomains; k++) {
			const struct shape_domain *s = &node->shape->domains[k];
			struct now_domain d = { node, l, 0, s->first, s->cores, 0 };

			if (s->level != l)
				continue;
			has = true;
			d.number = number++;
			domain_wait(n, node, cores, &d, NULL);
			if (s->cores >= cores && d.at < best.at)
				best = d;
		}
	return best;
}

/* Of domains in the order of their times, the first that make whole units, to the front; how many. */
static size_t units_choose(const struct now *n, const struct now_need *need, struct now_domain *list, size_t count)
{
	unsigned unit = need->parts ? need->unit : 1, units = 0, *has = calloc(need->parts ? need->parts->n : 1,
									       sizeof(*has));
	size_t i, chosen = 0;

	for (i = 0; has && i < count && units < need->nodes / unit; i++) {
		unsigned part = need->parts ? need->parts->of[list[i].node - n->nodes] : 0;

		if (part != SLURM_PART_NONE)
			units += ++has[part] % unit == 0;
	}
	count = has && units == need->nodes / unit ? i : 0;
	/* The rest of a part, which makes no unit, came last. */
	for (unsigned part = 0; count && part < (need->parts ? need->parts->n : 1); part++)
		has[part] -= has[part] % unit;
	for (i = 0; i < count; i++) {
		unsigned part = need->parts ? need->parts->of[list[i].node - n->nodes] : 0;

		if (part == SLURM_PART_NONE || !has[part])
			continue;
		has[part]--;
		list[chosen++] = list[i];
	}
	free(has);
	return chosen;
}

/*
 * On rings: each unit is nodes beside each other, and the units are on different rings. Of each ring the row that is
 * free first, and of the rings those where that is first, to the front; how many nodes.
 */
static size_t rows_choose(const struct now *n, const struct now_need *need, struct now_domain *list, size_t count)
{
	const struct now_domain **of = calloc(n->n + 1, sizeof(const struct now_domain *));	/* by node */
	struct now_domain *chosen = calloc(need->nodes + 1, sizeof(*chosen)), *best = calloc(need->parts->n + 1,
											     sizeof(*best));
	size_t units = 0, found = 0;

	for (size_t i = 0; of && i < count; i++)
		of[list[i].node - n->nodes] = &list[i];
	/* Of each ring: `first` is where its row begins, `number` its own. */
	for (size_t r = 0; of && chosen && best && r < need->parts->n; r++) {
		const struct slurm_part *ring = &need->parts->list[r];

		best[units] = (struct now_domain){ .number = r, .at = NEVER };
		for (size_t start = 0; start < ring->nmembers && need->unit <= ring->nmembers; start++) {
			time_t at = 0;

			for (unsigned k = 0; k < need->unit && at != NEVER; k++) {
				unsigned m = ring->members[(start + k) % ring->nmembers];
				const struct now_domain *d = m == SLURM_PART_NONE ? NULL : of[m];

				at = !d ? NEVER : d->at > at ? d->at : at;
			}
			if (at < best[units].at)
				best[units].first = start, best[units].at = at;
		}
		units += best[units].at != NEVER;
	}
	if (units)
		qsort(best, units, sizeof(*best), domain_compare);
	for (size_t i = 0; units >= need->nodes / need->unit && i < need->nodes; i++) {
		const struct now_domain *row = &best[i / need->unit];
		const struct slurm_part *ring = &need->parts->list[row->number];

		chosen[found++] = *of[ring->members[(row->first + i % need->unit) % ring->nmembers]];
	}
	if (found)
		memcpy(list, chosen, found * sizeof(*list));
	free(chosen);
	free(best);
	free(of);
	return found;
}

int now_first(const struct now *n, const job_info_t *job, const struct now_need *need, struct now_wait *out)
{
	struct allowed a = { .now = n, .of = calloc(n->n + 1, 1) };
	bool named = job->req_nodes && *job->req_nodes;
	bool *marks = calloc(n->jobs->record_count + 1, sizeof(*marks));
	const job_info_t **ends = calloc(n->jobs->record_count + 1, sizeof(const job_info_t *));
	size_t count = 0, nnamed = 0, most = need->nodes - need->fewer_nodes;
	int rc = -1;

	*out = (struct now_wait){ .list = calloc(n->n + 1, sizeof(*out->list)) };
	if (!a.of || !marks || !ends || !out->list || (job->features && *job->features) ||
	    (job->resv_name && *job->resv_name))
		goto end;
	for (uint32_t i = 0; i < n->partitions->record_count; i++) {
		const partition_info_t *p = &n->partitions->partition_array[i];

		a.bit = 1;
		if (cmd_has_word(job->partition, ',', p->name) && p->nodes &&
		    hostlist_expand(p->nodes, allow, &a, NULL))
			goto end;
	}
	a.bit = 2;
	if (named && hostlist_expand(job->req_nodes, allow, &a, NULL))
		goto end;
	a.bit = 4;
	if (job->exc_nodes && *job->exc_nodes && hostlist_expand(job->exc_nodes, allow, &a, NULL))
		goto end;
	for (size_t i = 0; i < n->n; i++) {
		nnamed += a.of[i] >> 1 & 1;
		if (a.of[i] != (named ? 3 : 1) || n->nodes[i].state || n->nodes[i].info->cpus < need->cpus)
			continue;
		out->list[count] = node_first(n, &n->nodes[i], need->level, need->cores);
		if (need->fewer_nodes && out->list[count].at == NEVER)
			out->list[count].node = &n->nodes[i];
		count += need->fewer_nodes || out->list[count].at != NEVER;
	}
	if (named && need->nodes > 1 && nnamed != need->nodes)
		goto end;
	if (count)
		qsort(out->list, count, sizeof(*out->list), domain_compare);
	/* Who has the most cores first, has them; of the others those that have the fewer first. */
	for (size_t i = most; need->fewer_nodes && i < count; i++)
		out->list[i] = node_first(n, &n->nodes[out->list[i].node - n->nodes], need->level, need->fewer);
	if (need->fewer_nodes && count > most)
		qsort(out->list + most, count - most, sizeof(*out->list), domain_compare);
	if (need->fewer_nodes && (count < need->nodes || out->list[most - 1].at == NEVER ||
				  out->list[need->nodes - 1].at == NEVER))
		count = 0;
	out->n = need->parts && need->parts->rings ? rows_choose(n, need, out->list, count) :
		units_choose(n, need, out->list, count);
	for (size_t i = 0; i < out->n; i++) {
		struct now_domain *d = &out->list[i];

		domain_wait(n, d->node, i < most ? need->cores : need->fewer, d, marks);
		out->at = d->at > out->at ? d->at : out->at;
	}
	for (uint32_t i = 0; i < n->jobs->record_count; i++)
		if (marks[i])
			ends[out->nholders++] = &n->jobs->job_array[i];
	if (out->nholders)
		qsort(ends, out->nholders, sizeof(*ends), end_compare);
	for (size_t i = 0; i < out->nholders && i < sizeof(out->holders) / sizeof(out->holders[0]); i++)
		out->holders[i] = ends[i];
	rc = 0;
end:
	free(a.of);
	free(marks);
	free(ends);
	return rc;
}

const char *now_time(time_t at, char text[static 32])
{
	time_t today = time(NULL);
	struct tm tm, day;

	localtime_r(&at, &tm);
	localtime_r(&today, &day);
	strftime(text, 32, tm.tm_yday == day.tm_yday && tm.tm_year == day.tm_year ? "%H:%M:%S" : "%Y-%m-%dT%H:%M:%S",
		 &tm);
	return text;
}

const char *now_job_name(const job_info_t *j, char text[static 64])
{
	if (j->array_task_str)
		snprintf(text, 64, "%u_[%s]", j->array_job_id, j->array_task_str);
	else if (j->array_task_id != NO_VAL)
		snprintf(text, 64, "%u_%u", j->array_job_id, j->array_task_id);
	else if (j->het_job_id)
		snprintf(text, 64, "%u+%u", j->het_job_id, j->het_job_offset);
	else
		snprintf(text, 64, "%u", j->job_id);
	return text;
}

/* Slurm's record has the name only for jobs since slurmctld's start, or not at all. */
const char *now_user(const job_info_t *job, char text[static 64])
{
	const struct passwd *pw = job->user_name ? NULL : getpwuid(job->user_id);

	if (job->user_name || pw)
		snprintf(text, 64, "%s", job->user_name ? job->user_name : pw->pw_name);
	else
		snprintf(text, 64, "uid %u", job->user_id);
	return text;
}
