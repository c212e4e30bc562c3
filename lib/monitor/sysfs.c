/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "monitor/sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool sysfs_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = '\0';
	if (n > 0 && text[n - 1] == '\n')
		text[n - 1] = '\0';
	return n >= 0;
}

bool sysfs_number(const char *path, long long *number)
{
	char text[64], *end;
	long long value;

	if (!sysfs_text(path, text, sizeof(text)))
		return false;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (end == text || errno)
		return false;
	*number = value;
	return true;
}

bool sysfs_path(char path[static SYSFS_PATH], const char *root, const char *format, ...)
{
	int n = snprintf(path, SYSFS_PATH, "%s", root);
	va_list values;

	if (n >= SYSFS_PATH)
		return false;
	va_start(values, format);
	n += vsnprintf(path + n, SYSFS_PATH - n, format, values);
	va_end(values);
	return n < SYSFS_PATH;
}

void sysfs_each(const char *path, const char *prefix, void (*each)(void *user, const char *name), void *user)
{
	struct dirent **list;
	int n = scandir(path, &list, NULL, versionsort);

	for (int i = 0; i < n; i++) {
		if (*list[i]->d_name != '.' && !strncmp(list[i]->d_name, prefix, strlen(prefix)))
			each(user, list[i]->d_name);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
}
