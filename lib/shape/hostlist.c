/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/hostlist.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define MAX_DIGITS 15u
/* libslurm refuses larger ranges (src/common/hostlist.c, MAX_RANGE). */
#define MAX_RANGE 65536u

/* --- parsing --- */

/* The state of a parser. */
struct walk {
	int (*each)(const char *first, unsigned long long n, void *user);
	void *user;
	char name[HOSTLIST_MAX_NAME + 1];
	const char *list;
	struct err *err;
};

/* A range in brackets. */
struct range {
	unsigned long long low, high;
	int width;		/* digits of the first number: shorter numbers are padded with zeros */
};

static int expand_item(struct walk *w, const char *at, size_t used);

static int list_error(struct walk *w)
{
	return err_set(w->err, "'%.200s': invalid host list", w->list);
}

/* Parses a number of at most MAX_DIGITS; returns the byte after it, or NULL. */
static const char *read_number(const char *at, unsigned long long *number)
{
	size_t digits = strspn(at, "0123456789");

	if (!digits || digits > MAX_DIGITS)
		return NULL;
	*number = strtoull(at, NULL, 10);
	return at + digits;
}

/* Returns the byte after it, or NULL. */
static const char *read_range(const char *at, struct range *r)
{
	const char *end = read_number(at, &r->low);

	r->width = end ? end - at : 0;
	r->high = r->low;
	if (end && *end == '-')
		end = read_number(end + 1, &r->high);
	return end && r->high >= r->low && r->high - r->low < HOSTLIST_MAX_NAMES ? end : NULL;
}

/* How many numbers, beginning with the first, have the same number of digits. */
static unsigned long long same_digits(const struct range *r, int digits)
{
	unsigned long long last = 1;

	while (digits--)
		last *= 10;
	return (r->high < last ? r->high : last - 1) - r->low + 1;
}

/* Each number followed by the text after the bracket; if there is none, in runs. */
static const char *expand_range(struct walk *w, const char *at, const char *rest, size_t used)
{
	bool runs = !*rest || *rest == ',';
	const char *end;
	struct range r;

	if (!(end = read_range(at, &r)) || used + MAX_DIGITS > HOSTLIST_MAX_NAME)
		return list_error(w), NULL;
	for (unsigned long long n; r.low <= r.high; r.low += n) {
		int digits = sprintf(w->name + used, "%0*llu", r.width, r.low);

		n = runs ? same_digits(&r, digits) : 1;
		if (runs ? w->each(w->name, n, w->user) : expand_item(w, rest, used + digits))
			return NULL;
	}
	return end;
}

static int expand_bracket(struct walk *w, const char *at, size_t used)
{
	const char *rest = at + strcspn(at, "]");

	if (!*rest)
		return list_error(w);
	do {
		if (!(at = expand_range(w, at + 1, rest + 1, used)))
			return -1;
	} while (*at == ',');
	return at == rest ? 0 : list_error(w);
}

/* One name or bracket expression, up to the next comma; name[used] is the text before `at`. */
static int expand_item(struct walk *w, const char *at, size_t used)
{
	for (; *at && *at != ',' && *at != '['; at++) {
		if (used == HOSTLIST_MAX_NAME || !(isalnum((unsigned char) *at) || strchr("._-", *at)))
			return list_error(w);
		w->name[used++] = *at;
	}
	if (*at == '[')
		return expand_bracket(w, at, used);
	w->name[used] = '\0';
	return used ? w->each(w->name, 1, w->user) : list_error(w);
}

static const char *item_skip(const char *at)
{
	while (*at && *at != ',')
		at += *at == '[' ? strcspn(at, "]") : 1;
	return *at ? at + 1 : NULL;
}

int hostlist_runs(const char *list, int (*each)(const char *first, unsigned long long n, void *user), void *user,
		  struct err *e)
{
	struct walk w = { .each = each, .user = user, .list = list, .err = e };

	for (const char *at = list; at; at = item_skip(at))
		if (expand_item(&w, at, 0))
			return -1;
	return 0;
}

/* --- expansion --- */

struct expansion {
	int (*each)(const char *name, void *user);
	void *user;
	struct hostlist_usage *usage;
	const char *list;
	struct err *err;
};

/* The length of the list itself is not charged: text without brackets does not grow. */
static int count_names(struct hostlist_usage *usage, const char *list, unsigned long long names, size_t len,
		       struct err *e)
{
	size_t bytes = usage->bytes + names * (len + 1);

	if (usage->names + names > HOSTLIST_MAX_NAMES)
		return err_set(e, "'%.200s': more than %u names", list, HOSTLIST_MAX_NAMES);
	if (bytes > usage->text && bytes - usage->text > HOSTLIST_MAX_BYTES)
		return err_set(e, "'%.200s': names exceed %u MiB", list, HOSTLIST_MAX_BYTES >> 20);
	usage->names += names;
	usage->bytes = bytes;
	return 0;
}

/* Increments the number at the end of the name, whose length does not change. */
static void count_up(char *end)
{
	while (*--end == '9')
		*end = '0';
	++*end;
}

static int expand_run(const char *first, unsigned long long n, void *user)
{
	struct expansion *x = user;
	char name[HOSTLIST_MAX_NAME + 1];
	size_t len = strlen(first);

	if (count_names(x->usage, x->list, n, len, x->err))
		return -1;
	memcpy(name, first, len + 1);
	while (x->each(name, x->user) == 0) {
		if (!--n)
			return 0;
		count_up(name + len);
	}
	return -1;
}

int hostlist_expand_more(const char *list, struct hostlist_usage *usage, int (*each)(const char *name, void *user),
			 void *user, struct err *e)
{
	struct expansion x = { each, user, usage, list, e };

	usage->text += strlen(list) + 1;
	return hostlist_runs(list, expand_run, &x, e);
}

int hostlist_expand(const char *list, int (*each)(const char *name, void *user), void *user, struct err *e)
{
	return hostlist_expand_more(list, &(struct hostlist_usage){0}, each, user, e);
}

/* --- folding --- */

struct hostlist_name host_of(const char *name)
{
	struct hostlist_name h = { .name = name };
	unsigned len = strlen(name);

	while (h.digits < len && h.digits < MAX_DIGITS && isdigit((unsigned char) name[len - h.digits - 1]))
		h.digits++;
	h.prefix = len - h.digits;
	h.number = strtoull(name + h.prefix, NULL, 10);
	return h;
}

/* By prefix, then by the number's length: names of one range are then adjacent. */
int host_compare(const void *a, const void *b)
{
	const struct hostlist_name *x = a, *y = b;
	int c = memcmp(x->name, y->name, x->prefix < y->prefix ? x->prefix : y->prefix);

	if (c || x->prefix != y->prefix)
		return c ? c : x->prefix < y->prefix ? -1 : 1;
	if (x->digits != y->digits)
		return x->digits < y->digits ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static bool same_prefix(const struct hostlist_name *a, const struct hostlist_name *b)
{
	return a->digits && b->digits && a->prefix == b->prefix && !memcmp(a->name, b->name, a->prefix);
}

/* 9 is followed by 10, 09 by 10, and 099 not by 0100. */
static bool host_follows(const struct hostlist_name *a, const struct hostlist_name *b)
{
	return b->number == a->number + 1 && (a->digits == b->digits || b->name[b->prefix] != '0');
}

struct run {
	const struct hostlist_name *first, *last;
	size_t n;
};

static const struct hostlist_name *host_at(const struct hostlist_name *first, size_t step, size_t i)
{
	return (const struct hostlist_name *) ((const char *) first + i * step);
}

static struct run run_from(const struct hostlist_name *first, size_t n, size_t step)
{
	struct run r = { first, first, 1 };

	while (r.n < n && r.n < MAX_RANGE) {
		const struct hostlist_name *next = host_at(first, step, r.n);

		if (!same_prefix(first, next) || !host_follows(r.last, next))
			break;
		r.last = next;
		r.n++;
	}
	return r;
}

static void run_write(const struct run *r, struct buf *out)
{
	buf_puts(out, r->first->name + r->first->prefix);
	if (r->n == 1)
		return;
	buf_puts(out, "-");
	buf_puts(out, r->last->name + r->last->prefix);
}

void hosts_fold(const struct hostlist_name *first, size_t n, size_t step, struct buf *out)
{
	const struct hostlist_name *open = NULL;	/* the first of the open bracket */

	for (size_t i = 0; i < n;) {
		struct run r = run_from(host_at(first, step, i), n - i, step);
		bool more = i + r.n < n && same_prefix(r.first, host_at(first, step, i + r.n));

		if (open) {
			buf_puts(out, ",");
		} else {
			buf_puts(out, i ? "," : "");
			buf_add(out, r.first->name, r.first->prefix);
			buf_puts(out, more || r.n > 1 ? "[" : "");
		}
		run_write(&r, out);
		if (!more)
			buf_puts(out, open || r.n > 1 ? "]" : "");
		open = more ? r.first : NULL;
		i += r.n;
	}
}

struct names {
	struct hostlist_name *hosts;
	size_t n;
	struct err *err;
};

static int name_add(const char *name, void *user)
{
	struct names *all = user;
	char *copy;

	if (array_reserve(all->hosts, all->n, 1) || !(copy = strdup(name)))
		return err_set(all->err, "out of memory");
	all->hosts[all->n++] = host_of(copy);
	return 0;
}

static size_t drop_doubles(struct hostlist_name *hosts, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (kept && !host_compare(&hosts[kept - 1], &hosts[i])) {
			free((char *) hosts[i].name);
			continue;
		}
		hosts[kept++] = hosts[i];
	}
	return kept;
}

int hostlist_fold(const char *list, struct buf *out, struct err *e)
{
	struct names all = { .err = e };
	int rc = hostlist_expand(list, name_add, &all, e);

	if (rc == 0) {
		qsort(all.hosts, all.n, sizeof(*all.hosts), host_compare);
		all.n = drop_doubles(all.hosts, all.n);
		hosts_fold(all.hosts, all.n, sizeof(*all.hosts), out);
		rc = out->failed ? err_set(e, "out of memory") : 0;
	}
	for (size_t i = 0; i < all.n; i++)
		free((char *) all.hosts[i].name);
	free(all.hosts);
	return rc;
}

static bool is_number(const char *name)
{
	bool hex = !strncmp(name, "0x", 2);

	return !name[hex ? 2 + strspn(name + 2, "0123456789abcdef") : strspn(name, "0123456789")];
}

bool hostlist_name_canonical(char *name, bool domain)
{
	size_t len = strlen(name);
	struct in_addr a;

	while (len && name[len - 1] == '.')
		name[--len] = '\0';
	for (char *p = name; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p += 'a' - 'A';
	if (inet_aton(name, &a))
		return false;
	if (!domain)
		name[strcspn(name, ".")] = '\0';
	return !is_number(name);
}
