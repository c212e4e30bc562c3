/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "player.h"

#include <sys/wait.h>

bool player_recorder_has_ended(pid_t recorder)
{
	siginfo_t info = {0};

	return waitid(P_PID, recorder, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid == recorder;
}

bool player_recorder_has_failed(pid_t recorder)
{
	siginfo_t info = {0};

	return !waitid(P_PID, recorder, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid == recorder &&
	       (info.si_code != CLD_EXITED || info.si_status);
}

bool player_is_empty(const struct player *p)
{
	return !p->block.n;
}

/* tick: from the block's end if it is negative. */
static int go_to(struct player *p, unsigned block, int tick, struct err *e)
{
	if (trace_tree_read(&p->tree, p->trace, block, &p->block, e))
		return -1;
	p->at = block;
	p->tick = tick < 0 ? p->block.n + tick : (unsigned) tick;
	trace_tree_tick(&p->tree, &p->block, p->tick);
	return 0;
}

static int read_new(struct player *p, struct err *e)
{
	bool is_first = player_is_empty(p);

	if (p->seen == p->trace->nblocks)
		return 0;
	for (; p->seen < p->trace->nblocks; p->seen++)
		if (trace_tree_read(&p->tree, p->trace, p->seen, &p->block, e))
			return -1;
	return go_to(p, is_first ? 0 : p->at, is_first ? 0 : p->tick, e);
}

int player_open(struct player *p, struct trace *t, const struct trace_tree_request *how, pid_t recorder, struct err *e)
{
	*p = (struct player){ .trace = t, .how = *how, .recorder = recorder, .is_complete = !t->open_end };
	if (trace_tree_make(&p->tree, &t->head, how, e) == 0 && player_last(p, e) == 0)
		return 0;
	player_close(p);
	return -1;
}

void player_close(struct player *p)
{
	trace_tree_free(&p->tree);
	trace_block_free(&p->block);
	*p = (struct player){0};
}

int player_follow(struct player *p, struct err *e)
{
	bool has_ended = p->recorder && player_recorder_has_ended(p->recorder);

	if (trace_follow(p->trace, e) || read_new(p, e))
		return -1;
	p->is_complete |= has_ended || !p->trace->open_end;
	return 0;
}

int player_step(struct player *p, int by, struct err *e)
{
	if (player_is_empty(p) || (by < 0 ? !p->at && !p->tick :
					    p->at + 1 == p->trace->nblocks && p->tick + 1 == p->block.n))
		return 0;
	if (by < 0 ? !p->tick : p->tick + 1 == p->block.n)
		return go_to(p, p->at + by, by < 0 ? -1 : 0, e) ? -1 : 1;
	p->tick += by;
	trace_tree_tick(&p->tree, &p->block, p->tick);
	return 1;
}

int player_first(struct player *p, struct err *e)
{
	return player_is_empty(p) ? 0 : go_to(p, 0, 0, e);
}

int player_last(struct player *p, struct err *e)
{
	if (read_new(p, e))
		return -1;
	return player_is_empty(p) ? 0 : go_to(p, p->trace->nblocks - 1, -1, e);
}

/* The metric after the one shown. A formula may have the name of an event, and is then shown in its place. */
static const char *next_metric(const struct player *p)
{
	const struct trace_head *h = &p->trace->head;
	const struct formula_list *l = &p->how.formulas;

	for (unsigned i = 0; i < l->n; i++)
		if (!strcmp(l->list[i].name, p->tree.metric))
			return i + 1 < l->n ? l->list[i + 1].name : h->events[0].name;
	for (unsigned i = 0; i + 1 < h->nevents; i++)
		if (!strcmp(h->events[i].name, p->tree.metric))
			return h->events[i + 1].name;
	return l->n ? l->list[0].name : h->events[0].name;
}

/* Show this metric, and those that were wanted beside the first. The position stays. */
static int tree_show(struct player *p, const char *metric, struct err *e)
{
	const char *rest = p->how.metric ? strchr(p->how.metric, ',') : NULL;
	struct trace_tree_request how = p->how;
	struct trace_tree next;
	char *metrics;
	int rc;

	if (asprintf(&metrics, "%s%s", metric, rest ? rest : "") < 0)
		return err_set(e, "out of memory");
	how.metric = metrics;
	rc = trace_tree_make(&next, &p->trace->head, &how, e);
	free(metrics);
	if (rc)
		return -1;
	trace_tree_free(&p->tree);
	p->tree = next;
	p->seen = 0;
	return read_new(p, e);
}

int player_next_metric(struct player *p, struct err *e)
{
	return tree_show(p, next_metric(p), e);
}

int player_next_mode(struct player *p, struct err *e)
{
	p->how.mode = p->how.mode == TRACE_RATE ? TRACE_ACCUMULATED : TRACE_RATE;
	return tree_show(p, p->tree.metric, e);
}

double player_begin(const struct player *p)
{
	return (p->tick ? p->block.times[p->tick - 1] : p->block.begin) * 1e-9;
}

double player_end(const struct player *p)
{
	return p->block.times[p->tick] * 1e-9;
}

const char *player_phase(const struct player *p)
{
	uint64_t begin = p->tick ? p->block.times[p->tick - 1] : p->block.begin;
	int at = p->phases ? trace_phases_at(p->phases, begin, p->block.times[p->tick]) : -1;

	return at < 0 ? NULL : p->phases->list[at].name;
}

const char *player_when(const struct player *p, char text[static PLAYER_WHEN])
{
	const char *phase = player_phase(p);

	snprintf(text, PLAYER_WHEN, "at %.3f s%s%s", player_end(p), phase ? ", in phase " : "", phase ? phase : "");
	return text;
}
