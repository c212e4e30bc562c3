/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "query.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "topo/hostlist.h"

#define TEXT_MAX 256	/* characters */

/* The patterns are those of docs/openapi.yaml. */
static const struct kind {
	const char *name, *pattern, *wanted;
} kinds[] = {
	{ "hosts", "^[][A-Za-z0-9._,-]{1,4096}$", "a host list" },
	{ "shape", "^s[0-9a-f]{8}$", "a shape, 's' and eight hexadecimal digits" },
	{ "class", "^c[1-9][0-9]{0,8}$", "a class, 'c' and a number" },
	{ "drift", "^(cosmetic|wiring|capacity|any)$", "cosmetic, wiring, capacity or any" },
	{ "severity", "^(cosmetic|wiring|capacity)$", "cosmetic, wiring or capacity" },
	{ "form", "^canonical$", "canonical" },
	{ "limit", "^([1-9][0-9]{0,2}|1000)$", "a number from 1 to 1000" },
	{ "at", NULL, "a time" },
	{ "fact", NULL, "a fact's name" },
	{ "value", NULL, "a fact's value" },
};

static bool matches(const char *pattern, const char *value)
{
	regex_t re;
	bool ok;

	if (regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB))
		return false;
	ok = !regexec(&re, value, 0, NULL, 0);
	regfree(&re);
	return ok;
}

static size_t utf8_length(const unsigned char *p)
{
	static const struct { unsigned char mask, lead, low; } form[] = {
		{ 0x80, 0x00, 0 }, { 0xe0, 0xc0, 0 }, { 0xf0, 0xe0, 0 }, { 0xf8, 0xf0, 0 },
	};

	for (size_t n = 0; n < 4; n++) {
		if ((p[0] & form[n].mask) != form[n].lead)
			continue;
		for (size_t i = 1; i <= n; i++)
			if ((p[i] & 0xc0) != 0x80)
				return 0;
		return n + 1;
	}
	return 0;
}

/* Overlong forms, surrogates and what is beyond Unicode, which PostgreSQL refuses. */
static bool utf8_foreign(const unsigned char *p, size_t len)
{
	static const unsigned char least[] = { [3] = 0xa0, [4] = 0x90 };

	return (len == 2 && p[0] < 0xc2) || (len == 3 && p[0] == 0xe0 && p[1] < least[3]) ||
	       (len == 3 && p[0] == 0xed && p[1] >= 0xa0) ||
	       (len == 4 && p[0] == 0xf0 && p[1] < least[4]) || (len == 4 && (p[0] > 0xf4 || (p[0] == 0xf4 && p[1] >= 0x90)));
}

static bool text_valid(const char *value)
{
	size_t n = 0, len;

	for (const unsigned char *p = (const unsigned char *) value; *p; p += len, n++)
		if (*p < ' ' || *p == 0x7f || !(len = utf8_length(p)) || utf8_foreign(p, len))
			return false;
	return n && n <= TEXT_MAX;
}

static bool value_valid(const struct kind *k, const char *value)
{
	return k->pattern ? matches(k->pattern, value) : text_valid(value);
}

static bool listed(const char *known, const char *name)
{
	size_t len = strlen(name), n;

	for (const char *p = known; *p; p += n + (p[n] == ' ')) {
		n = strcspn(p, " ");
		if (n && n == len && !memcmp(p, name, n))
			return true;
	}
	return false;
}

static const struct kind *find(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

int query_take(struct call *c, const char *known, const char *name, const char *value, size_t len)
{
	const struct kind *k = known && listed(known, name) ? find(name) : NULL;

	if (!k)
		return call_fail(c, 400, "there is no parameter '%.100s' here%s%s", name, known ? "; known are: " : "",
				 known ? known : "");
	if (!value || strlen(value) != len || !value_valid(k, value))
		return call_fail(c, 400, "%s: %s is wanted", name, k->wanted);
	if (call_param(c, name) || c->nparams == PARAMS_MAX)
		return call_fail(c, 400, "%s: given twice", name);
	c->params[c->nparams++] = (struct param){ k->name, value };
	return 0;
}

static int add_name(const char *name, void *user)
{
	struct buf *out = user;

	buf_printf(out, "%s\"%s\"", out->len ? "," : "{", name);
	return 0;
}

int query_hosts(struct call *c, struct buf *out)
{
	const char *hosts = call_param(c, "hosts");
	struct err e;

	if (!hosts)
		return 0;
	if (hostlist_expand(hosts, add_name, out, &e))
		return call_fail(c, 400, "hosts: %s", e.text);
	buf_puts(out, out->len ? "}" : "{}");
	return out->failed ? call_fail(c, 503, "out of memory") : 0;
}
