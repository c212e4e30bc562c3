/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#include "hwview/image.h"

#include <hwloc/shmem.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/file.h"

enum {
	HEADER_BYTES = 65536,		/* hwloc's part begins on a page boundary for any page size */
	MAX_XML = 64 << 20,
	SLOTS = 1 << 16,
};

/*
 * An address range that is unused in a process with 47 bits of addresses: above programs and below the stack and
 * libraries, also outside the shadow memory of sanitizers.
 */
#define FIRST_SLOT UINT64_C(0x200000000000)
#define SLOT_BYTES (UINT64_C(1) << 28)

static const char magic[16] = "topiary image 1";

struct header {
	char magic[sizeof(magic)];
	uint64_t address, length;	/* of hwloc's part; length 0: there is none */
	uint32_t api;			/* hwloc_get_api_version() of the writer */
	uint32_t pointer;		/* size of a pointer */
};

hwloc_topology_t image_load(const char *xml, size_t len, bool here, struct err *e)
{
	hwloc_topology_t t;

	if (!len || len >= INT_MAX || xml[len] != '\0' || hwloc_topology_init(&t))
		return err_null(e, "not topology XML (%zu bytes)", len);
	if (!hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) &&
	    !hwloc_topology_set_flags(t, here ? HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM : 0) &&
	    !hwloc_topology_set_xmlbuffer(t, xml, len + 1) && !hwloc_topology_load(t))
		return t;
	err_set(e, "hwloc cannot load the XML: %s", strerror(errno));
	hwloc_topology_destroy(t);
	return NULL;
}

/*
 * hwloc computes some values in place when they are first requested, which crashes in a read-only mapping. hwloc 2.9
 * leaves memory attributes in that state, so they are computed before.
 */
static int image_settle(int fd, const struct header *h)
{
	void *at = (void *) (uintptr_t) h->address;
	hwloc_topology_t t;
	int rc;

	if (hwloc_shmem_topology_adopt(&t, fd, HEADER_BYTES, at, h->length, 0))
		return -1;
	rc = mprotect(at, h->length, PROT_READ | PROT_WRITE) || hwloc_topology_refresh(t);
	hwloc_topology_destroy(t);
	return rc ? -1 : 0;
}

int image_write(int fd, hwloc_topology_t topology, unsigned slot, struct err *e)
{
	struct header h = { .address = FIRST_SLOT + slot % SLOTS * SLOT_BYTES };
	size_t length;

	memcpy(h.magic, magic, sizeof(magic));
	h.api = hwloc_get_api_version();
	h.pointer = sizeof(void *);
	if (hwloc_shmem_topology_get_length(topology, &length, 0))
		return err_set(e, "%s: hwloc cannot determine the size of the image: %s", IMAGE_SHM, strerror(errno));
	h.length = length;
	/* Allocated before it is mapped: in a mapping, a full file system causes SIGBUS. */
	if ((errno = posix_fallocate(fd, HEADER_BYTES, length)) != 0)
		return err_set(e, "%s: %s", IMAGE_SHM, strerror(errno));
	errno = 0;
	if (length > SLOT_BYTES ||
	    hwloc_shmem_topology_write(topology, fd, HEADER_BYTES, (void *) (uintptr_t) h.address, length, 0) ||
	    image_settle(fd, &h)) {
		if (errno == ENOMEM)
			return err_set(e, "%s: %s", IMAGE_SHM, strerror(errno));
		h.length = 0;
		if (ftruncate(fd, 0))
			return err_set(e, "%s: %s", IMAGE_SHM, strerror(errno));
	}
	if (pwrite(fd, &h, sizeof(h), 0) != sizeof(h))
		return err_set(e, "%s: %s", IMAGE_SHM, strerror(errno));
	return 0;
}

/* A descriptor and the file's size, or -1. */
static int open_trusted(const char *file, off_t *size, struct err *e)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return err_set(e, "%s: %s", file, strerror(errno));
	*size = 0;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && (st.st_uid == 0 || st.st_uid == geteuid()) &&
	    !(st.st_mode & (S_IWGRP | S_IWOTH))) {
		*size = st.st_size;
		return fd;
	}
	close(fd);
	return err_set(e, "%s: must be a regular file, owned by root or the calling user and writable by nobody else",
		       file);
}

static int image_map(int fd, off_t size, hwloc_topology_t *out, struct err *e)
{
	struct header h = { .length = 0 };

	if (pread(fd, &h, sizeof(h), 0) < 0)
		return err_set(e, "%s", strerror(errno));
	if (memcmp(h.magic, magic, sizeof(magic)) || h.pointer != sizeof(void *))
		return err_set(e, "not a topology image in a format that this program reads");
	if (!h.length)
		return err_set(e, "contains no image: its address range was in use in the process that wrote it");
	if (h.address != (uintptr_t) h.address || h.length > SLOT_BYTES || size < HEADER_BYTES ||
	    (uint64_t) size - HEADER_BYTES < h.length)
		return err_set(e, "truncated: %llu bytes", (unsigned long long) size);
	if (!hwloc_shmem_topology_adopt(out, fd, HEADER_BYTES, (void *) (uintptr_t) h.address, h.length, 0))
		return 0;
	if (errno == EBUSY)
		return err_set(e, "its address range is in use in this process");
	return err_set(e, "written by hwloc %x, this is hwloc %x: %s", h.api, hwloc_get_api_version(), strerror(errno));
}

int image_from_fd(int fd, hwloc_topology_t *out, struct err *e)
{
	off_t size = lseek(fd, 0, SEEK_END);

	return size < 0 ? err_set(e, "%s: %s", IMAGE_SHM, strerror(errno)) : image_map(fd, size, out, e);
}

bool image_is_empty(int fd)
{
	struct header h = { .length = 1 };

	return pread(fd, &h, sizeof(h), 0) == sizeof(h) && !h.length;
}

int image_from_shm(const char *file, hwloc_topology_t *out, struct err *e)
{
	off_t size;
	int fd = open_trusted(file, &size, e), rc;

	if (fd < 0)
		return -1;
	rc = image_map(fd, size, out, e);
	close(fd);
	return rc ? err_within(e, "%s", file) : 0;
}

int image_from_xml(const char *file, hwloc_topology_t *out, struct err *e)
{
	struct buf xml = {0};
	off_t size;
	int fd = open_trusted(file, &size, e), rc;
	hwloc_topology_t t = NULL;
	char self[32];

	if (fd < 0)
		return -1;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	rc = file_read(self, MAX_XML, &xml, e);
	close(fd);
	if (!rc && (t = image_load(xml.data, xml.len, false, e)))
		*out = t;
	buf_free(&xml);
	return t ? 0 : err_within(e, "%s", file);
}

int image_adopt(const char *folder, hwloc_topology_t *out, struct err *e)
{
	char file[PATH_MAX];

	snprintf(file, sizeof(file), "%s/%s", folder, IMAGE_SHM);
	if (!image_from_shm(file, out, NULL))
		return 0;
	snprintf(file, sizeof(file), "%s/%s", folder, IMAGE_XML);
	return image_from_xml(file, out, e);
}

/* Not by setenv: another thread may have held its lock when this process was forked. */
void image_quiet(void)
{
	static char *quiet[] = { (char *) "HWLOC_PLUGINS_PATH=", (char *) "HWLOC_LIBXML=0", NULL };

	environ = quiet;
}

int image_adopt_alone(const char *folder, hwloc_topology_t *out, struct err *e)
{
	char **saved = environ;
	int rc;

	image_quiet();
	rc = image_adopt(folder, out, e);
	environ = saved;
	return rc;
}

bool image_overruled(bool (*has)(void *env, const char *name), void *env)
{
	static const char *const names[] = {
		"HWLOC_COMPONENTS", "HWLOC_FSROOT", "HWLOC_CPUID_PATH", "HWLOC_SYNTHETIC",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (has(env, names[i]))
			return true;
	return false;
}
