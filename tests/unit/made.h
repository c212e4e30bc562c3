/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "map/matrix/matrix.h"
#include "map/places/places.h"
#include "table.h"

OWNS(struct matrix *, matrix_free)
OWNS(struct places *, places_free)
OWNS(struct hierarchy *, hierarchy_free)

/* What tests of mappings are made of: matrices and places from words. */
static inline struct matrix *matrix_of(const char *text)
{
	struct matrix *m = matrix_parse(text, strlen(text), "test", &err);

	if (!m)
		fail_msg("%s\n%s", err.text, text);
	return m;
}

/* A grid of so many ranks each way; neighbours say `weight`. */
static inline struct matrix *grid(unsigned wide, unsigned high, unsigned weight)
{
	struct buf text = {0};
	struct matrix *m;

	buf_printf(&text, "%%%%MatrixMarket matrix coordinate real general\n%u %u %u\n", wide * high, wide * high,
		   (wide - 1) * high + wide * (high - 1));
	for (unsigned y = 0; y < high; y++)
		for (unsigned x = 0; x < wide; x++) {
			if (x + 1 < wide)
				buf_printf(&text, "%u %u %u\n", y * wide + x + 2, y * wide + x + 1, weight);
			if (y + 1 < high)
				buf_printf(&text, "%u %u %u\n", (y + 1) * wide + x + 1, y * wide + x + 1, weight);
		}
	m = matrix_of(text.data);
	buf_free(&text);
	return m;
}

static inline void add(struct places *p, const char *host, const char *shape, const char *cores, unsigned cpus)
{
	struct shape *s = shape_parse(shape, NULL);
	char all[32];

	assert_non_null(s);
	snprintf(all, sizeof(all), "0-%u", s->cores - 1);
	assert_ok(places_add(p, host, s, cores ? cores : all, cpus, &err));
	shape_free(s);
}

/* Hosts cn0, cn1, ...; all cores without a list. */
static inline struct places *places_of(unsigned hosts, const char *shape, const char *cores)
{
	struct places *p = places_new();
	char name[32];

	assert_non_null(p);
	for (unsigned h = 0; h < hosts; h++) {
		snprintf(name, sizeof(name), "cn%u", h);
		add(p, name, shape, cores, 1);
	}
	return p;
}

static inline struct hierarchy *network_of(const char *text)
{
	struct hierarchy *h = hierarchy_parse(text, strlen(text), "test", &err);

	if (!h)
		fail_msg("%s\n%s", err.text, text);
	return h;
}

/* All hosts of a network, as it tells their insides. */
static inline struct places *places_of_network(const struct hierarchy *h)
{
	struct places *p = places_new();

	assert_non_null(p);
	p->network = h;
	for (unsigned i = 0; i < h->nhosts; i++)
		assert_int_equal(places_add_inner(p, &h->hosts[i], NULL), 0);
	return p;
}
