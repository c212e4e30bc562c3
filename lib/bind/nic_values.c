/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/nic_values.h"

#include <stdlib.h>
#include <string.h>

#include "bind/nic_distance.h"
#include "bind/nic_psm2.h"

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

bool when_near(const struct nic_share *s)
{
	for (unsigned i = 0; i < s->ask->nics->n; i++)
		if (device(s, i)->kind == s->kind && device(s, i)->active &&
		    hwloc_bitmap_intersects(device(s, i)->near, here(s)))
			return true;
	return false;
}

bool when_remote(const struct nic_share *s)
{
	return !when_near(s);
}

bool when_several(const struct nic_share *s)
{
	return s->active > 1;
}

bool when_bound(const struct nic_share *s)
{
	return s->ask->bound;
}

/* Algorithm 1 returns 0 where a single unit is active, which is wrong when unit 0 is inactive. */
void value_psm2_unit(const struct nic_share *s, struct buf *out)
{
	int unit = psm2_unit(s->ask->nics, -1, here(s), s->chosen[s->ask->local]);

	for (unsigned i = 0; i < s->ask->nics->n; i++) {
		if (device(s, i)->kind == s->kind && device(s, i)->active && device(s, i)->unit == unit && unit >= 0) {
			buf_printf(out, "%d", unit);
			return;
		}
	}
}

void value_psm2_map(const struct nic_share *s, struct buf *out)
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

void value_unit(const struct nic_share *s, struct buf *out)
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

void value_name(const struct nic_share *s, struct buf *out)
{
	append_unique_prefix(s, name_of, out);
}

void value_net(const struct nic_share *s, struct buf *out)
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

void value_names(const struct nic_share *s, struct buf *out)
{
	append_rails(s, name_of, ",", false, out);
}

void value_names_colon(const struct nic_share *s, struct buf *out)
{
	append_rails(s, name_of, ":", false, out);
}

void value_ports(const struct nic_share *s, struct buf *out)
{
	append_rails(s, s->kind == NIC_ETHERNET ? net_of : name_of, ",", s->kind != NIC_ETHERNET, out);
}

void value_count(const struct nic_share *s, struct buf *out)
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

void value_cray_policy(const struct nic_share *s, struct buf *out)
{
	if (s->kind == NIC_CXI && has_certain_indices(s))
		buf_puts(out, "USER");
	else if (s->active > 1 && all_within_domains(s->ask))
		buf_puts(out, "NUMA");
}

void value_cray_mapping(const struct nic_share *s, struct buf *out)
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

void value_mvapich_policy(const struct nic_share *s, struct buf *out)
{
	if (can_list(s))
		buf_puts(out, "FIXED_MAPPING");
}

void value_mvapich_list(const struct nic_share *s, struct buf *out)
{
	for (unsigned task = 0; can_list(s) && task < s->ask->nlocal; task++)
		buf_printf(out, "%s%d", task ? ":" : "", device(s, s->chosen[task])->unit);
}
