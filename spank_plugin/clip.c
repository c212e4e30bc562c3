/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "clip.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "child.h"
#include "topo/image.h"
#include "topo/machine.h"
#include "topo/restrict.h"

enum { SECONDS = 20, MAX_ANSWER = sizeof(struct export) + 64 };

struct clip {
	const struct clip_ask *ask;
	const struct clipped *into;
	struct export seen;
	bool here;
};

/* What the child says begins with one of these. */
enum { SAYS_ERROR = '!', SAYS_HERE = '1', SAYS_ELSEWHERE = '0' };

static int say(int fd, char what, const void *data, size_t len)
{
	return file_write(fd, &what, 1) || file_write(fd, data, len) ? 1 : 0;
}

/* Images of different cores are at different addresses: a task has its step's and the node's. */
static unsigned slot_of(const struct clip *c)
{
	unsigned slot = 1;

	for (const char *p = c->ask->cores; p && *p; p++)
		slot = slot * 31 + *p;
	return c->ask->cores ? 1 + slot % 0xffff : 0;
}

static int write_both(const struct clip *c, hwloc_topology_t t, struct err *e)
{
	struct buf xml = {0};
	hwloc_topology_t image = NULL;
	int rc = -1;

	if (machine_export(t, &xml, e))
		return -1;
	if (file_write(c->into->xml, xml.data, xml.len))
		err_set(e, "%s: %s", IMAGE_XML, strerror(errno));
	else if ((image = image_load(xml.data, xml.len, c->here, e)))
		rc = image_write(c->into->shm, image, slot_of(c), e);
	if (image)
		hwloc_topology_destroy(image);
	buf_free(&xml);
	return rc;
}

static int work(struct clip *c, struct err *e)
{
	hwloc_topology_t t = machine_load(c->ask->xml->data, c->ask->xml->len, e);
	int rc;

	if (!t)
		return -1;
	if ((rc = export_look(t, &c->seen)))
		err_set(e, "its list of CPUs is too long");
	c->here = !rc && export_is_here(&c->seen, c->ask->now);
	rc = rc || (c->ask->cores && restrict_topology(t, c->ask->cores, e)) || write_both(c, t, e);
	hwloc_topology_destroy(t);
	return rc ? -1 : 0;
}

enum { KEPT = 3 };

static int lowest(const int *kept, int from)
{
	int low = -1;

	for (int i = 0; i < KEPT; i++)
		if (kept[i] >= from && (low < 0 || kept[i] < low))
			low = kept[i];
	return low;
}

static void close_all_but(const int *kept)
{
	int from = STDERR_FILENO + 1;

	for (int next; (next = lowest(kept, from)) >= 0; from = next + 1)
		if (next > from)
			close_range(from, next - 1, 0);
	close_range(from, ~0U, 0);
}

static int clip_child(int fd, void *arg)
{
	struct clip *c = arg;
	struct err e = {0};

	close_all_but((int[KEPT]){ fd, c->into->xml, c->into->shm });
	image_quiet();
	if (user_become(c->ask->as, &e) || work(c, &e))
		return say(fd, SAYS_ERROR, e.text, strlen(e.text));
	return say(fd, c->here ? SAYS_HERE : SAYS_ELSEWHERE, &c->seen, sizeof(c->seen));
}

static int hear(const struct buf *said, struct export *x, bool *here, struct err *e)
{
	struct export seen;

	if (said->len && said->data[0] == SAYS_ERROR)
		return err_set(e, "%s", said->data + 1);
	if (said->len != 1 + sizeof(seen))
		return err_set(e, "no answer from the process that restricts it");
	memcpy(&seen, said->data + 1, sizeof(seen));
	seen.cpus[sizeof(seen.cpus) - 1] = seen.complete[sizeof(seen.complete) - 1] = '\0';
	memcpy(seen.hash, x->hash, sizeof(seen.hash));
	*x = seen;
	*here = said->data[0] == SAYS_HERE;
	return 0;
}

int clip_export(const struct clip_ask *ask, const struct clipped *into, struct export *x, bool *here, struct err *e)
{
	struct clip c = { .ask = ask, .into = into };
	struct buf said = {0};
	int rc = child_run(clip_child, &c, SECONDS, MAX_ANSWER, &said, e);

	if (rc > 0)
		rc = err_set(e, "the process that restricts it failed");
	rc = rc || hear(&said, x, here, e);
	buf_free(&said);
	return rc ? -1 : 0;
}
