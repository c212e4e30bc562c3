/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/gpu.h"

#include <dirent.h>

#include "hwview/machine.h"
#include "shape/gpu_number.h"

void locality_describe(hwloc_topology_t node, hwloc_const_bitmap_t near, hwloc_const_bitmap_t pus,
		       char out[static LOCALITY_SIZE])
{
	hwloc_obj_type_t type = machine_core_type(node);
	unsigned all = 0, some = 0;

	for (hwloc_obj_t core = NULL; near && (core = hwloc_get_next_obj_by_type(node, type, core));)
		if (hwloc_bitmap_intersects(core->cpuset, pus)) {
			all++;
			some += hwloc_bitmap_intersects(core->cpuset, near);
		}
	if (some && some < all)
		snprintf(out, LOCALITY_SIZE, " near %u of %u cores", some, all);
	else
		snprintf(out, LOCALITY_SIZE, "%s", !near ? "" : some ? " near" : " far");
}

#define MIG "MIG-"

enum { MAX_GPUS = GPU_MATCH_GPUS };

struct gpu_list {
	char text[GPU_LIST_SIZE];
	char *id[MAX_GPUS];
	unsigned n;
};

static void list_read(struct gpu_list *l, const char *text)
{
	char *save = NULL;

	l->n = 0;
	snprintf(l->text, sizeof(l->text), "%s", text ? text : "");
	for (char *id = strtok_r(l->text, ",", &save); id && l->n < MAX_GPUS; id = strtok_r(NULL, ",", &save))
		l->id[l->n++] = id;
}

static bool is_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 6;
}

static bool is_mig(const char *id)
{
	return !strncmp(id, MIG, strlen(MIG));
}

/* "GPU-2b4a...", and "MIG-GPU-2b4a.../3/0" as drivers before 470 name an instance of it. */
static bool has_uuid(hwloc_obj_t o, const char *id)
{
	static const char *const infos[] = { "NVIDIAUUID", "AMDUUID" };
	const char *uuid = is_mig(id) ? id + strlen(MIG) : id;
	size_t n = strcspn(uuid, "/");

	for (size_t i = 0; n && i < sizeof(infos) / sizeof(*infos); i++) {
		const char *has = hwloc_obj_get_info_by_name(o, infos[i]);

		if (has && strlen(has) == n && !strncmp(has, uuid, n))
			return true;
	}
	return false;
}

/* The node's GPUs. The caller frees both arrays. */
struct node_gpus {
	hwloc_obj_t *function;
	struct gpu_card *card;
	size_t n;
};

#if HWLOC_API_VERSION >= 0x00030000
#define OSDEV_IS(o, what) ((o)->attr->osdev.types & (what))
#else
#define OSDEV_IS(o, what) ((o)->attr->osdev.type == (what))
#endif

static void os_devices_read(hwloc_obj_t o, struct gpu_card *c)
{
	for (hwloc_obj_t d = o->io_first_child; d; d = d->next_sibling) {
		if (d->type == HWLOC_OBJ_OS_DEVICE)
			gpu_card_add(c, OSDEV_IS(d, HWLOC_OBJ_OSDEV_GPU), OSDEV_IS(d, HWLOC_OBJ_OSDEV_COPROC),
				     d->name);
		os_devices_read(d, c);
	}
}

static void node_gpus_find(hwloc_topology_t node, struct node_gpus *out)
{
	int all = hwloc_get_nbobjs_by_type(node, HWLOC_OBJ_PCI_DEVICE);

	*out = (struct node_gpus){ calloc(all + 1, sizeof(*out->function)), calloc(all + 1, sizeof(*out->card)), 0 };
	for (hwloc_obj_t o = NULL; out->function && out->card && (o = hwloc_get_next_pcidev(node, o));) {
		const struct hwloc_pcidev_attr_s *p = &o->attr->pcidev;
		struct gpu_card c = { .class = p->class_id, .vendor = p->vendor_id, .driver = -1,
				      .bus = (unsigned long long) p->domain << 24 | p->bus << 16 | p->dev << 8 |
					     p->func };

		os_devices_read(o, &c);
		if (!gpu_card_is_gpu(&c))
			continue;
		out->function[out->n] = o;
		out->card[out->n++] = c;
	}
	gpu_cards_number(out->card, out->n);
}

static void node_gpus_free(struct node_gpus *g)
{
	free(g->function);
	free(g->card);
}

const char *const gpu_variables[] = {
	"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "GPU_DEVICE_ORDINAL", NULL,
};

int gpu_all(hwloc_topology_t node, char *out, size_t size)
{
	struct node_gpus g;
	size_t at = 0;
	int last = -1;

	*out = '\0';
	node_gpus_find(node, &g);
	for (size_t round = 0; round < g.n && at < size; round++) {
		int next = INT_MAX;

		for (size_t i = 0; i < g.n; i++)
			next = g.card[i].number > last && g.card[i].number < next ? g.card[i].number : next;
		if (next == INT_MAX)
			break;
		at += snprintf(out + at, size - at, "%s%d", at ? "," : "", next);
		last = next;
	}
	node_gpus_free(&g);
	return at < size ? 0 : -1;
}

/* The PCI function, or the OS device that has the UUID; NULL: it is not in the topology, or its number not known. */
static hwloc_obj_t find_gpu(hwloc_topology_t node, const char *id)
{
	hwloc_obj_t o = NULL;
	struct node_gpus g;

	if (!node)
		return NULL;
	if (!is_number(id)) {
		while ((o = hwloc_get_next_osdev(node, o)) && !has_uuid(o, id))
			;
		return o;
	}
	node_gpus_find(node, &g);
	for (size_t i = 0; i < g.n && !o; i++)
		o = g.card[i].number == atoi(id) ? g.function[i] : NULL;
	node_gpus_free(&g);
	return o;
}

/* The PUs local to a GPU; NULL: not known. */
static hwloc_const_bitmap_t local_pus(hwloc_topology_t node, const char *id)
{
	hwloc_obj_t o = find_gpu(node, id);

	if (!o && node && is_mig(id)) {
		/* The UUID of a MIG instance does not say whose it is: it is local to what all GPUs are local to. */
		hwloc_const_bitmap_t common = NULL;
		struct node_gpus g;
		bool alike = true;

		node_gpus_find(node, &g);
		for (size_t i = 0; i < g.n; i++) {
			hwloc_const_bitmap_t pus = hwloc_get_non_io_ancestor_obj(node, g.function[i])->cpuset;

			alike &= !common || hwloc_bitmap_isequal(common, pus);
			common = pus;
		}
		node_gpus_free(&g);
		return alike ? common : NULL;
	}
	return o ? hwloc_get_non_io_ancestor_obj(node, o)->cpuset : NULL;
}

hwloc_obj_t gpu_function(hwloc_topology_t node, const char *list, unsigned i)
{
	struct gpu_list l;
	hwloc_obj_t o;

	list_read(&l, list);
	o = i < l.n ? find_gpu(node, l.id[i]) : NULL;
	while (o && o->type != HWLOC_OBJ_PCI_DEVICE)
		o = o->parent;
	return o;
}

unsigned gpu_count(const char *list)
{
	struct gpu_list l;

	list_read(&l, list);
	return l.n;
}

int gpu_subset(const char *list, uint64_t which, char *out, size_t size)
{
	struct gpu_list l;
	size_t n = 0;

	list_read(&l, list);
	*out = '\0';
	for (unsigned i = 0; i < l.n && n < size; i++)
		if (which >> i & 1)
			n += snprintf(out + n, size - n, "%s%s", n ? "," : "", l.id[i]);
	return n < size ? 0 : -1;
}

uint64_t gpu_which(const char *list, const char *all)
{
	struct gpu_list mine, step;
	uint64_t which = 0;

	list_read(&mine, list);
	list_read(&step, all);
	for (unsigned i = 0; i < mine.n; i++) {
		unsigned at = 0;

		while (at < step.n && strcmp(step.id[at], mine.id[i]))
			at++;
		if (at == step.n)
			return 0;
		which |= UINT64_C(1) << at;
	}
	return which;
}

int gpu_localities(hwloc_topology_t node, const char *list, hwloc_bitmap_t *near, struct err *e)
{
	struct gpu_list l;

	list_read(&l, list);
	for (unsigned i = 0; i < l.n; i++) {
		hwloc_const_bitmap_t pus = local_pus(node, l.id[i]);

		if (!pus)
			return err_set(e, is_mig(l.id[i]) ? "the node's topology does not say where %.40s is" :
				       is_number(l.id[i]) ?
				       "the node's topology does not say which GPU is number %.40s" :
				       "GPU %.40s is not in the node's topology", l.id[i]);
		if (hwloc_bitmap_copy(near[i], pus))
			return err_set(e, "out of memory");
	}
	return 0;
}

void gpu_describe(hwloc_topology_t node, const char *list, hwloc_const_bitmap_t cpus, char *out, size_t size)
{
	char where[LOCALITY_SIZE] = "";
	struct gpu_list l;
	size_t n = 0;

	list_read(&l, list);
	*out = '\0';
	for (unsigned i = 0; i < l.n && n < size; i++) {
		if (node)
			locality_describe(node, local_pus(node, l.id[i]), cpus, where);
		n += snprintf(out + n, size - n, "%s%.40s%s", i ? "," : "", l.id[i], where);
	}
}

enum access { UNKNOWN, ALLOWED, DENIED };

/*
 * Opening the device of an idle GPU may start it, which takes seconds; access(2) asks the devices cgroup as open(2)
 * does (devcgroup_inode_permission in Linux's fs/namei.c). EACCES is the file's mode, and says nothing of the cgroup.
 */
static enum access file_access(const char *path)
{
	if (!access(path, R_OK | W_OK))
		return ALLOWED;
	return errno == EPERM ? DENIED : UNKNOWN;
}

/* The device files of the kernel's Direct Rendering Manager: card0, renderD128. One that is denied decides. */
static enum access drm_access(const char *root, const char *address)
{
	enum access found = UNKNOWN;
	char path[PATH_MAX];
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/drm", root, address);
	dir = opendir(path);
	while (dir && found != DENIED && (d = readdir(dir))) {
		enum access file;

		snprintf(path, sizeof(path), "%s/dev/dri/%s", root, d->d_name);
		file = *d->d_name == '.' ? UNKNOWN : file_access(path);
		found = file == UNKNOWN ? found : file;
	}
	if (dir)
		closedir(dir);
	return found;
}

static enum access gpu_access(const char *root, hwloc_obj_t function)
{
	const struct hwloc_pcidev_attr_s *p;
	enum access nvidia, drm;
	char address[32], path[PATH_MAX], line[256];
	int minor = -1;
	FILE *f;

	if (!function)
		return UNKNOWN;
	p = &function->attr->pcidev;
	snprintf(address, sizeof(address), "%04x:%02x:%02x.%x", p->domain, p->bus, p->dev, p->func);
	/* NVIDIA's driver says the number of /dev/nvidiaN, which need not be in the order of the bus. */
	snprintf(path, sizeof(path), "%s/proc/driver/nvidia/gpus/%s/information", root, address);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f) && sscanf(line, "Device Minor: %d", &minor) != 1)
		;
	if (f)
		fclose(f);
	snprintf(path, sizeof(path), "%s/dev/nvidia%d", root, minor);
	nvidia = minor < 0 ? UNKNOWN : file_access(path);
	drm = drm_access(root, address);
	return nvidia > drm ? nvidia : drm;
}

/* Bits by the numbers of a list that are below n. 0: one is not, or is no number. */
static uint64_t by_index(const char *list, unsigned n)
{
	uint64_t which = 0;
	unsigned i;
	int used;

	for (; sscanf(list, "%5u%n", &i, &used) == 1 && i < n && (!list[used] || list[used] == ',');
	     list += used + !!list[used]) {
		which |= UINT64_C(1) << i;
		if (!list[used])
			return which;
	}
	return 0;
}

int gpu_own(hwloc_topology_t node, const char *root, const struct gpu_lists *l, char *out, size_t size, struct err *e)
{
	unsigned n = gpu_count(l->step);
	uint64_t denied = 0, unknown = 0, which;
	char allowed[GPU_LIST_SIZE];

	/* Of MIG instances Slurm's numbers are those of instances. */
	if (!*l->task || is_mig(l->visible)) {
		snprintf(out, size, "%s", l->visible);
		return 0;
	}
	for (unsigned i = 0; node && i < n; i++) {
		enum access found = gpu_access(root, gpu_function(node, l->step, i));

		denied |= (uint64_t) (found == DENIED) << i;
		unknown |= (uint64_t) (found == UNKNOWN) << i;
	}
	which = by_index(l->visible, n);
	if (!which || (!denied && !strcmp(l->step, l->step_visible))) {
		snprintf(out, size, "%s", l->task);
		return 0;
	}
	if (!denied && (!node || unknown) && strcmp(l->visible, l->step_visible))
		return err_set(e, "cannot tell which of the step's GPUs %.40s Slurm gave to this task: their device "
			       "files are not known", l->step);
	gpu_subset(l->step, ~denied, allowed, sizeof(allowed));
	which = by_index(l->visible, gpu_count(allowed));
	return gpu_subset(allowed, which ? which : UINT64_MAX, out, size) ? err_set(e, "too many GPUs") : 0;
}
