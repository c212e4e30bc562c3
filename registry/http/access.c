/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "handlers.h"

#include <pwd.h>

#include "hwxml/redact.h"
#include "peer.h"
#include "base/settings_here.h"
#include "base/log.h"

/*
 * Notes
 *
 * No data. Called in a worker, for its own request: the user database, munged and the resolver may be waited for.
 */

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

int access_admit_fact(struct call *c, const char *fact)
{
	if (redact_applies(fact) && !access_sees_serials(c))
		return call_fail(c, 403, "%s: only administrators may read %s (PublishSerials)",
				 *c->node ? c->node : "facts", fact);
	return 0;
}

int access_admit_facts(struct call *c)
{
	const char *readers = c->service->settings.read_facts;	/* one of three words (base/settings.c) */
	enum call_access least = !strcasecmp(readers, "anyone") ? ACCESS_ANYONE :
		!strcasecmp(readers, "users") ? ACCESS_USER : ACCESS_ADMIN;
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

/* --- administrators --- */

#define CLOCKS_APART 300	/* seconds; munge detects a replay for as long */

/* By name or number. */
static bool is_user(void *call, const char *user)
{
	const struct call *c = call;
	char space[4096], *end;
	struct passwd pw, *found = NULL;
	unsigned long uid = strtoul(user, &end, 10);

	if (!*end)
		return uid == c->signer;
	return getpwnam_r(user, &pw, space, sizeof(space), &found) == 0 && found && pw.pw_uid == c->signer;
}

/* A refused attempt may be an attack, so it is logged, too. */
static int admin_refuse(struct call *c, const char *why)
{
	log_warning("%s: uid %u %s may not %s", c->node, (unsigned) c->signer, why, c->what);
	return call_fail(c, 403, "%s: uid %u %s may not %s", c->node, (unsigned) c->signer, why, c->what);
}

static bool is_admin(struct call *c)
{
	return c->signer == geteuid() || settings_list_any(c->service->settings.admins, is_user, c);
}

bool admin_check(struct call *c)
{
	return is_admin(c) && (peer_is_here(c) || settings_list_any(c->service->settings.admin_hosts, peer_is_host, c));
}

int admin_check_claim(struct call *c)
{
	double apart = c->claim.seq / 1e9 - time(NULL);

	if (strcmp(c->claim.node, c->node))
		return call_fail(c, 403, "%s: the credential was signed for %s", c->node, c->claim.node);
	if (apart > CLOCKS_APART || apart < -CLOCKS_APART)
		return call_fail(c, 403, "%s: the credential's time differs from the registry's by more than 5"
					 " minutes; synchronize the clocks", c->node);
	return 0;
}

int admin_admit(struct call *c)
{
	if (call_check_credential(c))
		return -1;
	if (!is_admin(c))
		return admin_refuse(c, "is not one of Admins and");
	if (!admin_check(c))
		return admin_refuse(c, "is on a host that is not one of AdminHosts, or behind a proxy, and");
	return admin_check_claim(c);
}

PGresult *admin_query_node(struct call *c, struct db *db, const char *sql)
{
	struct err e;
	PGresult *r = db_query(db, &e, sql, 1, &DB_TEXT(c->node));

	if (!r)
		call_fail(c, 503, "%s: %s", c->node, e.text);
	else if (!PQntuples(r))
		call_fail(c, 404, "%s: not in the registry", c->node);
	else if (strcmp(PQgetvalue(r, 0, PQnfields(r) - 1), c->claim.sha256))
		call_fail(c, 409, "%s: the node's topology has changed meanwhile; look at it again", c->node);
	else
		return r;
	PQclear(r);
	return NULL;
}
