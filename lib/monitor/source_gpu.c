/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <dlfcn.h>

#include "base/std.h"
#include "monitor/nvml.h"
#include "monitor/source.h"
#include "monitor/sysfs.h"
#include "trace/block.h"

/*
 * How busy GPUs are, the memory in use and their power. NVIDIA's by NVML; AMD's by the files of the kernel's driver,
 * which ROCm SMI reads, too (Documentation/gpu/amdgpu/thermal.rst). A GPU counts at the NUMA node of its PCI device.
 */
#define WATTS_MOST 5000.0
#define MICRO 1e6

/* --- NVML --- */

#define LIBRARY "libnvidia-ml.so.1"

static struct {
	struct nvml calls;
	void *handle;
	unsigned users;
} library;

static const struct {
	const char *name;
	size_t offset;
	bool may_lack;
} symbols[] = {
	{ "nvmlInit_v2", offsetof(struct nvml, init), false },
	{ "nvmlShutdown", offsetof(struct nvml, shutdown), false },
	{ "nvmlDeviceGetCount_v2", offsetof(struct nvml, count), false },
	{ "nvmlDeviceGetHandleByIndex_v2", offsetof(struct nvml, by_index), false },
	{ "nvmlDeviceGetUtilizationRates", offsetof(struct nvml, utilization), false },
	{ "nvmlDeviceGetMemoryInfo", offsetof(struct nvml, memory), false },
	{ "nvmlDeviceGetPowerUsage", offsetof(struct nvml, power), false },
	{ "nvmlDeviceGetPciInfo_v3", offsetof(struct nvml, pci), false },
	{ "nvmlDeviceGetMigMode", offsetof(struct nvml, mig), true },
	{ "nvmlErrorString", offsetof(struct nvml, error), false },
};

static int library_load(struct err *e)
{
	int rc;

	if (!(library.handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL)))
		return err_set(e, "no " LIBRARY);
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *symbol = dlsym(library.handle, symbols[i].name);

		if (!symbol && !symbols[i].may_lack) {
			err_set(e, LIBRARY " lacks %s", symbols[i].name);
			goto error;
		}
		*(void **) ((char *) &library.calls + symbols[i].offset) = symbol;
	}
	if ((rc = library.calls.init())) {
		err_set(e, LIBRARY ": %s", library.calls.error(rc));
		goto error;
	}
	return 0;
error:
	dlclose(library.handle);
	return -1;
}

/* NULL with an error: no such library, or no such driver. Every success needs one source_gpus_end. */
static const struct nvml *nvml_use(struct err *e)
{
	if (!library.users && library_load(e))
		return NULL;
	library.users++;
	return &library.calls;
}

void source_gpus_end(void)
{
	if (--library.users)
		return;
	library.calls.shutdown();
	dlclose(library.handle);
}

/* All are the reader's if the node is. */
static bool gpu_is_own(const struct sources *s, unsigned number)
{
	for (const char *at = s->gpus; at && *at; at += strcspn(at, ","), at += *at == ',')
		if (strtoul(at, NULL, 10) == number)
			return true;
	return !s->gpus;
}

static struct source_meter gpu_meter(const struct sources *s, const char *device, const char *address)
{
	struct source_meter m = { .kind = TRACE_GAUGE, .level = "NUMANode", .os_index = -1, .fd = -1 };
	char path[SYSFS_PATH];
	long long node;

	if (sysfs_path(path, s->root, "/sys/bus/pci/devices/%s/numa_node", address) && sysfs_number(path, &node))
		m.os_index = node;
	snprintf(m.device, sizeof(m.device), "%s", device);
	return m;
}

/* --- AMD --- */

struct amd_order {
	const struct sources *s;
	const char *address;		/* NULL: after all */
	unsigned before;
};

/* The directory and PCI address of a card. False for another maker's, and for "card0-DP-1", a connector. */
static bool amd_card(const struct sources *s, const char *card, char folder[static SYSFS_PATH],
		     char address[static PATH_MAX])
{
	char path[SYSFS_PATH], vendor[16];

	if (strchr(card, '-') || !sysfs_path(folder, s->root, "/sys/class/drm/%s/device", card) ||
	    !sysfs_path(path, "", "%s/vendor", folder) || !sysfs_text(path, vendor, sizeof(vendor)) ||
	    strcmp(vendor, "0x1002") || !realpath(folder, address))
		return false;
	memmove(address, strrchr(address, '/') + 1, strlen(strrchr(address, '/')));
	return true;
}

static void amd_compare(void *user, const char *card)
{
	char folder[SYSFS_PATH], address[PATH_MAX];
	struct amd_order *o = user;

	o->before += amd_card(o->s, card, folder, address) && (!o->address || strcmp(address, o->address) < 0);
}

/* How many of AMD's are before a PCI address: the number of the one that has it. */
static unsigned amd_before(const struct sources *s, const char *address)
{
	struct amd_order o = { s, address, 0 };
	char path[SYSFS_PATH];

	if (sysfs_path(path, s->root, "/sys/class/drm"))
		sysfs_each(path, "card", amd_compare, &o);
	return o.before;
}

static void amd_power_add(void *user, const char *hwmon)
{
	static const char *const inputs[] = { "power1_average", "power1_input" };
	const struct { struct sources *s; struct source_meter *m; const char *folder; } *w = user;
	char path[SYSFS_PATH];

	for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++)
		if (sysfs_path(path, "", "%s/hwmon/%s/%s", w->folder, hwmon, inputs[i]) &&
		    source_add_file(w->s, *w->m, path))
			return;
}

static void amd_add(void *user, const char *card)
{
	char folder[SYSFS_PATH], path[SYSFS_PATH], address[PATH_MAX];
	struct sources *s = user;
	struct source_meter m;
	struct { struct sources *s; struct source_meter *m; const char *folder; } power = { s, &m, folder };
	long long total;

	if (!amd_card(s, card, folder, address) || !gpu_is_own(s, amd_before(s, address)))
		return;
	m = gpu_meter(s, card, address);
	m.name = "gpu_busy";
	m.unit = "%";
	m.bounds.most = 100;
	if (sysfs_path(path, "", "%s/gpu_busy_percent", folder))
		source_add_file(s, m, path);
	m.name = "gpu_memory_used";
	m.unit = "B";
	m.bounds.most = sysfs_path(path, "", "%s/mem_info_vram_total", folder) && sysfs_number(path, &total) ? total
														: 0;
	if (sysfs_path(path, "", "%s/mem_info_vram_used", folder))
		source_add_file(s, m, path);
	m.name = "gpu_power";
	m.unit = "uW";
	m.bounds.most = WATTS_MOST * MICRO;
	if (sysfs_path(path, "", "%s/hwmon", folder))
		sysfs_each(path, "hwmon", amd_power_add, &power);
}

/* --- NVIDIA --- */

static const struct nvml *nvml;

static uint64_t read_busy(struct source_meter *m)
{
	struct nvml_utilization u;

	return nvml->utilization((void *) m->handle, &u) ? TRACE_ABSENT : u.gpu;
}

static uint64_t read_memory(struct source_meter *m)
{
	struct nvml_memory memory;

	if (nvml->memory((void *) m->handle, &memory) || memory.used > memory.total)
		return TRACE_ABSENT;
	return memory.used;
}

static uint64_t read_power(struct source_meter *m)
{
	unsigned milliwatts;

	return nvml->power((void *) m->handle, &milliwatts) ? TRACE_ABSENT : milliwatts * UINT64_C(1000);
}

static const struct {
	const char *name, *unit;
	uint64_t (*read)(struct source_meter *m);
	double most;
} readings[] = {
	{ "gpu_busy", "%", read_busy, 100 },
	{ "gpu_memory_used", "B", read_memory, 0 },
	{ "gpu_power", "uW", read_power, WATTS_MOST * MICRO },
};

/* NVML has 8 digits of the domain, the kernel 4. */
static bool address_of(void *device, char address[static 32])
{
	struct nvml_pci pci;

	if (nvml->pci(device, &pci))
		return false;
	pci.bus_id[sizeof(pci.bus_id) - 1] = '\0';
	snprintf(address, 32, "%s", pci.bus_id + (strlen(pci.bus_id) > 12 ? strlen(pci.bus_id) - 12 : 0));
	for (char *p = address; *p; p++)
		*p = tolower((unsigned char) *p);
	return true;
}

/* NVML promises no order. UINT_MAX: not known, as where GPUs are divided, and Slurm's numbers are of their parts. */
static unsigned nvidia_number(const char *address, unsigned n)
{
	unsigned before = 0, is_divided, pending;
	char other[32];
	void *device;

	for (unsigned i = 0; i < n; i++) {
		if (nvml->by_index(i, &device) || !address_of(device, other) ||
		    (nvml->mig && !nvml->mig(device, &is_divided, &pending) && is_divided))
			return UINT_MAX;
		before += strcmp(other, address) < 0;
	}
	return before;
}

static void nvidia_add(struct sources *s, unsigned index, unsigned n)
{
	char name[16], address[32];
	struct source_meter m;
	void *device;

	if (nvml->by_index(index, &device) || !address_of(device, address) ||
	    !gpu_is_own(s, nvidia_number(address, n)))
		return;
	snprintf(name, sizeof(name), "nvml%u", index);
	m = gpu_meter(s, name, address);
	m.handle = device;
	for (size_t i = 0; i < sizeof(readings) / sizeof(readings[0]); i++) {
		m.name = readings[i].name;
		m.unit = readings[i].unit;
		m.read = readings[i].read;
		m.bounds.most = readings[i].most;
		/* What a model, or one that is divided (MIG), does not have. */
		if (m.read(&m) != TRACE_ABSENT)
			source_add(s, &m);
	}
}

static void nvidia_find(struct sources *s, struct err *e)
{
	unsigned n, before = s->nmeters;

	if (!(nvml = nvml_use(e)))
		return;
	if (nvml->count(&n))
		n = 0;
	if (n && s->gpus && amd_before(s, NULL))
		s->gpus = "";	/* a number may be of either maker's */
	for (unsigned i = 0; i < n; i++)
		nvidia_add(s, i, n);
	if (s->nmeters > before) {
		s->uses_nvml = true;
		return;
	}
	err_set(e, n ? "no NVIDIA GPU is the job's, or none can be read" : "no NVIDIA GPU");
	source_gpus_end();
}

int source_gpus(struct sources *s, struct err *e)
{
	unsigned before = s->nmeters;
	char path[SYSFS_PATH];
	struct err why;

	if (source_owns_object(s, "Machine", 0))
		s->gpus = NULL;
	if (s->gpus && !*s->gpus)
		return err_set(e, "the job has only a part of the node, and no GPU known to be its own");
	nvidia_find(s, &why);
	if (sysfs_path(path, s->root, "/sys/class/drm"))
		sysfs_each(path, "card", amd_add, s);
	return s->nmeters > before ? 0 : err_set(e, "%s, no AMD GPU", why.text);
}
