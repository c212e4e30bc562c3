/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "image_worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/file.h"
#include "confine.h"
#include "hwview/image.h"
#include "hwview/machine.h"
#include "hwview/restrict.h"

enum { TIMEOUT = 20, MAX_ANSWER = sizeof(struct export) + 64 };

/* One conversion of the export. */
struct conversion {
	struct export export;		/* its CPU lists */
	bool is_local;
	struct buf xml, image_xml;	/* the restricted topology, and the image as text */
	hwloc_topology_t image;
};

struct worker {
	const struct image_request *request;
	const struct image_files *into;
	struct conversion made;
};

/* The first byte of the child's answer. */
enum { ANSWER_ERROR = '!', ANSWER_LOCAL = '1', ANSWER_FOREIGN = '0' };

static int answer_write(int fd, char what, const void *data, size_t len)
{
	return file_write(fd, &what, 1) || file_write(fd, data, len) ? 1 : 0;
}

/* Images of different cores have different addresses: a task maps both its step's and the node's. */
static unsigned slot_of(const struct worker *w)
{
	unsigned slot = 1;

	for (const char *p = w->request->cores; p && *p; p++)
		slot = slot * 31 + *p;
	return w->request->cores ? 1 + slot % 0xffff : 0;
}

static void conversion_free(struct conversion *p)
{
	if (p->image)
		hwloc_topology_destroy(p->image);
	buf_free(&p->xml);
	buf_free(&p->image_xml);
}

/* The image has the PUs of the requested cores; without cores, only PUs of the export. */
static int check_cores(const struct worker *w, hwloc_topology_t t, hwloc_topology_t image, struct err *e)
{
	hwloc_const_bitmap_t asked = hwloc_topology_get_topology_cpuset(t),
		made = hwloc_topology_get_topology_cpuset(image);

	if (w->request->cores ? hwloc_bitmap_isequal(made, asked) : hwloc_bitmap_isincluded(made, asked))
		return 0;
	return err_set(e, IMAGE_SHM " would have CPUs other than those of the requested cores");
}

static int make_image(const struct worker *w, hwloc_topology_t t, struct conversion *p, struct err *e)
{
	if (machine_export(t, &p->xml, e) || !(p->image = image_load(p->xml.data, p->xml.len, p->is_local, e)))
		return -1;
	return check_cores(w, t, p->image, e) || machine_export(p->image, &p->image_xml, e) ? -1 : 0;
}

static int export_convert(const struct worker *w, struct conversion *p, struct err *e)
{
	hwloc_topology_t t = machine_load(w->request->xml->data, w->request->xml->len, e);
	bool offline = false;
	int rc;

	if (!t)
		return -1;
	if ((rc = export_list_cpus(t, &p->export)))
		err_set(e, "the list of its CPUs is too long");
	p->is_local = !rc && export_is_local(&p->export, w->request->cpus, &offline);
	rc = rc || (w->request->cores && (restrict_topology(t, w->request->cores, e) ||
					  (offline && restrict_to_cpus(t, w->request->cpus->online, e)))) ||
	     make_image(w, t, p, e);
	hwloc_topology_destroy(t);
	return rc ? -1 : 0;
}

static bool is_same_text(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && !memcmp(a->data, b->data, a->len);
}

static bool is_same(const struct conversion *a, const struct conversion *b)
{
	return a->is_local == b->is_local && !strcmp(a->export.cpus, b->export.cpus) &&
	       !strcmp(a->export.complete, b->export.complete) &&
	       is_same_text(&a->xml, &b->xml) && is_same_text(&a->image_xml, &b->image_xml);
}

/*
 * When memory is short, hwloc sometimes omits objects and reports success, and the result would serve all later steps:
 * two equal results rule that out.
 */
static int make_twice(struct worker *w, struct err *e)
{
	struct conversion again = {0};
	int rc = export_convert(w, &w->made, e) || export_convert(w, &again, e);

	if (!rc && !is_same(&w->made, &again))
		rc = err_set(e, "two conversions differ; memory may be short");
	conversion_free(&again);
	return rc ? -1 : 0;
}

/* An image that could not be written is marked as empty: nothing to check. */
static int check_image(const struct worker *w, struct err *e)
{
	hwloc_topology_t t;
	struct buf xml = {0};
	int rc;

	if (image_is_empty(w->into->shm))
		return 0;
	if (image_from_fd(w->into->shm, &t, e))
		return -1;
	rc = machine_export(t, &xml, e);
	if (!rc && !is_same_text(&xml, &w->made.image_xml))
		rc = err_set(e, IMAGE_SHM " does not read back as written");
	hwloc_topology_destroy(t);
	buf_free(&xml);
	return rc;
}

static int worker_run(struct worker *w, struct err *e)
{
	const struct conversion *p = &w->made;

	if (make_twice(w, e))
		return -1;
	if (file_write(w->into->xml, p->xml.data, p->xml.len))
		return err_set(e, "%s: %s", IMAGE_XML, strerror(errno));
	return image_write(w->into->shm, p->image, slot_of(w), e) || check_image(w, e) ? -1 : 0;
}

static int worker_child(int fd, void *arg)
{
	struct worker *w = arg;
	struct err e = {0};

	child_keep((int[]){ fd, w->into->xml, w->into->shm, -1 });
	image_quiet();
	if (confine_self(&e) || worker_run(w, &e))
		return answer_write(fd, ANSWER_ERROR, e.text, strlen(e.text));
	return answer_write(fd, w->made.is_local ? ANSWER_LOCAL : ANSWER_FOREIGN, &w->made.export,
			    sizeof(w->made.export));
}

static int parse_answer(const struct buf *answer, struct export *x, bool *is_local, struct err *e)
{
	struct export seen;

	if (answer->len && answer->data[0] == ANSWER_ERROR)
		return err_set(e, "%s", answer->data + 1);
	if (answer->len != 1 + sizeof(seen))
		return err_set(e, "no valid answer from the process that restricts the topology");
	memcpy(&seen, answer->data + 1, sizeof(seen));
	seen.cpus[sizeof(seen.cpus) - 1] = seen.complete[sizeof(seen.complete) - 1] = '\0';
	memcpy(seen.hash, x->hash, sizeof(seen.hash));
	*x = seen;
	*is_local = answer->data[0] == ANSWER_LOCAL;
	return 0;
}

int image_worker_run(const struct image_request *r, const struct image_files *into, struct export *x, bool *is_local,
	struct err *e)
{
	struct worker w = { .request = r, .into = into };
	struct buf output = {0};
	int rc = child_run(worker_child, &w, TIMEOUT, MAX_ANSWER, &output, e);

	if (rc > 0)
		rc = err_set(e, "the process that restricts the topology failed");
	rc = rc || parse_answer(&output, x, is_local, e);
	buf_free(&output);
	return rc ? -1 : 0;
}
