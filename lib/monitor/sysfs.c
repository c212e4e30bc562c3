/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "monitor/sysfs.h"

#include <dirent.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <sys/syscall.h>

bool sysfs_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = '\0';
	if (n > 0 && text[n - 1] == '\n')
		text[n - 1] = '\0';
	return n >= 0;
}

bool sysfs_number(const char *path, long long *number)
{
	char text[64], *end;
	long long value;

	if (!sysfs_text(path, text, sizeof(text)))
		return false;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (end == text || errno)
		return false;
	*number = value;
	return true;
}

bool sysfs_path(char path[static SYSFS_PATH], const char *root, const char *format, ...)
{
	int n = snprintf(path, SYSFS_PATH, "%s", root);
	va_list values;

	if (n >= SYSFS_PATH)
		return false;
	va_start(values, format);
	n += vsnprintf(path + n, SYSFS_PATH - n, format, values);
	va_end(values);
	return n < SYSFS_PATH;
}

void sysfs_each(const char *path, const char *prefix, void (*each)(void *user, const char *name), void *user)
{
	struct dirent **list;
	int n = scandir(path, &list, NULL, versionsort);

	for (int i = 0; i < n; i++) {
		if (*list[i]->d_name != '.' && !strncmp(list[i]->d_name, prefix, strlen(prefix)))
			each(user, list[i]->d_name);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
}

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

int sysfs_pmu_event(const char *root, const char *pmu, const char *event, struct sysfs_pmu_event *out, struct err *e)
{
	struct sysfs_pmu_event x = { .scale = 1 };
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

int sysfs_pmu_open(const struct sysfs_pmu_event *x, unsigned cpu)
{
	struct perf_event_attr a = {
		.size = sizeof(a),
		.type = x->type,
		.config = x->config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	return syscall(SYS_perf_event_open, &a, -1, (int) cpu, -1, PERF_FLAG_FD_CLOEXEC);
}
