/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

#include "base/file.h"
#include "table.h"
#include "hwxml/canon.h"
#include "hwxml/tree.h"

OWNS(struct tree *, tree_free)

#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n" \
	"<topology version=\"2.0\">\n"
#define SETS " cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\""
#define MACHINE(inside) HEAD "<object type=\"Machine\" gp_index=\"1\"" SETS ">\n" inside PU "</object>\n</topology>\n"
#define PU "<object type=\"PU\" os_index=\"40\" gp_index=\"77\"" SETS "/>\n"
#define OBJECT(type, gp, more) "<object type=\"" type "\" gp_index=\"" gp "\"" more "/>\n"

static struct tree *parsed(const char *xml)
{
	struct tree *t = tree_parse(xml, strlen(xml), "node1", &err);

	assert_made(t);
	return t;
}

TEST(facts_are_listed)
{
	static const struct { const char *xml, *facts; } rows[] = {
		{ MACHINE(""), "" },
		{ MACHINE("<info name=\"HostName\" value=\"n&amp;1&lt;&#38;&quot;\"/>\n"),
		  "4\tmachine\tHostName\tn&1<&\"\n" },
		{ MACHINE("<info\n  name=\"A\"\n  value=\"a&#9;&#10;b\"/>\n<info name='B' value='it'/>\n"),
		  "4\tmachine\tA\ta  b\n7\tmachine\tB\tit\n" },
		{ MACHINE("<info name=\"A\" value=\"1\"/><info name=\"A\" value=\"2\"/>\n"), "4\tmachine\tA\t1\n"
		  "4\tmachine\tA\t2\n" },
		{ MACHINE("<object type=\"NUMANode\" os_index=\"3\" gp_index=\"9\" local_memory=\"4096\"" SETS ">\n"
			  "<page_type "
		  "size=\"4096\" count=\"1\"/>\n"
			  "<page_type size=\"2097152\"/>\n</object>\n<info name=\"late\" value=\"\"/>\n"),
		  "8\tmachine\tlate\t\n4\tNUMA node 3\tmemory\t4096\n5\tNUMA node 3\tpages 4096\t1\n"
		  "6\tNUMA node 3\tpages 2097152\t0\n" },
		{ HEAD "<object type=\"Machine\" gp_index=\"1\"" SETS ">\n" PU "</object>\n<cpukind cpuset=\"0x1\">\n"
		  "<info name=\"F\" value=\"1\"/>"
		  "</cpukind>\n<cpukind cpuset=\"0x2\">\n<info name=\"F\" value=\"2\"/></cpukind></topology>",
		  "7\tCPU kind 0\tF\t1\n9\tCPU kind 1\tF\t2\n" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(tree_free) struct tree *t = parsed(rows[i].xml);
		FREED(buf_free) struct buf out = {0};

		buf_puts(&out, "");
		tree_facts(t, &out);
		assert_string_equal(out.data, rows[i].facts);
	}
}

TEST(objects_have_labels)
{
	static const struct { const char *object, *label; } rows[] = {
		{ OBJECT("Package", "5", " os_index=\"7\"" SETS), "package 0" },
		{ OBJECT("NUMANode", "5", " os_index=\"7\"" SETS), "NUMA node 7" },
		{ OBJECT("NUMANode", "5", SETS), "NUMA node 0" },
		{ OBJECT("L3Cache", "5", SETS), "L3 cache 0" },
		{ OBJECT("L1iCache", "5", SETS), "L1 instruction cache 0" },
		{ OBJECT("Group", "5", SETS), "group 0" },
		{ OBJECT("PCIDev", "5", " pci_busid=\"0000:41:00.0\""), "PCI 0000:41:00.0" },
		{ OBJECT("PCIDev", "5", ""), "PCI 0" },
		{ OBJECT("Bridge", "5", " bridge_type=\"0-1\" bridge_pci=\"0000:[00-0a]\""),
		  "host bridge 0000:[00-0a]" },
		{ OBJECT("Bridge", "5", " bridge_type=\"1-1\" pci_busid=\"0000:00:1c.0\""), "bridge 0000:00:1c.0" },
		{ OBJECT("OSDev", "5", " name=\"mlx5_1\" osdev_type=\"3\""), "mlx5_1" },
		{ OBJECT("OSDev", "5", " osdev_type=\"3\""), "device 0" },
		{ OBJECT("Misc", "5", " name=\"something\""), "misc something" },
		{ "<object type=\"Misc\" gp_index=\"5\"><info name=\"Type\" value=\"MemoryModule\"/><info"
		  " name=\"DeviceLocation\" value=\"A1\"/></object>",
		  "memory module A1" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct buf xml = {0}, label = {0};
		OWNED(tree_free) struct tree *t;

		buf_printf(&xml, MACHINE("%s"), rows[i].object);
		t = parsed(xml.data);
		tree_label(t, 1, &label);
		assert_string_equal(label.data, rows[i].label);
		assert_int_equal(tree_by_gp(t, 5), 1);
		assert_int_equal(tree_by_gp(t, 6), -1);
		buf_free(&label);
		tree_label(t, 2, &label);
		assert_string_equal(label.data, "PU 40");
		buf_free(&label);
		buf_free(&xml);
	}
}

/* libxml2 itself counts to 65535. */
TEST(lines_beyond_libxml2s_are_counted)
{
	FREED(buf_free) struct buf xml = {0};
	OWNED(tree_free) struct tree *t;

	buf_puts(&xml, HEAD "<object type=\"Machine\" gp_index=\"1\"" SETS ">");
	for (int i = 0; i < 70000; i++)
		buf_puts(&xml, "\n");
	buf_puts(&xml, "<info name=\"A\" value=\"1\"/>\n" PU "</object></topology>");
	t = parsed(xml.data);
	assert_int_equal(t->objects[0].infos[0].line, 70003);
	assert_int_equal(t->objects[1].line, 70004);
}

TEST(attributes_are_found)
{
	struct tree *t = parsed(MACHINE(OBJECT("PCIDev", "5", " pci_busid=\"0000:41:00.0\" pci_link_speed=\"7.8\"")));
	const struct tree_object *pci = &t->objects[1], *pu = &t->objects[2];

	assert_int_equal(t->n, 3);
	assert_string_equal(tree_attr(pci, "pci_link_speed"), "7.8");
	assert_null(tree_attr(pci, "name"));
	assert_null(tree_info(pci, "pci_busid"));
	assert_int_equal(pci->os_index, -1);
	assert_int_equal(pu->os_index, 40);
	assert_int_equal(pu->parent, 0);
	assert_int_equal(pu->depth, 1);
	assert_int_equal(tree_number(pu, "os_index", 3), 40);
	assert_int_equal(tree_number(pci, "os_index", 3), 3);
	tree_free(t);
	tree_free(NULL);
}

#define HEAD3 "<?xml version=\"1.0\"?><!DOCTYPE topology SYSTEM \"hwloc2.dtd\"><topology version=\"3.0\">\n"

/* What hwloc 3 writes, beside what hwloc 2 writes of the same device. */
TEST(devices_of_hwloc3_are_translated)
{
	static const struct { const char *more, *type; } rows[] = {
		{ "name=\"sda\" osdev_type=\"1\"", "0" },		/* storage */
		{ "name=\"dax0.0\" osdev_type=\"3\"", "0" },		/* and memory */
		{ "name=\":0.0\" osdev_type=\"4\"", "1" },		/* GPU */
		{ "name=\"cuda0\" osdev_type=\"12\"", "5" },		/* and co-processor */
		{ "name=\"nvml0\" osdev_type=\"12\"", "1" },
		{ "name=\"rsmi0\" osdev_type=\"12\"", "1" },
		{ "name=\"eth0\" osdev_type=\"16\"", "2" },		/* network */
		{ "name=\"bxi0\" subtype=\"BXI\" osdev_type=\"16\"", "3" },
		{ "name=\"mlx5_0\" osdev_type=\"48\"", "3" },		/* and OpenFabrics */
		{ "name=\"dma0\" osdev_type=\"64\"", "4" },
		{ "name=\"new\" osdev_type=\"0\"", "99" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf xml = {0};
		OWNED(tree_free) struct tree *t;

		buf_printf(&xml, HEAD3 "<object type=\"Machine\" gp_index=\"1\"" SETS ">"
			   PU "<object type=\"OSDev\" gp_index=\"5\" %s/></object></topology>", rows[i].more);
		t = parsed(xml.data);
		assert_string_equal(tree_attr(&t->objects[2], "osdev_type"), rows[i].type);
	}
}

TEST(hwloc3_reads_as_hwloc2)
{
	static const char doc[] = HEAD3 "<object type=\"Machine\" gp_index=\"1\" id=\"obj1\""
		SETS ">\n<object type=\"L3Cache\" gp_index=\"2\" cache_inclusive=\"1\"" SETS ">\n" PU "</object>\n"
		OBJECT("PCIDev", "5", " pci_type=\"0200 [15b3:1017] [15b3:0003] 01 02\"") "</object>\n"
		"<cpukind cpuset=\"0x1\"><info name=\"F\" value=\"1\"/></cpukind>\n"
		"<info name=\"HostName\" value=\"n1\"/>\n<memtier kinds=\"2\" nodeset=\"0x1\"><info name=\"I\""
		" value=\"1\"/></memtier>\n</topology>\n";
	OWNED(tree_free) struct tree *t = parsed(doc);
	FREED(buf_free) struct buf facts = {0};

	tree_facts(t, &facts);
	assert_string_equal(facts.data, "8\tmachine\tHostName\tn1\n2\tL3 cache 0\tInclusive\t1\n7\tCPU kind 0\tF\t1\n");
	assert_string_equal(tree_attr(&t->objects[3], "pci_type"), "0200 [15b3:1017] [15b3:0003] 01");
	assert_string_equal(t->version, "3.0");
}

TEST(bad_documents_are_refused)
{
	static const char *const rows[] = {
		"", "<topology version=\"2.0\"/>", HEAD "</topology>",
			HEAD "<object type=\"Machine\" gp_index=\"1\"" SETS "/></topology>",
		MACHINE("") "x", MACHINE("<info name=\"A\"/>"), MACHINE("<object type=\"Thing\" gp_index=\"3\"/>"),
		MACHINE(OBJECT("OSDev", "77", " name=\"twice\"")),
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct err e = {""};

		if (tree_parse(rows[i], strlen(rows[i]), "node1", &e))
			fail_msg("row %zu was accepted", i);
		if (strncmp(e.text, "node1:", 6))
			fail_msg("row %zu: %s", i, e.text);
	}
}

/* Every line that a tree tells of is where the document has that element. */
static void line_check(const char *text, unsigned line, const char *element, const char *value)
{
	char *copy, *end;

	for (; line; line--)
		text = strchr(text, '\n') + 1;
	end = strchrnul(text, '\n');
	copy = strndup(text, end - text);
	if (!strstr(copy, element) || (value && !strpbrk(value, "&<>\"") && !strstr(copy, value)))
		fail_msg("%s %s is not in: %s", element, value ? value : "", copy);
	free(copy);
}

TEST(machines_have_their_lines)
{
	for (char **file = cached("machines/*.xml"); *file; file++) {
		FREED(buf_free) struct buf xml = {0};
		OWNED(tree_free) struct tree *t;

		assert_int_equal(file_read(*file, CANON_MAX_BYTES, &xml, NULL), 0);
		t = parsed(xml.data);
		for (size_t k = 0; k < t->n; k++) {
			const struct tree_object *o = &t->objects[k];

			line_check(xml.data, o->line, "<object", o->type->name);
			for (size_t n = 0; n < o->ninfos && k < 8; n++)
				line_check(xml.data, o->infos[n].line, "<", o->infos[n].value);
		}
	}
}

TESTS_MAIN(NULL, NULL)
