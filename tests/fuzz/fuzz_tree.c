/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fuzz.h"
#include "hwcmp/compare.h"
#include "hwxml/canon.h"

#define SETS "cpuset=\"0x3\" complete_cpuset=\"0x7\" nodeset=\"0x1\" complete_nodeset=\"0x1\""

static const char fixed[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
			    "<topology "
	"version=\"2.0\">"
	"<object type=\"Machine\" os_index=\"0\" " SETS " gp_index=\"1\"><info name=\"HostName\" value=\"n1\"/>"
	"<object type=\"Package\" os_index=\"0\" " SETS " gp_index=\"2\">"
	"<object type=\"NUMANode\" os_index=\"0\" " SETS " gp_index=\"3\" local_memory=\"1073741824\"/>"
	"<object type=\"L3Cache\" " SETS " gp_index=\"4\" cache_size=\"1048576\">"
	"<object type=\"Core\" os_index=\"0\" " SETS " gp_index=\"5\"><object type=\"PU\" os_index=\"0\" " SETS " "
		"gp_index=\"6\"/></object>"
	"<object type=\"Core\" os_index=\"1\" " SETS " gp_index=\"7\"><object type=\"PU\" os_index=\"1\" " SETS " "
		"gp_index=\"8\"/></object>"
	"</object><object type=\"Bridge\" gp_index=\"9\" bridge_type=\"0-1\" bridge_pci=\"0000:[41-41]\">"
	"<object type=\"PCIDev\" gp_index=\"10\" pci_busid=\"0000:41:00.0\" pci_type=\"0207 [15b3:1017] [15b3:0003]"
	" 00\"><object type=\"OSDev\" gp_index=\"11\" name=\"mlx5_0\""
	" osdev_type=\"3\"/></object></object></object></object><distances2 type=\"NUMANode\" nbobjs=\"1\" kind=\"5\""
	" name=\"NUMALatency\" indexing=\"os\"><indexes length=\"2\">0 </indexes><u64values length=\"3\">10"
	" </u64values></distances2><cpukind cpuset=\"0x3\"><info name=\"CoreType\""
	" value=\"big\"/></cpukind></topology>\n";

static void compare(const struct tree *a, const struct tree *b, size_t expected)
{
	struct changes c;

	if (compare_trees(a, b, &c, NULL) || c.n > expected)
		abort();
	for (size_t i = 0; i < c.n; i++)
		if (strncmp(c.list[i].words, c.list[i].object, strlen(c.list[i].object)))
			abort();
	changes_free(&c);
}

/* What is accepted equals itself and its canonical form, and can be compared with another, both ways. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tree *t = tree_parse((const char *)data, size, "fuzz", NULL), *again, *other;
	struct buf facts = {0};
	struct canon c;

	if (!t)
		return 0;
	if (canon_parse((const char *)data, size, "fuzz", &c, NULL))
		abort();
	again = tree_parse(c.xml.data, c.xml.len, "again", NULL);
	canon_free(&c);
	other = tree_parse(fixed, strlen(fixed), "fixed", NULL);
	if (!again || !other || again->n != t->n || again->nextras != t->nextras)
		abort();
	compare(t, t, 0);
	compare(t, again, 0);
	compare(t, other, SIZE_MAX);
	compare(other, t, SIZE_MAX);
	tree_facts(t, &facts);
	buf_free(&facts);
	tree_free(t);
	tree_free(again);
	tree_free(other);
	return 0;
}
