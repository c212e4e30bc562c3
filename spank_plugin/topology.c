/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "topology.h"

#include <unistd.h>

#include "clip.h"
#include "export.h"
#include "images.h"
#include "run_dir.h"
#include "topo/image.h"

/* One step's way to its topology. */
struct way {
	const char *cores;
	const struct user *as;
	int export, images, dir;	/* images may be -1: then nothing is kept, and each step makes its own */
	hwloc_bitmap_t now;
	struct stat st;
	struct export x;
	struct images_key key;
};

static int take(struct way *w, bool *here)
{
	*here = export_is_here(&w->x, w->now);
	w->key = images_key(&w->x, w->cores, *here);
	return images_take(w->images, &w->key, w->dir);
}

static int name_both(const struct clipped *made, int dir, struct err *e)
{
	return run_dir_link(made->xml, dir, IMAGE_XML, e) || run_dir_link(made->shm, dir, IMAGE_SHM, e) ? -1 : 0;
}

static int make(struct way *w, const struct buf *xml, bool *here, struct err *e)
{
	const struct clip_ask ask = { .xml = xml, .cores = w->cores, .now = w->now, .as = w->as };
	struct clipped made = { .xml = run_dir_file(w->dir, e), .shm = -1 };
	int rc = -1;

	if (made.xml >= 0 && (made.shm = run_dir_file(w->dir, e)) >= 0)
		rc = clip_export(&ask, &made, &w->x, here, e) || name_both(&made, w->dir, e);
	if (!rc) {
		w->key = images_key(&w->x, w->cores, *here);
		export_note(w->images, &w->st, &w->x);
		images_keep(w->images, &w->key, &made);
	}
	if (made.shm >= 0)
		close(made.shm);
	if (made.xml >= 0)
		close(made.xml);
	return rc ? -1 : 0;
}

/* The export has been read: perhaps it is only its file that is new. */
static int take_or_make(struct way *w, const struct buf *xml, bool *here, struct err *e)
{
	if (export_recall_hash(w->images, &w->x)) {
		export_note(w->images, &w->st, &w->x);
		if (take(w, here))
			return 0;
	}
	return make(w, xml, here, e);
}

static int go(struct way *w, bool *here, struct err *e)
{
	struct buf xml = {0};
	int rc;

	if (export_recall(w->images, &w->st, &w->x) && take(w, here))
		return 0;
	if (export_read(w->export, &xml, &w->x, e))
		return -1;
	rc = take_or_make(w, &xml, here, e);
	buf_free(&xml);
	return rc;
}

int topology_put(const char *file, const char *cores, const struct user *as, int root, int dir, bool *here, struct err *e)
{
	struct way w = { .cores = cores, .as = as, .dir = dir };
	int rc;

	if ((w.export = export_open(file, &w.st, e)) < 0)
		return -1;
	w.images = images_open(root);
	w.now = export_cpus_now();
	rc = go(&w, here, e) ? err_within(e, "%s", file) : 0;
	hwloc_bitmap_free(w.now);
	if (w.images >= 0)
		close(w.images);
	close(w.export);
	return rc;
}
