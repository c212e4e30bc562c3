/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/model/lines.h"

#include <stdarg.h>

#include "base/number.h"

static const char blanks[] = " \t\r\f\v";

int lines_open(struct lines *l, const char *text, size_t len, const char *name, struct err *e)
{
	size_t mark = len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;

	text += mark;
	len -= mark;
	*l = (struct lines){ .name = name, .err = e };
	if (memchr(text, '\0', len))
		return err_set(e, "%s: not a text file: contains a NUL byte", name);
	if (!(l->copy = malloc(len + 1)))
		return err_set(e, "%s: out of memory", name);
	memcpy(l->copy, text, len);
	l->copy[len] = '\0';
	l->at = l->copy;
	return 0;
}

void lines_close(struct lines *l)
{
	free(l->copy);
}

char *lines_next(struct lines *l)
{
	char *line = l->at, *end;

	if (!*line)
		return NULL;
	l->line++;
	end = line + strcspn(line, "\n");
	l->at = *end ? end + 1 : end;
	while (end > line && strchr(blanks, end[-1]))
		end--;
	*end = '\0';
	return line + strspn(line, blanks);
}

int lines_wrong(const struct lines *l, const char *fmt, ...)
{
	char what[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	return err_set(l->err, "%s:%u: %s", l->name, l->line, what);
}

char *lines_word_next(char **at)
{
	char *word = *at + strspn(*at, blanks);

	if (!*word)
		return NULL;
	*at = word + strcspn(word, blanks);
	if (**at)
		*(*at)++ = '\0';
	return word;
}

bool lines_word_number(const char *word, unsigned max, unsigned *out)
{
	unsigned n;

	if (number_read(&word, max, &n) || *word)
		return false;
	*out = n;
	return true;
}
