/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors
 *
 * NVIDIA's driver API with a GPU whose memory is the host's: what bench/gpu.c calls of it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int current;

int cuInit(unsigned flags)
{
	return flags != 0;
}

int cuDeviceGetCount(int *n)
{
	*n = getenv("RIG_CUDA_GPUS") ? atoi(getenv("RIG_CUDA_GPUS")) : 0;
	return 0;
}

int cuDeviceGetPCIBusId(char *out, int size, int device)
{
	return snprintf(out, size, "0000:%02x:00.0", device + 1) >= size;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	*context = &current;
	return device < 0;
}

int cuCtxSetCurrent(void *context)
{
	return context != &current;
}

int cuMemAlloc_v2(uint64_t *device, size_t size)
{
	*device = (uintptr_t) malloc(size);
	return !*device;
}

int cuMemFree_v2(uint64_t device)
{
	free((void *) (uintptr_t) device);
	return 0;
}

int cuMemHostRegister_v2(void *memory, size_t size, unsigned flags)
{
	return !memory || !size || flags;
}

int cuMemHostUnregister(void *memory)
{
	return !memory;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size)
{
	memcpy((void *) (uintptr_t) to, from, size);
	return 0;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size)
{
	memcpy(to, (void *) (uintptr_t) from, size);
	return 0;
}
