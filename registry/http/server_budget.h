/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_HTTP_SERVER_BUDGET_H
#define TOPIARY_REGISTRY_HTTP_SERVER_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* An amount that all connections share: bytes, or requests in progress. */
struct server_budget {
	atomic_size_t used;
	size_t max;
};

/* Acquire the whole amount or none. */
static inline bool server_budget_acquire(struct server_budget *b, size_t amount)
{
	size_t used = atomic_load(&b->used);

	do {
		if (amount > b->max || used > b->max - amount)
			return false;
	} while (!atomic_compare_exchange_weak(&b->used, &used, used + amount));
	return true;
}

static inline void server_budget_release(struct server_budget *b, size_t amount)
{
	atomic_fetch_sub(&b->used, amount);
}

#endif
