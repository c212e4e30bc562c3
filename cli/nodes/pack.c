/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "cmd.h"
#include "packing.h"
#include "table.h"

struct args {
	struct cmd_words files;
};

static const struct cmd_syntax syntax = {
	NULL, "FILE...", "Encode XML files as the registry would, and print the size of each. Nothing is written.",
	CMD_WORDS(files), "at least one FILE", NULL,
};

static const char *const kinds[] = { [PACKED_BASE] = "base", [PACKED_FIELDS] = "fields", [PACKED_PATCH] = "patch" };

struct totals {
	size_t bases, diffs, diff_bytes, base_bytes, xml_bytes;
};

static struct totals totals_of(const struct packing *p)
{
	struct totals t = { .base_bytes = p->layout_bytes };

	for (size_t i = 0; i < p->n; i++) {
		const struct packed *f = &p->files[i];
		bool base = f->kind == PACKED_BASE;

		t.bases += base;
		t.diffs += !base;
		*(base ? &t.base_bytes : &t.diff_bytes) += f->bytes;
		t.xml_bytes += f->xml_bytes;
	}
	return t;
}

static const char *base_of(const struct packing *p, const struct packed *f)
{
	return f->base < 0 ? NULL : p->files[f->base].file;
}

/* --- for programs --- */

static json_t *json_of_file(const struct packing *p, const struct packed *f)
{
	return json_pack("{ss ss ss? sI sI ss}", "file", f->file, "kind", kinds[f->kind], "base", base_of(p, f),
			 "bytes", (json_int_t) f->bytes, "xml_bytes", (json_int_t) f->xml_bytes, "sha256", f->sha256);
}

static int print_json(const struct packing *p, struct err *e)
{
	struct totals t = totals_of(p);
	json_t *files = json_array();

	for (size_t i = 0; i < p->n; i++)
		if (json_array_append_new(files, json_of_file(p, &p->files[i]))) {
			json_decref(files);
			return cmd_print_new(NULL, e);
		}
	return cmd_print_new(json_pack("{so s{sI sI sI sI sI sI sI}}", "files", files, "totals", "nodes",
				       (json_int_t) p->n, "bases", (json_int_t) t.bases, "diffs", (json_int_t) t.diffs,
				       "diff_bytes", (json_int_t) t.diff_bytes, "base_bytes", (json_int_t) t.base_bytes,
				       "xml_bytes", (json_int_t) t.xml_bytes, "form_bytes",
				       (json_int_t) p->layout_bytes), e);
}

/* --- for people --- */

static const struct table_column columns[] = {
	{ "FILE", TABLE_LEFT }, { "SHAPE", TABLE_LEFT }, { "KIND", TABLE_LEFT },
	{ "BYTES", TABLE_RIGHT }, { "XML", TABLE_RIGHT }, { "BASE", TABLE_LEFT },
	{0},
};

static int print_files(const struct packing *p, struct err *e)
{
	struct table *t = table_new(columns);

	for (size_t i = 0; i < p->n; i++) {
		const struct packed *f = &p->files[i];

		table_cell(t, "%s", f->file);
		table_cell(t, "%s", f->shape);
		table_cell(t, "%s", kinds[f->kind]);
		table_cell(t, "%zu", f->bytes);
		table_cell(t, "%zu", f->xml_bytes);
		table_cell(t, "%s", f->base < 0 ? "-" : base_of(p, f));
	}
	return table_finish(t, e);
}

static int print_table(const struct packing *p, struct err *e)
{
	struct totals t = totals_of(p);
	size_t bytes = t.base_bytes + t.diff_bytes;

	if (print_files(p, e))
		return -1;
	printf("\nbases   %zu in %zu bytes, %zu of them for field layouts\n", t.bases, t.base_bytes, p->layout_bytes);
	printf("others  %zu in %zu bytes, %.1f per file\n", t.diffs, t.diff_bytes,
	       t.diffs ? (double) t.diff_bytes / t.diffs : 0.0);
	printf("all     %zu in %zu bytes, from %zu bytes of XML: %.1f to 1\n", p->n, bytes, t.xml_bytes,
	       bytes ? (double) t.xml_bytes / bytes : 0.0);
	printf("Verified: each file was rebuilt byte for byte.\n");
	return fflush(stdout) ? err_set(e, "cannot write the table to standard output") : 0;
}

int cmd_pack(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = {0};
	struct packing p;
	int rc;

	if (cmd_parse(c, &syntax, &a, argc, argv, e) || packing_run(a.files.list, a.files.n, &p, e))
		return -1;
	rc = c->json ? print_json(&p, e) : print_table(&p, e);
	packing_free(&p);
	return rc;
}
