/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/std.h"
#include "hwxml/tree.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum number { BY_LOGICAL, BY_OS, BY_NOTHING };

static const struct kind {
	const char *type, *words;
	enum number number;
} kinds[] = {
	{ "PU", "PU", BY_OS },
	{ "Core", "core", BY_LOGICAL },
	{ "L1Cache", "L1 cache", BY_LOGICAL },
	{ "L2Cache", "L2 cache", BY_LOGICAL },
	{ "L3Cache", "L3 cache", BY_LOGICAL },
	{ "L4Cache", "L4 cache", BY_LOGICAL },
	{ "L5Cache", "L5 cache", BY_LOGICAL },
	{ "L1iCache", "L1 instruction cache", BY_LOGICAL },
	{ "L2iCache", "L2 instruction cache", BY_LOGICAL },
	{ "L3iCache", "L3 instruction cache", BY_LOGICAL },
	{ "Group", "group", BY_LOGICAL },
	{ "Die", "die", BY_LOGICAL },
	{ "Package", "package", BY_LOGICAL },
	{ "Machine", "machine", BY_NOTHING },
	{ "NUMANode", "NUMA node", BY_OS },
	{ "MemCache", "memory-side cache", BY_LOGICAL },
	{ "Bridge", "bridge", BY_LOGICAL },
	{ "PCIDev", "PCI", BY_LOGICAL },
	{ "OSDev", "device", BY_LOGICAL },
	{ "Misc", "misc", BY_LOGICAL },
};

static const struct kind *kind_of(const struct tree_object *o)
{
	size_t i = 0;

	while (i < COUNT(kinds) - 1 && strcmp(kinds[i].type, o->type->name))
		i++;
	return &kinds[i];
}

const char *tree_kind(const struct tree_object *o)
{
	const char *type = tree_info(o, "Type");

	if (!strcmp(o->type->name, "Misc") && type && !strcmp(type, "MemoryModule"))
		return "memory module";
	if (!strcmp(o->type->name, "Bridge") && !tree_attr(o, "pci_busid"))
		return "host bridge";
	return kind_of(o)->words;
}

/* The object's own name, which is preferred to a number; NULL if it has none. */
static const char *own_name(const struct tree_object *o)
{
	static const char *const attrs[] = { "pci_busid", "bridge_pci", "name" };
	const char *name = NULL;

	if (o->type->family == FAMILY_TREE || o->type->family == FAMILY_MEMORY)
		return NULL;
	for (size_t i = 0; i < COUNT(attrs) && !name; i++)
		name = tree_attr(o, attrs[i]);
	return name || o->type->family == FAMILY_DEVICE ? name : tree_info(o, "DeviceLocation");
}

void tree_label(const struct tree *t, size_t object, struct buf *out)
{
	const struct tree_object *o = &t->objects[object];
	const struct kind *k = kind_of(o);
	const char *name = own_name(o);

	if (name && !strcmp(o->type->name, "OSDev"))
		buf_puts(out, name);
	else if (name)
		buf_printf(out, "%s %s", tree_kind(o), name);
	else if (k->number == BY_NOTHING)
		buf_puts(out, k->words);
	else if (k->number == BY_OS && o->os_index >= 0)
		buf_printf(out, "%s %ld", k->words, o->os_index);
	else
		buf_printf(out, "%s %u", tree_kind(o), o->logical);
}

/* --- facts --- */

static void write_plain(struct buf *out, const char *s)
{
	size_t from = out->len;

	buf_puts(out, s);
	for (char *p = out->failed ? NULL : out->data + from; p && *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = ' ';
}

static void write_fact(struct buf *out, unsigned line, const char *label, const char *name, const char *value)
{
	buf_printf(out, "%u\t", line);
	write_plain(out, label);
	buf_add(out, "\t", 1);
	write_plain(out, name);
	buf_add(out, "\t", 1);
	write_plain(out, value);
	buf_add(out, "\n", 1);
}

void tree_facts(const struct tree *t, struct buf *out)
{
	struct buf label = {0};
	unsigned kind = 0;

	for (const struct tree_object *o = t->objects; o < t->objects + t->n; o++) {
		const char *memory = tree_attr(o, "local_memory");

		label.len = 0;
		if (memory || o->ninfos)
			tree_label(t, o - t->objects, &label);
		if (memory && !label.failed)
			write_fact(out, o->line, label.data, "memory", memory);
		for (size_t i = 0; i < o->ninfos && !label.failed; i++)
			write_fact(out, o->infos[i].line, label.data, o->infos[i].name, o->infos[i].value);
	}
	for (const struct tree_extra *x = t->extras; x < t->extras + t->nextras; x++) {
		if (x->element->tag == TAG_CPUKIND) {
			label.len = 0;
			buf_printf(&label, "CPU kind %u", kind++);
		} else if (x->element->tag == TAG_INFO && !label.failed) {
			write_fact(out, x->line, label.data, tree_extra_attr(x, "name"), tree_extra_attr(x, "value"));
		}
	}
	out->failed |= label.failed;
	buf_free(&label);
}
