/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/file.h"
#include "table.h"
#include "topology.h"
#include "hwxml/canon.h"

static struct canon canonical(const struct buf *xml, const char *name)
{
	struct canon c;

	assert_ok(canon_parse(xml->data, xml->len, name, &c, &err));
	return c;
}

static void same_bytes(const struct buf *a, const struct buf *b)
{
	assert_string_equal(a->data, b->data);
	assert_int_equal(a->len, b->len);
}

/* --- what has to hold for every document that is accepted --- */

static void keeps_still(const struct canon *c, const char *name)
{
	FREED(canon_free) struct canon again = canonical(&c->xml, name);

	same_bytes(&c->xml, &again.xml);
}

static void means_the_same(const struct buf *xml, const struct canon *c, const char *name)
{
	OWNED(hwloc_topology_destroy) hwloc_topology_t was = topology_of_xml(xml), is = topology_of_xml(&c->xml);
	FREED(buf_free) struct buf was_xml = topology_export(was), is_xml = topology_export(is);
	FREED(canon_free) struct canon a = canonical(&was_xml, name), b = canonical(&is_xml, name);

	same_bytes(&a.xml, &b.xml);
}

static void holds(const struct buf *xml, const char *name)
{
	FREED(canon_free) struct canon c = canonical(xml, name);

	keeps_still(&c, name);
	means_the_same(xml, &c, name);
}

TEST(accepts_what_hwloc_writes)
{
	static const char *const rows[] = {
		"pu:1", "package:2 [numa] l3:4 core:6 pu:2", "[numa] package:2 l3:1 l2:2 l1:1 core:1 pu:2",
		"package:1 die:2 [numa] [numa] core:4 pu:4", "package:2 group:2 [numa] group:2 core:2 pu:1",
		"package:4 core:32 pu:8",
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(hwloc_topology_destroy) hwloc_topology_t t = topology_of_synthetic(rows[i]);
		FREED(buf_free) struct buf xml = topology_export(t);

		holds(&xml, rows[i]);
	}
}

TEST(accepts_this_machine)
{
	OWNED(hwloc_topology_destroy) hwloc_topology_t t = topology_begin();
	FREED(buf_free) struct buf xml;

	assert_int_equal(hwloc_topology_load(t), 0);
	xml = topology_export(t);
	holds(&xml, "this machine");
}

TEST(accepts_real_machines)
{
	size_t held = 0;

	for (char **file = cached(CORPUS "*.xml"); *file; file++) {
		FREED(buf_free) struct buf xml = {0};

		if (corpus_read(*file, &xml)) {
			holds(&xml, *file);
			held++;
		}
	}
	assert_true(held > 10);
}

/* --- documents by hand --- */

#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
#define SETS "cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\""
#define MACHINE(gp) "<object type=\"Machine\" " SETS " allowed_cpuset=\"0x1\" allowed_nodeset=\"0x1\"" \
	" gp_index=\"" gp "\">"
#define OBJECT(type, gp) "<object type=\"" type "\" os_index=\"0\" " SETS " gp_index=\"" gp "\""
#define BODY MACHINE("7") "<info name=\"HostName\" value=\"a&amp;b\"/>" OBJECT("NUMANode", "3") "/>" \
	OBJECT("Core", "9") ">" OBJECT("PU", "20") "/></object></object>"
#define TOPOLOGY(inside) "<topology version=\"2.0\">" inside "</topology>"
#define DOC(inside) HEAD TOPOLOGY(inside)
#define DOC3(inside) HEAD "<topology version=\"3.0\">" inside "</topology>"
#define TIER "<memtier kinds=\"2\" nodeset=\"0x00000001\"/>"
#define LOCALITY "<pci_locality domain=\"0x0\" bus_min=\"0x0\" bus_max=\"0x1\" cpuset=\"0x00000001\"/>"

TEST(renumbers)
{
	static const char *const rows[][2] = {
		{ "", "" },
		{ "<memattr name=\"X\" flags=\"5\"><memattr_value target_obj_type=\"NUMANode\""
		  " target_obj_gp_index=\"3\" value=\"1\" initiator_obj_gp_index=\"20\""
		  " initiator_obj_type=\"PU\"/></memattr>",
		  "target_obj_gp_index=\"2\" value=\"1\" initiator_obj_gp_index=\"4\"" },
		{ "<distances2 type=\"Core\" nbobjs=\"1\" kind=\"5\" indexing=\"gp\"><indexes length=\"3\">20"
		  " </indexes></distances2>", "<indexes length=\"2\">4 </indexes>" },
		{ "<distances2 type=\"PU\" nbobjs=\"1\" kind=\"5\" indexing=\"os\"><indexes length=\"3\">20"
		  " </indexes></distances2>", "<indexes length=\"3\">20 </indexes>" },
		{ "<distances2hetero nbobjs=\"2\" kind=\"5\"><indexes length=\"12\">Core:9 PU:20"
		  " </indexes></distances2hetero>", "<indexes length=\"12\">Core:3 PU:4 </indexes>" },
		{ "<distances2hetero nbobjs=\"0\" kind=\"5\"><indexes length=\"0\"></indexes></distances2hetero>",
		  "<indexes length=\"0\"></indexes>" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf xml = {0};
		FREED(canon_free) struct canon c;

		buf_printf(&xml, HEAD "<topology version='2.0'>" BODY "%s</topology>", rows[i][0]);
		c = canonical(&xml, rows[i][0]);
		if (!strstr(c.xml.data, rows[i][1]))
			fail_msg("no %s in\n%s", rows[i][1], c.xml.data);
		assert_non_null(strstr(c.xml.data, "value=\"a&amp;b\""));
		assert_string_equal(c.host, "a&b");
		keeps_still(&c, rows[i][0]);
	}
}

TEST(writes_one_form_of_escapes)
{
	static const char doc[] = HEAD "<topology version='2.0'>" MACHINE("1")
		"<info name='&#38;&amp;#38;&lt;&gt;&quot;&apos;&#x41;' value='&#9;&#10;&#13;\xc3\xa4'/>"
		"<userdata length='5'>&lt;&amp;\r\n\"&gt;</userdata>" OBJECT("PU", "2") "/></object></topology>";
	FREED(canon_free) struct canon c;

	assert_ok(canon_parse(doc, strlen(doc), "escapes", &c, &err));
	assert_non_null(strstr(c.xml.data, "    <info name=\"&amp;&amp;#38;&lt;&gt;&quot;'A\""
			       " value=\"&#9;&#10;&#13;\xc3\xa4\"/>\n    <userdata length=\"5\">&lt;&amp;\n"
			       "\"&gt;</userdata>\n"));
	keeps_still(&c, "escapes");
}

TEST(keeps_hwloc3)
{
	static const char doc[] = DOC3(MACHINE("7") OBJECT("L3Cache", "3") " id=\"obj3\" cache_inclusive=\"1\">"
		OBJECT("PU", "20") " id=\"obj20\"/></object></object><info name=\"HostName\" value=\"n1\"/>"
		TIER LOCALITY);
	FREED(canon_free) struct canon c;

	assert_ok(canon_parse(doc, strlen(doc), "hwloc 3", &c, &err));
	assert_non_null(strstr(c.xml.data, "<topology version=\"3.0\">\n"));
	assert_non_null(strstr(c.xml.data, " gp_index=\"2\" id=\"obj2\" cache_inclusive=\"1\">\n"));
	assert_non_null(strstr(c.xml.data, " gp_index=\"3\" id=\"obj3\"/>\n"));
	assert_non_null(strstr(c.xml.data, "\n  " TIER "\n  " LOCALITY "\n</topology>\n"));
	assert_string_equal(c.host, "n1");
	keeps_still(&c, "hwloc 3");
}

TEST(refuses)
{
	static const struct {
		const char *doc, *says;
	} rows[] = {
		{ "", "empty" },
		{ "not XML", "x:1:" },
		{ HEAD, "x:3:" },
		{ DOC(BODY) "<topology/>", "content at the end" },
		{ HEAD "<topology>" BODY "</topology>", "attribute version is missing" },
		{ HEAD "<topology version=\"1.0\">" BODY "</topology>", "version \"1.0\"" },
		{ HEAD "<topology version=\"4.0\">" BODY "</topology>",
		  "neither hwloc 2 nor hwloc 3: version \"4.0\"" },
		{ DOC3(MACHINE("1") OBJECT("PU", "2") " id=\"obj3\"/></object>"), "gp_index 2 has the other id obj3" },
		{ DOC3(MACHINE("1") OBJECT("PU", "2") " id=\"2\"/></object>"), "id=\"2\"" },
		{ DOC3(MACHINE("1") OBJECT("NUMANode", "2") "><page_type size=\"4096\"/></object></object>"),
		  "page_type is not allowed in object" },
		{ DOC(BODY TIER), "memtier is not allowed in topology" },
		{ DOC(BODY LOCALITY), "pci_locality is not allowed in topology" },
		{ DOC(""), "no object" },
		{ DOC(BODY BODY), "more than one root" },
		{ DOC(OBJECT("PU", "1") "/>"), "PU is not allowed inside topology" },
		{ DOC(MACHINE("1") "</object>"), "no PU" },
		{ "<!DOCTYPE topology SYSTEM \"hwloc.dtd\">" TOPOLOGY(BODY), "document type" },
		{ "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\" []>" TOPOLOGY(BODY), "internal DTD subset" },
		{ "<!DOCTYPE topology [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">"
		  "<!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;\">]>" TOPOLOGY(BODY), "document type" },
		{ "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\" [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>"
		  TOPOLOGY(BODY), "internal DTD subset" },
		{ DOC(MACHINE("1") "<info name=\"a\" value=\"&x;\"/></object>"), "entity" },
		{ DOC(MACHINE("1") "&x;</object>"), "entity" },
		{ DOC(BODY "<!-- -->"), "comment" },
		{ DOC(BODY "<?php ?>"), "processing instructions" },
		{ DOC(BODY "<![CDATA[x]]>"), "CDATA" },
		{ DOC(BODY "text"), "text in topology" },
		{ DOC(BODY "<info name=\"a\" value=\"b\"/>"), "info is not allowed in topology" },
		{ DOC(BODY "<script/>"), "script" },
		{ DOC(MACHINE("1") "<x:info xmlns:x=\"u\" name=\"a\" value=\"b\"/></object>"), "namespace" },
		{ DOC(MACHINE("1") "<info name=\"a\" value=\"b\" onload=\"c\"/></object>"),
		  "unknown attribute onload" },
		{ DOC(MACHINE("1") "<info name=\"a\" xml:lang=\"b\" value=\"b\"/></object>"),
		  "unknown attribute lang" },
		{ DOC(MACHINE("1") "<info name=\"a\"/></object>"), "info: attribute value is missing" },
		{ DOC(MACHINE("x")), "gp_index=\"x\"" },
		{ DOC(MACHINE("-1")), "gp_index=\"-1\"" },
		{ DOC(MACHINE("99999999999999999999999")), "gp_index=" },
		{ DOC(MACHINE("1") OBJECT("PU", "1") "/></object>"), "is used by two" },
		{ DOC("<object type=\"Machine\" gp_index=\"1\"/>"), "no cpuset" },
		{ DOC("<object type=\"Machine\" cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\""
		      " gp_index=\"1\"/>"),
		  "no complete_cpuset" },
		{ DOC("<object type=\"Machine\" cpuset=\"zz\" gp_index=\"1\"/>"), "cpuset=\"zz\"" },
		{ DOC("<object type=\"Machine\" " SETS "/>"), "attribute gp_index is missing" },
		{ DOC("<object type=\"Toaster\" " SETS " gp_index=\"1\"/>"), "type=\"Toaster\"" },
		{ DOC(MACHINE("1") OBJECT("Core", "2") "/></object>"), "Core without a PU" },
		{ DOC(MACHINE("1") OBJECT("Core", "2") ">" OBJECT("Core", "3") "/></object></object>"),
		  "Core is not allowed inside Core" },
		{ DOC(MACHINE("1") OBJECT("PU", "2") ">" OBJECT("Core", "3") "/></object></object>"),
		  "Core is not allowed inside PU" },
		{ DOC(MACHINE("1") "<object type=\"OSDev\" gp_index=\"2\">" OBJECT("PU", "3") "/></object></object>"),
		  "PU is not allowed inside OSDev" },
		{ DOC(BODY "<memattr name=\"X\" flags=\"1\"><memattr_value target_obj_type=\"PU\""
		      " target_obj_gp_index=\"4\" value=\"1\"/></memattr>"), "gp_index 4" },
		{ DOC(BODY "<distances2hetero nbobjs=\"1\" kind=\"5\"><indexes length=\"5\">PU:4"
		      " </indexes></distances2hetero>"),
		  "gp_index 4" },
		{ DOC(BODY "<distances2hetero nbobjs=\"1\" kind=\"5\"><indexes length=\"4\">PU:"
		      " </indexes></distances2hetero>"),
		  "indexes" },
		{ DOC(BODY "<distances2hetero nbobjs=\"1\" kind=\"5\"><indexes length=\"4\">X:20"
		      " </indexes></distances2hetero>"),
		  "object type" },
		{ "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>" TOPOLOGY(BODY), "encoding must be UTF-8" },
		{ DOC(MACHINE("1") "<info name=\"a\" value=\"\xff\xfe\"/></object>"), "UTF-8" },
		{ DOC(MACHINE("1") "<info name=\"a\" value=\"&#0;\"/></object>"), "x:3:" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct err e = {0};
		struct canon c;

		if (!canon_parse(rows[i].doc, strlen(rows[i].doc), "x", &c, &e))
			fail_msg("accepted: %s", rows[i].doc);
		if (!strstr(e.text, rows[i].says) || strncmp(e.text, "x:", 2))
			fail_msg("says \"%s\", not \"%s\"", e.text, rows[i].says);
	}
}

TEST(refuses_every_piece)
{
	static const char doc[] = DOC(BODY);
	struct canon c;

	for (size_t n = 0; n < strlen(doc); n++) {
		OWNED(free) char *piece = malloc(n + 1);

		memcpy(piece, doc, n);
		if (!canon_parse(piece, n, "piece", &c, &err))
			fail_msg("accepted the first %zu bytes", n);
	}
	assert_int_equal(canon_parse(doc, strlen(doc), "whole", &c, NULL), 0);
	canon_free(&c);
	assert_int_equal(canon_parse(doc, sizeof(doc), "NUL", &c, NULL), -1);
}

static struct buf nest(unsigned depth)
{
	struct buf xml = {0};

	buf_puts(&xml, HEAD "<topology version=\"2.0\">" MACHINE("1"));
	for (unsigned i = 0; i < depth; i++)
		buf_printf(&xml, OBJECT("Group", "%u") ">", i + 2);
	buf_printf(&xml, OBJECT("PU", "%u") "/>", depth + 2);
	for (unsigned i = 0; i <= depth; i++)
		buf_puts(&xml, "</object>");
	buf_puts(&xml, "</topology>");
	return xml;
}

static struct buf crowd(unsigned objects)
{
	struct buf xml = {0};

	buf_puts(&xml, HEAD "<topology version=\"2.0\">" MACHINE("1") OBJECT("PU", "2") "/>");
	for (unsigned i = 3; i <= objects; i++)
		buf_printf(&xml, "<object type=\"Misc\" gp_index=\"%u\"/>", i);
	buf_puts(&xml, "</object></topology>");
	return xml;
}

TEST(has_limits)
{
	static const struct {
		struct buf (*make)(unsigned);
		unsigned most;
		const char *says;
	} rows[] = {
		{ nest, 61, "64 nested elements" },	/* with topology, Machine and PU */
		{ crowd, 200000, "200000 objects" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf at = rows[i].make(rows[i].most), above = rows[i].make(rows[i].most + 1);
		struct canon c = canonical(&at, "at the limit");
		struct err e = {0};

		canon_free(&c);
		assert_int_equal(canon_parse(above.data, above.len, "above", &c, &e), -1);
		if (!strstr(e.text, rows[i].says))
			fail_msg("says \"%s\", not \"%s\"", e.text, rows[i].says);
	}
}

TESTS_MAIN(NULL, NULL)
