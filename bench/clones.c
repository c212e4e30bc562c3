/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "clones.h"

#include <ctype.h>
#include <fnmatch.h>
#include <hwloc.h>
#include <stdarg.h>

#include "base/array.h"
#include "base/std.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define OPTIONS 20		/* devices that a distinct node has or has not */
#define PAGES_LESS 800		/* at most, of the base's */
#define SERIAL_VARIES 6		/* last characters of a serial number */

struct node {
	uint64_t number, generation;
};

/* A part of the base that each node writes its own way. */
struct place {
	size_t at, len;
	void (*write)(const struct place *p, const char *was, const struct node *n, char *to, size_t *len);
	uint64_t key;				/* places of one key vary together */
	unsigned long long value, step;
};

struct clones {
	struct buf xml;
	struct place *places;	/* in the order of the text */
	size_t n;
};

/* --- the ways to vary */

/* Sebastiano Vigna's splitmix64. */
static uint64_t mixed(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static uint64_t drawn(const struct place *p, const struct node *n, unsigned i)
{
	return mixed(mixed(p->key ^ n->generation << 32) + n->number * 16 + i);
}

static uint64_t text_key(const char *s, size_t len)
{
	uint64_t key = len;

	for (size_t i = 0; i < len; i++)
		key = mixed(key ^ (unsigned char) s[i]);
	return key;
}

static void write_host(const struct place *p, const char *was, const struct node *n, char *to, size_t *len)
{
	(void) p;
	(void) was;
	*len = sprintf(to, "cn%06u", (unsigned) n->number);
}

static char varied(char c, int dice)
{
	if (isdigit((unsigned char) c))
		return '0' + dice % 10;
	if (isupper((unsigned char) c))
		return 'A' + dice % 26;
	return islower((unsigned char) c) ? 'a' + dice % 6 : c;
}

static void write_serial(const struct place *p, const char *was, const struct node *n, char *to, size_t *len)
{
	uint64_t dice = drawn(p, n, 0);
	size_t first = p->len > SERIAL_VARIES ? p->len - SERIAL_VARIES : 0;

	memcpy(to, was, p->len);
	for (size_t i = first; i < p->len; i++, dice >>= 8)
		to[i] = varied(was[i], dice & 255);
	*len = p->len;
}

static void write_uuid(const struct place *p, const char *was, const struct node *n, char *to, size_t *len)
{
	uint64_t dice = 0;
	unsigned digits = 0;

	for (size_t i = 0; i < p->len; i++) {
		bool hex = isxdigit((unsigned char) was[i]) && !isupper((unsigned char) was[i]);

		if (hex && digits++ % 16 == 0)
			dice = drawn(p, n, digits / 16);
		to[i] = hex ? "0123456789abcdef"[dice & 15] : was[i];
		dice = hex ? dice >> 4 : dice;
	}
	*len = p->len;
}

/*
 * The lowest 24 bits of a MAC, an IPoIB or a GUID: a bijection of node numbers, so that no two nodes share an address.
 */
static void write_address(const struct place *p, const char *was, const struct node *n, char *to, size_t *len)
{
	uint64_t low = p->value + n->number * (mixed(p->key) | 1);
	size_t i = p->len;

	memcpy(to, was, p->len);
	for (unsigned digits = 0; digits < 6 && i-- > 0;) {
		if (to[i] == ':')
			continue;
		to[i] = "0123456789abcdef"[low & 15];
		low >>= 4;
		digits++;
	}
	*len = p->len;
}

static void write_lid(const struct place *p, const char *was, const struct node *n, char *to, size_t *len)
{
	(void) was;
	*len = sprintf(to, "0x%x", 1 + (unsigned) ((p->value + n->number) % 0xbfff));
}

/* Firmware and kernel leave a node some pages more or less; never more than was built in. */
static void write_less(const struct place *p, const char *was, const struct node *n, char *to, size_t *len)
{
	(void) was;
	*len = sprintf(to, "%llu", p->value - p->step * (drawn(p, n, 0) % PAGES_LESS));
}

static void write_option(const struct place *p, const char *was, const struct node *n, char *to, size_t *len)
{
	*len = n->number * 0x9e3779b1u >> p->value & 1 ? p->len : 0;
	memcpy(to, was, *len);
}

void clones_make(const struct clones *c, unsigned number, unsigned generation, struct buf *out)
{
	const struct node n = { number, generation };
	const char *from = c->xml.data;
	char *to;

	out->len = 0;
	/* What is written is never longer than 24 bytes or than what was there. */
	if (!(to = buf_reserve(out, c->xml.len + 24 * c->n)))
		return;
	for (const struct place *p = c->places; p < c->places + c->n; p++) {
		size_t kept = c->xml.data + p->at - from, len;

		memcpy(to, from, kept);
		to += kept;
		p->write(p, c->xml.data + p->at, &n, to, &len);
		to += len;
		from = c->xml.data + p->at + p->len;
	}
	memcpy(to, from, c->xml.data + c->xml.len - from);
	out->len = to + (c->xml.data + c->xml.len - from) - out->data;
	out->data[out->len] = '\0';
}

/* --- the base's lines */

struct line {
	size_t at, len;		/* with its end */
	unsigned last;		/* the line where the object that opens here ends; else this one */
	int parent;		/* the line of the object around, -1 for none */
};

struct lines {
	const char *text;
	struct line *list;
	unsigned n;
};

static bool begins(const struct lines *l, unsigned i, const char *word)
{
	const char *p = l->text + l->list[i].at;

	return !strncmp(p + strspn(p, " "), word, strlen(word));
}

static bool closes_itself(const struct lines *l, unsigned i)
{
	const struct line *line = &l->list[i];

	return line->len > 3 && !memcmp(l->text + line->at + line->len - 3, "/>\n", 3);
}

static int lines_make(const struct buf *xml, const char *name, struct lines *l, struct err *e)
{
	size_t n = 1;
	int open = -1;

	for (const char *p = xml->data; (p = strchr(p, '\n')); p++)
		n++;
	*l = (struct lines){ .text = xml->data, .list = calloc(n, sizeof(*l->list)) };
	for (const char *p = xml->data; l->list && *p; l->n++) {
		size_t len = strcspn(p, "\n");
		struct line *line = &l->list[l->n];

		len += p[len] == '\n';
		*line = (struct line){ .at = p - xml->data, .len = len, .last = l->n, .parent = open };
		p += len;
		if (begins(l, l->n, "<object ") && !closes_itself(l, l->n)) {
			open = l->n;
		} else if (open >= 0 && begins(l, l->n, "</object>")) {
			l->list[open].last = l->n;
			open = l->list[open].parent;
		}
	}
	if (l->list && l->n && open == -1)
		return 0;
	free(l->list);
	return err_set(e, "%s: not a topology with one element a line", name);
}

/* A value in the text. */
struct span {
	size_t at, len;
};

/* Of the attribute in line i: 0, -1 when it has none. */
static int attribute(const struct lines *l, unsigned i, const char *name, struct span *out)
{
	const char *p = l->text + l->list[i].at, *end = p + l->list[i].len, *stop;
	char key[40];
	int n = snprintf(key, sizeof(key), " %s=\"", name);

	if (!(p = memmem(p, end - p, key, n)) || !(stop = memchr(p + n, '"', end - p - n)))
		return -1;
	*out = (struct span){ p + n - l->text, stop - p - n };
	return 0;
}

static bool is_object(const struct lines *l, unsigned i, const char *type)
{
	struct span s;

	return begins(l, i, "<object ") && !attribute(l, i, "type", &s) && strlen(type) == s.len &&
		!memcmp(l->text + s.at, type, s.len);
}

static unsigned long long number_at(const struct lines *l, unsigned i, const char *name)
{
	struct span s;

	return attribute(l, i, name, &s) ? 0 : strtoull(l->text + s.at, NULL, 0);
}

/* The page type that most of a NUMA node's memory has: its line, or 0. */
static unsigned page_line(const struct lines *l, unsigned numa)
{
	unsigned best = 0;

	for (unsigned i = numa; i <= l->list[numa].last; i++)
		if (begins(l, i, "<page_type ") &&
		    number_at(l, i, "count") > (best ? number_at(l, best, "count") : 2 * PAGES_LESS))
			best = i;
	return best;
}

/* --- where nodes differ */

static int add_place(struct clones *c, struct place p)
{
	struct place *more = array_add(c->places, c->n);

	if (!more)
		return -1;
	*more = p;
	return 0;
}

/* The lowest 24 bits of an address as text. */
static unsigned long long low_bits(const char *s, size_t len)
{
	unsigned long long value = 0;
	unsigned digits = 0;

	for (size_t i = len; i-- > 0 && digits < 6;)
		if (s[i] != ':')
			value |= (unsigned long long) strtoul((char[]){ s[i], '\0' }, NULL, 16) << 4 * digits++;
	return value;
}

static bool has_digit(const char *s, size_t len)
{
	while (len && !isdigit((unsigned char) s[len - 1]))
		len--;
	return len;
}

static const struct info_kind {
	const char *pattern;
	void (*write)(const struct place *p, const char *was, const struct node *n, char *to, size_t *len);
} info_kinds[] = {
	{ "HostName", write_host }, { "*Serial*", write_serial }, { "*UUID", write_uuid }, { "Address", write_address },
	{ "*GUID", write_address }, { "Port*GID*", write_address }, { "Port*LID", write_lid },
};

/* What stands for none is the same everywhere: a serial number in words, an address of zeros. */
static int find_info(struct clones *c, const struct lines *l, unsigned i)
{
	struct span name, value;
	char key[64];

	if (attribute(l, i, "name", &name) || attribute(l, i, "value", &value))
		return 0;
	snprintf(key, sizeof(key), "%.*s", (int) name.len, l->text + name.at);
	for (const struct info_kind *k = info_kinds; k < info_kinds + COUNT(info_kinds); k++) {
		const char *was = l->text + value.at;
		struct place p = { value.at, value.len, k->write, .key = text_key(was, value.len) };

		if (fnmatch(k->pattern, key, 0))
			continue;
		if (k->write == write_address) {
			p.value = low_bits(was, value.len);
			p.key = p.value >> 8;
		} else if (k->write == write_lid) {
			p.value = strtoul(was, NULL, 0) + p.key % 0xbfff;
		}
		return p.write == write_host || (p.write == write_address ? p.value : has_digit(was, p.len)) ?
			       add_place(c, p) : 0;
	}
	return 0;
}

static int find_memory(struct clones *c, const struct lines *l, unsigned numa)
{
	unsigned page = page_line(l, numa);
	unsigned long long size = page ? number_at(l, page, "size") : 0, whole = number_at(l, numa, "local_memory");
	struct span memory, count;

	if (!page || attribute(l, numa, "local_memory", &memory) || attribute(l, page, "count", &count))
		return 0;
	return add_place(c, (struct place){ memory.at, memory.len, write_less, numa, whole, size }) ||
		add_place(c, (struct place){ count.at, count.len, write_less, numa, number_at(l, page, "count"), 1 });
}

#define OPTION_TYPE "pci_type=\"0880 [8086:2f"

static int find_option(struct clones *c, const struct lines *l, unsigned i, unsigned *found)
{
	const struct line *line = &l->list[i];

	if (*found == OPTIONS || !memmem(l->text + line->at, line->len, OPTION_TYPE, strlen(OPTION_TYPE)))
		return 0;
	return add_place(c, (struct place){ line->at, line->len, write_option, .value = (*found)++ });
}

static int find_places(struct clones *c, const struct lines *l, bool distinct)
{
	unsigned options = 0;

	for (unsigned i = 0; i < l->n; i++) {
		int rc = 0;

		if (begins(l, i, "<info "))
			rc = find_info(c, l, i);
		else if (is_object(l, i, "NUMANode"))
			rc = find_memory(c, l, i);
		else if (distinct && closes_itself(l, i))
			rc = find_option(c, l, i, &options);
		if (rc)
			return -1;
	}
	return 0;
}

/* --- changes to the base itself */

static int xml_splice(struct buf *xml, size_t at, size_t removed, const char *text, size_t len)
{
	if (!buf_reserve(xml, len))
		return -1;
	memmove(xml->data + at + len, xml->data + at + removed, xml->len - at - removed + 1);
	memcpy(xml->data + at, text, len);
	xml->len += len - removed;
	return 0;
}

static size_t line_end(const struct lines *l, unsigned i)
{
	return l->list[i].at + l->list[i].len;
}

static int cut_object(struct buf *xml, const struct lines *l, unsigned i)
{
	return xml_splice(xml, l->list[i].at, line_end(l, l->list[i].last) - l->list[i].at, "", 0);
}

static unsigned children(const struct lines *l, unsigned i)
{
	unsigned n = 0;

	for (unsigned k = i + 1; k < l->list[i].last; k = l->list[k].last + 1)
		n += begins(l, k, "<object ");
	return n;
}

/* An object together with those around it that hold nothing else: a core with its caches, a card with its bridge. */
static unsigned whole_of(const struct lines *l, unsigned i)
{
	struct span type;

	for (int up; (up = l->list[i].parent) >= 0 && children(l, up) == 1; i = up)
		if (attribute(l, up, "type", &type) ||
		    (l->text[type.at] != 'L' && memcmp(l->text + type.at, "Bridge", 6)))
			break;
	return i;
}

static bool is_card(const struct lines *l, unsigned i)
{
	if (!is_object(l, i, "PCIDev"))
		return false;
	for (unsigned k = i + 1; k < l->list[i].last; k++)
		if (is_object(l, k, "OSDev") &&
		    (number_at(l, k, "osdev_type") == 2 || number_at(l, k, "osdev_type") == 3))
			return true;
	return false;
}

/* A core that may go: its package keeps others. */
static bool is_spare_core(const struct lines *l, unsigned i)
{
	if (!is_object(l, i, "Core"))
		return false;
	for (unsigned k = l->list[whole_of(l, i)].parent + 1, cores = 0; k < l->n && l->list[k].parent >= 0; k++)
		if (is_object(l, k, "Core") && l->list[whole_of(l, k)].parent == l->list[whole_of(l, i)].parent &&
		    ++cores == 2)
			return true;
	return false;
}

static bool is_memory(const struct lines *l, unsigned i)
{
	return is_object(l, i, "NUMANode") && page_line(l, i);
}

/* One of the objects for which `is` holds: its line, or -1. */
static int pick(const struct lines *l, bool (*is)(const struct lines *l, unsigned i), unsigned which)
{
	unsigned n = 0;

	for (unsigned i = 0; i < l->n; i++)
		n += is(l, i);
	which = n ? which % n : 0;
	for (unsigned i = 0; n && i < l->n; i++)
		if (is(l, i) && !which--)
			return i;
	return -1;
}

static int lose_card(struct buf *xml, const struct lines *l, unsigned card)
{
	return cut_object(xml, l, whole_of(l, card));
}

/* A set as hwloc writes it, in an attribute of line i: 0, -1 without it. */
static int set_read(const struct lines *l, unsigned i, const char *name, struct span *s, hwloc_bitmap_t set)
{
	char *text = attribute(l, i, name, s) ? NULL : strndup(l->text + s->at, s->len);
	int rc = text ? hwloc_bitmap_sscanf(set, text) : -1;

	free(text);
	return rc;
}

/* Take the CPUs `gone` out of one attribute of line i. */
static int narrow(struct buf *xml, const struct lines *l, unsigned i, const char *name, hwloc_const_bitmap_t gone)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	char *text = NULL;
	struct span s;
	int rc = 0;

	if (set_read(l, i, name, &s, set) == 0 && hwloc_bitmap_intersects(set, gone)) {
		hwloc_bitmap_andnot(set, set, gone);
		rc = hwloc_bitmap_asprintf(&text, set) < 0 ? -1 : xml_splice(xml, s.at, s.len, text, strlen(text));
	}
	free(text);
	hwloc_bitmap_free(set);
	return rc;
}

/* From the last line to the first, so that what is still to be read stands where it stood. */
static int lose_core(struct buf *xml, const struct lines *l, unsigned core)
{
	static const char *const sets[] = { "initiator_cpuset", "allowed_cpuset", "cpuset" };
	hwloc_bitmap_t gone = hwloc_bitmap_alloc();
	unsigned top = whole_of(l, core);
	struct span s;
	int rc = set_read(l, core, "cpuset", &s, gone);

	for (unsigned i = l->n; rc == 0 && i-- > 0;) {
		if (i == top)
			rc = cut_object(xml, l, top);
		for (size_t k = 0; rc == 0 && (i < top || i > l->list[top].last) && k < COUNT(sets); k++)
			rc = narrow(xml, l, i, sets[k], gone);
	}
	hwloc_bitmap_free(gone);
	return rc;
}

static int lose_memory(struct buf *xml, const struct lines *l, unsigned numa)
{
	unsigned page = page_line(l, numa);
	unsigned long long count = number_at(l, page, "count"), size = number_at(l, page, "size");
	unsigned long long whole = number_at(l, numa, "local_memory");
	struct span memory, pages;
	char text[24];

	if (attribute(l, numa, "local_memory", &memory) || attribute(l, page, "count", &pages))
		return -1;
	if (xml_splice(xml, pages.at, pages.len, text, sprintf(text, "%llu", count / 2)))
		return -1;
	return xml_splice(xml, memory.at, memory.len, text, sprintf(text, "%llu", whole - (count - count / 2) * size));
}

/* The next bus where nothing is yet, at half the speed. */
static int move_card(struct buf *xml, const struct lines *l, unsigned card)
{
	unsigned domain, bus, device, function;
	char text[40], key[64];
	struct span id, speed;

	if (attribute(l, card, "pci_busid", &id) || attribute(l, card, "pci_link_speed", &speed) ||
	    sscanf(l->text + id.at, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
		return -1;
	do {
		bus = (bus + 1) & 255;
		snprintf(text, sizeof(text), "%04x:%02x:%02x.%x", domain, bus, device, function);
		snprintf(key, sizeof(key), " pci_busid=\"%s\"", text);
	} while (strstr(xml->data, key));
	memcpy(xml->data + id.at, text, id.len);
	return xml_splice(xml, speed.at, speed.len, text, sprintf(text, "%f", strtod(l->text + speed.at, NULL) / 2));
}

static const struct variant_kind {
	const char *name, *what;
	bool (*is)(const struct lines *l, unsigned i);
	int (*change)(struct buf *xml, const struct lines *l, unsigned i);
} variants[VARIANT_COUNT] = {
	[VARIANT_NONE] = { "none", NULL, NULL, NULL },
	[VARIANT_NIC] = { "nic", "network card", is_card, lose_card },
	[VARIANT_CORE] = { "core", "core beside others", is_spare_core, lose_core },
	[VARIANT_DIMM] = { "dimm", "memory", is_memory, lose_memory },
	[VARIANT_PCI] = { "pci", "network card", is_card, move_card },
};

int variant_parse(const char *name)
{
	for (int v = 0; v < VARIANT_COUNT; v++)
		if (!strcmp(variants[v].name, name))
			return v;
	return -1;
}

/* --- what a base may lack */

struct growth {
	struct buf text;
	unsigned long long gp;
	unsigned domain, devices;	/* of the host bridge being written */
	int depth;
};

/* Lines, indented as deep as the host bridge. */
__attribute__((format(printf, 2, 3))) static void add(struct growth *g, const char *fmt, ...)
{
	char text[2048], *save = NULL;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		buf_printf(&g->text, "%*s%s\n", g->depth, "", line);
}

static void open_device(struct growth *g, const char *type, const char *speed, const char *end)
{
	unsigned i = g->devices++;

	add(g, "  <object type=\"PCIDev\" gp_index=\"%llu\" pci_busid=\"%04x:%02x:%02x.%x\" pci_type=\"%s\" "
	    "pci_link_speed=\"%s\"%s>", g->gp++, g->domain, 1 + i / 256, i / 8 % 32, i % 8, type, speed, end);
}

#define INFO(name, value) "<info name=\"" name "\" value=\"" value "\"/>\n"

static void add_cards(struct growth *g, unsigned package)
{
	unsigned high = 0x2a + package, low = 2 * package;

	for (unsigned port = low; port < low + 2; port++) {
		open_device(g, "0200 [8086:1563] [15d9:0847] 01", "3.938462", "");
		add(g, "    " INFO("PCIVendor", "Intel Corporation")
		    "    " INFO("PCIDevice", "Ethernet Controller X550")
		    "    <object type=\"OSDev\" gp_index=\"%llu\" name=\"eth%u\" osdev_type=\"2\">\n"
		    "      " INFO("Address", "3c:ec:ef:%02x:5a:%02x")
		    "    </object>\n"
		    "  </object>", g->gp++, port, 16 + package, port);
	}
	open_device(g, "0207 [15b3:101b] [15b3:0007] 00", "31.507692", "");
	add(g, "    " INFO("PCIVendor", "Mellanox Technologies") "    " INFO("PCIDevice", "MT28908 Family [ConnectX-6]")
	    "    <object type=\"OSDev\" gp_index=\"%llu\" name=\"ib%u\" osdev_type=\"2\">\n"
	    "      " INFO("Address", "00:00:10:29:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:%02x:4c:%02x")
	    "      " INFO("Port", "1")
	    "    </object>", g->gp++, package, high, low);
	add(g, "    <object type=\"OSDev\" gp_index=\"%llu\" name=\"mlx5_%u\" osdev_type=\"3\">\n"
	    "      " INFO("NodeGUID", "b859:9f03:00%02x:4c%02x")
	    "      " INFO("SysImageGUID", "b859:9f03:00%02x:4c%02x")
	    "      " INFO("Port1State", "4")
	    "      " INFO("Port1LID", "0x%x")
	    "      " INFO("Port1LMC", "0")
	    "      " INFO("Port1GID0", "fe80:0000:0000:0000:b859:9f03:00%02x:4c%02x")
	    "    </object>\n"
	    "  </object>", g->gp++, package, high, low, high, low, 0x100 + package, high, low);
}

/* What a processor shows of itself on PCI when everything is exported. */
static void add_filler(struct growth *g)
{
	static const char *const names[] = { "Home Agent", "QPI Link 0", "R3 QPI Link Monitor", "Power Control Unit",
		"Integrated Memory Controller Channel Target Address Decoder", "Buffered Ring Agent" };
	unsigned n = g->devices;
	char type[40];

	snprintf(type, sizeof(type), "0880 [8086:6f%02x] [8086:6f%02x] 01", n % 256, n % 256);
	open_device(g, type, "0.000000", "");
	add(g, "    " INFO("PCISlot", "%u") "    " INFO("PCIVendor", "Intel Corporation")
	    "    " INFO("PCIDevice", "Xeon E7 v4/Xeon E5 v4/Xeon E3 v4/Xeon D %s %u")
	    "  </object>", 2 + n, names[n % COUNT(names)], n / 8);
}

/* The devices that one package gets: a host bridge around them all, or nothing. */
static void grow_package(struct growth *g, unsigned package, bool cards, bool options, size_t pad)
{
	size_t from = g->text.len, empty;
	char type[40];

	g->domain = 16 + package;
	g->devices = 0;
	add(g, "<object type=\"Bridge\" gp_index=\"%llu\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"%04x:[00-ff]\">",
	    g->gp++, g->domain);
	empty = g->text.len;
	if (cards)
		add_cards(g, package);
	for (unsigned i = 0; options && i < OPTIONS; i++) {
		snprintf(type, sizeof(type), "0880 [8086:2f%02x] [8086:0000] 02", g->devices % 256);
		open_device(g, type, "0.000000", "/");
	}
	while (!g->text.failed && g->text.len - from < pad)
		add_filler(g);
	if (g->text.len == empty)
		g->text.len = from;
	else
		add(g, "</object>");
}

static void grow_machine(struct growth *g, const char *xml)
{
	static const struct {
		const char *name, *value;
	} infos[] = {
		{ "HostName", "cn000000" }, { "DMIProductSerial", "S211795X9C04117" },
		{ "DMIProductUUID", "5a2f0a2e-91c7-4d0f-8e35-0c42a1b86d17" },
	};
	char key[40];

	for (size_t i = 0; i < COUNT(infos); i++) {
		snprintf(key, sizeof(key), "<info name=\"%s\"", infos[i].name);
		if (!strstr(xml, key))
			add(g, "  <info name=\"%s\" value=\"%s\"/>", infos[i].name, infos[i].value);
	}
}

static bool is_machine(const struct lines *l, unsigned i)
{
	return is_object(l, i, "Machine");
}

/* Put what was written in before offset `at` of the text. */
static int plant(struct buf *xml, struct growth *g, size_t at)
{
	int rc = g->text.failed ? -1 : xml_splice(xml, at, 0, g->text.data ? g->text.data : "", g->text.len);

	g->text.len = 0;
	return rc;
}

static int grow(struct buf *xml, const struct lines *l, const struct clones_how *how)
{
	bool cards = !strstr(l->text, "<info name=\"Address\"");
	size_t more = how->pad > xml->len ? how->pad - xml->len : 0;
	struct growth g = { .gp = 1 };
	unsigned packages = 0, left;
	int machine = pick(l, is_machine, 0), rc = 0;

	for (unsigned i = 0; i < l->n; i++) {
		unsigned long long gp = number_at(l, i, "gp_index");

		g.gp = gp >= g.gp ? gp + 1 : g.gp;
		packages += is_object(l, i, "Package");
	}
	if (machine < 0 || l->list[machine].last == (unsigned) machine)
		return -1;
	/* From the last to the first: the lines before stand where they stood. */
	left = packages;
	for (unsigned i = l->n; rc == 0 && left && i-- > 0;) {
		if (!is_object(l, i, "Package"))
			continue;
		left--;
		g.depth = strspn(l->text + l->list[i].at, " ") + 2;
		grow_package(&g, left, cards, how->distinct && !left, more / packages);
		rc = plant(xml, &g, l->list[l->list[i].last].at);
	}
	g.depth = strspn(l->text + l->list[machine].at, " ");
	grow_machine(&g, l->text);
	rc = rc || plant(xml, &g, line_end(l, machine)) ? -1 : 0;
	buf_free(&g.text);
	return rc;
}

static int change(struct buf *xml, const char *name, const struct clones_how *how, bool grows, struct err *e)
{
	const struct variant_kind *v = &variants[how->variant];
	struct buf before = {0};
	struct lines l;
	int at = -1, rc = -1;

	if (!grows && !v->is)
		return 0;
	/* The lines are those of a copy: what is read must not move while it is edited. */
	buf_add(&before, xml->data, xml->len);
	if (!before.failed && lines_make(&before, name, &l, e) == 0) {
		if (grows)
			rc = grow(xml, &l, how) ? err_set(e, "%s: no machine that could be cloned", name) : 0;
		else if ((at = pick(&l, v->is, how->which)) < 0)
			err_set(e, "%s: there is no %s", name, v->what);
		else
			rc = v->change(xml, &l, at) ? err_set(e, "%s: line %d cannot be changed", name, at + 1) : 0;
		free(l.list);
	}
	buf_free(&before);
	return rc;
}

struct clones *clones_new(const char *xml, size_t len, const char *name, const struct clones_how *how, struct err *e)
{
	struct clones *c = calloc(1, sizeof(*c));
	struct lines l = {0};

	if (!c)
		goto memory;
	buf_add(&c->xml, xml, len);
	if (c->xml.failed)
		goto memory;
	if (change(&c->xml, name, how, true, e) || change(&c->xml, name, how, false, e) ||
	    lines_make(&c->xml, name, &l, e))
		goto error;
	if (find_places(c, &l, how->distinct)) {
		free(l.list);
		goto memory;
	}
	free(l.list);
	return c;
memory:
	err_set(e, "%s: out of memory", name);
error:
	clones_free(c);
	return NULL;
}

void clones_free(struct clones *c)
{
	if (!c)
		return;
	buf_free(&c->xml);
	free(c->places);
	free(c);
}
