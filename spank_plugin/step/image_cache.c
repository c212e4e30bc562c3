/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "image_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hwview/image.h"
#include "run_dir.h"

#define DIRECTORY "cache"

enum {
	MAX_IMAGES = 512,
	MAX_BYTES = 64 << 20,	/* memory, where RunDir is below /run */
	YOUNG = 60,		/* seconds: another step may still be adding the second file of a pair */
};

struct file_names {
	char xml[sizeof(struct image_cache_key) + 4], shm[sizeof(struct image_cache_key) + 4];
};

static struct file_names file_names_of(const char *key)
{
	struct file_names n;

	snprintf(n.xml, sizeof(n.xml), "%.*s.xml", (int) sizeof(struct image_cache_key) - 1, key);
	snprintf(n.shm, sizeof(n.shm), "%.*s.shm", (int) sizeof(struct image_cache_key) - 1, key);
	return n;
}

int image_cache_open(int root)
{
	mkdirat(root, DIRECTORY, 0700);
	return run_dir_enter(root, DIRECTORY);
}

/* With the list of cores itself where it is short: the first hash of libcrypto in a process costs a millisecond. */
struct image_cache_key image_cache_key(const struct export *x, const char *cores, bool is_local)
{
	char hash[HASH_HEX];
	struct image_cache_key key;
	int n = snprintf(key.text, sizeof(key.text), "%.32s-%d-%x-%s-", x->hash, is_local, hwloc_get_api_version(),
		TOPIARY_VERSION);
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

static void remove_entry(int cache, const char *key)
{
	struct file_names n = file_names_of(key);

	unlinkat(cache, n.shm, 0);
	unlinkat(cache, n.xml, 0);
}

int image_cache_link(int cache, const struct image_cache_key *key, int dir)
{
	struct file_names n = file_names_of(key->text);

	if (linkat(cache, n.shm, dir, IMAGE_SHM, 0)) {
		if (errno == EMLINK)
			remove_entry(cache, key->text);
		return 0;
	}
	if (linkat(cache, n.xml, dir, IMAGE_XML, 0)) {
		unlinkat(dir, IMAGE_SHM, 0);
		return 0;
	}
	utimensat(cache, n.shm, NULL, AT_SYMLINK_NOFOLLOW);
	return 1;
}

struct census {
	size_t entries, bytes;
	struct image_cache_key oldest;
	struct timespec used;
};

static bool time_is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* Does the file name have that ending? Then its key. */
static bool key_of(const char *file, const char *ending, struct image_cache_key *key)
{
	size_t len = strlen(file), end = strlen(ending);

	if (len <= end || len - end >= sizeof(key->text) || strcmp(file + len - end, ending))
		return false;
	snprintf(key->text, sizeof(key->text), "%.*s", (int) (len - end), file);
	return true;
}

static void count_image(struct census *c, const struct image_cache_key *key, const struct stat *st)
{
	if (!c->entries++ || time_is_before(&st->st_mtim, &c->used)) {
		c->oldest = *key;
		c->used = st->st_mtim;
	}
}

/* What a crash may leave: one file of a pair, a record that was not renamed. */
static bool is_waste(int cache, const char *file, const struct stat *st)
{
	struct image_cache_key key;

	if (!strcmp(file, EXPORT_RECORD) || st->st_mtime + YOUNG >= time(NULL) || key_of(file, ".shm", &key))
		return false;
	return !key_of(file, ".xml", &key) || faccessat(cache, file_names_of(key.text).shm, F_OK, AT_SYMLINK_NOFOLLOW);
}

static void count_all(int cache, struct census *c)
{
	DIR *dir = run_dir_list(openat(cache, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct image_cache_key key;
	struct dirent *d;
	struct stat st;

	memset(c, 0, sizeof(*c));
	while (dir && (d = readdir(dir))) {
		if (fstatat(cache, d->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		if (is_waste(cache, d->d_name, &st)) {
			unlinkat(cache, d->d_name, 0);
			continue;
		}
		c->bytes += st.st_blocks * 512;
		if (key_of(d->d_name, ".shm", &key))
			count_image(c, &key, &st);
	}
	if (dir)
		closedir(dir);
}

static void cache_trim(int cache)
{
	struct census c;

	for (count_all(cache, &c); c.entries && (c.entries > MAX_IMAGES || c.bytes > MAX_BYTES); count_all(cache, &c))
		remove_entry(cache, c.oldest.text);
}

void image_cache_add(int cache, const struct image_cache_key *key, const struct image_files *made)
{
	struct file_names n = file_names_of(key->text);

	/* KEY.xml first, so that each KEY.shm has one; an existing KEY.xml has the same contents. */
	run_dir_link(made->xml, cache, n.xml, NULL);
	run_dir_link(made->shm, cache, n.shm, NULL);
	cache_trim(cache);
}
