/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "encode.h"

#include <assert.h>

#include "base/log.h"
#include "hwxml/xml_grammar.h"
#include "store/facts.h"
#include "gate.h"

/*
 * Notes
 *
 * A job belongs to the worker thread that encodes; what threads share is in bases (store/bases.h) and the database. Who
 * makes a new base holds an advisory lock of PostgreSQL meanwhile, so that all topiaryd of a database make one of equal
 * documents.
 */
#define SECONDS 30		/* of all statements for one document */
#define CANDIDATES 4		/* bases against which a patch is tried */
/* zstd alone shrinks a document 10 to 20 times; a patch far below that needs no comparison with it */
#define SMALL_PATCH 64

/* An arbitrary constant. A session lock, since layouts are committed meanwhile. */
#define LOCK "SELECT pg_advisory_lock(1953460330)"
#define UNLOCK "SELECT pg_advisory_unlock(1953460330)"

struct encode_job {
	struct db_pool *pool;
	const char *node;
	const struct buf *xml;
	int class;		/* 0: any */
	struct drift_comparer with;	/* its db is acquired when first needed */
	struct parsed parsed;	/* set when the document went to the parser */
	bool refused;		/* parsed, but cannot be compared with its class */
	int kept;		/* the worker that parsed it */
};

void encoded_free(struct encoded *p)
{
	buf_free(&p->diff);
	free(p->facts);
	drift_free(&p->drift);
	*p = (struct encoded){0};
}

static struct db *job_connect(void *user, struct err *e)
{
	struct encode_job *j = user;

	if (!j->with.db && (j->with.db = db_acquire(j->pool, e)))
		db_limit_all(j->with.db, SECONDS);
	return j->with.db;
}

static void encoded_set_base(struct encoded *p, const struct cached_base *cached)
{
	const struct base_metadata *meta = base_metadata(cached);

	p->base = cached->base;
	p->class = meta->class;
	p->accepted_from = meta->accepted_from;
}

/* --- fields of a cached base --- */

static int base_rank(const struct cached_base *cached, const void *job)
{
	const struct base_metadata *meta = base_metadata(cached);
	int class = ((const struct encode_job *) job)->class;

	/* A document of a class may also be stored against a base of one that was accepted from it. */
	return class && meta->class != class && meta->accepted_from != class ? -1 : meta->drift ? 1 : 0;
}

/* 0, 1 when it differs from every cached base in more than fields, -1. */
static int encode_fields(struct encode_job *j, struct encoded *out, struct err *e)
{
	const struct cached_base *cached;
	int rc = bases_encode(j->with.bases, &(struct bases_encoder){ base_rank, job_connect, j }, j->xml, &cached,
			      &out->diff, e);

	if (rc)
		return rc;
	assert(base_rank(cached, j) >= 0);
	rc = drift_of_fields(cached, j->xml, &out->drift, e);
	out->layout = base_metadata(cached)->layout;
	snprintf(out->shape, sizeof(out->shape), "%s", base_metadata(cached)->shape);
	encoded_set_base(out, cached);
	out->kind = "fields";
	out->stored_bytes = out->diff.len;
	bases_release(j->with.bases, cached);
	return rc;
}

/* --- parsed documents --- */

static int add_shape(struct encode_job *j, struct encoded *out, struct err *e)
{
	const struct parsed *p = &j->parsed;
	struct db_value v[] = { DB_TEXT(out->shape), DB_TEXT(p->allocation), DB_TEXT(p->hierarchy), DB_TEXT(p->cores),
				DB_NUMBER(p->ncores), DB_NUMBER(p->npus) };
	char one[DB_KEY];
	int rc;

	shape_name(p->allocation, out->shape);
	if (db_execute(j->with.db, e, "INSERT INTO shape (name, allocation, hierarchy, cores_only, cores, pus)"
		  " VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING", 6, v))
		return -1;
	rc = db_query_key(j->with.db, one, e, "SELECT 1 FROM shape WHERE name = $1 AND allocation = $2", 2, v);
	return rc == 0 ? err_set(e, "shape %s: hash collision with a different shape", out->shape) : rc < 0 ? -1 : 0;
}

/* The smallest patch so far, and its base, acquired. */
struct best_patch {
	struct pack pack;
	const struct cached_base *cached;
};

static void best_patch_free(const struct encode_job *j, struct best_patch *c)
{
	buf_free(&c->pack.bytes);
	if (c->cached)
		bases_release(j->with.bases, c->cached);
	*c = (struct best_patch){0};
}

#define OWN_BASE "(SELECT f.base FROM node n JOIN layout f ON f.id = n.layout WHERE n.name = $1)"
#define CANDIDATE_BASES "SELECT b.id, encode(b.sha256, 'hex'), (SELECT f.mark FROM layout f WHERE f.base = b.id AND" \
	" f.kind <> 'patch' ORDER BY f.id DESC LIMIT 1)" \
	" FROM base b JOIN shape s ON s.name = b.shape JOIN class c ON c.id = b.class" \
	" WHERE $6::int = 0 OR b.class = $6::int OR c.accepted_from = $6::int" \
	" ORDER BY b.sha256 = decode($5, 'hex') DESC, b.id = " OWN_BASE " DESC NULLS LAST," \
	" b.shape = $2 DESC, s.hierarchy = $3 DESC, abs(s.cores - $4::int), b.id DESC LIMIT $7::int"

/* Not between hwloc 2 and 3: each node of a class that is upgraded would have a patch of its own. */
static bool is_near(const struct encode_job *j, const struct best_patch *c, size_t most)
{
	return c->cached && c->pack.bytes.len <= most &&
	       xml_same_exporter(c->cached->text, c->cached->len, j->xml->data, j->xml->len);
}

/*
 * The node's own base first, then those of the most similar machines; also caches them. 0 with the best patch (or none)
 * in c; 1 when the document was encoded as fields of a candidate; -1.
 */
static int try_candidates(struct encode_job *j, struct best_patch *c, struct encoded *out, struct err *e)
{
	const struct cached_base *near[CANDIDATES] = {0};
	char sha256[HASH_HEX];
	PGresult *r;
	int rc = -1, n;

	hash_hex(j->xml->data, j->xml->len, sha256);
	if (!(r = db_query_prepared(j->with.db, e, CANDIDATE_BASES, 7, (struct db_value[]){
			DB_TEXT(j->node), DB_TEXT(out->shape), DB_TEXT(j->parsed.hierarchy),
			DB_NUMBER(j->parsed.ncores), DB_TEXT(sha256), DB_NUMBER(j->class), DB_NUMBER(CANDIDATES) })))
		return -1;
	n = PQntuples(r);
	/* An unreadable base must not keep other documents from being stored. */
	for (int i = 0; i < n; i++)
		near[i] = bases_acquire_exact(j->with.bases, j->with.db, PQgetvalue(r, i, 0), PQgetvalue(r, i, 1),
					      PQgetvalue(r, i, 2), e);
	PQclear(r);
	if ((rc = encode_fields(j, out, e)) >= 0)
		rc = !rc;
	for (int i = 0; i < n; i++) {
		struct best_patch other = { .cached = near[i] };

		if (near[i] && rc == 0 && !is_near(j, c, j->xml->len / SMALL_PATCH)) {
			rc = pack_make(near[i]->text, near[i]->len, j->xml->data, j->xml->len, &other.pack, e);
			if (!rc && (!c->cached || other.pack.bytes.len < c->pack.bytes.len)) {
				best_patch_free(j, c);
				*c = other;
				continue;
			}
		}
		best_patch_free(j, &other);
	}
	return rc;
}

/* The cached base, if it is still in the class known. */
#define CACHED_BASE "(SELECT id FROM base WHERE id = $1 AND sha256 = decode($3, 'hex') AND class = $4) b"

static int patch_layout(struct encode_job *j, const struct best_patch *c, struct encoded *out, struct err *e)
{
	const struct base_metadata *meta = base_metadata(c->cached);
	struct db_value v[] = { DB_NUMBER(c->cached->base), DB_TEXT(out->shape), DB_TEXT(meta->sha256),
				DB_NUMBER(meta->class) };
	int rc = layout_key_query(j->with.db, &out->layout, e, "SELECT f.id, f.mark FROM"
							   " " CACHED_BASE " JOIN layout f ON f.base = b.id"
			  " AND f.kind = 'patch' AND f.shape = $2::text ORDER BY f.id LIMIT 1", 4, v);
	if (rc == 0)
		rc = layout_key_query(j->with.db, &out->layout, e, "INSERT INTO layout (base, kind, shape)"
				      " SELECT b.id, 'patch', $2::text FROM "
				  CACHED_BASE " RETURNING id, mark", 4, v);
	if (rc == 0) {
		bases_drop(j->with.bases, c->cached->base);
		err_set(e, "base %d was replaced meanwhile; retry", c->cached->base);
	}
	return rc == 1 ? 0 : -1;
}

static int encode_patch(struct encode_job *j, struct best_patch *c, struct encoded *out, struct err *e)
{
	const struct base_metadata *meta = base_metadata(c->cached);
	struct buf facts = {0};

	if (patch_layout(j, c, out, e) || drift_from_class(&j->with, meta->class, j->node, j->xml, &out->drift, e))
		return -1;
	if (facts_diff(meta->facts_text, j->parsed.facts, &facts, e)) {
		buf_free(&facts);
		return -1;
	}
	encoded_set_base(out, c->cached);
	out->kind = "patch";
	out->facts = facts.data;
	out->diff = c->pack.bytes;
	out->stored_bytes = out->diff.len;
	c->pack.bytes = (struct buf){0};
	return 0;
}

/* --- a new base --- */

/*
 * Store the document as a base, without diff; it becomes the baseline of a new class, unless the node has one. 0, 1
 * when another class has the same document as base, 2 when such a base existed, was damaged and has been repaired; -1.
 */
static int encode_base(struct encode_job *j, size_t alone, struct encoded *out, struct err *e)
{
	struct db *db = j->with.db;
	char class[DB_KEY], base[DB_KEY];
	struct base_insertion n = { .class = class, .shape = out->shape, .node = j->node, .xml = j->xml,
				    .detail = j->parsed.detail, .facts = j->parsed.facts };
	int rc;

	if (j->class && drift_from_class(&j->with, j->class, j->node, j->xml, &out->drift, e))
		return -1;
	n.drift = out->drift.json;
	snprintf(class, sizeof(class), "%d", j->class);
	rc = db_execute(db, e, "BEGIN", 0, NULL);
	if (rc == 0 && !j->class &&
	    db_query_key(db, class, e, "INSERT INTO class DEFAULT VALUES RETURNING id", 0, NULL) != 1)
		rc = -1;
	if (rc == 0)
		rc = base_rows_insert(db, &n, base, &out->layout, e);
	if (rc == 0 && !j->class)
		rc = db_execute(db, e, "UPDATE class SET baseline = $1 WHERE id = $2", 2,
				(struct db_value[]){ DB_TEXT(base), DB_TEXT(class) });
	if ((rc = db_end(db, rc, e)) == 0) {
		out->base = atoi(base);
		out->class = atoi(class);
		out->kind = "base";
		out->stored_bytes = alone;
		return bases_refresh(j->with.bases, db, e);
	}
	drift_free(&out->drift);
	if (rc == 1 && (rc = base_rows_restore(db, j->xml, e)) >= 0)
		rc++;
	return rc;
}

/* A new node whose hardware is known, from exports by another hwloc, is of that class. */
static int adopt_class(struct encode_job *j, const struct best_patch *c, struct err *e)
{
	struct drift drift;
	int class;

	if (j->class || !c->cached ||
	    xml_same_exporter(c->cached->text, c->cached->len, j->xml->data, j->xml->len))
		return 0;
	class = base_metadata(c->cached)->class;
	if (drift_from_class(&j->with, class, j->node, j->xml, &drift, e))
		return -1;
	j->class = drift.json ? 0 : class;
	drift_free(&drift);
	return 0;
}

/*
 * When a thousand equal nodes boot at once, one becomes the base while the others wait for this lock. A base is stored
 * when the patch is more than half its size.
 */
static int encode_locked(struct encode_job *j, struct best_patch *c, struct encoded *out, struct err *e)
{
	struct pack alone;
	size_t len;
	int rc;

	if (bases_refresh(j->with.bases, j->with.db, e) || (rc = try_candidates(j, c, out, e)) < 0)
		return -1;
	if (rc)
		return 0;
	if (pack_make(NULL, 0, j->xml->data, j->xml->len, &alone, e))
		return -1;
	len = alone.bytes.len;
	buf_free(&alone.bytes);
	rc = is_near(j, c, len / 2) ? 1 : adopt_class(j, c, e) ? -1 : encode_base(j, len, out, e);
	if (rc == 2)
		return try_candidates(j, c, out, e) == 1 ? 0 :
		       err_set(e, "its base was damaged and has been repaired; retry");
	if (rc > 0)
		rc = c->cached ? encode_patch(j, c, out, e) : err_set(e, "another export is creating its base; retry");
	return rc;
}

static int encode_parsed(struct encode_job *j, struct encoded *out, struct err *e)
{
	struct best_patch c = {0};
	char class[DB_KEY] = "0";
	int rc = -1;

	if (!job_connect(j, e))
		goto done;
	/* The class of a known node, so that a change is reported as drift. Unreadable rows do not count. */
	if (db_query_key(j->with.db, class, e, "SELECT b.class FROM node n JOIN layout f ON f.id = n.layout JOIN base b"
			 " ON b.id = f.base WHERE n.name = $1 AND NOT EXISTS (SELECT 1 FROM unreadable u WHERE u.node ="
			 " n.name AND u.since = n.since)", 1, &DB_TEXT(j->node)) < 0)
		goto done;
	j->class = atoi(class) ? atoi(class) : j->class;
	if (bases_refresh(j->with.bases, j->with.db, e) || add_shape(j, out, e) ||
	    (rc = try_candidates(j, &c, out, e)))
		goto done;
	if (is_near(j, &c, j->xml->len / SMALL_PATCH)) {
		rc = encode_patch(j, &c, out, e);
	} else if ((rc = db_execute(j->with.db, e, LOCK, 0, NULL)) == 0) {
		rc = encode_locked(j, &c, out, e);
		db_execute(j->with.db, NULL, UNLOCK, 0, NULL);
	}
done:
	best_patch_free(j, &c);
	return rc < 0 ? -1 : 0;
}

enum encode_result encode_document(const struct settings *s, struct bases *b, struct db_pool *pool,
				   struct parser *parser, const char *node, const char *host, int class,
				   const struct buf *xml, struct encoded *out, struct err *e)
{
	static const enum encode_result parse_result[] = { ENCODE_OK, ENCODE_REFUSED, ENCODE_FAILED };
	struct encode_job j = { .pool = pool, .node = node, .xml = xml, .class = class,
				.with = { .bases = b, .parser = parser }, .kept = -1 };
	struct encoded encoded = {0};
	enum encode_result result = ENCODE_OK;
	int rc;

	j.with.refused = &j.refused;
	j.with.kept = &j.kept;
	if ((rc = encode_fields(&j, &encoded, e)) == 1) {
		int left = job_connect(&j, e) ? gate_quota_left(j.with.db, s, node, host, e) : -1;

		/* Before it is parsed, and before a base is made. */
		result = left < 0 ? ENCODE_FAILED : left ? ENCODE_OK : ENCODE_QUOTA;
		if (result == ENCODE_OK)
			result = parse_result[parser_read(parser, node, xml, &j.parsed, &j.kept, e)];
		if (result == ENCODE_OK)
			rc = encode_parsed(&j, &encoded, e);
	}
	if (rc < 0) {
		result = j.refused ? ENCODE_REFUSED : ENCODE_FAILED;
		if (!j.refused)
			err_within(e, "%s", node);
	}
	if (result == ENCODE_OK)
		log_debug("%s: encoded as %s, %s, base %d, %zu bytes", node, encoded.kind,
			  j.parsed.facts ? "parsed" : "matched without parsing", encoded.base, encoded.stored_bytes);
	if (j.kept >= 0)
		close(j.kept);
	db_release(j.with.db);
	parsed_free(&j.parsed);
	if (result == ENCODE_OK)
		*out = encoded;
	else
		encoded_free(&encoded);
	return result;
}
