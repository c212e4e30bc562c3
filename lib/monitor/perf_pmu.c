/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "monitor/perf_pmu.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "monitor/sysfs.h"

#define DEVICES "/sys/bus/event_source/devices"

/* One term: its value goes to the bits of config that the PMU's format has for its name. */
static int term_add(const char *root, const char *pmu, const char *term, uint64_t *config)
{
	size_t name = strcspn(term, "=");
	uint64_t value = term[name] ? strtoull(term + name + 1, NULL, 0) : 1;
	char path[SYSFS_PATH], text[64];
	unsigned low, high, n;

	if (!sysfs_path(path, root, DEVICES "/%s/format/%.*s", pmu, (int) name, term) ||
	    !sysfs_text(path, text, sizeof(text)))
		return -1;
	/* "config:0-7,32-35": the lower bits first. */
	if (strncmp(text, "config:", strlen("config:")))
		return value ? -1 : 0;
	for (char *range = text + strlen("config:"); *range; range += strcspn(range, ","), range += *range == ',') {
		n = sscanf(range, "%u-%u", &low, &high);
		if (n < 1 || low > 63 || (n == 2 && (high > 63 || high < low)))
			return -1;
		n = n == 2 ? high - low + 1 : 1;
		*config |= (n == 64 ? value : value & ((UINT64_C(1) << n) - 1)) << low;
		value = n == 64 ? 0 : value >> n;
	}
	return value ? -1 : 0;
}

static int terms_add(const char *root, const char *pmu, char *terms, uint64_t *config)
{
	char *save = NULL;
	int rc = 0;

	for (char *term = strtok_r(terms, ",", &save); term && !rc; term = strtok_r(NULL, ",", &save))
		rc = term_add(root, pmu, term, config);
	return rc;
}

/* What a file beside the event's own has; "" if there is none. */
static void event_text(const char *root, const char *pmu, const char *event, const char *suffix, char *text,
		       size_t size)
{
	char path[SYSFS_PATH];

	*text = '\0';
	if (!strchr(event, '=') && sysfs_path(path, root, DEVICES "/%s/events/%s%s", pmu, event, suffix))
		sysfs_text(path, text, size);
}

int perf_pmu_event(const char *root, const char *pmu, const char *event, struct perf_pmu_event *out, struct err *e)
{
	struct perf_pmu_event x = { .scale = 1 };
	char path[SYSFS_PATH], text[256];
	long long type;

	if (!sysfs_path(path, root, DEVICES "/%s/type", pmu) || !sysfs_number(path, &type))
		return err_set(e, "no PMU %s", pmu);
	x.type = type;
	snprintf(text, sizeof(text), "%s", event);
	if (!strchr(event, '='))
		event_text(root, pmu, event, "", text, sizeof(text));
	if (!*text || terms_add(root, pmu, text, &x.config))
		return err_set(e, "no event %s of PMU %s", event, pmu);
	event_text(root, pmu, event, ".unit", x.unit, sizeof(x.unit));
	event_text(root, pmu, event, ".scale", text, sizeof(text));
	if (*text && !((x.scale = strtod(text, NULL)) > 0))
		return err_set(e, "event %s of PMU %s: scale '%.32s'", event, pmu, text);
	*out = x;
	return 0;
}

int perf_pmu_open(const struct perf_pmu_event *x, unsigned cpu)
{
	struct perf_event_attr a = {
		.size = sizeof(a),
		.type = x->type,
		.config = x->config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	return syscall(SYS_perf_event_open, &a, -1, (int) cpu, -1, PERF_FLAG_FD_CLOEXEC);
}
