/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "upkeep_steps.h"

#include "base/log.h"
#include "hwcmp/compare.h"
#include "ingest/drift.h"
#include "reencode.h"

/*
 * Notes
 *
 * Steps of upkeep: its thread alone. A document is moved only if it was rebuilt and compared, and is unchanged
 * meanwhile (reencode.h).
 */
#define FIELD_BYTES "128"	/* a row of the table field with its two index entries */
/* Another topiaryd may have made them for an export that it is about to commit. */
#define AGE "interval '1 hour'"
#define DELETED_AT_ONCE "16"

/* --- old layouts --- */

struct old_layout {
	struct upkeep_run *pass;
	int base;
	size_t share;	/* bytes that the layout costs for each of its documents */
};

static int to_latest_layout(struct reencoding *m, const struct reencode_document *h, struct err *e)
{
	const struct old_layout *o = m->user;
	struct base_encoding encoding;
	int rc = base_encode(o->pass, o->base, &h->xml, &encoding, e);

	if (rc)
		return rc < 0 ? -1 : 0;
	if (strcmp(encoding.layout.id, m->from) && encoding.diff.len <= h->kept + o->share)
		reencode_add(m, h, &encoding);
	buf_free(&encoding.diff);
	return 0;
}

int rebase_layouts(struct upkeep_run *p, struct err *e)
{
	enum { LAYOUT, BASE, SHARE };
	PGresult *r = db_query(p->db, e,
		"SELECT f.id, f.base, (SELECT count(*) FROM field w WHERE w.layout = f.id) *"
		" " FIELD_BYTES " / u.documents"
		" FROM (SELECT layout, count(*) AS documents FROM (SELECT layout FROM node UNION ALL SELECT layout FROM"
		" past) o GROUP BY layout) u"
		" JOIN layout f ON f.id = u.layout AND f.kind = 'fields'"
		" WHERE f.id < (SELECT max(l.id) FROM layout l WHERE l.base = f.base AND l.kind = 'fields')", 0, NULL);
	int rc = r ? 0 : -1;

	for (int i = 0; rc == 0 && i < PQntuples(r) && upkeep_continues(p); i++) {
		struct old_layout o = { p, atoi(PQgetvalue(r, i, BASE)), strtoul(PQgetvalue(r, i, SHARE), NULL, 10) };
		struct reencoding now = { .scope = SCOPE_PRESENT, .from = PQgetvalue(r, i, LAYOUT),
					  .each = to_latest_layout, .user = &o }, past = now;

		past.scope = SCOPE_PAST;
		if (o.share)
			rc = reencode_each(p, &now, e) || reencode_each(p, &past, e) ? -1 : 0;
		if (now.made + past.made)
			log_info("upkeep: %llu documents moved to the latest field layout of base %d",
				 now.made + past.made, o.base);
	}
	PQclear(r);
	return rc;
}

/* --- unused rows --- */

/* Layouts of bases that stay; their latest field layouts stay too, since they are cached. */
#define UNUSED_LAYOUTS "DELETE FROM layout WHERE id IN (SELECT f.id FROM layout f WHERE f.created < now() - " AGE \
	" AND (f.kind = 'patch' OR (f.kind = 'fields'" \
	" AND f.id < (SELECT max(l.id) FROM layout l WHERE l.base = f.base AND l.kind = 'fields')))" \
	" AND NOT EXISTS (SELECT 1 FROM node n WHERE n.layout = f.id) AND NOT EXISTS (SELECT 1 FROM past o WHERE" \
	" o.layout = f.id)" \
	" ORDER BY f.id LIMIT " DELETED_AT_ONCE ") RETURNING base"
#define UNUSED_BASE "b.created < now() - " AGE " AND NOT EXISTS (SELECT 1 FROM layout f WHERE f.base = b.id AND" \
	" (f.created >= now() - " AGE " OR f.id IN (SELECT DISTINCT n.layout FROM node n)" \
	" OR f.id IN (SELECT DISTINCT o.layout FROM past o)))"
#define UNUSED_BASES "DELETE FROM base WHERE id IN (SELECT b.id FROM base b WHERE " UNUSED_BASE \
	" AND NOT EXISTS (SELECT 1 FROM class c WHERE c.baseline = b.id)" \
	" ORDER BY b.id LIMIT " DELETED_AT_ONCE ") RETURNING id"
/* A class without nodes, and its baseline; not one that was accepted, or from which one was: nodes may follow there. */
#define UNUSED_CLASSES "WITH unused AS (SELECT c.id FROM class c WHERE c.created < now() - " AGE \
	" AND c.accepted_from IS NULL AND NOT EXISTS (SELECT 1 FROM class a WHERE a.accepted_from = c.id)" \
	" AND NOT EXISTS (SELECT 1 FROM base b WHERE b.class = c.id AND NOT (" UNUSED_BASE "))" \
	" ORDER BY c.id LIMIT " DELETED_AT_ONCE ")," \
	" gone AS (DELETE FROM class WHERE id IN (SELECT id FROM unused))" \
	" DELETE FROM base WHERE class IN (SELECT id FROM unused) RETURNING id"

/* An export committed meanwhile wins by its foreign key: then all rows stay until the next run. */
static int delete_unused(struct upkeep_run *p, const char *sql, bool bases, struct err *e)
{
	int rows;

	do {
		PGresult *r = db_query(p->db, e, sql, 0, NULL);

		if (!r)
			return strcmp(db_state(p->db), "23503") ? -1 : 0;
		rows = PQntuples(r);
		for (int i = 0; bases && i < rows; i++) {
			bases_drop(p->bases, atoi(PQgetvalue(r, i, 0)));
			log_info("upkeep: base %s deleted: no document uses it", PQgetvalue(r, i, 0));
		}
		PQclear(r);
	} while (rows && upkeep_pause(p));
	return 0;
}

int rebase_delete_unused(struct upkeep_run *p, struct err *e)
{
	return delete_unused(p, UNUSED_LAYOUTS, false, e) || delete_unused(p, UNUSED_BASES, true, e) ||
	       delete_unused(p, UNUSED_CLASSES, true, e) ? -1 : 0;
}

int rebase_refresh(struct upkeep_run *p, struct err *e)
{
	return bases_verify(p->bases, p->db, e) || bases_refresh(p->bases, p->db, e) ? -1 : 0;
}

/* --- bases for patches --- */

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
		if (encoding.diff.len <= h->kept)
			reencode_add(m, h, &encoding);
		buf_free(&encoding.diff);
		return 0;
	}
	return m->scope == SCOPE_PRESENT ? group_document(t, h, e) : 0;
}

/* In a transaction: the base and, since it is known already, the layout that fits the whole group. */
static int group_insert(const struct patches *t, const struct group *g, const struct cached_base *first,
			const struct parsed *parsed, const char *drift, struct err *e)
{
	struct base_insertion n = { .class = t->class, .shape = t->shape, .node = g->node, .drift = drift,
				    .xml = &(struct buf){ .data = first->text, .len = first->len },
				    .detail = parsed->detail, .facts = parsed->facts };
	struct upkeep_run *p = t->pass;
	const struct cached_base *cached;
	struct layout_key layout;
	char base[DB_KEY];
	int rc = db_execute(p->db, e, "BEGIN", 0, NULL);

	if (rc == 0)
		rc = base_rows_insert(p->db, &n, base, &layout, e);
	if ((rc = db_end(p->db, rc, e)))
		return rc;
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

/* The number of bases made, or -1. */
static int create_bases(const struct patches *t, unsigned long class_nodes, struct err *e)
{
	int made = 0;

	for (unsigned i = 0; i < t->ngroups; i++) {
		const struct group *g = &t->groups[i];
		bool enough = g->members >= ENOUGH || (g->members > 1 && g->members * ENOUGH_PART >= class_nodes);
		int rc = enough ? group_to_base(t, g, e) : 1;

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
	base_cache_free(t->documents);
	PQclear(t->bases);
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

/* --- accepted classes --- */

struct following {
	struct upkeep_run *pass;
	int baseline;
	/* the nodes are in that class already; their drift was determined against its former baseline */
	bool own;
};

/* Is it the base but for identity? It differs from it in fields alone. 1 or 0, -1. */
static int is_twin(struct upkeep_run *p, int base, const struct buf *xml, struct err *e)
{
	const struct cached_base *cached = bases_acquire(p->bases, p->db, base, e);
	const struct base_metadata *meta = cached ? base_metadata(cached) : NULL;
	struct line_index lines;
	int rc = 1;

	if (!cached)
		return -1;
	if (line_index_build(xml->data, xml->len, &lines)) {
		bases_release(p->bases, cached);
		return err_set(e, "out of memory");
	}
	for (size_t i = 0; rc && i < cached->layout.n; i++) {
		unsigned line = cached->layout.fields[i].line;
		const unsigned *a = &cached->lines.starts[line], *b = &lines.starts[line];

		if (compare_fact(meta->facts[i].name) > SEVERITY_IDENTITY)
			rc = a[1] - a[0] == b[1] - b[0] && !memcmp(cached->text + a[0], xml->data + b[0], a[1] - a[0]);
	}
	line_index_free(&lines);
	bases_release(p->bases, cached);
	return rc;
}

/* The stored drift was determined against another base than the present baseline. */
static int update_drift(struct upkeep_run *p, int baseline, const struct reencode_document *h, struct err *e)
{
	struct drift_comparer with = { .bases = p->bases, .db = p->db, .parser = p->parser };
	struct drift drift = {0};
	int rc = drift_from_base(&with, baseline, h->node, &h->xml, &drift, e);

	if (rc == 0 && drift.json)
		rc = db_execute(p->db, e, "UPDATE drift SET severity = $2, changes = $3::jsonb WHERE node = $1 AND"
				" changes <> $3::jsonb AND EXISTS (SELECT 1 FROM node WHERE name = $1 AND sha256 ="
				" decode($4, 'hex'))", 4,
				(struct db_value[]){ DB_TEXT(h->node), DB_TEXT(drift.severity), DB_TEXT(drift.json),
						     DB_TEXT(h->sha256) });
	drift_free(&drift);
	return rc;
}

static int to_accepted(struct reencoding *m, const struct reencode_document *h, struct err *e)
{
	const struct following *f = m->user;
	struct base_encoding encoding = {0};
	int rc = base_encode(f->pass, f->baseline, &h->xml, &encoding, e), twin;

	if (rc < 0)
		return -1;
	twin = rc == 0 ? is_twin(f->pass, f->baseline, &h->xml, e) : 0;
	if (twin < 0)
		rc = -1;
	else if (twin)
		reencode_add(m, h, &encoding);
	else
		rc = f->own ? update_drift(f->pass, f->baseline, h, e) : 0;
	buf_free(&encoding.diff);
	return rc;
}

int rebase_accepted(struct upkeep_run *p, struct err *e)
{
	enum { LAYOUT, BASELINE, OWN, BEFORE };
	/*
	 * Each layout with drifting nodes, with their class if its baseline was accepted recently, and with the classes
	 * related by acceptance: later ones, and earlier ones that still have nodes.
	 */
	PGresult *r = db_query(p->db, e,
		"WITH RECURSIVE edge(a, b) AS (SELECT id, accepted_from FROM class WHERE accepted_from IS NOT NULL"
		" UNION ALL SELECT accepted_from, id FROM class WHERE accepted_from IS NOT NULL),"
		" kin(a, b) AS (SELECT a, a FROM edge UNION SELECT k.a, e.b FROM kin k JOIN edge e ON e.a = k.b),"
		" alive(class) AS (SELECT DISTINCT b.class FROM node n JOIN layout f ON f.id = n.layout JOIN base b ON"
		" b.id = f.base),"
		" drifted(class, layout) AS (SELECT DISTINCT b.class, f.id FROM drift d JOIN node n ON n.name = d.node"
		" JOIN layout f ON f.id = n.layout JOIN base b ON b.id = f.base)"
		" SELECT d.layout, c.baseline, k.a = k.b, CASE WHEN k.a = k.b THEN c.created + interval '1 day' END"
		" FROM drifted d JOIN kin k ON k.a = d.class JOIN class c ON c.id = k.b"
		" WHERE k.b > k.a OR (k.b = k.a AND c.accepted_from IS NOT NULL) OR k.b IN (SELECT class FROM alive)"
		" ORDER BY 3 DESC, c.id DESC, d.layout", 0, NULL);
	int rc = r ? 0 : -1;

	for (int i = 0; rc == 0 && i < PQntuples(r) && upkeep_continues(p); i++) {
		struct following f = { p, atoi(PQgetvalue(r, i, BASELINE)), *PQgetvalue(r, i, OWN) == 't' };
		struct reencoding m = { .scope = SCOPE_DRIFTED, .from = PQgetvalue(r, i, LAYOUT), .clear_drift = true,
					.each = to_accepted, .user = &f,
				   .time = PQgetisnull(r, i, BEFORE) ? NULL : PQgetvalue(r, i, BEFORE) };

		rc = reencode_each(p, &m, e);
		if (m.made)
			log_info("upkeep: %llu nodes moved to the accepted class of base %d", m.made, f.baseline);
	}
	PQclear(r);
	return rc;
}
