/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "topology.h"

#include <unistd.h>

#include "export.h"
#include "hwview/image.h"
#include "image_cache.h"
#include "image_worker.h"
#include "run_dir.h"

/* The topology that one step needs. */
struct topology_job {
	const char *cores;
	int export, cache, dir;	/* cache may be -1: then each step makes its own */
	struct export_cpus cpus;
	struct stat st;
	struct export x;
	struct image_cache_key key;
};

/* A step's topology without CPUs that are offline is not for other steps: these may be online again. */
static int link_cached(struct topology_job *j, bool *is_local)
{
	bool offline;

	*is_local = export_is_local(&j->x, &j->cpus, &offline);
	if (offline && j->cores)
		return 0;
	j->key = image_cache_key(&j->x, j->cores, *is_local);
	return image_cache_link(j->cache, &j->key, j->dir);
}

static int name_files(const struct image_files *made, int dir, struct err *e)
{
	return run_dir_link(made->xml, dir, IMAGE_XML, e) || run_dir_link(made->shm, dir, IMAGE_SHM, e) ? -1 : 0;
}

static int make_files(struct topology_job *j, const struct buf *xml, bool *is_local, struct err *e)
{
	const struct image_request request = { .xml = xml, .cores = j->cores, .cpus = &j->cpus };
	struct image_files made = { .xml = run_dir_file(j->dir, e), .shm = -1 };
	bool offline;
	int rc = -1;

	if (made.xml >= 0 && (made.shm = run_dir_file(j->dir, e)) >= 0)
		rc = image_worker_run(&request, &made, &j->x, is_local, e) || name_files(&made, j->dir, e);
	if (!rc) {
		j->key = image_cache_key(&j->x, j->cores, *is_local);
		export_record(j->cache, &j->st, &j->x);
		if (!export_is_local(&j->x, &j->cpus, &offline) || !offline || !j->cores)
			image_cache_add(j->cache, &j->key, &made);
	}
	if (made.shm >= 0)
		close(made.shm);
	if (made.xml >= 0)
		close(made.xml);
	return rc ? -1 : 0;
}

/* The export has been read: its file may be new while its contents are not. */
static int link_or_make(struct topology_job *j, const struct buf *xml, bool *is_local, struct err *e)
{
	if (export_recall_hash(j->cache, &j->x)) {
		export_record(j->cache, &j->st, &j->x);
		if (link_cached(j, is_local))
			return 0;
	}
	return make_files(j, xml, is_local, e);
}

static int write_topology(struct topology_job *j, bool *is_local, struct err *e)
{
	struct buf xml = {0};
	int rc;

	if (export_recall(j->cache, &j->st, &j->x) && link_cached(j, is_local))
		return 0;
	if (export_read(j->export, &xml, &j->x, e))
		return -1;
	rc = link_or_make(j, &xml, is_local, e);
	buf_free(&xml);
	return rc;
}

int topology_write(const char *file, const char *cores, int root, int dir, bool *is_local, struct err *e)
{
	struct topology_job j = { .cores = cores, .dir = dir };
	int rc;

	if ((j.export = export_open(file, &j.st, e)) < 0)
		return -1;
	j.cache = image_cache_open(root);
	rc = export_cpus_read(&j.cpus, e) ? -1 : write_topology(&j, is_local, e);
	if (rc)
		err_within(e, "%s", file);
	export_cpus_free(&j.cpus);
	if (j.cache >= 0)
		close(j.cache);
	close(j.export);
	return rc;
}
