/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fuzz.h"
#include "client/claim.h"

/* What is read is written again to the letter, and names a node that a path may hold. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[2 * CLAIM_MAX], again[CLAIM_MAX];
	struct claim c;

	if (size >= sizeof(text))
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (claim_parse(text, &c))
		return 0;
	if (claim_write(&c, again) || strcmp(text, again) || !claim_node_valid(c.node) || strchr(c.node, '/'))
		abort();
	return 0;
}
