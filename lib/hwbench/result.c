/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwbench/hwbench.h"

#include <math.h>

#include "base/array.h"

#define NAME_MAX_BYTES 64
#define CACHE_LINE "cache line, "
#define BETWEEN CACHE_LINE "NUMA node %u to %u"
#define LATENCY "memory latency, NUMA node %u to %u"
#define BANDWIDTH HWBENCH_RATE ", NUMA node %u to %u"
#define DOMAIN HWBENCH_RATE ", %u of %u cores of one %s"
#define LEVEL CACHE_LINE "different %s"

int hwbench_init(struct hwbench *b, unsigned cores, unsigned numas, struct err *e)
{
	size_t pairs = (size_t) numas * numas;

	*b = (struct hwbench){ .cores = cores, .numas = numas, .os_index = calloc(numas + 1, sizeof(*b->os_index)),
			       .latency = malloc((pairs + 1) * sizeof(double)),
			       .bandwidth = malloc((pairs + 1) * sizeof(double)),
			       .between = malloc((pairs + 1) * sizeof(double)) };
	if (!b->os_index || !b->latency || !b->bandwidth || !b->between)
		return err_set(e, "out of memory");
	for (size_t i = 0; i < pairs; i++)
		b->latency[i] = b->bandwidth[i] = b->between[i] = NAN;
	for (int level = 0; level < LEVEL_COUNT; level++)
		b->handovers[level].level = level;
	return 0;
}

void hwbench_free(struct hwbench *b)
{
	for (unsigned i = 0; i < b->ndomains; i++) {
		free(b->domains[i].used);
		free(b->domains[i].bandwidth);
	}
	free(b->domains);
	free(b->os_index);
	free(b->latency);
	free(b->bandwidth);
	free(b->between);
	*b = (struct hwbench){0};
}

/* --- names --- */

struct naming {
	int (*each)(void *user, const char *name, double value);
	void *user;
	char name[NAME_MAX_BYTES];
};

#define EMIT(n, value, ...) \
	(isnan(value) ? 0 : (snprintf((n)->name, sizeof((n)->name), __VA_ARGS__), \
			     (n)->each((n)->user, (n)->name, value)))

static int pairs_each(struct naming *n, const struct hwbench *b)
{
	for (unsigned i = 0; i < b->numas * b->numas; i++) {
		unsigned from = b->os_index[i / b->numas], to = b->os_index[i % b->numas];
		double between = i / b->numas < i % b->numas ? b->between[i] : NAN;
		int rc = EMIT(n, b->latency[i], LATENCY, from, to);

		if (rc == 0)
			rc = EMIT(n, b->bandwidth[i], BANDWIDTH, from, to);
		if (rc == 0)
			rc = EMIT(n, between, BETWEEN, from, to);
		if (rc)
			return rc;
	}
	return 0;
}

int hwbench_each(const struct hwbench *b, int (*each)(void *user, const char *name, double value), void *user)
{
	struct naming n = { .each = each, .user = user };
	int rc = pairs_each(&n, b);

	for (int level = LEVEL_PACKAGE; rc == 0 && level < LEVEL_COUNT; level++)
		if (b->handovers[level].pairs)
			rc = EMIT(&n, b->handovers[level].seconds, LEVEL, level_name(level));
	for (const struct hwbench_domain *d = b->domains; rc == 0 && d < b->domains + b->ndomains; d++)
		for (unsigned i = 0; rc == 0 && i < d->n; i++)
			rc = EMIT(&n, d->bandwidth[i], DOMAIN, d->used[i], d->cores, level_name(d->level));
	return rc;
}

static bool between_read(const char *name, unsigned *from, unsigned *to)
{
	int used = 0;

	return sscanf(name, BETWEEN "%n", from, to, &used) == 2 && !name[used];
}

static unsigned numa_index(const unsigned *os_index, unsigned n, unsigned wanted)
{
	unsigned i = 0;

	while (i < n && os_index[i] != wanted)
		i++;
	return i;
}

/* The NUMA nodes in the order in which they are named. Returns their number. */
static unsigned numas_named(const char *const *names, size_t n, unsigned os_index[static HWBENCH_NUMAS])
{
	unsigned pair[2], numas = 0;

	for (size_t i = 0; i < n; i++)
		for (unsigned k = 0; between_read(names[i], &pair[0], &pair[1]) && k < 2; k++)
			if (numa_index(os_index, numas, pair[k]) == numas && numas < HWBENCH_NUMAS)
				os_index[numas++] = pair[k];
	return numas;
}

int hwbench_of_values(struct hwbench *b, const char *const *names, const double *values, size_t n, struct err *e)
{
	unsigned os_index[HWBENCH_NUMAS], numas = numas_named(names, n, os_index);

	if (hwbench_init(b, 0, numas, e))
		return -1;
	memcpy(b->os_index, os_index, numas * sizeof(*os_index));
	for (size_t i = 0; i < n; i++) {
		unsigned from, to;

		if (between_read(names[i], &from, &to)) {
			from = numa_index(b->os_index, b->numas, from);
			to = numa_index(b->os_index, b->numas, to);
			if (from < b->numas && to < b->numas)
				b->between[from * b->numas + to] = b->between[to * b->numas + from] = values[i];
		}
		for (int level = LEVEL_PACKAGE; level < LEVEL_COUNT; level++) {
			char own[NAME_MAX_BYTES];

			snprintf(own, sizeof(own), LEVEL, level_name(level));
			if (!strcmp(names[i], own))
				b->handovers[level] = (struct hwbench_handover){ level, 1, values[i] };
		}
	}
	return 0;
}

/* --- costs --- */

/* The NUMA nodes with own cores, if all pairs of them were measured. Returns their number; 0: not all, or one. */
static unsigned numas_with_cores(const struct hwbench *b, unsigned *list)
{
	unsigned n = 0;

	for (unsigned i = 0; i < b->numas; i++)
		for (unsigned k = 0; k < b->numas; k++)
			if (!isnan(b->between[i * b->numas + k])) {
				list[n++] = i;
				break;
			}
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < i; k++)
			if (isnan(b->between[list[i] * b->numas + list[k]]))
				return 0;
	return n;
}

void hwbench_costs(const struct hwbench *b, struct buf *out)
{
	double unit = 0, least = 0, cost[LEVEL_COUNT];

	for (int level = LEVEL_CORE; level >= LEVEL_NODE; level--) {
		const struct hwbench_handover *h = &b->handovers[level];
		double own = level_default_cost[level];

		if (level != LEVEL_NODE && h->pairs) {
			unit = unit ? unit : own / h->seconds;
			own = fmin(h->seconds * unit, level_default_cost[LEVEL_NODE]);
		}
		cost[level] = least = fmax(own, least);
	}
	for (int level = LEVEL_NODE; level < LEVEL_COUNT; level++)
		buf_printf(out, "%s%s=%.1f", level ? "," : "", level_name(level), cost[level]);
	if (unit) {
		unsigned list[HWBENCH_NUMAS], n = b->numas > HWBENCH_NUMAS ? 0 : numas_with_cores(b, list);

		for (unsigned i = 0; i < n; i++)
			for (unsigned k = i + 1; k < n; k++)
				buf_printf(out, ",%u-%u=%.1f", i, k,
					   fmin(fmax(cost[LEVEL_L3], unit * b->between[list[i] * b->numas + list[k]]),
						level_default_cost[LEVEL_NODE]));
	}
}

/* --- JSON --- */

static json_t *value_json(double value)
{
	return isnan(value) ? json_null() : json_real(value);
}

json_t *hwbench_to_json(const struct hwbench *b)
{
	json_t *memory = json_array(), *between = json_array(), *domains = json_array(), *handovers = json_array(), *j;
	struct buf costs = {0};

	for (unsigned i = 0; i < b->numas * b->numas; i++) {
		json_int_t from = b->os_index[i / b->numas], to = b->os_index[i % b->numas];

		json_array_append_new(memory, json_pack("{s:I, s:I, s:o, s:o}", "from", from, "to", to,
							"latency_seconds", value_json(b->latency[i]),
							"bytes_per_second", value_json(b->bandwidth[i])));
		if (i / b->numas < i % b->numas)
			json_array_append_new(between, json_pack("{s:I, s:I, s:o}", "from", from, "to", to, "seconds",
								 value_json(b->between[i])));
	}
	for (const struct hwbench_domain *d = b->domains; d < b->domains + b->ndomains; d++)
		for (unsigned i = 0; i < d->n; i++)
			json_array_append_new(domains, json_pack("{s:s, s:I, s:I, s:o}", "level", level_name(d->level),
								 "cores", (json_int_t) d->cores, "used",
								 (json_int_t) d->used[i], "bytes_per_second",
								 value_json(d->bandwidth[i])));
	for (int level = LEVEL_PACKAGE; level < LEVEL_COUNT; level++)
		if (b->handovers[level].pairs)
			json_array_append_new(handovers, json_pack("{s:s, s:I, s:f}", "level", level_name(level),
								   "pairs", (json_int_t) b->handovers[level].pairs,
								   "seconds", b->handovers[level].seconds));
	hwbench_costs(b, &costs);
	j = json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:s*}", "cores", (json_int_t) b->cores, "numa_nodes",
		      (json_int_t) b->numas, "cache_line", handovers, "numa_cache_line", between, "memory", memory,
		      "domains", domains, "costs", costs.data);
	if (costs.failed) {
		json_decref(j);
		j = NULL;
	}
	buf_free(&costs);
	return j;
}

/* --- reading it --- */

/* What a value may be: more than any hardware, less than would overflow what is computed of it. */
static const struct range {
	const char *name;
	double least, most;
} seconds_range = { "seconds", 1e-12, 1 }, latency_range = { "latency_seconds", 1e-12, 1 },
  rate_range = { "bytes_per_second", 1, 1e18 };

static int read_value(const json_t *row, const struct range *r, double *out, struct err *e)
{
	const json_t *j = json_object_get(row, r->name);
	double value = json_number_value(j);

	if (json_is_null(j))
		return 0;
	if (!json_is_number(j) || !(value >= r->least && value <= r->most))
		return err_set(e, "%s: expected a number from %g to %g, or null", r->name, r->least, r->most);
	*out = value;
	return 0;
}

static int read_number(const json_t *row, const char *name, unsigned most, unsigned *out, struct err *e)
{
	const json_t *j = json_object_get(row, name);

	if (!json_is_integer(j) || json_integer_value(j) < 0 || json_integer_value(j) > most)
		return err_set(e, "%s: expected an integer from 0 to %u", name, most);
	*out = json_integer_value(j);
	return 0;
}

static int read_level(const json_t *row, int *out, struct err *e)
{
	const char *name = json_string_value(json_object_get(row, "level"));
	int level = name ? level_parse(name) : -1;

	if (level <= LEVEL_NODE)
		return err_set(e, "level: expected package, die, numa, l3, l2 or core");
	*out = level;
	return 0;
}

/* The two NUMA nodes of a row; *at is the index of their values. */
static int read_pair(const struct hwbench *b, const json_t *row, unsigned *at, struct err *e)
{
	unsigned from, to;

	if (read_number(row, "from", UINT16_MAX, &from, e) || read_number(row, "to", UINT16_MAX, &to, e))
		return -1;
	from = numa_index(b->os_index, b->numas, from);
	to = numa_index(b->os_index, b->numas, to);
	if (from == b->numas || to == b->numas)
		return err_set(e, "from, to: more than %u NUMA nodes", b->numas);
	*at = from * b->numas + to;
	return 0;
}

static int read_memory(struct hwbench *b, const json_t *row, struct err *e)
{
	unsigned at;

	return read_pair(b, row, &at, e) || read_value(row, &latency_range, &b->latency[at], e) ||
	       read_value(row, &rate_range, &b->bandwidth[at], e) ? -1 : 0;
}

static int read_between(struct hwbench *b, const json_t *row, struct err *e)
{
	unsigned at;

	if (read_pair(b, row, &at, e) || read_value(row, &seconds_range, &b->between[at], e))
		return -1;
	b->between[at % b->numas * b->numas + at / b->numas] = b->between[at];
	return 0;
}

static int read_handover(struct hwbench *b, const json_t *row, struct err *e)
{
	struct hwbench_handover h = { .seconds = NAN };
	int level = 0;

	if (read_level(row, &level, e) || read_number(row, "pairs", UINT16_MAX, &h.pairs, e) ||
	    read_value(row, &seconds_range, &h.seconds, e))
		return -1;
	if (isnan(h.seconds))
		h.pairs = 0;
	h.level = level;
	b->handovers[level] = h;
	return 0;
}

/* The rows of a domain follow each other. */
static int read_domain(struct hwbench *b, const json_t *row, struct err *e)
{
	struct hwbench_domain *d = b->ndomains ? &b->domains[b->ndomains - 1] : NULL;
	unsigned cores, used;
	double value = NAN;
	int level = 0;

	if (read_level(row, &level, e) || read_number(row, "cores", UINT16_MAX, &cores, e) ||
	    read_number(row, "used", cores, &used, e) || read_value(row, &rate_range, &value, e))
		return -1;
	if (!d || d->level != (enum level) level) {
		for (unsigned i = 0; i < b->ndomains; i++)
			if (b->domains[i].level == (enum level) level)
				return err_set(e, "level: %s: expected all of a domain together", level_name(level));
		d = &b->domains[b->ndomains++];
		*d = (struct hwbench_domain){ .level = level, .cores = cores };
	}
	if (d->n && used <= d->used[d->n - 1])
		return err_set(e, "used: expected increasing numbers of cores");
	if (array_reserve(d->used, d->n, 1) || array_reserve(d->bandwidth, d->n, 1))
		return err_set(e, "out of memory");
	d->used[d->n] = used;
	d->bandwidth[d->n++] = value;
	return 0;
}

static int read_rows(struct hwbench *b, const json_t *j, const char *name, size_t most,
		     int (*read)(struct hwbench *, const json_t *, struct err *), struct err *e)
{
	const json_t *list = json_object_get(j, name), *row;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) > most)
		return err_set(e, "%s: expected a list of at most %zu", name, most);
	json_array_foreach(list, i, row)
		if (read(b, row, e))
			return err_within(e, "%s", name);
	return 0;
}

/* The NUMA nodes in the order of the list of memory. */
static int read_numas(struct hwbench *b, const json_t *j, struct err *e)
{
	const json_t *row;
	unsigned n = 0;
	size_t i;

	json_array_foreach(json_object_get(j, "memory"), i, row) {
		unsigned to;

		if (read_number(row, "to", UINT16_MAX, &to, e))
			return err_within(e, "memory");
		if (numa_index(b->os_index, n, to) == n && n < b->numas)
			b->os_index[n++] = to;
	}
	return n == b->numas ? 0 : err_set(e, "memory: of %u NUMA nodes, expected %u", n, b->numas);
}

int hwbench_from_json(struct hwbench *b, const json_t *j, struct err *e)
{
	unsigned cores, numas;
	size_t pairs;

	*b = (struct hwbench){0};
	if (read_number(j, "cores", UINT16_MAX, &cores, e) || read_number(j, "numa_nodes", HWBENCH_NUMAS, &numas, e))
		return -1;
	if (!cores || !numas)
		return err_set(e, "cores, numa_nodes: expected at least 1");
	pairs = (size_t) numas * numas;
	if (hwbench_init(b, cores, numas, e))
		return -1;
	if (!(b->domains = calloc(LEVEL_COUNT, sizeof(*b->domains))))
		return err_set(e, "out of memory");
	return read_numas(b, j, e) || read_rows(b, j, "memory", pairs, read_memory, e) ||
	       read_rows(b, j, "numa_cache_line", pairs, read_between, e) ||
	       read_rows(b, j, "cache_line", LEVEL_COUNT, read_handover, e) ||
	       read_rows(b, j, "domains", 32 * LEVEL_COUNT, read_domain, e) ? -1 : 0;
}
