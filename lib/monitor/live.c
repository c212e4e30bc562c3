/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "monitor/live.h"

#include <assert.h>
#include <endian.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "trace/block.h"

#define HEAD_AT 64u
#define TRIES 1000u		/* of a reading while ticks are written */

struct page {
	char magic[8];
	uint64_t size, head, columns;
	_Atomic uint64_t sequence, time;
};

struct column {
	_Atomic uint64_t value, absent;
};

struct live_writer {
	struct page *page;
	struct column *columns;
	const struct trace_head *head;
};

struct live_own {
	int fd;
	const struct page *page;
	const struct column *columns;
	uint64_t sequence;		/* of the last reading */
	uint64_t *value, *absent;	/* then */
	uint64_t *new_value, *new_absent;
	uint64_t *room;			/* of all four */
};

_Static_assert(sizeof(struct page) <= HEAD_AT && sizeof(struct column) == 16, "the layout in live.h");

static uint64_t columns_at(uint64_t head)
{
	return HEAD_AT + (head + 15) / 16 * 16;
}

static uint64_t size_of(uint64_t head, uint64_t columns)
{
	return columns_at(head) + columns * sizeof(struct column);
}

/* --- writing --- */

/* Root reads and writes, one user reads. Every file system for RunDir has access control lists; NFS does not. */
static int acl_set(int fd, uid_t reader)
{
#define ENTRY(tag, may, id) { htole16(tag), htole16(may), htole32(id) }
	struct {
		struct posix_acl_xattr_header header;
		struct posix_acl_xattr_entry entries[5];
	} acl = {
		{ htole32(POSIX_ACL_XATTR_VERSION) },
		{
			ENTRY(ACL_USER_OBJ, ACL_READ | ACL_WRITE, ACL_UNDEFINED_ID),
			ENTRY(ACL_USER, ACL_READ, reader),
			ENTRY(ACL_GROUP_OBJ, 0, ACL_UNDEFINED_ID),
			ENTRY(ACL_MASK, ACL_READ, ACL_UNDEFINED_ID),
			ENTRY(ACL_OTHER, 0, ACL_UNDEFINED_ID),
		},
	};

	return fsetxattr(fd, "system.posix_acl_access", &acl, sizeof(acl), 0);
}

static struct page *page_map(int fd, uint64_t size, int how)
{
	void *at = mmap(NULL, size, how, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

static bool is_same(const struct page *p, uint64_t size, const struct buf *head, const struct trace_head *h)
{
	return !memcmp(p->magic, LIVE_MAGIC, sizeof(p->magic)) && p->size == size && p->head == head->len &&
	       p->columns == h->columns && !memcmp((const char *) p + HEAD_AT, head->data, head->len);
}

/* What an earlier topiary-monitor left, if it is of the same trace. */
static struct page *page_continue(int dir, uint64_t size, const struct buf *head, const struct trace_head *h)
{
	int fd = openat(dir, LIVE_FILE, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct page *p = NULL;
	struct stat st;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && !st.st_uid && (uint64_t) st.st_size == size)
		p = page_map(fd, size, PROT_READ | PROT_WRITE);
	close(fd);
	if (p && !is_same(p, size, head, h)) {
		munmap(p, size);
		p = NULL;
	}
	return p;
}

/* All of its blocks are there before it is mapped: a page without one would end the monitor by SIGBUS. */
static struct page *page_create(int dir, uint64_t size, const struct buf *head, const struct trace_head *h,
				uid_t reader, struct err *e)
{
	struct page *p = NULL;
	int fd, error;

	unlinkat(dir, LIVE_FILE, 0);
	fd = openat(dir, LIVE_FILE, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	error = fd < 0 ? errno : posix_fallocate(fd, 0, size);
	if (!error && !(p = page_map(fd, size, PROT_READ | PROT_WRITE)))
		error = errno;
	if (p) {
		p->size = size;
		p->head = head->len;
		p->columns = h->columns;
		memcpy((char *) p + HEAD_AT, head->data, head->len);
		if (reader && acl_set(fd, reader))
			error = errno;
		memcpy(p->magic, LIVE_MAGIC, sizeof(p->magic));
	}
	if (fd >= 0)
		close(fd);
	if (!error)
		return p;
	if (p)
		munmap(p, size);
	if (fd >= 0)
		unlinkat(dir, LIVE_FILE, 0);
	return err_null(e, LIVE_FILE ": %s", strerror(error));
}

struct live_writer *live_writer_new(int dir, const struct trace_head *h, uid_t reader, struct err *e)
{
	struct live_writer *w = calloc(1, sizeof(*w));
	struct buf head = {0};
	uint64_t size;

	if (!w || trace_head_write(h, &head, e)) {
		if (!w)
			err_set(e, "out of memory");
		goto error;
	}
	size = size_of(head.len, h->columns);
	if (!(w->page = page_continue(dir, size, &head, h)) &&
	    !(w->page = page_create(dir, size, &head, h, reader, e)))
		goto error;
	w->columns = (struct column *) ((char *) w->page + columns_at(head.len));
	w->head = h;
	buf_free(&head);
	return w;
error:
	buf_free(&head);
	free(w);
	return NULL;
}

/* A monitor that was killed may have left an odd sequence. */
void live_writer_tick(struct live_writer *w, uint64_t time, const uint64_t *values)
{
	uint64_t odd = atomic_load_explicit(&w->page->sequence, memory_order_relaxed) | 1;

	assert(w->head->columns == w->page->columns);
	atomic_store_explicit(&w->page->sequence, odd, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	for (unsigned i = 0; i < w->head->nevents; i++) {
		const struct trace_event *x = &w->head->events[i];

		for (unsigned c = x->column; c < x->column + w->head->levels[x->level].n; c++) {
			uint64_t sum = atomic_load_explicit(&w->columns[c].value, memory_order_relaxed);

			if (values[c] == TRACE_ABSENT)
				atomic_fetch_add_explicit(&w->columns[c].absent, 1, memory_order_relaxed);
			else
				atomic_store_explicit(&w->columns[c].value, x->kind == TRACE_COUNTER ? sum + values[c] :
						      values[c], memory_order_relaxed);
		}
	}
	atomic_store_explicit(&w->page->time, time, memory_order_relaxed);
	atomic_store_explicit(&w->page->sequence, odd + 1, memory_order_release);
}

void live_writer_free(struct live_writer *w)
{
	if (!w)
		return;
	munmap(w->page, w->page->size);
	free(w);
}

/* --- reading --- */

/* Root's alone, so that nobody cuts it short while it is mapped. */
static int page_open(struct live_own *own, const char *path, struct err *e)
{
	struct page *p;
	struct stat st;

	own->fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (own->fd < 0 || fstat(own->fd, &st))
		return err_set(e, "%s: %s", path, strerror(errno));
	errno = EINVAL;
	if (!S_ISREG(st.st_mode) || st.st_uid || (st.st_mode & 022) || st.st_size < HEAD_AT)
		return err_set(e, "%s: not a page of topiary-monitor's", path);
	if (!(p = page_map(own->fd, st.st_size, PROT_READ)))
		return err_set(e, "%s: %s", path, strerror(errno));
	own->page = p;
	if (!memcmp(p->magic, LIVE_MAGIC, sizeof(p->magic)) && p->size == (uint64_t) st.st_size &&
	    p->head <= TRACE_HEAD_MAX && p->columns <= TRACE_COLUMNS_MAX && size_of(p->head, p->columns) == p->size)
		return 0;
	munmap(p, st.st_size);
	own->page = NULL;
	errno = EINVAL;
	return err_set(e, "%s: not a page of topiary-monitor's", path);
}

static int reader_open(struct live_reader *r, const char *path, struct err *e)
{
	struct live_own *own = r->own;

	if (page_open(own, path, e))
		return -1;
	own->columns = (const struct column *) ((const char *) own->page + columns_at(own->page->head));
	if (trace_head_parse((const char *) own->page + HEAD_AT, own->page->head, &r->head, e))
		return err_within(e, "%s", path);
	own->room = calloc(4 * (size_t) r->head.columns, sizeof(*own->room));
	if (r->head.columns != own->page->columns || !own->room)
		return err_set(e, "%s: not a page of topiary-monitor's, or out of memory", path);
	own->value = own->room;
	own->absent = own->value + r->head.columns;
	own->new_value = own->absent + r->head.columns;
	own->new_absent = own->new_value + r->head.columns;
	return 0;
}

struct live_reader *live_reader_open(const char *path, struct err *e)
{
	struct live_reader *r = calloc(1, sizeof(*r));
	int error;

	if (r && (r->own = calloc(1, sizeof(*r->own)))) {
		r->own->fd = -1;
		if (!reader_open(r, path, e))
			return r;
	} else {
		err_set(e, "out of memory");
	}
	error = errno;
	live_reader_close(r);
	errno = error;
	return NULL;
}

void live_reader_close(struct live_reader *r)
{
	if (!r)
		return;
	if (r->own) {
		if (r->own->page)
			munmap((void *) r->own->page, r->own->page->size);
		if (r->own->fd >= 0)
			close(r->own->fd);
		free(r->own->room);
	}
	free(r->own);
	trace_head_free(&r->head);
	free(r);
}

/* One tick as a whole. False: none that is new, or the writer was killed while it wrote. */
static bool page_copy(const struct live_reader *r, uint64_t *sequence, uint64_t *time)
{
	const struct live_own *own = r->own;

	for (unsigned i = 0; i < TRIES; i++) {
		*sequence = atomic_load_explicit(&own->page->sequence, memory_order_acquire);
		if (*sequence == own->sequence)
			return false;
		for (unsigned c = 0; c < r->head.columns; c++) {
			own->new_value[c] = atomic_load_explicit(&own->columns[c].value, memory_order_relaxed);
			own->new_absent[c] = atomic_load_explicit(&own->columns[c].absent, memory_order_relaxed);
		}
		*time = atomic_load_explicit(&own->page->time, memory_order_relaxed);
		atomic_thread_fence(memory_order_acquire);
		if (!(*sequence & 1) &&
		    *sequence == atomic_load_explicit(&own->page->sequence, memory_order_relaxed))
			return true;
	}
	return false;
}

int live_read(struct live_reader *r, uint64_t *values, uint64_t *begin, uint64_t *end)
{
	struct live_own *own = r->own;
	uint64_t sequence, time, *old;
	bool is_first = !own->sequence;
	struct stat st;

	if (!page_copy(r, &sequence, &time))
		return fstat(own->fd, &st) || !st.st_nlink ? -1 : 0;
	*begin = r->time;
	*end = r->time = time;
	for (unsigned i = 0; i < r->head.nevents; i++) {
		const struct trace_event *x = &r->head.events[i];

		for (unsigned c = x->column; c < x->column + r->head.levels[x->level].n; c++)
			values[c] = own->new_absent[c] != own->absent[c] ? TRACE_ABSENT :
				own->new_value[c] - (x->kind == TRACE_COUNTER ? own->value[c] : 0);
	}
	own->sequence = sequence;
	old = own->value;
	own->value = own->new_value;
	own->new_value = old;
	old = own->absent;
	own->absent = own->new_absent;
	own->new_absent = old;
	return !is_first;
}
