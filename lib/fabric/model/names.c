/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/model/names.h"

#include "base/array.h"
#include "base/string_map.h"

struct fabric_names {
	struct string_map guids;
	char **hosts;			/* by the number of the GUID */
};

struct fabric_names *fabric_names_new(void)
{
	return calloc(1, sizeof(struct fabric_names));
}

void fabric_names_free(struct fabric_names *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->guids.count; i++)
		free(n->hosts[i]);
	free(n->hosts);
	string_map_free(&n->guids);
	free(n);
}

int fabric_names_add(struct fabric_names *n, uint64_t guid, const char *host, struct err *e)
{
	size_t known = n->guids.count, at;
	char *copy;

	if (!names_fit(host))
		return err_set(e, "'%.100s': invalid host name", host);
	if ((at = string_map_find_bytes(&n->guids, &guid, sizeof(guid))) != STRING_MAP_NONE)
		return strcmp(n->hosts[at], host) ? err_set(e, "GUID %016llx belongs to both %s and %s",
							    (unsigned long long) guid, n->hosts[at], host) : 0;
	if (array_reserve(n->hosts, known, 1) || !(copy = strdup(host)))
		return err_set(e, "out of memory");
	if (string_map_add_bytes(&n->guids, &guid, sizeof(guid)) == STRING_MAP_NONE) {
		free(copy);
		return err_set(e, "out of memory");
	}
	n->hosts[known] = copy;
	return 0;
}

const char *names_find(const struct fabric_names *n, uint64_t guid)
{
	size_t at = n && guid ? string_map_find_bytes(&n->guids, &guid, sizeof(guid)) : STRING_MAP_NONE;

	return at == STRING_MAP_NONE ? NULL : n->hosts[at];
}

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

bool names_fit(const char *name)
{
	return *name && !name[strspn(name, letters)];
}

/* "mlx5_0", "HCA-1", "qib0", "ibp1s0f0": a device is a word that ends in its number. */
static bool is_device(const char *word, size_t len)
{
	return len > 1 && strspn(word, letters) >= len && isalpha((unsigned char) word[0]) &&
		isdigit((unsigned char) word[len - 1]);
}

/* Names that images and firmware have before somebody gives a host its own. */
static bool is_default(const char *name, size_t len)
{
	static const char *const names[] = { "localhost", "ubuntu", "debian", "rocky", "almalinux", "centos", "rhel",
					     "linux", "none" };
	/* models ("MT4123") and devices, with a number behind */
	static const char *const numbered[] = { "MT", "ConnectX-", "BlueField-", "mlx4_", "mlx5_", "mthca", "qib",
						"hfi1_", "opa", "HCA-" };
	size_t first = strcspn(name, ".");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == (first < len ? first : len) && !strncasecmp(name, names[i], strlen(names[i])))
			return true;
	for (size_t i = 0; i < sizeof(numbered) / sizeof(numbered[0]); i++) {
		size_t word = strlen(numbered[i]);

		if (word < len && !strncmp(name, numbered[i], word) && strspn(name + word, "0123456789") >= len - word)
			return true;
	}
	return false;
}

const char *names_host(const char *description, struct buf *out)
{
	size_t len = strcspn(description, " "), rest;
	const char *device = description + len + strspn(description + len, " ");

	rest = strcspn(device, " ");
	if (strspn(description, letters) != len || !isalnum((unsigned char) description[0]) || device[rest] ||
	    (rest && !is_device(device, rest)) || is_default(description, len))
		return NULL;
	buf_add(out, description, len);
	return device;
}

size_t names_short(const char *name)
{
	size_t len = strcspn(name, ".");

	return name[len] && strspn(name, "0123456789") < len ? len : strlen(name);
}

bool names_serve_network(const char *description)
{
	return strstr(description, "Aggregation Node") != NULL;
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
		if (!strchr(letters, *at)) {
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
