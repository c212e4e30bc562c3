/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/std.h"

/*
 * Which PCI functions of a node are GPUs, and their numbers: those of CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES and
 * SLURM_STEP_GPUS. Slurm's index of a GPU is its place in the order of NVML or RSMI (AutoDetect,
 * _sort_gpu_by_links_order of src/plugins/gres/gpu/gres_gpu.c) or of the device files in gres.conf; both drivers count
 * along the PCI bus, which need not be the order of NUMA nodes. One rule for snapshots (strings_allocation.c) and for
 * steps (lib/bind/gpu.c).
 */
struct gpu_card {
	unsigned class, vendor;		/* of PCI: 0x0302, 0x10de */
	unsigned long long bus;		/* domain, bus, device and function as one number */
	bool computes;			/* an OS device says so: gpu_card_add */
	int driver;			/* its driver's number: gpu_card_add; -1, at first: no OS device has it */
	int number;			/* set by gpu_cards_number; -1: not known */
};

/* Reads one OS device of the function: whether hwloc's type is GPU (or, of hwloc 3, also) CoProc, and its name. */
void gpu_card_add(struct gpu_card *c, bool gpu, bool coproc, const char *name);

/*
 * Whether it is a GPU: it computes, or has the PCI class of a compute device (no driver that hwloc queries), or is a
 * display of NVIDIA, which makes none for management controllers.
 */
bool gpu_card_is_gpu(const struct gpu_card *c);

/*
 * Numbers some GPUs: those of the maker with the most, by the numbers of its driver (nvml2, rsmi2, ze2) or, where there
 * is none of any of these GPUs, along the PCI bus. All others, and all where two makers have as many, are not known:
 * each driver counts from 0.
 */
void gpu_cards_number(struct gpu_card *cards, size_t n);
