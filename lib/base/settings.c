/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/settings.h"

#include <pwd.h>

#include "base/buf.h"
#include "base/number.h"

/* One key of a Key=Value file, as Slurm's own files are written, in any case. */
struct item {
	const char *key;
	enum {
		ITEM_TEXT,	/* char *, malloc'ed; so are the next four */
		ITEM_PATH,	/* absolute, or empty if it is so by default */
		ITEM_ADDRESS,	/* ADDRESS:PORT */
		ITEM_WORD,	/* one of words, in any case; kept as it is there */
		ITEM_WORDS,	/* or several of them, joined by '+' */
		ITEM_NUMBER,	/* unsigned, from min to max */
	} type;
	size_t offset;
	const char *fallback;	/* the value if the file does not have the key */
	unsigned min, max;
	const char *words[6];	/* NULL after the last */
};

#define TEXT(key, field, fallback) { key, ITEM_TEXT, offsetof(struct settings, field), fallback, 0, 0, {0} }
#define PATH(key, field, fallback) { key, ITEM_PATH, offsetof(struct settings, field), fallback, 0, 0, {0} }
#define WORD(key, field, fallback, ...) \
	{ key, ITEM_WORD, offsetof(struct settings, field), fallback, 0, 0, { __VA_ARGS__ } }
#define UINT(key, field, fallback, min, max) \
	{ key, ITEM_NUMBER, offsetof(struct settings, field), fallback, min, max, {0} }

__attribute__((used)) static const char release[] = SETTINGS_RELEASE TOPIARY_VERSION;

static const struct item items[] = {
	PATH("SnapshotFile", snapshot_file, "/var/lib/topiary/snapshot"),
	PATH("FabricFile", fabric_file, "/var/lib/topiary/fabric"),
	PATH("CostsFile", costs_file, "/var/lib/topiary/costs"),
	UINT("SnapshotPoll", snapshot_poll, "10", 1, 86400),
	PATH("RunDir", run_dir, "/run/topiary"),
	PATH("TopologyFile", topology_file, "/run/topiary/topology.xml"),
	WORD("ExportFormat", export_format, "own", "own", "2", "3"),
	WORD("TopoMode", topo_mode, "on", "off", "observe", "on"),
	TEXT("TopoPartitions", topo_partitions, ""),
	TEXT("TopoQos", topo_qos, ""),
	TEXT("TopoAccounts", topo_accounts, ""),
	PATH("ObserveFile", observe_file, "/var/log/slurm/topiary-observed"),
	UINT("ObserveShare", observe_share, "2", 1, 100),
	TEXT("TopoFit", topo_fit, "prefer"),
	TEXT("TopoLevel", topo_level, "node"),
	TEXT("TopoMem", topo_mem, "prefer"),
	WORD("TopoWeight", topo_weight, "long", "job", "long", "queue"),
	WORD("TopoGpuCores", topo_gpu_cores, "spare", "spare", "ignore"),
	WORD("TopoVerdicts", topo_verdicts, "admin", "admin", "system", "off"),
	WORD("WithoutSnapshot", without_snapshot, "run", "run", "wait"),
	TEXT("TopoTasks", topo_tasks, "off"),
	TEXT("TopoPlace", topo_place, "off"),
	TEXT("TopoMembind", topo_membind, "off"),
	TEXT("TopoMems", topo_mems, "off"),
	TEXT("TopoOmp", topo_omp, "off"),
	TEXT("TopoNic", topo_nic, "off"),
	TEXT("TopoHwloc", topo_hwloc, "on"),
	WORD("TopoMatrix", topo_matrix, "off", "off", "auto"),
	TEXT("TopoMonitor", topo_monitor, "off"),
	TEXT("MonitorMetrics", monitor_metrics, ""),
	UINT("MonitorMetricsInterval", monitor_metrics_interval, "15", 1, 3600),
	{ "MonitorMetricsSet", ITEM_WORDS, offsetof(struct settings, monitor_metrics_set), "sw", 0, 0,
	  { "sw", "cpu", "power", "net", "gpu" } },
	WORD("MonitorMetricsJobs", monitor_metrics_jobs, "no", "yes", "no"),
	PATH("TopiaryCommand", topiary_command, "/usr/bin/topiary"),
	UINT("MapTimeout", map_timeout, "60", 1, 3600),
	UINT("NicPlanes", nic_planes, "1", 1, 64),
	TEXT("NodeName", node_name, "%h"),
	TEXT("RegistryURL", registry_url, "http://127.0.0.1:6824"),
	TEXT("RegistryUser", registry_user, "topiary"),
	PATH("MungeSocket", munge_socket, ""),
	PATH("TlsCA", tls_ca, ""),
	PATH("TlsCertificate", tls_certificate, ""),
	PATH("TlsKey", tls_key, ""),
	{ "Listen", ITEM_ADDRESS, offsetof(struct settings, listen), "127.0.0.1:6824", 0, 0, {0} },
	TEXT("Database", database, "dbname=topiary"),
	TEXT("ReadDatabase", read_database, ""),
	PATH("SchemaDir", schema_dir, "/usr/share/topiary/sql"),
	UINT("StormRate", storm_rate, "200", 1, 100000),
	UINT("BodyMemory", body_memory, "64", 8, 4096),
	WORD("PeerCheck", peer_check, "refuse", "off", "warn", "refuse"),
	WORD("PublishSerials", publish_serials, "no", "yes", "no"),
	WORD("ReadFacts", read_facts, "users", "anyone", "users", "admins"),
	TEXT("KnownNodes", known_nodes, ""),
	WORD("NodeDomain", node_domain, "cut", "cut", "keep"),
	TEXT("Admins", admins, "root"),
	TEXT("AdminHosts", admin_hosts, ""),
	TEXT("TrustedProxies", trusted_proxies, ""),
	TEXT("ControllerHosts", controller_hosts, ""),
	UINT("NodeDocuments", node_documents, "24", 0, 1000000),
	UINT("NodeBytes", node_bytes, "16", 0, 1000000),
	UINT("KeepHistory", keep_history, "365", 0, 36500),
	UINT("UpkeepInterval", upkeep_interval, "600", 1, 86400),
	WORD("LogLevel", log_level, "info", "error", "warning", "info", "debug"),
	PATH("DriftHook", drift_hook, ""),
	{0},
};

/* --- values --- */

int settings_address(const char *address, char host[static 256], const char **port)
{
	const char *colon = strrchr(address, ':');
	size_t len = colon ? colon - address : 0;

	if (len > 1 && *address == '[' && address[len - 1] == ']') {
		address++;
		len -= 2;
	}
	if (!colon || !colon[1] || strlen(colon + 1) > 5 || strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
	    atoi(colon + 1) > UINT16_MAX || !len || len > 255)
		return -1;
	memcpy(host, address, len);
	host[len] = '\0';
	*port = colon + 1;
	return 0;
}

static bool is_chosen(const char *const *words, const char *value, size_t len)
{
	while (*words && (strlen(*words) != len || strncasecmp(value, *words, len)))
		words++;
	return *words;
}

static bool text_fits(const struct item *item, const char *value)
{
	char host[256];
	const char *port;
	size_t len;

	switch (item->type) {
	case ITEM_ADDRESS:
		return settings_address(value, host, &port) == 0;
	case ITEM_PATH:
		return *value == '/' || (!*value && !*item->fallback);
	case ITEM_WORD:
		return is_chosen(item->words, value, strlen(value));
	case ITEM_WORDS:
		while (is_chosen(item->words, value, len = strcspn(value, "+")) && value[len])
			value += len + 1;
		return is_chosen(item->words, value, len);
	default:
		return true;
	}
}

static int refuse(const struct item *item, const char *value, struct err *e)
{
	struct buf words = {0};

	if (item->type == ITEM_NUMBER)
		return err_set(e, "%s=%s: expected a number from %u to %u", item->key, value, item->min, item->max);
	if (item->type == ITEM_PATH)
		return err_set(e, "%s=%s: expected an absolute path", item->key, value);
	if (item->type == ITEM_ADDRESS)
		return err_set(e, "%s=%s: expected ADDRESS:PORT with a port from 0 to 65535", item->key, value);
	for (const char *const *word = item->words; *word; word++)
		buf_printf(&words, "%s%s", word == item->words ? "" : word[1] ? ", " : " or ", *word);
	err_set(e, "%s=%s: expected %s%s", item->key, value, words.data ? words.data : "another value",
		item->type == ITEM_WORDS ? ", or several joined by +" : "");
	buf_free(&words);
	return -1;
}

static int key_set(const struct item *item, struct settings *s, const char *value, struct err *e)
{
	void *field = (char *) s + item->offset;
	const char *at = value;
	unsigned n;

	if (item->type != ITEM_NUMBER) {
		char *copy;

		if (!text_fits(item, value))
			return refuse(item, value, e);
		if (!(copy = strdup(value)))
			return err_set(e, "out of memory");
		for (char *c = copy; *item->words && *c; c++)
			*c = tolower((unsigned char) *c);
		free(*(char **) field);
		*(char **) field = copy;
		return 0;
	}
	if (number_read(&at, item->max, &n) || *at || n < item->min)
		return refuse(item, value, e);
	*(unsigned *) field = n;
	return 0;
}

/* --- the file --- */

#define BLANKS " \t\r\n\v\f"

struct load {
	struct settings *settings;
	struct settings_origin *origins;	/* in the order of items, or NULL */
	unsigned line;
};

static char *trim(char *text)
{
	char *end;

	text += strspn(text, BLANKS);
	for (end = text + strlen(text); end > text && strchr(BLANKS, end[-1]);)
		*--end = '\0';
	return text;
}

static int line_load(const struct load *l, char *text, struct err *e)
{
	char *key, *value, *at = text;

	while (*(at += strcspn(at, "#;")) && at > text && !strchr(BLANKS, at[-1]))
		at++;
	*at = '\0';
	key = trim(text);
	value = strchr(key, '=');
	if (!*key)
		return 0;
	if (*key == '[')
		return err_set(e, "a section header, %s: topiary.conf has none", key);
	if (!value || value == key)
		return err_set(e, "not a Key=Value line");
	*value++ = '\0';
	key = trim(key);
	for (const struct item *i = items; i->key; i++) {
		if (strcasecmp(i->key, key))
			continue;
		if (l->origins)
			l->origins[i - items] = (struct settings_origin){ l->line, l->origins[i - items].line };
		return key_set(i, l->settings, trim(value), e);
	}
	return err_set(e, "unknown key '%s'", key);
}

static int stream_load(struct load *l, FILE *f, struct err *e)
{
	char *text = NULL;
	size_t size = 0;
	ssize_t len;
	int rc = 0;

	while (rc == 0 && (len = getline(&text, &size, f)) >= 0) {
		size_t mark = !l->line++ && !strncmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;	/* UTF-8's */

		rc = strlen(text) < (size_t) len ? err_set(e, "not text: it has a NUL byte") :
		     line_load(l, text + mark, e);
	}
	free(text);
	return rc;
}

/* Sets every field from the fallbacks, then from path where it exists. origins: NULL, or those of all items. */
static int file_load(const char *path, struct settings *s, struct settings_origin *origins, struct err *e)
{
	struct load l = { .settings = s, .origins = origins };
	FILE *f;
	int rc = 0;

	memset(s, 0, sizeof(*s));
	for (const struct item *i = items; i->key && rc == 0; i++)
		rc = key_set(i, s, i->fallback, e);
	if (rc || (!(f = fopen(path, "re")) && errno == ENOENT))
		return rc;
	if (f && (rc = stream_load(&l, f, e)))
		err_within(e, "%s:%u", path, l.line);
	else if (!f || ferror(f))
		rc = err_set(e, "%s: %s", path, strerror(errno));
	if (f)
		fclose(f);
	return rc;
}

void settings_host(char *host, size_t size)
{
	if (gethostname(host, size))
		*host = '\0';
	host[size - 1] = '\0';
	host[strcspn(host, ".")] = '\0';
}

static int expand_host(char **text)
{
	char host[HOST_NAME_MAX + 1];
	struct buf b = {0};
	char *p = *text, *at;

	if (!strstr(p, "%h"))
		return 0;
	settings_host(host, sizeof(host));
	for (; (at = strstr(p, "%h")); p = at + 2) {
		buf_add(&b, p, at - p);
		buf_puts(&b, host);
	}
	buf_puts(&b, p);
	if (b.failed)
		return -1;
	free(*text);
	*text = b.data;
	return 0;
}

const char *settings_path(char *space, size_t size)
{
	const char *own = getenv("TOPIARY_CONF"), *slurm = getenv("SLURM_CONF");
	const char *slash = slurm ? strrchr(slurm, '/') : NULL;

	if (own)
		return own;
	if (!slash)
		return "/etc/slurm/topiary.conf";
	snprintf(space, size, "%.*s/topiary.conf", (int) (slash - slurm), slurm);
	return space;
}

/* An empty list has all. Slurm keeps names of QOS and accounts in lower case, those of partitions as they are. */
static bool list_has(const char *list, const char *name, bool any_case)
{
	size_t len = 0;

	for (const char *at = list; name && *(at += strspn(at, ", ")); at += len) {
		len = strcspn(at, ", ");
		if (strlen(name) == len && !(any_case ? strncasecmp : strncmp)(at, name, len))
			return true;
	}
	return !list[strspn(list, ", ")];
}

const char *settings_mode_excludes(const struct settings *s, const char *partition, const char *qos,
				   const char *account)
{
	return !list_has(s->topo_partitions, partition, false) ?
		       "TopoPartitions in topiary.conf does not have the job's partition" :
	       !list_has(s->topo_qos, qos, true) ? "TopoQos in topiary.conf does not have the job's QOS" :
	       !list_has(s->topo_accounts, account, true) ?
		       "TopoAccounts in topiary.conf does not have the job's account" : NULL;
}

bool settings_yes(const char *value)
{
	return !strcasecmp(value, "yes");
}

static int load(const char *path, struct settings *s, struct settings_origin *origins, struct err *e)
{
	int rc = file_load(path, s, origins, e);

	for (const struct item *i = items; i->key && rc == 0; i++)
		if (i->type != ITEM_NUMBER && expand_host((char **) ((char *) s + i->offset)))
			rc = err_set(e, "%s: out of memory", path);
	if (rc)
		settings_free(s);
	return rc;
}

int settings_load(const char *path, struct settings *s, struct err *e)
{
	char space[PATH_MAX];

	return load(path ? path : settings_path(space, sizeof(space)), s, NULL, e);
}

int settings_load_named(const char *config, struct settings *s, struct err *e)
{
	const char *named = config ? config : getenv("TOPIARY_CONF");

	if (named && access(named, F_OK))
		return err_set(e, "%s, named by %s: %s", named, config ? "--config" : "TOPIARY_CONF", strerror(errno));
	return settings_load(config, s, e);
}

int settings_each(const char *path, settings_each_fn *each, void *user, struct err *e)
{
	struct settings_origin origins[sizeof(items) / sizeof(items[0])] = {0};
	struct settings s;

	if (load(path, &s, origins, e))
		return -1;
	for (const struct item *i = items; i->key; i++) {
		const void *field = (const char *) &s + i->offset;
		char number[16];

		if (i->type == ITEM_NUMBER)
			snprintf(number, sizeof(number), "%u", *(const unsigned *) field);
		each(user, i->key, i->type == ITEM_NUMBER ? number : *(char *const *) field, origins[i - items]);
	}
	settings_free(&s);
	return 0;
}

void settings_free(struct settings *s)
{
	for (const struct item *i = items; i->key; i++) {
		char **field = (char **) ((char *) s + i->offset);

		if (i->type != ITEM_NUMBER) {
			free(*field);
			*field = NULL;
		}
	}
}

int settings_uid(const char *name, uid_t *uid, struct err *e)
{
	const struct passwd *pw;
	const char *at = name;

	if (*name && !name[strspn(name, "0123456789")])
		/* The largest uid is no user's: setresuid(2) takes it for "unchanged", munge for "anybody". */
		return number_read(&at, (uid_t) -1 - 1, uid) ? err_set(e, "RegistryUser=%s: not a uid", name) : 0;
	if (!(pw = getpwnam(name)))
		return err_set(e, "RegistryUser=%s: no such user on this host; create it with the uid it has on the "
			       "registry's host, or set RegistryUser to that uid", name);
	*uid = pw->pw_uid;
	return 0;
}
