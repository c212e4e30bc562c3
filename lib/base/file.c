/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#include "base/file.h"

#include <libgen.h>
#include <sys/stat.h>

static int read_all(int fd, struct buf *b, size_t max)
{
	ssize_t n;
	char *at;

	/* pread, and never mmap: a file cut short under a mapping is a SIGBUS in whoever reads it. */
	while ((at = buf_reserve(b, 65536)) && b->len <= max) {
		n = pread(fd, at, 65536, b->len);
		if (n < 0 && errno == EINTR)
			continue;
		b->data[b->len + (n > 0 ? n : 0)] = '\0';
		if (n <= 0)
			return n;
		b->len += n;
	}
	errno = b->failed ? ENOMEM : EFBIG;
	return -1;
}

int file_read(const char *path, size_t max, struct buf *out, struct err *e)
{
	struct buf b = {0};
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return err_set(e, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode)) {
		err_set(e, "%s: not a regular file", path);
		goto error;
	}
	/* One that says so itself need not be read first; what /proc has says 0. */
	if (st.st_size > (off_t) max || read_all(fd, &b, max) < 0 || b.len > max) {
		err_set(e, "%s: %s (limit %zu bytes)", path,
			strerror(st.st_size > (off_t) max || b.len > max ? EFBIG : errno), max);
		goto error;
	}
	close(fd);
	*out = b;
	return 0;
error:
	close(fd);
	buf_free(&b);
	return -1;
}

int file_read_input(const char *path, size_t max, const char **name, struct buf *out, struct err *e)
{
	struct buf b = {0};
	size_t n = 1;
	char *at;

	*name = path;
	if (strcmp(path, "-"))
		return file_read(path, max, out, e);
	*name = "standard input";
	while (n && b.len <= max && (at = buf_reserve(&b, 65536))) {
		n = fread(at, 1, 65536, stdin);
		at[n] = '\0';
		b.len += n;
	}
	if (ferror(stdin) || b.failed || b.len > max) {
		err_set(e, "standard input: %s (limit %zu bytes)",
			strerror(b.failed ? ENOMEM : b.len > max ? EFBIG : errno), max);
		buf_free(&b);
		return -1;
	}
	*out = b;
	return 0;
}

int file_write(int fd, const void *from, size_t len)
{
	const char *data = from;

	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		len -= n;
	}
	return 0;
}

static int sync_folder(const char *path)
{
	char copy[PATH_MAX];
	int fd, rc;

	snprintf(copy, sizeof(copy), "%s", path);
	if ((fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return -1;
	rc = fsync(fd);
	close(fd);
	return rc;
}

static int replace(const char *path, const void *data, size_t len, mode_t mode, bool is_lasting, struct err *e)
{
	char tmp[PATH_MAX];
	int fd = -1, n = snprintf(tmp, sizeof(tmp), "%s.XXXXXX", path);

	if (n < 0 || (size_t) n >= sizeof(tmp))
		return err_set(e, "%s: %s", path, strerror(ENAMETOOLONG));
	if ((fd = mkostemp(tmp, O_CLOEXEC)) < 0)
		return err_set(e, "%s: %s", path, strerror(errno));
	if (file_write(fd, data, len) || fchmod(fd, mode) || (is_lasting && fsync(fd)) || rename(tmp, path)) {
		err_set(e, "%s: %s", path, strerror(errno));
		unlink(tmp);
		close(fd);
		return -1;
	}
	close(fd);
	if (is_lasting)
		sync_folder(path);
	return 0;
}

int file_replace(const char *path, const void *data, size_t len, mode_t mode, struct err *e)
{
	return replace(path, data, len, mode, true, e);
}

int file_refresh(const char *path, const void *data, size_t len, mode_t mode, struct err *e)
{
	return replace(path, data, len, mode, false, e);
}

void file_make_parents(char *path, mode_t mode)
{
	for (char *at = path; (at = strchr(at + 1, '/'));) {
		*at = '\0';
		mkdir(path, mode);
		*at = '/';
	}
}
