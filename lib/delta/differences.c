/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "delta/differences.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define CHUNK 1024	/* bytes compared at once, before the difference is located word by word */
#define NOMINAL_STEPS 16

/* --- lines --- */

int line_index_build(const char *text, size_t len, struct line_index *out)
{
	unsigned count = 0;
	unsigned *starts;
	const char *nl;

	if (len > UINT_MAX)
		return -1;
	for (size_t at = 0; at < len && (nl = memchr(text + at, '\n', len - at)); at = nl + 1 - text)
		count++;
	count += len && text[len - 1] != '\n';
	if (!(starts = malloc((count + 1) * sizeof(*starts))))
		return -1;
	starts[0] = 0;
	for (unsigned i = 1; i < count; i++)
		starts[i] = (const char *)memchr(text + starts[i - 1], '\n', len - starts[i - 1]) + 1 - text;
	starts[count] = len;
	*out = (struct line_index){ .text = text, .len = len, .starts = starts, .count = count };
	return 0;
}

void line_index_free(struct line_index *l)
{
	free(l->starts);
	*l = (struct line_index){0};
}

static struct delta_span line_index_get(const struct line_index *l, unsigned line)
{
	return (struct delta_span){ l->text + l->starts[line], l->starts[line + 1] - l->starts[line] };
}

/* The line, not before `from`, that contains the byte at this offset. */
static unsigned line_index_at(const struct line_index *l, unsigned from, size_t offset)
{
	unsigned low = from, high = l->count;

	while (high - low > 1) {
		unsigned middle = low + (high - low) / 2;

		if (l->starts[middle] <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* --- values that are accepted --- */

bool field_number_read(struct delta_span s, unsigned long long *out)
{
	unsigned long long n = 0;

	if (!s.len || s.len > NUMBER_DIGITS)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (s.at[i] < '0' || s.at[i] > '9')
			return false;
		n = 10 * n + (s.at[i] - '0');
	}
	*out = n;
	return true;
}

unsigned long long field_memory_nominal(unsigned long long bytes)
{
	unsigned long long step = 1;

	while (step <= ULLONG_MAX / NOMINAL_STEPS / 2 && step * NOMINAL_STEPS < bytes)
		step *= 2;
	if (bytes > ULLONG_MAX - (step - 1))
		return ULLONG_MAX;
	return (bytes + step - 1) / step * step;
}

/* Bytes of the UTF-8 character at s (RFC 3629); 0 when it is invalid or must be escaped in an attribute's value. */
static size_t char_len(struct delta_span s)
{
	static const struct {
		unsigned char mask, is;
		unsigned least;
	} forms[] = { { 0xe0, 0xc0, 0xa0 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 } };
	const unsigned char *c = (const unsigned char *)s.at;

	if (*c < 0x80)
		return *c >= ' ' && *c != 0x7f && !strchr("<>&\"", *c);
	for (size_t i = 0; i < COUNT(forms); i++) {
		size_t n = i + 2;
		unsigned code = *c & ~forms[i].mask & 0xff;

		if ((*c & forms[i].mask) != forms[i].is)
			continue;
		if (n > s.len)
			return 0;
		for (size_t k = 1; k < n; k++) {
			if ((c[k] & 0xc0) != 0x80)
				return 0;
			code = code << 6 | (c[k] & 0x3f);
		}
		return code < forms[i].least || (code >= 0xd800 &&
						 code <= 0xdfff) || (code & ~1u) == 0xfffe || code > 0x10ffff ? 0 : n;
	}
	return 0;
}

static bool text_fits(struct delta_span, struct delta_span is)
{
	for (size_t at = 0, n; at < is.len; at += n)
		if (!(n = char_len(span_cut(is, at, 0))))
			return false;
	return true;
}

static bool count_fits(struct delta_span was, struct delta_span is)
{
	unsigned long long n;

	return field_number_read(was, &n) && field_number_read(is, &n);
}

static bool memory_fits(struct delta_span was, struct delta_span is)
{
	unsigned long long a, b;

	return field_number_read(was, &a) && field_number_read(is, &b) &&
		field_memory_nominal(a) == field_memory_nominal(b);
}

static const struct {
	const char *element, *attr;
	bool (*fits)(struct delta_span was, struct delta_span is);
} kinds[] = {
	[FIELD_TEXT] = { "<info", "value", text_fits },
	[FIELD_COUNT] = { "<page_type", "count", count_fits },
	[FIELD_MEMORY] = { "<object", "local_memory", memory_fits },
};

/* --- positions --- */

static bool skip_text(struct delta_span *s, const char *what)
{
	size_t n = strlen(what);

	if (s->len < n || memcmp(s->at, what, n))
		return false;
	*s = span_cut(*s, n, 0);
	return true;
}

/* One attribute as hwloc writes it: ` name="value"`. */
static bool skip_attr(struct delta_span *s, struct delta_span *name, struct delta_span *value)
{
	const char *equals, *end;

	if (!skip_text(s, " ") || !(equals = memchr(s->at, '=', s->len)))
		return false;
	*name = (struct delta_span){ s->at, equals - s->at };
	*s = span_cut(*s, name->len, 0);
	if (!skip_text(s, "=\"") || !(end = memchr(s->at, '"', s->len)))
		return false;
	*value = (struct delta_span){ s->at, end - s->at };
	*s = span_cut(*s, value->len + 1, 0);
	return true;
}

static bool attr_find(struct delta_span line, const char *element, const char *attr, struct delta_span *value)
{
	struct delta_span name;

	while (skip_text(&line, " "))
		;
	if (!skip_text(&line, element))
		return false;
	while (skip_attr(&line, &name, value))
		if (name.len == strlen(attr) && !memcmp(name.at, attr, name.len))
			return true;
	return false;
}

bool field_position_find(const struct line_index *base, unsigned line, struct field_position *out)
{
	struct field_position s = { .line = line_index_get(base, line) };

	for (size_t k = 0; k < COUNT(kinds); k++) {
		if (!attr_find(s.line, kinds[k].element, kinds[k].attr, &s.value))
			continue;
		s.kind = k;
		*out = s;
		return true;
	}
	return false;
}

bool field_position_accepts(const struct field_position *p, struct delta_span is)
{
	return span_equal(p->value, is) || kinds[p->kind].fits(p->value, is);
}

bool field_position_page_size(const struct field_position *p, unsigned long long *out)
{
	struct delta_span size;

	return attr_find(p->line, kinds[FIELD_COUNT].element, "size", &size) && field_number_read(size, out);
}

/* --- differences --- */

static size_t equal_prefix(const char *a, const char *b, size_t n)
{
	size_t i = 0;

	while (n - i >= CHUNK && !memcmp(a + i, b + i, CHUNK))
		i += CHUNK;
	while (n - i >= sizeof(uint64_t) && !memcmp(a + i, b + i, sizeof(uint64_t)))
		i += sizeof(uint64_t);
	while (i < n && a[i] == b[i])
		i++;
	return i;
}

/* Infos that affect the shape (shape/tier.h, shape/core_kind.h): a node that differs in one is not like its base. */
static bool is_structural(struct delta_span line)
{
	static const char *const names[] = { "DAXType", "CoreType", "LinuxCapacity" };
	struct delta_span name;

	if (!attr_find(line, kinds[FIELD_TEXT].element, "name", &name))
		return false;
	for (size_t i = 0; i < COUNT(names); i++)
		if (name.len == strlen(names[i]) && !memcmp(name.at, names[i], name.len))
			return true;
	return false;
}

/* The difference in the line that begins at doc; false when more than the value of a possible field differs. */
static bool difference_read(const struct line_index *base, unsigned line, struct delta_span doc, struct difference *out)
{
	struct difference d = { .line = line };
	size_t start, after;
	const char *end;

	if (!field_position_find(base, line, &d.position))
		return false;
	start = d.position.value.at - d.position.line.at;
	after = d.position.line.len - start - d.position.value.len;
	if (doc.len < start || memcmp(doc.at, d.position.line.at, start) ||
	    !(end = memchr(doc.at + start, '"', doc.len - start)))
		return false;
	d.is = (struct delta_span){ doc.at + start, end - doc.at - start };
	if (doc.len - start - d.is.len < after || memcmp(end, d.position.value.at + d.position.value.len, after))
		return false;
	if (is_structural(d.position.line) || !field_position_accepts(&d.position, d.is))
		return false;
	*out = d;
	return true;
}

bool differences_find(const struct line_index *base, struct delta_span doc, struct differences *out)
{
	size_t at = 0;		/* in base */
	unsigned line = 0;

	out->n = 0;
	for (;;) {
		size_t left = base->len - at, before;
		size_t n = equal_prefix(base->text + at, doc.at, left < doc.len ? left : doc.len);
		struct difference *d = &out->list[out->n];

		if (n == left)
			return n == doc.len;
		line = line_index_at(base, line, at + n);
		before = at + n - base->starts[line];
		if (out->n == FIELDS_MAX || !difference_read(base, line, span_cut(doc, n - before, 0), d))
			return false;
		at = base->starts[line + 1];
		doc = span_cut(doc, n - before + d->position.line.len - d->position.value.len + d->is.len, 0);
		out->n++;
	}
}
