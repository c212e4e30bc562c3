/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwxml/xml_grammar.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct xml_attr topology[] = {
	{ "version", VALUE_TEXT, XML_REQUIRED },
};
static const struct xml_attr object[] = {
	{ "type", VALUE_TYPE, XML_REQUIRED },
	{ "os_index", VALUE_NUMBER, XML_OPTIONAL },
	{ "cpuset", VALUE_SET, XML_REQUIRED_SET },
	{ "complete_cpuset", VALUE_SET, XML_REQUIRED_SET },
	{ "allowed_cpuset", VALUE_SET, XML_OPTIONAL },
	{ "nodeset", VALUE_SET, XML_REQUIRED_SET },
	{ "complete_nodeset", VALUE_SET, XML_REQUIRED_SET },
	{ "allowed_nodeset", VALUE_SET, XML_OPTIONAL },
	{ "gp_index", VALUE_GP, XML_REQUIRED },
	{ "id", VALUE_ID, XML_OPTIONAL },
	{ "name", VALUE_TEXT, XML_OPTIONAL },
	{ "subtype", VALUE_TEXT, XML_OPTIONAL },
	{ "local_memory", VALUE_SIZE, XML_OPTIONAL },
	{ "cache_size", VALUE_SIZE, XML_OPTIONAL },
	{ "depth", VALUE_NUMBER, XML_OPTIONAL },
	{ "cache_linesize", VALUE_NUMBER, XML_OPTIONAL },
	{ "cache_associativity", VALUE_NUMBER, XML_OPTIONAL },
	{ "cache_type", VALUE_NUMBER, XML_OPTIONAL },
	{ "cache_inclusive", VALUE_NUMBER, XML_OPTIONAL },
	{ "kind", VALUE_NUMBER, XML_OPTIONAL },
	{ "subkind", VALUE_NUMBER, XML_OPTIONAL },
	{ "dont_merge", VALUE_NUMBER, XML_OPTIONAL },
	{ "bridge_type", VALUE_TEXT, XML_OPTIONAL },
	{ "bridge_pci", VALUE_TEXT, XML_OPTIONAL },
	{ "pci_busid", VALUE_TEXT, XML_OPTIONAL },
	{ "pci_type", VALUE_TEXT, XML_OPTIONAL },
	{ "pci_link_speed", VALUE_TEXT, XML_OPTIONAL },
	{ "osdev_type", VALUE_TEXT, XML_OPTIONAL },
};
static const struct xml_attr info[] = {
	{ "name", VALUE_TEXT, XML_REQUIRED },
	{ "value", VALUE_TEXT, XML_REQUIRED },
};
static const struct xml_attr page_type[] = {
	{ "size", VALUE_SIZE, XML_REQUIRED },
	{ "count", VALUE_SIZE, XML_OPTIONAL },
};
static const struct xml_attr userdata[] = {
	{ "name", VALUE_TEXT, XML_OPTIONAL },
	{ "length", VALUE_NUMBER, XML_REQUIRED },
	{ "encoding", VALUE_TEXT, XML_OPTIONAL },
};
static const struct xml_attr distances[] = {
	{ "type", VALUE_TYPE, XML_REQUIRED },
	{ "nbobjs", VALUE_NUMBER, XML_REQUIRED },
	{ "kind", VALUE_NUMBER, XML_REQUIRED },
	{ "name", VALUE_TEXT, XML_OPTIONAL },
	{ "indexing", VALUE_TEXT, XML_REQUIRED },
};
static const struct xml_attr distances_hetero[] = {
	{ "nbobjs", VALUE_NUMBER, XML_REQUIRED },
	{ "kind", VALUE_NUMBER, XML_REQUIRED },
	{ "name", VALUE_TEXT, XML_OPTIONAL },
	{ "indexing", VALUE_TEXT, XML_OPTIONAL },
};
static const struct xml_attr numbers[] = {
	{ "length", VALUE_NUMBER, XML_REQUIRED },
};
static const struct xml_attr support[] = {
	{ "name", VALUE_TEXT, XML_REQUIRED },
	{ "value", VALUE_NUMBER, XML_OPTIONAL },
};
static const struct xml_attr memattr[] = {
	{ "name", VALUE_TEXT, XML_REQUIRED },
	{ "flags", VALUE_NUMBER, XML_REQUIRED },
};
static const struct xml_attr memattr_value[] = {
	{ "target_obj_type", VALUE_TYPE, XML_REQUIRED },
	{ "target_obj_gp_index", VALUE_REF, XML_REQUIRED },
	{ "value", VALUE_NUMBER, XML_REQUIRED },
	{ "initiator_obj_gp_index", VALUE_REF, XML_OPTIONAL },
	{ "initiator_obj_type", VALUE_TYPE, XML_OPTIONAL },
	{ "initiator_cpuset", VALUE_SET, XML_OPTIONAL },
};
static const struct xml_attr cpukind[] = {
	{ "cpuset", VALUE_SET, XML_REQUIRED },
	{ "forced_efficiency", VALUE_NUMBER, XML_OPTIONAL },
};

static const struct xml_attr memtier[] = {
	{ "kinds", VALUE_NUMBER, XML_REQUIRED },
	{ "nodeset", VALUE_SET, XML_REQUIRED },
};
static const struct xml_attr pci_locality[] = {
	{ "domain", VALUE_TEXT, XML_REQUIRED },
	{ "bus_min", VALUE_TEXT, XML_REQUIRED },
	{ "bus_max", VALUE_TEXT, XML_REQUIRED },
	{ "cpuset", VALUE_SET, XML_REQUIRED },
};

#define IN(tag) (1u << TAG_##tag)
#define SAME(inside) { inside, inside }
#define INFO_IN (IN(OBJECT) | IN(CPUKIND))
#define ATTRS(a) a, COUNT(a)

/* The most frequent first. */
static const struct xml_element elements[] = {
	{ "object", TAG_OBJECT, SAME(IN(TOPOLOGY) | IN(OBJECT)), false, ATTRS(object) },
	{ "info", TAG_INFO, { INFO_IN, INFO_IN | IN(MEMTIER) | IN(TOPOLOGY) }, false, ATTRS(info) },
	{ "page_type", TAG_PAGE_TYPE, { IN(OBJECT), 0 }, false, ATTRS(page_type) },
	{ "userdata", TAG_USERDATA, SAME(IN(OBJECT)), true, ATTRS(userdata) },
	{ "support", TAG_SUPPORT, SAME(IN(TOPOLOGY)), false, ATTRS(support) },
	{ "distances2", TAG_DISTANCES, SAME(IN(TOPOLOGY)), false, ATTRS(distances) },
	{ "distances2hetero", TAG_DISTANCES_HETERO, SAME(IN(TOPOLOGY)), false, ATTRS(distances_hetero) },
	{ "indexes", TAG_INDEXES, SAME(IN(DISTANCES) | IN(DISTANCES_HETERO)), true, ATTRS(numbers) },
	{ "u64values", TAG_VALUES, SAME(IN(DISTANCES) | IN(DISTANCES_HETERO)), true, ATTRS(numbers) },
	{ "memattr", TAG_MEMATTR, SAME(IN(TOPOLOGY)), false, ATTRS(memattr) },
	{ "memattr_value", TAG_MEMATTR_VALUE, SAME(IN(MEMATTR)), false, ATTRS(memattr_value) },
	{ "cpukind", TAG_CPUKIND, SAME(IN(TOPOLOGY)), false, ATTRS(cpukind) },
	{ "memtier", TAG_MEMTIER, { 0, IN(TOPOLOGY) }, false, ATTRS(memtier) },
	{ "pci_locality", TAG_PCI_LOCALITY, { 0, IN(TOPOLOGY) }, false, ATTRS(pci_locality) },
	{ "topology", TAG_TOPOLOGY, SAME(0), false, ATTRS(topology) },
};

static const struct xml_type types[] = {
	{ "PU", FAMILY_TREE, true },
	{ "Core", FAMILY_TREE, true },
	{ "L1Cache", FAMILY_TREE, false },
	{ "L2Cache", FAMILY_TREE, true },
	{ "L3Cache", FAMILY_TREE, true },
	{ "L4Cache", FAMILY_TREE, false },
	{ "L5Cache", FAMILY_TREE, false },
	{ "L1iCache", FAMILY_TREE, false },
	{ "L2iCache", FAMILY_TREE, false },
	{ "L3iCache", FAMILY_TREE, false },
	{ "Group", FAMILY_TREE, false },
	{ "Die", FAMILY_TREE, true },
	{ "Package", FAMILY_TREE, true },
	{ "Machine", FAMILY_TREE, true },
	{ "NUMANode", FAMILY_MEMORY, true },
	{ "MemCache", FAMILY_MEMORY, false },
	{ "Bridge", FAMILY_DEVICE, false },
	{ "PCIDev", FAMILY_DEVICE, false },
	{ "OSDev", FAMILY_DEVICE, false },
	{ "Misc", FAMILY_MISC, false },
};

const struct xml_element *xml_element_find(const char *name)
{
	for (size_t i = 0; i < COUNT(elements); i++)
		if (!strcmp(elements[i].name, name))
			return &elements[i];
	return NULL;
}

const struct xml_type *xml_type_find(const char *name, size_t len)
{
	for (size_t i = 0; i < COUNT(types); i++)
		if (strlen(types[i].name) == len && !memcmp(types[i].name, name, len))
			return &types[i];
	return NULL;
}

const struct xml_attr *xml_attr_find(const struct xml_element *el, const char *name, size_t *at)
{
	for (size_t tries = 0; tries < el->nattrs; tries++) {
		const struct xml_attr *a = &el->attrs[(*at)++ % el->nattrs];

		if (!strcmp(a->name, name))
			return a;
	}
	return NULL;
}

bool xml_family_fits(enum xml_family parent, enum xml_family child)
{
	return child == FAMILY_MISC || parent == child || parent == FAMILY_TREE;
}

static bool number_fits(const char *value, size_t len)
{
	size_t i = len && value[0] == '-';

	if (i == len || len > 20)
		return false;
	while (i < len && isdigit((unsigned char)value[i]))
		i++;
	return i == len;
}

bool xml_value_fits(enum xml_value kind, const char *value, size_t len)
{
	static const char most[] = "18446744073709551615";	/* of VALUE_SIZE */

	switch (kind) {
	case VALUE_SET:
		return len && strspn(value, "0123456789abcdefx,.") >= len;
	case VALUE_TYPE:
		return xml_type_find(value, len);
	case VALUE_NUMBER:
		return number_fits(value, len);
	case VALUE_SIZE:
		return len && *value != '-' && number_fits(value, len) &&
		       (len < strlen(most) || memcmp(value, most, len) <= 0);
	case VALUE_GP:
	case VALUE_REF:
		return len && value[0] != '-' && number_fits(value, len);
	case VALUE_ID:
		return len > 3 && !memcmp(value, "obj", 3) && xml_value_fits(VALUE_GP, value + 3, len - 3);
	case VALUE_TEXT:
		break;
	}
	return true;
}

const char *xml_tag_end(const char *xml, const char *end, unsigned *attrs)
{
	for (*attrs = 0; xml < end && *xml != '>'; xml++) {
		*attrs += *xml == '=';
		if ((*xml == '"' || *xml == '\'') && !(xml = memchr(xml + 1, *xml, end - xml - 1)))
			return NULL;
	}
	return xml < end ? xml : NULL;
}

/* The text from key to the first `end`; *len is 0 if it is not found. */
static const char *span_find(const char *xml, size_t size, const char *key, char end, size_t *len)
{
	const char *from = memmem(xml, size, key, strlen(key)),
		   *to = from ? memchr(from, end, xml + size - from) : NULL;

	*len = to ? to - from : 0;
	return from;
}

bool xml_same_exporter(const char *a, size_t alen, const char *b, size_t blen)
{
	static const struct { const char *key; char end; } marks[] = {
		{ "<topology", '>' }, { "name=\"hwlocVersion\" value=\"", '.' },
	};

	for (size_t i = 0; i < COUNT(marks); i++) {
		size_t n, m;
		const char *x = span_find(a, alen, marks[i].key, marks[i].end, &n);
		const char *y = span_find(b, blen, marks[i].key, marks[i].end, &m);

		if (n != m || (n && memcmp(x, y, n)))
			return false;
	}
	return true;
}
