/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>
#include <string.h>

#include "monitor/nvml.h"

/*
 * A stand-in for libnvidia-ml.so.1 with two GPUs, for machines that have none: its functions have the names and
 * prototypes of NVML's API reference. The second GPU has no utilization, as where it is divided (MIG). NVML_BROKEN in
 * the environment: the driver is gone (init), every reading is impossible (values), the second GPU is divided
 * (divided), or they are not in the order of their addresses (order).
 */
#define API __attribute__((visibility("default")))
#define NOT_SUPPORTED 3
#define DRIVER_NOT_LOADED 9

static unsigned users;
static int gpus[2];

static int is_broken(const char *how)
{
	const char *broken = getenv("NVML_BROKEN");

	return broken && !strcmp(broken, how);
}

API int nvmlInit_v2(void);
API int nvmlShutdown(void);
API int nvmlDeviceGetCount_v2(unsigned *n);
API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
API int nvmlDeviceGetUtilizationRates(void *device, struct nvml_utilization *u);
API int nvmlDeviceGetMemoryInfo(void *device, struct nvml_memory *m);
API int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
API int nvmlDeviceGetPciInfo_v3(void *device, struct nvml_pci *pci);
API int nvmlDeviceGetMigMode(void *device, unsigned *is_on, unsigned *pending);
API const char *nvmlErrorString(int result);
API unsigned nvml_users(void);

int nvmlInit_v2(void)
{
	if (is_broken("init"))
		return DRIVER_NOT_LOADED;
	users++;
	return 0;
}

int nvmlShutdown(void)
{
	users--;
	return 0;
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
	*n = 2;
	return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
	*device = &gpus[is_broken("order") ? 1 - index : index];
	return 0;
}

int nvmlDeviceGetUtilizationRates(void *device, struct nvml_utilization *u)
{
	if (device == &gpus[1])
		return NOT_SUPPORTED;
	*u = (struct nvml_utilization){ is_broken("values") ? 101 : 80, 30 };
	return 0;
}

int nvmlDeviceGetMemoryInfo(void *device, struct nvml_memory *m)
{
	(void) device;
	*m = (struct nvml_memory){ 85899345920, 0, is_broken("values") ? 85899345921 : 8589934592 };
	return 0;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
	*milliwatts = is_broken("values") ? 4000000000 : device == &gpus[0] ? 300000 : 70000;
	return 0;
}

int nvmlDeviceGetPciInfo_v3(void *device, struct nvml_pci *pci)
{
	memset(pci, 0, sizeof(*pci));
	strcpy(pci->bus_id, device == &gpus[0] ? "00000000:3B:00.0" : "00000000:86:00.0");
	return 0;
}

int nvmlDeviceGetMigMode(void *device, unsigned *is_on, unsigned *pending)
{
	if (device == &gpus[0])
		return NOT_SUPPORTED;
	*is_on = *pending = is_broken("divided");
	return 0;
}

const char *nvmlErrorString(int result)
{
	return result == DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Unknown Error";
}

unsigned nvml_users(void)
{
	return users;
}
