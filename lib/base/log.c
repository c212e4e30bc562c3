/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/log.h"

#include <stdarg.h>

#include "base/printable.h"

static const char *log_name = "topiary";
static int log_level = LOG_INFO;

void log_open(const char *name)
{
	log_name = name;
}

void log_set_level(const char *word)
{
	static const char *const words[] = { [LOG_ERR] = "error", [LOG_WARNING] = "warning", [LOG_INFO] = "info",
					     [LOG_DEBUG] = "debug" };

	for (int level = LOG_ERR; level <= LOG_DEBUG; level++)
		if (words[level] && !strcasecmp(word, words[level]))
			log_level = level;
}

void log_line(int level, const char *fmt, ...)
{
	char text[2048];
	const char *c;
	va_list ap;

	if (level > log_level)
		return;
	c = !isatty(STDERR_FILENO) ? "" : level <= LOG_ERR ? "\033[31m" : level == LOG_WARNING ? "\033[33m" : "";
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (char *p = text; *p; p++)
		if ((unsigned char) *p < ' ')
			*p = ' ';
	printable(text);
	if (getenv("JOURNAL_STREAM"))
		fprintf(stderr, "<%d>%s\n", level, text);
	else
		fprintf(stderr, "%s%s: %s%s\n", c, log_name, text, *c ? "\033[0m" : "");
}
