/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/hostset.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "shape/hostlist.h"

/* Names of one prefix and number of digits. */
struct span {
	struct hostlist_name low;	/* first, for host_compare; owns its name */
	unsigned long long high;
};

struct hostset {
	struct buf extents;		/* struct span[n], sorted, not adjacent */
	size_t n, bytes, names;
};

struct reading {
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
	struct reading *r = user;
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

static void spans_unite(struct hostset *s)
{
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
}

struct hostset *hostset_parse(const char *list, struct err *e)
{
	struct hostset *s = calloc(1, sizeof(*s));

	if (!s) {
		err_set(e, "out of memory");
		return NULL;
	}
	if (hostlist_runs(list, add_run, &(struct reading){ s, list, HOSTSET_MAX_BYTES + strlen(list), e }, e)) {
		hostset_free(s);
		return NULL;
	}
	spans_unite(s);
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
