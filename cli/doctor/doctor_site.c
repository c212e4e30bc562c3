/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <grp.h>
#include <hwloc.h>
#include <linux/magic.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/file.h"
#include "base/hash.h"
#include "child.h"
#include "client/cred.h"
#include "client/http.h"
#include "doctor.h"
#include "monitor/ask.h"
#include "shape/hostlist.h"
#include "shape/snapshot.h"

/* The checks of munge, the registry and the nodes that it knows, the controller's snapshot, and this node's files. */
#define ROOM_LIMIT (16u << 20)	/* bytes that RunDir should have free */
#define XML_MAX (64u << 20)
#define NAMED 3			/* nodes that a finding names */
#define LAST_GOOD "slurmctld continues with the last good snapshot that it has read; after a restart Slurm places " \
	"jobs as without Topiary"
#define SAME_NAMED 3	/* nodes of the same hardware that are named */
#define PORTS "start topiaryd; RegistryURL here and Listen on the registry's host must agree, "

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

/* If there are any. what: before them. */
static void names_warn(struct doctor *d, const struct names *names, const char *remedy, const char *what)
{
	if (names->n)
		doctor_warn(d, remedy, "%s: %s (%zu)", what, names->text, names->n);
}

/* --- munge and the registry --- */

static int encode_and_decode(const void *doctor, struct buf *out, struct err *e)
{
	const struct doctor *d = doctor;

	buf_puts(out, "encoded and decoded a credential");
	return cred_test("doctor", d->cmd->settings.munge_socket, e);
}

void doctor_munge(struct doctor *d)
{
	const char *socket = d->cmd->settings.munge_socket;
	struct buf out = {0};
	struct err e;

	if (cmd_child(encode_and_decode, d, DOCTOR_SECONDS, &out, &e))
		doctor_error(d, "start munged (systemctl restart munge), or correct MungeSocket: without it nothing is "
			     "exported", "munged%s%s: %s", *socket ? " at " : "", socket, e.text);
	else
		doctor_ok(d, "%s", out.data);
	buf_free(&out);
}

static int registry_get(const struct doctor *d, const char *path, const char *authorization, struct http_answer *a,
			struct err *e)
{
	const struct http_request r = { .method = "GET", .base = d->cmd->url ?: d->cmd->settings.registry_url,
					.path = path, .authorization = authorization, .timeout = DOCTOR_SECONDS };

	return http_do(&d->cmd->settings, &r, a, e);
}

/* What the registry answers; NULL without an answer. */
static json_t *registry_json(const struct doctor *d, const char *path)
{
	struct http_answer a = {0};
	struct err e;
	json_t *answer = registry_get(d, path, NULL, &a, &e) == 0 ? http_json(&a) : NULL;

	http_free(&a);
	return answer;
}

/* What the agent and commands sign is for RegistryUser only. Failures to sign are reported by other checks. */
static int read_signed(const void *doctor, struct buf *, struct err *e)
{
	const struct doctor *d = doctor;
	const char *node = d->cmd->settings.node_name;
	struct buf path = {0}, authorization = {0};
	char sha256[HASH_HEX], *credential;
	struct http_answer a = {0};
	int rc = 0;

	hash_hex("", 0, sha256);
	if (!(credential = cmd_sign(d->cmd, CLAIM_READ, node, sha256, 0, e)))
		return 0;
	cmd_node_path(&path, node, "/history");
	buf_printf(&authorization, "Munge %s", credential);
	if (!path.failed && !authorization.failed &&
	    registry_get(d, path.data, authorization.data, &a, e) == 0 && a.status == 401) {
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

void doctor_registry(struct doctor *d)
{
	static const struct {
		const char *part, *remedy;
	} remedies[] = {
		{ "database", "start PostgreSQL, or correct Database; the reason is in topiaryd's log" },
		{ "schema", "install the release of topiaryd that fits the database, and restart it: it applies its "
		  "migrations" },
		{ "munge", "start munged on the registry's host" },
		{ "disk", "free space in the directories of SnapshotFile, FabricFile and CostsFile, which topiaryd's "
		  "user must be able to write" },
		{ "workers", "read topiaryd's log: its parser workers do not run" },
	};
	const char *url = d->cmd->url ?: d->cmd->settings.registry_url, *ca = d->cmd->settings.tls_ca, *version;
	json_t *ready, *parts, *drift, *node, *change;
	struct http_answer a = {0};
	struct buf out = {0};
	unsigned same = 0;
	struct err e;
	size_t i, j;

	if (registry_get(d, "/readyz", NULL, &a, &e)) {
		if (*ca && access(ca, R_OK))
			return doctor_error(d, "correct TlsCA, or install the CA file on this host, readable by all",
					    "TlsCA=%s: %s", ca, strerror(errno));
		if (!strncmp(url, "https:", 6))
			return doctor_error(d, PORTS "no firewall may block the port, and TlsCA must name a PEM file "
					    "with the CA of topiaryd's certificate", "%s; TlsCA=%s", e.text, ca);
		return doctor_error(d, PORTS "and no firewall may block the port", "%s", e.text);
	}
	ready = http_json(&a);
	doctor_compare_clock(d, "the registry", a.date);
	d->registry = json_is_object(json_object_get(ready, "checks"));
	if (!d->registry) {
		doctor_error(d, "correct RegistryURL: something else than topiaryd answers there",
			     "%s: HTTP status %ld", d->cmd->settings.registry_url, a.status);
		goto end;
	}
	/* Without the database nothing is known of its schema. */
	parts = json_object_get(ready, "checks");
	for (i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++) {
		const char *part = remedies[i].part, *state = cmd_text(parts, part);

		if (strcmp(state, "ok") && (strcmp(part, "schema") || !strcmp(cmd_text(parts, "database"), "ok")))
			doctor_error(d, remedies[i].remedy, "topiaryd is not ready: %s: %s", part, state);
	}
	version = cmd_text(ready, "version");
	if (strcmp(version, TOPIARY_VERSION))
		doctor_warn(d, "install the same release of Topiary on all hosts, the registry first",
			    "topiaryd is %s, this command %s", version, TOPIARY_VERSION);
	if (a.status == 200)
		doctor_ok(d, "topiaryd %s is ready", version);
	if (cmd_child(read_signed, d, DOCTOR_SECONDS, &out, &e))
		doctor_error(d, "set RegistryUser to the user who runs topiaryd, or to that uid; if that is right, "
			     "compare munge's keys and the clocks: nothing is exported", "%s", e.text);
	buf_free(&out);
	/* One machine under several names: the first of them by name. */
	drift = registry_json(d, "/v1/drift?severity=capacity");
	json_array_foreach(json_object_get(drift, "drift"), i, node)
		json_array_foreach(json_object_get(node, "changes"), j, change)
			if (!strcmp(cmd_text(change, "what"), "same hardware") && ++same <= SAME_NAMED)
				doctor_warn(d, "find out which name is wrong, end its topiary-agent, and remove it "
					    "with topiary forget", "%s: %s", cmd_text(node, "node"),
					    cmd_text(change, "words"));
	if (same > SAME_NAMED)
		doctor_warn(d, "list them with topiary drift --severity=capacity",
			    "%u nodes are the same hardware as others", same);
	json_decref(drift);
end:
	json_decref(ready);
	http_free(&a);
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

/* The nodes of slurm.conf, else KnownNodes, else those of the registry. A host of its own is not asked for. */
static int resolve_all(const void *doctor, struct buf *out, struct err *e)
{
	const struct doctor *d = doctor;
	const char *name, *known = d->cmd->settings.known_nodes;
	json_t *answer, *node;
	size_t i;

	buf_puts(out, "");
	json_object_foreach(d->nodes, name, node)
		if (!doctor_is_here(d, name))
			resolve(name, out);
	if (d->nodes || *known)
		return d->nodes ? 0 : hostlist_expand(known, resolve, out, e);
	answer = d->registry ? registry_json(d, "/v1/nodes") : NULL;
	json_array_foreach(json_object_get(answer, "nodes"), i, node)
		if (!doctor_is_here(d, cmd_text(node, "node")))
			resolve(cmd_text(node, "node"), out);
	json_decref(answer);
	return 0;
}

/* Only where topiaryd is installed, for others: hosts may have other resolvers. */
void doctor_names(struct doctor *d)
{
	const struct settings *s = &d->cmd->settings;
	struct names lacking = {0};
	struct buf out = {0};
	struct err e;
	uid_t uid;

	if (access(s->schema_dir, F_OK) || settings_uid(s->registry_user, &uid, NULL) ||
	    !strncmp(s->listen, "127.", 4) || !strcmp(s->peer_check, "off"))
		return;
	if (cmd_child(resolve_all, d, DOCTOR_SECONDS, &out, &e)) {
		doctor_warn(d, "look at the resolver of this host: each export waits for it",
			    "resolving the nodes' names: %s", e.text);
		return buf_free(&out);
	}
	for (char *rest = out.data, *name; rest && (name = strsep(&rest, "\n"));)
		if (*name)
			name_add(&lacking, name);
	if (lacking.n)
		doctor_add(d, strcmp(s->peer_check, "refuse") ? DOCTOR_WARNING : DOCTOR_ERROR,
			   "add these nodes with their addresses to DNS, or to /etc/hosts of this host; for nodes "
			   "behind NAT set PeerCheck=off", "names of nodes have no address here, or only the "
			   "loopback's, so that exports are refused (403): %s (%zu)", lacking.text, lacking.n);
	else
		doctor_ok(d, "the names of all nodes resolve");
	buf_free(&out);
}

static bool is_other_name(const char *node, const char *host)
{
	size_t n = strcspn(host, ".");

	return *host != '-' && (n != strcspn(node, ".") || strncasecmp(node, host, n));
}

void doctor_exports(struct doctor *d)
{
	json_t *answer = d->registry && d->nodes ? registry_json(d, "/v1/nodes") : NULL, *node, *known;
	const json_t *list = json_object_get(answer, "nodes");
	struct names never = {0}, old = {0}, other = {0};
	const char *name;
	size_t i;

	if (!json_is_array(list) || json_is_true(json_object_get(answer, "truncated")))
		return json_decref(answer);
	known = json_object();
	json_array_foreach(list, i, node)
		json_object_set(known, cmd_text(node, "node"), node);
	json_object_foreach(d->nodes, name, node) {
		const json_t *exported = json_object_get(known, name);
		time_t booted = doctor_seconds(cmd_text(node, "boottime"), false);

		if (!exported)
			name_add(is_other_name(name, cmd_text(node, "nodehostname")) ? &other : &never, name);
		else if (booted && doctor_seconds(cmd_text(exported, "last_boot"), true) + DOCTOR_CLOCK_LIMIT < booted)
			name_add(&old, name);
	}
	names_warn(d, &never, "on these nodes: systemctl enable --now topiary-agent; journalctl -u topiary-agent has "
		   "the reason", "nodes of slurm.conf that have never exported their topology");
	names_warn(d, &old, "on these nodes: systemctl restart topiary-agent", "nodes that have not exported their "
		   "topology since their boot");
	names_warn(d, &other, "set NodeName in topiary.conf of these hosts to their name in slurm.conf, then systemctl "
		   "restart topiary-agent", "nodes of slurm.conf, whose hosts have other names, that have never "
		   "exported their topology");
	if (!never.n && !old.n && !other.n)
		doctor_ok(d, "each node of slurm.conf has exported its topology (%zu)", json_object_size(d->nodes));
	json_decref(known);
	json_decref(answer);
}

/* --- the controller --- */

static unsigned count_of(const json_t *node, const char *key)
{
	const char *s = json_string_value(json_object_get(node, key));

	return s ? strtoul(s, NULL, 10) : 0;
}

static void compare_snapshot(struct doctor *d, const struct snapshot *s)
{
	struct hostset **sets = calloc(s->nnodes + 1, sizeof(*sets));
	const char *name, *path = d->cmd->settings.snapshot_file;
	struct names lacking = {0}, other = {0};
	const json_t *node;
	char what[PATH_MAX + 64];
	struct err e;

	for (size_t i = 0; sets && i < s->nnodes; i++)
		sets[i] = hostset_parse(s->nodes[i].hosts, &e);
	json_object_foreach(d->nodes, name, node) {
		unsigned cores = count_of(node, "sockets") * count_of(node, "corespersocket");
		size_t i = 0;

		while (sets && i < s->nnodes && !(sets[i] && hostset_has(sets[i], name)))
			i++;
		if (!sets || i == s->nnodes)
			name_add(&lacking, name);
		else if (cores && cores != s->nodes[i].shape->cores)
			name_add(&other, name);
	}
	for (size_t i = 0; sets && i < s->nnodes; i++)
		hostset_free(sets[i]);
	free(sets);
	snprintf(what, sizeof(what), "%s lacks nodes of slurm.conf", path);
	names_warn(d, &lacking, "export these nodes (systemctl restart topiary-agent there): Slurm places jobs on them "
		   "as without Topiary", what);
	snprintf(what, sizeof(what), "%s and slurm.conf differ in the number of cores of nodes", path);
	names_warn(d, &other, "compare with `slurmd -C` on these nodes and correct their NodeName lines in slurm.conf",
		   what);
}

void doctor_snapshot(struct doctor *d)
{
	const char *path = d->cmd->settings.snapshot_file;
	struct stat st = {0};
	struct buf text = {0};
	struct http_answer theirs = {0};
	struct snapshot *s;
	struct err e, kept;
	int differs = 0;
	long age;

	if (file_read(path, SNAPSHOT_MAX_BYTES, &text, &e))
		return doctor_error(d, "start topiary-snapshot on the controller, or correct SnapshotFile; " LAST_GOOD,
				    "%s", e.text);
	if (!(s = snapshot_parse(text.data, text.len, path, &e))) {
		doctor_error(d, "remove the file and restart topiary-snapshot; if you edit it by hand, remove `sealed` "
			     "and the checksum after `end`; " LAST_GOOD, "%s", e.text);
		return buf_free(&text);
	}
	stat(path, &st);
	age = time(NULL) - st.st_mtime;
	if (age > DOCTOR_CLOCK_LIMIT && d->registry && !registry_get(d, "/v1/snapshot", NULL, &theirs, &e) &&
	    theirs.status == 200)
		differs = snapshot_compare(path, &theirs.body, false, &kept);
	http_free(&theirs);
	if (!s->sealed)
		doctor_note(d, "let topiary-snapshot or topiaryd write it, unless it is written by hand on purpose",
			    "%s has no seal: damage is not noticed", path);
	else if (differs < 0)
		doctor_warn(d, "read topiaryd's log; the file is kept, and slurmctld uses it", "%s", kept.text);
	else if (differs)
		doctor_warn(d, "start topiary-snapshot on this host; on the registry's host read topiaryd's log",
			    "%s, written %ld s ago, differs from the registry's", path, age);
	else
		doctor_ok(d, "%s: %zu shape%s, written %ld s ago", path, s->nshapes, PLURAL(s->nshapes), age);
	compare_snapshot(d, s);
	snapshot_free(s);
	buf_free(&text);
}

/* A child process reads the files as SlurmUser does. */
static int read_as_slurm(const void *doctor, struct buf *out, struct err *e)
{
	const struct doctor *d = doctor;
	const char *named = doctor_slurm(d, "slurmuser");
	char user[64], conf[PATH_MAX];
	const char *const files[] = { d->cmd->settings.snapshot_file, doctor_beside(d, "topiary.conf", conf) };
	const struct passwd *pw;

	snprintf(user, sizeof(user), "%.*s", (int) strcspn(named, "("), named);
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

void doctor_readable(struct doctor *d)
{
	struct buf out = {0};
	struct err e;

	if (geteuid())
		doctor_ok(d, "not checked: only root can read files as SlurmUser");
	else if (cmd_child(read_as_slurm, d, DOCTOR_SECONDS, &out, &e))
		doctor_error(d, "chmod a+r the file, and a+x its directories", "%s", e.text);
	else
		doctor_ok(d, "%s", out.data);
	buf_free(&out);
}

/* --- the node --- */

/* The name that slurm.conf has for this host, if that is another than Topiary's. */
void doctor_name(struct doctor *d)
{
	const char *own = d->cmd->settings.node_name, *name;
	char remedy[256];
	json_t *node;

	if (!d->nodes || json_object_get(d->nodes, own))
		return;
	json_object_foreach(d->nodes, name, node) {
		if (!doctor_is_here(d, cmd_text(node, "nodehostname")))
			continue;
		snprintf(remedy, sizeof(remedy), "set NodeName=%.100s in topiary.conf of this host, then systemctl "
			 "restart topiary-agent", name);
		return doctor_error(d, remedy, "slurm.conf calls this host %s, Topiary calls it %s", name, own);
	}
}

void doctor_topology(struct doctor *d)
{
	static const char remedy[] =
		"systemctl restart topiary-agent; journalctl -u topiary-agent has the reason if it fails";
	const char *path = d->cmd->settings.topology_file, *version;
	const unsigned own = hwloc_get_api_version() >> 16;
	struct timespec up;
	struct buf xml = {0};
	unsigned long format;
	struct stat st;
	struct err e;

	if (file_read(path, XML_MAX, &xml, &e))
		return doctor_error(d, remedy, "%s: steps have no topology", e.text);
	clock_gettime(CLOCK_BOOTTIME, &up);
	version = xml.len ? strstr(xml.data, "<topology version=\"") : NULL;
	if (!version || !strstr(version, "</topology>"))
		doctor_error(d, remedy, "%s: not a complete topology of hwloc 2 or 3", path);
	else if ((format = strtoul(version + strlen("<topology version=\""), NULL, 10)) > own)
		doctor_error(d, "set ExportFormat=2 in topiary.conf, then systemctl restart topiary-agent",
			     "%s: XML of hwloc %lu, and this host has hwloc %u: steps have no topology", path, format,
			     own);
	else if (stat(path, &st) == 0 && st.st_uid)
		doctor_error(d, "remove the file, then systemctl restart topiary-agent: only root may write it",
			     "%s is owned by uid %u", path, (unsigned) st.st_uid);
	else if (st.st_mtime + DOCTOR_CLOCK_LIMIT < time(NULL) - up.tv_sec)
		doctor_warn(d, remedy, "%s was written before this boot", path);
	else
		doctor_ok(d, "%s, %zu bytes, of this boot", path, xml.len);
	buf_free(&xml);
}

void doctor_run_dir(struct doctor *d)
{
	const char *path = d->cmd->settings.run_dir;
	unsigned long long room;
	struct statfs fs;
	struct stat st;

	if (lstat(path, &st) || statfs(path, &fs))
		return doctor_error(d, "systemctl start run-topiary.mount, then systemctl restart topiary-agent, or "
				    "correct RunDir", "RunDir=%s: %s", path, strerror(errno));
	room = fs.f_bavail * (unsigned long long) fs.f_bsize;
	if (!S_ISDIR(st.st_mode))
		doctor_error(d, "replace it by a directory of root's: symbolic links are not followed",
			     "RunDir=%s: not a directory", path);
	else if (st.st_uid || st.st_mode & (S_IWGRP | S_IWOTH))
		doctor_error(d, "chown root and chmod 755: steps have no topology while others may write there",
			     "RunDir=%s: owned by uid %u, mode %04o", path, (unsigned) st.st_uid,
			     (unsigned) st.st_mode & 07777);
	else if (room < ROOM_LIMIT)
		doctor_warn(d, "find what fills it, or enlarge size= in run-topiary.mount", "RunDir=%s: %llu KiB free",
			    path, room >> 10);
	else
		doctor_ok(d, "%s: %llu MiB free%s", path, room >> 20,
			  fs.f_type == TMPFS_MAGIC ? ", tmpfs" : ", not a tmpfs");
}

/* A value of TopoMonitor that is none is reported with the others; topiary-monitor holds a lock as long as it runs. */
void doctor_monitor(struct doctor *d)
{
	const struct settings *s = &d->cmd->settings;
	const char *metrics = s->monitor_metrics;
	struct monitor_request r;
	char path[PATH_MAX];
	bool runs = false;
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/" ASK_LOCK, s->run_dir);
	if ((fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)) >= 0) {
		runs = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
		close(fd);
	}
	if (monitor_request_parse("TopoMonitor", s->topo_monitor, &r, NULL) == 0) {
		if (r.hz && !runs)
			doctor_warn(d, "systemctl enable --now topiary-monitor, or TopoMonitor=off",
				    "TopoMonitor=%s, but topiary-monitor does not run: steps are not recorded",
				    s->topo_monitor);
		else
			doctor_ok(d, "TopoMonitor=%s, topiary-monitor %s", s->topo_monitor,
				  runs ? "runs" : "does not run");
	}
	/* A file of values that has become old cannot be replaced, or its topiary-monitor is without the setting. */
	if (*metrics && !runs)
		doctor_warn(d, "systemctl enable --now topiary-monitor, or MonitorMetrics=",
			    "MonitorMetrics=%s, but topiary-monitor does not run", metrics);
	else if (*metrics && (stat(metrics, &st) ||
			      st.st_mtime + 3 * (time_t) s->monitor_metrics_interval < time(NULL)))
		doctor_warn(d, "journalctl -u topiary-monitor has the reason; restart it if it is older than the "
			    "setting", "%s: not written every %u s", metrics, s->monitor_metrics_interval);
	else if (*metrics)
		doctor_ok(d, "%s: written every %u s", metrics, s->monitor_metrics_interval);
}
