/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/std.h"
#include "bind/nic.h"

static bool is_active(const struct nic *n)
{
	return n->kind == NIC_PSM2 && n->active;
}

/* saved_hfis of the paper: their number, and the first. here: NULL for those of the whole node. */
static unsigned save_hfis(const struct nics *n, hwloc_const_bitmap_t here, int *first)
{
	unsigned saved = 0;

	*first = -1;
	for (unsigned i = 0; i < n->n; i++) {
		if (!is_active(&n->nic[i]) || (here && !hwloc_bitmap_intersects(n->nic[i].near, here)))
			continue;
		if (!saved++)
			*first = i;
	}
	return saved;
}

int psm2_unit(const struct nics *n, int hfival, hwloc_const_bitmap_t here, int pick)
{
	int first;

	if (hfival >= 0)
		return hfival;
	switch (save_hfis(n, NULL, &first)) {
	case 0:
		return -1;
	case 1:
		return 0;
	}
	return save_hfis(n, here, &first) == 1 ? n->nic[first].unit : n->nic[pick].unit;
}

int psm2_rails(const struct nics *n, int multirail, hwloc_const_bitmap_t here, hwloc_bitmap_t rails)
{
	hwloc_bitmap_zero(rails);
	for (unsigned i = 0; multirail && i < n->n; i++)
		if (is_active(&n->nic[i]) && (multirail == 1 || hwloc_bitmap_intersects(n->nic[i].near, here)))
			hwloc_bitmap_set(rails, i);
	return hwloc_bitmap_weight(rails);
}

/* The devices of one kind for the calling task. For nic_vars.c. */
struct nic_share {
	const struct nic_request *ask;
	enum nic_kind kind;
	unsigned active;		/* devices of the kind */
	const int *chosen;		/* of each task; that of this one is not -1 */
	hwloc_bitmap_t rails;		/* of this task */
};

/* Values of variables: each appends to out, or nothing where the value is not certain. Conditions of rows. */
typedef void nic_value(const struct nic_share *s, struct buf *out);
typedef bool nic_when(const struct nic_share *s);

static const struct nic *device(const struct nic_share *s, unsigned index)
{
	return &s->ask->nics->nic[index];
}

static const struct nic *own(const struct nic_share *s)
{
	return device(s, s->chosen[s->ask->local]);
}

static hwloc_const_bitmap_t here(const struct nic_share *s)
{
	return s->ask->masks[s->ask->local];
}

static bool when_near(const struct nic_share *s)
{
	for (unsigned i = 0; i < s->ask->nics->n; i++)
		if (device(s, i)->kind == s->kind && device(s, i)->active &&
		    hwloc_bitmap_intersects(device(s, i)->near, here(s)))
			return true;
	return false;
}

static bool when_remote(const struct nic_share *s)
{
	return !when_near(s);
}

static bool when_several(const struct nic_share *s)
{
	return s->active > 1;
}

static bool when_bound(const struct nic_share *s)
{
	return s->ask->bound;
}

/* Algorithm 1 returns 0 where a single unit is active, which is wrong when unit 0 is inactive. */
static void value_psm2_unit(const struct nic_share *s, struct buf *out)
{
	int unit = psm2_unit(s->ask->nics, -1, here(s), s->chosen[s->ask->local]);

	for (unsigned i = 0; i < s->ask->nics->n; i++) {
		if (device(s, i)->kind == s->kind && device(s, i)->active && device(s, i)->unit == unit && unit >= 0) {
			buf_printf(out, "%d", unit);
			return;
		}
	}
}

static void value_psm2_map(const struct nic_share *s, struct buf *out)
{
	hwloc_bitmap_t rails = hwloc_bitmap_alloc();
	unsigned i;

	if (!rails || !psm2_rails(s->ask->nics, s->ask->request->nic == NIC_ALL ? 1 : 2, here(s), rails)) {
		hwloc_bitmap_free(rails);
		return;
	}
	hwloc_bitmap_foreach_begin(i, rails) {
		if (device(s, i)->unit < 0) {
			out->len = 0;
			break;
		}
		buf_printf(out, "%s%d:%u", out->len ? "," : "", device(s, i)->unit, device(s, i)->port);
	} hwloc_bitmap_foreach_end();
	hwloc_bitmap_free(rails);
}

static void value_unit(const struct nic_share *s, struct buf *out)
{
	if (own(s)->unit >= 0 && hwloc_bitmap_weight(s->rails) == 1)
		buf_printf(out, "%d", own(s)->unit);
}

static const char *name_of(const struct nic *n)
{
	return n->name;
}

static const char *net_of(const struct nic *n)
{
	return n->net;
}

/* These stacks take one name and match it as a prefix. */
static void append_unique_prefix(const struct nic_share *s, const char *(*text)(const struct nic *n), struct buf *out)
{
	const char *mine = text(own(s));

	if (hwloc_bitmap_weight(s->rails) != 1)
		return;
	for (unsigned i = 0; i < s->ask->nics->n; i++)
		if (device(s, i) != own(s) && !strncmp(text(device(s, i)), mine, strlen(mine)))
			return;
	buf_puts(out, mine);
}

static void value_name(const struct nic_share *s, struct buf *out)
{
	append_unique_prefix(s, name_of, out);
}

static void value_net(const struct nic_share *s, struct buf *out)
{
	append_unique_prefix(s, net_of, out);
}

/* All rails or none: a partial list would be a restriction that was not requested. */
static void append_rails(const struct nic_share *s, const char *(*text)(const struct nic *n), const char *between,
	bool ports, struct buf *out)
{
	unsigned i;

	hwloc_bitmap_foreach_begin(i, s->rails) {
		if (!*text(device(s, i))) {
			out->len = 0;
			return;
		}
		buf_printf(out, "%s%s", out->len ? between : "", text(device(s, i)));
		if (ports)
			buf_printf(out, ":%u", device(s, i)->port);
	} hwloc_bitmap_foreach_end();
}

static void value_names(const struct nic_share *s, struct buf *out)
{
	append_rails(s, name_of, ",", false, out);
}

static void value_names_colon(const struct nic_share *s, struct buf *out)
{
	append_rails(s, name_of, ":", false, out);
}

static void value_ports(const struct nic_share *s, struct buf *out)
{
	append_rails(s, s->kind == NIC_ETHERNET ? net_of : name_of, ",", s->kind != NIC_ETHERNET, out);
}

static void value_count(const struct nic_share *s, struct buf *out)
{
	buf_printf(out, "%d", hwloc_bitmap_weight(s->rails));
}

/*
 * For stacks that take an index into their own list of devices. It is certain where the node has no other devices, all
 * are active, and unit numbers are in the order of bus ids, so that it does not depend on how the stack sorts.
 */
static bool has_certain_indices(const struct nic_share *s)
{
	const struct nics *n = s->ask->nics;

	for (unsigned i = 0; i < n->n; i++)
		if (n->nic[i].kind != s->kind || !n->nic[i].active || n->nic[i].unit != (int) i)
			return false;
	return !n->others && n->n > 1;
}

/* Otherwise Cray MPICH aborts: "Rank is not confined to a single NUMA node". */
static bool all_within_domains(const struct nic_request *a)
{
	struct nic_domains d;
	unsigned within = 0;

	if (nic_domains_find(a->topology, &d, NULL))
		return false;
	for (unsigned i = 0; i < a->nlocal; i++) {
		for (unsigned k = 0; k < d.n; k++) {
			if (!hwloc_bitmap_iszero(a->masks[i]) &&
			    hwloc_bitmap_isincluded(a->masks[i], d.node[k]->cpuset)) {
				within++;
				break;
			}
		}
	}
	nic_domains_free(&d);
	return within == a->nlocal;
}

static void value_cray_policy(const struct nic_share *s, struct buf *out)
{
	if (s->kind == NIC_CXI && has_certain_indices(s))
		buf_puts(out, "USER");
	else if (s->active > 1 && all_within_domains(s->ask))
		buf_puts(out, "NUMA");
}

static void value_cray_mapping(const struct nic_share *s, struct buf *out)
{
	if (s->kind != NIC_CXI || !has_certain_indices(s))
		return;
	for (unsigned i = 0; i < s->ask->nics->n; i++) {
		bool started = false;

		for (unsigned task = 0; task < s->ask->nlocal; task++) {
			if (s->chosen[task] != (int) i)
				continue;
			if (started)
				buf_printf(out, ",%u", task);
			else
				buf_printf(out, "%s%d:%u", out->len ? ";" : "", device(s, i)->unit, task);
			started = true;
		}
	}
}

/* MVAPICH2 counts the characters of the list: device numbers have one digit. */
static bool can_list(const struct nic_share *s)
{
	for (unsigned task = 0; task < s->ask->nlocal; task++)
		if (s->chosen[task] < 0)
			return false;
	return has_certain_indices(s) && s->ask->nics->n <= 10;
}

static void value_mvapich_policy(const struct nic_share *s, struct buf *out)
{
	if (can_list(s))
		buf_puts(out, "FIXED_MAPPING");
}

static void value_mvapich_list(const struct nic_share *s, struct buf *out)
{
	for (unsigned task = 0; can_list(s) && task < s->ask->nlocal; task++)
		buf_printf(out, "%s%d", task ? ":" : "", device(s, s->chosen[task])->unit);
}

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

/* The stacks whose variables were set before: a stack may serve several kinds. */
struct nic_user_sets {
	bool stack[COUNT(stacks)];
};

static int export_kind(const struct nic_share *s, const struct nic_user_sets *users, const struct bind_vars *v,
	struct buf *names, struct err *e)
{
	const struct bind_request *r = s->ask->request;
	bool chosen_by_user = false, failed = false;
	unsigned rail;

	for (size_t i = 0; i < COUNT(stacks); i++) {
		const struct nic_row *end = stacks[i].rows + COUNT(stacks[i].rows);

		if (!(stacks[i].kinds >> s->kind & 1))
			continue;
		if (users->stack[i]) {
			chosen_by_user |= stacks[i].chooses;
			continue;
		}
		for (const struct nic_row *w = stacks[i].rows; w < end && w->variable && !failed; w++) {
			struct buf b = {0};

			if (!(w->rails >> r->nic & 1) || w->strict == (r->strict ? NOT_STRICT : STRICT) ||
			    (w->when && !w->when(s)))
				continue;
			if (w->value)
				w->value(s, &b);
			else
				buf_puts(&b, w->text);
			failed = b.failed;
			if (b.len && !failed)
				v->set(v->env, w->variable, b.data);
			buf_free(&b);
		}
	}
	hwloc_bitmap_foreach_begin(rail, s->rails)
		if (!chosen_by_user && !failed)
			buf_printf(names, "%s%s", names->len ? "," : "", nic_label(device(s, rail)));
	hwloc_bitmap_foreach_end();
	return failed || names->failed ? err_set(e, "out of memory") : 0;
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

int nics_export(const struct nic_request *a, const struct bind_vars *v, struct buf *names, struct err *e)
{
	int *chosen = calloc(a->nlocal, sizeof(*chosen));
	struct nic_share s = { .ask = a, .chosen = chosen, .rails = hwloc_bitmap_alloc() };
	int rc = chosen && s.rails ? 0 : err_set(e, "out of memory");
	unsigned active[NIC_KINDS] = {0};
	struct nic_user_sets users;

	for (unsigned i = 0; i < a->nics->n; i++)
		active[a->nics->nic[i].kind] += a->nics->nic[i].active;
	for (size_t i = 0; i < COUNT(stacks); i++)
		users.stack[i] = user_sets(&stacks[i], v);
	for (s.kind = 0; !rc && s.kind < NIC_KINDS; s.kind++) {
		s.active = active[s.kind];
		if (!s.active || in_several_subnets(a->nics, s.kind))
			continue;
		if (nics_choose(a, s.kind, chosen, e) || nics_rails(a, s.kind, chosen, s.rails, e))
			rc = -1;
		else if (!hwloc_bitmap_iszero(s.rails))
			rc = export_kind(&s, &users, v, names, e);
	}
	hwloc_bitmap_free(s.rails);
	free(chosen);
	return rc;
}
