/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "rebase.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "drift.h"
#include "moves.h"
#include "new_base.h"

#define ENOUGH 4		/* nodes that are worth a base: a patch brings as many rows of facts */
#define ENOUGH_PART 4		/* or a quarter of their class, when they are two or three */
#define GROUPS 8		/* of alike patches, at a time */
#define GROUPS_MAX (32U << 20)	/* bytes of their documents */
#define BASES_TRIED "16"

/* Documents that differ from one another in fields alone. */
struct group {
	char node[256];
	struct buf xml;		/* of the first of them */
	struct lined lines;
	struct form form;
	unsigned members;
};

/* The patches of one form. */
struct patches {
	struct pass *pass;
	const char *shape, *class;
	int golden;
	PGresult *bases;	/* of the class */
	struct group groups[GROUPS];
	unsigned ngroups;
	size_t bytes;
};

static void group_free(struct group *g)
{
	buf_free(&g->xml);
	lined_free(&g->lines);
	form_free(&g->form);
}

/* 0, 1 when it is none of this group, -1. */
static int group_join(struct group *g, const struct buf *xml, struct err *e)
{
	struct form wider;
	bool widened;
	int rc = form_learn(&g->form, &g->lines, xml->data, xml->len, &wider, &widened);

	if (rc < 0)
		return err_set(e, "out of memory");
	if (rc > 0)
		return 1;
	form_free(&g->form);
	g->form = wider;
	g->members++;
	return 0;
}

static int group_begin(struct patches *t, const struct held *h, struct err *e)
{
	struct group g = { .members = 1 };

	if (t->ngroups == GROUPS || t->bytes + h->xml.len > GROUPS_MAX)
		return 0;
	snprintf(g.node, sizeof(g.node), "%s", h->node);
	buf_add(&g.xml, h->xml.data, h->xml.len);
	if (g.xml.failed || lined_make(g.xml.data, g.xml.len, &g.lines)) {
		group_free(&g);
		return err_set(e, "out of memory");
	}
	t->bytes += h->xml.len;
	t->groups[t->ngroups++] = g;
	return 0;
}

static int sort_in(struct patches *t, const struct held *h, struct err *e)
{
	for (unsigned i = 0; i < t->ngroups; i++) {
		int rc = group_join(&t->groups[i], &h->xml, e);

		if (rc <= 0)
			return rc;
	}
	return group_begin(t, h, e);
}

static int from_patch(struct moves *m, const struct held *h, struct err *e)
{
	struct patches *t = m->user;

	for (int i = 0; i < PQntuples(t->bases); i++) {
		struct fit fit;
		int rc = fit_base(t->pass, atoi(PQgetvalue(t->bases, i, 0)), &h->xml, &fit, e);

		if (rc < 0)
			return -1;
		if (rc)
			continue;
		rc = fit.diff.len <= h->kept ? moves_add(m, h, &fit, e) : 0;
		buf_free(&fit.diff);
		return rc;
	}
	return m->who == PRESENT ? sort_in(t, h, e) : 0;
}

/* In a transaction: the base and, since it is known already, the form that takes all of the group. */
static int group_insert(const struct patches *t, const struct group *g, const struct parsed *parsed, const char *drift, struct err *e)
{
	struct new_base n = { .class = t->class, .shape = t->shape, .node = g->node, .drift = drift, .xml = &g->xml, .parsed = parsed };
	struct pass *p = t->pass;
	const struct book *book;
	char base[DB_KEY], form[DB_KEY];
	int rc = db_do(p->db, e, "BEGIN", 0, NULL);

	if (rc == 0)
		rc = base_insert(p->db, &n, base, form, e);
	if (rc == 0)
		rc = db_do(p->db, e, "COMMIT", 0, NULL);
	if (rc) {
		db_do(p->db, NULL, "ROLLBACK", 0, NULL);
		return rc;
	}
	if (!(book = bases_take(p->bases, p->db, atoi(base), e)))
		return -1;
	rc = g->form.n ? bases_widen(p->bases, p->db, book, &g->form, e) : 0;
	shelf_put(bases_shelf(p->bases), book);
	if (rc == 0)
		log_info("upkeep: %s and %u more nodes have a base of their own in class c%s", g->node, g->members - 1, t->class);
	return rc;
}

/* 0, 1 when there is such a base in another class, -1. */
static int group_to_base(const struct patches *t, const struct group *g, struct err *e)
{
	const struct pass *p = t->pass;
	struct comparer with = { p->bases, p->db, p->parser };
	struct parsed parsed;
	struct drift drift;
	int rc;

	if (parser_read(p->parser, g->node, &g->xml, &parsed, e) != PARSER_OK)
		return -1;
	rc = drift_from_base(&with, t->golden, g->node, &g->xml, &drift, e);
	if (rc == 0) {
		rc = group_insert(t, g, &parsed, drift.json, e);
		drift_free(&drift);
	}
	parsed_free(&parsed);
	return rc;
}

static bool enough(const struct group *g, unsigned long class_nodes)
{
	return g->members >= ENOUGH || (g->members > 1 && g->members * ENOUGH_PART >= class_nodes);
}

/* The number of bases that were made, or -1. */
static int make_bases(const struct patches *t, unsigned long class_nodes, struct err *e)
{
	int made = 0;

	for (unsigned i = 0; i < t->ngroups; i++) {
		int rc = enough(&t->groups[i], class_nodes) ? group_to_base(t, &t->groups[i], e) : 1;

		if (rc < 0)
			return -1;
		made += !rc;
	}
	return made;
}

static int list_bases(struct patches *t, struct err *e)
{
	PQclear(t->bases);
	t->bases = db_query(t->pass->db, e, "SELECT id FROM base WHERE class = $1 ORDER BY id DESC LIMIT " BASES_TRIED, 1,
			    &DB_TEXT(t->class));
	return t->bases ? 0 : -1;
}

static void patches_free(struct patches *t)
{
	for (unsigned i = 0; i < t->ngroups; i++)
		group_free(&t->groups[i]);
	t->ngroups = 0;
	t->bytes = 0;
	PQclear(t->bases);
	t->bases = NULL;
}

static int leave_patches(struct patches *t, const char *form, unsigned long class_nodes, struct err *e)
{
	struct moves now = { .who = PRESENT, .from = form, .each = from_patch, .user = t }, again = now, past = now;
	int rc = list_bases(t, e) || moves_each(t->pass, &now, e) ? -1 : 0, made = 0;

	past.who = PAST;
	if (rc == 0 && (made = make_bases(t, class_nodes, e)) < 0)
		rc = -1;
	if (rc == 0 && made > 0 && (list_bases(t, e) || moves_each(t->pass, &again, e) || moves_each(t->pass, &past, e)))
		rc = -1;
	patches_free(t);
	if (now.made + again.made)
		log_info("upkeep: %llu nodes that were patches are fields now", now.made + again.made);
	return rc;
}

int rebase_patches(struct pass *p, struct err *e)
{
	enum { FORM, SHAPE, CLASS, GOLDEN, CLASS_NODES };
	PGresult *r = db_query(p->db, e,
		"WITH alive AS (SELECT form, count(*) AS nodes FROM node GROUP BY form)"
		" SELECT f.id, f.shape, b.class, c.golden, (SELECT sum(o.nodes) FROM alive o JOIN form g ON g.id = o.form"
		" JOIN base h ON h.id = g.base WHERE h.class = b.class)"
		" FROM alive a JOIN form f ON f.id = a.form AND f.kind = 'patch' JOIN base b ON b.id = f.base"
		" JOIN class c ON c.id = b.class", 0, NULL);
	int rc = r ? 0 : -1;

	for (int i = 0; rc == 0 && i < PQntuples(r) && pass_goes_on(p); i++) {
		struct patches t = { .pass = p, .shape = PQgetvalue(r, i, SHAPE), .class = PQgetvalue(r, i, CLASS),
				     .golden = atoi(PQgetvalue(r, i, GOLDEN)) };

		rc = leave_patches(&t, PQgetvalue(r, i, FORM), strtoul(PQgetvalue(r, i, CLASS_NODES), NULL, 10), e);
	}
	PQclear(r);
	return rc;
}
