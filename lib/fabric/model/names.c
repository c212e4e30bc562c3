/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/model/names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct name {
	uint64_t guid;
	char *host;
};

struct fabric_names {
	struct name *list;
	size_t n;
};

struct fabric_names *fabric_names_new(void)
{
	return calloc(1, sizeof(struct fabric_names));
}

void fabric_names_free(struct fabric_names *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->n; i++)
		free(n->list[i].host);
	free(n->list);
	free(n);
}

/* The index of the GUID, or where it would be inserted. */
static size_t names_place(const struct fabric_names *n, uint64_t guid)
{
	size_t low = 0, high = n->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (n->list[middle].guid < guid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int fabric_names_add(struct fabric_names *n, uint64_t guid, const char *host, struct err *e)
{
	size_t at = names_place(n, guid);
	char *copy;

	if (!names_fit(host))
		return err_set(e, "'%.100s': invalid host name", host);
	if (at < n->n && n->list[at].guid == guid) {
		if (!strcmp(n->list[at].host, host))
			return 0;
		return err_set(e, "GUID %016llx belongs to both %s and %s", (unsigned long long) guid, n->list[at].host,
			       host);
	}
	if (array_reserve(n->list, n->n, 1) || !(copy = strdup(host)))
		return err_set(e, "out of memory");
	memmove(n->list + at + 1, n->list + at, (n->n++ - at) * sizeof(*n->list));
	n->list[at] = (struct name){ guid, copy };
	return 0;
}

const char *names_find(const struct fabric_names *n, uint64_t guid)
{
	size_t at;

	if (!n || !guid)
		return NULL;
	at = names_place(n, guid);
	return at < n->n && n->list[at].guid == guid ? n->list[at].host : NULL;
}

static bool is_name_char(unsigned char c)
{
	return isalnum(c) || c == '.' || c == '_' || c == '-';
}

bool names_fit(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < len; i++)
		if (!is_name_char(name[i]))
			return false;
	return len;
}

/* "mlx5_0", "HCA-1", "qib0", "ibp1s0f0": a device is a word that ends in its number. */
static bool is_device(const char *word, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!is_name_char(word[i]))
			return false;
	return len > 1 && isalpha((unsigned char) word[0]) && isdigit((unsigned char) word[len - 1]);
}

bool names_host(const char *description, struct buf *out)
{
	size_t len = strcspn(description, " "), rest;
	const char *device = description + len + strspn(description + len, " ");

	rest = strcspn(device, " ");
	for (size_t i = 0; i < len; i++)
		if (!is_name_char(description[i]))
			return false;
	if (!len || !isalnum((unsigned char) description[0]) || device[rest] || (rest && !is_device(device, rest)))
		return false;
	if (!strncmp(description, "localhost", len) && len == strlen("localhost"))
		return false;
	buf_add(out, description, len);
	return true;
}

/* The length of an annotation beside the name: the GUID of a chassis, or Mellanox's mark of a managed switch. */
static size_t annotation_length(const char *at, bool at_word)
{
	if (!at_word)
		return 0;
	if (!strncmp(at, "GUID=", 5))
		return strcspn(at, " ");
	return strncmp(at, "MF0;", 4) ? 0 : 4;
}

bool names_switch(const char *description, struct buf *out)
{
	size_t before = out->len, skip;
	bool gap = false;

	for (const char *at = description; *at; at++) {
		while ((skip = annotation_length(at, at == description || at[-1] == ' ')))
			at += skip;
		if (!*at)
			break;
		if (!is_name_char(*at)) {
			gap = true;
			continue;
		}
		if (gap && out->len > before)
			buf_puts(out, "-");
		gap = false;
		buf_add(out, at, 1);
	}
	return out->len > before;
}
