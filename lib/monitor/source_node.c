/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/std.h"
#include "monitor/source.h"
#include "monitor/sysfs.h"
#include "trace/block.h"

/*
 * Memory in use by NUMA node, time that threads wait to run, pages swapped in, and what the node's disks transfer:
 * sysfs(5), proc(5), Documentation/block/stat.rst of the kernel. Network file systems are in the network's counters.
 *
 * What the network devices of the node receive and send, in bytes:
 *	InfiniBand, RoCE, Omni-Path	/sys/class/infiniband/DEVICE/ports/PORT/counters{,_ext}, words of 4 bytes
 *					(Documentation/ABI/stable/sysfs-class-infiniband of the kernel)
 *	Slingshot			/sys/class/cxi/DEVICE/device/telemetry, octets, with the time after '@'
 *	Ethernet			/sys/class/net/DEVICE/statistics of devices that are hardware
 * The traffic of Slingshot's and RoCE's own protocols is not in the counters of their Ethernet devices.
 */
#define WORD 4u
#define BYTES_MOST 100e9		/* a second, of a port of unknown rate: 800 Gb/s */
#define RATE_SLACK 1.05			/* encoding, rounding of the rate */
#define BITS_32 (UINT64_C(1) << 32)
#define SECTOR 512u
#define SELDOM_NS 900000000u		/* between two readings of what costs more than a counter */
#define DISK_MOST 64e9		/* bytes a second */

static void memory_add(void *user, const char *name)
{
	struct source_meter m = { .name = "memory_used", .unit = "B", .kind = TRACE_GAUGE, .level = "NUMANode",
				  .begins = "MemUsed:", .scale = 1024 };
	char path[SYSFS_PATH], text[SYSFS_TEXT], *end;
	struct sources *s = user;
	const char *total;

	m.os_index = strtol(name + strlen("node"), &end, 10);
	if (*end || end == name + strlen("node") ||
	    !sysfs_path(path, s->root, "/sys/devices/system/node/%s/meminfo", name) ||
	    !sysfs_text(path, text, sizeof(text)))
		return;
	/* A NUMA node without memory, and one of which others use a part. */
	if (!(total = strstr(text, "MemTotal:")) ||
	    !(m.bounds.most = strtoull(total + strlen("MemTotal:"), NULL, 10) * m.scale) ||
	    !source_owns_object(s, m.level, m.os_index))
		return;
	source_add_file(s, m, path);
}

int source_memory(struct sources *s, struct err *e)
{
	unsigned before = s->nmeters;
	char path[SYSFS_PATH];

	if (sysfs_path(path, s->root, "/sys/devices/system/node"))
		sysfs_each(path, "node", memory_add, s);
	return s->nmeters > before ? 0 : err_set(e, s->pus ? "no NUMA node is wholly the job's" : "no NUMA node");
}

/* Nanoseconds in which threads that could run waited for one of the PUs (Documentation/scheduler/sched-stats.rst). */
static uint64_t read_run_delay(struct source_meter *m)
{
	int fd = lseek(m->fd, 0, SEEK_SET) ? -1 : dup(m->fd);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	unsigned long long delay, sum = 0;
	bool is_found = false;
	char line[512];
	unsigned cpu;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "cpu%u %*u %*u %*u %*u %*u %*u %*u %llu", &cpu, &delay) == 2 &&
		    (!m->handle || hwloc_bitmap_isset(m->handle, cpu))) {
			is_found = true;
			sum += delay;
		}
	if (f)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	return is_found && sum <= TRACE_VALUE_MAX ? sum : TRACE_ABSENT;
}

/* A file of some hundred bytes for each PU of the node. */
int source_run_delay(struct sources *s, struct err *e)
{
	struct source_meter m = { .name = "run_delay", .unit = "ns", .level = "Machine", .os_index = -1,
				  .read = read_run_delay, .handle = s->pus, .seldom = SELDOM_NS };
	char path[SYSFS_PATH];

	if (!sysfs_path(path, s->root, "/proc/schedstat") || (m.fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return err_set(e, "the kernel has no /proc/schedstat");
	source_add(s, &m);
	return 0;
}

/* Pages, by which a fault that waits for a disk is told from one that reads a file. */
int source_swap(struct sources *s, struct err *e)
{
	struct source_meter m = { .name = "swapped_in", .unit = "", .level = "Machine", .os_index = -1,
				  .begins = "\npswpin ", .seldom = SELDOM_NS };
	char path[SYSFS_PATH];

	if (!source_owns_object(s, "Machine", 0))
		return err_set(e, "the job has only a part of the node");
	return sysfs_path(path, s->root, "/proc/vmstat") && source_add_file(s, m, path) ? 0 :
		err_set(e, "the kernel has no /proc/vmstat");
}

/* Disks that are hardware: what is made of them is counted in them. */
static void disk_add(void *user, const char *name)
{
	static const struct { const char *name; unsigned field; } directions[] = {
		{ "disk_read", 2 }, { "disk_written", 6 },
	};
	char path[SYSFS_PATH], device[SYSFS_PATH];
	struct sources *s = user;

	if (!sysfs_path(device, s->root, "/sys/block/%s/device", name) || access(device, F_OK) ||
	    !sysfs_path(path, s->root, "/sys/block/%s/stat", name))
		return;
	for (size_t i = 0; i < sizeof(directions) / sizeof(directions[0]); i++)
		source_add_file(s, (struct source_meter){ .name = directions[i].name, .unit = "B", .level = "Machine",
							  .os_index = -1, .field = directions[i].field, .scale = SECTOR,
							  .bounds = { .most = DISK_MOST } }, path);
}

int source_disks(struct sources *s, struct err *e)
{
	unsigned before = s->nmeters;
	char path[SYSFS_PATH];

	if (!source_owns_object(s, "Machine", 0))
		return err_set(e, "the job has only a part of the node");
	if (sysfs_path(path, s->root, "/sys/block"))
		sysfs_each(path, "", disk_add, s);
	return s->nmeters > before ? 0 : err_set(e, "no disks");
}

/* --- network devices --- */

enum { RECEIVED, SENT };
static const char *const names[] = { "net_received", "net_sent" };

/* A port's two counters at the NUMA node of its device, if the kernel knows that. */
static void port_add(struct sources *s, const char *name, const char *device, struct source_meter m,
		     const char *const files[2])
{
	char path[SYSFS_PATH];
	long long node;

	m.unit = "B";
	m.level = "NUMANode";
	m.os_index = sysfs_path(path, s->root, "%s/numa_node", device) && sysfs_number(path, &node) ? node : -1;
	snprintf(m.device, sizeof(m.device), "%.*s", (int) sizeof(m.device) - 1, name);
	for (int i = RECEIVED; i <= SENT; i++) {
		m.name = names[i];
		source_add_file(s, m, files[i]);
	}
}

/* --- InfiniBand --- */

struct port_walk {
	struct sources *s;
	const char *device;
};

static bool port_is_active(const char *folder)
{
	char path[SYSFS_PATH], text[64];

	return !sysfs_path(path, folder, "/state") || !sysfs_text(path, text, sizeof(text)) ||
	       strstr(text, "ACTIVE");
}

static void ib_port_add(void *user, const char *port)
{
	/* Kernels before 4.11 have the counters of 64 bits apart; later ones have all of them, or those of 32 bits. */
	static const struct { const char *counters, *suffix, *wide; } kinds[] = {
		{ "counters_ext", "_64", "counters_ext" },
		{ "counters", "", "counters/unicast_rcv_packets" },
	};
	char folder[SYSFS_PATH], device[SYSFS_PATH], received[SYSFS_PATH] = "", sent[SYSFS_PATH] = "", name[40];
	char path[SYSFS_PATH], text[128];
	double gigabits;
	struct source_meter m = { .scale = WORD };
	const struct port_walk *w = user;

	if (!sysfs_path(folder, w->s->root, "/sys/class/infiniband/%s/ports/%s", w->device, port) ||
	    !sysfs_path(device, "", "/sys/class/infiniband/%s/device", w->device) || !port_is_active(folder))
		return;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char wide[SYSFS_PATH];

		if (!sysfs_path(received, folder, "/%s/port_rcv_data%s", kinds[i].counters, kinds[i].suffix) ||
		    access(received, R_OK))
			continue;
		if (sysfs_path(sent, folder, "/%s/port_xmit_data%s", kinds[i].counters, kinds[i].suffix) &&
		    sysfs_path(wide, folder, "/%s", kinds[i].wide))
			m.bounds.narrow = access(wide, F_OK) ? BITS_32 * WORD : 0;
		break;
	}
	/* "100 Gb/sec (4X EDR)" */
	m.bounds.most = sysfs_path(path, folder, "/rate") && sysfs_text(path, text, sizeof(text)) &&
	       (gigabits = strtod(text, NULL)) > 0 ? gigabits * 1e9 / 8 * RATE_SLACK : BYTES_MOST;
	snprintf(name, sizeof(name), strcmp(port, "1") ? "%s:%s" : "%s", w->device, port);
	port_add(w->s, name, device, m, (const char *const[]){ received, sent });
}

static void ib_add(void *user, const char *device)
{
	struct port_walk w = { user, device };
	char path[SYSFS_PATH];

	if (sysfs_path(path, w.s->root, "/sys/class/infiniband/%s/ports", device))
		sysfs_each(path, "", ib_port_add, &w);
}

/* --- Slingshot --- */

static void cxi_add(void *user, const char *name)
{
	char device[SYSFS_PATH], received[SYSFS_PATH], sent[SYSFS_PATH];
	struct source_meter m = { .bounds = { .most = BYTES_MOST } };
	struct sources *s = user;

	if (sysfs_path(device, "", "/sys/class/cxi/%s/device", name) &&
	    sysfs_path(received, s->root, "%s/telemetry/hni_sts_rx_ok_octets", device) &&
	    sysfs_path(sent, s->root, "%s/telemetry/hni_sts_tx_ok_octets", device))
		port_add(s, name, device, m, (const char *const[]){ received, sent });
}

/* --- Ethernet --- */

#define ARPHRD_ETHER 1		/* linux/if_arp.h; IP over InfiniBand is in InfiniBand's counters */

/* 0: it is no hardware of its own. */
static double netdev_rate(const struct sources *s, const char *name)
{
	char path[SYSFS_PATH];
	long long number;

	if (!sysfs_path(path, s->root, "/sys/class/net/%s/device", name) || access(path, F_OK) ||
	    !sysfs_path(path, s->root, "/sys/class/net/%s/type", name) || !sysfs_number(path, &number) ||
	    number != ARPHRD_ETHER)
		return 0;
	return sysfs_path(path, s->root, "/sys/class/net/%s/speed", name) && sysfs_number(path, &number) &&
	       number > 0 ? number * 1e6 / 8 * RATE_SLACK : BYTES_MOST;
}

static bool netdev_files(const struct sources *s, const char *name, char received[static SYSFS_PATH],
			 char sent[static SYSFS_PATH])
{
	return sysfs_path(received, s->root, "/sys/class/net/%s/statistics/rx_bytes", name) &&
	       sysfs_path(sent, s->root, "/sys/class/net/%s/statistics/tx_bytes", name);
}

static void netdev_add(void *user, const char *name)
{
	char device[SYSFS_PATH], received[SYSFS_PATH], sent[SYSFS_PATH];
	struct sources *s = user;
	struct source_meter m = { .bounds = { .most = netdev_rate(s, name) } };

	if (m.bounds.most && netdev_files(s, name, received, sent) &&
	    sysfs_path(device, "", "/sys/class/net/%s/device", name))
		port_add(s, name, device, m, (const char *const[]){ received, sent });
}

static const char *shared(const struct sources *s)
{
	return source_owns_object(s, "Machine", 0) ? NULL : "the job has only a part of the node, and each process may "
							    "use any device";
}

int source_ports(struct sources *s, struct err *e)
{
	static const struct { const char *folder; void (*add)(void *user, const char *name); } classes[] = {
		{ "/sys/class/infiniband", ib_add }, { "/sys/class/cxi", cxi_add }, { "/sys/class/net", netdev_add },
	};
	unsigned before = s->nmeters;
	const char *why = shared(s);

	for (size_t i = 0; !why && i < sizeof(classes) / sizeof(classes[0]); i++) {
		char path[SYSFS_PATH];

		if (sysfs_path(path, s->root, "%s", classes[i].folder))
			sysfs_each(path, "", classes[i].add, s);
	}
	return s->nmeters > before ? 0 : err_set(e, "%s", why ? why : "no network device");
}

/* --- all Ethernet devices together --- */

static const char *const totals[] = { "ethernet_received", "ethernet_sent" };

static void total_add(void *user, const char *name)
{
	char files[2][SYSFS_PATH];
	struct sources *s = user;
	double most = netdev_rate(s, name);

	if (!most || !netdev_files(s, name, files[RECEIVED], files[SENT]))
		return;
	for (int i = RECEIVED; i <= SENT; i++)
		source_add_file(s, (struct source_meter){ .name = totals[i], .unit = "B", .level = "Machine",
							  .os_index = -1, .bounds = { .most = most } }, files[i]);
}

int source_network(struct sources *s, struct err *e)
{
	unsigned before = s->nmeters;
	const char *why = shared(s);
	char path[SYSFS_PATH];

	if (!why && sysfs_path(path, s->root, "/sys/class/net"))
		sysfs_each(path, "", total_add, s);
	return s->nmeters > before ? 0 : err_set(e, "%s", why ? why : "no Ethernet device");
}
