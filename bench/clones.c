/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "clones.h"

#include "base/array.h"

#define PAGES_LESS 800		/* at most, of the base's */
#define SERIAL_VARIES 6		/* last characters of a serial number */

struct node {
	uint64_t number, generation;
};

/* A part of the base that each node writes its own way. */
struct place {
	size_t at, len;
	void (*write)(const struct place *p, const char *was, const struct node *n, char *to, size_t *len);
	uint64_t key;				/* places of one key vary together */
	unsigned long long value, step;
};

struct clones {
	struct buf xml;
	struct place *places;	/* in the order of the text */
	size_t n;
};

/* --- the ways to vary */

/* Sebastiano Vigna's splitmix64. */
static uint64_t mixed(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static uint64_t drawn(const struct place *p, const struct node *n, unsigned i)
{
	return mixed(mixed(p->key ^ n->generation << 32) + n->number * 16 + i);
}

static void write_host(const struct place *p, const char *was, const struct node *n, char *to, size_t *len)
{
	(void) p;
	(void) was;
	*len = sprintf(to, "cn%06u", (unsigned) n->number);
}

static char varied(char c, int dice)
{
	if (isdigit((unsigned char) c))
		return '0' + dice % 10;
	if (isupper((unsigned char) c))
		return 'A' + dice % 26;
	return islower((unsigned char) c) ? 'a' + dice % 6 : c;
}

static void write_serial(const struct place *p, const char *was, const struct node *n, char *to, size_t *len)
{
	uint64_t dice = drawn(p, n, 0);
	size_t first = p->len > SERIAL_VARIES ? p->len - SERIAL_VARIES : 0;

	memcpy(to, was, p->len);
	for (size_t i = first; i < p->len; i++, dice >>= 8)
		to[i] = varied(was[i], dice & 255);
	*len = p->len;
}

static void write_uuid(const struct place *p, const char *was, const struct node *n, char *to, size_t *len)
{
	uint64_t dice = 0;
	unsigned digits = 0;

	for (size_t i = 0; i < p->len; i++) {
		bool hex = isxdigit((unsigned char) was[i]) && !isupper((unsigned char) was[i]);

		if (hex && digits++ % 16 == 0)
			dice = drawn(p, n, digits / 16);
		to[i] = hex ? "0123456789abcdef"[dice & 15] : was[i];
		dice = hex ? dice >> 4 : dice;
	}
	*len = p->len;
}

/*
 * The lowest 24 bits of a MAC, an IPoIB or a GUID: a bijection of node numbers, so that no two nodes share an address.
 */
static void write_address(const struct place *p, const char *was, const struct node *n, char *to, size_t *len)
{
	uint64_t low = p->value + n->number * (mixed(p->key) | 1);
	size_t i = p->len;

	memcpy(to, was, p->len);
	for (unsigned digits = 0; digits < 6 && i-- > 0;) {
		if (to[i] == ':')
			continue;
		to[i] = "0123456789abcdef"[low & 15];
		low >>= 4;
		digits++;
	}
	*len = p->len;
}

static void write_lid(const struct place *p, const char *was, const struct node *n, char *to, size_t *len)
{
	(void) was;
	*len = sprintf(to, "0x%x", 1 + (unsigned) ((p->value + n->number) % 0xbfff));
}

/* Firmware and kernel leave a node some pages more or less; never more than was built in. */
static void write_less(const struct place *p, const char *was, const struct node *n, char *to, size_t *len)
{
	(void) was;
	*len = sprintf(to, "%llu", p->value - p->step * (drawn(p, n, 0) % PAGES_LESS));
}

static void write_option(const struct place *p, const char *was, const struct node *n, char *to, size_t *len)
{
	*len = n->number * 0x9e3779b1u >> p->value & 1 ? p->len : 0;
	memcpy(to, was, *len);
}

void clones_make(const struct clones *c, unsigned number, unsigned generation, struct buf *out)
{
	const struct node n = { number, generation };
	const char *from = c->xml.data;
	char *to;

	out->len = 0;
	/* What is written is never longer than 24 bytes or than what was there. */
	if (!(to = buf_reserve(out, c->xml.len + 24 * c->n)))
		return;
	for (const struct place *p = c->places; p < c->places + c->n; p++) {
		size_t kept = c->xml.data + p->at - from, len;

		memcpy(to, from, kept);
		to += kept;
		p->write(p, c->xml.data + p->at, &n, to, &len);
		to += len;
		from = c->xml.data + p->at + p->len;
	}
	memcpy(to, from, c->xml.data + c->xml.len - from);
	out->len = to + (c->xml.data + c->xml.len - from) - out->data;
	out->data[out->len] = '\0';
}

/*
 * A template: the base with its parts that differ, each as \1 KIND KEY VALUE STEP \2 what the base has \3.
 */
static void (*const kinds[128])(const struct place *p, const char *was, const struct node *n, char *to, size_t *len) = {
	['h'] = write_host, ['s'] = write_serial, ['u'] = write_uuid, ['a'] = write_address, ['l'] = write_lid,
	['m'] = write_less, ['o'] = write_option,
};

struct clones *clones_new(const char *text, const char *name, struct err *e)
{
	struct clones *c = calloc(1, sizeof(*c));

	if (!c)
		goto memory;
	for (const char *mark; *text; text = *mark ? mark + 1 : mark) {
		struct place p = {0}, *more;
		char kind;
		int n = 0;

		mark = text + strcspn(text, "\1");
		buf_add(&c->xml, text, mark - text);
		if (!*mark)
			continue;
		if (sscanf(mark, "\1%c %" SCNu64 " %llu %llu\2%n", &kind, &p.key, &p.value, &p.step, &n) != 4 || !n ||
		    !(p.write = kinds[kind & 127])) {
			err_set(e, "%s: not a template of nodes", name);
			goto error;
		}
		text = mark + n;
		mark = text + strcspn(text, "\3");
		p.at = c->xml.len;
		p.len = mark - text;
		buf_add(&c->xml, text, p.len);
		if (!(more = array_add(c->places, c->n)))
			goto memory;
		*more = p;
	}
	if (!c->xml.failed)
		return c;
memory:
	err_set(e, "%s: out of memory", name);
error:
	clones_free(c);
	return NULL;
}

void clones_free(struct clones *c)
{
	if (!c)
		return;
	buf_free(&c->xml);
	free(c->places);
	free(c);
}
