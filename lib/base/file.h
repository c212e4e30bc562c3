/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Read a whole regular file of at most max bytes into out, which the caller frees.
 * 0, or -1 with out untouched and an error that names the path.
 */
int file_read(const char *path, size_t max, struct buf *out, struct err *e);

/* The same, with "-" for all of standard input, which may be a pipe. *name is what messages call it. */
int file_read_input(const char *path, size_t max, const char **name, struct buf *out, struct err *e);

/* Make the folders above an absolute path that do not exist; what cannot be made is found by whoever uses the path. */
void file_make_parents(char *path, mode_t mode);

/*
 * Replace path by these bytes, whole or not at all: a temporary file beside it, fsync, rename, fsync of the folder.
 * A symbolic link at path is replaced, never followed. 0, or -1 with the old file untouched.
 */
int file_replace(const char *path, const void *data, size_t len, mode_t mode, struct err *e);

/* The same without fsync, for what is written often and worth nothing after a power failure. */
int file_refresh(const char *path, const void *data, size_t len, mode_t mode, struct err *e);

/* Write all of it to fd, however often that takes. 0, or -1 with errno. */
int file_write(int fd, const void *data, size_t len);
