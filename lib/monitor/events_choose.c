/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "monitor/events.h"
#include "monitor/perf_pmu.h"
#include "monitor/selftest.h"

/* --- what CPU this is --- */

#define ZEN2_MODELS 0x30	/* of family 0x17 */

static unsigned intel_kinds(unsigned model)
{
	/* Xeon Scalable, first generation to sixth: Skylake, Ice Lake, Sapphire and Emerald Rapids, Granite Rapids. */
	static const unsigned char xeons[] = { 0x55, 0x6a, 0x6c, 0x8f, 0xcf, 0xad, 0xae };

	return MONITOR_INTEL | (memchr(xeons, (int) model, sizeof(xeons)) ? MONITOR_XEON : 0);
}

unsigned monitor_cpu_kinds(const char *vendor, unsigned family, unsigned model)
{
	if (!strcmp(vendor, "GenuineIntel"))
		return family == 6 ? intel_kinds(model) : MONITOR_INTEL;
	if (strcmp(vendor, "AuthenticAMD"))
		return 0;
	return MONITOR_AMD | (family == 0x17 && model >= ZEN2_MODELS ? MONITOR_ZEN2 : 0) |
	       (family == 0x19 || family == 0x1a ? MONITOR_ZEN3 : 0);
}

unsigned monitor_this_cpu(void)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256], vendor[32] = "";
	unsigned family = 0, model = 0;

	while (f && fgets(line, sizeof(line), f) && *line != '\n') {
		sscanf(line, "vendor_id : %31s", vendor);
		sscanf(line, "cpu family : %u", &family);
		sscanf(line, "model : %u", &model);
	}
	if (f)
		fclose(f);
	return monitor_cpu_kinds(vendor, family, model);
}

/* --- why not --- */

/* Not of perf_event_open(2). */
enum { OTHER_CPU = EXDEV, TOO_MANY = EDQUOT, WRONG_COUNTERS = EBADMSG };

static void reason(int error, const struct monitor_choice *how, char *text, size_t size)
{
	FILE *f = error == EACCES || error == EPERM ? fopen("/proc/sys/kernel/perf_event_paranoid", "re") : NULL;
	int level;

	if (f && fscanf(f, "%d", &level) == 1)
		snprintf(text, size, "%s; kernel.perf_event_paranoid is %d", strerror(error), level);
	else if (error == OTHER_CPU)
		snprintf(text, size, "it is not known for this CPU");
	else if (error == TOO_MANY)
		snprintf(text, size, "that would be more than %u of a PU's general counters", how->general);
	else if (error == WRONG_COUNTERS)
		snprintf(text, size, "hardware counters are wrong here: %s", monitor_selftest());
	else
		snprintf(text, size, "%s", error == ENOENT || error == EOPNOTSUPP || error == ENODEV ?
			 "this machine has no such counter" : strerror(error));
	if (f)
		fclose(f);
}

/* --- the choice --- */

static struct monitor_event table[MONITOR_EVENTS_MAX];	/* monitor_events with the PMUs of this machine */

static void table_fill(void)
{
	if (table[0].name)
		return;
	for (unsigned i = 0; i < monitor_nevents; i++) {
		struct perf_pmu_event x;

		table[i] = monitor_events[i];
		if (!table[i].msr)
			continue;
		if (perf_pmu_event("", "msr", table[i].msr, &x, NULL))
			table[i].type = UINT32_MAX;	/* no PMU has it */
		else {
			table[i].type = x.type;
			table[i].config = x.config;
		}
	}
}

/* 0, or why this row is not counted. */
static int row_refused(const struct monitor_event *row, const struct monitor_choice *how, unsigned left,
		       unsigned *general)
{
	*general = row->fixed_on & how->cpu ? 0 : row->general;
	if ((row->on && !(row->on & how->cpu)) || (row->not_on & how->cpu))
		return OTHER_CPU;
	if (*general > left)
		return TOO_MANY;
	return row->hardware && monitor_selftest() ? WRONG_COUNTERS : how->can_open(how->user, row);
}

/* The first of the rows i..end-1, which are alternatives, that is counted. NULL, with *error, if none is. */
static const struct monitor_event *row_choose(unsigned i, unsigned end, const struct monitor_choice *how,
					      unsigned *left, int *error)
{
	*error = OTHER_CPU;
	for (; i < end; i++) {
		unsigned general;
		int refused = row_refused(&table[i], how, *left, &general);

		if (!refused) {
			*left -= general;
			return &table[i];
		}
		if (refused != OTHER_CPU)
			*error = refused;
	}
	return NULL;
}

/* Events that follow each other, refused for one reason. */
struct refused {
	const char *names[MONITOR_EVENTS_MAX];
	unsigned n;
	int error;
};

/* "; near_fills, far_fills and flops are not counted: REASON" */
static void refused_report(struct refused *r, const struct monitor_choice *how, struct buf *why)
{
	char text[192];

	reason(r->error, how, text, sizeof(text));
	for (unsigned i = 0; i < r->n; i++)
		buf_printf(why, "%s%s", !i ? "; " : i + 1 < r->n ? ", " : " and ", r->names[i]);
	if (r->n)
		buf_printf(why, " %s not counted: %s", r->n > 1 ? "are" : "is", text);
	r->n = 0;
}

unsigned monitor_events_choose(const struct monitor_choice *how, const struct monitor_event **chosen, struct buf *why)
{
	unsigned n = 0, left = how->general;
	struct refused refused = {0};
	int error;

	table_fill();
	for (unsigned i = 0, end; i < monitor_nevents; i = end) {
		for (end = i + 1; end < monitor_nevents && !strcmp(table[i].name, table[end].name);)
			end++;
		if (!monitor_set_has(how->sets, table[i].set) ||
		    ((chosen[n] = row_choose(i, end, how, &left, &error)) && ++n))
			continue;
		if (error != refused.error)
			refused_report(&refused, how, why);
		refused.error = error;
		refused.names[refused.n++] = table[i].name;
	}
	refused_report(&refused, how, why);
	return n;
}
