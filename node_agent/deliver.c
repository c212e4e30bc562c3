/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "deliver.h"

#include <jansson.h>
#include <sys/random.h>

#include "base/log.h"
#include "client/http.h"
#include "delta/pack.h"

/*
 * Notes
 *
 * One thread, that of topiary-agent. The sequence number increases with each attempt of a boot; nothing else is kept.
 */
#define PAUSE_FIRST 1000u	/* milliseconds */
#define PAUSE_MAX 300000u
#define TIMEOUT 60
#define SPREAD_MAX 3600		/* limit on the window of any registry: it is not signed */
#define RETRY_AFTER_MAX 300
#define SEQ_MAX (INT64_MAX - (1ll << 32))	/* limit on a number from an unsigned reply, so that some are left */

static unsigned random_below(unsigned n)
{
	uint32_t r = 0;

	/* Nodes that boot together must not draw the same numbers. */
	if (getrandom(&r, sizeof(r), 0) != sizeof(r))
		r = time(NULL);
	return n ? r % n : 0;
}

unsigned deliver_pause(unsigned attempt, unsigned retry_after)
{
	unsigned limit = attempt < 9 ? PAUSE_FIRST << attempt : PAUSE_MAX;
	unsigned named = 1000 * (retry_after < RETRY_AFTER_MAX ? retry_after : RETRY_AFTER_MAX);

	return named ? named + random_below(named + 1) : random_below((limit < PAUSE_MAX ? limit : PAUSE_MAX) + 1);
}

unsigned deliver_left(const struct delivery *d)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	if (!d->until)
		return UINT_MAX;
	return d->until > t.tv_sec ? d->until - t.tv_sec : 0;
}

/* PUTs one of the two paths with a credential of its own. 0, or -1 if there is no reply. */
static int export_send(struct delivery *d, const char *what, const struct buf *body, struct claim *c,
		       struct http_answer *a, struct err *e)
{
	unsigned left = deliver_left(d);
	struct http_request r = { .method = "PUT", .timeout = left < TIMEOUT ? left + 1 : TIMEOUT };
	struct buf path = {0}, authorization = {0};
	struct timespec t;
	uint64_t now, key[2];
	char *cred = NULL;
	uid_t reader;
	int rc = -1;

	/* Increases throughout a boot, and the boot is signed, too: the time of day may be set back. */
	clock_gettime(CLOCK_BOOTTIME, &t);
	now = t.tv_sec * 1000000000ull + t.tv_nsec;
	d->seq = now > d->seq ? now : d->seq + 1;
	*c = (struct claim){ .purpose = CLAIM_EXPORT, .length = d->xml->len, .seq = d->seq };
	snprintf(c->node, sizeof(c->node), "%s", d->node);
	memcpy(c->boot_id, d->boot_id, sizeof(c->boot_id));
	hash_hex(d->xml->data, d->xml->len, c->sha256);
	if (getrandom(key, sizeof(key), 0) == sizeof(key))
		snprintf(c->key, sizeof(c->key), "%016" PRIx64 "%016" PRIx64, key[0], key[1]);
	if (settings_uid(d->settings->registry_user, &reader, e) ||
	    !(cred = cred_sign(c, reader, d->settings->munge_socket, e)))
		goto done;
	buf_printf(&path, "/v1/nodes/%s/%s", d->node, what);
	buf_printf(&authorization, "Munge %s", cred);
	if (path.failed || authorization.failed) {
		err_set(e, "out of memory");
		goto done;
	}
	r.path = path.data;
	r.authorization = authorization.data;
	if (body) {
		r.content_encoding = "zstd";
		r.body = body->data;
		r.length = body->len;
	}
	rc = http_do(d->settings, &r, a, e);
	if (rc == 0)
		log_debug("%s: PUT %s, %zu bytes: status %ld", d->node, path.data, r.length, a->status);
done:
	free(cred);
	buf_free(&path);
	buf_free(&authorization);
	return rc;
}

static enum deliver_result answer_refused(struct delivery *d, const struct http_answer *a, struct err *e)
{
	/* Refusals that may pass with time: a clock that is still wrong invalidates credentials, too. */
	static const long passing[] = { 401, 408, 409, 429 };
	bool passes = a->status < 400 || a->status >= 500;
	json_t *j = http_json(a);

	err_set(e, "the registry answered %ld: %s", a->status, http_why(j));
	json_decref(j);
	d->retry_after = a->retry_after;
	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
		passes |= a->status == passing[i];
	return passes ? DELIVER_AGAIN : DELIVER_REFUSED;
}

/* Accepted only from who could read this very claim: the registry's user (client/claim.h). */
static enum deliver_result check_ack(struct delivery *d, const struct claim *c, const struct http_answer *a,
				     struct err *e)
{
	char expected[CLAIM_MAC];
	json_t *j;

	if (!a->ack) {
		err_set(e, "the response contains no acknowledgement");
		return DELIVER_AGAIN;
	}
	if (claim_ack(c, expected) || strcmp(a->ack, expected)) {
		err_set(e, "the acknowledgement is not for this export, or not by %s, who alone can read its key",
			d->settings->registry_user);
		return DELIVER_AGAIN;
	}
	j = http_json(a);
	snprintf(d->outcome, sizeof(d->outcome), "shape %.16s, %.8s",
		 json_string_value(json_object_get(j, "shape")) ?: "?",
		 json_string_value(json_object_get(j, "stored")) ?: "?");
	json_decref(j);
	return DELIVER_DONE;
}

static enum deliver_result send_document(struct delivery *d, struct err *e)
{
	enum deliver_result rc = DELIVER_AGAIN;
	struct http_answer a = {0};
	struct claim c;
	struct buf zip = {0};

	if (zip_make(d->xml->data, d->xml->len, &zip, e) == 0 && export_send(d, "topology", &zip, &c, &a, e) == 0)
		rc = a.status == 200 ? check_ack(d, &c, &a, e) : answer_refused(d, &a, e);
	http_free(&a);
	buf_free(&zip);
	return rc;
}

/*
 * An agent with higher sequence numbers ran earlier in this boot. Returns whether there is now a number to continue
 * from.
 */
static bool catch_up(struct delivery *d, const struct http_answer *a)
{
	json_t *j = a->status == 409 ? http_json(a) : NULL;
	json_int_t last = json_integer_value(json_object_get(j, "last"));
	bool ahead = last > 0 && last < SEQ_MAX && (uint64_t) last >= d->seq;

	json_decref(j);
	if (ahead)
		d->seq = last;
	return ahead;
}

enum deliver_result deliver_document(struct delivery *d, struct err *e)
{
	enum deliver_result rc = DELIVER_AGAIN;
	struct http_answer a = {0};
	struct claim c;

	d->retry_after = 0;
	if (export_send(d, "boot", NULL, &c, &a, e))
		return rc;
	if (catch_up(d, &a)) {
		http_free(&a);
		if (export_send(d, "boot", NULL, &c, &a, e))
			return rc;
	}
	if (a.status == 202) {
		d->sent = true;
		/* If the deadline is within the window, half of the time left is reserved for sending. */
		json_t *j = http_json(&a);
		json_int_t announced = json_integer_value(json_object_get(j, "spread"));
		unsigned window = announced < 0 ? 0 : announced > SPREAD_MAX ? SPREAD_MAX : announced;
		unsigned left = deliver_left(d), ms = random_below(1000 * (window < left ? window : left / 2));

		json_decref(j);
		log_debug("%s: the registry spreads documents over %u s; sending in %u ms", d->node, window, ms);
		nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000l }, NULL);
		rc = send_document(d, e);
	} else {
		rc = a.status == 200 ? check_ack(d, &c, &a, e) : answer_refused(d, &a, e);
	}
	http_free(&a);
	return rc;
}
