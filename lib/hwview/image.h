/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_HWVIEW_IMAGE_H
#define TOPIARY_HWVIEW_IMAGE_H

#include <hwloc.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/*
 * The two forms of one topology, beside each other in a folder: XML, and an image in shared memory (hwloc/shmem.h),
 * which is a header of ours and then what hwloc maps where it was written. The XML has all that is known; the image
 * what hwloc loads by default and the I/O devices that matter (HWLOC_TYPE_FILTER_KEEP_IMPORTANT).
 *
 * The XML stays as hwloc writes it. hwloc 2.9 would find nodesets again that are left out, and load a tenth faster;
 * hwloc 2.14 refuses a file in which an object lacks one of its four sets, and 2.9 crashes where it is complete_cpuset.
 */
#define IMAGE_XML "topology.xml"
#define IMAGE_SHM "topology.shm"

/*
 * XML as an image has it. here: it is this very system's, so that hwloc's binding is real. NULL on error;
 * hwloc_topology_destroy.
 */
hwloc_topology_t image_load(const char *xml, size_t len, bool here, struct err *e);

/*
 * Write the image into fd, an empty file open for both. One process can adopt images of different slots, any numbers,
 * side by side. Where such addresses are not to be had the file holds a header alone, which says so. 0, or -1: the file
 * cannot be written, or memory is short. Then image_from_fd adopts what is there; image_is_empty: a header alone.
 */
int image_write(int fd, hwloc_topology_t topology, unsigned slot, struct err *e);
int image_from_fd(int fd, hwloc_topology_t *out, struct err *e);
bool image_is_empty(int fd);

/*
 * The topology of a step's folder: adopted in microseconds, or, where that cannot be, loaded from its XML. An adopted
 * one is read-only; hwloc_topology_dup gives one that may be changed. Both are freed with hwloc_topology_destroy. A
 * file must be regular, root's or the caller's, and for no one else to write. A process adopts an image once at a time.
 * 0, or -1.
 */
int image_adopt(const char *folder, hwloc_topology_t *out, struct err *e);

/*
 * In a process of our own that has no other thread: from here on its environment is empty but for what keeps hwloc from
 * loading plugins and libxml2. image_adopt_alone is image_adopt so, with the environment as it was afterwards.
 */
void image_quiet(void);
int image_adopt_alone(const char *folder, hwloc_topology_t *out, struct err *e);

/* Each way by itself, of a file. An image that is short, another hwloc's or another Topiary's is an error. 0, or -1. */
int image_from_shm(const char *file, hwloc_topology_t *out, struct err *e);
int image_from_xml(const char *file, hwloc_topology_t *out, struct err *e);

/*
 * Does the environment of a process choose another topology than HWLOC_XMLFILE would? hwloc looks at these first
 * (hwloc_topology_load). has(env, name) tells of one variable.
 */
bool image_overruled(bool (*has)(void *env, const char *name), void *env);

#endif
