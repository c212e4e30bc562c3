/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fuzz.h"
#include "fabric/read/json.h"

/* What a document is taken for is told as a document that is taken for the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *j = json_loadb((const char *) data, size, JSON_REJECT_DUPLICATES, NULL), *once, *twice;
	struct fabric *f = j ? fabric_of_json(j, "fuzz", NULL) : NULL, *again;

	json_decref(j);
	if (!f)
		return 0;
	once = fabric_json_parts(f);
	again = fabric_of_json(once, "fuzz", NULL);
	twice = again ? fabric_json_parts(again) : NULL;
	if (!twice || !json_equal(once, twice))
		abort();
	json_decref(once);
	json_decref(twice);
	fabric_free(f);
	fabric_free(again);
	return 0;
}
