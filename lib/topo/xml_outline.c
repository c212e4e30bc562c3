/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "topo/xml_outline.h"

#include <string.h>

static bool tier_is(const struct tier *t, const char *type)
{
	return !strcmp(t->type->name, type);
}

/* Levels do not nest in themselves, and nothing of the tree stands in a PU. */
static bool outline_fits(const struct outline *o, const struct xml_type *type)
{
	if (!o->depth)
		return !strcmp(type->name, "Machine");
	if (o->depth == OUTLINE_DEPTH || tier_is(&o->tiers[o->depth - 1], "PU"))
		return false;
	for (size_t i = 0; type->level && i < o->depth; i++)
		if (o->tiers[i].type == type)
			return false;
	return true;
}

static void tier_reset(struct tier *t, const struct xml_type *type, size_t home)
{
	t->type = type;
	t->home = home;
	t->bare = true;
	t->memories = t->runs = t->last_count = 0;
	t->last_type = NULL;
	t->done.len = t->last.len = 0;
}

int outline_open(struct outline *o, const struct xml_type *type)
{
	struct tier *t = &o->tiers[o->depth];
	size_t home = o->depth;

	if (!outline_fits(o, type))
		return -1;
	if (o->depth) {
		size_t around = t[-1].home;

		t[-1].bare = false;
		if (!type->level || (tier_is(&o->tiers[around], "Core") && strcmp(type->name, "PU")))
			home = around;
	}
	tier_reset(t, type, home);
	o->depth++;
	return 0;
}

void outline_memory(struct outline *o)
{
	size_t at = o->depth - 1;
	struct tier *t = &o->tiers[at];

	if (t->bare && !tier_is(&o->tiers[t->home], "Core"))
		t->home = at;
	o->tiers[t->home].memories++;
}

static void tier_flush(struct tier *t)
{
	buf_printf(&t->done, "%s%s:%u", t->runs++ ? " | " : "", t->last_type, t->last_count);
	buf_add(&t->done, t->last.data, t->last.len);
}

/* One more child of this type, with this text after its count. */
static void tier_add(struct tier *t, const char *type, const struct buf *body)
{
	if (t->last_type && !strcmp(t->last_type, type) && t->last.len == body->len &&
	    (!body->len || !memcmp(t->last.data, body->data, body->len))) {
		t->last_count++;
		return;
	}
	if (t->last_type)
		tier_flush(t);
	t->last_type = type;
	t->last_count = 1;
	t->last.len = 0;
	buf_add(&t->last, body->data, body->len);
	t->last.failed |= body->failed;
}

static void tier_text(struct tier *t, struct buf *out)
{
	out->len = 0;
	for (unsigned i = 0; i < t->memories; i++)
		buf_puts(out, " [NUMANode]");
	if (!t->last_type)
		return;
	tier_flush(t);
	buf_puts(out, t->runs > 1 ? " { " : " ");
	buf_add(out, t->done.data, t->done.len);
	buf_puts(out, t->runs > 1 ? " }" : "");
	out->failed |= t->done.failed | t->last.failed;
}

static void pu_close(struct outline *o, const struct tier *pu, struct tier *home)
{
	o->scratch.len = 0;
	if (tier_is(home, "Core")) {
		home->memories += pu->memories;
		tier_add(home, "PU", &o->scratch);
		return;
	}
	for (unsigned i = 0; i < pu->memories; i++)
		buf_puts(&o->scratch, " [NUMANode]");
	buf_puts(&o->scratch, " PU:1");
	tier_add(home, "Core", &o->scratch);
}

int outline_close(struct outline *o)
{
	size_t at = --o->depth;
	struct tier *t = &o->tiers[at], *home;

	if (!at || t->home != at)
		return 0;
	home = &o->tiers[t[-1].home];
	if (tier_is(t, "PU")) {
		pu_close(o, t, home);
	} else if (t->last_type) {
		tier_text(t, &o->scratch);
		tier_add(home, t->type->name, &o->scratch);
	} else {
		home->memories += t->memories;
		return tier_is(t, "Core") ? -1 : 0;
	}
	return 0;
}

char *outline_take(struct outline *o)
{
	tier_text(&o->tiers[0], &o->scratch);
	if (o->scratch.failed || !o->scratch.len)
		return NULL;
	return strdup(o->scratch.data + 1);
}

void outline_free(struct outline *o)
{
	for (size_t i = 0; i < OUTLINE_DEPTH; i++) {
		buf_free(&o->tiers[i].done);
		buf_free(&o->tiers[i].last);
	}
	buf_free(&o->scratch);
}
