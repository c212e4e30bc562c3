/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "handlers.h"

#include <stdlib.h>
#include <string.h>

#include "shape/hostlist.h"

#define TEXT_MAX 256	/* characters */
#define HOSTS_SENT 1000	/* longer host lists are matched here instead of being sent to PostgreSQL */

#define DIGITS "0123456789"
#define HEX DIGITS "abcdef"
#define ALPHANUM "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" DIGITS
#define HOSTS ALPHANUM "._,[]-"

/* How a value must look; the members that each validator uses. */
struct value_rule {
	const char *head, *bytes;	/* prefix; characters allowed after it */
	size_t min, max;		/* length of the rest; for numbers the value itself */
	const char *words;
};

/* Without control characters, and valid UTF-8, as PostgreSQL requires: jansson accepts no other. */
static bool is_text(const char *value, const struct value_rule *rule)
{
	json_t *utf8 = json_string(value);
	bool valid = utf8;
	size_t n = 0;

	(void) rule;
	for (const char *p = value; *p && valid; p++) {
		valid = (unsigned char) *p >= ' ' && *p != 0x7f;
		n += (*p & 0xc0) != 0x80;
	}
	json_decref(utf8);
	return valid && n && n <= TEXT_MAX;
}

static bool word_listed(const char *known, const char *name)
{
	size_t len = strlen(name), n;

	for (const char *p = known; *p; p += n + (p[n] == ' ')) {
		n = strcspn(p, " ");
		if (n && n == len && !memcmp(p, name, n))
			return true;
	}
	return false;
}

static bool is_word(const char *value, const struct value_rule *f)
{
	return word_listed(f->words, value);
}

/* The rest after the prefix, or NULL. */
static const char *after_prefix(const char *value, const char *head)
{
	size_t len = strlen(head);

	return strncmp(value, head, len) ? NULL : value + len;
}

static bool is_string_of(const char *value, const struct value_rule *f)
{
	const char *rest = after_prefix(value, f->head);
	size_t len = rest ? strspn(rest, f->bytes) : 0;

	return rest && !rest[len] && len >= f->min && len <= f->max;
}

static bool is_number(const char *value, const struct value_rule *f)
{
	const char *rest = after_prefix(value, f->head);
	size_t len = rest ? strspn(rest, DIGITS) : 0;

	return len && len < 10 && !rest[len] && *rest != '0' && strtoul(rest, NULL, 10) <= f->max;
}

/* As in docs/openapi.yaml. */
static const struct param_type {
	const char *name;
	bool (*valid)(const char *value, const struct value_rule *f);
	const struct value_rule *rule;
	const char *wanted;
} param_types[] = {
#define RULE(...) &(const struct value_rule){ __VA_ARGS__ }
	{ "hosts", is_string_of, RULE("", HOSTS, 1, 4096, NULL), "a host list" },
	{ "shape", is_string_of, RULE("s", HEX, 8, 8, NULL), "a shape, 's' and eight hexadecimal digits" },
	{ "class", is_number, RULE("c", NULL, 1, 999999999, NULL), "a class, 'c' and a number" },
	{ "drift", is_word, RULE(.words = "cosmetic wiring slow capacity any"),
	  "cosmetic, wiring, slow, capacity or any" },
	{ "severity", is_word, RULE(.words = "cosmetic wiring slow capacity"), "cosmetic, wiring, slow or capacity" },
	{ "form", is_word, RULE(.words = "canonical"), "canonical" },
	{ "limit", is_number, RULE("", NULL, 1, 1000, NULL), "a number from 1 to 1000" },
	{ "after", is_string_of, RULE("", ALPHANUM "._-/:+ ", 1, 400, NULL),
	  "the value of next in the previous reply" },
	{ "at", is_text, NULL, "a time" },
	{ "fact", is_text, NULL, "a fact's name" },
	{ "value", is_text, NULL, "a fact's value" },
};

int query_add_param(struct call *c, const char *known, const char *name, const char *value, size_t len)
{
	const struct param_type *k = param_types, *end = k + sizeof(param_types) / sizeof(param_types[0]);

	while (k < end && strcmp(k->name, name))
		k++;
	if (k == end || !known || !word_listed(known, name))
		return call_fail(c, 400, "unknown parameter '%.100s'%s%s", name, known ? "; allowed: " : "",
				 known ? known : "");
	if (!value || strlen(value) != len || !k->valid(value, k->rule))
		return call_fail(c, 400, "%s: expected %s", name, k->wanted);
	if (call_param(c, name) || c->nparams == PARAMS_MAX)
		return call_fail(c, 400, "%s: given more than once", name);
	c->params[c->nparams++] = (struct call_parameter){ k->name, value };
	return 0;
}

struct host_query {
	const struct call *call;
	struct buf *out;
};

static int add_name(const char *name, void *user)
{
	const struct host_query *q = user;
	char node[HOSTLIST_MAX_NAME + 1];

	snprintf(node, sizeof(node), "%s", name);
	db_array_text(q->out, call_node_canonical(q->call, node) ? node : name);
	return 0;
}

/* Names of nodes in the registry that a list of up to a million hosts contains. */
static int add_known(struct call *c, const struct hostset *wanted, struct buf *out)
{
	struct db *db = call_acquire_reader(c);
	struct err e;
	PGresult *r = db ? db_query(db, &e, "SELECT name FROM node", 0, NULL) : NULL;
	int rc = r ? 0 : -1;

	if (db && !r)
		call_fail(c, 503, "%s", e.text);
	for (int i = 0; r && i < PQntuples(r); i++)
		if (hostset_has(wanted, PQgetvalue(r, i, 0)))
			db_array_text(out, PQgetvalue(r, i, 0));
	PQclear(r);
	call_release(c, db);
	return rc;
}

int query_hosts(struct call *c, struct buf *out)
{
	const char *hosts = call_param(c, "hosts");
	struct host_query query = { c, out };
	struct hostset *wanted;
	struct err e;
	int rc = 0;

	if (!hosts)
		return 0;
	if (!(wanted = hostset_parse(hosts, &e)))
		return call_fail(c, 400, "hosts: %s", e.text);
	db_array(out);
	if (hostset_names(wanted) > HOSTS_SENT)
		rc = add_known(c, wanted, out);
	else if (hostlist_expand(hosts, add_name, &query, &e))
		rc = call_fail(c, 400, "hosts: %s", e.text);
	hostset_free(wanted);
	db_array_end(out);
	return rc == 0 && out->failed ? call_fail(c, 503, "out of memory") : rc;
}
