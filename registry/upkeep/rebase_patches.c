/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "upkeep_steps.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "ingest/drift.h"
#include "reencode.h"
#include "ingest/encode.h"

#define ENOUGH 4		/* nodes that are worth a base: each patch costs as many rows of facts */
#define ENOUGH_PART 4		/* or a quarter of their class, when they are two or three */
#define GROUPS 8		/* of similar patches at a time */
#define GROUPS_MAX (32U << 20)	/* bytes of their documents */
#define BASES_TRIED "16"

/* Documents that differ from one another in fields alone. */
struct group {
	char node[256];		/* of the first of them */
	unsigned members;
};

/* The patches of one layout. */
struct patches {
	struct upkeep_run *pass;
	const char *shape, *class;
	int baseline;
	PGresult *bases;	/* of the class */
	struct group groups[GROUPS];
	unsigned ngroups;
	struct base_cache *documents;	/* the first of each group, by its index */
	size_t bytes;
};

static int group_document(struct patches *t, const struct reencode_document *h, struct err *e)
{
	bool full = t->ngroups == GROUPS || t->bytes + h->xml.len > GROUPS_MAX;
	int group, rc = base_cache_join(t->documents, h->xml.data, h->xml.len, full ? -1 : (int)t->ngroups, &group);

	if (rc < 0)
		return err_set(e, "out of memory");
	if (rc > 0)
		return 0;
	if (group == (int)t->ngroups) {
		snprintf(t->groups[t->ngroups++].node, sizeof(t->groups->node), "%s", h->node);
		t->bytes += h->xml.len;
	}
	t->groups[group].members++;
	return 0;
}

static int from_patch(struct reencoding *m, const struct reencode_document *h, struct err *e)
{
	struct patches *t = m->user;

	for (int i = 0; i < PQntuples(t->bases); i++) {
		struct base_encoding encoding;
		int rc = base_encode(t->pass, atoi(PQgetvalue(t->bases, i, 0)), &h->xml, &encoding, e);

		if (rc < 0)
			return -1;
		if (rc)
			continue;
		rc = encoding.diff.len <= h->kept ? reencode_add(m, h, &encoding, e) : 0;
		buf_free(&encoding.diff);
		return rc;
	}
	return m->scope == SCOPE_PRESENT ? group_document(t, h, e) : 0;
}

/* In a transaction: the base and, since it is known already, the layout that fits the whole group. */
static int group_insert(const struct patches *t, const struct group *g, const struct cached_base *first,
			const struct parsed *parsed, const char *drift, struct err *e)
{
	struct encode_insertion n = { .class = t->class, .shape = t->shape, .node = g->node, .drift = drift,
			      .xml = &(struct buf){ .data = first->text, .len = first->len }, .parsed = parsed };
	struct upkeep_run *p = t->pass;
	const struct cached_base *cached;
	struct layout_key layout;
	char base[DB_KEY];
	int rc = db_execute(p->db, e, "BEGIN", 0, NULL);

	if (rc == 0)
		rc = encode_insert_base(p->db, &n, base, &layout, e);
	if (rc == 0)
		rc = db_execute(p->db, e, "COMMIT", 0, NULL);
	if (rc) {
		db_execute(p->db, NULL, "ROLLBACK", 0, NULL);
		return rc;
	}
	if (!(cached = bases_acquire(p->bases, p->db, atoi(base), e)))
		return -1;
	rc = first->layout.n ? bases_widen(p->bases, p->db, cached, &first->layout, e) : 0;
	bases_release(p->bases, cached);
	if (rc == 0)
		log_info("upkeep: new base in class c%s for %s and %u more nodes", t->class, g->node, g->members - 1);
	return rc;
}

/* 0, 1 when another class has such a base, -1. */
static int group_to_base(const struct patches *t, const struct group *g, struct err *e)
{
	const struct upkeep_run *p = t->pass;
	struct drift_comparer with = { .bases = p->bases, .db = p->db, .parser = p->parser };
	const struct cached_base *first = base_cache_acquire(t->documents, g - t->groups);
	struct buf xml = { .data = first->text, .len = first->len };
	struct parsed parsed = {0};
	struct drift drift = {0};
	int rc = -1;

	if (parser_read(p->parser, g->node, &xml, &parsed, NULL, e) == PARSER_OK &&
	    (rc = drift_from_base(&with, t->baseline, g->node, &xml, &drift, e)) == 0)
		rc = group_insert(t, g, first, &parsed, drift.json, e);
	drift_free(&drift);
	parsed_free(&parsed);
	base_cache_release(t->documents, first);
	return rc;
}

static bool is_enough(const struct group *g, unsigned long class_nodes)
{
	return g->members >= ENOUGH || (g->members > 1 && g->members * ENOUGH_PART >= class_nodes);
}

/* The number of bases made, or -1. */
static int create_bases(const struct patches *t, unsigned long class_nodes, struct err *e)
{
	int made = 0;

	for (unsigned i = 0; i < t->ngroups; i++) {
		int rc = is_enough(&t->groups[i], class_nodes) ? group_to_base(t, &t->groups[i], e) : 1;

		if (rc < 0)
			return -1;
		made += !rc;
	}
	return made;
}

static int list_bases(struct patches *t, struct err *e)
{
	PQclear(t->bases);
	t->bases = db_query(t->pass->db, e, "SELECT id FROM base WHERE class = $1 ORDER BY id DESC LIMIT " BASES_TRIED,
			    1, &DB_TEXT(t->class));
	return t->bases ? 0 : -1;
}

static void patches_free(struct patches *t)
{
	base_cache_free(t->documents);
	PQclear(t->bases);
}

static int leave_patches(struct patches *t, const char *layout, unsigned long class_nodes, struct err *e)
{
	struct reencoding now = { .scope = SCOPE_PRESENT, .from = layout, .each = from_patch, .user = t }, again = now,
		past = now;
	int rc, made = 0;

	past.scope = SCOPE_PAST;
	t->documents = base_cache_new(GROUPS);
	rc = !t->documents ? err_set(e, "out of memory") : list_bases(t, e) || reencode_each(t->pass, &now, e) ? -1 : 0;
	if (rc == 0 && (made = create_bases(t, class_nodes, e)) < 0)
		rc = -1;
	if (rc == 0 && made > 0 &&
	    (list_bases(t, e) || reencode_each(t->pass, &again, e) || reencode_each(t->pass, &past, e)))
		rc = -1;
	patches_free(t);
	if (now.made + again.made)
		log_info("upkeep: %llu nodes moved from patches to fields", now.made + again.made);
	return rc;
}

int rebase_patches(struct upkeep_run *p, struct err *e)
{
	enum { LAYOUT, SHAPE, CLASS, BASELINE, CLASS_NODES };
	PGresult *r = db_query(p->db, e,
		"WITH alive AS (SELECT layout, count(*) AS nodes FROM node GROUP BY layout)"
		" SELECT f.id, f.shape, b.class, c.baseline, (SELECT sum(o.nodes) FROM alive o JOIN layout g ON g.id ="
		" o.layout JOIN base h ON h.id = g.base WHERE h.class = b.class)"
		" FROM alive a JOIN layout f ON f.id = a.layout AND f.kind = 'patch' JOIN base b ON b.id = f.base"
		" JOIN class c ON c.id = b.class", 0, NULL);
	int rc = r ? 0 : -1;

	for (int i = 0; rc == 0 && i < PQntuples(r) && upkeep_continues(p); i++) {
		struct patches t = { .pass = p, .shape = PQgetvalue(r, i, SHAPE), .class = PQgetvalue(r, i, CLASS),
				     .baseline = atoi(PQgetvalue(r, i, BASELINE)) };

		rc = leave_patches(&t, PQgetvalue(r, i, LAYOUT), strtoul(PQgetvalue(r, i, CLASS_NODES), NULL, 10), e);
	}
	PQclear(r);
	return rc;
}
