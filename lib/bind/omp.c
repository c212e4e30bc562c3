/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/omp.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"

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

static void append_cpus(struct buf *b, hwloc_const_bitmap_t place)
{
	const char *comma = "";
	unsigned cpu;

	buf_puts(b, "{");
	hwloc_bitmap_foreach_begin(cpu, place)
		buf_printf(b, "%s%u", comma, cpu);
		comma = ",";
	hwloc_bitmap_foreach_end();
	buf_puts(b, "}");
}

static void append_places(struct buf *b, const struct omp_places *p)
{
	for (unsigned i = 0; i < p->n; i++) {
		buf_puts(b, i ? "," : "");
		append_cpus(b, p->place[i]);
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

static bool user_binds_threads(const struct bind_vars *v)
{
	static const char *const names[] = { "OMP_PLACES", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY", "KMP_AFFINITY",
		"KMP_HW_SUBSET" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (v->has(v->env, names[i]))
			return true;
	return false;
}

static int export_places(const struct omp_format *f, const struct omp_places *p, const struct bind_vars *v,
	struct err *e)
{
	struct buf b = {0};
	int rc = 0;

	f->append(&b, p);
	if (b.failed) {
		rc = err_set(e, "--topo-omp is not applied: out of memory");
	} else {
		v->set(v->env, f->name, b.data);
		if (f->bind)
			v->set(v->env, "OMP_PROC_BIND", f->bind);
	}
	buf_free(&b);
	return rc;
}

static void export_threads(const struct omp_task *task, unsigned places, const struct bind_vars *v)
{
	unsigned threads = places / task->sharers;
	char text[16];

	if (task->cpus && (task->cpus < threads || task->sharers > 1))
		threads = task->cpus < places ? task->cpus : places;
	snprintf(text, sizeof(text), "%u", threads ? threads : 1);
	v->set(v->env, "OMP_NUM_THREADS", text);
}

int omp_export(hwloc_topology_t t, enum bind_omp omp, const struct omp_task *task, const struct bind_vars *v,
	struct err *e)
{
	struct omp_places p;
	int rc = 0;

	if (user_binds_threads(v))
		return 0;
	if (places_find(t, task->pus, true, &p, e))
		return -1;
	if (task->cpus > p.n) {
		places_free(&p);
		if (places_find(t, task->pus, false, &p, e))
			return -1;
	}
	if (task->sharers < 2)
		rc = export_places(&formats[omp], &p, v, e);
	if (!rc)
		export_threads(task, p.n, v);
	places_free(&p);
	return rc;
}
