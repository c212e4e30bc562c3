/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "admin.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#define CLOCKS_APART 300	/* seconds; munge refuses a replay for as long */

int admin_admit(struct call *c, const char *what)
{
	double apart;

	if (call_check_credential(c))
		return -1;
	if (c->signer != 0 && c->signer != geteuid())
		return call_fail(c, 403, "%s: signed by uid %u, and only root or topiaryd's user may %s", c->node,
				 (unsigned) c->signer, what);
	if (strcmp(c->claim.node, c->node))
		return call_fail(c, 403, "%s: the credential was signed for node %s", c->node, c->claim.node);
	apart = c->claim.seq / 1e9 - time(NULL);
	if (apart > CLOCKS_APART || apart < -CLOCKS_APART)
		return call_fail(c, 403, "%s: the credential is of another time", c->node);
	return 0;
}
