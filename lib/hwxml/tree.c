/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwxml/tree.h"

#include <libxml/SAX2.h>
#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "hwxml/canon.h"
#include "hwxml/tree_hwloc3.h"
#include "hwxml/xml_error.h"
#include "hwxml/xml_ids.h"

#define MAX_DEPTH 64

/* An info while parsing: the infos of an object need not be adjacent, children may be between them. */
struct loose {
	struct tree_pair pair;
	unsigned owner;
};

struct tree_own {
	char *strings;			/* as long as the XML: escapes shrink, each NUL replaces a quote */
	struct tree_pair *object_attrs, *infos, *extra_attrs;
	struct xml_ids ids;
};

struct frame {
	const struct xml_element *el;
	long object;			/* index, or -1 */
	long extra;
};

struct builder {
	xmlParserCtxtPtr xml;
	struct tree *t;
	struct tree_own *own;
	const char *given, *counted;	/* the XML, and the end of the lines counted so far */
	size_t len;
	unsigned line;
	char *to;			/* the next string */
	struct frame frames[MAX_DEPTH];
	size_t depth;
	size_t object_attrs, extra_attrs, infos;	/* their numbers so far */
	struct loose *loose;
	struct seen {
		const struct xml_type *type;
		unsigned n;
	} seen[32];			/* the number of objects of each type so far; there are fewer types */
	bool failed;
};

static int builder_fail(struct builder *b)
{
	b->failed = true;
	xmlStopParser(b->xml);
	return -1;
}

/* --- strings --- */

static const char AMP[] = "&#38;";

/* libxml2 passes '&' in attributes as AMP. */
static const char *keep_value(struct builder *b, const char *s, const char *end)
{
	char *start = b->to;
	const char *amp;

	while ((amp = memmem(s, end - s, AMP, strlen(AMP)))) {
		b->to = (char *)mempcpy(b->to, s, amp + 1 - s);
		s = amp + strlen(AMP);
	}
	b->to = (char *)mempcpy(b->to, s, end - s);
	*b->to++ = '\0';
	return start;
}

/* "pages 4096": shorter than its element. */
static const char *keep_pages(struct builder *b, const char *size)
{
	char *start = b->to;

	b->to = stpcpy(stpcpy(b->to, "pages "), size) + 1;
	return start;
}

/* libxml2's line numbers stop at 65535. The parser is at the end of the start tag, which contains no other '<'. */
static unsigned line_of_tag(struct builder *b)
{
	long at = xmlByteConsumed(b->xml);
	const char *end = b->given + (at < 0 ? 0 : (size_t)at < b->len ? (size_t)at : b->len);
	const char *tag = memrchr(b->given, '<', end - b->given);

	for (const char *nl; tag && b->counted < tag && (nl = memchr(b->counted, '\n', tag - b->counted));
	     b->counted = nl + 1)
		b->line++;
	return b->line;
}

/* --- elements --- */

static const char *pair_get(const struct tree_pair *pairs, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(pairs[i].name, name))
			return pairs[i].value;
	return NULL;
}

/* SAX2 passes five pointers for each attribute: name, prefix, URI, value, end of the value. */
static void attrs_keep(struct builder *b, const struct xml_element *el, unsigned line, size_t n, const xmlChar **given,
		       struct tree_pair *to)
{
	size_t at = 0;

	for (; n; n--, given += 5, to++) {
		to->name = xml_attr_find(el, (const char *)given[0], &at)->name;
		to->value = keep_value(b, (const char *)given[3], (const char *)given[4]);
		to->line = line;
	}
}

static unsigned logical_next(struct builder *b, const struct xml_type *type)
{
	struct seen *s = b->seen;

	while (s->type && s->type != type)
		s++;
	s->type = type;
	return s->n++;
}

static int info_keep(struct builder *b, unsigned owner, const char *name, const char *value, unsigned line)
{
	struct loose *l = array_add(b->loose, b->infos);

	if (!l)
		return builder_fail(b);
	*l = (struct loose){ .pair = { name, value, line }, .owner = owner };
	return 0;
}

static int object_add(struct builder *b, struct frame *f, unsigned line, size_t n, const xmlChar **given)
{
	struct tree_object *o = array_add(b->t->objects, b->t->n);
	struct tree_pair *pairs = array_append(b->own->object_attrs, b->object_attrs, n);
	const char *text;

	if (!o || !pairs)
		return builder_fail(b);
	attrs_keep(b, f->el, line, n, given, pairs);
	tree_attrs_translate(pairs, n, *b->t->version == '3');
	text = pair_get(pairs, n, "type");
	o->type = xml_type_find(text, strlen(text));
	o->parent = b->depth > 1 ? b->frames[b->depth - 1].object : -1;
	o->depth = b->depth - 1;
	o->logical = logical_next(b, o->type);
	o->os_index = (text = pair_get(pairs, n, "os_index")) ? strtol(text, NULL, 10) : -1;
	o->line = line;
	o->nattrs = n;
	f->object = b->t->n - 1;
	if ((text = pair_get(pairs, n, "cache_inclusive")) && info_keep(b, f->object, "Inclusive", text, line))
		return -1;
	return xml_ids_add(&b->own->ids, strtoull(pair_get(pairs, n, "gp_index"), NULL, 10)) ? 0 : builder_fail(b);
}

static int info_add(struct builder *b, const struct frame *f, unsigned owner, unsigned line, size_t n,
		    const xmlChar **given)
{
	bool pages = f->el->tag == TAG_PAGE_TYPE;
	struct tree_pair own[2];
	const char *value;

	attrs_keep(b, f->el, line, n, given, own);
	value = pair_get(own, n, pages ? "count" : "value");
	return info_keep(b, owner, pages ? keep_pages(b, pair_get(own, n, "size")) : pair_get(own, n, "name"),
			 value ? value : "0", line);
}

static int extra_add(struct builder *b, struct frame *f, unsigned line, size_t n, const xmlChar **given)
{
	struct tree_extra *x = array_add(b->t->extras, b->t->nextras);
	struct tree_pair *pairs = array_append(b->own->extra_attrs, b->extra_attrs, n);

	if (!x || !pairs)
		return builder_fail(b);
	attrs_keep(b, f->el, line, n, given, pairs);
	x->element = f->el;
	x->line = line;
	x->nattrs = n;
	x->text = b->to;
	if (!f->el->text)
		*b->to++ = '\0';
	f->extra = b->t->nextras - 1;
	return 0;
}

static int element_add(struct builder *b, struct frame *f, unsigned line, size_t n, const xmlChar **given)
{
	const struct frame *in = b->depth ? &b->frames[b->depth - 1] : NULL;

	switch (f->el->tag) {
	case TAG_TOPOLOGY:
		b->t->version = keep_value(b, (const char *)given[3], (const char *)given[4]);
		return 0;
	case TAG_SUPPORT:
	case TAG_USERDATA:
	case TAG_MEMTIER:
	case TAG_PCI_LOCALITY:
		return 0;
	case TAG_OBJECT:
		return object_add(b, f, line, n, given);
	case TAG_PAGE_TYPE:
		return info_add(b, f, in->object, line, n, given);
	case TAG_INFO:
		if (in->el->tag == TAG_MEMTIER)
			return 0;
		if (in->el->tag != TAG_CPUKIND)
			return info_add(b, f, in->object < 0 ? 0 : in->object, line, n, given);
		break;
	default:
		break;
	}
	return extra_add(b, f, line, n, given);
}

/* --- callbacks of libxml2; canon_parse has refused everything that hwloc does not write --- */

static void on_start(void *ctx, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri, int nns,
		     const xmlChar **ns, int nattrs, int ndefaulted, const xmlChar **attrs)
{
	struct builder *b = ctx;
	struct frame *f = &b->frames[b->depth];

	(void)prefix, (void)uri, (void)nns, (void)ns, (void)ndefaulted;
	if (b->failed)
		return;
	*f = (struct frame){ .el = xml_element_find((const char *)name), .object = -1, .extra = -1 };
	if (element_add(b, f, line_of_tag(b), nattrs, attrs) == 0)
		b->depth++;
}

static void on_end(void *ctx, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri)
{
	struct builder *b = ctx;

	(void)name, (void)prefix, (void)uri;
	if (b->failed)
		return;
	b->depth--;
	if (b->frames[b->depth].extra >= 0 && b->frames[b->depth].el->text)
		*b->to++ = '\0';
}

static void on_text(void *ctx, const xmlChar *text, int len)
{
	struct builder *b = ctx;
	const struct frame *f = b->depth ? &b->frames[b->depth - 1] : NULL;

	if (!b->failed && f && f->extra >= 0 && f->el->text)
		b->to = (char *)mempcpy(b->to, text, len);
}

static void on_error(void *ctx, xml_error *error)
{
	xmlParserCtxtPtr xml = error->ctxt;

	(void)ctx;
	if (xml && error->level >= XML_ERR_ERROR)
		builder_fail(xml->userData);
}

static const xmlSAXHandler handler = {
	.initialized = XML_SAX2_MAGIC,
	.startElementNs = on_start,
	.endElementNs = on_end,
	.characters = on_text,
	.ignorableWhitespace = on_text,
	.serror = on_error,
};

/* --- interface --- */

/* Sets pointers into the arrays, which do not move any more. */
static int pairs_share(struct builder *b)
{
	struct tree *t = b->t;
	struct tree_pair *at = b->own->object_attrs, *infos = calloc(b->infos + 1, sizeof(*infos));

	if (!(b->own->infos = infos))
		return -1;
	for (size_t i = 0; i < b->infos; i++)
		t->objects[b->loose[i].owner].ninfos++;
	for (size_t i = 0; i < t->n; i++) {
		struct tree_object *o = &t->objects[i];

		o->attrs = at;
		at += o->nattrs;
		o->infos = infos;
		infos += o->ninfos;
		o->ninfos = 0;
	}
	for (size_t i = 0; i < b->infos; i++) {
		struct tree_object *o = &t->objects[b->loose[i].owner];

		o->infos[o->ninfos++] = b->loose[i].pair;
	}
	at = b->own->extra_attrs;
	for (size_t i = 0; i < t->nextras; at += t->extras[i++].nattrs)
		t->extras[i].attrs = at;
	return 0;
}

static int document_read(struct builder *b)
{
	uint64_t twice;

	if (!(b->own->strings = malloc(b->len + 1)) || !(b->xml = xmlCreateMemoryParserCtxt(b->given, b->len)))
		return -1;
	xmlCtxtUseOptions(b->xml, XML_PARSE_NONET);
	*b->xml->sax = handler;
	b->xml->userData = b;
	b->to = b->own->strings;
	b->counted = b->given;
	xmlParseDocument(b->xml);
	if (b->failed || !b->xml->wellFormed)
		return -1;
	return xml_ids_seal(&b->own->ids, &twice) || pairs_share(b) ? -1 : 0;
}

static struct tree *tree_new(void)
{
	struct tree *t = calloc(1, sizeof(*t));

	if (t && !(t->own = calloc(1, sizeof(*t->own)))) {
		free(t);
		return NULL;
	}
	return t;
}

struct tree *tree_parse(const char *xml, size_t len, const char *name, struct err *e)
{
	struct builder b = { .given = xml, .len = len };
	struct canon c;
	int rc;

	if (canon_parse(xml, len, name, &c, e))
		return NULL;
	if (!(b.t = tree_new())) {
		canon_free(&c);
		err_set(e, "%s: out of memory", name);
		return NULL;
	}
	b.own = b.t->own;
	b.t->canonical = c.xml;
	c.xml = (struct buf){0};
	canon_free(&c);
	rc = document_read(&b);
	xmlFreeParserCtxt(b.xml);
	free(b.loose);
	if (!rc)
		return b.t;
	tree_free(b.t);
	err_set(e, "%s: out of memory", name);
	return NULL;
}

void tree_free(struct tree *t)
{
	if (!t)
		return;
	free(t->own->strings);
	free(t->own->object_attrs);
	free(t->own->extra_attrs);
	free(t->own->infos);
	xml_ids_free(&t->own->ids);
	free(t->own);
	free(t->objects);
	free(t->extras);
	buf_free(&t->canonical);
	free(t);
}

const char *tree_attr(const struct tree_object *o, const char *name)
{
	return pair_get(o->attrs, o->nattrs, name);
}

const char *tree_info(const struct tree_object *o, const char *name)
{
	return pair_get(o->infos, o->ninfos, name);
}

const char *tree_extra_attr(const struct tree_extra *x, const char *name)
{
	return pair_get(x->attrs, x->nattrs, name);
}

unsigned long long tree_number(const struct tree_object *o, const char *name, unsigned long long other)
{
	const char *text = tree_attr(o, name);

	return text ? strtoull(text, NULL, 10) : other;
}

long tree_by_gp(const struct tree *t, unsigned long long gp)
{
	return (long)xml_ids_find(&t->own->ids, gp) - 1;
}
