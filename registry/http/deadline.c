/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "deadline.h"

#include <assert.h>
#include <sys/ioctl.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "peer.h"

/*
 * Notes
 *
 * One lock, that of the thread, protects all connections and sources. Called by libmicrohttpd's threads and by workers,
 * for a connection that libmicrohttpd keeps open until deadline_remove: a socket is shut down here, and never closed. A
 * connection that was shut down stays in the list, but no longer counts. `idle`, `keep` and `until` are what its
 * request is doing: see deadline.h.
 */
struct source {
	LIST_ENTRY(source) link;
	struct in6_addr address;
	unsigned n, held;	/* connections not shut down; all open ones, which keep this entry */
	size_t had[SHARE_COUNT];
};

struct deadline {
	LIST_ENTRY(deadline) link;
	struct source *source;
	int fd;
	bool shut, keep, idle;	/* idle: between two requests */
	bool asked;		/* it has had a request */
	double since, until;	/* in clock_now; until 0: not waiting for the client */
};

struct deadlines {
	struct background background;	/* its lock is of all that follows */
	unsigned n;		/* connections not shut down */
	LIST_HEAD(, deadline) all;
	LIST_HEAD(, source) sources;
};

static void connection_shut(struct deadlines *d, struct deadline *one)
{
	assert(!one->shut && one->source->n && d->n);
	shutdown(one->fd, SHUT_RDWR);
	one->shut = true;
	one->source->n--;
	d->n--;
}

static void *deadline_thread(void *user)
{
	struct deadlines *d = user;
	struct deadline *one;

	pthread_mutex_lock(&d->background.lock);
	while (!d->background.stop) {
		double t = clock_now();

		LIST_FOREACH(one, &d->all, link)
			if (one->until && one->until <= t && !one->shut)
				connection_shut(d, one);
		clock_wait(&d->background.wake, &d->background.lock, t + 1);
	}
	pthread_mutex_unlock(&d->background.lock);
	return NULL;
}

struct deadlines *deadlines_start(struct err *e)
{
	struct deadlines *d = calloc(1, sizeof(*d));

	if (!d)
		return err_null(e, "out of memory");
	LIST_INIT(&d->all);
	LIST_INIT(&d->sources);
	if (background_start(&d->background, deadline_thread, d, "deadlines", e)) {
		free(d);
		return NULL;
	}
	return d;
}

void deadlines_stop(struct deadlines *d)
{
	if (!d)
		return;
	background_stop(&d->background);
	assert(LIST_EMPTY(&d->all));
	free(d);
}

static struct source *source_of(struct deadlines *d, const struct in6_addr *address)
{
	struct source *s;

	LIST_FOREACH(s, &d->sources, link)
		if (IN6_ARE_ADDR_EQUAL(&s->address, address))
			return s;
	if ((s = calloc(1, sizeof(*s)))) {
		s->address = *address;
		LIST_INSERT_HEAD(&d->sources, s, link);
	}
	return s;
}

static struct source *largest_source(struct deadlines *d)
{
	struct source *most = NULL, *s;

	LIST_FOREACH(s, &d->sources, link)
		if (!most || s->n > most->n)
			most = s;
	return most;
}

static struct deadline *longest_waiting(struct deadlines *d, const struct source *s)
{
	struct deadline *found = NULL, *one;

	LIST_FOREACH(one, &d->all, link)
		if (one->source == s && one->until && !one->shut && !one->keep &&
		    (!found || one->since <= found->since))
			found = one;
	return found;
}

struct deadline *deadline_add(struct deadlines *d, int fd, const struct sockaddr *peer, unsigned seconds)
{
	const struct in6_addr address = peer_source(peer);
	struct deadline *one = calloc(1, sizeof(*one)), *victim;
	struct source *from;

	if (!one)
		return NULL;
	one->fd = fd;
	one->idle = true;
	one->since = clock_now();
	one->until = one->since + seconds;
	pthread_mutex_lock(&d->background.lock);
	if ((one->source = source_of(d, &address))) {
		one->source->n++;
		one->source->held++;
		d->n++;
		LIST_INSERT_HEAD(&d->all, one, link);
		/* When the source has too many and none of them waits, the new one is shut down. */
		from = one->source->n > SOURCE_CONNECTIONS ? one->source :
		       d->n > CONNECTIONS ? largest_source(d) : NULL;
		if (from && from->n > FAIR_CONNECTIONS && (victim = longest_waiting(d, from)))
			connection_shut(d, victim);
	} else {
		free(one);
		one = NULL;
	}
	pthread_mutex_unlock(&d->background.lock);
	return one;
}

unsigned deadlines_count(struct deadlines *d)
{
	unsigned n;

	pthread_mutex_lock(&d->background.lock);
	n = d->n;
	pthread_mutex_unlock(&d->background.lock);
	return n;
}

void deadline_set(struct deadlines *d, struct deadline *one, unsigned seconds)
{
	if (!one)
		return;
	pthread_mutex_lock(&d->background.lock);
	one->since = clock_now();
	one->until = seconds ? one->since + seconds : 0;
	pthread_mutex_unlock(&d->background.lock);
}

void deadline_idle(struct deadlines *d, struct deadline *one, bool idle)
{
	if (!one)
		return;
	pthread_mutex_lock(&d->background.lock);
	one->idle = idle;
	one->asked |= !idle;
	pthread_mutex_unlock(&d->background.lock);
}

void deadlines_shut_idle(struct deadlines *d, double seconds)
{
	struct deadline *one;
	double since;
	int unread;

	pthread_mutex_lock(&d->background.lock);
	since = clock_now() - seconds;
	LIST_FOREACH(one, &d->all, link)
		if (one->idle && one->since <= since && !one->shut && !ioctl(one->fd, FIONREAD, &unread) && !unread)
			connection_shut(d, one);
	pthread_mutex_unlock(&d->background.lock);
}

void deadline_keep(struct deadlines *d, struct deadline *one, bool keep)
{
	if (!one)
		return;
	pthread_mutex_lock(&d->background.lock);
	one->keep = keep;
	pthread_mutex_unlock(&d->background.lock);
}

bool deadline_acquire(struct deadlines *d, struct deadline *one, enum deadline_share which, size_t amount, size_t max)
{
	struct source *s = one ? one->source : NULL;
	bool may;

	if (!s || IN6_IS_ADDR_LOOPBACK(&s->address))
		return true;
	pthread_mutex_lock(&d->background.lock);
	may = !s->had[which] || s->had[which] + amount <= max;
	s->had[which] += may ? amount : 0;
	pthread_mutex_unlock(&d->background.lock);
	return may;
}

void deadline_release(struct deadlines *d, struct deadline *one, enum deadline_share which, size_t amount)
{
	if (!one || IN6_IS_ADDR_LOOPBACK(&one->source->address))
		return;
	pthread_mutex_lock(&d->background.lock);
	assert(one->source->had[which] >= amount);
	one->source->had[which] -= amount;
	pthread_mutex_unlock(&d->background.lock);
}

bool deadline_remove(struct deadlines *d, struct deadline *one)
{
	bool asked;

	if (!one)
		return true;
	pthread_mutex_lock(&d->background.lock);
	asked = one->asked || one->shut;
	LIST_REMOVE(one, link);
	one->source->n -= !one->shut;
	d->n -= !one->shut;
	if (!--one->source->held) {
		LIST_REMOVE(one->source, link);
		free(one->source);
	}
	pthread_mutex_unlock(&d->background.lock);
	free(one);
	return asked;
}
