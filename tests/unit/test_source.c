/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <dlfcn.h>

#include "monitor/counters.h"
#include "monitor/events.h"
#include "monitor/sysfs.h"
#include "monitor/source.h"
#include "table.h"
#include "topology.h"
#include "trace/block.h"

/*
 * The sources on machines that this is not: their files in a folder of the test's own, with values that change between
 * two readings as the kernel changes them. PMUs of a package count this machine's CPU 0 by the software PMU, which any
 * kernel has.
 */
#define SECOND UINT64_C(1000000000)
#define ABSENT TRACE_ABSENT

struct machine {
	char *root;
	struct trace_head head;
	struct sources sources;
	struct buf why;
	hwloc_bitmap_t pus;		/* the reader's */
	uint64_t values[512];
};

static void put(const struct machine *m, const char *path, const char *text)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", m->root, path);
	for (char *slash = full + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
	if (!(f = fopen(full, "w")) || fputs(text, f) < 0 || fclose(f))
		fail_msg("%s: %s", full, strerror(errno));
}

/* The files of a device: "NAME=TEXT|...", each a line. */
static void put_all(const struct machine *m, const char *device, const char *files)
{
	OWNED(free) char *copy = strdup(files), *rest = copy;

	for (char *name, *text; (name = strsep(&rest, "|"));) {
		char path[256], line[128];

		text = name;
		strsep(&text, "=");
		snprintf(path, sizeof(path), "%s/%s", device, name);
		snprintf(line, sizeof(line), "%s\n", text);
		put(m, path, line);
	}
}

static void link_to(const struct machine *m, const char *path, const char *target)
{
	char full[512];

	snprintf(full, sizeof(full), "%s%s", m->root, path);
	assert_int_equal(symlink(target, full), 0);
}

/* Two packages, each one NUMA node of four PUs. */
static struct machine machine_make(void)
{
	struct machine made = { .root = folder_new() }, *m = &made;

	put(m, "/sys/devices/system/cpu/online", "0-7\n");
	put(m, "/sys/devices/system/node/node0/cpulist", "0-3\n");
	put(m, "/sys/devices/system/node/node1/cpulist", "4-7\n");
	for (int cpu = 0; cpu < 8; cpu++) {
		char path[128];

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology", cpu);
		put_all(m, path, cpu < 4 ? "physical_package_id=0|package_cpus_list=0-3" :
			"physical_package_id=1|package_cpus_list=4-7");
	}
	return made;
}

static void machine_close(struct machine *m)
{
	sources_close(&m->sources);
	hwloc_bitmap_free(m->pus);
	m->pus = NULL;
	trace_head_free(&m->head);
	buf_free(&m->why);
}

/* pus: the reader's ("0-3"), NULL: all. */
static void machine_open(struct machine *m, const char *sets, const char *pus, const char *gpus)
{
	struct source_request how = { .sets = sets, .root = m->root, .gpus = gpus };
	hwloc_bitmap_t own = m->pus = hwloc_bitmap_alloc();
	OWNED(hwloc_topology_destroy) hwloc_topology_t t = synthetic_load("Package:2 [numa] Core:2 PU:2");

	if (pus)
		assert_int_equal(hwloc_bitmap_list_sscanf(own, pus), 0);
	how.pus = pus ? own : NULL;
	assert_ok(trace_head_tree(&m->head, t, how.pus, &err));
	assert_ok(monitor_events_head((const struct monitor_event *const[]){ &monitor_events[0] }, 1, &m->head, &err) ||
	    sources_open(&m->sources, &how, &m->head, &m->why, &err) || trace_head_check(&m->head, &err));
	assert_true(m->head.columns <= ROWS(m->values));
}

static void machine_tick(struct machine *m, uint64_t ns)
{
	sources_read(&m->sources, &m->head, ns, m->values);
}

/* The value of an event at an object; 1 if the machine has no such event or object. */
static uint64_t value(const struct machine *m, const char *event, const char *level, unsigned object)
{
	int i = trace_head_event(&m->head, event);

	if (i < 0 || (int) m->head.events[i].level != trace_head_level(&m->head, level) ||
	    object >= m->head.levels[m->head.events[i].level].n)
		return 1;
	return m->values[m->head.events[i].column + object];
}

#define assert_value(m, event, level, object, expected) assert_int_equal(value(m, event, level, object), expected)

/* "EVENT LEVEL VALUE...|...": of each object in turn, "-" if it is absent, "?" if it may be anything. */
static void assert_values(const struct machine *m, const char *expected)
{
	OWNED(free) char *copy = strdup(expected), *rest = copy;

	for (char *row; (row = strsep(&rest, "|"));) {
		char *event = strsep(&row, " "), *level = strsep(&row, " "), *word;

		for (unsigned object = 0; (word = strsep(&row, " ")); object++) {
			uint64_t want = *word == '-' ? ABSENT : strtoull(word, NULL, 10);

			if (*word != '?' && value(m, event, level, object) != want)
				fail_msg("%s of %s %u: %" PRIu64 ", not %s", event, level, object,
					 value(m, event, level, object), word);
		}
	}
}

#define assert_no_event(m, event) assert_int_equal(trace_head_event(&(m)->head, event), -1)
#define assert_why(m, text) assert_non_null(strstr((m)->why.data ? (m)->why.data : "", text))

/* --- energy --- */

static void powercap_make(const struct machine *m)
{
	static const char *const zones[][2] = {
		{ "intel-rapl:0", "name=package-0|energy_uj=1000000|max_energy_range_uj=262143328850" },
		{ "intel-rapl:0:0", "name=core|energy_uj=5|max_energy_range_uj=262143328850" },
		{ "intel-rapl:0:1", "name=dram|energy_uj=2000000|max_energy_range_uj=65712999613" },
		{ "intel-rapl:1", "name=package-1-die-0|energy_uj=3000000|max_energy_range_uj=262143328850" },
		{ "intel-rapl:2", "name=package-1-die-1|energy_uj=4000000|max_energy_range_uj=262143328850" },
		{ "intel-rapl:3", "name=psys|energy_uj=9000000|max_energy_range_uj=262143328850" },
	};

	for (size_t i = 0; i < ROWS(zones); i++) {
		char device[64];

		snprintf(device, sizeof(device), "/sys/class/powercap/%s", zones[i][0]);
		put_all(m, device, zones[i][1]);
	}
}

TEST(energy_of_powercap)
{
	static const struct { const char *energy, *expected; } then[] = {
		{ "262143328000\n", "package_energy Package -" },		/* 261 kW */
		{ "100000000\n", "package_energy Package 100000850 -" },	/* past its range; standing still */
		{ "", "package_energy Package -" },
		{ "400000000\n", "package_energy Package -" },			/* of two ticks */
		{ "450000000\n", "package_energy Package 50000000" },
	};
	FREED(machine_close) struct machine m = machine_make();

	powercap_make(&m);
	machine_open(&m, "power", NULL, NULL);
	put_all(&m, "/sys/class/powercap", "intel-rapl:0/energy_uj=201000000|intel-rapl:0:1/energy_uj=32000000|"
		"intel-rapl:1/energy_uj=53000000|intel-rapl:2/energy_uj=74000000");
	machine_tick(&m, SECOND);
	assert_values(&m, "package_energy Package 200000000 120000000|"	/* both dies */
			"dram_energy Package 30000000 -");
	for (size_t i = 0; i < ROWS(then); i++) {
		put(&m, "/sys/class/powercap/intel-rapl:0/energy_uj", then[i].energy);
		machine_tick(&m, SECOND);
		assert_values(&m, then[i].expected);
	}
}

TEST(energy_of_a_pmu)
{
	struct sysfs_pmu_event clock;
	FREED(machine_close) struct machine m = machine_make();
	int fd;

	powercap_make(&m);
	put_all(&m, "/sys/bus/event_source/devices/power", "type=1|cpumask=0|format/event=config:0-7|"
		"events/energy-pkg=event=0x00|"		/* cpu-clock */
		"events/energy-pkg.scale=1e-7|events/energy-pkg.unit=Joules");
	assert_int_equal(sysfs_pmu_event(m.root, "power", "energy-pkg", &clock, &err), 0);
	fd = sysfs_pmu_open(&clock, 0);
	machine_open(&m, "power", NULL, NULL);
	if (fd < 0) {
		/* Where the kernel lets us count nothing, the next way is used. */
		machine_tick(&m, SECOND / 1000);
		assert_value(&m, "dram_energy", "Package", 0, 0);
	} else {
		uint64_t joules;

		close(fd);
		usleep(200000);
		machine_tick(&m, SECOND / 5);
		joules = value(&m, "package_energy", "Package", 0) / 1000000;
		assert_true(joules >= 20 && joules < 10000);	/* 100 W, for as long as this was */
		assert_value(&m, "package_energy", "Package", 1, ABSENT);
		assert_no_event(&m, "dram_energy");
	}
}

TEST(power_of_hwmon)
{
	FREED(machine_close) struct machine m = machine_make();

	put(&m, "/sys/class/hwmon/hwmon0/name", "nvme\n");
	put_all(&m, "/sys/class/hwmon/hwmon1", "name=power_meter|power1_oem_info=Module Power Socket 0|"
		"power1_average=500000000");
	put_all(&m, "/sys/class/hwmon/hwmon2", "name=power_meter|power1_oem_info=Grace Power Socket 1|"
		"power1_average=250000000");
	put_all(&m, "/sys/class/hwmon/hwmon3", "name=amd_energy|energy1_label=Ecore000|energy1_input=1|"
		"energy2_label=Esocket0|energy2_input=7000000");
	machine_open(&m, "power", NULL, NULL);
	put(&m, "/sys/class/hwmon/hwmon3/energy2_input", "97000000\n");
	machine_tick(&m, SECOND);
	assert_values(&m, "package_power Package - 250000000|"
			"package_energy Package 90000000");
	put(&m, "/sys/class/hwmon/hwmon2/power1_average", "25000000000000\n");
	machine_tick(&m, SECOND);
	assert_values(&m, "package_power Package ? -|"
			"package_energy Package -");	/* stands still */
}

/* --- memory --- */

TEST(memory_in_use)
{
	FREED(machine_close) struct machine m = machine_make();

	put(&m, "/sys/devices/system/node/node0/meminfo",
	    "Node 0 MemTotal:       1000 kB\nNode 0 MemFree:         600 kB\nNode 0 MemUsed:         400 kB\n");
	put(&m, "/sys/devices/system/node/node1/meminfo",
	    "Node 1 MemTotal:       0 kB\nNode 1 MemFree:         0 kB\nNode 1 MemUsed:         0 kB\n");
	machine_open(&m, "sw", NULL, NULL);
	machine_tick(&m, SECOND);
	assert_values(&m, "memory_used NUMANode 409600 -");
	put(&m, "/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 1000 kB\nNode 0 MemUsed: 1001 kB\n");
	machine_tick(&m, SECOND);
	assert_value(&m, "memory_used", "NUMANode", 0, ABSENT);
}

TEST(traffic_of_memory_controllers)
{
	struct sysfs_pmu_event x;
	struct machine m = machine_make();

	put_all(&m, "/sys/bus/event_source/devices/amd_umc_0", "type=24|format/event=config:0-7|"
		"format/rdwrmask=config:8-9");
	assert_int_equal(sysfs_pmu_event(m.root, "amd_umc_0", "event=0x0a,rdwrmask=2", &x, &err), 0);
	assert_true(x.type == 24 && x.config == 0x20a && x.scale == 1 && !*x.unit);
	assert_int_equal(sysfs_pmu_event(m.root, "amd_umc_0", "event=0x0a,rdwrmask=4", &x, &err), -1);
	assert_int_equal(sysfs_pmu_event(m.root, "amd_umc_0", "event=0x0a,umask=1", &x, &err), -1);
	assert_int_equal(sysfs_pmu_event(m.root, "amd_umc_0", "cas_count_read", &x, &err), -1);
	assert_int_equal(sysfs_pmu_event(m.root, "amd_umc_1", "event=0x0a", &x, &err), -1);
	/* A format in parts, as of amd_df, and one that is not understood. */
	put_all(&m, "/sys/bus/event_source/devices/amd_df", "type=25|format/event=config:0-7,32-35|"
		"format/other=config1:0-7");
	assert_int_equal(sysfs_pmu_event(m.root, "amd_df", "event=0x107", &x, &err), 0);
	assert_true(x.config == 0x100000007);
	assert_int_equal(sysfs_pmu_event(m.root, "amd_df", "event=0x1007", &x, &err), -1);
	assert_int_equal(sysfs_pmu_event(m.root, "amd_df", "event=7,other=1", &x, &err), -1);
	/* Intel's controllers, that count this CPU's clock: two, and one of the other package, which is not ours. */
	put_all(&m, "/sys/bus/event_source/devices/uncore_imc_9", "type=1|cpumask=4|format/event=config:0-7|"
		"events/cas_count_read=event=0x00");
	for (int i = 0; i < 2; i++) {
		char device[64];

		snprintf(device, sizeof(device), "/sys/bus/event_source/devices/uncore_imc_%d", i);
		put_all(&m, device, "type=1|cpumask=0|format/event=config:0-7|events/cas_count_read=event=0x00|"
			"events/cas_count_read.scale=6.103515625e-5|events/cas_count_read.unit=MiB");
	}
	machine_open(&m, "cpu", "0-3", NULL);
	if (trace_head_event(&m.head, "memory_read") < 0) {
		assert_why(&m, "; no memory_read and memory_written: ");
	} else {
		usleep(100000);
		machine_tick(&m, SECOND / 10);
		/* 64 bytes a nanosecond, of both. */
		assert_true(value(&m, "memory_read", "Package", 0) >= 2 * 64 * UINT64_C(100000000));
		/* One more that the kernel does not open: a part is not the whole. */
		put_all(&m, "/sys/bus/event_source/devices/uncore_imc_2", "type=4000000|cpumask=0|"
			"format/event=config:0-7|events/cas_count_read=event=0x00");
		machine_close(&m);
		machine_open(&m, "cpu", "0-3", NULL);
		assert_no_event(&m, "memory_read");
		assert_why(&m, "; no memory_read and memory_written: PMU uncore_imc_2: ");
	}
	machine_close(&m);
}

/* --- network --- */

static void ports_make(const struct machine *m)
{
	put_all(m, "/sys/class/infiniband/mlx5_0", "device/numa_node=1|ports/1/state=4: ACTIVE|"
		"ports/1/rate=100 Gb/sec (4X EDR)|ports/1/counters/unicast_rcv_packets=1|"
		"ports/1/counters/port_rcv_data=5000000000|ports/1/counters/port_xmit_data=7");
	/* One of 32 bits, at its old place; one that is down; Omni-Path. */
	put_all(m, "/sys/class/infiniband/mthca0", "device/numa_node=0|ports/2/state=4: ACTIVE|"
		"ports/2/rate=10 Gb/sec (4X)|ports/2/counters/port_rcv_data=4294967200|"
		"ports/2/counters/port_xmit_data=100");
	put_all(m, "/sys/class/infiniband/mlx5_1", "ports/1/state=1: DOWN|ports/1/counters/port_rcv_data=1|"
		"ports/1/counters/port_xmit_data=1");
	put_all(m, "/sys/class/infiniband/hfi1_0", "device/numa_node=-1|"
		"ports/1/counters_ext/port_rcv_data_64=10|ports/1/counters_ext/port_xmit_data_64=20");
	put_all(m, "/sys/class/cxi/cxi0", "device/numa_node=0|"
		"device/telemetry/hni_sts_rx_ok_octets=1000@1700000000.123456789|"
		"device/telemetry/hni_sts_tx_ok_octets=2000@1700000000.123456789");
	put_all(m, "/sys/class/net/hsn-0", "device/numa_node=0|type=1|speed=1000|statistics/rx_bytes=0|"
		"statistics/tx_bytes=0");
	put_all(m, "/sys/class/net/x\"y\\", "device/numa_node=0|type=1|statistics/rx_bytes=0|"
		"statistics/tx_bytes=0");
	/* No hardware, and IP over InfiniBand. */
	put_all(m, "/sys/class/net/lo", "type=772|statistics/rx_bytes=5");
	put_all(m, "/sys/class/net/veth1", "type=1|statistics/rx_bytes=5");
	put_all(m, "/sys/class/net/ib0", "type=32|device/numa_node=0|statistics/rx_bytes=5");
}

TEST(traffic_of_network_devices)
{
	FREED(machine_close) struct machine m = machine_make();

	ports_make(&m);
	machine_open(&m, "net", NULL, NULL);
	put(&m, "/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "6000000000\n");
	put_all(&m, "/sys/class/infiniband/mthca0", "ports/2/counters/port_rcv_data=100|"
		"ports/2/counters/port_xmit_data=1100");
	put(&m, "/sys/class/infiniband/hfi1_0/ports/1/counters_ext/port_xmit_data_64", "21\n");
	put(&m, "/sys/class/cxi/cxi0/device/telemetry/hni_sts_rx_ok_octets", "9000@1700000001.5\n");
	put_all(&m, "/sys/class/net/hsn-0", "statistics/rx_bytes=1000000|statistics/tx_bytes=10000000000");
	machine_tick(&m, SECOND);
	assert_values(&m, "net_received.mlx5_0 NUMANode 0 4000000000|"	/* it is not there */
			"net_sent.mlx5_0 NUMANode ? 0|"
			"net_received.mthca0:2 NUMANode -|"	/* passed 32 bits, or was reset */
			"net_sent.mthca0:2 NUMANode 4000|"
			"net_received.hfi1_0 Machine 0|"
			"net_sent.hfi1_0 Machine 4|"
			"net_received.cxi0 NUMANode 8000|"
			"net_received.hsn_0 NUMANode 1000000|"
			"net_sent.hsn_0 NUMANode -|"	/* ten times its rate */
			"net_received.x_y_ NUMANode 0");
	for (unsigned i = 0; i < m.sources.nevents; i++)
		assert_null(strpbrk(m.sources.events[i].device, "\"\\"));
	assert_no_event(&m, "net_received.mlx5_1");
	assert_no_event(&m, "net_received.veth1");
	assert_no_event(&m, "net_received.lo");
	assert_no_event(&m, "net_received.ib0");
	assert_value(&m, "ethernet_received", "Machine", 0, 1000000);
	/* All ones of 32 bits: the counter has stopped. */
	put_all(&m, "/sys/class/infiniband/mthca0", "ports/2/counters/port_rcv_data=4294967295|"
		"ports/2/counters/port_xmit_data=4294967295");
	machine_tick(&m, 100 * SECOND);
	assert_values(&m, "net_received.mthca0:2 NUMANode -|"
			"net_sent.mthca0:2 NUMANode -");
	sources_hide(&m.sources, &m.head, m.values);
	assert_values(&m, "net_received.mlx5_0 NUMANode - -");
}

TEST(traffic_of_disks)
{
	FREED(machine_close) struct machine m = machine_make();

	put(&m, "/sys/block/nvme0n1/device/x", "");
	put(&m, "/sys/block/nvme0n1/stat", "     10        0      100        0       20        0    2000  0 0 0 0\n");
	put(&m, "/sys/block/sda/device/x", "");
	put(&m, "/sys/block/sda/stat", "      1        0       10        0        2        0     200  0 0 0 0\n");
	put(&m, "/sys/block/dm-0/stat", "      1        0       10        0        2        0     200  0 0 0 0\n");
	machine_open(&m, "sw", NULL, NULL);
	put(&m, "/sys/block/nvme0n1/stat", "     11        0      108        0       20        0    2000  0 0 0 0\n");
	put(&m, "/sys/block/sda/stat", "      2        0       11        0        3        0     300  0 0 0 0\n");
	put(&m, "/sys/block/dm-0/stat", "      1        0     9999        0        2        0    9999  0 0 0 0\n");
	machine_tick(&m, SECOND);
	assert_values(&m, "disk_read Machine 4608|"
			"disk_written Machine 51200");
}

/* Of the reader's PUs, and of the node's pages; both are read once a second at most. */
TEST(waiting_and_swapping)
{
	static const char *const delays[] = { "cpu0 0 0 1 2 3 4 9 100 5\ndomain0 ff 1 2\ncpu1 0 0 1 2 3 4 9 20 5\n"
					      "cpu4 0 0 1 2 3 4 9 3 5\n",
					      "cpu0 0 0 1 2 3 4 9 600 5\ndomain0 ff 1 2\ncpu1 0 0 1 2 3 4 9 30 5\n"
					      "cpu4 0 0 1 2 3 4 9 90000 5\n" };
	static const struct { const char *pus; uint64_t waited; bool swaps; } rows[] = {
		{ NULL, 500 + 10 + 89997, true }, { "0-1", 510, false }, { "0-7", 90507, true },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(machine_close) struct machine m = machine_make();

		put(&m, "/proc/schedstat", delays[0]);
		put(&m, "/proc/vmstat", "nr_free_pages 9\npswpin 40\npswpout 7\n");
		machine_open(&m, "sw", rows[i].pus, NULL);
		put(&m, "/proc/schedstat", delays[1]);
		put(&m, "/proc/vmstat", "nr_free_pages 9\npswpin 52\npswpout 7\n");
		machine_tick(&m, SECOND / 2);
		assert_value(&m, "run_delay", "Machine", 0, 0);
		machine_tick(&m, SECOND / 2);
		assert_value(&m, "run_delay", "Machine", 0, rows[i].waited);
		if (rows[i].swaps)
			assert_value(&m, "swapped_in", "Machine", 0, 12);
		else
			assert_no_event(&m, "swapped_in");
	}
}

/* --- GPUs --- */

TEST(gpus_of_amd)
{
	struct machine m = machine_make();

	put_all(&m, "/sys/devices/pci/0000:c1:00.0", "vendor=0x1002|gpu_busy_percent=63|"
		"mem_info_vram_total=68702699520|mem_info_vram_used=34351349760|"
		"hwmon/hwmon5/power1_average=420000000");
	put(&m, "/sys/devices/pci/0000:03:00.0/vendor", "0x1a03\n");
	put(&m, "/sys/bus/pci/devices/0000:c1:00.0/numa_node", "1\n");
	put(&m, "/sys/class/drm/version", "drm 1.1.0\n");
	put(&m, "/sys/class/drm/card0/dev", "226:0\n");
	put(&m, "/sys/class/drm/card1/dev", "226:1\n");
	put(&m, "/sys/class/drm/card1-DP-1/status", "disconnected\n");
	put_all(&m, "/sys/devices/pci/0000:21:00.0", "vendor=0x1002|gpu_busy_percent=7");
	put(&m, "/sys/class/drm/card2/dev", "226:2\n");
	link_to(&m, "/sys/class/drm/card2/device", "../../../devices/pci/0000:21:00.0");
	link_to(&m, "/sys/class/drm/card0/device", "../../../devices/pci/0000:03:00.0");
	link_to(&m, "/sys/class/drm/card1/device", "../../../devices/pci/0000:c1:00.0");
	machine_open(&m, "gpu", NULL, NULL);
	machine_tick(&m, SECOND);
	assert_values(&m, "gpu_busy.card1 NUMANode 0 63|"
			"gpu_memory_used.card1 NUMANode ? 34351349760|"
			"gpu_power.card1 NUMANode ? 420000000");
	put_all(&m, "/sys/devices/pci/0000:c1:00.0", "gpu_busy_percent=101|mem_info_vram_used=68702699521|"
		"hwmon/hwmon5/power1_average=-1");
	machine_tick(&m, SECOND);
	assert_values(&m, "gpu_busy.card1 NUMANode ? -|"
			"gpu_memory_used.card1 NUMANode ? -|"
			"gpu_power.card1 NUMANode ? -");
	/* The job's own alone, wherever its PUs are. */
	machine_close(&m);
	machine_open(&m, "gpu", "0-3", "0,2");
	assert_no_event(&m, "gpu_busy.card1");
	machine_close(&m);
	machine_open(&m, "gpu", "0-3", "");
	assert_no_event(&m, "gpu_busy.card1");
	assert_why(&m, "; no gpu: the job has only a part of the node, and no GPU known to be its own");
	machine_close(&m);
	machine_open(&m, "gpu", "0-7", "");
	machine_tick(&m, SECOND);
	assert_value(&m, "gpu_memory_used.card1", "NUMANode", 1, ABSENT);
	machine_close(&m);
	put(&m, "/sys/devices/pci/0000:c1:00.0/gpu_busy_percent", "64\n");
	machine_open(&m, "gpu", "0-3", "1,17");
	machine_tick(&m, SECOND);
	assert_value(&m, "gpu_busy.card1", "Machine", 0, 64);	/* its NUMA node has no PU of the job */
	assert_no_event(&m, "gpu_busy.card2");
	machine_close(&m);
}

/* NVML is not here: a stand-in with its functions, as the loader finds it by its name once it is loaded. */
TEST(gpus_of_nvidia)
{
	char path[512] = "";
	unsigned (*users)(void);
	struct machine m, other;
	void *library;
	ssize_t n;

	n = readlink("/proc/self/exe", path, sizeof(path) - 32);
	assert_true(n > 0);
	path[n] = '\0';
	strcpy(strrchr(path, '/'), "/libnvidia-ml.so.1");
	if (!(library = dlopen(path, RTLD_NOW)))
		fail_msg("%s", dlerror());
	*(void **) &users = dlsym(library, "nvml_users");
	m = machine_make();
	put(&m, "/sys/bus/pci/devices/0000:3b:00.0/numa_node", "0\n");
	put(&m, "/sys/bus/pci/devices/0000:86:00.0/numa_node", "1\n");
	machine_open(&m, "gpu", NULL, NULL);
	machine_tick(&m, SECOND);
	assert_values(&m, "gpu_busy.nvml0 NUMANode 80|"
			"gpu_memory_used.nvml0 NUMANode 8589934592 0|"
			"gpu_power.nvml0 NUMANode 300000000");
	assert_no_event(&m, "gpu_busy.nvml1");
	assert_value(&m, "gpu_power.nvml1", "NUMANode", 1, 70000000);
	setenv("NVML_BROKEN", "values", 1);
	machine_tick(&m, SECOND);
	assert_values(&m, "gpu_busy.nvml0 NUMANode -|"
			"gpu_memory_used.nvml0 NUMANode -|"
			"gpu_power.nvml0 NUMANode -");
	unsetenv("NVML_BROKEN");
	/* Two traces; the job's own GPU alone; the last one lets go of the driver. */
	other = machine_make();
	machine_open(&other, "gpu", "4-7", "1");
	assert_no_event(&other, "gpu_power.nvml0");
	assert_true(trace_head_event(&other.head, "gpu_power.nvml1") >= 0);
	assert_int_equal(users(), 1);
	machine_close(&m);
	assert_int_equal(users(), 1);
	machine_close(&other);
	assert_int_equal(users(), 0);
	machine_open(&m, "gpu", "4-7", "2,3");
	assert_why(&m, "; no gpu: no NVIDIA GPU is the job's, or none can be read, no AMD GPU");
	assert_int_equal(users(), 0);
	machine_close(&m);
	/* By its number in the order of addresses; not if numbers may be of parts of GPUs, or of other makers'. */
	setenv("NVML_BROKEN", "order", 1);
	machine_open(&m, "gpu", "4-7", "1");
	machine_tick(&m, SECOND);
	assert_value(&m, "gpu_power.nvml0", "NUMANode", 0, 70000000);
	assert_no_event(&m, "gpu_power.nvml1");
	machine_close(&m);
	setenv("NVML_BROKEN", "divided", 1);
	machine_open(&m, "gpu", "4-7", "0,1");
	assert_why(&m, "; no gpu: no NVIDIA GPU is the job's");
	machine_close(&m);
	unsetenv("NVML_BROKEN");
	setenv("NVML_BROKEN", "init", 1);
	machine_open(&m, "gpu", NULL, NULL);
	assert_why(&m, "; no gpu: libnvidia-ml.so.1: Driver Not Loaded, no AMD GPU");
	unsetenv("NVML_BROKEN");
	machine_close(&m);
	put_all(&m, "/sys/devices/pci/0000:21:00.0", "vendor=0x1002|gpu_busy_percent=7");
	put(&m, "/sys/class/drm/card2/dev", "226:2\n");
	link_to(&m, "/sys/class/drm/card2/device", "../../../devices/pci/0000:21:00.0");
	machine_open(&m, "gpu", "4-7", "0,1");
	assert_why(&m, "; no gpu: no NVIDIA GPU is the job's");
	machine_close(&m);
	machine_close(&other);
	dlclose(library);
}

/* --- whose it is --- */

/* Who has one package of two, one PU too few of it, or all. */
TEST(only_what_is_wholly_the_readers)
{
	static const struct { const char *pus; bool package[2], machine; } rows[] = {
		{ "0-7", { true, true }, true },
		{ "0-3", { true, false }, false },
		{ "4-7", { false, true }, false },
		{ "0-2", { false, false }, false },
		{ "0-6", { true, false }, false },
		{ "3-4", { false, false }, false },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(machine_close) struct machine m = machine_make();

		powercap_make(&m);
		ports_make(&m);
		put(&m, "/sys/block/sda/device/x", "");
		put(&m, "/sys/block/sda/stat", "1 0 10 0 2 0 200 0 0 0 0\n");
		put(&m, "/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 9 kB\nNode 0 MemUsed: 1 kB\n");
		put(&m, "/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 9 kB\nNode 1 MemUsed: 1 kB\n");
		machine_open(&m, "power+net", rows[i].pus, "");
		put_all(&m, "/sys/class/powercap", "intel-rapl:0/energy_uj=1000002|intel-rapl:1/energy_uj=3000002|"
			"intel-rapl:2/energy_uj=4000002");
		machine_tick(&m, SECOND / 100);
		for (unsigned p = 0; p < 2; p++) {
			int l = trace_head_level(&m.head, "Package");
			bool energy = false, memory = false;

			for (unsigned k = 0; k < m.head.levels[l].n; k++)
				if (m.head.levels[l].objects[k].os_index == p) {
					energy = value(&m, "package_energy", "Package", k) == (p ? 4 : 2);
					memory = value(&m, "memory_used", "NUMANode", k) == 1024;
				}
			if (energy != rows[i].package[p] || memory != rows[i].package[p])
				fail_msg("PUs %s: package %u", rows[i].pus, p);
		}
		if ((trace_head_event(&m.head, "net_received.mlx5_0") >= 0) != rows[i].machine ||
		    (trace_head_event(&m.head, "ethernet_sent") >= 0) != rows[i].machine ||
		    (trace_head_event(&m.head, "disk_read") >= 0) != rows[i].machine)
			fail_msg("PUs %s: the machine", rows[i].pus);
		if (!rows[i].machine)
			assert_why(&m, "; no net: the job has only a part of the node");
	}
}

/* Nothing is there: each has one reason, and the sets that were not asked for have none. */
TEST(reasons)
{
	FREED(machine_close) struct machine m = machine_make();

	machine_open(&m, "power+net", NULL, NULL);
	assert_int_equal(m.head.nevents, 1);
	assert_string_equal(m.why.data, "; no memory_used: no NUMA node; no run_delay: the kernel has no "
			    "/proc/schedstat; no swapped_in: the kernel has no /proc/vmstat; no disk_read and "
			    "disk_written: no disks; "
			    "no ethernet_received and ethernet_sent: no Ethernet device; no power: no PMU power, no "
			    "powercap, no sensor of a package; no net: no network device");
}

/* Names and numbers that no kernel writes. */
TEST(odd_files)
{
	static const char *const odd[] = { "", "\n", "x", "-1", "18446744073709551616", "18446744073709551615", " ",
					   "1e9x" };

	for (size_t i = 0; i < ROWS(odd); i++) {
		FREED(machine_close) struct machine m = machine_make();

		powercap_make(&m);
		ports_make(&m);
		put(&m, "/sys/class/powercap/intel-rapl:9/name", odd[i]);
		put(&m, "/sys/class/powercap/intel-rapl:1/name", odd[i]);
		put(&m, "/sys/class/powercap/intel-rapl:0/max_energy_range_uj", odd[i]);
		put(&m, "/sys/class/infiniband/mlx5_0/device/numa_node", odd[i]);
		put(&m, "/sys/class/infiniband/mlx5_0/ports/1/rate", odd[i]);
		put(&m, "/sys/devices/system/node/node0/meminfo", odd[i]);
		put(&m, "/sys/bus/event_source/devices/power/type", odd[i]);
		machine_open(&m, "power+net", NULL, NULL);
		put(&m, "/sys/class/powercap/intel-rapl:0/energy_uj", odd[i]);
		put(&m, "/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", odd[i]);
		machine_tick(&m, SECOND);
		assert_value(&m, "package_energy", "Package", 0, ABSENT);
		for (unsigned k = 0; k < m.head.nevents; k++)
			if (!strcmp(m.head.events[k].name, "net_received.mlx5_0"))
				assert_int_not_equal(m.values[m.head.events[k].column], 1);
	}
}

TESTS_MAIN(NULL, NULL)
