/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwxml/canon.h"

#include <libxml/SAX2.h>
#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <libxml/xmlerror.h>
#include <stdarg.h>

#include "base/array.h"
#include "base/order.h"

#define MAX_DEPTH 64
#define MAX_OBJECTS 200000u

static const char PROLOG[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n";
static const char ID[] = "obj";
static const char SPACES[] = "                                                                "
			     "                                                                ";

struct frame {
	const struct xml_element *el;
	const struct xml_type *type;	/* of an object */
	bool has_pu;			/* in its subtree or itself */
	bool filled;			/* its start tag was completed */
};

#define MAX_ATTRS 32

struct reader {
	xmlParserCtxtPtr xml;
	const char *name;
	const struct canon_sink *sink;	/* NULL: none */
	struct err *e;
	bool failed;
	struct frame frames[MAX_DEPTH];
	size_t depth;
	struct canon_attr attrs[MAX_ATTRS];	/* of the current element */
	size_t nattrs;
	uint64_t given;			/* a bit for each of the element's attributes that it has, by its place there */
	struct buf out, text;
	struct xml_ids ids;
	char *host;
	enum xml_format format;
	bool has_root;
	bool by_gp;			/* the current distances refer to objects by gp_index */
};

__attribute__((format(printf, 2, 3))) static int refuse(struct reader *r, const char *fmt, ...)
{
	char what[400];
	va_list ap;

	if (r->failed)
		return -1;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	r->failed = true;
	err_set(r->e, "%s:%d: %s", r->name, r->xml->input ? r->xml->input->line : 0, what);
	xmlStopParser(r->xml);
	return -1;
}

/* --- numbers of objects --- */

ORDER(id_order, struct xml_id, COMPARE(x->gp, y->gp))

unsigned xml_ids_find(const struct xml_ids *s, uint64_t gp)
{
	struct xml_id key = { .gp = gp };
	struct xml_id *found = s->n ? bsearch(&key, s->ids, s->n, sizeof(key), id_order) : NULL;

	return found ? found->place : 0;
}

void xml_ids_free(struct xml_ids *s)
{
	free(s->ids);
	*s = (struct xml_ids){0};
}

/* --- writing --- */

static const char *const escapes[256] = {
	['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;",
	['\t'] = "&#9;", ['\n'] = "&#10;", ['\r'] = "&#13;",
};
/* In text, quotes, tabs and line ends are not escaped. */
static const char *const text_escapes[256] = {
	['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['\r'] = "&#13;",
};

static void write_escaped(struct buf *out, const char *s, size_t len, const char *const table[256])
{
	size_t from = 0;

	for (size_t i = 0; i < len; i++) {
		const char *as = table[(unsigned char)s[i]];

		if (!as)
			continue;
		buf_add(out, s + from, i - from);
		buf_puts(out, as);
		from = i + 1;
	}
	buf_add(out, s + from, len - from);
}

static const char AMP[] = "&#38;";

/* The next piece of an attribute's value up to libxml2's "&#38;"; *step is where to continue. */
static size_t piece_len(const char *s, size_t len, size_t *step)
{
	const char *amp = memchr(s, '&', len) ? memmem(s, len, AMP, strlen(AMP)) : NULL;
	size_t piece = amp ? (size_t)(amp - s) + 1 : len;

	*step = amp ? piece + strlen(AMP) - 1 : len;
	return piece;
}

char *canon_attr_copy(const struct canon_attr *a, char *to)
{
	for (size_t at = 0, step; at < a->len; at += step)
		to = mempcpy(to, a->value + at, piece_len(a->value + at, a->len - at, &step));
	*to = '\0';
	return to + 1;
}

/* --- the meaning of elements --- */

static const struct canon_attr *attr_get(const struct reader *r, const char *name)
{
	for (size_t i = 0; i < r->nattrs; i++)
		if (!strcmp(r->attrs[i].is->name, name))
			return &r->attrs[i];
	return NULL;
}

static bool attr_is(const struct reader *r, const char *name, const char *value)
{
	const struct canon_attr *a = attr_get(r, name);

	return a && a->len == strlen(value) && !memcmp(a->value, value, a->len);
}

static bool type_is(const struct xml_type *type, const char *name)
{
	return !strcmp(type->name, name);
}

static int object_start(struct reader *r, struct frame *f)
{
	const struct canon_attr *type = attr_get(r, "type"), *id = attr_get(r, "id");
	unsigned long long gp = strtoull(attr_get(r, "gp_index")->value, NULL, 10);

	f->type = xml_type_find(type->value, type->len);
	f->has_pu = type_is(f->type, "PU");
	if (r->ids.n == MAX_OBJECTS)
		return refuse(r, "more than %u objects", MAX_OBJECTS);
	/* hwloc 2.9 reads these sets without checking that they exist. */
	if (f->type->family == FAMILY_TREE || f->type->family == FAMILY_MEMORY)
		for (size_t i = 0; i < f->el->nattrs; i++)
			if (f->el->attrs[i].required == XML_REQUIRED_SET && !(r->given & UINT64_C(1) << i))
				return refuse(r, "object %s has no %s", f->type->name, f->el->attrs[i].name);
	/*
	 * There is exactly one root, and it comes first, so that every object is known before the first reference to
	 * one. A level is not nested in itself, and a PU contains no object of the tree. The ancestors of an object of
	 * the tree are objects of the tree.
	 */
	const struct xml_type *around = r->depth > 1 ? r->frames[r->depth - 1].type : NULL;
	bool fits = around ? xml_family_fits(around->family, f->type->family) : type_is(f->type, "Machine");

	if (!around && r->has_root)
		return refuse(r, "more than one root object");
	r->has_root = true;
	if (around && f->type->family == FAMILY_TREE) {
		fits &= !type_is(around, "PU");
		for (size_t i = 1; f->type->level && i < r->depth; i++)
			fits &= r->frames[i].type != f->type;
	}
	if (!fits)
		return refuse(r, "object %s is not allowed inside %s", f->type->name,
			      around ? around->name : "topology");
	/* hwloc 3 writes an object's number twice, and reads the last. */
	if (id && strtoull(id->value + strlen(ID), NULL, 10) != gp)
		return refuse(r, "gp_index %llu has the other id %.*s", gp, (int) id->len, id->value);
	if (array_reserve(r->ids.ids, r->ids.n, 1))
		return refuse(r, "out of memory");
	r->ids.ids[r->ids.n] = (struct xml_id){ .gp = gp, .place = r->ids.n + 1 };
	r->ids.n++;
	return 0;
}

static int object_end(struct reader *r, const struct frame *f)
{
	const struct xml_ids *ids = &r->ids;

	if (type_is(f->type, "Core") && !f->has_pu)
		return refuse(r, "a Core without a PU");
	r->frames[r->depth - 2].has_pu |= f->has_pu;
	if (r->depth > 2)
		return 0;
	qsort(ids->ids, ids->n, sizeof(*ids->ids), id_order);
	for (size_t i = 1; i < ids->n; i++)
		if (ids->ids[i].gp == ids->ids[i - 1].gp)
			return refuse(r, "gp_index %llu is used by two objects", (unsigned long long) ids->ids[i].gp);
	return 0;
}

/* Stores the host name: an info of the root object or, in hwloc 3, of the topology. */
static int host_note(struct reader *r)
{
	static const enum xml_tag around[] = { [1] = TAG_TOPOLOGY, [2] = TAG_OBJECT };
	const struct canon_attr *value;

	if (r->depth > 2 || r->frames[r->depth - 1].el->tag != around[r->depth] || r->host ||
	    !attr_is(r, "name", "HostName"))
		return 0;
	value = attr_get(r, "value");
	if (!(r->host = malloc(value->len + 1)))
		return refuse(r, "out of memory");
	canon_attr_copy(value, r->host);
	return 0;
}

static int element_begin(struct reader *r, struct frame *f)
{
	static const char *const versions[XML_FORMATS] = { [XML_HWLOC2] = "2.", [XML_HWLOC3] = "3." };
	const struct canon_attr *version;

	switch (f->el->tag) {
	case TAG_TOPOLOGY:
		version = attr_get(r, "version");
		for (r->format = 0; r->format < XML_FORMATS; r->format++)
			if (version->len >= 3 && !memcmp(version->value, versions[r->format], 2))
				return 0;
		r->format = XML_HWLOC2;
		return refuse(r, "XML of neither hwloc 2 nor hwloc 3: version \"%.*s\"", (int) version->len,
			      version->value);
	case TAG_OBJECT:
		return object_start(r, f);
	case TAG_INFO:
		return host_note(r);
	case TAG_DISTANCES:
	case TAG_DISTANCES_HETERO:
		r->by_gp = f->el->tag == TAG_DISTANCES_HETERO || attr_is(r, "indexing", "gp");
		return 0;
	default:
		return 0;
	}
}

/* --- references --- */

static int write_reference(struct reader *r, struct buf *out, const char *gp, size_t len)
{
	unsigned place = xml_ids_find(&r->ids, strtoull(gp, NULL, 10));

	if (!place)
		return refuse(r, "no object has gp_index %.*s", (int)len, gp);
	buf_printf(out, "%u", place);
	return 0;
}

/* The indexes of distances by gp_index: "12 13 " of one type, "NUMANode:12 PCIDev:40 " of several. */
static int indexes_renumber(struct reader *r, struct buf *out)
{
	const char *s = r->text.data ? r->text.data : "";

	while (*s) {
		size_t word = strcspn(s, " "), type = strcspn(s, ": ");
		const char *gp = type < word ? s + type + 1 : s;
		size_t len = s + word - gp;

		if (s[word] != ' ' || !xml_value_fits(VALUE_REF, gp, len))
			return refuse(r, "invalid indexes \"%.40s\"", s);
		if (gp > s && !xml_value_fits(VALUE_TYPE, s, type))
			return refuse(r, "unknown object type \"%.*s\"", (int)type, s);
		buf_add(out, s, gp - s);
		if (write_reference(r, out, gp, len))
			return -1;
		buf_add(out, " ", 1);
		s += word + 1;
	}
	return 0;
}

static bool is_renumbered(const struct reader *r, const struct xml_element *el)
{
	return el->tag == TAG_INDEXES && r->by_gp;
}

/* --- the start of an element --- */

static int attr_write(struct reader *r, const struct canon_attr *a)
{
	struct buf *out = &r->out;
	int rc = 0;

	if (r->sink && a->is->value != VALUE_REF)
		return 0;
	buf_add(out, " ", 1);
	buf_puts(out, a->is->name);
	buf_add(out, "=\"", 2);
	if (a->is->value == VALUE_ID)
		buf_puts(out, ID);
	if (a->is->value == VALUE_GP || a->is->value == VALUE_ID)
		buf_printf(out, "%zu", r->ids.n);
	else if (a->is->value == VALUE_REF)
		rc = write_reference(r, out, a->value, a->len);
	else
		for (size_t at = 0, step; at < a->len; at += step)
			write_escaped(out, a->value + at, piece_len(a->value + at, a->len - at, &step), escapes);
	buf_add(out, "\"", 1);
	return rc;
}

/* SAX2 passes five pointers for each attribute: name, prefix, URI, value, end of the value. */
static int attrs_read(struct reader *r, const struct xml_element *el, size_t n, const xmlChar **given)
{
	size_t at = 0;

	if (n > MAX_ATTRS)
		return refuse(r, "element %s has too many attributes (%zu)", el->name, n);
	r->given = 0;
	for (r->nattrs = 0; r->nattrs < n; r->nattrs++, given += 5) {
		struct canon_attr *a = &r->attrs[r->nattrs];

		a->value = (const char *)given[3];
		a->len = given[4] - given[3];
		if (given[1] || !(a->is = xml_attr_find(el, (const char *)given[0], &at)))
			return refuse(r, "element %s: unknown attribute %s", el->name, (const char *)given[0]);
		if (!xml_value_fits(a->is->value, a->value, a->len))
			return refuse(r, "invalid attribute value %s=\"%.*s\"", a->is->name,
				      a->len < 80 ? (int)a->len : 80, a->value);
		r->given |= UINT64_C(1) << (a->is - el->attrs);
	}
	for (size_t i = 0; i < el->nattrs; i++)
		if (el->attrs[i].required == XML_REQUIRED && !(r->given & UINT64_C(1) << i))
			return refuse(r, "element %s: attribute %s is missing", el->name, el->attrs[i].name);
	return 0;
}

static int element_start(struct reader *r, const char *name, size_t n, const xmlChar **given)
{
	const struct xml_element *el = xml_element_find(name);
	struct frame *f = &r->frames[r->depth], *in = r->depth ? f - 1 : NULL;

	if (!el || !(in ? el->inside[r->format] & 1u << in->el->tag : el->tag == TAG_TOPOLOGY))
		return refuse(r, "element %s is not allowed %s%s", name, in ? "in " : "here", in ? in->el->name : "");
	if (r->depth == MAX_DEPTH)
		return refuse(r, "more than %d nested elements", MAX_DEPTH);
	*f = (struct frame){ .el = el };
	if (attrs_read(r, el, n, given) || element_begin(r, f))
		return -1;
	if (!r->sink) {
		buf_add(&r->out, ">\n", in && !in->filled ? 2 : 0);
		buf_add(&r->out, SPACES, 2 * r->depth);
		buf_add(&r->out, "<", 1);
		buf_puts(&r->out, el->name);
	}
	if (in)
		in->filled = true;
	for (size_t i = 0; !is_renumbered(r, el) && i < r->nattrs; i++)
		if (attr_write(r, &r->attrs[i]))
			return -1;
	if (r->sink && r->sink->start(r->sink->user, el, xmlByteConsumed(r->xml), r->attrs, r->nattrs))
		return refuse(r, "out of memory");
	r->depth++;
	r->text.len = 0;
	return 0;
}

static int element_end(struct reader *r)
{
	struct frame *f = &r->frames[r->depth - 1];
	bool renumbered = is_renumbered(r, f->el);

	if (f->el->tag == TAG_OBJECT && object_end(r, f))
		return -1;
	if (renumbered) {
		struct buf now = {0};
		int rc = indexes_renumber(r, &now);

		buf_printf(&r->out, " length=\"%zu\">", now.len);
		buf_add(&r->out, now.data, now.len);
		r->out.failed |= now.failed;
		buf_free(&now);
		if (rc)
			return -1;
	}
	r->depth--;
	if (r->sink) {
		r->sink->end(r->sink->user);
		r->out.len = r->text.len = 0;
		return 0;
	}
	if (!renumbered && r->text.len) {
		buf_add(&r->out, ">", 1);
		write_escaped(&r->out, r->text.data, r->text.len, text_escapes);
	} else if (!renumbered && !f->filled) {
		buf_add(&r->out, "/>\n", 3);
		return 0;
	}
	if (f->filled)
		buf_add(&r->out, SPACES, 2 * r->depth);
	buf_add(&r->out, "</", 2);
	buf_puts(&r->out, f->el->name);
	buf_add(&r->out, ">\n", 2);
	r->text.len = 0;
	return 0;
}

/* --- callbacks of libxml2 --- */

static void on_start(void *ctx, const xmlChar *name, const xmlChar *prefix, const xmlChar *, int nns,
		     const xmlChar **, int nattrs, int, const xmlChar **attrs)
{
	struct reader *r = ctx;
	/* libxml2 stores a declared encoding in one of two places, depending on whether it has to convert. */
	const xmlChar *encoding = r->xml->encoding ? r->xml->encoding : r->xml->input->encoding;

	if (r->failed)
		return;
	if (prefix || nns)
		refuse(r, "element %s: namespaces are not supported", (const char *)name);
	else if (!r->depth && encoding && xmlStrcasecmp(encoding, BAD_CAST "UTF-8"))
		refuse(r, "the encoding must be UTF-8");
	else
		element_start(r, (const char *)name, nattrs, attrs);
}

static void on_end(void *ctx, const xmlChar *, const xmlChar *, const xmlChar *)
{
	struct reader *r = ctx;

	if (!r->failed)
		element_end(r);
}

static void on_text(void *ctx, const xmlChar *text, int len)
{
	struct reader *r = ctx;

	if (r->failed)
		return;
	if (r->depth && r->frames[r->depth - 1].el->text) {
		buf_add(&r->text, text, len);
		if (r->sink)
			r->sink->text(r->sink->user, (const char *)text, len);
	} else if (strspn((const char *)text, " \t\r\n") < (size_t)len) {
		refuse(r, "unexpected text in %s", r->depth ? r->frames[r->depth - 1].el->name : "the document");
	}
}

static void on_cdata(void *ctx, const xmlChar *, int)
{
	refuse(ctx, "CDATA sections are not supported");
}

static void on_comment(void *ctx, const xmlChar *)
{
	refuse(ctx, "comments are not supported (hwloc 2.9 fails on them)");
}

static void on_instruction(void *ctx, const xmlChar *, const xmlChar *)
{
	refuse(ctx, "processing instructions are not supported");
}

/* The parser is after the identifiers here, so the bracket that opens an internal subset is still ahead. */
static void on_doctype(void *ctx, const xmlChar *name, const xmlChar *public, const xmlChar *system)
{
	struct reader *r = ctx;

	if (public || !system || xmlStrcmp(name, BAD_CAST "topology") || xmlStrcmp(system, BAD_CAST "hwloc2.dtd"))
		refuse(r, "the document type is not topology SYSTEM \"hwloc2.dtd\"");
	else if (*r->xml->input->cur == '[')
		refuse(r, "an internal DTD subset is not supported");
}

/* Called for all entities except the five that XML defines. */
static xmlEntityPtr on_entity(void *ctx, const xmlChar *name)
{
	refuse(ctx, "entity declarations are not supported: %.40s", (const char *)name);
	return NULL;
}

/* The type that libxml2 passes to error handlers: const since its release 2.12. */
#if LIBXML_VERSION >= 21200
typedef const xmlError xml_error;
#else
typedef xmlError xml_error;
#endif

static void on_error(void *, xml_error *error)
{
	xmlParserCtxtPtr xml = error->ctxt;
	size_t len = error->message ? strcspn(error->message, "\n") : 0;

	if (xml && error->level >= XML_ERR_ERROR)
		refuse(xml->userData, "%.*s", (int)len, len ? error->message : "");
}

static const xmlSAXHandler handler = {
	.initialized = XML_SAX2_MAGIC,
	.internalSubset = on_doctype,
	.getEntity = on_entity,
	.getParameterEntity = on_entity,
	.startElementNs = on_start,
	.endElementNs = on_end,
	.characters = on_text,
	.ignorableWhitespace = on_text,
	.cdataBlock = on_cdata,
	.comment = on_comment,
	.processingInstruction = on_instruction,
	.serror = on_error,
};

/* --- interface --- */

/*
 * Checked before libxml2, which compares each attribute of an element with all others. Errors that libxml2 reports
 * anyway are left to it.
 */
static int attrs_check(const char *xml, size_t len, const char *name, struct err *e)
{
	const char *end = xml + len, *start = xml, *tag = xml;
	unsigned attrs, line = 1;

	while (tag && (tag = memchr(tag, '<', end - tag))) {
		const char *next = xml_tag_end(tag, end, &attrs);

		if (attrs > MAX_ATTRS)
			break;
		tag = next;
	}
	if (!tag)
		return 0;
	for (; start < tag; start++)
		line += *start == '\n';
	return err_set(e, "%s:%u: an element with more than %u attributes", name, line, MAX_ATTRS);
}

static int bytes_check(const char *xml, size_t len, const char *name, struct err *e)
{
	const char *nul;
	int line = 1;

	if (len > CANON_MAX_BYTES)
		return err_set(e, "%s: %zu bytes, at most %u are allowed", name, len, CANON_MAX_BYTES);
	if (!len)
		return err_set(e, "%s: empty", name);
	/* As in hwloc's XML. Otherwise libxml2 would detect UTF-16 and EBCDIC. */
	if (*xml != '<')
		return err_set(e, "%s:1: does not begin with '<'", name);
	if (!(nul = memchr(xml, '\0', len)))
		return attrs_check(xml, len, name, e);
	for (const char *p = xml; p < nul; p++)
		line += *p == '\n';
	return err_set(e, "%s:%d: a NUL byte", name, line);
}

int canon_read(const char *xml, size_t len, const char *name, const struct canon_sink *sink, struct canon *out,
	       struct err *e)
{
	struct reader *r;
	int rc = -1;

	if (bytes_check(xml, len, name, e))
		return -1;
	if (!(r = calloc(1, sizeof(*r))))
		return err_set(e, "%s: out of memory", name);
	r->name = name;
	r->e = e;
	r->sink = sink;
	xmlInitParser();
	if (!(r->xml = xmlCreateMemoryParserCtxt(xml, len)) || !buf_reserve(&r->out, sink ? 1 : len + len / 8)) {
		err_set(e, "%s: out of memory", name);
		goto done;
	}
	xmlCtxtUseOptions(r->xml, XML_PARSE_NONET);
	*r->xml->sax = handler;
	r->xml->userData = r;
	buf_puts(&r->out, PROLOG);
	xmlParseDocument(r->xml);
	if (r->failed)
		goto done;
	if (!r->xml->wellFormed || r->depth) {
		refuse(r, "not well-formed XML");
	} else if (!r->has_root) {
		refuse(r, "the document has no object");
	} else if (!r->frames[0].has_pu) {
		refuse(r, "the topology has no PU");
	} else if (r->out.failed || r->text.failed) {
		refuse(r, "out of memory");
	} else {
		*out = (struct canon){ .xml = r->out, .host = r->host, .ids = r->ids };
		r->out = (struct buf){0};
		r->host = NULL;
		r->ids = (struct xml_ids){0};
		rc = 0;
	}
done:
	xmlFreeParserCtxt(r->xml);
	buf_free(&r->out);
	buf_free(&r->text);
	xml_ids_free(&r->ids);
	free(r->host);
	free(r);
	return rc;
}

void canon_free(struct canon *c)
{
	buf_free(&c->xml);
	free(c->host);
	xml_ids_free(&c->ids);
	*c = (struct canon){0};
}
