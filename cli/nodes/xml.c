/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "xml.h"

#include <string.h>

#include "base/file.h"
#include "child.h"
#include "hwxml/canon.h"
#include "hwview/machine.h"

int xml_strings(const struct buf *xml, const char *name, struct strings *out, struct err *e)
{
	struct tree *t = tree_parse(xml->data ? xml->data : "", xml->len, name, e);
	int rc = t ? strings_make(t, out, e) : -1;

	if (t && rc)
		err_within(e, "%s", name);
	tree_free(t);
	return rc;
}

/* Runs in the child process. */
static int hwloc1_convert(const void *given, struct buf *out, struct err *e)
{
	const struct buf *xml = given;
	hwloc_topology_t t = machine_load(xml->data, xml->len, e);

	return t ? machine_export(t, out, e) : -1;
}

bool xml_is_of_hwloc1(const struct buf *xml)
{
	static const char ROOT[] = "<topology", VERSION[] = " version=\"";
	const char *root = xml->data ? memmem(xml->data, xml->len, ROOT, strlen(ROOT)) : NULL, *end, *version;

	if (!root || !(end = memchr(root, '>', xml->data + xml->len - root)))
		return false;
	version = memmem(root, end - root, VERSION, strlen(VERSION));
	return root[strlen(ROOT)] == '>' ||
		(root[strlen(ROOT)] == ' ' && (!version || !strncmp(version + strlen(VERSION), "1.", 2)));
}

static int read_xml(const char *file, struct buf *out, struct err *e)
{
	struct buf given = {0};
	int rc;

	if (file_read(file, CANON_MAX_BYTES, &given, e))
		return -1;
	if (!xml_is_of_hwloc1(&given)) {
		*out = given;
		return 0;
	}
	if ((rc = cmd_child(hwloc1_convert, &given, out, e)))
		err_within(e, "%s", file);
	buf_free(&given);
	return rc;
}

int xml_file_strings(const char *file, struct strings *out, struct err *e)
{
	struct buf xml = {0};
	int rc = read_xml(file, &xml, e);

	if (rc == 0)
		rc = xml_strings(&xml, file, out, e);
	buf_free(&xml);
	return rc;
}
