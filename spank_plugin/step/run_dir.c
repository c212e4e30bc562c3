/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "run_dir.h"

#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum {
	MAX_ENTRIES = 10000,	/* per removal or sweep */
	MAX_DEPTH = 4,		/* of root's own directories; users' files are on a mount, which no removal enters */
	MAX_SWEPT = 1024,	/* directories that one sweep looks at */
	YOUNG = 60,		/* seconds: a directory may not be locked yet */
	NEW = 0700,		/* a directory's mode until it is locked, and after */
	READY = 0711,
	USERS_MEGABYTES = 64,	/* size of a user's tmpfs: the maps of 65,536 ranks take a tenth of it */
	USERS_INODES = 1024,
};

static int open_dir(int at, const char *name, unsigned long long resolve)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS | resolve };

	return syscall(SYS_openat2, at, name, &how, sizeof(how));
}

static int open_beneath(int at, const char *name)
{
	return open_dir(at, name, RESOLVE_BENEATH | RESOLVE_NO_XDEV);
}

static bool is_roots(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_uid == 0 && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

DIR *run_dir_list(int fd)
{
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

int run_dir_open(const char *path, struct err *e)
{
	int fd = open_dir(AT_FDCWD, path, 0);

	if (fd < 0)
		return err_set(e, "%s: %s", path, strerror(errno));
	if (is_roots(fd))
		return fd;
	close(fd);
	return err_set(e, "%s: must be owned by root and writable by root only", path);
}

/* left: how many entries it may still remove. */
static int remove_tree(int at, const char *name, unsigned depth, unsigned *left)
{
	int fd = open_beneath(at, name), rc = 0;
	DIR *dir = run_dir_list(fd);
	char path[NAME_MAX + 32];
	struct dirent *d;

	if (!dir)
		return -1;
	while ((d = readdir(dir)) && *left) {
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		--*left;
		if (!unlinkat(fd, d->d_name, 0) || errno == ENOENT)
			continue;
		/* A user's tmpfs; processes that still use it keep it until they end. */
		snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", fd, d->d_name);
		if (!depth)
			umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
		rc |= depth < MAX_DEPTH ? remove_tree(fd, d->d_name, depth + 1, left) : -1;
	}
	closedir(dir);
	return unlinkat(at, name, AT_REMOVEDIR) || rc ? -1 : 0;
}

int run_dir_remove(int root, const char *name)
{
	unsigned left = MAX_ENTRIES;

	return remove_tree(root, name, 0, &left);
}

/* Close a new file or directory that failed with errno; fd may be -1. */
static int fail_new(int fd, const char *name, struct err *e)
{
	err_set(e, "%s: %s", name, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

static int remove_leftover(int root, const char *name, unsigned *left)
{
	int fd = open_beneath(root, name), rc = -1;

	if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB))
		rc = remove_tree(root, name, 0, left);
	if (fd >= 0)
		close(fd);
	return rc;
}

int run_dir_make(int root, const char *name, struct err *e)
{
	unsigned left = MAX_ENTRIES;
	int fd = -1;

	if (mkdirat(root, name, NEW) && (errno != EEXIST || remove_leftover(root, name, &left) ||
	    mkdirat(root, name, NEW)))
		return err_set(e, "%s: %s", name, strerror(errno));
	if ((fd = open_beneath(root, name)) >= 0 && !flock(fd, LOCK_EX | LOCK_NB) && !fchmod(fd, READY))
		return fd;
	return fail_new(fd, name, e);
}

int run_dir_enter(int root, const char *name)
{
	int fd = open_beneath(root, name);

	if (fd < 0 || is_roots(fd))
		return fd;
	close(fd);
	return -1;
}

int run_dir_sub(int dir, const char *name, struct err *e)
{
	int fd = mkdirat(dir, name, 0755) ? -1 : run_dir_enter(dir, name);

	if (fd >= 0 && !fchmod(fd, 0755))
		return fd;
	return fail_new(fd, name, e);
}

int run_dir_file(int dir, struct err *e)
{
	int fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 && !fchown(fd, 0, 0) && !fchmod(fd, 0644))
		return fd;
	return fail_new(fd, "a new file in RunDir", e);
}

int run_dir_link(int fd, int dir, const char *name, struct err *e)
{
	char self[32];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW) ? err_set(e, "%s: %s", name, strerror(errno)) : 0;
}

int run_dir_mount_user(const char *path, uid_t uid, gid_t gid, struct err *e)
{
	char how[96];

	snprintf(how, sizeof(how), "mode=0700,uid=%u,gid=%u,size=%dm,nr_inodes=%d", uid, gid, USERS_MEGABYTES,
		USERS_INODES);
	return mount("topiary", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, how) ?
	       err_set(e, "%s: %s", path, strerror(errno)) : 0;
}

void run_dir_sweep(int root)
{
	DIR *dir = run_dir_list(openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	unsigned seen = 0, left = MAX_ENTRIES;
	struct dirent *d;
	struct stat st;

	if (!dir)
		return;
	while (seen < MAX_SWEPT && left && (d = readdir(dir))) {
		/* One that is new may not be locked yet. */
		if (!isdigit((unsigned char) d->d_name[0]) || fstatat(root, d->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISDIR(st.st_mode) || ((st.st_mode & 0777) == NEW && st.st_ctime + YOUNG >= time(NULL)))
			continue;
		remove_leftover(root, d->d_name, &left);
		seen++;
	}
	closedir(dir);
}
