/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_BUDGET_H
#define TOPIARY_REGISTRY_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Bytes that all connections together may hold of something. */
struct budget {
	atomic_size_t used;
	size_t max;
};

/* Take so many, all or none. */
static inline bool budget_take(struct budget *b, size_t bytes)
{
	size_t used = atomic_load(&b->used);

	do {
		if (bytes > b->max || used > b->max - bytes)
			return false;
	} while (!atomic_compare_exchange_weak(&b->used, &used, used + bytes));
	return true;
}

static inline void budget_give(struct budget *b, size_t bytes)
{
	atomic_fetch_sub(&b->used, bytes);
}

#endif
