/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "costs_store.h"

#include "base/hash.h"
#include "shape/hostlist.h"

/*
 * Notes
 *
 * No data. The caller has the connection for itself: a worker for one node, upkeep for the medians, the publisher for
 * CostsFile. Rows are locked by PostgreSQL, the node's before the list of its quantities.
 */
#define LIST_DIGITS 16
#define REFRESH_SECONDS 600	/* 1.6 million values, of 10,000 nodes of 8 NUMA nodes, need 15 */

/* A result as SQL arrays, and the text that the list is named after. */
struct listing {
	struct buf names, values, text;
};

static int listing_add(void *user, const char *name, double value)
{
	struct listing *l = user;
	char number[32];

	snprintf(number, sizeof(number), "%.7g", value);
	db_array_text(&l->names, name);
	db_array_text(&l->values, number);
	buf_printf(&l->text, "%s\n", name);
	return 0;
}

/*
 * A list is stored only with its measurement: refused measurements would fill the database with lists. The node's row
 * is locked, so that a node that is being removed is absent afterwards.
 */
#define SAVE "WITH measured AS (SELECT n.name, f.shape FROM node n JOIN layout f ON f.id = n.layout" \
	" JOIN shape s ON s.name = f.shape WHERE n.name = $1 AND s.cores = $5::integer FOR KEY SHARE OF n)," \
	" added AS (INSERT INTO cost_list (name, quantity) SELECT $3, $6::text[] FROM measured ON CONFLICT DO" \
	" NOTHING)" \
	" INSERT INTO node_costs (node, uid, shape, list, value)" \
	" SELECT name, $2::bigint, shape, $3, $4::real[] FROM measured" \
	" ON CONFLICT (node) DO UPDATE SET measured = excluded.measured, uid = excluded.uid, shape = excluded.shape," \
	" list = excluded.list, value = excluded.value RETURNING 1"
#define CORES "SELECT s.cores FROM node n JOIN layout f ON f.id = n.layout JOIN shape s ON s.name = f.shape" \
	" WHERE n.name = $1"

static enum costs_result why_not(struct db *db, const char *node, const struct hwbench *b, struct err *e)
{
	char cores[DB_KEY];
	int rc = db_query_key(db, cores, e, CORES, 1, &DB_TEXT(node));

	if (rc < 0)
		return COSTS_FAILED;
	if (!rc) {
		err_set(e, "%s: not in the registry", node);
		return COSTS_ABSENT;
	}
	err_set(e, "%s: measured on %u cores, but the node has %s: let the process use the whole node", node, b->cores,
		cores);
	return COSTS_BAD;
}

enum costs_result costs_save(struct db *db, const char *node, unsigned uid, const struct hwbench *b, struct err *e)
{
	char hex[HASH_HEX], list[LIST_DIGITS + 1], one[DB_KEY];
	enum costs_result rc = COSTS_FAILED;
	struct listing l = {0};
	int saved;

	hwbench_each(b, listing_add, &l);
	db_array_end(&l.names);
	db_array_end(&l.values);
	if (l.names.failed || l.values.failed || (l.text.len && l.text.failed)) {
		err_set(e, "out of memory");
	} else if (!l.text.len) {
		err_set(e, "%s: the result has no value", node);
		rc = COSTS_BAD;
	} else {
		hash_hex(l.text.data, l.text.len, hex);
		snprintf(list, sizeof(list), "%.*s", LIST_DIGITS, hex);
		saved = db_query_key(db, one, e, SAVE, 6, (struct db_value[]){
				DB_TEXT(node), DB_NUMBER(uid), DB_TEXT(list), DB_TEXT(l.values.data),
				DB_NUMBER(b->cores), DB_TEXT(l.names.data) });
		rc = saved > 0 ? COSTS_OK : saved < 0 ? COSTS_FAILED : why_not(db, node, b, e);
	}
	buf_free(&l.names);
	buf_free(&l.values);
	buf_free(&l.text);
	return rc;
}

#define DELETE_LISTS "DELETE FROM cost_list l WHERE NOT EXISTS (SELECT FROM node_costs n WHERE n.list = l.name)" \
	" AND NOT EXISTS (SELECT FROM class_costs k WHERE k.list = l.name)"

int costs_refresh(struct db *db, struct err *e)
{
	PGresult *r = db_limit(db, REFRESH_SECONDS, e) ? NULL : db_query(db, e, "SELECT costs_refresh()", 0, NULL);
	int rc = r ? *PQgetvalue(r, 0, 0) == 't' : -1;

	if (r && db_execute(db, e, DELETE_LISTS, 0, NULL))
		rc = -1;
	PQclear(r);
	return rc >= 0 && db_limit(db, DB_SECONDS, e) ? -1 : rc;
}

/* --- for topiary map --- */

enum { NAMES, QUANTITIES, MEDIANS, QUANTITY_COUNT };
#define PUBLISHED "SELECT names, array_to_string(quantity, E'\\n'), array_to_string(median, ' ')," \
	" cardinality(quantity) FROM published_costs ORDER BY class, shape"

int costs_text(struct db *db, struct buf *out, struct err *e)
{
	PGresult *r = db_query(db, e, PUBLISHED, 0, NULL);
	int rc = r ? 0 : -1;

	if (r)
		buf_puts(out, "# Costs of nodes as measured: median of the class. See topiary(1), map --costs.\n");
	for (int i = 0; rc == 0 && i < PQntuples(r); i++) {
		struct hwbench b = {0};

		rc = hostlist_fold(PQgetvalue(r, i, NAMES), out, e);
		if (rc == 0) {
			/* Both have n elements; quantities is cut into pieces. */
			char *quantities = PQgetvalue(r, i, QUANTITIES), *medians = PQgetvalue(r, i, MEDIANS);
			size_t n = strtoul(PQgetvalue(r, i, QUANTITY_COUNT), NULL, 10);
			const char **names = calloc(n + 1, sizeof(*names));
			double *values = calloc(n + 1, sizeof(*values));

			for (size_t k = 0; names && values && k < n; k++) {
				names[k] = quantities ? strsep(&quantities, "\n") : "";
				values[k] = strtod(medians, &medians);
			}
			rc = names && values ? hwbench_of_values(&b, names, values, n, e) : err_set(e, "out of memory");
			free(names);
			free(values);
		}
		if (rc == 0) {
			buf_puts(out, " ");
			hwbench_costs(&b, out);
			buf_puts(out, "\n");
		}
		hwbench_free(&b);
	}
	if (rc == 0 && out->failed)
		rc = err_set(e, "out of memory");
	PQclear(r);
	return rc;
}
