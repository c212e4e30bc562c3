/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/recognise/draft.h"

#include "base/array.h"
#include "base/order.h"
#include "base/string_map.h"
#include "fabric/model/names.h"
#include "fabric/model/net.h"

enum { MAX_ADAPTERS = 8 };	/* of one host, described without the device */

struct end {
	enum draft_end_kind kind;
	char *key, *text, *name;	/* key: its NUL is followed by the kind; name: given; else derived from text */
	uint64_t guid, port;
	unsigned number;		/* of its port, if the file has an end for each; 0: unknown */
	unsigned first;			/* the first end of its card, this one if the card is not stated */
	bool unknown;			/* no host's, whatever the text says */
};

struct cable {
	unsigned a, port_a, b, port_b, mbps;
};

struct fabric_draft {
	struct end *ends;
	unsigned nends;
	struct cable *cables;
	unsigned ncables;
	struct string_map keys;		/* the ends' numbers, by key and kind */
	struct string_map systems;	/* of cards; first_of: their first ends */
	unsigned *first_of;
	struct hostlist_usage usage;
};

struct fabric_draft *draft_new(void)
{
	return calloc(1, sizeof(struct fabric_draft));
}

void draft_free(struct fabric_draft *m)
{
	if (!m)
		return;
	for (unsigned i = 0; i < m->nends; i++) {
		free(m->ends[i].key);
		free(m->ends[i].text);
		free(m->ends[i].name);
	}
	free(m->ends);
	free(m->cables);
	free(m->first_of);
	string_map_free(&m->systems);
	string_map_free(&m->keys);
	free(m);
}

int draft_each(struct fabric_draft *m, const char *list, int (*each)(const char *name, void *user), void *user,
	       struct err *e)
{
	return hostlist_expand_more(list, &m->usage, each, user, e);
}

int draft_end(struct fabric_draft *m, enum draft_end_kind kind, const char *key)
{
	char *copy;
	size_t end;
	int len;

	if (array_reserve(m->ends, m->nends, 1) || (len = asprintf(&copy, "%s%c%c", key, '\0', kind)) < 0)
		return -1;
	end = string_map_add_bytes(&m->keys, copy, len);
	if (end == m->nends)
		m->ends[m->nends++] = (struct end){ .kind = kind, .key = copy, .first = end };
	else
		free(copy);
	return end == STRING_MAP_NONE ? -1 : (int) end;
}

bool draft_is_switch(const struct fabric_draft *m, unsigned end)
{
	return m->ends[end].kind == END_SWITCH;
}

const char *draft_key(const struct fabric_draft *m, unsigned end)
{
	return m->ends[end].key;
}

int draft_describe(struct fabric_draft *m, unsigned end, const char *text, size_t len)
{
	char **at = &m->ends[end].text;

	if (!*at && len)
		*at = strndup(text, len);
	return *at || !len ? 0 : -1;
}

int draft_name(struct fabric_draft *m, unsigned end, const char *name)
{
	char *copy = strdup(name);

	if (!copy)
		return -1;
	free(m->ends[end].name);
	m->ends[end].name = copy;
	return 0;
}

void draft_guid(struct fabric_draft *m, unsigned end, uint64_t guid, uint64_t port, unsigned number)
{
	m->ends[end].number = number;
	if (guid)
		m->ends[end].guid = guid;
	if (port)
		m->ends[end].port = port;
}

int draft_system(struct fabric_draft *m, unsigned end, uint64_t system, bool unknown)
{
	size_t known = m->systems.count, at;

	if (!system)
		return 0;
	if (array_reserve(m->first_of, known, 1) ||
	    (at = string_map_add_bytes(&m->systems, &system, sizeof(system))) == STRING_MAP_NONE)
		return -1;
	if (at == known)
		m->first_of[at] = end;
	m->ends[end].unknown = unknown;
	m->ends[end].first = m->first_of[at];
	return 0;
}

int draft_cable(struct fabric_draft *m, unsigned a, unsigned port_a, unsigned b, unsigned port_b, unsigned mbps)
{
	struct cable c = { a, port_a, b, port_b, mbps };

	if (a > b || (a == b && port_a > port_b))
		c = (struct cable){ b, port_b, a, port_a, mbps };
	if (array_reserve(m->cables, m->ncables, 1))
		return -1;
	m->cables[m->ncables++] = c;
	return 0;
}

/* An end with its final name. device: of a name that its description has, what follows there; else "". */
struct titled {
	char *name;
	const char *device;
	unsigned end, number;
	bool is_switch, named, described;
};

static bool title_switch(const struct end *end, struct buf *out)
{
	const char *told = end->name ? end->name : end->text ? end->text : end->guid ? "" : end->key;

	if (names_switch(told, out))
		return true;
	buf_printf(out, "S-%016llx", (unsigned long long) end->guid);
	return false;
}

/* All adapters of a card are one host's, which has the GUID of the first. */
static void title_by_guid(const struct fabric_draft *m, unsigned i, struct buf *out)
{
	const struct end *end = &m->ends[m->ends[i].first];

	buf_printf(out, "H-%016llx", (unsigned long long) (end->guid ? end->guid : end->port));
}

static bool title_host(const struct fabric_draft *m, unsigned i, const struct fabric_names *names, struct titled *t,
		       struct buf *out)
{
	const struct end *end = &m->ends[i];
	const char *known = names_find(names, end->guid), *device;

	if (!known)
		known = names_find(names, end->port);
	if (!known)
		known = end->name;
	if (!known && end->kind == END_HOST)
		known = end->key;
	if (known) {
		buf_puts(out, known);
		return true;
	}
	if (end->text && !end->unknown && (device = names_host(end->text, out))) {
		t->device = device;
		t->described = true;
		t->number = end->number;
		return true;
	}
	title_by_guid(m, i, out);
	return false;
}

ORDER(titles_compare, struct titled, y->is_switch - x->is_switch ?: strverscmp(x->name, y->name) ?:
      strcmp(x->device, y->device) ?: COMPARE(x->number, y->number) ?: COMPARE(x->end, y->end))

/*
 * "cn001.cluster.example" becomes "cn001", as Slurm's nodes are called, unless there is another host of that name. What
 * Slurm's own files, the registry and the paper's format have stays.
 */
static int cut_domains(const struct fabric_draft *m, struct titled *t, unsigned n)
{
	struct string_map shorts = {0};
	unsigned *first = calloc(n + 1, sizeof(*first));
	bool *several = calloc(n + 1, sizeof(*several));
	int rc = first && several ? 0 : -1;

	for (unsigned pass = 0; pass < 2 && rc == 0; pass++)
		for (unsigned i = 0; i < n && rc == 0; i++) {
			const struct end *end = &m->ends[t[i].end];
			size_t len = names_short(t[i].name), known = shorts.count, at;

			if (end->kind != END_ADAPTER || end->name || !t[i].named)
				continue;
			if ((at = string_map_add_bytes(&shorts, t[i].name, len)) == STRING_MAP_NONE)
				rc = -1;
			else if (at == known)
				first[at] = i;
			else if (pass == 0)
				several[at] |= strcmp(t[first[at]].name, t[i].name) != 0;
			else if (first[at] != i && !several[at])
				t[i].name[len] = '\0';
		}
	for (size_t at = 0; at < shorts.count && rc == 0; at++)
		if (!several[at])
			t[first[at]].name[names_short(t[first[at]].name)] = '\0';
	string_map_free(&shorts);
	free(first);
	free(several);
	return rc;
}

static bool same_name(const struct titled *t, unsigned i, unsigned n)
{
	return i < n && t[i].is_switch == t[i - 1].is_switch && !strcmp(t[i].name, t[i - 1].name);
}

/* One of a family: "cn7" where the name before or behind it in order is "cn6" or "cn12". */
static bool is_numbered(const struct titled *t, unsigned n, unsigned i, unsigned past)
{
	size_t stem = strcspn(t[i].name, "0123456789");
	const char *beside[] = { i && !t[i - 1].is_switch ? t[i - 1].name : "", past < n ? t[past].name : "" };

	for (unsigned k = 0; k < 2 && t[i].name[stem]; k++)
		if (strcspn(beside[k], "0123456789") == stem && beside[k][stem] && !strncmp(beside[k], t[i].name, stem))
			return true;
	return false;
}

/*
 * Whether the switches that a host's adapters are on are rails: of the other hosts with names on any of them, more are
 * on several than on one. seen: room for all ends.
 */
static bool are_rails(const struct titled *t, unsigned n, unsigned i, unsigned past, const unsigned *switch_of,
		      unsigned *seen)
{
	unsigned several = 0, one = 0;

	for (unsigned k = i; k < past; k++)
		seen[switch_of[t[k].end]] = 1;
	seen[0] = 0;
	for (unsigned a = 0, z; a < n; a = z) {
		unsigned count = 0;

		for (z = a + 1; same_name(t, z, n);)
			z++;
		for (unsigned k = a; k < z && a != i && !t[a].is_switch && t[a].named; k++) {
			unsigned *at = &seen[switch_of[t[k].end]];

			count += *at && *at != z + 1;
			*at = *at ? z + 1 : 0;
		}
		several += count > 1;
		one += count == 1;
	}
	for (unsigned k = i; k < past; k++)
		seen[switch_of[t[k].end]] = 0;
	return several > one;
}

/*
 * Whether adapters described as one host's, t[i] and up to t[past], are of several: the same device is there twice, so
 * many have no device, or their cards are on several switches and nothing speaks for one host. Images that were copied
 * to many hosts, and defaults of vendors, look like this.
 */
static bool are_several_hosts(const struct fabric_draft *m, const struct titled *t, unsigned n, unsigned i,
			      unsigned past, const unsigned *switch_of, unsigned *seen)
{
	bool apart = false;

	for (unsigned k = i + 1, run = 0; k < past; k++) {
		run = t[k].described && t[k - 1].described && t[k].number == t[k - 1].number &&
			!strcmp(t[k].device, t[k - 1].device) ? run + 1 : 0;
		if (run >= (*t[k].device ? 1 : MAX_ADAPTERS))
			return true;
		for (unsigned other = k - run; other < k; other++) {
			unsigned here = t[k].end, there = t[other].end;

			apart |= switch_of[here] && switch_of[there] && switch_of[here] != switch_of[there] &&
				m->ends[here].first != m->ends[there].first;
		}
	}
	return apart && !is_numbered(t, n, i, past) && !are_rails(t, n, i, past, switch_of, seen);
}

/* Adapters that are no host's get no title. scratch: two zeros for each end, and two more. */
static int titles_make(const struct fabric_draft *m, const struct fabric_names *names, struct titled *out,
		       unsigned *count, unsigned *scratch)
{
	unsigned n = 0, *switch_of = scratch, *seen = scratch + m->nends;	/* from 1, by end */

	for (unsigned i = 0; i < m->ncables; i++) {
		unsigned a = m->cables[i].a, b = m->cables[i].b;

		switch_of[a] = m->ends[b].kind == END_SWITCH ? b + 1 : switch_of[a];
		switch_of[b] = m->ends[a].kind == END_SWITCH ? a + 1 : switch_of[b];
	}
	for (unsigned i = 0; i < m->nends; i++) {
		const struct end *end = &m->ends[i];
		struct titled *t = &out[n];
		struct buf name = {0};

		if (end->kind == END_ADAPTER && !end->name && end->text && names_serve_network(end->text))
			continue;
		*t = (struct titled){ .end = i, .is_switch = end->kind == END_SWITCH, .device = "" };
		t->named = t->is_switch ? title_switch(end, &name) : title_host(m, i, names, t, &name);
		t->name = name.data;
		if (name.failed)
			return -1;
		n++;
	}
	*count = n;
	if (cut_domains(m, out, n))
		return -1;
	qsort(out, n, sizeof(*out), titles_compare);
	for (unsigned i = 0, past; i < n; i = past) {
		for (past = i + 1; same_name(out, past, n);)
			past++;
		if (out[i].is_switch || !are_several_hosts(m, out, n, i, past, switch_of, seen))
			continue;
		for (unsigned k = i; k < past; k++) {
			struct buf name = {0};

			if (!out[k].described)
				continue;
			title_by_guid(m, out[k].end, &name);
			if (name.failed)
				return -1;
			free(out[k].name);
			out[k].name = name.data;
			out[k].device = "";
			out[k].named = false;
		}
	}
	qsort(out, n, sizeof(*out), titles_compare);
	return 0;
}

/* Switches of the same name are distinct: makes a unique name that no host has, of at most Slurm's 64 letters. */
static char *name_apart(const struct titled *t, unsigned n, const struct end *end)
{
	struct buf name = {0};

	if (end->guid)
		buf_printf(&name, "%.46s-%llx", t->name, (unsigned long long) end->guid);
	else
		buf_printf(&name, "%.46s-%u", t->name, n);
	if (name.failed)
		buf_free(&name);
	return name.data;
}

static int title_compare(const void *name, const void *title)
{
	return strverscmp(name, ((const struct titled *) title)->name);
}

static int add_switches(struct fabric *f, const struct fabric_draft *m, struct titled *t, unsigned n, unsigned *node_of)
{
	unsigned switches = 0;

	while (switches < n && t[switches].is_switch)
		switches++;
	for (unsigned i = 0; i < switches; i++) {
		const struct end *end = &m->ends[t[i].end];
		/* Hosts keep their names. */
		bool alone = !same_name(t, i + 1, n) && !(i && same_name(t, i, n)) &&
			!bsearch(t[i].name, t + switches, n - switches, sizeof(*t), title_compare);
		struct fabric_node *node = &f->nodes[f->nnodes];

		*node = (struct fabric_node){ .guid = end->guid, .is_switch = true, .named = t[i].named };
		node->name = alone ? strdup(t[i].name) : name_apart(&t[i], f->nnodes, end);
		node->description = end->text ? strdup(end->text) : NULL;
		node_of[t[i].end] = f->nnodes++;
		if (!node->name || (end->text && !node->description))
			return -1;
	}
	f->nswitches = f->nnodes;
	return 0;
}

static int add_hosts(struct fabric *f, const struct fabric_draft *m, struct titled *t, unsigned n, unsigned *node_of)
{
	for (unsigned i = f->nswitches; i < n; i++) {
		const struct end *end = &m->ends[t[i].end];

		if (i == f->nswitches || !same_name(t, i, n)) {
			struct fabric_node *node = &f->nodes[f->nnodes++];

			*node = (struct fabric_node){ .name = strdup(t[i].name), .guid = end->guid,
						       .named = t[i].named };
			node->description = end->text ? strdup(end->text) : NULL;
			if (!node->name || (end->text && !node->description))
				return -1;
		}
		node_of[t[i].end] = f->nnodes - 1;
		if (end->kind == END_ADAPTER)
			f->adapters[f->nadapters++] = (struct fabric_adapter){ f->nnodes - 1, end->guid, end->port };
	}
	return 0;
}

ORDER(cables_compare, struct cable, COMPARE(x->a, y->a) ?: COMPARE(x->b, y->b) ?: COMPARE(x->port_a, y->port_a) ?:
      COMPARE(x->port_b, y->port_b))

ORDER(links_compare, struct fabric_link, COMPARE(x->a, y->a) ?: COMPARE(x->b, y->b))

/* Adds the cables, each once, as links of one cable between nodes; drops those from a node to itself. */
static void add_cables(struct fabric *f, struct cable *c, unsigned n, const unsigned *node_of)
{
	qsort(c, n, sizeof(*c), cables_compare);
	for (unsigned i = 0; i < n; i++) {
		unsigned a = node_of[c[i].a], b = node_of[c[i].b];

		if (i + 1 < n && (c[i].port_a || c[i].port_b) && !cables_compare(&c[i], &c[i + 1])) {
			if (c[i + 1].mbps < c[i].mbps)
				c[i + 1].mbps = c[i].mbps;
			continue;
		}
		if (a != b && a != NET_NONE && b != NET_NONE)
			f->links[f->nlinks++] = (struct fabric_link){ a < b ? a : b, a < b ? b : a, 1, c[i].mbps };
	}
}

struct fabric *draft_finish(const struct fabric_draft *m, const struct fabric_names *names, struct err *e)
{
	size_t nends = m->nends, ncables = m->ncables;
	struct titled *t = calloc(nends + 1, sizeof(*t));
	unsigned *node_of = calloc(2 * nends + 2, sizeof(*node_of)), n;
	struct cable *cables = calloc(ncables + 1, sizeof(*cables));
	struct fabric *f = calloc(1, sizeof(*f));
	int rc = -1;

	if (!t || !node_of || !cables || !f)
		goto end;
	f->nodes = calloc(nends + 1, sizeof(*f->nodes));
	f->adapters = calloc(nends + 1, sizeof(*f->adapters));
	f->links = calloc(ncables + 1, sizeof(*f->links));
	if (!f->nodes || !f->adapters || !f->links || titles_make(m, names, t, &n, node_of))
		goto end;
	memset(node_of, 0xff, nends * sizeof(*node_of));
	if (add_switches(f, m, t, n, node_of) || add_hosts(f, m, t, n, node_of))
		goto end;
	if (ncables)
		memcpy(cables, m->cables, ncables * sizeof(*cables));
	add_cables(f, cables, ncables, node_of);
	qsort(f->links, f->nlinks, sizeof(*f->links), links_compare);
	n = 0;
	for (unsigned i = 0; i < f->nlinks; i++) {
		struct fabric_link *last = n ? &f->links[n - 1] : NULL;

		if (last && !links_compare(last, &f->links[i])) {
			last->count++;
			last->mbps += f->links[i].mbps;
		} else {
			f->links[n++] = f->links[i];
		}
	}
	f->nlinks = n;
	rc = planes_find(f) || fabric_recognise(f) ? -1 : 0;
end:
	if (rc) {
		err_set(e, "out of memory");
		fabric_free(f);
	}
	for (size_t i = 0; t && i < nends; i++)
		free(t[i].name);
	free(t);
	free(node_of);
	free(cables);
	return rc ? NULL : f;
}

static enum fabric_kind kind_of(const struct hierarchy *h)
{
	static const enum fabric_kind kinds[] = {
		[HIERARCHY_TREE] = FABRIC_FAT_TREE, [HIERARCHY_TORUS] = FABRIC_TORUS, [HIERARCHY_GRAPH] = FABRIC_GRAPH,
	};

	return h->nlevels > 1 || h->level[0].form != HIERARCHY_TREE ? kinds[h->level[0].form] : FABRIC_ONE_SWITCH;
}

/* A switch for each group, with cables to its elements. The levels stated by the file are kept, not recognised. */
struct fabric *fabric_given(struct hierarchy *h, struct err *e)
{
	struct fabric_draft *m = draft_new();
	unsigned *end = calloc(h->ngroups + 1, sizeof(*end));
	struct fabric *f = NULL;
	int rc = m && end ? 0 : -1, host;

	for (unsigned i = 0; i < h->ngroups && rc == 0; i++) {
		if ((rc = draft_end(m, END_SWITCH, h->groups[i].name)) < 0)
			break;
		end[i] = rc;
		rc = i ? draft_cable(m, end[h->groups[i].above], 0, end[i], 0, 0) : 0;
	}
	for (unsigned i = 0; i < h->nhosts && rc == 0; i++)
		rc = (host = draft_end(m, END_HOST, h->hosts[i].name)) < 0 ? -1 :
			draft_cable(m, end[h->hosts[i].group], 0, host, 0, 0);
	if (rc)
		err_set(e, "out of memory");
	else
		f = draft_finish(m, NULL, e);
	free(end);
	draft_free(m);
	if (!f) {
		hierarchy_free(h);
		return NULL;
	}
	hierarchy_free(f->planes[0].levels);
	f->planes[0].levels = h;
	f->planes[0].kind = kind_of(h);
	f->given = true;
	return f;
}

static int node_compare(const void *name, const void *node)
{
	return strverscmp(name, ((const struct fabric_node *) node)->name);
}

unsigned fabric_node(const struct fabric *f, const char *name, bool is_switch)
{
	unsigned from = is_switch ? 0 : f->nswitches, past = is_switch ? f->nswitches : f->nnodes;
	const struct fabric_node *node = bsearch(name, f->nodes + from, past - from, sizeof(*node), node_compare);

	return node ? node - f->nodes : f->nnodes;
}

void fabric_free(struct fabric *f)
{
	if (!f)
		return;
	for (unsigned i = 0; f->nodes && i < f->nnodes; i++) {
		free(f->nodes[i].name);
		free(f->nodes[i].description);
	}
	free(f->nodes);
	free(f->links);
	free(f->adapters);
	for (unsigned i = 0; f->planes && i < f->nplanes; i++)
		hierarchy_free(f->planes[i].levels);
	free(f->planes);
	free(f);
}
