/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/vars.h"

#include "base/buf.h"
#include "base/file.h"

const char *const vars_intel_pin[] = {
	"I_MPI_PIN", "I_MPI_PIN_DOMAIN", "I_MPI_PIN_PROCESSOR_LIST", "I_MPI_PIN_PROCESSOR_EXCLUDE_LIST",
	"I_MPI_PIN_CELL", "I_MPI_PIN_ORDER", "I_MPI_PIN_RESPECT_CPUSET", NULL,
};

struct omp_places {
	hwloc_bitmap_t *place;
	unsigned n;
};

static void places_free(struct omp_places *p)
{
	for (unsigned i = 0; i < p->n; i++)
		hwloc_bitmap_free(p->place[i]);
	free(p->place);
}

/* The object whose PUs are a place: the PU's core, or the PU itself where it has none. */
static hwloc_obj_t place_object(hwloc_topology_t t, hwloc_obj_t pu, bool cores)
{
	hwloc_obj_t core = cores ? hwloc_get_ancestor_obj_by_type(t, HWLOC_OBJ_CORE, pu) : NULL;

	return core ? core : pu;
}

static int places_find(hwloc_topology_t t, hwloc_const_bitmap_t task, bool cores, struct omp_places *p, struct err *e)
{
	hwloc_obj_t pu = NULL, last = NULL;

	*p = (struct omp_places){ .place = calloc(hwloc_bitmap_weight(task), sizeof(*p->place)) };
	while (p->place && (pu = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_PU, pu))) {
		if (!hwloc_bitmap_isset(task, pu->os_index))
			continue;
		if (place_object(t, pu, cores) != last && !(p->place[p->n++] = hwloc_bitmap_alloc()))
			break;
		last = place_object(t, pu, cores);
		hwloc_bitmap_set(p->place[p->n - 1], pu->os_index);
	}
	if (p->place && !pu && p->n)
		return 0;
	places_free(p);
	return err_set(e, "--topo-omp is not applied: memory is short, or the task has no CPU of the topology");
}

static void append_places(struct buf *b, const struct omp_places *p)
{
	for (unsigned i = 0; i < p->n; i++) {
		const char *before = i ? ",{" : "{";
		unsigned cpu;

		hwloc_bitmap_foreach_begin(cpu, p->place[i])
			buf_printf(b, "%s%u", before, cpu);
			before = ",";
		hwloc_bitmap_foreach_end();
		buf_puts(b, "}");
	}
}

static void append_proclist(struct buf *b, const struct omp_places *p)
{
	buf_puts(b, "granularity=fine,proclist=[");
	append_places(b, p);
	buf_puts(b, "],explicit");
}

/* One CPU for each place: this variable cannot express larger ones. */
static void append_list(struct buf *b, const struct omp_places *p)
{
	for (unsigned i = 0; i < p->n; i++)
		buf_printf(b, "%s%d", i ? " " : "", hwloc_bitmap_first(p->place[i]));
}

static const struct omp_format {
	const char *name;
	void (*append)(struct buf *b, const struct omp_places *p);
	const char *bind;	/* OMP_PROC_BIND, or NULL */
} formats[] = {
	[OMP_AUTO] = { "OMP_PLACES", append_places, "spread" },
	[OMP_GOMP] = { "GOMP_CPU_AFFINITY", append_list, NULL },
	[OMP_KMP] = { "KMP_AFFINITY", append_proclist, NULL },
};

int omp_export(hwloc_topology_t t, enum bind_omp omp, const struct omp_task *task, const struct bind_vars *v,
	struct err *e)
{
	static const char *const binding[] = { "OMP_PLACES", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY", "KMP_AFFINITY",
		"KMP_HW_SUBSET" };
	const struct omp_format *f = &formats[omp];
	struct buf b = {0};
	struct omp_places p;
	unsigned threads;
	char text[16];

	for (size_t i = 0; i < sizeof(binding) / sizeof(*binding); i++)
		if (v->has(v->env, binding[i]))
			return 0;
	if (places_find(t, task->pus, true, &p, e))
		return -1;
	if (task->cpus > p.n) {
		places_free(&p);
		if (places_find(t, task->pus, false, &p, e))
			return -1;
	}
	if (task->sharers < 2) {
		f->append(&b, &p);
		if (b.failed) {
			buf_free(&b);
			places_free(&p);
			return err_set(e, "--topo-omp is not applied: out of memory");
		}
		v->set(v->env, f->name, b.data);
		if (f->bind)
			v->set(v->env, "OMP_PROC_BIND", f->bind);
		buf_free(&b);
	}
	threads = p.n / task->sharers;
	if (task->cpus && (task->cpus < threads || task->sharers > 1))
		threads = task->cpus < p.n ? task->cpus : p.n;
	snprintf(text, sizeof(text), "%u", threads ? threads : 1);
	v->set(v->env, "OMP_NUM_THREADS", text);
	places_free(&p);
	return 0;
}

#define TUNABLE "glibc.malloc.hugetlb"
#define THP "/sys/kernel/mm/transparent_hugepage/enabled"
#define POOL "/proc/meminfo"
#define BEYOND_POOL "/proc/sys/vm/nr_overcommit_hugepages"
#define POOL_1G "/sys/kernel/mm/hugepages/hugepages-1048576kB/"

static bool file_has(const char *file, const char *word, unsigned long *number)
{
	struct buf text = {0};
	const char *at;
	bool found;

	if (file_read(file, 1 << 16, &text, NULL))
		return false;
	at = strstr(text.data, word);
	found = at;
	if (found && number)
		*number = strtoul(at + strlen(word), NULL, 10);
	buf_free(&text);
	return found;
}

/* Has a pool pages that are free and not reserved, or may pages be allocated beyond it? */
static bool pool_has_room(const char *const (*facts)[2])
{
	unsigned long free_pages = 0, reserved = 0, beyond = 0;

	file_has(facts[0][0], facts[0][1], &free_pages);
	file_has(facts[1][0], facts[1][1], &reserved);
	file_has(facts[2][0], facts[2][1], &beyond);
	return free_pages > reserved || beyond;
}

int huge_tunables(enum bind_huge huge, const char *now, char *out, size_t size, struct err *e)
{
	static const struct {
		const char *value;	/* of the tunable: a kind, or the size of a page */
		const char *pool[3][2];	/* file and word before the number: free, reserved, allowed beyond the pool */
		const char *lacks;
	} kinds[] = {
		[HUGE_THP] = { "1", { { NULL } }, "--topo-hugepages=thp is not applied: transparent huge pages are "
			"disabled (" THP ")" },
		[HUGE_TLB] = { "2", { { POOL, "HugePages_Free:" }, { POOL, "HugePages_Rsvd:" }, { BEYOND_POOL, "" } },
			"--topo-hugepages=hugetlb is not applied: no huge pages are free (HugePages_Free in "
			POOL ")" },
		[HUGE_1G] = { "1073741824", { { POOL_1G "free_hugepages", "" }, { POOL_1G "resv_hugepages", "" },
					      { POOL_1G "nr_overcommit_hugepages", "" } },
			"--topo-hugepages=1G is not applied: no huge pages of 1 GiB are free (" POOL_1G ")" },
	};
	const char *old = now ? now : "";

	if (strstr(old, TUNABLE "=")) {
		if (strlen(old) >= size)
			return err_set(e, "--topo-hugepages is not applied: " HUGE_VARIABLE " is longer than %zu bytes",
			       size - 1);
		memmove(out, old, strlen(old) + 1);
		return 0;
	}
	if (huge == HUGE_THP ? !file_has(THP, "[always]", NULL) && !file_has(THP, "[madvise]", NULL) :
	    !pool_has_room(kinds[huge].pool))
		return err_set(e, "%s", kinds[huge].lacks);
	if (strlen(old) + sizeof(":" TUNABLE "=") + strlen(kinds[huge].value) > size)
		return err_set(e, "--topo-hugepages is not applied: " HUGE_VARIABLE " is too long to append to");
	snprintf(out, size, "%s%s" TUNABLE "=%s", old, *old ? ":" : "", kinds[huge].value);
	return 0;
}
