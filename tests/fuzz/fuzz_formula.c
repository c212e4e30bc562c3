/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fuzz.h"
#include "trace/formula.h"

/* A formula that is read has a finite value or none, whatever the events are. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	double values[FORMULA_OPERANDS];
	struct formula_list l;
	struct err e;

	if (formula_list_parse((const char *) data, size, "fuzz", &l, &e))
		return 0;
	for (unsigned i = 0; i < FORMULA_OPERANDS; i++)
		values[i] = i % 3 ? i * 1e9 : 0;
	for (unsigned i = 0; i < l.n; i++)
		if (isinf(formula_value(&l.list[i], values, 1)))
			abort();
	formula_list_free(&l);
	return 0;
}
