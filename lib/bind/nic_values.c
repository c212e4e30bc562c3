/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/nic_values.h"

#include <stdlib.h>
#include <string.h>

#include "bind/nic_paper.h"
#include "bind/nic_reach.h"

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
		if (device(s, i)->kind == s->kind && device(s, i)->active && hwloc_bitmap_intersects(device(s, i)->near, here(s)))
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

/* The algorithm says 0 where one unit is active, which is right unless unit 0 is the one that is not. */
void value_psm2_unit(const struct nic_share *s, struct buf *out)
{
	int unit = paper_single(s->ask->nics, -1, here(s), s->chosen[s->ask->local]);

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

	if (!rails || !paper_rails(s->ask->nics, s->ask->request->nic == NIC_ALL ? 1 : 2, here(s), rails)) {
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

/* These stacks take one name, and that for the beginning of one. */
static void put_unmistakable(const struct nic_share *s, const char *(*text)(const struct nic *n), struct buf *out)
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
	put_unmistakable(s, name_of, out);
}

void value_net(const struct nic_share *s, struct buf *out)
{
	put_unmistakable(s, net_of, out);
}

/* All of the rails or none: half a list would be a restriction that nobody asked for. */
static void put_rails(const struct nic_share *s, const char *(*text)(const struct nic *n), const char *between, bool ports,
	struct buf *out)
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
	put_rails(s, name_of, ",", false, out);
}

void value_names_colon(const struct nic_share *s, struct buf *out)
{
	put_rails(s, name_of, ":", false, out);
}

void value_ports(const struct nic_share *s, struct buf *out)
{
	put_rails(s, s->kind == NIC_ETHERNET ? net_of : name_of, ",", s->kind != NIC_ETHERNET, out);
}

void value_count(const struct nic_share *s, struct buf *out)
{
	buf_printf(out, "%d", hwloc_bitmap_weight(s->rails));
}

/*
 * Stacks that take a device's place in their own list of them: it is known where the node has no others, all are active, and the
 * order of their numbers is that of their bus ids, so that it is the same however they are sorted.
 */
static bool numbered(const struct nic_share *s)
{
	const struct nics *n = s->ask->nics;

	for (unsigned i = 0; i < n->n; i++)
		if (n->nic[i].kind != s->kind || !n->nic[i].active || n->nic[i].unit != (int) i)
			return false;
	return !n->others && n->n > 1;
}

/* Cray's MPI ends the program otherwise: "Rank is not confined to a single NUMA node". */
static bool all_within_domains(const struct nic_ask *a)
{
	struct domains d;
	unsigned within = 0;

	if (domains_find(a->topology, &d, NULL))
		return false;
	for (unsigned i = 0; i < a->nlocal; i++) {
		for (unsigned k = 0; k < d.n; k++) {
			if (!hwloc_bitmap_iszero(a->masks[i]) && hwloc_bitmap_isincluded(a->masks[i], d.node[k]->cpuset)) {
				within++;
				break;
			}
		}
	}
	domains_free(&d);
	return within == a->nlocal;
}

void value_cray_policy(const struct nic_share *s, struct buf *out)
{
	if (s->kind == NIC_CXI && numbered(s))
		buf_puts(out, "USER");
	else if (s->active > 1 && all_within_domains(s->ask))
		buf_puts(out, "NUMA");
}

void value_cray_mapping(const struct nic_share *s, struct buf *out)
{
	if (s->kind != NIC_CXI || !numbered(s))
		return;
	for (unsigned i = 0; i < s->ask->nics->n; i++) {
		bool begun = false;

		for (unsigned task = 0; task < s->ask->nlocal; task++) {
			if (s->chosen[task] != (int) i)
				continue;
			if (begun)
				buf_printf(out, ",%u", task);
			else
				buf_printf(out, "%s%d:%u", out->len ? ";" : "", device(s, i)->unit, task);
			begun = true;
		}
	}
}

/* MVAPICH2 counts the list's characters: a device has one digit. */
static bool listed(const struct nic_share *s)
{
	for (unsigned task = 0; task < s->ask->nlocal; task++)
		if (s->chosen[task] < 0)
			return false;
	return numbered(s) && s->ask->nics->n <= 10;
}

void value_mvapich_policy(const struct nic_share *s, struct buf *out)
{
	if (listed(s))
		buf_puts(out, "FIXED_MAPPING");
}

void value_mvapich_list(const struct nic_share *s, struct buf *out)
{
	for (unsigned task = 0; listed(s) && task < s->ask->nlocal; task++)
		buf_printf(out, "%s%d", task ? ":" : "", device(s, s->chosen[task])->unit);
}
