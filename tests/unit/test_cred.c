/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "client/cred.h"
#include "table.h"

#define BOOT "0d4b3c1e-77aa-4d27-9c55-0123456789ab"
#define SHA "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

/* Only a claim that may be signed gets as far as munge, of which there is none here. */
TEST(signs_only_claims_that_are_whole)
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
}

TEST(knows_the_names_of_nodes)
{
	char longest[257];

	memset(longest, 'n', 256);
	longest[256] = '\0';
	assert_false(claim_node_valid(longest));
	longest[255] = '\0';
	assert_true(claim_node_valid(longest));
}

/* Read as written, and acknowledged as by any HMAC-SHA256, unless the key is none. */
TEST(acknowledges_with_the_claims_key)
{
	struct claim c = { .purpose = CLAIM_EXPORT, .node = "n1", .boot_id = BOOT, .seq = 7, .length = 3, .sha256 = SHA,
			   .key = "000102030405060708090a0b0c0d0e0f" }, read;
	char text[CLAIM_MAX], ack[CLAIM_MAC];

	assert_int_equal(claim_write(&c, text), 0);
	assert_string_equal(text, "topiary2 export n1 " BOOT " 7 3 " SHA " 000102030405060708090a0b0c0d0e0f");
	assert_int_equal(claim_parse(text, &read), 0);
	assert_memory_equal(&read, &c, sizeof(c));
	assert_int_equal(claim_ack(&c, ack), 0);
	assert_string_equal(ack, "hmac-sha256 d800dec674f074ec3f0bd768b71db256a31858c6aeb137ab4d5e482cfc0432ad");
	for (const char **bad = (const char *[]){ "0", "000102030405060708090A0B0C0D0E0F", NULL }; *bad; bad++) {
		snprintf(c.key, sizeof(c.key), "%s", *bad);
		assert_int_equal(claim_write(&c, text), -1);
	}
	c.key[0] = '\0';
	assert_int_equal(claim_ack(&c, ack), -1);
}

TESTS_MAIN(NULL, NULL)
