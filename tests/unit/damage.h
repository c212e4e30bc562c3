/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

/* What disks, networks and half-done copies do to a file, the same again for the same seed. */

#include "base/buf.h"
#include "table.h"

struct dice {
	uint64_t state;		/* not 0 */
};

/* xorshift64 (Marsaglia, "Xorshift RNGs", 2003): a number below n. */
static inline size_t dice_roll(struct dice *d, size_t n)
{
	d->state ^= d->state << 13;
	d->state ^= d->state >> 7;
	d->state ^= d->state << 17;
	return d->state % n;
}

/* A run of bytes: where it starts, and where it ends. */
struct stretch {
	size_t from, to;
};

static inline struct stretch stretch_roll(struct dice *d, size_t from, size_t to)
{
	size_t a = from + dice_roll(d, to - from), b = a + 1 + dice_roll(d, to - a);

	return (struct stretch){ a, b };
}

static inline void damage_flips(const struct buf *good, struct dice *d, struct buf *bad)
{
	buf_add(bad, good->data, good->len);
	for (size_t n = 1 + dice_roll(d, 8); n; n--)
		bad->data[dice_roll(d, bad->len)] ^= 1 << dice_roll(d, 8);
}

static inline void damage_truncation(const struct buf *good, struct dice *d, struct buf *bad)
{
	buf_add(bad, good->data, dice_roll(d, good->len));
}

static inline void damage_loss(const struct buf *good, struct dice *d, struct buf *bad)
{
	struct stretch s = stretch_roll(d, 0, good->len);

	buf_add(bad, good->data, s.from);
	buf_add(bad, good->data + s.to, good->len - s.to);
}

static inline void damage_double(const struct buf *good, struct dice *d, struct buf *bad)
{
	struct stretch s = stretch_roll(d, 0, good->len);

	buf_add(bad, good->data, s.to);
	buf_add(bad, good->data + s.from, good->len - s.from);
}

static inline void damage_swap(const struct buf *good, struct dice *d, struct buf *bad)
{
	struct stretch all = stretch_roll(d, 0, good->len);
	size_t middle = all.from + dice_roll(d, all.to - all.from);

	buf_add(bad, good->data, all.from);
	buf_add(bad, good->data + middle, all.to - middle);
	buf_add(bad, good->data + all.from, middle - all.from);
	buf_add(bad, good->data + all.to, good->len - all.to);
}

static inline void damage_insertion(const struct buf *good, struct dice *d, struct buf *bad)
{
	static const char likely[] = " \t\n\r#0";
	size_t at = dice_roll(d, good->len + 1);

	buf_add(bad, good->data, at);
	for (size_t n = 1 + dice_roll(d, 4); n; n--) {
		char byte = dice_roll(d, 2) ? likely[dice_roll(d, sizeof(likely) - 1)] : (char) dice_roll(d, 256);

		buf_add(bad, &byte, 1);
	}
	buf_add(bad, good->data + at, good->len - at);
}

static inline void damage_overwriting(const struct buf *good, struct dice *d, struct buf *bad)
{
	struct stretch s = stretch_roll(d, 0, good->len);

	buf_add(bad, good->data, good->len);
	memset(bad->data + s.from, dice_roll(d, 2) ? 0 : ' ', s.to - s.from);
}

/* One damage to the text, which then is another; bad is emptied first. */
static inline void damage(const struct buf *good, struct dice *d, struct buf *bad)
{
	static void (*const ways[])(const struct buf *, struct dice *, struct buf *) = {
		damage_flips, damage_truncation, damage_loss, damage_double, damage_swap, damage_insertion,
		damage_overwriting,
	};

	do {
		bad->len = 0;
		ways[dice_roll(d, ROWS(ways))](good, d, bad);
		assert_false(bad->failed);
	} while (bad->len == good->len && !memcmp(bad->data, good->data, good->len));
}
