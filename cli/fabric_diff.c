/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <string.h>

#include "fabric.h"

/* The same list (switches, hosts or links) of two fabrics, in the same order. */
struct side {
	const struct fabric *fabric;
	unsigned at, end;
};

struct kind {
	const char *name;
	struct side (*begin)(const struct fabric *f);
	/* Compare the next elements of both, like strcmp. */
	int (*order)(const struct side *a, const struct side *b);
	/* Describe how two elements with the same key differ; false: they do not. */
	bool (*differs)(const struct side *a, const struct side *b, struct buf *words);
	void (*describe)(const struct side *s, struct buf *out);
};

static const struct fabric_node *node_at(const struct side *s)
{
	return &s->fabric->nodes[s->at];
}

static const struct fabric_link *link_at(const struct side *s)
{
	return &s->fabric->links[s->at];
}

static struct side begin_switches(const struct fabric *f)
{
	return (struct side){ f, 0, f->nswitches };
}

static struct side begin_hosts(const struct fabric *f)
{
	return (struct side){ f, f->nswitches, f->nnodes };
}

static struct side begin_links(const struct fabric *f)
{
	return (struct side){ f, 0, f->nlinks };
}

static int order_nodes(const struct side *a, const struct side *b)
{
	return strverscmp(node_at(a)->name, node_at(b)->name);
}

/* Switches come before hosts, as in the numbers that links are sorted by. */
static int order_ends(const struct fabric_node *a, const struct fabric_node *b)
{
	int kind = b->is_switch - a->is_switch;

	return kind ? kind : strverscmp(a->name, b->name);
}

static int order_links(const struct side *a, const struct side *b)
{
	const struct fabric_link *x = link_at(a), *y = link_at(b);
	int order = order_ends(&a->fabric->nodes[x->a], &b->fabric->nodes[y->a]);

	return order ? order : order_ends(&a->fabric->nodes[x->b], &b->fabric->nodes[y->b]);
}

static void describe_node(const struct side *s, struct buf *out)
{
	buf_puts(out, node_at(s)->name);
}

static void describe_link(const struct side *s, struct buf *out)
{
	const struct fabric_link *l = link_at(s);

	buf_printf(out, "%s - %s", s->fabric->nodes[l->a].name, s->fabric->nodes[l->b].name);
}

/* A host has one GUID per adapter, and adapters come and go one by one; the node's GUID is its first adapter's. */
static bool differ_nodes(const struct side *a, const struct side *b, struct buf *words)
{
	const struct fabric_node *x = node_at(a), *y = node_at(b);

	if (x->guid == y->guid)
		return false;
	buf_printf(words, "GUID %016llx, was %016llx", (unsigned long long) y->guid, (unsigned long long) x->guid);
	return true;
}

static bool differ_links(const struct side *a, const struct side *b, struct buf *words)
{
	const struct fabric_link *x = link_at(a), *y = link_at(b);

	if (x->count == y->count && x->mbps == y->mbps)
		return false;
	if (x->count != y->count)
		buf_printf(words, "%u cable%s, was %u", y->count, y->count == 1 ? "" : "s", x->count);
	else
		buf_printf(words, "%u Mbit/s, was %u", y->mbps, x->mbps);
	return true;
}

static const struct kind kinds[] = {
	{ "switch", begin_switches, order_nodes, differ_nodes, describe_node },
	{ "host", begin_hosts, order_nodes, differ_nodes, describe_node },
	{ "link", begin_links, order_links, differ_links, describe_link },
};

/* Record a difference as text and as JSON; words describe a change, and are empty for what was added or removed. */
struct change_list {
	json_t *list;
	struct buf text;
};

static void change_add(struct change_list *t, const struct kind *k, const struct side *s, const char *change,
		       const struct buf *words)
{
	struct buf name = {0};
	json_t *j;

	k->describe(s, &name);
	buf_printf(&t->text, "%-8s%-7s %s%s%s\n", change, k->name, name.failed ? "?" : name.data,
		   words->len ? ": " : "", words->len ? words->data : "");
	j = json_pack("{s:s, s:s, s:s}", "change", change, "kind", k->name, "name", name.failed ? "?" : name.data);
	if (words->len)
		json_object_set_new(j, "words", json_string(words->data));
	json_array_append_new(t->list, j);
	buf_free(&name);
}

static void kind_compare(struct change_list *t, const struct kind *k, const struct fabric *from,
			 const struct fabric *to)
{
	struct side a = k->begin(from), b = k->begin(to);

	while (a.at < a.end || b.at < b.end) {
		int order = a.at == a.end ? 1 : b.at == b.end ? -1 : k->order(&a, &b);
		struct buf words = {0};

		if (order < 0)
			change_add(t, k, &a, "went", &words);
		else if (order > 0)
			change_add(t, k, &b, "came", &words);
		else if (k->differs(&a, &b, &words))
			change_add(t, k, &b, "changed", &words);
		a.at += order <= 0;
		b.at += order >= 0;
		buf_free(&words);
	}
}

static int changes_print(const struct cmd *c, const struct change_list *t, const char *const names[2], struct err *e)
{
	if (!c->json)
		return t->text.len ? cmd_write(NULL, &t->text, e) : 0;
	return cmd_print_new(json_pack("{s:s, s:s, s:O}", "from", names[0], "to", names[1], "changes", t->list), e);
}

int fabric_diff(const struct cmd *c, const struct fabric *const f[2], const char *const names[2], struct err *e)
{
	struct change_list t = { .list = json_array() };
	int rc;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		kind_compare(&t, &kinds[i], f[0], f[1]);
	rc = t.list && !t.text.failed ? changes_print(c, &t, names, e) : err_set(e, "out of memory");
	if (rc == 0)
		rc = json_array_size(t.list) > 0;
	buf_free(&t.text);
	json_decref(t.list);
	return rc;
}
