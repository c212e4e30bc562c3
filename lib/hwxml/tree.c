/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwxml/tree.h"

#include "base/array.h"
#include "hwxml/canon.h"

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
};

/* --- strings --- */

static const char *keep_value(struct builder *b, const struct canon_attr *a)
{
	char *start = b->to;

	b->to = canon_attr_copy(a, start);
	return start;
}

/* libxml2's line numbers stop at 65535. The parser is at the end of the start tag, which contains no other '<'. */
static unsigned line_of_tag(struct builder *b, long at)
{
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

static void attrs_keep(struct builder *b, unsigned line, size_t n, const struct canon_attr *given, struct tree_pair *to)
{
	for (; n; n--, given++, to++)
		*to = (struct tree_pair){ given->is->name, keep_value(b, given), line };
}

/* --- attributes of hwloc 3 --- */

/* "0200 [15b3:1017] [15b3:0003] 00": class, vendor and device twice, revision. */
#define PCI_TYPE 31
#define NONE "99"	/* of no known type: hwloc 2 omits it */

/* hwloc_obj_osdev_types_t of hwloc 3 */
enum {
	STORAGE = 1 << 0, MEMORY = 1 << 1, GPU = 1 << 2, COPROC = 1 << 3, NETWORK = 1 << 4, OPENFABRICS = 1 << 5,
	DMA = 1 << 6,
};

/* As hwloc 3.0 exports them in the format of hwloc 2 (hwloc/topology-xml.c); the first match counts. */
static const struct {
	unsigned long types;		/* any of them */
	const char *attr, *begins;	/* NULL: any */
	const char *type;		/* hwloc_obj_osdev_type_t of hwloc 2 */
} osdev_types[] = {
	{ STORAGE | MEMORY, NULL, NULL, "0" },
	{ OPENFABRICS, NULL, NULL, "3" },
	{ NETWORK, "subtype", "BXI", "3" },
	{ NETWORK, NULL, NULL, "2" },
	{ DMA, NULL, NULL, "4" },
	{ COPROC, "name", "nvml", "1" },
	{ COPROC, "name", "rsmi", "1" },
	{ COPROC, NULL, NULL, "5" },
	{ GPU, NULL, NULL, "1" },
};

static const char *osdev_type(const struct tree_pair *attrs, size_t n, unsigned long types)
{
	for (size_t i = 0; i < sizeof(osdev_types) / sizeof(osdev_types[0]); i++) {
		const char *begins = osdev_types[i].begins;
		const char *value = begins ? pair_get(attrs, n, osdev_types[i].attr) : NULL;

		if (types & osdev_types[i].types && (!begins || (value && !strncmp(value, begins, strlen(begins)))))
			return osdev_types[i].type;
	}
	return NONE;
}

/* --- objects and the others --- */

static int info_keep(struct builder *b, unsigned owner, const char *name, const char *value, unsigned line)
{
	struct loose *l = array_add(b->loose, b->infos);

	if (!l)
		return -1;
	*l = (struct loose){ .pair = { name, value, line }, .owner = owner };
	return 0;
}

static int object_add(struct builder *b, struct frame *f, unsigned line, size_t n, const struct canon_attr *given)
{
	struct tree_object *o = array_add(b->t->objects, b->t->n);
	struct tree_pair *pairs = array_append(b->own->object_attrs, b->object_attrs, n);
	struct seen *s = b->seen;
	const char *text;

	if (!o || !pairs)
		return -1;
	attrs_keep(b, line, n, given, pairs);
	/*
	 * Translates an object's attributes to the values of hwloc 2. osdev_type: hwloc 3 has a set of types where
	 * hwloc 2 has one. pci_type: hwloc 3 appends the programming interface, also if it exports the format of hwloc
	 * 2; it is shortened in place.
	 */
	for (size_t i = 0; i < n; i++) {
		struct tree_pair *a = &pairs[i];

		if (!strcmp(a->name, "pci_type") && strlen(a->value) > PCI_TYPE)
			((char *)a->value)[PCI_TYPE] = '\0';
		else if ((*b->t->version == '3') && !strcmp(a->name, "osdev_type"))
			a->value = osdev_type(pairs, n, strtoul(a->value, NULL, 10));
	}
	text = pair_get(pairs, n, "type");
	o->type = xml_type_find(text, strlen(text));
	o->parent = b->depth > 1 ? b->frames[b->depth - 1].object : -1;
	o->depth = b->depth - 1;
	while (s->type && s->type != o->type)
		s++;
	s->type = o->type;
	o->logical = s->n++;
	o->os_index = (text = pair_get(pairs, n, "os_index")) ? strtol(text, NULL, 10) : -1;
	o->line = line;
	o->nattrs = n;
	f->object = b->t->n - 1;
	text = pair_get(pairs, n, "cache_inclusive");
	return text ? info_keep(b, f->object, "Inclusive", text, line) : 0;
}

static int info_add(struct builder *b, const struct frame *f, unsigned owner, unsigned line, size_t n,
		    const struct canon_attr *given)
{
	bool pages = f->el->tag == TAG_PAGE_TYPE;
	const char *value, *name = NULL;
	struct tree_pair own[2];

	attrs_keep(b, line, n, given, own);
	value = pair_get(own, n, pages ? "count" : "value");
	if (pages) {	/* "pages 4096": shorter than its element */
		name = b->to;
		b->to = stpcpy(stpcpy(b->to, "pages "), pair_get(own, n, "size")) + 1;
	}
	return info_keep(b, owner, pages ? name : pair_get(own, n, "name"), value ? value : "0", line);
}

static int element_add(struct builder *b, struct frame *f, unsigned line, size_t n, const struct canon_attr *given)
{
	const struct frame *in = b->depth ? &b->frames[b->depth - 1] : NULL;

	switch (f->el->tag) {
	case TAG_TOPOLOGY:
		b->t->version = keep_value(b, given);
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
	struct tree_extra *x = array_add(b->t->extras, b->t->nextras);
	struct tree_pair *pairs = array_append(b->own->extra_attrs, b->extra_attrs, n);

	if (!x || !pairs)
		return -1;
	attrs_keep(b, line, n, given, pairs);
	x->element = f->el;
	x->line = line;
	x->nattrs = n;
	x->text = b->to;
	if (!f->el->text)
		*b->to++ = '\0';
	f->extra = b->t->nextras - 1;
	return 0;
}

/* --- what canon.c calls; it has refused everything that hwloc does not write --- */

static int on_start(void *user, const struct xml_element *el, long at, const struct canon_attr *attrs, size_t n)
{
	struct builder *b = user;
	struct frame *f = &b->frames[b->depth];

	*f = (struct frame){ .el = el, .object = -1, .extra = -1 };
	if (element_add(b, f, line_of_tag(b, at), n, attrs))
		return -1;
	b->depth++;
	return 0;
}

static void on_end(void *user)
{
	struct builder *b = user;
	const struct frame *f = &b->frames[--b->depth];

	if (f->extra >= 0 && f->el->text)
		*b->to++ = '\0';
}

static void on_text(void *user, const char *text, size_t len)
{
	struct builder *b = user;

	if (b->frames[b->depth - 1].extra >= 0)
		b->to = mempcpy(b->to, text, len);
}

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

struct tree *tree_parse(const char *xml, size_t len, const char *name, struct err *e)
{
	struct builder b = { .t = calloc(1, sizeof(*b.t)), .own = calloc(1, sizeof(*b.own)), .given = xml,
			    .counted = xml, .len = len };
	const struct canon_sink sink = { on_start, on_text, on_end, &b };
	struct canon c;
	int rc;

	if (!b.t || !b.own || !(b.to = b.own->strings = malloc(len + 1))) {
		free(b.own);
		free(b.t);
		return err_null(e, "%s: out of memory", name);
	}
	b.t->own = b.own;
	if ((rc = canon_read(xml, len, name, &sink, &c, e)) == 0) {
		b.own->ids = c.ids;
		free(c.host);
		buf_free(&c.xml);
		if ((rc = pairs_share(&b)))
			err_set(e, "%s: out of memory", name);
	}
	free(b.loose);
	if (!rc)
		return b.t;
	tree_free(b.t);
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
