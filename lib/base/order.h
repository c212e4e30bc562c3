/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/std.h"

/* A comparison for qsort(3), of elements x and y of a type: ORDER(row_compare, struct row, COMPARE(x->n, y->n)). */
#define ORDER(name, type, order)				\
	static int name(const void *x_, const void *y_)		\
	{							\
		const type *x = x_;				\
		const type *y = y_;				\
								\
		return order;					\
	}
