/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SHAPE_DEVICES_H
#define TOPIARY_SHAPE_DEVICES_H

#include "base/buf.h"
#include "hwxml/extents.h"

/*
 * The devices that can be allocated, each a PCI device, by type and then by core: " + GPU@0-15 GPU@16-31 NIC@0-15"
 * appended to out, nothing when there are none.
 *
 * GPU: a PCI device with an OS device of hwloc's type CoProc (CUDA, OpenCL, Level Zero; other accelerators too), or of
 * type GPU (NVML, RSMI, a DRM render node) unless it is only a display, or with the PCI class of a compute device, if
 * the node has no driver that hwloc queries. The display of a management controller is none.
 *
 * NIC: if the node has a fabric (OS devices of type OpenFabrics), its PCI devices; Ethernet beside it is for
 * management. Otherwise PCI devices of network class with an OS device of type Network whose link is at least a quarter
 * as fast as the fastest. A USB port to the management controller is not of network class.
 *
 * The cores are those of the nearest object around the device that has some. 0, or -1 when memory is short.
 */
int devices_append(const struct tree *t, const struct tree_extent *extents, struct buf *out);

#endif
