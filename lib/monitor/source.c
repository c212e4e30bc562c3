/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "monitor/source.h"

#include "base/array.h"
#include "monitor/events.h"
#include "monitor/sysfs.h"
#include "trace/block.h"

#define REFRESH_NS 2000000000u	/* a driver that brings its counters up to date this seldom adds as much in one tick */

static const struct {
	const char *set, *events;
	int (*find)(struct sources *s, struct err *e);
} sources[] = {
	{ "sw", "memory_used", source_memory },
	{ "sw", "run_delay", source_run_delay },
	{ "sw", "swapped_in", source_swap },
	{ "sw", "disk_read and disk_written", source_disks },
	{ "sw", "ethernet_received and ethernet_sent", source_network },
	{ "cpu", "memory_read and memory_written", source_bandwidth },
	{ "power", "power", source_power },
	{ "net", "net", source_ports },
	{ "gpu", "gpu", source_gpus },
};

/* --- whose it is --- */

/* Any PU of a package; -1: none. */
static long pu_of_package(const struct sources *s, long package)
{
	char path[SYSFS_PATH], list[SYSFS_TEXT];
	hwloc_bitmap_t online = hwloc_bitmap_alloc();
	long long its;
	int cpu = -1;

	if (online && sysfs_path(path, s->root, "/sys/devices/system/cpu/online") &&
	    sysfs_text(path, list, sizeof(list)) && !hwloc_bitmap_list_sscanf(online, list))
		while ((cpu = hwloc_bitmap_next(online, cpu)) >= 0)
			if (sysfs_path(path, s->root, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id",
				       cpu) && sysfs_number(path, &its) && its == package)
				break;
	hwloc_bitmap_free(online);
	return cpu;
}

/* The PUs of an object as such a list. False if the kernel does not know them. */
static bool pus_list(const struct sources *s, const char *level, long os_index, char *list, size_t size)
{
	char path[SYSFS_PATH];
	long cpu;

	if (!strcmp(level, "NUMANode"))
		return sysfs_path(path, s->root, "/sys/devices/system/node/node%ld/cpulist", os_index) &&
		       sysfs_text(path, list, size);
	if (!strcmp(level, "Machine"))
		return sysfs_path(path, s->root, "/sys/devices/system/cpu/online") && sysfs_text(path, list, size);
	/* Linux has had package_cpus_list since 5.3. */
	return (cpu = pu_of_package(s, os_index)) >= 0 &&
	       ((sysfs_path(path, s->root, "/sys/devices/system/cpu/cpu%ld/topology/package_cpus_list", cpu) &&
		 sysfs_text(path, list, size)) ||
		(sysfs_path(path, s->root, "/sys/devices/system/cpu/cpu%ld/topology/core_siblings_list", cpu) &&
		 sysfs_text(path, list, size)));
}

bool source_owns_object(const struct sources *s, const char *level, long os_index)
{
	hwloc_bitmap_t all = s->pus ? hwloc_bitmap_alloc() : NULL;
	char list[SYSFS_TEXT];	/* "0-3,8" */
	bool is_own = !s->pus || (all && pus_list(s, level, os_index, list, sizeof(list)) &&
				  !hwloc_bitmap_list_sscanf(all, list) && !hwloc_bitmap_iszero(all) &&
				  hwloc_bitmap_isincluded(all, s->pus));

	hwloc_bitmap_free(all);
	return is_own;
}

/* --- meters --- */

void source_add(struct sources *s, const struct source_meter *m)
{
	struct source_meter *added = array_add(s->meters, s->nmeters);

	if (!added) {
		s->has_failed = true;
		if (m->fd >= 0)
			close(m->fd);
		return;
	}
	*added = *m;
	added->event = -1;
	/* Linux allows quotes in a name, which is a label in Prometheus. */
	for (char *p = added->device; *p; p++)
		if (!isalnum((unsigned char) *p) && !strchr("._:-", *p))
			*p = '_';
	added->before = m->kind == TRACE_COUNTER ? m->read(added) : 0;
}

void source_drop(struct sources *s, unsigned n)
{
	while (s->nmeters > n)
		if (s->meters[--s->nmeters].fd >= 0)
			close(s->meters[s->nmeters].fd);
}

static uint64_t read_text(struct source_meter *m)
{
	char text[SYSFS_TEXT], *at = text, *end;
	ssize_t n = pread(m->fd, text, sizeof(text) - 1, 0);
	unsigned long long number;
	long double value;

	if (n <= 0)
		return TRACE_ABSENT;
	text[n] = '\0';
	if (m->begins && !(at = strstr(text, m->begins)))
		return TRACE_ABSENT;
	at += m->begins ? strlen(m->begins) : 0;
	for (unsigned i = 0; i < m->field; i++) {
		at += strspn(at, " \t");
		at += strcspn(at, " \t\n");
	}
	at += strspn(at, " \t");
	errno = 0;
	number = strtoull(at, &end, 10);
	value = (long double) number * m->scale;
	return end == at || *at == '-' || errno || value > TRACE_VALUE_MAX ? TRACE_ABSENT : (uint64_t) value;
}

bool source_add_file(struct sources *s, struct source_meter m, const char *path)
{
	if ((m.fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return false;
	m.read = read_text;
	if (m.scale == 0)
		m.scale = 1;
	source_add(s, &m);
	return true;
}

/* --- their places in the tree --- */

/* Where a meter counts. A device far from all PUs of the tree counts on the machine. */
static bool place_find(struct source_meter *m, const struct trace_head *h, unsigned *level)
{
	int at = m->os_index < 0 ? -1 : trace_head_level(h, m->level), object = -1;

	/* None of the object's PUs may be in the tree. */
	for (unsigned i = 0; at >= 0 && object < 0 && i < h->levels[at].n; i++)
		if (h->levels[at].objects[i].os_index == m->os_index)
			object = i;
	if (object < 0 && (*m->device || m->os_index < 0)) {
		at = trace_head_level(h, "Machine");
		object = at < 0 ? -1 : 0;
	}
	if (object < 0)
		return false;
	*level = at;
	m->object = object;
	return true;
}

static int meter_place(struct sources *s, struct trace_head *h, struct source_meter *m)
{
	struct source_event *own;
	struct trace_event *x;
	unsigned level;

	if (!place_find(m, h, &level))
		return 0;
	for (unsigned i = 0; i < s->nevents; i++)
		if (!strcmp(s->events[i].name, m->name) && !strcmp(s->events[i].device, m->device)) {
			m->event = h->events[s->events[i].index].level == level ? (int) i : -1;
			return 0;
		}
	if (h->nevents == TRACE_EVENTS_MAX)
		return 0;
	m->event = s->nevents;
	if (!(x = array_add(h->events, h->nevents)) || !(own = array_add(s->events, s->nevents)))
		return -1;
	*own = (struct source_event){ .name = m->name, .unit = m->unit, .kind = m->kind, .index = h->nevents - 1 };
	memcpy(own->device, m->device, sizeof(own->device));
	*x = (struct trace_event){ .kind = m->kind, .level = level };
	snprintf(x->name, sizeof(x->name), "%s%s%s", m->name, *m->device ? "." : "", m->device);
	/* A head's name has letters, digits, '.', ':' and '_'. */
	for (size_t n; x->name[n = trace_name_length(x->name)];)
		x->name[n] = '_';
	snprintf(x->unit, sizeof(x->unit), "%s", m->unit);
	return 0;
}

int sources_open(struct sources *s, const struct source_request *how, struct trace_head *h, struct buf *why,
		 struct err *e)
{
	*s = (struct sources){ .root = how->root, .pus = how->pus, .gpus = how->gpus };
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		struct err reason;

		if (monitor_set_has(how->sets, sources[i].set) && sources[i].find(s, &reason))
			buf_printf(why, "; no %s: %s", sources[i].events, reason.text);
	}
	for (unsigned i = 0; i < s->nmeters && !s->has_failed; i++)
		s->has_failed = meter_place(s, h, &s->meters[i]);
	if (!s->has_failed)
		return 0;
	sources_close(s);
	return err_set(e, "out of memory");
}

void sources_close(struct sources *s)
{
	source_drop(s, 0);
	if (s->uses_nvml)
		source_gpus_end();
	free(s->meters);
	free(s->events);
	*s = (struct sources){0};
}

/* --- ticks --- */

uint64_t source_increase(const struct source_bounds *b, uint64_t before, uint64_t now, uint64_t ns, uint64_t *still)
{
	double most = b->most * ((double) ns + REFRESH_NS) * 1e-9;
	uint64_t increase = now - before;

	*still = now == before ? *still + ns : 0;
	if (now < before) {
		if (!b->range || before >= b->range)
			return TRACE_ABSENT;
		increase = now + b->range - before;
	}
	if (b->still_limit && *still >= b->still_limit)
		return TRACE_ABSENT;
	/* 32 bits: all ones are where it stops; what could have passed them in a tick is not known. */
	if (b->narrow && (b->most * ns * 1e-9 >= b->narrow || now >= b->narrow - b->narrow / UINT32_MAX))
		return TRACE_ABSENT;
	return b->most && increase > most ? TRACE_ABSENT : increase;
}

static uint64_t meter_tick(struct source_meter *m, uint64_t ns)
{
	uint64_t now, before = m->before;

	if ((m->waited += ns) < m->seldom)
		return 0;	/* what is not read now is in the next reading */
	ns = m->waited;
	m->waited = 0;
	now = m->read(m);
	if (m->kind == TRACE_GAUGE)
		return m->bounds.most && now > m->bounds.most ? TRACE_ABSENT : now;
	m->before = now;
	return now == TRACE_ABSENT || before == TRACE_ABSENT ? TRACE_ABSENT :
	       source_increase(&m->bounds, before, now, ns, &m->still);
}

/* A device has one place, and is nowhere else; what else has no meter is not known. */
static void values_clear(const struct sources *s, const struct trace_head *h, uint64_t *values, bool is_hidden)
{
	for (unsigned i = 0; i < s->nevents; i++) {
		const struct trace_event *x = &h->events[s->events[i].index];

		for (unsigned k = 0; k < h->levels[x->level].n; k++)
			values[x->column + k] = *s->events[i].device && !is_hidden ? 0 : TRACE_ABSENT;
	}
}

void sources_hide(const struct sources *s, const struct trace_head *h, uint64_t *values)
{
	values_clear(s, h, values, true);
}

void sources_read(struct sources *s, const struct trace_head *h, uint64_t ns, uint64_t *values)
{
	values_clear(s, h, values, false);
	/* Meters of one place add up: first all of them are 0. */
	for (unsigned i = 0; i < 2 * s->nmeters; i++) {
		struct source_meter *m = &s->meters[i % s->nmeters];
		uint64_t *value, more;

		if (m->event < 0)
			continue;
		value = &values[h->events[s->events[m->event].index].column + m->object];
		if (i < s->nmeters) {
			*value = 0;
			continue;
		}
		more = meter_tick(m, ns);
		*value = *value == TRACE_ABSENT || more == TRACE_ABSENT ? TRACE_ABSENT : *value + more;
	}
}
