/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/file.h"
#include "base/log.h"
#include "child.h"
#include "hwview/machine.h"
#include "hwxml/canon.h"
#include "nodes.h"
#include "shape/inventory.h"

/* --- the strings of a file --- */

/*
 * The synthetic strings of an XML topology; name is used in errors. 0, or -1 with out untouched. Free with
 * strings_free.
 */
static int xml_strings(const struct buf *xml, const char *name, struct strings *out, struct err *e)
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

/* A file of hwloc 2, or of hwloc 1, which hwloc itself converts. */
int xml_file_strings(const char *file, struct strings *out, struct err *e)
{
	struct buf xml = {0}, converted = {0};
	int rc;

	if (file_read(file, CANON_MAX_BYTES, &xml, e))
		return -1;
	if (!xml_is_of_hwloc1(&xml))
		rc = xml_strings(&xml, file, out, e);
	else if ((rc = cmd_child(hwloc1_convert, &xml, CHILD_SECONDS, &converted, e)))
		err_within(e, "%s", file);
	else
		rc = xml_strings(&converted, file, out, e);
	buf_free(&converted);
	buf_free(&xml);
	return rc;
}

/* --- the command --- */

struct args {
	struct cmd_words files;
};

static const struct cmd_syntax syntax = {
	NULL, "FILE.xml...",
	"Print the synthetic strings of topologies at each precision, and whether hwloc's own syntax can express them.",
	CMD_WORDS(files), "at least one FILE", NULL,
};

static const struct {
	const char *name;
	size_t offset;
} precisions[] = {
	{ "cores", offsetof(struct strings, cores) },
	{ "hierarchy", offsetof(struct strings, hierarchy) },
	{ "detail", offsetof(struct strings, detail) },
	{ "allocation", offsetof(struct strings, allocation) },
};
#define PRECISIONS (sizeof(precisions) / sizeof(precisions[0]))

struct described {
	const char *file;
	struct strings strings;
	bool hwloc[PRECISIONS];		/* hwloc's own syntax can express it */
};

static const char *text_at(const struct strings *s, size_t precision)
{
	return *(char *const *) ((const char *) s + precisions[precision].offset);
}

/* In a child: the topology of a synthetic string, as XML. */
static int synthetic_to_xml(const void *given, struct buf *out, struct err *e)
{
	hwloc_topology_t t;

	if (hwloc_topology_init(&t) || hwloc_topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_ALL) ||
	    hwloc_topology_set_synthetic(t, given) || hwloc_topology_load(t))
		return err_set(e, "hwloc does not accept this synthetic string");
	return machine_export(t, out, e);
}

/* hwloc can express a string if the topology that it builds from it has the same string. */
static bool hwloc_expresses(const char *text, size_t precision)
{
	struct strings drawn = {0};
	struct buf xml = {0};
	bool same = cmd_child(synthetic_to_xml, text, CHILD_SECONDS, &xml, NULL) == 0 &&
		    xml_strings(&xml, "", &drawn, NULL) == 0 && !strcmp(text_at(&drawn, precision), text);

	strings_free(&drawn);
	buf_free(&xml);
	return same;
}

static json_t *as_json(const struct described *t)
{
	char name[SHAPE_NAME];
	json_t *j;

	shape_name(t->strings.allocation, name);
	j = json_pack("{s:s, s:i, s:i, s:s}", "file", t->file, "ncores", (int) t->strings.ncores,
		      "npus", (int) t->strings.npus, "shape", name);
	for (size_t i = 0; i < PRECISIONS; i++)
		json_object_set_new(j, precisions[i].name,
				    json_pack("{s:s, s:b}", "text", text_at(&t->strings, i),
					      "hwloc", (int) t->hwloc[i]));
	return j;
}

int cmd_shape(struct cmd *c, int argc, char **argv, struct err *e)
{
	json_t *files = json_array(), *answer = json_pack("{s:o}", "files", files);
	struct args a = {0};
	int rc = cmd_parse(c, &syntax, &a, argc, argv, e);

	for (int i = 0; rc == 0 && i < a.files.n; i++) {
		struct described t = { .file = a.files.list[i] };

		if (xml_file_strings(t.file, &t.strings, e)) {
			log_error("shape: %s", e->text);
			c->status = EXIT_FAILURE;
			continue;
		}
		for (size_t k = 0; k < PRECISIONS; k++)
			t.hwloc[k] = hwloc_expresses(text_at(&t.strings, k), k);
		if (c->json)
			json_array_append_new(files, as_json(&t));
		else {
			const struct strings *s = &t.strings;
			bool colour = isatty(STDOUT_FILENO);
			char name[SHAPE_NAME];

			shape_name(s->allocation, name);
			printf("%s%s%s: %u core%s, %u PU%s, %s\n", colour ? "\033[1m" : "", t.file,
			       colour ? "\033[0m" : "", s->ncores, PLURAL(s->ncores), s->npus, PLURAL(s->npus), name);
			for (size_t p = 0; p < PRECISIONS; p++)
				printf("  %-10s  %s%-5s%s  %s\n", precisions[p].name,
				       !colour ? "" : t.hwloc[p] ? "\033[32m" : "\033[33m",
				       t.hwloc[p] ? "hwloc" : "ours", colour ? "\033[0m" : "", text_at(s, p));
		}
		strings_free(&t.strings);
	}
	if (rc == 0 && c->json)
		rc = cmd_print_json(answer, e);
	json_decref(answer);
	return rc;
}
