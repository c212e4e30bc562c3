/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/score_spread.h"

#include <string.h>

#include "score/score_plan.h"

struct spread {
	const struct score_tree *tree;
	struct score_arena *arena;
	struct seat {		/* a domain of the cover */
		unsigned part, core;	/* core: of a run, the core itself */
		unsigned have, room;	/* cores; tasks that fit on these */
		unsigned tasks;
	} *seats;
	unsigned nseats;
	unsigned *tasks;	/* by part */
};

static void seat_add(struct spread *s, unsigned part, unsigned core, unsigned have, unsigned can)
{
	s->seats[s->nseats++] = (struct seat){
		.part = part, .core = core, .have = have, .room = can / s->tree->task_cores,
	};
}

/* Reduces the rooms of the seats inside a part to what the part can have, the largest and last first. */
static void rooms_limit(struct spread *s, unsigned part)
{
	const struct score_part *p = &s->tree->parts[part];
	unsigned most = p->can / s->tree->task_cores;

	for (;;) {
		struct seat *largest = NULL;
		unsigned rooms = 0;

		for (struct seat *seat = s->seats; seat < s->seats + s->nseats; seat++) {
			if (seat->part <= part || seat->part >= p->next)
				continue;
			rooms += seat->room;
			if (!largest || seat->room >= largest->room)
				largest = seat;
		}
		if (rooms <= most)
			return;
		largest->room--;
	}
}

static int spread_init(struct spread *s)
{
	const struct score_tree *t = s->tree;

	s->seats = score_arena_get(s->arena, t->have * sizeof(*s->seats));
	s->tasks = score_arena_get(s->arena, t->nparts * sizeof(*s->tasks));
	if (!s->seats || !s->tasks)
		return -1;
	memset(s->tasks, 0, t->nparts * sizeof(*s->tasks));
	for (unsigned i = 0; i < t->nparts; i++) {
		const struct score_part *part = &t->parts[i];

		if (!(part->counts & BIT(t->wanted)))
			continue;
		if (part->kids)
			seat_add(s, i, 0, part->have, part->can);
		for (unsigned c = part->first; !part->kids && c < part->first + part->cores; c++)
			if (core_set_has(t->free_cores, c))
				seat_add(s, i, c, 1, 1);
	}
	for (unsigned i = t->nparts; t->limited && i-- > 0;)
		if (t->parts[i].kids && t->parts[i].can < t->parts[i].have)
			rooms_limit(s, i);
	return 0;
}

static void seat_assign(struct spread *s, struct seat *seat)
{
	seat->tasks++;
	for (int p = seat->part; p >= 0; p = s->tree->parts[p].parent)
		s->tasks[p]++;
}

/* The numbers of tasks in the package, die, NUMA node and L3 around a seat, as one comparable number. */
static uint64_t seat_crowd(const struct spread *s, const struct seat *seat)
{
	uint64_t crowd = seat->tasks * UINT64_C(0x0001000100010001);

	for (int p = s->tree->parts[seat->part].parent; p >= 0; p = s->tree->parts[p].parent)
		for (int l = LEVEL_PACKAGE; l <= LEVEL_L3; l++)
			if (s->tree->parts[p].counts & BIT(l))
				crowd += (uint64_t) (s->tasks[p] - seat->tasks) << 16 * (LEVEL_L3 - l);
	return crowd;
}

static bool seat_is_better(const struct spread *s, const struct seat *a, const struct seat *b)
{
	if (a->have != b->have)
		return a->have > b->have;
	return seat_crowd(s, a) < seat_crowd(s, b);
}

/* The seats with exactly `tasks` tasks and room for one more. */
static unsigned seats_with_room(const struct spread *s, unsigned tasks)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->nseats; i++)
		n += s->seats[i].room > tasks;
	return n;
}

static void assign_all(struct spread *s, unsigned round)
{
	for (unsigned i = 0; i < s->nseats; i++)
		if (s->seats[i].room > round)
			seat_assign(s, &s->seats[i]);
}

static void assign_best(struct spread *s, unsigned round)
{
	struct seat *best = NULL;

	for (unsigned i = 0; i < s->nseats; i++) {
		struct seat *seat = &s->seats[i];

		if (seat->room <= round || seat->tasks > round)
			continue;
		if (!best || seat_is_better(s, seat, best))
			best = seat;
	}
	seat_assign(s, best);
}

/*
 * Assigns round by round one more task to each domain, to minimise the most in one domain. Returns that number, or 0.
 */
static unsigned assign_tasks(struct spread *s, unsigned tasks)
{
	unsigned round = 0, seats;

	for (; (seats = seats_with_room(s, round)) && seats <= tasks; round++) {
		assign_all(s, round);
		tasks -= seats;
	}
	if (tasks && !seats)
		return 0;
	if (!tasks)
		return round;
	while (tasks--)
		assign_best(s, round);
	return round + 1;
}

static int seats_mark(const struct spread *s, uint64_t *chosen)
{
	const struct score_tree *t = s->tree;

	for (const struct seat *seat = s->seats; seat < s->seats + s->nseats; seat++) {
		struct score_step step = { .cover = LEVEL_CORE, .count = seat->tasks * t->task_cores, .cores = 1 };
		const struct score_plan *plan;

		if (!seat->tasks)
			continue;
		if (!t->parts[seat->part].kids) {
			core_set_add(chosen, seat->core);
			continue;
		}
		if (!(plan = score_plan_make(t, seat->part, &step, s->arena)))
			return -1;
		score_plan_mark(t, plan, step.count, chosen);
	}
	return 0;
}

/* The cost of the chosen cores; left over counts the cores of a domain that others hold. */
static int chosen_cost(const struct spread *s, const uint64_t *chosen, struct score_cost *cost)
{
	const struct score_tree *t = s->tree;
	const uint16_t *before = score_count_before(chosen, t->shape->cores, s->arena);

	if (!before)
		return -1;
	*cost = (struct score_cost){0};
	for (const struct score_part *part = t->parts; part < t->parts + t->nparts; part++) {
		unsigned taken = before[part->first + part->cores] - before[part->first];

		if (part->kids)
			score_domain_add(t, part, taken, part->cores - part->have, cost);
		else
			score_run_add(t, part, taken, cost);
	}
	score_finish(t, before[t->shape->cores], cost);
	return 0;
}

int score_spread(const struct score_tree *t, unsigned tasks, uint64_t *chosen, struct score_cost *cost,
		 struct score_arena *arena)
{
	struct spread s = { .tree = t, .arena = arena };
	unsigned most;

	if (spread_init(&s))
		return -1;
	if (!(most = assign_tasks(&s, tasks)))
		return 1;
	if (seats_mark(&s, chosen) || chosen_cost(&s, chosen, cost))
		return -1;
	cost_set(cost, SCORE_BEYOND, LEVEL_NODE, most - 1);
	cost_set(cost, SCORE_LEFT, LEVEL_NODE, t->shape->cores - t->have);
	return 0;
}
