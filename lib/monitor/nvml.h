/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

/*
 * What the sources use of NVIDIA's library, which is loaded with the first user and unloaded with the last, so that a
 * GPU can be reset while none is monitored. Declared after NVML's API reference; Topiary is built without it.
 */
struct nvml_utilization {
	unsigned gpu, memory;			/* percent of the last sample period, up to a second */
};
struct nvml_memory {
	unsigned long long total, free, used;	/* bytes */
};
struct nvml_pci {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char bus_id[32];
};

struct nvml {
	int (*init)(void);			/* all return 0 for success */
	int (*shutdown)(void);
	int (*count)(unsigned *n);
	int (*by_index)(unsigned index, void **device);
	int (*utilization)(void *device, struct nvml_utilization *u);
	int (*memory)(void *device, struct nvml_memory *m);
	int (*power)(void *device, unsigned *milliwatts);
	int (*pci)(void *device, struct nvml_pci *pci);
	int (*mig)(void *device, unsigned *is_on, unsigned *pending);	/* NULL: a driver without MIG */
	const char *(*error)(int result);
};
