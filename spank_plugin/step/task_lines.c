/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "task_lines.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { MAX_TASKS = 65536, LINE = 2048 };

static struct {
	char (*text)[LINE];	/* zero until its task writes it */
	unsigned n;
} lines;

void task_lines_open(unsigned tasks)
{
	void *memory;

	if (!tasks || tasks > MAX_TASKS)
		return;
	memory = mmap(NULL, (size_t) tasks * LINE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return;
	lines.text = memory;
	lines.n = tasks;
}

bool task_lines_are_open(void)
{
	return lines.text;
}

void task_lines_set(unsigned local, const char *line)
{
	if (local < lines.n && strlen(line) < LINE)
		strcpy(lines.text[local], line);
}

void task_lines_add(struct buf *out)
{
	for (unsigned i = 0; i < lines.n; i++)
		if (*lines.text[i])
			buf_printf(out, "%.*s\n", LINE - 1, lines.text[i]);
}
