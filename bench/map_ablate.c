/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "map/engine/improve.h"
#include "map/engine/search.h"

/*
 * Linked with all of topiary into build/bench/topiary_ablate, for `bench/map.py ablate`: the linker's --wrap redirects
 * the functions below here, and the environment's TOPIARY_WITHOUT names the starts and stages that are left out,
 * separated by commas. So topiary itself needs no switch. The work that they would have used goes to the others.
 */

/* In the order of the steps of improve.c, whose bits in idle they are. */
static const char *const stages[] = { "layout", "nodes", "neighbourhood", "ranks" };
#define STAGES (sizeof(stages) / sizeof(stages[0]))

static struct search *current;
static bool is_layout_off, is_polish_off;

int __real_improve_trials(struct search *x);
int __wrap_improve_trials(struct search *x);
bool __real_candidate_is_worth(const struct candidate *c, const struct map_problem *b);
bool __wrap_candidate_is_worth(const struct candidate *c, const struct map_problem *b);
int __real_anneal_domains(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work,
			  unsigned *slot, struct err *e);
int __wrap_anneal_domains(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work,
			  unsigned *slot, struct err *e);
int __real_swaps_polish(const struct matrix *m, const struct slots *s, unsigned long long *work, unsigned *slot);
int __wrap_swaps_polish(const struct matrix *m, const struct slots *s, unsigned long long *work, unsigned *slot);

static bool is_named(const char *at, const char *part)
{
	return strcspn(at, ",") == strlen(part) && !strncmp(at, part, strlen(part));
}

static bool is_off(const char *part)
{
	for (const char *at = getenv("TOPIARY_WITHOUT"); at && *at; at += strcspn(at, ","), at += *at == ',')
		if (is_named(at, part))
			return true;
	return false;
}

static bool is_known(const char *at)
{
	for (unsigned i = 0; i < STAGES; i++)
		if (is_named(at, stages[i]))
			return true;
	for (unsigned i = CANDIDATE_SCOTCH; i < ncandidates; i++)
		if (is_named(at, candidates[i].name))
			return true;
	return is_named(at, "polish");
}

/* A name that nothing has would look like a part that brings nothing. */
__attribute__((constructor)) static void check_names(void)
{
	for (const char *at = getenv("TOPIARY_WITHOUT"); at && *at; at += strcspn(at, ","), at += *at == ',')
		if (!is_known(at)) {
			fprintf(stderr, "TOPIARY_WITHOUT=%s: no such start or stage\n", at);
			exit(64);
		}
}

bool __wrap_candidate_is_worth(const struct candidate *c, const struct map_problem *b)
{
	return !is_off(c->name) && __real_candidate_is_worth(c, b);
}

int __wrap_improve_trials(struct search *x)
{
	for (unsigned i = 0; i < STAGES; i++)
		x->idle |= is_off(stages[i]) << i;
	is_layout_off = is_off("layout");
	is_polish_off = is_off("polish");
	current = x;
	return __real_improve_trials(x);
}

/* The first layout is no step that can be idle: its work is given back. */
int __wrap_anneal_domains(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work,
			  unsigned *slot, struct err *e)
{
	if (!is_layout_off)
		return __real_anneal_domains(m, s, seed, work, slot, e);
	current->left += work;
	return 0;
}

int __wrap_swaps_polish(const struct matrix *m, const struct slots *s, unsigned long long *work, unsigned *slot)
{
	return is_polish_off ? 0 : __real_swaps_polish(m, s, work, slot);
}
