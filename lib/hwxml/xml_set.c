/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwxml/xml_set.h"

#include <stdlib.h>
#include <string.h>

#define ENDLESS "0xf...f"

int xml_set_parse(const char *text, struct xml_set *out)
{
	struct xml_set s = {0};
	size_t commas = 0;

	if (text && !strncmp(text, ENDLESS, strlen(ENDLESS))) {
		s.endless = true;
		text += strlen(ENDLESS);
		text += *text == ',';
	}
	for (const char *p = text; p && *p; p++)
		commas += *p == ',';
	s.n = text && *text ? commas + 1 : 0;
	if (!(s.words = calloc(s.n + 1, sizeof(*s.words))))
		return -1;
	for (size_t i = s.n; i-- > 0; text += strcspn(text, ","), text += *text == ',')
		s.words[i] = strtoul(text, NULL, 16);
	*out = s;
	return 0;
}

void xml_set_free(struct xml_set *s)
{
	free(s->words);
	*s = (struct xml_set){0};
}

bool xml_set_has(const struct xml_set *s, long bit)
{
	if (bit < 0)
		return false;
	if ((size_t)bit / 32 >= s->n)
		return s->endless;
	return s->words[bit / 32] >> (bit % 32) & 1;
}

size_t xml_set_count(const struct xml_set *s)
{
	size_t count = 0;

	for (size_t i = 0; i < s->n; i++)
		count += __builtin_popcount(s->words[i]);
	return count;
}
