/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <hwloc.h>

#include "base/err.h"

/*
 * The two forms of one topology in a folder: XML, and an image in shared memory (hwloc/shmem.h), which consists of a
 * header and hwloc's part, which is mapped at the address where it was written. The XML is complete; the image has what
 * hwloc loads by default and the important I/O devices (HWLOC_TYPE_FILTER_KEEP_IMPORTANT).
 *
 * The XML is as hwloc writes it. Without redundant nodesets, hwloc 2.9 would load it a tenth faster; but hwloc 2.14
 * refuses a file in which an object lacks one of its four sets, and 2.9 crashes if that is complete_cpuset.
 */
#define IMAGE_XML "topology.xml"
#define IMAGE_SHM "topology.shm"

/*
 * Loads XML with the filters of an image. here: it is this system's, so that hwloc can bind. NULL on error; free with
 * hwloc_topology_destroy.
 */
hwloc_topology_t image_load(const char *xml, size_t len, bool here, struct err *e);

/*
 * Writes the image into fd, an empty file open for reading and writing. One process can adopt images of different slots
 * (any numbers) at the same time. If no such address range is available the file has only a header, which states that.
 * 0, or -1: the file cannot be written, or memory is short. image_from_fd adopts a written image; image_is_empty: only
 * a header.
 */
int image_write(int fd, hwloc_topology_t topology, unsigned slot, struct err *e);
int image_from_fd(int fd, hwloc_topology_t *out, struct err *e);
bool image_is_empty(int fd);

/*
 * The topology of a step's folder: adopted in microseconds or, if that is not possible, loaded from its XML. An adopted
 * one is read-only; hwloc_topology_dup returns a copy that may be modified. Both are freed with hwloc_topology_destroy.
 * The file must be regular, owned by root or the caller, and writable by no one else. A process can adopt an image only
 * once at a time. 0, or -1.
 */
int image_adopt(const char *folder, hwloc_topology_t *out, struct err *e);

/*
 * For a process of our own without other threads: empties its environment except for settings that keep hwloc from
 * loading plugins and libxml2. image_adopt_alone is image_adopt in such an environment, which is restored afterwards.
 */
void image_quiet(void);
int image_adopt_alone(const char *folder, hwloc_topology_t *out, struct err *e);

/*
 * Each method separately, for a file. A truncated image and one of another version of hwloc or Topiary are errors. 0,
 * or -1.
 */
int image_from_shm(const char *file, hwloc_topology_t *out, struct err *e);
int image_from_xml(const char *file, hwloc_topology_t *out, struct err *e);

/*
 * Whether the environment of a process selects another topology than HWLOC_XMLFILE would: hwloc reads these variables
 * first (hwloc_topology_load). has(env, name): whether a variable is set.
 */
bool image_overruled(bool (*has)(void *env, const char *name), void *env);
