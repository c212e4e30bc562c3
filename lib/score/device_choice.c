/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/device_choice.h"

/* --- sets of groups --- */

/* Of 16 devices that are all near different cores there are more sets; then the last ones are left out. */
#define TRIES 1024u
#define AREAS_MAX (2 * DEVICE_SHARES_MAX)
#define LACKS_CORES (UINT64_C(1) << 63)

struct search {
	const struct device_groups *g;
	const struct score_need *need;
	unsigned want, tries, room[DEVICE_SHARES_MAX];	/* room: free cores */
	/* What the groups have in common: domains, smallest first, and the groups in each. */
	struct area {
		uint32_t groups;
		unsigned cores;
	} areas[AREAS_MAX];
	unsigned nareas, n;
	uint64_t rank[DEVICE_SHARES_MAX];	/* of each set; the lower, the better. LACKS_CORES: near too few */
	struct device_set *out;
};

static void areas_add(struct search *s, uint32_t groups, unsigned cores)
{
	unsigned at = 0;

	for (unsigned i = 0; i < s->nareas; i++)
		if (s->areas[i].groups == groups) {
			s->areas[i].cores = s->areas[i].cores < cores ? s->areas[i].cores : cores;
			return;
		}
	if (s->nareas == AREAS_MAX)
		return;
	while (at < s->nareas && s->areas[at].cores <= cores)
		at++;
	memmove(&s->areas[at + 1], &s->areas[at], (s->nareas++ - at) * sizeof(*s->areas));
	s->areas[at] = (struct area){ groups, cores };
}

static void areas_read(struct search *s, const struct shape *shape)
{
	unsigned words = core_set_words(shape->cores), first[DEVICE_SHARES_MAX], last[DEVICE_SHARES_MAX];

	for (unsigned g = 0; g < s->g->n; g++) {
		first[g] = UINT_MAX;
		last[g] = 0;
		core_set_each(c, s->g->cores + g * words, words) {
			first[g] = first[g] < (unsigned) c ? first[g] : (unsigned) c;
			last[g] = c;
		}
	}
	for (size_t i = 0; i < shape->ndomains; i++) {
		const struct shape_domain *d = &shape->domains[i];
		uint32_t in = 0;

		for (unsigned g = 0; g < s->g->n; g++)
			if (first[g] >= d->first && last[g] < d->first + d->cores)
				in |= 1u << g;
		if (in & (in - 1))
			areas_add(s, in, d->cores);
	}
}

/* Cores of the smallest domain with all these groups. */
static unsigned area_of(const struct search *s, uint32_t groups)
{
	for (unsigned i = 0; i < s->nareas; i++)
		if (!(groups & ~s->areas[i].groups))
			return s->areas[i].cores;
	return groups & (groups - 1) ? UINT_MAX : 0;
}

/* A task for each group is whole there; fewer tasks have cores near several. */
static void set_add(struct search *s, uint32_t groups)
{
	unsigned room = 0, unserved = 0, at = s->n;
	struct score_task task = score_task_of(s->need);
	uint64_t rank;

	if (score_task_room(task, s->need->cores) < (unsigned) __builtin_popcount(groups))
		task = (struct score_task){ 1, 1 };
	for (unsigned g = 0; g < s->g->n; g++) {
		if (!(groups & 1u << g))
			continue;
		room += s->room[g];
		unserved += !score_task_room(task, s->room[g]);
	}
	rank = (uint64_t) unserved << 32 | area_of(s, groups);
	if (room < s->need->cores)
		rank = LACKS_CORES | (uint64_t) (s->need->cores - room) << 32 | area_of(s, groups);
	while (at && s->rank[at - 1] > rank)
		at--;
	if (at == DEVICE_SHARES_MAX)
		return;
	s->n -= s->n == DEVICE_SHARES_MAX;
	memmove(&s->rank[at + 1], &s->rank[at], (s->n - at) * sizeof(*s->rank));
	memmove(&s->out[at + 1], &s->out[at], (s->n++ - at) * sizeof(*s->out));
	s->rank[at] = rank;
	s->out[at] = (struct device_set){ groups, unserved };
}

/* All sets that begin with these groups: with no more than have enough devices, and enough cores near them. */
static void sets_add(struct search *s, uint32_t groups, unsigned from, unsigned devices, unsigned room)
{
	if (devices >= s->want) {
		s->tries--;
		set_add(s, groups);
		if (room >= s->need->cores || (unsigned) __builtin_popcount(groups) == s->want)
			return;
	}
	for (unsigned g = from; g < s->g->n && s->tries; g++)
		sets_add(s, groups | 1u << g, g + 1, devices + s->g->devices[g], room + s->room[g]);
}

unsigned device_choice_sets(const struct shape *shape, const struct device_groups *g, unsigned want,
			    const uint64_t *free_cores, const struct score_need *need, struct device_set *out)
{
	struct search s = { .g = g, .need = need, .want = want, .tries = TRIES, .out = out };
	unsigned words = core_set_words(shape->cores);

	for (unsigned i = 0; i < g->n; i++)
		for (unsigned w = 0; w < words; w++)
			s.room[i] += __builtin_popcountll(g->cores[i * words + w] & free_cores[w]);
	if (want > 1)
		areas_read(&s, shape);
	sets_add(&s, 0, 0, 0, 0);
	while (s.n > 1 && s.rank[s.n - 1] & LACKS_CORES)
		s.n--;
	return s.n;
}

/* False if the group is no range of cores, or shares some with those before. */
static bool share_add(const uint64_t *near, unsigned words, unsigned devices, struct device_share *out, unsigned n)
{
	int first = core_set_next(near, words, 0);
	unsigned cores = core_set_count(near, words), at = n;

	for (unsigned c = first; first >= 0 && c < first + cores; c++)
		if (c >= words * 64 || !core_set_has(near, c))
			return false;
	while (at && out[at - 1].first > (unsigned) first)
		at--;
	if (first < 0 || (at && out[at - 1].first + out[at - 1].cores > (unsigned) first) ||
	    (at < n && out[at].first < first + cores))
		return false;
	memmove(&out[at + 1], &out[at], (n - at) * sizeof(*out));
	out[at] = (struct device_share){ first, cores, devices };
	return true;
}

unsigned device_choice_shares(const struct device_groups *g, const struct device_set *set, unsigned want,
			      const uint64_t *free_cores, unsigned words, uint64_t *cores,
			      struct device_share out[static DEVICE_SHARES_MAX])
{
	unsigned n = 0, left = want, few = want / 256 + 1, room[DEVICE_SHARES_MAX] = {0}, devices[DEVICE_SHARES_MAX];
	bool odd = false;

	memset(cores, 0, words * sizeof(*cores));
	for (unsigned i = 0; i < g->n; i++) {
		left -= devices[i] = set->groups >> i & 1;
		for (unsigned w = 0; devices[i] && w < words; w++) {
			cores[w] |= g->cores[i * words + w] & free_cores[w];
			room[i] += __builtin_popcountll(g->cores[i * words + w] & free_cores[w]);
		}
	}
	/* Each has one; the others go where each then has the most free cores, of thousands several at once. */
	for (unsigned best, some; left; left -= some) {
		best = g->n;
		for (unsigned i = 0; i < g->n; i++)
			if (devices[i] && devices[i] < g->devices[i] &&
			    (best == g->n ||
			     (uint64_t) room[i] * (devices[best] + 1) > (uint64_t) room[best] * (devices[i] + 1)))
				best = i;
		if (best == g->n)
			break;
		some = g->devices[best] - devices[best];
		some = some < few ? some : few;
		some = some < left ? some : left;
		devices[best] += some;
	}
	for (unsigned i = 0; i < g->n; i++) {
		if (!devices[i])
			continue;
		if (!odd && share_add(g->cores + i * words, words, devices[i], out, n))
			n++;
		else
			odd = true;
	}
	return odd ? 0 : n;
}

/* --- the devices near a job's cores --- */

/* Cores of mine[] near a device; without those near a chosen one if `more`. */
static unsigned cores_near(const struct device_list *l, unsigned device, const uint64_t *mine, const bool *chosen,
			   bool more)
{
	unsigned count = 0;

	for (unsigned w = 0; w < l->words; w++) {
		uint64_t cores = mine[w] & l->near[device * l->words + w];

		for (unsigned d = 0; more && d < l->n; d++)
			if (chosen[d])
				cores &= ~l->near[d * l->words + w];
		count += __builtin_popcountll(cores);
	}
	return count;
}

/* Chosen devices that share cores with this one. */
static unsigned devices_beside(const struct device_list *l, unsigned device, const bool *chosen)
{
	unsigned count = 0;

	for (unsigned d = 0; d < l->n; d++)
		for (unsigned w = 0; chosen[d] && w < l->words; w++)
			if (l->near[d * l->words + w] & l->near[device * l->words + w]) {
				count++;
				break;
			}
	return count;
}

/* The socket that a device is at; UINT_MAX if it is near cores of several, or of none that is known. */
static unsigned socket_of(const struct device_list *l, unsigned device)
{
	const uint64_t *near = l->near + device * l->words;
	int first = core_set_next(near, l->words, 0);
	unsigned socket = first < 0 ? UINT_MAX : first / l->socket_cores;

	core_set_each(c, near, l->words)
		if ((unsigned) c / l->socket_cores != socket)
			return UINT_MAX;
	return socket;
}

/* Whether enough of `want` devices are at the device's socket already. */
static bool socket_has_share(const struct device_list *l, unsigned device, const uint64_t *mine, const bool *chosen,
			     unsigned want)
{
	unsigned socket = l->socket_cores ? socket_of(l, device) : UINT_MAX, cores = 0, devices = 0;

	if (socket == UINT_MAX)
		return false;
	core_set_each(c, mine, l->words)
		cores += (unsigned) c / l->socket_cores == socket;
	for (unsigned d = 0; d < l->n; d++)
		devices += chosen[d] && socket_of(l, d) == socket;
	return (uint64_t) devices * core_set_count(mine, l->words) >= (uint64_t) cores * want;
}

/* A device for the next cores that have none or, if all have one, where the most cores share one. n: none is left. */
static unsigned next_device(const struct device_list *l, const uint64_t *mine, const bool *before, const bool *chosen,
			    unsigned want)
{
	uint64_t best_rank = 0;
	unsigned best = l->n;

	for (unsigned d = 0; d < l->n; d++) {
		unsigned each = cores_near(l, d, mine, chosen, false) * 1024 / (devices_beside(l, d, chosen) + 1);
		uint64_t rank = (uint64_t) cores_near(l, d, mine, chosen, true) << 40 | (uint64_t) each << 1;

		rank = (socket_has_share(l, d, mine, chosen, want) ? 0 : rank) | before[d];
		if (chosen[d] || !(l->usable[d] || before[d]) || (best < l->n && rank <= best_rank))
			continue;
		best = d;
		best_rank = rank;
	}
	return best;
}

struct device_misfit device_choice_misfit(const struct device_list *l, const uint64_t *mine, const bool *chosen)
{
	struct device_misfit m = { .cores = core_set_count(mine, l->words) };

	for (unsigned w = 0; w < l->words; w++) {
		uint64_t near = 0;

		for (unsigned d = 0; d < l->n; d++)
			near |= chosen[d] ? l->near[d * l->words + w] : 0;
		m.cores -= __builtin_popcountll(near & mine[w]);
	}
	for (unsigned d = 0; d < l->n; d++)
		m.devices += chosen[d] && !cores_near(l, d, mine, chosen, false);
	return m;
}

bool device_choice_improve(const struct device_list *l, const uint64_t *mine, bool *chosen)
{
	bool other[DEVICE_LIST_MAX] = {0};
	struct device_misfit was, is;
	unsigned want = 0;

	if (l->n > DEVICE_LIST_MAX)
		return false;
	for (unsigned d = 0; d < l->n; d++)
		want += chosen[d];
	for (unsigned n = 0; n < want; n++)
		other[next_device(l, mine, chosen, other, want)] = true;
	was = device_choice_misfit(l, mine, chosen);
	is = device_choice_misfit(l, mine, other);
	if (is.cores > was.cores || (is.cores == was.cores && is.devices >= was.devices))
		return false;
	memcpy(chosen, other, l->n * sizeof(*chosen));
	return true;
}

/* --- the cores of a job by its devices --- */

unsigned device_share_limits(const struct shape *shape, const uint64_t *free_cores, const struct score_need *need,
			     const struct device_share *shares, unsigned n, struct score_limit *out)
{
	struct score_task task = score_task_of(need);
	unsigned count = score_task_room(task, need->cores), all = 0, given = 0, room[DEVICE_SHARES_MAX];

	if (n < 2 || n > DEVICE_SHARES_MAX || need->nlimits || (need->path && need->path->steps))
		return 0;
	/* Fewer tasks than sets have cores near several. */
	if (count < n) {
		task = (struct score_task){ 1, 1 };
		count = need->cores;
	}
	if (score_task_span(task, count) != need->cores)
		return 0;
	for (unsigned i = 0; i < n; i++) {
		const struct device_share *s = &shares[i];
		unsigned cores = 0;
		size_t d = 0;

		while (d < shape->ndomains && (shape->domains[d].first != s->first ||
					       shape->domains[d].cores != s->cores))
			d++;
		if (d == shape->ndomains || s->cores < 2)
			return 0;
		for (unsigned c = s->first; c < s->first + s->cores; c++)
			cores += core_set_has(free_cores, c);
		all += room[i] = score_task_room(task, cores);
		out[i] = (struct score_limit){ s->first, s->cores, 0 };
	}
	if (all < count)
		return 0;
	/*
	 * The next task or core goes to a set without any, then by the highest quotient (D'Hondt's method), to a set
	 * with one device and no task before one with four devices and one.
	 */
	for (unsigned left = count; left; left--) {
		unsigned best = n;

		for (unsigned i = 0; i < n; i++) {
			if (out[i].most >= room[i])
				continue;
			if (best == n || (!out[i].most && out[best].most) ||
			    (!out[i].most == !out[best].most && (uint64_t) shares[i].devices * (out[best].most + 1) >
								(uint64_t) shares[best].devices * (out[i].most + 1)))
				best = i;
		}
		out[best].most++;
	}
	/* Tasks that share a core with the next one have more cores in one set and fewer in the next. */
	for (unsigned i = 0, tasks = 0; i < n; i++) {
		tasks += out[i].most;
		out[i].most = score_task_span(task, tasks) - given;
		given += out[i].most;
	}
	return n;
}
