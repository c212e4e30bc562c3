/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "handlers.h"

#include <string.h>
#include <strings.h>

#include "hwxml/redact.h"

int access_admit(struct call *c)
{
	const char *about = *c->node ? c->node : ACCESS_CLAIM;

	if (!c->authorization)
		return 0;
	if (call_check_credential(c))
		return -1;
	if (strcmp(c->claim.node, about))
		return call_fail(c, 403, "%s: the credential was signed for %s", about, c->claim.node);
	c->reader = admin_check(c) ? ACCESS_ADMIN : ACCESS_USER;
	return 0;
}

/* The lowest access level that may read facts: ReadFacts is one of these words (base/settings.c). */
static enum call_access facts_reader(const char *read_facts)
{
	static const char *const words[] = { [ACCESS_ANYONE] = "anyone", [ACCESS_USER] = "users" };
	enum call_access least = ACCESS_ANYONE;

	while (least < ACCESS_ADMIN && strcasecmp(read_facts, words[least]))
		least++;
	return least;
}

int access_admit_fact(struct call *c, const char *fact)
{
	if (redact_applies(fact) && !access_sees_serials(c))
		return call_fail(c, 403, "%s: only administrators may read %s (PublishSerials)",
				 *c->node ? c->node : "facts", fact);
	return 0;
}

int access_admit_facts(struct call *c)
{
	enum call_access least = facts_reader(c->service->settings.read_facts);
	const char *fact = call_param(c, "fact"), *about = *c->node ? c->node : "facts";

	if (access_admit(c))
		return -1;
	if (c->reader < least && !c->authorization)
		return call_fail(c, 401, "%s: reading facts requires an 'Authorization: Munge' credential", about);
	if (c->reader < least)
		return call_fail(c, 403, "%s: only administrators may read facts (ReadFacts), and uid %u is not one",
				 about, (unsigned) c->signer);
	return fact ? access_admit_fact(c, fact) : 0;
}

bool access_sees_serials(const struct call *c)
{
	return c->reader == ACCESS_ADMIN || settings_yes(c->service->settings.publish_serials);
}
