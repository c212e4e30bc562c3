/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwxml/redact.h"

#include <pthread.h>
#include <regex.h>

#include "hwxml/xml_grammar.h"

#define INFO "<info"
#define INFO_END "</info>"
#define BLANKS " \t\r\n"
#define NAME_MAX_BYTES 64

static regex_t pattern;

static void pattern_compile(void)
{
	regcomp(&pattern, REDACTED, REG_EXTENDED | REG_NOSUB | REG_ICASE);
}

bool redact_applies(const char *name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, pattern_compile);
	return regexec(&pattern, name, 0, NULL, 0) == 0;
}

/* Whether the tag from `tag` to its closing `>` at `end` is an info to redact, by its attribute `name`. */
static bool tag_redacted(const char *tag, const char *end)
{
	char name[NAME_MAX_BYTES];

	for (const char *at = tag + strlen(INFO), *value; at < end && strchr(BLANKS, *at); at = value + 1) {
		const char *close;

		at += strspn(at, BLANKS);
		if (!(value = memchr(at, '=', end - at)))
			return false;
		value += 1 + strspn(value + 1, BLANKS);
		if ((*value != '"' && *value != '\'') || !(close = memchr(value + 1, *value, end - value - 1)))
			return false;
		if (!strncmp(at, "name", 4) && strchr("=" BLANKS, at[4]) && (size_t) (close - value) <= sizeof(name)) {
			memcpy(name, value + 1, close - value - 1);
			name[close - value - 1] = '\0';
			return redact_applies(name);
		}
		value = close;
	}
	return false;
}

/* The end of the element that begins with this tag; an element alone on its line includes the line. */
static const char *element_end(const char *tag_end, const char *end)
{
	const char *close;

	if (tag_end[-1] == '/')
		return tag_end + 1;
	close = memmem(tag_end, end - tag_end, INFO_END, strlen(INFO_END));
	return close ? close + strlen(INFO_END) : end;
}

static const char *line_begin(const char *at, const char *from)
{
	const char *begin = at;

	while (begin > from && (begin[-1] == ' ' || begin[-1] == '\t'))
		begin--;
	return begin == from || begin[-1] == '\n' ? begin : at;
}

void redact_xml(const char *xml, size_t len, struct buf *out)
{
	const char *end = xml + len, *from = xml, *at = xml, *stop;
	unsigned attrs;

	while ((at = memmem(at, end - at, INFO, strlen(INFO))) && (stop = xml_tag_end(at, end, &attrs))) {
		const char *begin = line_begin(at, from), *after = element_end(stop, end);

		if (tag_redacted(at, stop)) {
			buf_add(out, from, begin - from);
			from = after + (begin < at && after < end && *after == '\n');
		}
		at = after > stop ? after : stop;
	}
	buf_add(out, from, end - from);
	buf_puts(out, "");
}
