/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/hostlist.h"

#include <arpa/inet.h>

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

/* One name or bracket expression, up to the next comma; name[used] is the text before `at`. */
static int expand_item(struct walk *w, const char *at, size_t used)
{
	for (; *at && *at != ',' && *at != '['; at++) {
		if (used == HOSTLIST_MAX_NAME || !(isalnum((unsigned char) *at) || strchr("._-", *at)))
			return list_error(w);
		w->name[used++] = *at;
	}
	if (*at == '[') {
		const char *rest = at + strcspn(at, "]");

		if (!*rest)
			return list_error(w);
		do {
			if (!(at = expand_range(w, at + 1, rest + 1, used)))
				return -1;
		} while (*at == ',');
		return at == rest ? 0 : list_error(w);
	}
	w->name[used] = '\0';
	return used ? w->each(w->name, 1, w->user) : list_error(w);
}

/*
 * Calls each for every run of names that differ only in the value of the number at their end, not in its digits: the
 * first name and the number of names, 1 for a single name. The length of a run is not limited: each must limit it.
 */
static int hostlist_runs(const char *list, int (*each)(const char *first, unsigned long long n, void *user), void *user,
		  struct err *e)
{
	struct walk w = { .each = each, .user = user, .list = list, .err = e };

	for (const char *at = list;; at++) {
		if (expand_item(&w, at, 0))
			return -1;
		while (*at && *at != ',')
			at += *at == '[' ? strcspn(at, "]") : 1;
		if (!*at)
			return 0;
	}
}

/* --- expansion --- */

struct expansion {
	int (*each)(const char *name, void *user);
	void *user;
	struct hostlist_usage *usage;
	const char *list;
	struct err *err;
};

static int expand_run(const char *first, unsigned long long n, void *user)
{
	struct expansion *x = user;
	struct hostlist_usage *u = x->usage;
	char name[HOSTLIST_MAX_NAME + 1];
	size_t len = strlen(first), bytes = u->bytes + n * (len + 1);

	if (u->names + n > HOSTLIST_MAX_NAMES)
		return err_set(x->err, "'%.200s': more than %u names", x->list, HOSTLIST_MAX_NAMES);
	/* The length of the list itself is not charged: text without brackets does not grow. */
	if (bytes > u->text && bytes - u->text > HOSTLIST_MAX_BYTES)
		return err_set(x->err, "'%.200s': names exceed %u MiB", x->list, HOSTLIST_MAX_BYTES >> 20);
	u->names += n;
	u->bytes = bytes;
	memcpy(name, first, len + 1);
	while (x->each(name, x->user) == 0) {
		char *digit = name + len;

		if (!--n)
			return 0;
		/* Count up the number at the end, whose length does not change. */
		while (*--digit == '9')
			*digit = '0';
		++*digit;
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

	return memcmp(x->name, y->name, x->prefix < y->prefix ? x->prefix : y->prefix) ?:
	       COMPARE(x->prefix, y->prefix) ?: COMPARE(x->digits, y->digits) ?: COMPARE(x->number, y->number);
}

static bool same_prefix(const struct hostlist_name *a, const struct hostlist_name *b)
{
	return a->digits && b->digits && a->prefix == b->prefix && !memcmp(a->name, b->name, a->prefix);
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

		/* 9 is followed by 10, 09 by 10, and 099 not by 0100. */
		if (!same_prefix(first, next) || next->number != r.last->number + 1 ||
		    (next->digits != r.last->digits && next->name[next->prefix] == '0'))
			break;
		r.last = next;
		r.n++;
	}
	return r;
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
		buf_printf(out, "%s%s%s", r.first->name + r.first->prefix, r.n > 1 ? "-" : "",
			   r.n > 1 ? r.last->name + r.last->prefix : "");
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

int hostlist_fold(const char *list, struct buf *out, struct err *e)
{
	struct names all = { .err = e };
	int rc = hostlist_expand(list, name_add, &all, e);

	if (rc == 0) {
		size_t kept = 0;

		qsort(all.hosts, all.n, sizeof(*all.hosts), host_compare);
		for (size_t i = 0; i < all.n; i++)
			if (kept && !host_compare(&all.hosts[kept - 1], &all.hosts[i]))
				free((char *) all.hosts[i].name);
			else
				all.hosts[kept++] = all.hosts[i];
		all.n = kept;
		hosts_fold(all.hosts, all.n, sizeof(*all.hosts), out);
		rc = out->failed ? err_set(e, "out of memory") : 0;
	}
	for (size_t i = 0; i < all.n; i++)
		free((char *) all.hosts[i].name);
	free(all.hosts);
	return rc;
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
	return name[strncmp(name, "0x", 2) ? strspn(name, "0123456789") : 2 + strspn(name + 2, "0123456789abcdef")];
}

/* --- sets --- */

/* Names of one prefix and number of digits. */
struct span {
	struct hostlist_name low;	/* first, for host_compare; owns its name */
	unsigned long long high;
};

struct hostset {
	struct buf extents;		/* struct span[n], sorted, not adjacent */
	size_t n, bytes, names;
};

struct set_reading {
	struct hostset *set;
	const char *list;
	size_t max;
	struct err *err;
};

static struct span *span_at(const struct hostset *s, size_t i)
{
	return (struct span *) s->extents.data + i;
}

static int add_run(const char *first, unsigned long long n, void *user)
{
	struct set_reading *r = user;
	struct hostset *s = r->set;
	char *name;
	struct span span;

	if (n > HOSTLIST_MAX_NAMES - s->names)
		return err_set(r->err, "'%.200s': more than %u names", r->list, HOSTLIST_MAX_NAMES);
	if ((s->bytes += sizeof(span) + strlen(first) + 1) > r->max)
		return err_set(r->err, "'%.200s': too many ranges", r->list);
	if (!(name = strdup(first)))
		return err_set(r->err, "out of memory");
	span.low = host_of(name);
	span.high = span.low.number + n - 1;
	buf_add(&s->extents, &span, sizeof(span));
	if (s->extents.failed) {
		free(name);
		return err_set(r->err, "out of memory");
	}
	s->n++;
	s->names += n;
	return 0;
}

/* Whether a name has the prefix and number of digits of this span. */
static bool same_family(const struct span *s, const struct hostlist_name *h)
{
	return s->low.digits == h->digits && s->low.prefix == h->prefix && !memcmp(s->low.name, h->name, h->prefix);
}

struct hostset *hostset_parse(const char *list, struct err *e)
{
	struct hostset *s = calloc(1, sizeof(*s));

	if (!s)
		return err_null(e, "out of memory");
	if (hostlist_runs(list, add_run, &(struct set_reading){ s, list, HOSTSET_MAX_BYTES + strlen(list), e }, e)) {
		hostset_free(s);
		return NULL;
	}
	size_t n = 0;

	qsort(s->extents.data, s->n, sizeof(struct span), host_compare);
	for (size_t i = 0; i < s->n; i++) {
		struct span *last = n ? span_at(s, n - 1) : NULL, *next = span_at(s, i);

		if (last && same_family(last, &next->low) && next->low.number <= last->high + 1) {
			last->high = next->high > last->high ? next->high : last->high;
			free((char *) next->low.name);
		} else {
			*span_at(s, n++) = *next;
		}
	}
	s->n = n;
	return s;
}

void hostset_free(struct hostset *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		free((char *) span_at(s, i)->low.name);
	buf_free(&s->extents);
	free(s);
}

size_t hostset_names(const struct hostset *s)
{
	return s->names;
}

/* A name can only be in the last span that does not begin after it. */
bool hostset_has(const struct hostset *s, const char *name)
{
	const struct hostlist_name h = host_of(name);
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (host_compare(span_at(s, mid), &h) <= 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low && same_family(span_at(s, low - 1), &h) && h.number <= span_at(s, low - 1)->high;
}
