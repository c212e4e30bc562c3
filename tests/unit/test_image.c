/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <hwloc/memattrs.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "app/topiary.h"
#include "base/file.h"
#include "topology.h"
#include "table.h"
#include "hwview/image.h"
#include "hwview/machine.h"

#define MACHINE "Package:2 [NUMANode(memory=1GB)] L3Cache:2 Core:4 PU:2"
#define SMALLER "Package:1 [NUMANode(memory=1GB)] Core:3 PU:1"

static char *folder, *other;

static const char *in(const char *where, const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned turn;
	char *path = paths[turn++ % 4];

	snprintf(path, PATH_MAX, "%s/%s", where, name);
	return path;
}

static int create(const char *path)
{
	int fd;

	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	return fd;
}

/* A step's folder, as slurmstepd's plugin leaves it. */
static void fill(const char *where, const char *description, unsigned slot)
{
	int fd = create(in(where, IMAGE_XML));
	FREED(buf_free) struct buf xml = {0};
	OWNED(hwloc_topology_destroy) hwloc_topology_t t;

	export_synthetic(description, &xml);
	assert_int_equal(file_write(fd, xml.data, xml.len), 0);
	close(fd);
	fd = create(in(where, IMAGE_SHM));
	assert_ok(!(t = image_load(xml.data, xml.len, true, &err)) || image_write(fd, t, slot, &err));
	close(fd);
}

static int pus(hwloc_topology_t t)
{
	return hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PU);
}

/* The end has what hwloc could do where it was loaded. */
static void drop_support(struct buf *xml)
{
	char *at = strstr(xml->data, "  <support ");

	if (at)
		*at = '\0';
}

TEST(is_what_its_xml_is)
{
	FREED(buf_free) struct buf image = {0}, parsed = {0};
	OWNED(hwloc_topology_destroy) hwloc_topology_t a, b;

	fill(folder, MACHINE, 1);
	assert_ok(image_from_shm(in(folder, IMAGE_SHM), &a, &err) || image_from_xml(in(folder, IMAGE_XML), &b, &err));
	assert_int_equal(machine_export(a, &image, NULL), 0);
	assert_int_equal(machine_export(b, &parsed, NULL), 0);
	drop_support(&image);
	drop_support(&parsed);
	assert_string_equal(image.data, parsed.data);
	assert_true(hwloc_topology_is_thissystem(a));
	assert_false(hwloc_topology_is_thissystem(b));
}

/* hwloc computes these on first use, in memory that cannot be written. */
TEST(derived_values_are_available)
{
	static const hwloc_memattr_id_t attributes[] = {
		HWLOC_MEMATTR_ID_CAPACITY, HWLOC_MEMATTR_ID_LOCALITY, HWLOC_MEMATTR_ID_BANDWIDTH,
		HWLOC_MEMATTR_ID_LATENCY,
	};
	struct hwloc_location from = { .type = HWLOC_LOCATION_TYPE_CPUSET };
	hwloc_uint64_t value;
	OWNED(hwloc_topology_destroy) hwloc_topology_t t;
	hwloc_obj_t best;
	unsigned n = 0;

	fill(folder, MACHINE, 1);
	assert_int_equal(image_from_shm(in(folder, IMAGE_SHM), &t, NULL), 0);
	from.location.cpuset = hwloc_get_root_obj(t)->cpuset;
	for (size_t i = 0; i < ROWS(attributes); i++)
		hwloc_memattr_get_best_target(t, attributes[i], &from, 0, &best, &value);
	hwloc_distances_get(t, &n, NULL, 0, 0);
	hwloc_cpukinds_get_nr(t, 0);
	hwloc_topology_check(t);
}

TEST(is_adopted_once_at_a_time)
{
	hwloc_topology_t a;
	OWNED(hwloc_topology_destroy) hwloc_topology_t b, c;
	struct err e = {""};

	fill(folder, MACHINE, 1);
	fill(other, SMALLER, 2);
	assert_int_equal(image_from_shm(in(folder, IMAGE_SHM), &a, NULL), 0);
	assert_int_equal(image_from_shm(in(folder, IMAGE_SHM), &b, &e), -1);
	assert_non_null(strstr(e.text, "in use"));
	assert_int_equal(image_from_shm(in(other, IMAGE_SHM), &b, NULL), 0);
	assert_int_equal(pus(b), 3);
	/* Then the XML is used. */
	assert_int_equal(image_adopt(folder, &c, NULL), 0);
	assert_int_equal(pus(c), 32);
	hwloc_topology_destroy(a);
	assert_int_equal(image_from_shm(in(folder, IMAGE_SHM), &a, NULL), 0);
	hwloc_topology_destroy(a);
}

static void refused(const char *what, const char *why)
{
	OWNED(hwloc_topology_destroy) hwloc_topology_t t = NULL;
	struct err e = {""};

	if (image_from_shm(in(folder, IMAGE_SHM), &t, &e) != -1)
		fail_msg("%s: accepted", what);
	if (t || !strstr(e.text, why) || !strstr(e.text, folder))
		fail_msg("%s: %s", what, e.text);
	if (image_adopt(folder, &t, &e))
		fail_msg("%s: %s", what, e.text);
	assert_int_equal(pus(t), 32);
}

/* Truncated anywhere: access to a mapping beyond the end of its file is a SIGBUS. */
TEST(is_refused_when_cut_short)
{
	struct stat st;

	fill(folder, MACHINE, 1);
	assert_int_equal(stat(in(folder, IMAGE_SHM), &st), 0);
	for (off_t size = st.st_size - 1; size >= 0; size = size > 4096 ? size - 4096 : size - 7) {
		char what[64];

		snprintf(what, sizeof(what), "%ld bytes", (long) size);
		assert_int_equal(truncate(in(folder, IMAGE_SHM), size), 0);
		refused(what, size >= 16 ? "" : "not a topology image");
	}
}

static void overwrite(off_t at, const void *bytes, size_t len)
{
	int fd = open(in(folder, IMAGE_SHM), O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0 && pwrite(fd, bytes, len, at) == (ssize_t) len);
	close(fd);
}

TEST(is_refused_when_damaged)
{
	static const struct {
		const char *what, *why;
		off_t at;		/* 0: magic; 16: address; 24: length; 65536: hwloc's own header */
		uint64_t value;
	} rows[] = {
		{ "another magic", "not a topology image", 8, 0x6567616d69202032 },
		{ "no image", "contains no image", 24, 0 },
		{ "more than there is", "truncated", 24, 1 << 27 },
		{ "more than can be", "truncated", 24, UINT64_MAX },
		{ "elsewhere", "hwloc", 16, 0x210000000000 },
		{ "nowhere", "hwloc", 16, UINT64_MAX },
		{ "pointers of 32 bits", "not a topology image", 32, UINT64_C(4) << 32 | 0x20900 },
		{ "another hwloc's header", "hwloc", 65536, 0x1800000007 },
		/* The first field of its topology is its ABI. */
		{ "another hwloc's topology", "hwloc", 65536 + 24, 0x7f0000 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		fill(folder, MACHINE, 1);
		overwrite(rows[i].at, &rows[i].value, 8);
		refused(rows[i].what, rows[i].why);
	}
}

TEST(checks_type_owner_and_mode)
{
	static const struct {
		const char *what, *why, *make;
	} rows[] = {
		{ "a link", "symbolic", "mv " IMAGE_SHM " real && ln -s real " IMAGE_SHM },
		{ "a fifo", "regular", "rm " IMAGE_SHM " && mkfifo " IMAGE_SHM },
		{ "a folder", "regular", "rm " IMAGE_SHM " && mkdir " IMAGE_SHM },
		{ "the group's too", "nobody else", "chmod 664 " IMAGE_SHM },
		{ "none", "No such file", "rm " IMAGE_SHM },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		fill(folder, MACHINE, 1);
		shell_in(folder, rows[i].make);
		refused(rows[i].what, rows[i].why);
		remove(in(folder, IMAGE_SHM));
	}
}

/* A file of another user, who might change it while it is mapped. */
TEST(refuses_files_of_other_users)
{
	int status;
	pid_t pid;

	if (geteuid())
		skip();
	fill(folder, MACHINE, 1);
	assert_int_equal(chown(in(folder, IMAGE_SHM), 1, 1) | chmod(folder, 0755), 0);
	refused("a stranger's", "owned by root");
	if ((pid = fork()) == 0) {
		hwloc_topology_t t;

		_exit(setuid(1) || image_from_shm(in(folder, IMAGE_SHM), &t, NULL));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A full file system is an error, not a signal. */
TEST(reports_a_full_file_system)
{
	struct rlimit old, little = { 65536 + 4096, RLIM_INFINITY };
	FREED(buf_free) struct buf xml = {0};
	struct err e = {""};
	OWNED(hwloc_topology_destroy) hwloc_topology_t t;
	int fd, rc;

	export_synthetic(MACHINE, &xml);
	assert_non_null(t = image_load(xml.data, xml.len, true, NULL));
	fd = create(in(folder, IMAGE_SHM));
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	little.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
	rc = image_write(fd, t, 1, &e);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(rc, -1);
	assert_string_equal(e.text, IMAGE_SHM ": File too large");
	close(fd);
}

/* hwloc caches its environment: each row has a process of its own. */
struct row {
	const char *what, *xml, *name, *value;	/* HWLOC_XMLFILE, and one more variable */
	int source, pus;			/* -1: of this machine */
	const char *reason;
	const char *make;	/* of the image */
};

static int ask(const struct row *r)
{
	hwloc_topology_t t = NULL;
	int source;

	image_quiet();
	if (r->xml)
		setenv("HWLOC_XMLFILE", r->xml, 1);
	if (r->name)
		setenv(r->name, r->value, 1);
	source = topiary_topology_load(&t, 0);
	if (source == r->source && (r->pus < 0 || pus(t) == r->pus) && strstr(topiary_topology_reason(), r->reason))
		return 0;
	print_error("%s: source %d, %d PUs, '%s'\n", r->what, source, t ? pus(t) : -1, topiary_topology_reason());
	return 1;
}

TEST(uses_the_fastest_method)
{
	char step[PATH_MAX], mine[PATH_MAX];
	const struct row rows[] = {
		{ "a step", step, NULL, NULL, TOPIARY_SHMEM, 32, "", NULL },
		{ "no image", step, NULL, NULL, TOPIARY_XML, 32, "No such file", "rm " IMAGE_SHM },
		{ "an image of another's", step, NULL, NULL, TOPIARY_XML, 32, "nobody else",
		  "chmod 664 " IMAGE_SHM },
		{ "one's own XML", mine, NULL, NULL, TOPIARY_XML, 3, "not a step topology", NULL },
		{ "no file", "/nonexistent/topology.xml", NULL, NULL, TOPIARY_DISCOVERY, -1, "No such file", NULL },
		{ "no job", NULL, NULL, NULL, TOPIARY_DISCOVERY, -1, "no step topology", NULL },
		{ "a wish beside", step, "HWLOC_SYNTHETIC", "Core:5 PU:1", TOPIARY_DISCOVERY, 5, "no step topology",
		  NULL },
	};

	strcpy(step, in(folder, IMAGE_XML));
	strcpy(mine, in(other, "mine.xml"));
	for (size_t i = 0; i < ROWS(rows); i++) {
		int status;
		pid_t pid;

		fill(folder, MACHINE, 1);
		fill(other, SMALLER, 2);
		rename(in(other, IMAGE_XML), mine);
		if (rows[i].make)
			shell_in(folder, rows[i].make);
		if ((pid = fork()) == 0)
			_exit(ask(&rows[i]));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (status)
			fail_msg("%s: status %x", rows[i].what, status);
	}
}

TEST(duplicates_may_be_modified)
{
	hwloc_topology_t t;
	OWNED(hwloc_bitmap_free) hwloc_bitmap_t one = hwloc_bitmap_alloc();

	fill(folder, MACHINE, 1);
	hwloc_bitmap_only(one, 3);
	setenv("HWLOC_XMLFILE", in(folder, IMAGE_XML), 1);
	assert_int_equal(topiary_topology_load(&t, 0), TOPIARY_SHMEM);
	assert_int_equal(hwloc_topology_restrict(t, one, 0), -1);
	assert_int_equal(errno, EPERM);
	hwloc_topology_destroy(t);
	assert_int_equal(topiary_topology_load(&t, TOPIARY_WRITABLE), TOPIARY_SHMEM);
	assert_int_equal(hwloc_topology_restrict(t, one, 0), 0);
	assert_int_equal(pus(t), 1);
	hwloc_topology_destroy(t);
	t = NULL;
	assert_int_equal(topiary_topology_load(&t, 2), -1);
	assert_int_equal(errno, EINVAL);
	assert_null(t);
	unsetenv("HWLOC_XMLFILE");
}

FIXTURE(make_folders)
{
	folder = folder_new();
	other = folder_new();
	return 0;
}

TESTS_MAIN(make_folders, NULL)
