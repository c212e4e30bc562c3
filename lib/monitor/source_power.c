/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/std.h"
#include "monitor/source.h"
#include "monitor/sysfs.h"
#include "trace/block.h"

/*
 * Energy by package, in microjoules, and memory traffic by package, in bytes. Energy is the hardware's own estimate
 * (RAPL): by perf's PMU, else by sysfs' powercap, which root alone reads, else by hwmon where a platform has its
 * power there. A package's PMU counts on any one of its CPUs, those of its `cpumask`.
 */
#define DEVICES "/sys/bus/event_source/devices"
#define STILL_NS 100000000u	/* RAPL goes on each millisecond */
#define WATTS_MOST 4000.0	/* of a package and its memory */
#define BYTES_MOST 2e12		/* a second, of one memory controller */
#define CAS 64.0		/* bytes of a transfer */
#define MICRO 1e6

static struct source_bounds energy_bounds(void)
{
	return (struct source_bounds){ .most = WATTS_MOST * MICRO, .still_limit = STILL_NS };
}

/* --- PMUs --- */

static uint64_t read_perf(struct source_meter *m)
{
	uint64_t now[3];	/* count, time enabled, time running */
	long double value;

	if (read(m->fd, now, sizeof(now)) != sizeof(now) || now[2] < now[1] - now[1] / 100)
		return TRACE_ABSENT;
	value = (long double) now[0] * m->scale;
	return value > TRACE_VALUE_MAX ? TRACE_ABSENT : (uint64_t) value;
}

/*
 * Begin to count an event of a PMU on each package that is the reader's. -1, counting on none, if it cannot be counted
 * on one of them: a package may have several dies, and a part of it is not to be shown as the whole. e is set if
 * nothing is counted.
 */
static int pmu_add(struct sources *s, const char *pmu, const struct sysfs_pmu_event *x, struct source_meter m,
		   struct err *e)
{
	hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
	char path[SYSFS_PATH], list[SYSFS_TEXT];
	unsigned before = s->nmeters;
	long long package;
	int cpu = -1, rc = 0;

	err_set(e, "no package is wholly the job's");
	if (cpus && sysfs_path(path, s->root, DEVICES "/%s/cpumask", pmu) && sysfs_text(path, list, sizeof(list)) &&
	    !hwloc_bitmap_list_sscanf(cpus, list))
		while ((cpu = hwloc_bitmap_next(cpus, cpu)) >= 0) {
			if (!sysfs_path(path, s->root, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id",
					cpu) || !sysfs_number(path, &package) ||
			    !source_owns_object(s, "Package", package))
				continue;
			m.level = "Package";
			m.os_index = package;
			m.read = read_perf;
			if ((m.fd = sysfs_pmu_open(x, cpu)) < 0) {
				rc = err_set(e, "PMU %s: %s", pmu, strerror(errno));
				source_drop(s, before);
				break;
			}
			source_add(s, &m);
		}
	else
		rc = err_set(e, "PMU %s has no cpumask", pmu);
	hwloc_bitmap_free(cpus);
	return rc;
}

/* --- energy --- */

static const struct power_domain {
	const char *event, *powercap;	/* of the PMU `power`; the beginning of powercap's name */
	const char *name;
} domains[] = {
	{ "energy-pkg", "package", "package_energy" },
	{ "energy-ram", "dram", "dram_energy" },
};
#define DOMAINS (sizeof(domains) / sizeof(domains[0]))

static int power_by_pmu(struct sources *s, struct err *e)
{
	unsigned before = s->nmeters;

	for (size_t i = 0; i < DOMAINS; i++) {
		struct source_meter m = { .name = domains[i].name, .unit = "uJ", .bounds = energy_bounds() };
		struct sysfs_pmu_event x;

		if (sysfs_pmu_event(s->root, "power", domains[i].event, &x, i ? NULL : e))
			continue;
		if (strcmp(x.unit, "Joules"))
			err_set(e, "PMU power counts in '%s'", x.unit);
		m.scale = x.scale * MICRO;
		if (!strcmp(x.unit, "Joules"))
			pmu_add(s, "power", &x, m, i ? NULL : e);
	}
	return s->nmeters > before ? 0 : -1;
}

struct power_walk {
	struct sources *s;
	bool is_denied;
};

/* "package-1" or "package-1-die-0" of a zone or, of its part "dram", of the zone that it is in: intel-rapl:1:0. */
static long zone_package(const char *root, const char *zone)
{
	char path[SYSFS_PATH], name[64];
	const char *part = strchr(zone, ':');
	int len = part ? (int) (part + 1 + strcspn(part + 1, ":") - zone) : 0;
	long package;

	return sysfs_path(path, root, "/sys/class/powercap/%.*s/name", len, zone) &&
	       sysfs_text(path, name, sizeof(name)) && sscanf(name, "package-%ld", &package) == 1 ? package : -1;
}

static void zone_add(void *user, const char *zone)
{
	struct source_meter m = { .unit = "uJ", .level = "Package", .bounds = energy_bounds() };
	char path[SYSFS_PATH], name[64];
	struct power_walk *w = user;
	long long range;

	if (!sysfs_path(path, w->s->root, "/sys/class/powercap/%s/name", zone) ||
	    !sysfs_text(path, name, sizeof(name)))
		return;
	for (size_t i = 0; i < DOMAINS; i++)
		if (!strncmp(name, domains[i].powercap, strlen(domains[i].powercap)))
			m.name = domains[i].name;
	m.os_index = zone_package(w->s->root, zone);
	if (!m.name || m.os_index < 0 || !source_owns_object(w->s, m.level, m.os_index))
		return;
	if (sysfs_path(path, w->s->root, "/sys/class/powercap/%s/max_energy_range_uj", zone) &&
	    sysfs_number(path, &range) && range > 0)
		m.bounds.range = range;
	if (sysfs_path(path, w->s->root, "/sys/class/powercap/%s/energy_uj", zone) &&
	    !source_add_file(w->s, m, path))
		w->is_denied |= errno == EACCES;
}

static int power_by_powercap(struct sources *s, struct err *e)
{
	struct power_walk w = { .s = s };
	unsigned before = s->nmeters;
	char path[SYSFS_PATH];

	if (sysfs_path(path, s->root, "/sys/class/powercap"))
		sysfs_each(path, "intel-rapl:", zone_add, &w);	/* AMD's, too */
	return s->nmeters > before ? 0 : err_set(e, w.is_denied ? "powercap: only root may read it" : "no powercap");
}

/* hwmon's labels of a package: NVIDIA Grace (power in microwatts), AMD before Linux 5.11 (energy in microjoules). */
static const struct power_sensor {
	const char *chip, *quantity, *label, *label_is, *input;	/* energy1_label: "Esocket0", energy1_input */
	const char *name, *unit;
	enum trace_kind kind;
} sensors[] = {
	{ "power_meter", "power", "oem_info", "Grace Power Socket ", "average", "package_power", "uW", TRACE_GAUGE },
	{ "amd_energy", "energy", "label", "Esocket", "input", "package_energy", "uJ", TRACE_COUNTER },
};
#define SENSOR_INPUTS 512u	/* amd_energy has a sensor a core, then those of packages */

static void sensor_add(struct sources *s, const char *hwmon, const struct power_sensor *x)
{
	char path[SYSFS_PATH], label[64];
	size_t n = strlen(x->label_is);
	struct source_meter m = { .name = x->name, .unit = x->unit, .kind = x->kind, .level = "Package",
				  .bounds = energy_bounds() };

	for (unsigned i = 1; i <= SENSOR_INPUTS; i++) {
		if (!sysfs_path(path, s->root, "/sys/class/hwmon/%s/%s%u_%s", hwmon, x->quantity, i, x->label) ||
		    !sysfs_text(path, label, sizeof(label)))
			return;
		if (strncmp(label, x->label_is, n))
			continue;
		m.os_index = strtol(label + n, NULL, 10);
		if (source_owns_object(s, m.level, m.os_index) &&
		    sysfs_path(path, s->root, "/sys/class/hwmon/%s/%s%u_%s", hwmon, x->quantity, i, x->input))
			source_add_file(s, m, path);
	}
}

static void hwmon_add(void *user, const char *hwmon)
{
	char path[SYSFS_PATH], chip[64];
	struct sources *s = user;

	if (!sysfs_path(path, s->root, "/sys/class/hwmon/%s/name", hwmon) || !sysfs_text(path, chip, sizeof(chip)))
		return;
	for (size_t i = 0; i < sizeof(sensors) / sizeof(sensors[0]); i++)
		if (!strcmp(chip, sensors[i].chip))
			sensor_add(s, hwmon, &sensors[i]);
}

static int power_by_hwmon(struct sources *s, struct err *e)
{
	unsigned before = s->nmeters;
	char path[SYSFS_PATH];

	if (sysfs_path(path, s->root, "/sys/class/hwmon"))
		sysfs_each(path, "hwmon", hwmon_add, s);
	return s->nmeters > before ? 0 : err_set(e, "no sensor of a package");
}

int source_power(struct sources *s, struct err *e)
{
	static int (*const ways[])(struct sources *s, struct err *e) = {
		power_by_pmu, power_by_powercap, power_by_hwmon,
	};
	struct buf all = {0};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct err why;

		if (!ways[i](s, &why)) {
			buf_free(&all);
			return 0;
		}
		buf_printf(&all, "%s%s", i ? ", " : "", why.text);
	}
	err_set(e, "%s", all.data ? all.data : "out of memory");
	buf_free(&all);
	return -1;
}

/* --- memory traffic --- */

/* Intel's memory controllers name their events; those of AMD (Zen 4, Linux 6.10) are of its PPR for Family 19h. */
static const struct {
	const char *pmu;	/* begins so */
	const char *read, *write;
} controllers[] = {
	{ "uncore_imc_", "cas_count_read", "cas_count_write" },
	{ "amd_umc_", "event=0x0a,rdwrmask=1", "event=0x0a,rdwrmask=2" },
};

struct bandwidth_walk {
	struct sources *s;
	size_t kind;		/* of controllers */
	bool has_failed;	/* one of them cannot be read: the sum would be wrong */
	struct err why;
};

static void controller_add(void *user, const char *pmu)
{
	struct bandwidth_walk *w = user;
	const struct { const char *name, *event; } directions[] = {
		{ "memory_read", controllers[w->kind].read }, { "memory_written", controllers[w->kind].write },
	};

	for (size_t i = 0; i < sizeof(directions) / sizeof(directions[0]); i++) {
		struct source_meter m = { .name = directions[i].name, .unit = "B", .bounds = { .most = BYTES_MOST } };
		struct sysfs_pmu_event x;

		/* Controllers of the free-running kind have none of these. */
		if (sysfs_pmu_event(w->s->root, pmu, directions[i].event, &x, &w->why))
			continue;
		m.scale = strcmp(x.unit, "MiB") ? CAS : x.scale * (1 << 20);
		w->has_failed |= pmu_add(w->s, pmu, &x, m, &w->why);
	}
}

int source_bandwidth(struct sources *s, struct err *e)
{
	struct bandwidth_walk w = { .s = s };
	unsigned before = s->nmeters;
	char path[SYSFS_PATH];

	err_set(&w.why, "no PMU of memory controllers");
	for (w.kind = 0; w.kind < sizeof(controllers) / sizeof(controllers[0]); w.kind++)
		if (sysfs_path(path, s->root, DEVICES))
			sysfs_each(path, controllers[w.kind].pmu, controller_add, &w);
	if (w.has_failed)
		source_drop(s, before);
	return s->nmeters > before ? 0 : err_set(e, "%s", w.why.text);
}
