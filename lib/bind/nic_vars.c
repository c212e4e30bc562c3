/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>
#include <string.h>

#include "bind/nic_values.h"

enum {
	AUTO = 1 << NIC_AUTO, ONE = 1 << NIC_ONE, LOCAL = 1 << NIC_LOCAL, ALL = 1 << NIC_ALL,
	SINGLE = AUTO | ONE, ASKED = ONE | LOCAL | ALL, ANY = AUTO | ASKED,
};

enum strictness { ALWAYS, NOT_STRICT, STRICT };

#define KIND(name) (1u << NIC_##name)

struct nic_row {
	const char *variable;
	unsigned rails;			/* bit 1 << enum bind_nic: the options it applies to */
	enum strictness strict;		/* only without, or only with ,strict */
	nic_when *when;			/* NULL: always */
	nic_value *value;
	const char *text;		/* the value where value is NULL */
};

/*
 * The variables by which each communication stack uses the chosen devices. auto: only for stacks that choose wrongly
 * or not at all; one, local and all: the number of rails; strict: adds filters for stacks that choose well by
 * themselves. others: further variables by which users choose. NCCL is not in the table: it finds the devices nearest
 * to each GPU, and must not be restricted.
 */
static const struct stack {
	unsigned kinds;
	bool chooses;			/* it chooses devices; else it is about CPU affinity */
	const char *others[4];
	struct nic_row rows[5];
} stacks[] = {
	/* PSM2 (psm_context.c and psm_ep.c of opa-psm2): assumes that hfi1_N is unit N. */
	{ KIND(PSM2), true, { "HFI_PORT", "HFI_SELECTION_ALG" }, {
		{ "HFI_UNIT", SINGLE, ALWAYS, NULL, value_psm2_unit, NULL },
		{ "HFI_UNIT", LOCAL, ALWAYS, when_remote, value_psm2_unit, NULL },
		{ "PSM2_MULTIRAIL", LOCAL, ALWAYS, when_near, NULL, "2" },
		{ "PSM2_MULTIRAIL", ALL, ALWAYS, NULL, NULL, "1" },
		{ "PSM2_MULTIRAIL_MAP", LOCAL | ALL, ALWAYS, NULL, value_psm2_map, NULL } } },
	{ KIND(PSM2), false, { "HFI_FORCE_CPUAFFINITY" }, {
		{ "HFI_NO_CPUAFFINITY", ANY, ALWAYS, when_bound, NULL, "1" } } },
	/* PSM3 (libfabric, prov/psm3): reads PSM3_NO_CPUAFFINITY, but documents PSM3_NO_AFFINITY. */
	{ KIND(VERBS), true, { "PSM3_NIC_SELECTION_ALG" }, {
		{ "PSM3_NIC", SINGLE, STRICT, NULL, value_name, NULL },
		{ "PSM3_MULTIRAIL", LOCAL, ALWAYS, NULL, NULL, "2" },
		{ "PSM3_MULTIRAIL", ALL, ALWAYS, NULL, NULL, "1" },
		{ "PSM3_MULTIRAIL_MAP", LOCAL | ALL, STRICT, NULL, value_ports, NULL } } },
	{ KIND(VERBS), false, { "PSM3_FORCE_CPUAFFINITY" }, {
		{ "PSM3_NO_AFFINITY", ANY, ALWAYS, when_bound, NULL, "1" },
		{ "PSM3_NO_CPUAFFINITY", ANY, ALWAYS, when_bound, NULL, "1" } } },
	/* libfabric: fi_opx(7), fi_verbs(7), fi_cxi(7), fi_efa(7), fi_tcp(7); some take one name, some a list. */
	{ KIND(PSM2), true, { NULL }, {
		{ "FI_OPX_HFI_SELECT", ANY, STRICT, NULL, value_unit, NULL } } },
	{ KIND(VERBS), true, { NULL }, {
		{ "FI_VERBS_DEVICE_NAME", ANY, STRICT, NULL, value_name, NULL },
		{ "FI_VERBS_IFACE", ANY, STRICT, NULL, value_net, NULL } } },
	{ KIND(CXI), true, { NULL }, {
		{ "FI_CXI_DEVICE_NAME", ANY, STRICT, NULL, value_names, NULL } } },
	{ KIND(EFA), true, { NULL }, {
		{ "FI_EFA_IFACE", ANY, STRICT, NULL, value_names, NULL } } },
	{ KIND(ETHERNET), true, { NULL }, {
		{ "FI_TCP_IFACE", ANY, STRICT, NULL, value_net, NULL } } },
	/* UCX (ucx_info -cf) */
	{ KIND(VERBS) | KIND(ETHERNET), true, { NULL }, {
		{ "UCX_NET_DEVICES", ANY, STRICT, NULL, value_ports, NULL },
		{ "UCX_MAX_RNDV_RAILS", ASKED, ALWAYS, NULL, value_count, NULL },
		{ "UCX_MAX_EAGER_RAILS", ASKED, ALWAYS, NULL, value_count, NULL } } },
	/* Cray MPICH (intro_mpi(3)): a rank has one device, whatever the number of rails. */
	{ KIND(CXI) | KIND(VERBS), true, { "MPICH_OFI_NUM_NICS" }, {
		{ "MPICH_OFI_NIC_POLICY", ANY, ALWAYS, NULL, value_cray_policy, NULL },
		{ "MPICH_OFI_NIC_MAPPING", ANY, ALWAYS, NULL, value_cray_mapping, NULL } } },
	/* Intel MPI (Developer Reference, "NIC Pinning"): chooses by itself, but only when enabled. */
	{ KIND(PSM2) | KIND(VERBS) | KIND(CXI) | KIND(EFA), true, { NULL }, {
		{ "I_MPI_MULTIRAIL", ANY, ALWAYS, when_several, NULL, "1" },
		{ "I_MPI_OFI_NIC_AFFINITY", ANY, ALWAYS, when_several, NULL, "cpu" } } },
	/*
	 * MVAPICH2 (user guide, "MV2_PROCESS_TO_RAIL_MAPPING"): the indices are into the devices that MV2_IBA_HCA
	 * leaves.
	 */
	{ KIND(VERBS), true, { "MV2_NUM_HCAS", "MV2_SM_SCHEDULING" }, {
		{ "MV2_RAIL_SHARING_POLICY", SINGLE, NOT_STRICT, NULL, value_mvapich_policy, NULL },
		{ "MV2_PROCESS_TO_RAIL_MAPPING", SINGLE, NOT_STRICT, NULL, value_mvapich_list, NULL },
		{ "MV2_IBA_HCA", ANY, STRICT, NULL, value_names_colon, NULL } } },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool user_sets(const struct stack *k, const struct bind_vars *v)
{
	for (size_t i = 0; i < COUNT(k->others) && k->others[i]; i++)
		if (v->has(v->env, k->others[i]))
			return true;
	for (size_t i = 0; i < COUNT(k->rows) && k->rows[i].variable; i++)
		if (v->has(v->env, k->rows[i].variable))
			return true;
	return false;
}

static bool applies(const struct nic_row *w, const struct nic_share *s)
{
	const struct bind_request *r = s->ask->request;

	return w->rails >> r->nic & 1 && w->strict != (r->strict ? NOT_STRICT : STRICT) && (!w->when || w->when(s));
}

static int export_row(const struct nic_row *w, const struct nic_share *s, const struct bind_vars *v, struct err *e)
{
	struct buf b = {0};

	if (!applies(w, s))
		return 0;
	if (w->value)
		w->value(s, &b);
	else
		buf_puts(&b, w->text);
	if (b.failed) {
		buf_free(&b);
		return err_set(e, "out of memory");
	}
	if (b.len)
		v->set(v->env, w->variable, b.data);
	buf_free(&b);
	return 0;
}

static int export_stack(const struct stack *k, const struct nic_share *s, const struct bind_vars *v, struct err *e)
{
	for (size_t i = 0; i < COUNT(k->rows) && k->rows[i].variable; i++)
		if (export_row(&k->rows[i], s, v, e))
			return -1;
	return 0;
}

static void append_labels(const struct nic_share *s, struct buf *names)
{
	unsigned i;

	hwloc_bitmap_foreach_begin(i, s->rails)
		buf_printf(names, "%s%s", names->len ? "," : "", nic_label(&s->ask->nics->nic[i]));
	hwloc_bitmap_foreach_end();
}

/* The stacks whose variables were set before: a stack may serve several kinds. */
struct nic_user_sets {
	bool stack[COUNT(stacks)];
};

static int export_kind(const struct nic_share *s, const struct nic_user_sets *users, const struct bind_vars *v,
	struct buf *names, struct err *e)
{
	bool chosen_by_user = false;

	for (size_t i = 0; i < COUNT(stacks); i++) {
		if (!(stacks[i].kinds >> s->kind & 1))
			continue;
		if (users->stack[i])
			chosen_by_user |= stacks[i].chooses;
		else if (export_stack(&stacks[i], s, v, e))
			return -1;
	}
	if (!chosen_by_user)
		append_labels(s, names);
	return names->failed ? err_set(e, "out of memory") : 0;
}

static bool in_several_subnets(const struct nics *n, enum nic_kind kind)
{
	const struct nic *first = NULL;

	for (const struct nic *d = n->nic; d < n->nic + n->n; d++) {
		if (d->kind != kind || !d->active)
			continue;
		if (first && strcmp(first->subnet, d->subnet))
			return true;
		first = d;
	}
	return false;
}

static int export_kinds(struct nic_share *s, int *chosen, const struct bind_vars *v, struct buf *names, struct err *e)
{
	unsigned active[NIC_KINDS] = {0};
	struct nic_user_sets users;

	for (unsigned i = 0; i < s->ask->nics->n; i++)
		active[s->ask->nics->nic[i].kind] += s->ask->nics->nic[i].active;
	for (size_t i = 0; i < COUNT(stacks); i++)
		users.stack[i] = user_sets(&stacks[i], v);
	for (s->kind = 0; s->kind < NIC_KINDS; s->kind++) {
		s->active = active[s->kind];
		if (!s->active || in_several_subnets(s->ask->nics, s->kind))
			continue;
		if (nics_choose(s->ask, s->kind, chosen, e) || nics_rails(s->ask, s->kind, chosen, s->rails, e))
			return -1;
		if (!hwloc_bitmap_iszero(s->rails) && export_kind(s, &users, v, names, e))
			return -1;
	}
	return 0;
}

int nics_export(const struct nic_request *a, const struct bind_vars *v, struct buf *names, struct err *e)
{
	int *chosen = calloc(a->nlocal, sizeof(*chosen));
	struct nic_share s = { .ask = a, .chosen = chosen, .rails = hwloc_bitmap_alloc() };
	int rc = chosen && s.rails ? export_kinds(&s, chosen, v, names, e) : err_set(e, "out of memory");

	hwloc_bitmap_free(s.rails);
	free(chosen);
	return rc;
}
