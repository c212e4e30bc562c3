/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "monitor/nvml.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

#define LIBRARY "libnvidia-ml.so.1"

static struct {
	struct nvml calls;
	void *library;
	unsigned users;
} nvml;

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

	if (!(nvml.library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL)))
		return err_set(e, "no " LIBRARY);
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *symbol = dlsym(nvml.library, symbols[i].name);

		if (!symbol && !symbols[i].may_lack) {
			err_set(e, LIBRARY " lacks %s", symbols[i].name);
			goto error;
		}
		*(void **) ((char *) &nvml.calls + symbols[i].offset) = symbol;
	}
	if ((rc = nvml.calls.init())) {
		err_set(e, LIBRARY ": %s", nvml.calls.error(rc));
		goto error;
	}
	return 0;
error:
	dlclose(nvml.library);
	return -1;
}

const struct nvml *nvml_use(struct err *e)
{
	if (!nvml.users && library_load(e))
		return NULL;
	nvml.users++;
	return &nvml.calls;
}

void nvml_drop(void)
{
	if (--nvml.users)
		return;
	nvml.calls.shutdown();
	dlclose(nvml.library);
}
