/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/settings_here.h"

#include <netdb.h>
#include <pwd.h>
#include <sys/stat.h>

bool settings_list_any(const char *list, bool (*is)(void *user, const char *word), void *user)
{
	char word[256];

	for (size_t len; *(list += strspn(list, ", \t")); list += len) {
		len = strcspn(list, ", \t");
		if (len >= sizeof(word))
			continue;
		memcpy(word, list, len);
		word[len] = '\0';
		if (is(user, word))
			return true;
	}
	return false;
}

int settings_check_hook(const char *path, uid_t registry, struct err *e)
{
	struct stat st;

	if (stat(path, &st))
		return err_set(e, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(e, "%s: not a regular file", path);
	if (st.st_mode & (S_IWGRP | S_IWOTH) || (st.st_uid && st.st_uid != registry))
		return err_set(e, "%s: writable by others than root and topiaryd's user", path);
	return st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH) ? 0 : err_set(e, "%s: not executable", path);
}

struct check {
	settings_here_fn *report;
	void *user;
};

static void report(const struct check *c, const char *key, const char *value, const char *why)
{
	struct err e;

	err_set(&e, "%s=%s: %s", key, value, why);
	c->report(c->user, e.text);
}

/* Each goes through the whole list. */
static bool check_user(void *user, const char *name)
{
	if (name[strspn(name, "0123456789")] && !getpwnam(name))
		report(user, "Admins", name, "no such user on this host");
	return false;
}

static bool check_host(void *user, const char *name)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	int rc = getaddrinfo(name, NULL, &hints, &found);

	if (rc)
		report(user, "AdminHosts", name, gai_strerror(rc));
	else
		freeaddrinfo(found);
	return false;
}

static void check_pem(const struct check *c, const char *key, const char *path)
{
	/* Its key is for the registry's user only. */
	if (*path && access(path, R_OK) && errno != EACCES)
		report(c, key, path, strerror(errno));
}

void settings_check_here(const struct settings *s, uid_t registry, settings_here_fn *to, void *user)
{
	struct check c = { to, user };
	struct err e;
	uid_t signer;

	if (settings_uid(s->registry_user, &signer, &e))
		to(user, e.text);
	else if (signer != registry)
		report(&c, "RegistryUser", s->registry_user,
		       "another user runs topiaryd, and agents accept the acknowledgements of RegistryUser only");
	if (!s->admins[strspn(s->admins, ", \t")])
		report(&c, "Admins", s->admins, "only topiaryd's own user can accept nodes, import fabrics and repair");
	settings_list_any(s->admins, check_user, &c);
	settings_list_any(s->admin_hosts, check_host, &c);
	if (*s->drift_hook && settings_check_hook(s->drift_hook, registry, &e)) {
		err_within(&e, "DriftHook");
		to(user, e.text);
	}
	if (!*s->tls_certificate != !*s->tls_key)
		to(user, "TlsCertificate and TlsKey must be set together");
	check_pem(&c, "TlsCertificate", s->tls_certificate);
	check_pem(&c, "TlsKey", s->tls_key);
}
