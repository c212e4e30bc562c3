/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <hwloc.h>
#include <signal.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "bind/gpu.h"
#include "hwview/image.h"
#include "table.h"

/*
 * Three GPUs of NVIDIA, whose driver gives them device files in another order than the bus, and two of AMD, below a
 * root of their own; this process is in a cgroup that forbids some of the files.
 */
#define GPU(i, vendor) "<object type=\"PCIDev\" gp_index=\"" #i "0\" pci_busid=\"0000:" #i "0:00.0\" pci_type=" \
	"\"0302 [" vendor ":20b0] [10de:144e] a1\" pci_link_speed=\"31.5\"/>\n"
#define MACHINE(gpus) "<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n<object type=\"Machine\" os_index=\"0\" " \
	"cpuset=\"0x1\" complete_cpuset=\"0x1\" allowed_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\" " \
	"allowed_nodeset=\"0x1\" gp_index=\"1\">\n<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x1\" " \
	"complete_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"2\" local_memory=\"1\"/>\n" \
	"<object type=\"Core\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" " \
	"complete_nodeset=\"0x1\" gp_index=\"3\"><object type=\"PU\" os_index=\"0\" cpuset=\"0x1\" " \
	"complete_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"4\"/></object>\n" \
	"<object type=\"Bridge\" gp_index=\"5\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[00-ff]\">\n" gpus \
	"</object>\n</object>\n</topology>\n"
#define CGROUP "/sys/fs/cgroup/devices/test_gpu_own.%d"

static const char nvidia[] = MACHINE(GPU(1, "10de") GPU(2, "10de") GPU(3, "10de"));
static const char amd[] = MACHINE(GPU(6, "1002") GPU(7, "1002"));
static const unsigned minors[] = { 2, 0, 1 };
static char *root, cgroup[64];

static void __attribute__((format(printf, 2, 3))) write_file(const char *path, const char *fmt, ...)
{
	va_list args;
	FILE *f = fopen(path, "w");

	if (!f)
		fail_msg("%s: %s", path, strerror(errno));
	va_start(args, fmt);
	vfprintf(f, fmt, args);
	va_end(args);
	assert_int_equal(fclose(f), 0);
}

FIXTURE(make_files)
{
	char path[256], command[512];

	snprintf(cgroup, sizeof(cgroup), CGROUP, getpid());
	if (mkdir(cgroup, 0755)) {
		print_message("no cgroup of the devices controller of cgroup v1 can be made here\n");
		return 0;
	}
	root = folder_new();
	snprintf(command, sizeof(command), "cd %s && mkdir -p dev/dri sys/bus/pci/devices/0000:60:00.0/drm/renderD128 "
		 "sys/bus/pci/devices/0000:70:00.0/drm/card1 sys/bus/pci/devices/0000:70:00.0/drm/renderD129 && "
		 "for i in 1 2 3; do mkdir -p proc/driver/nvidia/gpus/0000:${i}0:00.0; done", root);
	assert_int_equal(system(command), 0);
	for (unsigned i = 0; i < ROWS(minors); i++) {
		snprintf(path, sizeof(path), "%s/proc/driver/nvidia/gpus/0000:%u0:00.0/information", root, i + 1);
		write_file(path, "Model: \t\t NVIDIA A100\nDevice Minor: \t %u\nGPU Excluded:\t No\n", minors[i]);
		snprintf(path, sizeof(path), "%s/dev/nvidia%u", root, i);
		assert_int_equal(mknod(path, S_IFCHR | 0666, makedev(195, i)), 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/dev/dri/renderD%u", root, 128 + i);
		assert_int_equal(mknod(path, S_IFCHR | 0666, makedev(226, 128 + i)), 0);
	}
	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	write_file(path, "%d", getpid());
	return 0;
}

FIXTURE(remove_files)
{
	if (access(cgroup, F_OK))
		return 0;
	write_file("/sys/fs/cgroup/devices/cgroup.procs", "%d", getpid());
	return rmdir(cgroup);
}

static void permit(const char *which, const char *devices)
{
	char path[128], text[256], *save = NULL;

	snprintf(path, sizeof(path), "%s/devices.%s", cgroup, which);
	snprintf(text, sizeof(text), "%s", devices);
	for (char *one = strtok_r(text, ",", &save); one; one = strtok_r(NULL, ",", &save))
		write_file(path, "c %s rwm", one);
}

#define NV_0 "195:2"
#define NV_1 "195:0"
#define NV_2 "195:1"
#define UNTOLD "cannot tell which of the step's GPUs "

TEST(finds_the_tasks_gpus)
{
	static const struct {
		const char *xml, *denied;
		struct gpu_lists lists;
		const char *own;
	} rows[] = {
		/* All are visible: the numbers are the node's. */
		{ nvidia, "", { "0,1,2", "0,1,2", "0,1,2", "0,1,2" }, "0,1,2" },
		{ nvidia, "", { "1,2", "1,2", "1,2", "1,2" }, "1,2" },
		/* Slurm has bound them without a cgroup. */
		{ nvidia, "", { "0,1,2", "0,1,2", "1", "1" }, "1" },
		/* A cgroup has those of the step, all for each task. */
		{ nvidia, NV_0, { "1,2", "0,1", "1,2", "0,1" }, "1,2" },
		/* Each task's cgroup has its own, SLURM_STEP_GPUS is of no use. */
		{ nvidia, NV_1 "," NV_2, { "0,1,2", "0,1,2", "0", "0" }, "0" },
		{ nvidia, NV_0 "," NV_2, { "0,1,2", "0,1,2", "0", "0" }, "1" },
		{ nvidia, NV_0 "," NV_1, { "0,1,2", "0,1,2", "0", "0" }, "2" },
		{ nvidia, NV_0 "," NV_1, { "1,2", "0,1", "1", "0" }, "2" },
		{ nvidia, NV_1, { "0,1,2", "0,1,2", "0,1", "0,1" }, "0,2" },
		/* Of those that its cgroup has, a task was told some. */
		{ nvidia, NV_0, { "0,1,2", "0,1,2", "0", "1" }, "2" },
		/* Identified by UUID, or by number and bound by UUID; instances. */
		{ nvidia, NV_0, { "0,1", "GPU-a,GPU-b", "1", "GPU-b" }, "1" },
		{ nvidia, "", { "0,1", "MIG-a,MIG-b", "0", "MIG-a" }, "MIG-a" },
		/* Slurm has none. */
		{ nvidia, "", { "", "", "", "" }, "" },
		{ nvidia, "", { "", "0", "", "0" }, "0" },
		{ amd, "226:128", { "0,1", "0,1", "0", "0" }, "1" },
		{ amd, "226:129", { "0,1", "0,1", "0", "0" }, "0" },
		/* Numbers from 0, and of one GPU no device file is known. */
		{ nvidia, "", { "2,3", "0,1", "2", "0" }, UNTOLD "2,3" },
		{ NULL, "", { "1,2", "0,1", "1", "0" }, UNTOLD "1,2" },
		{ NULL, "", { "1,2", "0,1", "1,2", "0,1" }, "1,2" },
	};

	if (access(cgroup, F_OK))
		skip();
	for (size_t i = 0; i < ROWS(rows); i++) {
		hwloc_topology_t t = rows[i].xml ? image_load(rows[i].xml, strlen(rows[i].xml), true, NULL) : NULL;
		char own[256];

		assert_true(t || !rows[i].xml);
		permit("deny", rows[i].denied);
		if (gpu_own(t, root, &rows[i].lists, own, sizeof(own), &err))
			snprintf(own, sizeof(own), "%.*s", (int) strlen(rows[i].own), err.text);
		permit("allow", rows[i].denied);
		assert_string_equal(own, rows[i].own);
		if (t)
			hwloc_topology_destroy(t);
	}
}

TESTS_MAIN(make_files, remove_files)
