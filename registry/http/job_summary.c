/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "handlers.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "delta/pack.h"
#include "ingest/quota.h"
#include "store/json_rows.h"

#define SUMMARY_MAX 2560u	/* bytes: trace/summary.h */
#define JOB_DIGITS 10u

/* JOB or JOB.STEP as Slurm writes them: the numbers of its steps, or a word. */
struct job_step {
	char job[JOB_DIGITS + 1];
	const char *step;	/* borrowed; "" for the whole job, NULL if none is named */
};

/* 0, or -1 with the reply filled. */
static int job_step_parse(struct call *c, struct job_step *out)
{
	static const char word[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	size_t digits = strspn(c->node, "0123456789"), rest = strcspn(c->node + digits, "");
	const char *step = c->node + digits + 1;

	if (!digits || digits > JOB_DIGITS || *c->node == '0' ||
	    (rest && (c->node[digits] != '.' || rest < 2 || rest > 16 || strspn(step, word) != rest - 1)))
		return call_fail(c, 400, "%s: expected JOB or JOB.STEP", c->node);
	snprintf(out->job, sizeof(out->job), "%.*s", (int) digits, c->node);
	out->step = rest ? step : NULL;
	return 0;
}

int job_summary_admit(struct call *c)
{
	struct job_step j;

	return call_check_zstd(c) || job_step_parse(c, &j) || call_check_credential(c) || admin_check_claim(c) ||
	       call_check_length(c, SUMMARY_MAX) ? -1 : 0;
}

/* jsonb writes numbers out in full: 1e131071 has as many digits. */
static bool numbers_are_short(const json_t *j)
{
	double x = fabs(json_number_value(j));
	const char *name;
	json_t *member;
	size_t i;

	json_object_foreach((json_t *) j, name, member)
		if (!numbers_are_short(member))
			return false;
	json_array_foreach(j, i, member)
		if (!numbers_are_short(member))
			return false;
	return !x || (x > 1e-30 && x < 1e30);
}

/* The members of which the view topiary_job_metrics makes numbers. */
static bool members_are_numbers(const json_t *j, const char *const *names)
{
	const json_t *x;

	for (; *names; names++)
		if ((x = json_object_get(j, *names)) && !json_is_null(x) && !json_is_number(x))
			return false;
	return true;
}

static bool is_summary(const json_t *j)
{
	static const char *const own[] = { "nodes", "seconds", NULL };
	static const char *const of_metric[] = { "total", "average", "least", "most", NULL };
	const json_t *nodes = json_object_get(j, "nodes"), *metric;
	size_t i;

	if (!json_is_object(j) || !members_are_numbers(j, own) || !numbers_are_short(j) ||
	    (nodes && (!json_is_integer(nodes) || json_integer_value(nodes) < 0 ||
		       json_integer_value(nodes) > INT_MAX)))
		return false;
	json_array_foreach(json_object_get(j, "metrics"), i, metric)
		if (!members_are_numbers(metric, of_metric))
			return false;
	return true;
}

/*
 * The signed text: of characters that need no escape in JSON or on a terminal. It is stored as it was read here, where
 * 1e-16383 is 0.
 */
static int summary_decompress(struct call *c, struct buf *text)
{
	json_error_t why;
	json_t *j;
	char *read;

	if (call_body_text(c, text))
		return -1;
	for (size_t i = 0; i < text->len; i++)
		if (text->data[i] < ' ' || text->data[i] > '~' || text->data[i] == '\\')
			return call_fail(c, 422, "%s: byte %zu of the summary is not printable ASCII, or a backslash",
					 c->node, i);
	j = json_loadb(text->data, text->len, JSON_REJECT_DUPLICATES, &why);
	if (!j || !is_summary(j)) {
		call_fail(c, 422, "%s: not the summary of a job: %s", c->node,
			  j ? "not an object, or a number in it is of another type or out of range" :
			      why.text);
		json_decref(j);
		return -1;
	}
	read = json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(15));
	json_decref(j);
	buf_free(text);
	if (read)
		buf_puts(text, read);
	free(read);
	return text->len && !text->failed ? 0 : call_fail(c, 503, "out of memory");
}

/* A user who has JobSummaries of the last 24 hours waits. */
#define STORE_SQL "INSERT INTO job_summary (job, step, uid, summary)" \
	" SELECT $1::bigint, $2::text, $3::bigint, $4::jsonb" \
	" WHERE (SELECT count(*) FROM (SELECT FROM job_summary WHERE uid = $3::bigint" \
	" AND stored > now() - interval '1 day' LIMIT $5::bigint) today) < $5::bigint" \
	" ON CONFLICT (job, step, uid) DO UPDATE SET summary = excluded.summary, stored = excluded.stored"

/* SQLSTATE of what is wrong with the text: data exception, constraint, nested too deeply. */
static bool is_bad_text(const char *state)
{
	return !strncmp(state, "22", 2) || !strncmp(state, "23", 2) || !strncmp(state, "54", 2);
}

static void summary_store(struct call *c, struct db *db, const struct job_step *j, const struct buf *text)
{
	char uid[16], quota[16];
	struct db_value values[] = { DB_TEXT(j->job), DB_TEXT(j->step ? j->step : ""), DB_TEXT(uid),
				     DB_TEXT(text->data), DB_TEXT(quota) };
	struct err e;
	PGresult *r;

	snprintf(uid, sizeof(uid), "%u", (unsigned) c->signer);
	snprintf(quota, sizeof(quota), "%u", c->service->settings.job_summaries);
	r = db_query_prepared(db, &e, STORE_SQL, 5, values);
	if (!r && is_bad_text(db_state(db))) {
		call_fail(c, 422, "%s: not the summary of a job: %s", c->node, e.text);
	} else if (!r) {
		call_fail(c, 503, "%s: %s", c->node, e.text);
	} else if (!atoi(PQcmdTuples(r))) {
		call_fail(c, 429, "%s: uid %s has sent %s summaries in 24 hours (JobSummaries)", c->node, uid, quota);
		c->reply.retry_after = QUOTA_RETRY;
	} else {
		log_debug("job %s: summary of %zu bytes by uid %s", c->node, text->len, uid);
		call_json(c, 200, json_pack("{s:s, s:I}", "job", c->node, "bytes", (json_int_t) text->len));
	}
	PQclear(r);
}

void job_summary_put(struct call *c)
{
	struct buf text = {0};
	struct job_step j;
	struct db *db = NULL;

	if (job_step_parse(c, &j) == 0 && summary_decompress(c, &text) == 0 && (db = call_acquire_writer(c)))
		summary_store(c, db, &j, &text);
	db_release(c->service->pool, db);
	buf_free(&text);
}

int job_summary_admit_read(struct call *c)
{
	struct job_step j;

	if (!c->authorization)
		return call_fail(c, 401, "%s: reading a job's summary requires an 'Authorization: Munge' credential",
				 c->node);
	return job_step_parse(c, &j) ? -1 : access_admit(c);
}

#define READ_SQL "SELECT step, uid, " RFC3339("stored") ", summary FROM job_summary" \
	" WHERE job = $1 AND ($2::text IS NULL OR step = $2) AND ($3::bigint IS NULL OR uid = $3) ORDER BY step, uid"

void read_job_summary(struct call *c)
{
	static const struct json_column columns[] = {
		{ "step", COLUMN_TEXT }, { "uid", COLUMN_PLAIN }, { "stored", COLUMN_TEXT },
		{ "summary", COLUMN_PLAIN }, {0},
	};
	char uid[16], first[JOB_DIGITS + 16];
	struct job_step j;

	if (job_step_parse(c, &j))
		return;
	snprintf(uid, sizeof(uid), "%u", (unsigned) c->signer);
	snprintf(first, sizeof(first), "\"job\":%s,", j.job);
	reply_rows(c, first, "summaries", columns, READ_SQL, 3,
		   (struct db_value[]){ DB_TEXT(j.job), DB_TEXT(j.step),
					DB_TEXT(c->reader == ACCESS_ADMIN ? NULL : uid) });
}
