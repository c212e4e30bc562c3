/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/cred.h"
#include "table.h"

#define BOOT "0d4b3c1e-77aa-4d27-9c55-0123456789ab"
#define SHA "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

/* Only a claim that may be signed gets as far as munge, of which there is none here. */
static void signs_only_claims_that_are_whole(void **state)
{
	static const struct {
		const char *node, *boot_id, *sha256;
		bool whole;
		const char *purpose;	/* CLAIM_EXPORT if NULL */
	} rows[] = {
		{ "n1", BOOT, SHA, true, NULL },
		{ "n1.cluster_2-b", BOOT, SHA, true, NULL },
		{ "n1", BOOT, SHA, true, CLAIM_ACK },
		{ "n1", BOOT, SHA, false, "" },
		{ "n1", BOOT, SHA, false, "Export" },
		{ "n1", BOOT, SHA, false, "to n1" },
		{ "", BOOT, SHA, false, NULL },
		{ ".n1", BOOT, SHA, false, NULL },
		{ "-n1", BOOT, SHA, false, NULL },
		{ "n 1", BOOT, SHA, false, NULL },
		{ "n/1", BOOT, SHA, false, NULL },
		{ "n1", "", SHA, false, NULL },
		{ "n1", "------------------------------------", SHA, false, NULL },
		{ "n1", "0d4b3c1e077aa04d2709c5500123456789ab", SHA, false, NULL },
		{ "n1", "0d4b3c1e-77aa-4d27-9c550-123456789ab", SHA, false, NULL },
		{ "n1", "0D4B3C1E-77AA-4D27-9C55-0123456789AB", SHA, false, NULL },
		{ "n1", "0d4b3c1e-77aa-4d27-9c55-0123456789a", SHA, false, NULL },
		{ "n1", "0d4b3c1e-77aa-4d27-9c55-0123456789ag", SHA, false, NULL },
		{ "n1", "-d4b3c1e-77aa-4d27-9c55-0123456789ab", SHA, false, NULL },
		{ "n1", BOOT, "", false, NULL },
		{ "n1", BOOT, "abc", false, NULL },
		{ "n1", BOOT, "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD", false, NULL },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct claim c = { .seq = 1, .length = 1 };
		struct err e = {""};

		snprintf(c.purpose, sizeof(c.purpose), "%s", rows[i].purpose ? rows[i].purpose : CLAIM_EXPORT);
		snprintf(c.node, sizeof(c.node), "%s", rows[i].node);
		snprintf(c.boot_id, sizeof(c.boot_id), "%s", rows[i].boot_id);
		snprintf(c.sha256, sizeof(c.sha256), "%s", rows[i].sha256);
		assert_null(cred_sign(&c, getuid(), "/nowhere/munge", &e));
		if (!strstr(e.text, rows[i].whole ? "munged must run on this host" : "nothing was signed"))
			fail_msg("row %zu: %s", i, e.text);
	}
	(void)state;
}

static void knows_the_names_of_nodes(void **state)
{
	char longest[257];

	memset(longest, 'n', 256);
	longest[256] = '\0';
	assert_false(claim_node_valid(longest));
	longest[255] = '\0';
	assert_true(claim_node_valid(longest));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signs_only_claims_that_are_whole),
		cmocka_unit_test(knows_the_names_of_nodes),
	};

	return cmocka_run_group_tests_name("cred", tests, NULL, NULL);
}
