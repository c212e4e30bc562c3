/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/file.h"
#include "base/hash.h"
#include "delta/base_cache.h"
#include "hwxml/canon.h"
#include "nodes.h"
#include "progress.h"
#include "shape/inventory.h"
#include "table.h"

struct args {
	struct cmd_words files;
};

static const struct cmd_syntax syntax = {
	NULL, "FILE...", "Encode XML files as the registry would, and print the size of each. Nothing is written.",
	CMD_WORDS(files), "at least one FILE", NULL,
};

/*
 * Encode files as the registry encodes nodes, but with all of them known beforehand. Files that differ only in fields
 * form a group, whose field layout is learned from all of them. A group gets a base of its own where that takes fewer
 * bytes than storing each file as a patch against another base.
 */
enum packed_kind { PACKED_BASE, PACKED_FIELDS, PACKED_PATCH };

struct packed {
	const char *file;	/* borrowed */
	char sha256[HASH_HEX];
	char shape[SHAPE_NAME];	/* "-": XML of hwloc 1, of which no shape is read */
	size_t xml_bytes, bytes;
	enum packed_kind kind;
	int base;		/* index of its file, -1: none */
	int group;
};

struct packing {
	struct packed *files;	/* in the order given */
	size_t n;
	size_t layout_bytes;	/* of the field layouts of all bases */
};

#define NEAREST 6	/* bases that a group is tried against: those of the most similar length */

struct pack_group {
	int leader;		/* the file that the others are compared with */
	size_t members;
	size_t alone;		/* bytes of the leader by itself */
	int against;		/* the group whose base its files are patches of, -1: it has its own */
};

struct packer {
	struct packing packing;
	struct pack_group *groups;
	size_t ngroups;
	struct base_cache *leaders;	/* by group */
	struct progress progress;
};

/* --- files --- */

static int read_xml(const char *path, struct buf *out, struct err *e)
{
	struct buf b = {0};

	if (file_read(path, CANON_MAX_BYTES, &b, e))
		return -1;
	buf_add(&b, "", 0);
	*out = b;
	return 0;
}

static int read_shape(const struct buf *xml, const char *path, char out[static SHAPE_NAME], struct err *e)
{
	struct strings s;
	struct tree *t;
	int rc;

	if (xml_is_of_hwloc1(xml)) {
		strcpy(out, "-");
		return 0;
	}
	if (!(t = tree_parse(xml->data, xml->len, path, e)))
		return -1;
	if ((rc = strings_make(t, &s, e))) {
		err_within(e, "%s", path);
	} else {
		shape_name(s.allocation, out);
		strings_free(&s);
	}
	tree_free(t);
	return rc;
}

/* --- which files are near-identical --- */

static int file_gather(struct packer *p, size_t file, struct err *e)
{
	struct packed *f = &p->packing.files[file];
	struct buf xml;
	int rc;

	if (read_xml(f->file, &xml, e))
		return -1;
	hash_hex(xml.data, xml.len, f->sha256);
	f->xml_bytes = xml.len;
	if ((rc = base_cache_join(p->leaders, xml.data, xml.len, p->ngroups, &f->group)))
		err_set(e, "out of memory");
	else if (f->group == (int) p->ngroups) {	/* it is the first of its group */
		p->groups[p->ngroups++] = (struct pack_group){ .leader = file, .against = -1 };
		rc = read_shape(&xml, f->file, f->shape, e);
	}
	buf_free(&xml);
	if (rc)
		return -1;
	memcpy(f->shape, p->packing.files[p->groups[f->group].leader].shape, SHAPE_NAME);
	p->groups[f->group].members++;
	return 0;
}

/* --- which groups have a base --- */

/* How much a group's length differs from this one. */
static size_t distance(const struct packer *p, int group, size_t len)
{
	size_t own = p->packing.files[p->groups[group].leader].xml_bytes;

	return own > len ? own - len : len - own;
}

/* A base of its own, unless all its patches together take fewer bytes. */
static int group_weigh(struct packer *p, int group, const struct cached_base *leader, const int *near, size_t n,
		       struct err *e)
{
	struct pack_group *g = &p->groups[group];
	size_t least = g->alone / 2;
	int against = -1;

	for (size_t i = 0; i < n; i++) {
		const struct cached_base *from = base_cache_acquire(p->leaders, near[i]);
		struct pack patch;
		int rc = pack_make(from->text, from->len, leader->text, leader->len, &patch, e);

		base_cache_release(p->leaders, from);
		if (rc)
			return -1;
		if (patch.bytes.len <= least) {
			least = patch.bytes.len;
			against = near[i];
		}
		buf_free(&patch.bytes);
	}
	if (least * g->members < g->alone)
		g->against = against;
	return 0;
}

static int group_decide(struct packer *p, int group, const int *decided, size_t n, struct err *e)
{
	const struct cached_base *leader = base_cache_acquire(p->leaders, group);
	struct pack alone;
	int near[NEAREST];
	int rc = pack_make(NULL, 0, leader->text, leader->len, &alone, e);

	if (!rc) {
		p->groups[group].alone = alone.bytes.len;
		buf_free(&alone.bytes);
		/* The bases of the most similar length among those decided so far. */
		size_t found = 0, len = p->packing.files[p->groups[group].leader].xml_bytes;

		for (size_t i = 0; i < n; i++) {
			size_t at = found < NEAREST ? found : NEAREST, d = distance(p, decided[i], len);

			if (p->groups[decided[i]].against >= 0)
				continue;
			while (at > 0 && distance(p, near[at - 1], len) > d) {
				if (at < NEAREST)
					near[at] = near[at - 1];
				at--;
			}
			if (at < NEAREST)
				near[at] = decided[i];
			found += found < NEAREST;
		}
		rc = group_weigh(p, group, leader, near, found, e);
	}
	base_cache_release(p->leaders, leader);
	return rc;
}

/* The largest group first: it has a base in any case. */
static int by_members(const void *a, const void *b, void *groups)
{
	const struct pack_group *of = groups;
	int i = *(const int *) a, j = *(const int *) b;

	return COMPARE(of[j].members, of[i].members) ?: i - j;
}

static int groups_decide(struct packer *p, struct err *e)
{
	int *order = malloc((p->ngroups + 1) * sizeof(*order));
	int rc = order ? 0 : err_set(e, "out of memory");

	for (size_t i = 0; !rc && i < p->ngroups; i++)
		order[i] = i;
	if (!rc)
		qsort_r(order, p->ngroups, sizeof(*order), by_members, p->groups);
	for (size_t i = 0; !rc && i < p->ngroups; i++)
		rc = group_decide(p, order[i], order, i, e);
	free(order);
	return rc;
}

/* --- packing --- */

/* pack_make rebuilds the text and compares. */
static int as_pack(const struct cached_base *base, const struct buf *xml, struct packed *f, struct err *e)
{
	struct pack p;

	if (pack_make(base ? base->text : NULL, base ? base->len : 0, xml->data, xml->len, &p, e))
		return -1;
	f->kind = base ? PACKED_PATCH : PACKED_BASE;
	f->bytes = p.bytes.len;
	buf_free(&p.bytes);
	return 0;
}

static int file_pack(struct packer *p, size_t file, struct err *e)
{
	struct packed *f = &p->packing.files[file];
	const struct pack_group *g = &p->groups[f->group];
	const struct cached_base *base;
	char sha256[HASH_HEX];
	struct buf xml;
	int rc;

	if (read_xml(f->file, &xml, e))
		return -1;
	base = base_cache_acquire(p->leaders, g->against >= 0 ? g->against : f->group);
	hash_hex(xml.data, xml.len, sha256);
	if (strcmp(sha256, f->sha256))
		rc = err_set(e, "the file changed while it was being packed");
	else if (g->against < 0 && g->leader != (int) file) {
		struct buf diff = {0};

		rc = field_layout_encode(&base->layout, &base->lines, xml.data, xml.len, &diff);
		if (rc)
			err_set(e, rc > 0 ? "does not fit the field layout that was learned from it" : "out of memory");
		else
			rc = cached_base_check(base, &diff, xml.data, xml.len, e);
		f->kind = PACKED_FIELDS;
		f->bytes = diff.len;
		buf_free(&diff);
		rc = rc ? -1 : 0;
	} else {
		rc = as_pack(g->against < 0 ? NULL : base, &xml, f, e);
	}
	if (!rc && f->kind == PACKED_PATCH && f->bytes > g->alone / 2)
		rc = as_pack(NULL, &xml, f, e);
	f->base = f->kind == PACKED_BASE ? -1 : p->groups[base->base].leader;
	base_cache_release(p->leaders, base);
	buf_free(&xml);
	return rc ? err_within(e, "%s", f->file) : 0;
}

/* The sizes of the field layouts as they would be stored. */
static int layouts_weigh(struct packer *p, struct err *e)
{
	for (size_t i = 0; i < p->ngroups; i++) {
		const struct cached_base *leader;
		struct buf text = {0}, zip;
		int rc;

		if (p->groups[i].against >= 0 || p->groups[i].members == 1)
			continue;
		leader = base_cache_acquire(p->leaders, i);
		for (size_t k = 0; k < leader->layout.n; k++) {
			const struct field *f = &leader->layout.fields[k];

			buf_printf(&text, "%u %u %u %d %d %u\n", f->line - (k ? f[-1].line : 0), f->keep_start,
				   f->keep_end, f->alias, f->fixed, f->digits);
		}
		base_cache_release(p->leaders, leader);
		buf_add(&text, "", 0);
		rc = text.failed ? err_set(e, "out of memory") : zip_make(text.data, text.len, &zip, e);
		buf_free(&text);
		if (rc)
			return -1;
		p->packing.layout_bytes += zip.len;
		buf_free(&zip);
	}
	return 0;
}

static int each_file(struct packer *p, const char *what, int (*do_it)(struct packer *, size_t, struct err *),
		     struct err *e)
{
	int rc = 0;

	progress_start(&p->progress, what, p->packing.n);
	for (size_t i = 0; !rc && i < p->packing.n; i++) {
		rc = do_it(p, i, e);
		progress_step(&p->progress, 1);
	}
	progress_end(&p->progress);
	return rc;
}

static int packing_run(char *const *files, size_t n, struct packing *out, struct err *e)
{
	struct packer p = { .packing.n = n, .leaders = base_cache_new(n) };
	int rc = -1;

	p.packing.files = calloc(n, sizeof(*p.packing.files));
	p.groups = calloc(n, sizeof(*p.groups));
	if (!p.leaders || !p.packing.files || !p.groups) {
		err_set(e, "out of memory");
		goto done;
	}
	for (size_t i = 0; i < n; i++)
		p.packing.files[i].file = files[i];
	if (each_file(&p, "comparing", file_gather, e) || groups_decide(&p, e) ||
	    each_file(&p, "packing", file_pack, e) || layouts_weigh(&p, e))
		goto done;
	*out = p.packing;
	p.packing.files = NULL;
	rc = 0;
done:
	free(p.packing.files);
	free(p.groups);
	base_cache_free(p.leaders);
	return rc;
}

/* --- the command --- */

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

static int print_json(const struct packing *p, struct err *e)
{
	struct totals t = totals_of(p);
	json_t *files = json_array();

	for (const struct packed *f = p->files; f < p->files + p->n; f++)
		if (json_array_append_new(files, json_pack("{ss ss ss? sI sI ss}", "file", f->file, "kind",
							   kinds[f->kind], "base", base_of(p, f), "bytes",
							   (json_int_t) f->bytes, "xml_bytes",
							   (json_int_t) f->xml_bytes, "sha256", f->sha256))) {
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

static int print_table(const struct packing *p, struct err *e)
{
	struct table *table = table_new("FILE|SHAPE|KIND|>BYTES|>XML|BASE");
	struct totals t = totals_of(p);
	size_t bytes = t.base_bytes + t.diff_bytes;

	for (const struct packed *f = p->files; f < p->files + p->n; f++)
		table_cell(table, "%s|%s|%s|%zu|%zu|%s", f->file, f->shape, kinds[f->kind], f->bytes, f->xml_bytes,
			   f->base < 0 ? "-" : base_of(p, f));
	if (table_finish(table, e))
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
	free(p.files);
	return rc;
}
