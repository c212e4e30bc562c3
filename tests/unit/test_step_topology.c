/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../../spank_plugin/step/run_dir.h"
#include "../../spank_plugin/step/topology.h"
#include "base/file.h"
#include "topology.h"
#include "table.h"
#include "hwview/image.h"
#include "hwview/machine.h"
#include "hwxml/canon.h"

#define FIRST "Package:2 [NUMANode] L3Cache:2 Core:4 PU:2"
#define SMALL "Package:2 [NUMANode] Core:2 PU:1"
#define SECOND "Package:4 [NUMANode] Core:4 PU:2"

enum { SETTLED = 3 };		/* seconds: the age at which a file's times tell it from a later one */

static char *run_folder, *export_folder, export_file[80], cache_folder[96];
static int root;

static void write_export(const char *description)
{
	FREED(buf_free) struct buf xml = {0};

	export_synthetic(description, &xml);
	assert_int_equal(file_replace(export_file, xml.data, xml.len, 0644, NULL), 0);
}

/* What a step got. */
struct got {
	int rc, pus;		/* pus: of its image, which is what its XML has */
	ino_t shm, xml;
	bool child;		/* a process was needed */
	struct err e;
};

static long children(void)
{
	struct rusage r;

	assert_int_equal(getrusage(RUSAGE_CHILDREN, &r), 0);
	return r.ru_minflt;
}

static ino_t inode(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ? 0 : st.st_ino;
}

static char name_of_step[32] = "1.0";

static int count_pus(int (*load)(const char *file, hwloc_topology_t *t, struct err *e), const char *name)
{
	char file[160];
	hwloc_topology_t t;
	int n;

	snprintf(file, sizeof(file), "%s/%s/%s", run_folder, name_of_step, name);
	if (load(file, &t, NULL))
		return -1;
	n = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PU);
	hwloc_topology_destroy(t);
	return n;
}

static struct got step(const char *cores)
{
	int dir = run_dir_make(root, name_of_step, NULL);
	long before = children();
	struct got g = { .pus = 0 };
	bool here;

	assert_true(dir >= 0);
	g.rc = topology_write(export_file, cores, root, dir, &here, &g.e);
	g.child = children() != before;
	g.shm = inode(dir, IMAGE_SHM);
	g.xml = inode(dir, IMAGE_XML);
	if (!g.rc) {
		g.pus = count_pus(image_from_shm, IMAGE_SHM);
		assert_int_equal(g.pus, count_pus(image_from_xml, IMAGE_XML));
	}
	close(dir);
	assert_int_equal(run_dir_remove(root, name_of_step), 0);
	return g;
}

static struct got good_step(const char *cores, int pus)
{
	struct got g = step(cores);

	if (g.rc)
		fail_msg("%s: %s", cores ? cores : "all", g.e.text);
	assert_int_equal(g.pus, pus);
	return g;
}

TEST(known_cores_need_no_process)
{
	struct got new, known, other;

	write_export(FIRST);
	sleep(SETTLED);
	new = good_step("0-3", 8);
	known = good_step("0-3", 8);
	assert_true(good_step(NULL, 32).child);
	assert_false(good_step(NULL, 32).child);
	other = good_step("0-2", 6);
	assert_true(new.child);
	assert_false(known.child);
	assert_true(other.child);
	assert_true(known.shm == new.shm && known.xml == new.xml);
	assert_true(other.shm != new.shm && other.xml != new.xml);
}

/* An agent that runs again writes the same export into a new file. */
TEST(same_text_is_the_same_export)
{
	struct got new, again;

	write_export(FIRST);
	sleep(SETTLED);
	new = good_step("4-6", 6);
	write_export(FIRST);
	again = good_step("4-6", 6);
	assert_false(again.child);
	assert_true(again.shm == new.shm);
}

TEST(new_text_is_a_new_export)
{
	struct got first, second;

	write_export(FIRST);
	sleep(SETTLED);
	first = good_step("0-7", 16);
	write_export(SECOND);
	/* It is too young to be known by its times. */
	second = good_step("0-7", 16);
	assert_true(second.child && second.shm != first.shm);
	second = good_step("12-15", 8);
	assert_true(second.child);
}

enum { PROCESSES = 4, STEPS = 180, MOST_IMAGES = 512 };

/* Cores drawn by lot, more lists of them than are kept. */
static int run_steps(unsigned seed)
{
	for (int i = 0; i < STEPS; i++) {
		char cores[64] = "";
		int n = 0;

		for (unsigned core = 0; core < 16; core++)
			if (rand_r(&seed) % 2)
				n += sprintf(cores + strlen(cores), "%s%u", n ? "," : "", core) > 0;
		snprintf(name_of_step, sizeof(name_of_step), "%d.%d", getpid(), i);
		if (n && step(cores).pus != 2 * n)
			return 1;
	}
	return 0;
}

static int count(const char *ending)
{
	char pattern[128];
	glob_t found;
	int n;

	snprintf(pattern, sizeof(pattern), "%s/*%s", cache_folder, ending);
	n = glob(pattern, 0, NULL, &found) ? 0 : (int) found.gl_pathc;
	globfree(&found);
	return n;
}

TEST(concurrent_steps_share_one_folder)
{
	int status, failed = 0;

	write_export(FIRST);
	for (unsigned i = 0; i < PROCESSES; i++)
		if (fork() == 0)
			_exit(run_steps(i + 1));
	for (unsigned i = 0; i < PROCESSES; i++)
		failed |= wait(&status) < 0 || status;
	assert_int_equal(failed, 0);
	assert_in_range(count(".shm"), MOST_IMAGES - PROCESSES, MOST_IMAGES);
	assert_in_range(count(".xml"), MOST_IMAGES - PROCESSES, MOST_IMAGES + PROCESSES);
}

/* A step has its topology without them, too. */
TEST(works_without_the_cache)
{
	static const char *const harm[] = { "echo '<topology' > cache/export", "chmod 777 cache",
					    "rm -r cache && echo '<topology' > cache" };

	write_export(FIRST);
	sleep(SETTLED);
	good_step("0", 2);
	for (size_t i = 0; i < ROWS(harm); i++) {
		shell_in(run_folder, harm[i]);
		assert_true(good_step("0", 2).child);
	}
	unlink(cache_folder);
}

TEST(reports_errors)
{
	static const struct {
		const char *harm, *cores, *why;
	} rows[] = {
		{ "echo '<topology' > export.xml", "0", "hwloc cannot load" },
		{ "chmod 664 export.xml", "0", "root only" }, { "chown 1:1 export.xml", "0", "root only" },
		{ "mv export.xml real && ln -s real export.xml", "0", "symbolic" },
		{ "rm export.xml", "0", "No such file" }, { "true", "16", "16 cores" }, { "true", "", "core list" },
		{ "sed -i 's/version=\"2.0\"/version=\"9.0\"/' export.xml", "0", "XML of hwloc 9, and this is hwloc" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct got g;

		unlink(export_file);
		write_export(FIRST);
		shell_in(export_folder, rows[i].harm);
		g = step(rows[i].cores);
		if (g.rc != -1 || !strstr(g.e.text, rows[i].why) || !strstr(g.e.text, export_file))
			fail_msg("%s: %d: %s", rows[i].why, g.rc, g.e.text);
		assert_true(!g.shm && !g.xml);
	}
}

/*
 * Memory that is short, at any one moment of a step's start: libc's functions are these, for hwloc and libxml2, too.
 * The count goes on in the child. The sanitizers have functions of their own.
 */
#ifdef __SANITIZE_ADDRESS__
TEST(allocation_failures_do_not_change_the_text)
{
	skip();
}
#else
static struct { unsigned count, failing; } *memory;

#define EXPORTED __attribute__((visibility("default")))

extern void *__libc_malloc(size_t size), *__libc_calloc(size_t n, size_t size), *__libc_realloc(void *p, size_t size);

static bool is_short(void)
{
	if (!memory || !memory->failing || ++memory->count != memory->failing)
		return false;
	errno = ENOMEM;
	return true;
}

EXPORTED void *malloc(size_t size)
{
	return is_short() ? NULL : __libc_malloc(size);
}

EXPORTED void *calloc(size_t n, size_t size)
{
	return is_short() ? NULL : __libc_calloc(n, size);
}

EXPORTED void *realloc(void *p, size_t size)
{
	return is_short() ? NULL : __libc_realloc(p, size);
}

static void read_both(struct buf *xml, struct buf *image)
{
	char file[160];
	hwloc_topology_t t;

	snprintf(file, sizeof(file), "%s/%s/" IMAGE_XML, run_folder, name_of_step);
	assert_int_equal(file_read(file, 1 << 24, xml, NULL), 0);
	snprintf(file, sizeof(file), "%s/%s/" IMAGE_SHM, run_folder, name_of_step);
	/* A header alone is another image, too. */
	if (image_from_shm(file, &t, NULL))
		return;
	assert_int_equal(machine_export(t, image, NULL), 0);
	hwloc_topology_destroy(t);
}

/* 0 and what was made, or -1. */
static int step_short_of(unsigned failing, struct buf *xml, struct buf *image, struct err *e)
{
	int dir = (run_dir_remove(root, "cache"), run_dir_make(root, name_of_step, NULL)), rc;
	bool here;

	assert_true(dir >= 0);
	memory->count = 0;
	memory->failing = failing;
	rc = topology_write(export_file, "1-2", root, dir, &here, e);
	memory->failing = 0;
	if (!rc)
		read_both(xml, image);
	close(dir);
	assert_int_equal(run_dir_remove(root, name_of_step), 0);
	return rc;
}

static bool same(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && !memcmp(a->data, b->data, a->len);
}

/* Each kind of object makes the same ones again: a prime meets all of them. */
enum { STRIDE = 11 };

TEST(allocation_failures_do_not_change_the_text)
{
	FREED(buf_free) struct buf xml = {0}, image = {0};
	unsigned all, wrong = 0, failed = 0;

	/* Few objects, as each failure is a step of its own. */
	memory = mmap(NULL, sizeof(*memory), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	/* hwloc asserts; cmocka would go on after that, in the child. */
	signal(SIGABRT, SIG_DFL);
	signal(SIGSEGV, SIG_DFL);
	write_export(SMALL);
	assert_ok(step_short_of(~0U, &xml, &image, &err));
	all = memory->count;
	assert_true(all > 500 && image.len);
	for (unsigned i = 1; i <= all; i += STRIDE) {
		FREED(buf_free) struct buf got_xml = {0}, got_image = {0};

		if (step_short_of(i, &got_xml, &got_image, &err))
			failed++;
		else if (!same(&xml, &got_xml) || !same(&image, &got_image))
			wrong++;
	}
	print_message("%u allocations, one in %d fails: %u times that is told, %u times it makes another text\n", all,
		      STRIDE, failed, wrong);
	assert_int_equal(wrong, 0);
	assert_true(failed);
}
#endif

FIXTURE(make_folders)
{
	snprintf(export_file, sizeof(export_file), "%s/export.xml", export_folder = folder_new());
	snprintf(cache_folder, sizeof(cache_folder), "%s/cache", run_folder = folder_new());
	return (root = run_dir_open(run_folder, NULL)) < 0;
}

int main(void)
{
	if (geteuid()) {
		print_message("step_topology: needs root, whose files these are\n");
		return 0;
	}
	return tests_run(make_folders, NULL);
}
