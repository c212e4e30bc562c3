/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <hwloc.h>
#include <limits.h>
#include <linux/magic.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/user.h"
#include "client/cred.h"
#include "client/http.h"
#include "doctor.h"
#include "monitor/ask.h"
#include "shape/hostlist.h"
#include "shape/hostset.h"
#include "shape/snapshot.h"

#define ROOM_LIMIT (16u << 20) /* bytes that RunDir should have free */
#define XML_MAX (64u << 20)
#define MEANWHILE "slurmctld continues with the last good snapshot that it has read; after a restart Slurm places " \
	"jobs as without Topiary"
#define NAMED 3 /* nodes that a finding names */

void doctor_check_settings(struct doctor *d)
{
	const struct settings *s = &d->cmd->settings;

	if (access(s->topiary_command, X_OK))
		doctor_add(d, DOCTOR_WARNING,
			   "install the package topiary, or correct TopiaryCommand: jobs with "
			   "--topo-matrix run unmapped",
			   "TopiaryCommand=%s: %s", s->topiary_command, strerror(errno));
	else
		doctor_add(d, DOCTOR_OK, NULL, "TopiaryCommand=%s", s->topiary_command);
}

void doctor_check_account(struct doctor *d)
{
	const char *user = d->cmd->settings.registry_user;
	struct err e;
	uid_t uid;

	if (user_uid(user, &uid, &e))
		doctor_add(d, DOCTOR_ERROR,
			   "install topiary-common, or set RegistryUser to the uid that topiaryd has "
			   "on the registry's host",
			   "%s", e.text);
	else
		doctor_add(d, DOCTOR_OK, NULL, "RegistryUser=%s has uid %u", user, (unsigned) uid);
}

static int encode_and_decode(const struct doctor *d, struct buf *out, struct err *e)
{
	buf_puts(out, "encoded and decoded a credential");
	return cred_test("doctor", d->cmd->settings.munge_socket, e);
}

void doctor_check_munge(struct doctor *d)
{
	const char *socket = d->cmd->settings.munge_socket;
	struct buf out = { 0 };
	struct err e;

	if (doctor_limited(encode_and_decode, d, &out, &e))
		doctor_add(d, DOCTOR_ERROR,
			   "start munged (systemctl restart munge), or correct MungeSocket: without "
			   "it nothing is exported",
			   "munged%s%s: %s", *socket ? " at " : "", socket, e.text);
	else
		doctor_add(d, DOCTOR_OK, NULL, "%s", out.data);
	buf_free(&out);
}

static const char *url_of(const struct doctor *d)
{
	return d->cmd->url ? d->cmd->url : d->cmd->settings.registry_url;
}

static int get(const struct doctor *d, const char *path, const char *authorization, struct http_answer *a,
	       struct err *e)
{
	const struct cmd *c = d->cmd;

	return http_do(&c->settings,
		       &(struct http_request){ .method = "GET",
					       .base = url_of(d),
					       .path = path,
					       .authorization = authorization,
					       .timeout = DOCTOR_SECONDS },
		       a, e);
}

static void report_readiness(struct doctor *d, const json_t *answer)
{
	static const struct {
		const char *part, *remedy;
	} remedies[] = {
		{ "database", "start PostgreSQL, or correct Database; the reason is in topiaryd's log" },
		{ "schema",
		  "install the release of topiaryd that fits the database, and restart it: it applies its "
		  "migrations" },
		{ "munge", "start munged on the registry's host" },
		{ "disk",
		  "free space in the directories of SnapshotFile, FabricFile and CostsFile, which topiaryd's user "
		  "must be able to write" },
		{ "workers", "read topiaryd's log: its parser workers do not run" },
	};

	for (size_t i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++) {
		const char *state = cmd_text(json_object_get(answer, "checks"), remedies[i].part);

		/* Without the database nothing is known of its schema. */
		if (!strcmp(remedies[i].part, "schema") &&
		    strcmp(cmd_text(json_object_get(answer, "checks"), "database"), "ok"))
			continue;
		if (strcmp(state, "ok"))
			doctor_add(d, DOCTOR_ERROR, remedies[i].remedy, "topiaryd is not ready: %s: %s",
				   remedies[i].part, state);
	}
}

/* What the agent and commands sign is for RegistryUser only. Failures to sign are reported by other checks. */
static int read_signed(const struct doctor *d, struct buf *out, struct err *e)
{
	char sha256[HASH_HEX], *credential;
	struct buf path = { 0 }, authorization = { 0 };
	struct http_answer a = { 0 };
	int rc = 0;

	(void) out;
	hash_hex("", 0, sha256);
	if (!(credential = cmd_sign(d->cmd, CLAIM_READ, d->cmd->settings.node_name, sha256, 0, e)))
		return 0;
	cmd_node_path(&path, d->cmd->settings.node_name, "/history");
	buf_printf(&authorization, "Munge %s", credential);
	if (!path.failed && !authorization.failed && get(d, path.data, authorization.data, &a, e) == 0 &&
	    a.status == 401) {
		json_t *answer = http_json(&a);

		rc = err_set(e, "topiaryd rejects credentials of this host: %s", cmd_text(answer, "error"));
		json_decref(answer);
	}
	http_free(&a);
	free(credential);
	buf_free(&authorization);
	buf_free(&path);
	return rc;
}

static void check_credential(struct doctor *d)
{
	struct buf out = { 0 };
	struct err e;

	if (doctor_limited(read_signed, d, &out, &e))
		doctor_add(d, DOCTOR_ERROR,
			   "set RegistryUser to the user who runs topiaryd, or to that uid; if that is right, compare "
			   "munge's keys and the clocks: nothing is exported",
			   "%s", e.text);
	buf_free(&out);
}

static void report_unreachable(struct doctor *d, const char *why)
{
	const char *ca = d->cmd->settings.tls_ca;

	if (*ca && access(ca, R_OK))
		return doctor_add(d, DOCTOR_ERROR,
				  "correct TlsCA, or install the CA file on this host, readable by all", "TlsCA=%s: %s",
				  ca, strerror(errno));
	if (!strncmp(url_of(d), "https:", 6))
		return doctor_add(d, DOCTOR_ERROR,
				  "start topiaryd; RegistryURL here and Listen on the registry's host must agree, no "
				  "firewall may block the port, and TlsCA must name a PEM file with the CA of "
				  "topiaryd's certificate",
				  "%s; TlsCA=%s", why, ca);
	doctor_add(d, DOCTOR_ERROR,
		   "start topiaryd; RegistryURL here and Listen on the registry's host must agree, and no firewall may "
		   "block the port",
		   "%s", why);
}

void doctor_check_registry(struct doctor *d)
{
	struct http_answer a = { 0 };
	struct err e;
	json_t *ready;

	if (get(d, "/readyz", NULL, &a, &e))
		return report_unreachable(d, e.text);
	ready = http_json(&a);
	doctor_compare_clock(d, "the registry", a.date);
	if (!json_is_object(json_object_get(ready, "checks"))) {
		doctor_add(d, DOCTOR_ERROR, "correct RegistryURL: something else than topiaryd answers there",
			   "%s: "
			   "HTTP status %ld",
			   d->cmd->settings.registry_url, a.status);
	} else {
		d->registry = true;
		report_readiness(d, ready);
		if (strcmp(cmd_text(ready, "version"), TOPIARY_VERSION))
			doctor_add(d, DOCTOR_WARNING,
				   "install the same release of Topiary on all hosts, the registry "
				   "first",
				   "topiaryd is %s, this command %s", cmd_text(ready, "version"), TOPIARY_VERSION);
		if (a.status == 200)
			doctor_add(d, DOCTOR_OK, NULL, "topiaryd %s is ready", cmd_text(ready, "version"));
		check_credential(d);
	}
	json_decref(ready);
	http_free(&a);
}

/* Names for a finding: the first few. */
struct names {
	char text[256];
	size_t n;
};

static void name_add(struct names *names, const char *name)
{
	size_t len = strlen(names->text);

	if (names->n++ < NAMED)
		snprintf(names->text + len, sizeof(names->text) - len, "%s%.60s", len ? "," : "", name);
	else if (names->n == NAMED + 1)
		snprintf(names->text + len, sizeof(names->text) - len, ",...");
}

static bool is_this_host(const struct doctor *d, const char *name)
{
	size_t n = strcspn(name, "(.,");	/* SlurmctldHost may have an address in parentheses */

	return n && n == strlen(d->host) && !strncasecmp(name, d->host, n);
}

/* The registry asks the resolver of its host for the addresses of each node that exports (PeerCheck). */
static int resolve(const char *name, void *out)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;
	bool reached = false;

	if (getaddrinfo(name, NULL, &hints, &list) == 0)
		for (const struct addrinfo *a = list; a; a = a->ai_next)
			reached |= a->ai_family == AF_INET6 ?
				!IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *) a->ai_addr)->sin6_addr) :
				ntohl(((const struct sockaddr_in *) a->ai_addr)->sin_addr.s_addr) >> 24 != 127;
	if (list)
		freeaddrinfo(list);
	if (!reached)
		buf_printf(out, "%s\n", name);
	return 0;
}

static int resolve_all(const struct doctor *d, struct buf *out, struct err *e)
{
	const char *name, *known = d->cmd->settings.known_nodes;
	struct http_answer a = { 0 };
	json_t *answer = NULL, *node;
	size_t i;

	buf_puts(out, "");
	json_object_foreach(d->nodes, name, node)
		if (!is_this_host(d, name))
			resolve(name, out);
	if (!d->nodes && *known)
		return hostlist_expand(known, resolve, out, e);
	if (!d->nodes && d->registry && get(d, "/v1/nodes", NULL, &a, e) == 0)
		answer = http_json(&a);
	json_array_foreach(json_object_get(answer, "nodes"), i, node)
		if (!is_this_host(d, cmd_text(node, "node")))
			resolve(cmd_text(node, "node"), out);
	json_decref(answer);
	http_free(&a);
	return 0;
}

/* Only where topiaryd is installed, for others: hosts may have other resolvers, and a host of its own is not asked. */
void doctor_check_names(struct doctor *d)
{
	const struct settings *s = &d->cmd->settings;
	struct names lacking = { 0 };
	struct buf out = { 0 };
	char *rest, *name;
	uid_t uid;
	struct err e;

	if (access(s->schema_dir, F_OK) || user_uid(s->registry_user, &uid, NULL) || !strncmp(s->listen, "127.", 4) ||
	    !strcmp(s->peer_check, "off"))
		return;
	if (doctor_limited(resolve_all, d, &out, &e)) {
		doctor_add(d, DOCTOR_WARNING, "look at the resolver of this host: each export waits for it",
			   "resolving the nodes' names: %s", e.text);
		return buf_free(&out);
	}
	for (rest = out.data; rest && (name = strsep(&rest, "\n"));)
		if (*name)
			name_add(&lacking, name);
	if (lacking.n)
		doctor_add(d, strcmp(s->peer_check, "refuse") ? DOCTOR_WARNING : DOCTOR_ERROR,
			   "add these nodes with their addresses to DNS, or to /etc/hosts of this host; for nodes "
			   "behind NAT set PeerCheck=off",
			   "names of nodes have no address here, or only the loopback's, so that exports are refused "
			   "(403): %s (%zu)", lacking.text, lacking.n);
	else
		doctor_add(d, DOCTOR_OK, NULL, "the names of all nodes resolve");
	buf_free(&out);
}

static bool is_other_name(const char *node, const char *host)
{
	size_t n = strcspn(host, ".");

	return *host != '-' && (n != strcspn(node, ".") || strncasecmp(node, host, n));
}

static void compare_exports(struct doctor *d, const json_t *list)
{
	struct names never = { 0 }, old = { 0 }, other = { 0 };
	json_t *known = json_object(), *node;
	const char *name;
	size_t i;

	json_array_foreach(list, i, node) json_object_set(known, cmd_text(node, "node"), node);
	json_object_foreach(d->nodes, name, node)
	{
		const json_t *exported = json_object_get(known, name);
		time_t booted = doctor_seconds(cmd_text(node, "boottime"), false);

		if (!exported)
			name_add(is_other_name(name, cmd_text(node, "nodehostname")) ? &other : &never, name);
		else if (booted && doctor_seconds(cmd_text(exported, "last_boot"), true) + DOCTOR_CLOCK_LIMIT < booted)
			name_add(&old, name);
	}
	json_decref(known);
	if (never.n)
		doctor_add(d, DOCTOR_WARNING,
			   "on these nodes: systemctl enable --now topiary-agent; journalctl -u "
			   "topiary-agent has the reason",
			   "of slurm.conf these nodes never exported their topology: %s (%zu)", never.text, never.n);
	if (old.n)
		doctor_add(d, DOCTOR_WARNING, "on these nodes: systemctl restart topiary-agent",
			   "not exported since their boot: %s (%zu)", old.text, old.n);
	if (other.n)
		doctor_add(d, DOCTOR_WARNING,
			   "set NodeName in topiary.conf of these hosts to their name in slurm.conf, then systemctl "
			   "restart topiary-agent",
			   "of slurm.conf these nodes, whose hosts have other names, never exported their topology: %s "
			   "(%zu)", other.text, other.n);
	if (!never.n && !old.n && !other.n)
		doctor_add(d, DOCTOR_OK, NULL, "all %zu nodes of slurm.conf have exported their topology",
			   json_object_size(d->nodes));
}

void doctor_check_exports(struct doctor *d)
{
	struct http_answer a = { 0 };
	json_t *answer = NULL;
	struct err e;

	if (!d->registry || !d->nodes)
		return;
	if (get(d, "/v1/nodes", NULL, &a, &e) == 0)
		answer = http_json(&a);
	if (json_is_array(json_object_get(answer, "nodes")) && !json_is_true(json_object_get(answer, "truncated")))
		compare_exports(d, json_object_get(answer, "nodes"));
	json_decref(answer);
	http_free(&a);
}

static unsigned count_of(const json_t *node, const char *key)
{
	const char *s = json_string_value(json_object_get(node, key));

	return s ? strtoul(s, NULL, 10) : 0;
}

static const struct shape *shape_of(const struct snapshot *s, struct hostset *const *sets, const char *name)
{
	for (size_t i = 0; i < s->nnodes; i++)
		if (sets[i] && hostset_has(sets[i], name))
			return s->nodes[i].shape;
	return NULL;
}

static void compare_snapshot(struct doctor *d, const struct snapshot *s)
{
	struct hostset **sets = calloc(s->nnodes + 1, sizeof(*sets));
	struct names lacking = { 0 }, other = { 0 };
	const json_t *node;
	const char *name;
	struct err e;

	for (size_t i = 0; sets && i < s->nnodes; i++)
		sets[i] = hostset_parse(s->nodes[i].hosts, &e);
	json_object_foreach(d->nodes, name, node)
	{
		const struct shape *shape = sets ? shape_of(s, sets, name) : NULL;
		unsigned cores = count_of(node, "sockets") * count_of(node, "corespersocket");

		if (!shape)
			name_add(&lacking, name);
		else if (cores && cores != shape->cores)
			name_add(&other, name);
	}
	for (size_t i = 0; sets && i < s->nnodes; i++)
		hostset_free(sets[i]);
	free(sets);
	if (lacking.n)
		doctor_add(d, DOCTOR_WARNING,
			   "export these nodes (systemctl restart topiary-agent there): Slurm "
			   "places jobs on them as without "
			   "Topiary",
			   "%s lacks nodes of slurm.conf: %s (%zu)", d->cmd->settings.snapshot_file, lacking.text,
			   lacking.n);
	if (other.n)
		doctor_add(d, DOCTOR_WARNING,
			   "compare with `slurmd -C` on these nodes and correct their NodeName "
			   "lines in slurm.conf",
			   "%s and slurm.conf differ in the number of cores of nodes: %s (%zu)",
			   d->cmd->settings.snapshot_file, other.text, other.n);
}

static bool same_as_registry(const struct doctor *d, const struct buf *text)
{
	struct http_answer a = { 0 };
	struct err e;
	bool same = !d->registry || get(d, "/v1/snapshot", NULL, &a, &e) || a.status != 200 ||
		(a.body.len == text->len && !memcmp(a.body.data, text->data, text->len));

	http_free(&a);
	return same;
}

bool doctor_is_controller(const struct doctor *d)
{
	const char *name = doctor_slurm(d, "slurmctldhost");

	for (; *name; name += strcspn(name, ","), name += *name == ',')
		if (is_this_host(d, name))
			return true;
	return false;
}

/* A child process reads the files as SlurmUser does. */
static int read_as_slurm(const struct doctor *d, struct buf *out, struct err *e)
{
	char user[64], conf[PATH_MAX];
	const char *const files[] = { d->cmd->settings.snapshot_file, doctor_beside(d, "topiary.conf", conf) };
	const struct passwd *pw;

	snprintf(user, sizeof(user), "%.*s", (int) strcspn(doctor_slurm(d, "slurmuser"), "("),
		 doctor_slurm(d, "slurmuser"));
	if (!(pw = getpwnam(*user ? user : "root")))
		return err_set(e, "SlurmUser=%s: no such user", user);
	if (initgroups(pw->pw_name, pw->pw_gid) || setgid(pw->pw_gid) || setuid(pw->pw_uid))
		return err_set(e, "cannot become %s: %s", pw->pw_name, strerror(errno));
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int fd = open(files[i], O_RDONLY | O_CLOEXEC);

		if (fd < 0 && errno != ENOENT)
			return err_set(e, "%s, which slurmctld reads as %s: %s", files[i], pw->pw_name,
				       strerror(errno));
		if (fd >= 0)
			close(fd);
	}
	buf_printf(out, "snapshot and topiary.conf, by %s", pw->pw_name);
	return 0;
}

void doctor_check_readable(struct doctor *d)
{
	struct buf out = {0};
	struct err e;

	if (!doctor_is_controller(d))
		return;
	if (geteuid())
		doctor_add(d, DOCTOR_OK, NULL, "not checked: only root can read files as SlurmUser");
	else if (doctor_limited(read_as_slurm, d, &out, &e))
		doctor_add(d, DOCTOR_ERROR, "chmod a+r the file, and a+x its directories", "%s", e.text);
	else
		doctor_add(d, DOCTOR_OK, NULL, "%s", out.data);
	buf_free(&out);
}

/* The name that slurm.conf has for this host, if that is another than Topiary's. */
void doctor_check_name(struct doctor *d)
{
	const char *own = d->cmd->settings.node_name, *name;
	struct buf remedy = {0};
	json_t *node;

	if (!d->nodes || json_object_get(d->nodes, own))
		return;
	json_object_foreach(d->nodes, name, node) {
		if (!is_this_host(d, cmd_text(node, "nodehostname")))
			continue;
		buf_printf(&remedy, "set NodeName=%s in topiary.conf of this host, then systemctl restart "
			   "topiary-agent", name);
		doctor_add(d, DOCTOR_ERROR, remedy.data, "slurm.conf calls this host %s, Topiary calls it %s", name,
			   own);
		return buf_free(&remedy);
	}
}

static void check_age(struct doctor *d, const struct snapshot *s, const struct buf *text)
{
	const char *path = d->cmd->settings.snapshot_file;
	struct stat st = { 0 };

	stat(path, &st);
	if (!s->sealed)
		doctor_add(d, DOCTOR_NOTE,
			   "let topiary-snapshot or topiaryd write it, unless it is written by hand on "
			   "purpose",
			   "%s has no seal: damage is not noticed", path);
	else if (time(NULL) - st.st_mtime > DOCTOR_CLOCK_LIMIT && !same_as_registry(d, text))
		doctor_add(d, DOCTOR_WARNING,
			   "start topiary-snapshot on this host; on the registry's host read "
			   "topiaryd's log",
			   "%s, written %ld s ago, differs from the registry's", path,
			   (long) (time(NULL) - st.st_mtime));
	else
		doctor_add(d, DOCTOR_OK, NULL, "%s: %zu shapes, written %ld s ago", path, s->nshapes,
			   (long) (time(NULL) - st.st_mtime));
}

void doctor_check_snapshot(struct doctor *d)
{
	const char *path = d->cmd->settings.snapshot_file;
	struct buf text = { 0 };
	struct snapshot *s;
	struct err e;

	if (!doctor_is_controller(d))
		return;
	if (file_read(path, SNAPSHOT_MAX_BYTES, &text, &e))
		return doctor_add(d, DOCTOR_ERROR,
				  "start topiary-snapshot on the controller, or correct SnapshotFile; " MEANWHILE,
				  "%s", e.text);
	if (!(s = snapshot_parse(text.data, text.len, path, &e))) {
		doctor_add(d, DOCTOR_ERROR,
			   "remove the file and restart topiary-snapshot; if you edit it by hand, "
			   "remove `sealed` and the checksum after `end`; " MEANWHILE,
			   "%s", e.text);
	} else {
		check_age(d, s, &text);
		compare_snapshot(d, s);
	}
	snapshot_free(s);
	buf_free(&text);
}

/* A compute node: one of slurm.conf, or where slurm.conf's nodes are unknown, one with a topology of its own. */
static bool is_node(const struct doctor *d)
{
	return d->nodes ? json_object_get(d->nodes, d->cmd->settings.node_name) != NULL
			: access(d->cmd->settings.topology_file, F_OK) == 0;
}

static time_t boot_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return time(NULL) - t.tv_sec;
}

#define ROOT "<topology version=\""

void doctor_check_topology(struct doctor *d)
{
	static const char remedy[] = "systemctl restart topiary-agent; journalctl -u topiary-agent has the reason if "
				     "it fails";
	const char *path = d->cmd->settings.topology_file, *version;
	const unsigned own = hwloc_get_api_version() >> 16;
	struct buf xml = { 0 };
	unsigned long format;
	struct stat st;
	struct err e;

	if (!is_node(d))
		return;
	if (file_read(path, XML_MAX, &xml, &e))
		return doctor_add(d, DOCTOR_ERROR, remedy, "%s: steps have no topology", e.text);
	version = xml.len ? strstr(xml.data, ROOT) : NULL;
	if (!version || !strstr(version, "</topology>"))
		doctor_add(d, DOCTOR_ERROR, remedy, "%s: not a complete topology of hwloc 2 or 3", path);
	else if ((format = strtoul(version + strlen(ROOT), NULL, 10)) > own)
		doctor_add(d, DOCTOR_ERROR,
			   "set ExportFormat=2 in topiary.conf, then systemctl restart topiary-agent",
			   "%s: XML of hwloc %lu, and this host has hwloc %u: steps have no topology", path, format,
			   own);
	else if (stat(path, &st) == 0 && st.st_uid)
		doctor_add(d, DOCTOR_ERROR,
			   "remove the file, then systemctl restart topiary-agent: only root may "
			   "write it",
			   "%s is owned by uid %u", path, (unsigned) st.st_uid);
	else if (st.st_mtime + DOCTOR_CLOCK_LIMIT < boot_time())
		doctor_add(d, DOCTOR_WARNING, remedy, "%s was written before this boot", path);
	else
		doctor_add(d, DOCTOR_OK, NULL, "%s, %zu bytes, of this boot", path, xml.len);
	buf_free(&xml);
}

void doctor_check_run_dir(struct doctor *d)
{
	const char *path = d->cmd->settings.run_dir;
	struct statfs fs;
	struct stat st;

	if (!is_node(d))
		return;
	if (lstat(path, &st) || statfs(path, &fs))
		doctor_add(d, DOCTOR_ERROR,
			   "systemctl start run-topiary.mount, then systemctl restart topiary-agent, or correct RunDir",
			   "RunDir=%s: %s", path, strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		doctor_add(d, DOCTOR_ERROR, "replace it by a directory of root's: symbolic links are not followed",
			   "RunDir=%s: not a directory", path);
	else if (st.st_uid || st.st_mode & (S_IWGRP | S_IWOTH))
		doctor_add(d, DOCTOR_ERROR,
			   "chown root and chmod 755: steps have no topology while others may write "
			   "there",
			   "RunDir=%s: owned by uid %u, mode %04o", path, (unsigned) st.st_uid,
			   (unsigned) st.st_mode & 07777);
	else if (fs.f_bavail * (unsigned long long) fs.f_bsize < ROOM_LIMIT)
		doctor_add(d, DOCTOR_WARNING, "find what fills it, or enlarge size= in run-topiary.mount",
			   "RunDir=%s: "
			   "%llu KiB free",
			   path, fs.f_bavail * (unsigned long long) fs.f_bsize >> 10);
	else
		doctor_add(d, DOCTOR_OK, NULL, "%s: %llu MiB free%s", path,
			   fs.f_bavail * (unsigned long long) fs.f_bsize >> 20,
			   fs.f_type == TMPFS_MAGIC ? ", tmpfs" : ", not a tmpfs");
}

/* topiary-monitor holds a lock as long as it runs. */
static bool monitor_runs(const char *run_dir)
{
	char path[PATH_MAX];
	bool runs;
	int fd;

	snprintf(path, sizeof(path), "%s/" ASK_LOCK, run_dir);
	if ((fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return false;
	runs = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
	close(fd);
	return runs;
}

/* A file of values that has become old is one that cannot be replaced, or of a topiary-monitor without the setting. */
static void check_metrics(struct doctor *d, bool runs)
{
	const struct settings *s = &d->cmd->settings;
	struct stat st;

	if (!*s->monitor_metrics)
		return;
	if (!runs)
		doctor_add(d, DOCTOR_WARNING, "systemctl enable --now topiary-monitor, or MonitorMetrics=",
			   "MonitorMetrics=%s, but topiary-monitor does not run", s->monitor_metrics);
	else if (stat(s->monitor_metrics, &st) || st.st_mtime + 3 * (time_t) s->monitor_metrics_interval < time(NULL))
		doctor_add(d, DOCTOR_WARNING, "journalctl -u topiary-monitor has the reason; restart it if it is older "
			   "than the setting",
			   "%s: not written every %u s", s->monitor_metrics, s->monitor_metrics_interval);
	else
		doctor_add(d, DOCTOR_OK, NULL, "%s: written every %u s", s->monitor_metrics,
			   s->monitor_metrics_interval);
}

void doctor_check_monitor(struct doctor *d)
{
	const char *value = d->cmd->settings.topo_monitor;
	bool runs = monitor_runs(d->cmd->settings.run_dir);
	struct monitor_request r;
	bool valid;	/* otherwise doctor_check_values reports it */

	if (!is_node(d))
		return;
	valid = !monitor_request_parse("TopoMonitor", value, &r, NULL);
	if (valid && r.hz && !runs)
		doctor_add(d, DOCTOR_WARNING, "systemctl enable --now topiary-monitor, or TopoMonitor=off",
			   "TopoMonitor=%s, but topiary-monitor does not run: steps are not recorded", value);
	else if (valid)
		doctor_add(d, DOCTOR_OK, NULL, "TopoMonitor=%s, topiary-monitor %s", value,
			   runs ? "runs" : "does not run");
	check_metrics(d, runs);
}
