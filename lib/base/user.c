/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/user.h"

#include <pwd.h>

#include "base/std.h"

/* The largest uid is no user's: setresuid(2) takes it for "unchanged", munge for "anybody". */
static int number(const char *digits, uid_t *uid, struct err *e)
{
	unsigned long n;

	errno = 0;
	n = strtoul(digits, NULL, 10);
	if (errno || n >= (uid_t) -1)
		return err_set(e, "RegistryUser=%s: not a uid", digits);
	*uid = n;
	return 0;
}

int user_uid(const char *name, uid_t *uid, struct err *e)
{
	const struct passwd *pw;

	if (*name && !name[strspn(name, "0123456789")])
		return number(name, uid, e);
	if (!(pw = getpwnam(name)))
		return err_set(e, "RegistryUser=%s: no such user on this host; create it with the uid it has on the "
			       "registry's host, or set RegistryUser to that uid", name);
	*uid = pw->pw_uid;
	return 0;
}
