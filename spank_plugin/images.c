/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "images.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "run_dir.h"
#include "topo/image.h"

#define FOLDER "cache"

enum {
	MAX_IMAGES = 512,
	MAX_BYTES = 64 << 20,	/* of memory, where RunDir is below /run */
	YOUNG = 60,		/* seconds: half of a pair may wait for the other */
};

struct name {
	char xml[sizeof(struct images_key) + 4], shm[sizeof(struct images_key) + 4];
};

static struct name name_of(const char *key)
{
	struct name n;

	snprintf(n.xml, sizeof(n.xml), "%.*s.xml", (int) sizeof(struct images_key) - 1, key);
	snprintf(n.shm, sizeof(n.shm), "%.*s.shm", (int) sizeof(struct images_key) - 1, key);
	return n;
}

int images_open(int root)
{
	mkdirat(root, FOLDER, 0700);
	return run_dir_enter(root, FOLDER);
}

/*
 * The list of cores itself, where that is short: a hash of libcrypto costs a millisecond, the first time that a process wants one.
 */
struct images_key images_key(const struct export *x, const char *cores, bool here)
{
	char hash[HASH_HEX];
	struct images_key key;
	int n = snprintf(key.text, sizeof(key.text), "%.32s-%d-%x-%s-", x->hash, here, hwloc_get_api_version(), TOPIARY_VERSION);
	size_t left = sizeof(key.text) - n;

	if (!cores)
		cores = "all";
	if (strlen(cores) >= left) {
		hash_hex(cores, strlen(cores), hash);
		cores = hash;
	}
	snprintf(key.text + n, left, "%s", cores);
	return key;
}

static void drop(int images, const char *key)
{
	struct name n = name_of(key);

	unlinkat(images, n.shm, 0);
	unlinkat(images, n.xml, 0);
}

int images_take(int images, const struct images_key *key, int dir)
{
	struct name n = name_of(key->text);

	if (linkat(images, n.shm, dir, IMAGE_SHM, 0)) {
		if (errno == EMLINK)
			drop(images, key->text);
		return 0;
	}
	if (linkat(images, n.xml, dir, IMAGE_XML, 0)) {
		unlinkat(dir, IMAGE_SHM, 0);
		return 0;
	}
	utimensat(images, n.shm, NULL, AT_SYMLINK_NOFOLLOW);
	return 1;
}

struct census {
	size_t images, bytes;
	struct images_key oldest;
	struct timespec used;
};

static bool before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* The key of a file with that ending. */
static bool key_of(const char *file, const char *ending, struct images_key *key)
{
	size_t len = strlen(file), end = strlen(ending);

	if (len <= end || len - end >= sizeof(key->text) || strcmp(file + len - end, ending))
		return false;
	snprintf(key->text, sizeof(key->text), "%.*s", (int) (len - end), file);
	return true;
}

static void count_image(struct census *c, const struct images_key *key, const struct stat *st)
{
	if (!c->images++ || before(&st->st_mtim, &c->used)) {
		c->oldest = *key;
		c->used = st->st_mtim;
	}
}

/* What a crash may leave: half of a pair, a note that was not renamed. */
static bool is_waste(int images, const char *file, const struct stat *st)
{
	struct images_key key;

	if (!strcmp(file, EXPORT_NOTE) || st->st_mtime + YOUNG >= time(NULL) || key_of(file, ".shm", &key))
		return false;
	return !key_of(file, ".xml", &key) || faccessat(images, name_of(key.text).shm, F_OK, AT_SYMLINK_NOFOLLOW);
}

static void count_all(int images, struct census *c)
{
	int copy = openat(images, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct images_key key;
	struct dirent *d;
	struct stat st;

	memset(c, 0, sizeof(*c));
	while (dir && (d = readdir(dir))) {
		if (fstatat(images, d->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		if (is_waste(images, d->d_name, &st)) {
			unlinkat(images, d->d_name, 0);
			continue;
		}
		c->bytes += st.st_blocks * 512;
		if (key_of(d->d_name, ".shm", &key))
			count_image(c, &key, &st);
	}
	if (dir)
		closedir(dir);
	else if (copy >= 0)
		close(copy);
}

static void trim(int images)
{
	struct census c;

	for (count_all(images, &c); c.images && (c.images > MAX_IMAGES || c.bytes > MAX_BYTES); count_all(images, &c))
		drop(images, c.oldest.text);
}

void images_keep(int images, const struct images_key *key, const struct clipped *made)
{
	struct name n = name_of(key->text);

	/* The other half first: with a KEY.shm there is always its KEY.xml, and one that is there already has the same text. */
	run_dir_link(made->xml, images, n.xml, NULL);
	run_dir_link(made->shm, images, n.shm, NULL);
	trim(images);
}
