/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <fnmatch.h>

#include "base/std.h"
#include "delta/field_layout.h"
#include "hwcmp/compare.h"
#include "hwcmp/compare_parts.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const severities[] = { "identity", "cosmetic", "wiring", "slow", "capacity" };
static const char *const directions[] = { "gone", "extra", "changed" };
static const char *const modes[] = { "strict", "allow-extra", "allow-missing", "ignore" };

/* The first match applies; cosmetic if none matches. */
static const struct rule {
	const char *name;	/* fnmatch(3) */
	enum severity severity;
} rules[] = {
	{ "memory", SEVERITY_IDENTITY },
	{ "pages *", SEVERITY_IDENTITY },
	{ "HostName", SEVERITY_IDENTITY },
	{ "*Serial*", SEVERITY_IDENTITY },
	{ "*UUID*", SEVERITY_IDENTITY },
	{ "*AssetTag", SEVERITY_IDENTITY },
	{ "Address", SEVERITY_IDENTITY },
	{ "NodeGUID", SEVERITY_IDENTITY },
	{ "SysImageGUID", SEVERITY_IDENTITY },
	{ "Port*GID*", SEVERITY_IDENTITY },
	{ "Port*LID", SEVERITY_IDENTITY },
	{ "Port*LMC", SEVERITY_IDENTITY },
	{ "XGMIHiveID", SEVERITY_IDENTITY },
	{ "ProcessName", SEVERITY_IDENTITY },
	{ "LinuxCgroup", SEVERITY_IDENTITY },
	{ "LinuxDeviceID", SEVERITY_IDENTITY },
	{ "Port*State", SEVERITY_WIRING },
	{ "XGMIPeers", SEVERITY_WIRING },
	{ "MemoryMode", SEVERITY_WIRING },
	{ "ClusterMode", SEVERITY_WIRING },
	{ "Inclusive", SEVERITY_WIRING },
	{ "Frequency*", SEVERITY_WIRING },
	{ "CoreType", SEVERITY_WIRING },
	{ "SectorSize", SEVERITY_WIRING },
	{ "CPUStepping", SEVERITY_COSMETIC },
	{ "CPURevision", SEVERITY_COSMETIC },
	{ "CPU*", SEVERITY_CAPACITY },
	{ "Architecture", SEVERITY_CAPACITY },
	{ "GPUModel", SEVERITY_CAPACITY },
	{ "RSMIVRAMSize", SEVERITY_CAPACITY },
	{ "CUDA*Size*", SEVERITY_CAPACITY },
	{ "CUDA*Multi*", SEVERITY_CAPACITY },
	{ "CUDACores*", SEVERITY_CAPACITY },
	{ "OpenCLComputeUnits", SEVERITY_CAPACITY },
	{ "OpenCLGlobalMemorySize", SEVERITY_CAPACITY },
	{ "Size", SEVERITY_CAPACITY },
};

static int name_find(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

const char *severity_name(enum severity s)
{
	return severities[s];
}

int severity_parse(const char *name)
{
	return name_find(severities, COUNT(severities), name);
}

const char *change_direction_name(enum change_direction d)
{
	return directions[d];
}

int verify_mode_parse(const char *name)
{
	return name_find(modes, COUNT(modes), name);
}

enum severity compare_fact(const char *name)
{
	for (size_t i = 0; i < COUNT(rules); i++)
		if (!fnmatch(rules[i].name, name, 0))
			return rules[i].severity;
	return SEVERITY_COSMETIC;
}

/* --- sizes --- */

void compare_size_format(unsigned long long bytes, char out[static SIZE_TEXT])
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = bytes;
	size_t unit = 0;

	for (; value >= 1024 && unit < COUNT(units) - 1; unit++)
		value /= 1024;
	snprintf(out, SIZE_TEXT, "%.4g %s", value, units[unit]);
}

void compare_size_tail(const char *what, unsigned long long from, unsigned long long to, struct buf *out)
{
	/* The nominal memory is reported, not what the kernel left of it. */
	bool memory = !strcmp(what, "memory");
	char a[SIZE_TEXT], b[SIZE_TEXT];

	compare_size_format(memory ? field_memory_nominal(from) : from, a);
	compare_size_format(memory ? field_memory_nominal(to) : to, b);
	if (strcmp(a, b))
		buf_printf(out, ": %s %s -> %s", what, a, b);
	else
		buf_printf(out, ": %s %llu -> %llu bytes", what, from, to);
}

/* --- values --- */

static void trimmed_write(struct buf *out, const char *s)
{
	const char *end = s + strlen(s);

	while (isspace((unsigned char)*s))
		s++;
	while (end > s && isspace((unsigned char)end[-1]))
		end--;
	if (s == end)
		buf_puts(out, "none");
	else
		buf_add(out, s, end - s);
}

void compare_value_tail(const char *what, const char *from, const char *to, struct buf *out)
{
	struct buf a = {0}, b = {0};

	trimmed_write(&a, from);
	trimmed_write(&b, to);
	if (a.failed || b.failed)
		out->failed = true;
	else if (strcmp(a.data, b.data))
		buf_printf(out, ": %s %s -> %s", what, a.data, b.data);
	else
		buf_printf(out, ": %s \"%s\" -> \"%s\"", what, from, to);
	buf_free(&a);
	buf_free(&b);
}

#define DIGITS "0123456789"

/* hwloc 3 writes the unit of sizes, hwloc 2 did not. */
static bool is_number(const char *s)
{
	const char *unit = s + strspn(s, DIGITS);

	return unit > s && (!*unit || !strcmp(unit, "KiB"));
}

bool compare_fact_equal(const char *from, const char *to)
{
	size_t digits = strspn(from, DIGITS);

	return !strcmp(from, to) || (is_number(from) && is_number(to) && strspn(to, DIGITS) == digits &&
				     !strncmp(from, to, digits));
}

enum change_direction compare_value_direction(const char *from, const char *to)
{
	unsigned long long a, b;

	if (!*from != !*to)
		return *from ? CHANGE_GONE : CHANGE_EXTRA;
	if (!is_number(from) || !is_number(to))
		return CHANGE_CHANGED;
	a = strtoull(from, NULL, 10);
	b = strtoull(to, NULL, 10);
	return a == b ? CHANGE_CHANGED : a > b ? CHANGE_GONE : CHANGE_EXTRA;
}

enum severity compare_fact_severity(const char *name, const char *from, const char *to)
{
	bool memory = !strcmp(name, "memory");

	if (memory && field_memory_nominal(strtoull(from, NULL, 10)) != field_memory_nominal(strtoull(to, NULL, 10)))
		return SEVERITY_CAPACITY;
	return compare_fact(name);
}

/* A decrease of a value that does not affect jobs is not a loss. */
enum change_direction compare_fact_direction(const char *name, const char *from, const char *to)
{
	bool counts = !*from || !*to || compare_fact_severity(name, from, to) == SEVERITY_CAPACITY;

	return counts ? compare_value_direction(from, to) : CHANGE_CHANGED;
}

void compare_fact_tail(const char *name, const char *from, const char *to, struct buf *out)
{
	if (!strcmp(name, "memory") && is_number(from) && is_number(to))
		compare_size_tail(name, strtoull(from, NULL, 10), strtoull(to, NULL, 10), out);
	else
		compare_value_tail(name, from, to, out);
}

/* --- changes --- */

void change_free(struct change *c)
{
	free(c->object);
	free(c->what);
	free(c->from);
	free(c->to);
	free(c->words);
	*c = (struct change){0};
}

void changes_free(struct changes *c)
{
	for (size_t i = 0; i < c->n; i++)
		change_free(&c->list[i]);
	free(c->list);
	*c = (struct changes){0};
}

int change_of_fact(const char *object, const char *name, const char *from, const char *to, struct change *out,
		   struct err *e)
{
	struct buf words = {0};
	struct change c = {
		.severity = compare_fact_severity(name, from, to),
		.direction = compare_fact_direction(name, from, to),
		.object = strdup(object), .what = strdup(name), .from = strdup(from), .to = strdup(to),
	};

	buf_puts(&words, object);
	compare_fact_tail(name, from, to, &words);
	if (words.failed || !c.object || !c.what || !c.from || !c.to) {
		buf_free(&words);
		change_free(&c);
		return err_set(e, "%s: out of memory", object);
	}
	c.words = words.data;
	*out = c;
	return 0;
}

int changes_verdict(const struct changes *c, enum verify_mode mode)
{
	int gravest = -1;

	for (size_t i = 0; i < c->n && mode != VERIFY_IGNORE; i++) {
		const struct change *x = &c->list[i];

		if (x->severity == SEVERITY_IDENTITY || (mode == VERIFY_ALLOW_EXTRA && x->direction == CHANGE_EXTRA) ||
		    (mode == VERIFY_ALLOW_MISSING && x->direction == CHANGE_GONE))
			continue;
		if ((int)x->severity > gravest)
			gravest = x->severity;
	}
	return gravest;
}
