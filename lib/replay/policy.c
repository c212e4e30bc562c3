/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "replay/policy.h"

#include <stdio.h>
#include <string.h>

static int policy_fit(const char *word, struct policy *p, struct err *e)
{
	struct request q = { .fit = FIT_PREFER, .level = LEVEL_NODE, .memory = FIT_PREFER };
	char parts[POLICY_NAME], *rest = parts, *fit, *part;

	snprintf(parts, sizeof(parts), "%s", word);
	fit = strsep(&rest, ":");
	if (fit_parse(fit) < 0)
		return err_set(e, "'%.40s': invalid policy, expected one of: stock, block, off, prefer,"
			       " require, spread", word);
	if (request_set(&q, "topo-fit", fit, e))
		return err_within(e, "'%.40s'", word);
	while ((part = strsep(&rest, ":"))) {
		bool is_memory = !strncmp(part, "mem=", 4);

		if (request_set(&q, is_memory ? "topo-mem" : "topo-level", is_memory ? part + 4 : part, e))
			return err_within(e, "'%.40s'", word);
	}
	p->kind = POLICY_FIT;
	p->request = q;
	return 0;
}

int policy_parse(const char *word, struct policy *out, struct err *e)
{
	struct policy p = {0};

	if ((size_t) snprintf(p.name, sizeof(p.name), "%s", word) >= sizeof(p.name))
		return err_set(e, "'%.40s': unknown policy", word);
	if (!strcmp(word, "stock"))
		p.kind = POLICY_STOCK;
	else if (!strcmp(word, "block"))
		p.kind = POLICY_BLOCK;
	else if (policy_fit(word, &p, e))
		return -1;
	*out = p;
	return 0;
}
