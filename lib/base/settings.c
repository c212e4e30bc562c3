/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/settings.h"

#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buf.h"

/* One key of a Key=Value file, as Slurm's own files are written: keys in any case, '#' starts a comment line. */
struct item {
	const char *key;
	enum { ITEM_TEXT, ITEM_NUMBER } type;	/* char *, malloc'ed; unsigned, from min to max */
	size_t offset;
	const char *fallback;	/* the value if the file does not have the key */
	unsigned min, max;
};

#define TEXT(key, field, fallback) { key, ITEM_TEXT, offsetof(struct settings, field), fallback, 0, 0 }
#define UINT(key, field, fallback, min, max) { key, ITEM_NUMBER, offsetof(struct settings, field), fallback, min, max }

static const struct item items[] = {
	TEXT("SnapshotFile", snapshot_file, "/var/lib/topiary/snapshot"),
	TEXT("FabricFile", fabric_file, "/var/lib/topiary/fabric"),
	TEXT("CostsFile", costs_file, "/var/lib/topiary/costs"),
	UINT("SnapshotPoll", snapshot_poll, "10", 1, 86400),
	TEXT("RunDir", run_dir, "/run/topiary"),
	TEXT("TopologyFile", topology_file, "/run/topiary/topology.xml"),
	TEXT("ExportFormat", export_format, "own"),
	TEXT("TopoFit", topo_fit, "prefer"),
	TEXT("TopoLevel", topo_level, "node"),
	TEXT("TopoMem", topo_mem, "prefer"),
	TEXT("TopoGpuCores", topo_gpu_cores, "spare"),
	TEXT("WithoutSnapshot", without_snapshot, "run"),
	TEXT("TopoTasks", topo_tasks, "off"),
	TEXT("TopoPlace", topo_place, "off"),
	TEXT("TopoMembind", topo_membind, "off"),
	TEXT("TopoMems", topo_mems, "off"),
	TEXT("TopoOmp", topo_omp, "off"),
	TEXT("TopoNic", topo_nic, "off"),
	TEXT("TopoHwloc", topo_hwloc, "on"),
	TEXT("TopoMonitor", topo_monitor, "off"),
	TEXT("MonitorSummaries", monitor_summaries, "no"),
	TEXT("MonitorMetrics", monitor_metrics, ""),
	UINT("MonitorMetricsInterval", monitor_metrics_interval, "15", 1, 3600),
	TEXT("MonitorMetricsSet", monitor_metrics_set, "sw"),
	TEXT("MonitorMetricsJobs", monitor_metrics_jobs, "no"),
	TEXT("TopiaryCommand", topiary_command, "/usr/bin/topiary"),
	UINT("MapTimeout", map_timeout, "60", 1, 3600),
	UINT("NicPlanes", nic_planes, "1", 1, 64),
	TEXT("RegistryURL", registry_url, "http://127.0.0.1:6824"),
	TEXT("RegistryUser", registry_user, "topiary"),
	TEXT("MungeSocket", munge_socket, ""),
	TEXT("TlsCA", tls_ca, ""),
	TEXT("TlsCertificate", tls_certificate, ""),
	TEXT("TlsKey", tls_key, ""),
	TEXT("Listen", listen, "127.0.0.1:6824"),
	TEXT("Database", database, "dbname=topiary"),
	TEXT("ReadDatabase", read_database, ""),
	TEXT("SchemaDir", schema_dir, "/usr/share/topiary/sql"),
	UINT("StormRate", storm_rate, "200", 1, 100000),
	UINT("BodyMemory", body_memory, "64", 8, 4096),
	TEXT("PeerCheck", peer_check, "refuse"),
	TEXT("PublishSerials", publish_serials, "no"),
	TEXT("ReadFacts", read_facts, "users"),
	TEXT("KnownNodes", known_nodes, ""),
	TEXT("Admins", admins, "root"),
	TEXT("AdminHosts", admin_hosts, ""),
	UINT("NodeDocuments", node_documents, "24", 0, 1000000),
	UINT("NodeBytes", node_bytes, "16", 0, 1000000),
	UINT("JobSummaries", job_summaries, "10000", 0, 1000000),
	UINT("KeepHistory", keep_history, "365", 0, 36500),
	UINT("UpkeepInterval", upkeep_interval, "600", 1, 86400),
	TEXT("LogLevel", log_level, "info"),
	TEXT("DriftHook", drift_hook, ""),
	{0},
};

/* --- the file --- */

struct load {
	struct settings *settings;
	unsigned *lines, line;	/* line: that was read last */
	FILE *file;
	char why[256];
};

static int key_set(const struct item *item, struct settings *s, const char *value, char *why, size_t size)
{
	void *field = (char *) s + item->offset;
	unsigned long n;
	char *end;

	if (item->type == ITEM_TEXT) {
		char *copy = strdup(value);

		if (!copy)
			return -1;
		free(*(char **) field);
		*(char **) field = copy;
		return 0;
	}
	errno = 0;
	n = strtoul(value, &end, 10);
	if (errno || end == value || *end || *value == '-' || n < item->min || n > item->max) {
		snprintf(why, size, "%s=%s: expected a number from %u to %u", item->key, value, item->min, item->max);
		return -1;
	}
	*(unsigned *) field = n;
	return 0;
}

static int on_value(void *user, const char *section, const char *key, const char *value)
{
	struct load *l = user;

	for (const struct item *i = items; i->key && !*section; i++) {
		if (strcasecmp(i->key, key))
			continue;
		if (l->lines)
			l->lines[i - items] = l->line;
		return key_set(i, l->settings, value, l->why, sizeof(l->why)) == 0;
	}
	if (!*l->why)
		snprintf(l->why, sizeof(l->why), "unknown key '%s%s%s'", section, *section ? "." : "", key);
	return 0;
}

/* inih counts lines, too, but names none to on_value. */
static char *next_line(char *text, int size, void *user)
{
	struct load *l = user;

	l->line++;
	return fgets(text, size, l->file);
}

/* Sets every field from the fallbacks, then from path where it exists. lines: settings_each. */
static int file_load(const char *path, struct settings *s, unsigned *lines, struct err *e)
{
	struct load l = { .settings = s, .lines = lines };
	int line = 0;

	for (const struct item *i = items; i->key; i++) {
		if (lines)
			lines[i - items] = 0;
		if (i->type == ITEM_TEXT)
			*(char **) ((char *) s + i->offset) = NULL;
		if (key_set(i, s, i->fallback, l.why, sizeof(l.why)))
			goto error;
	}
	if (!(l.file = fopen(path, "re"))) {
		if (errno == ENOENT)
			return 0;
		snprintf(l.why, sizeof(l.why), "%s", strerror(errno));
		goto error;
	}
	line = ini_parse_stream(next_line, &l, on_value, &l);
	fclose(l.file);
	if (!line)
		return 0;
error:
	settings_free(s);
	if (line > 0)
		return err_set(e, "%s:%d: %s", path, line, *l.why ? l.why : "not a Key=Value line");
	return err_set(e, "%s: %s", path, *l.why ? l.why : "cannot be read");
}

/* --- values --- */

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

/* The values of keys that are one of a few words. */
static const struct {
	const char *key;
	size_t offset;
	const char *words[6];	/* NULL after the last */
	bool is_list;		/* or several of them, joined by '+' */
} choices[] = {
	{ "ExportFormat", offsetof(struct settings, export_format), { "own", "2", "3" }, false },
	{ "MonitorMetricsSet", offsetof(struct settings, monitor_metrics_set), { "sw", "cpu", "power", "net", "gpu" },
	  true },
	{ "MonitorMetricsJobs", offsetof(struct settings, monitor_metrics_jobs), { "yes", "no" }, false },
	{ "MonitorSummaries", offsetof(struct settings, monitor_summaries), { "yes", "no" }, false },
	{ "PublishSerials", offsetof(struct settings, publish_serials), { "yes", "no" }, false },
	{ "ReadFacts", offsetof(struct settings, read_facts), { "anyone", "users", "admins" }, false },
	{ "PeerCheck", offsetof(struct settings, peer_check), { "off", "warn", "refuse" }, false },
	{ "LogLevel", offsetof(struct settings, log_level), { "error", "warning", "info", "debug" }, false },
};

/* Each part of the value is a word. */
static bool is_chosen(const char *const *words, const char *value, bool is_list)
{
	for (;; value++) {
		size_t n = is_list ? strcspn(value, "+") : strlen(value);
		const char *const *word = words;

		while (*word && (strlen(*word) != n || strncasecmp(value, *word, n)))
			word++;
		if (!*word || !*(value += n))
			return *word;
	}
}

static int check_choices(const struct settings *s, const char *path, struct err *e)
{
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		const char *value = *(char *const *) ((const char *) s + choices[i].offset);
		struct buf words = {0};

		if (is_chosen(choices[i].words, value, choices[i].is_list))
			continue;
		for (const char *const *word = choices[i].words; *word; word++)
			buf_printf(&words, "%s%s", word == choices[i].words ? "" : word[1] ? ", " : " or ", *word);
		err_set(e, "%s: %s=%s: expected %s%s", path, choices[i].key, value,
			words.data ? words.data : "another value",
			choices[i].is_list ? ", or several joined by +" : "");
		buf_free(&words);
		return -1;
	}
	return 0;
}

bool settings_yes(const char *value)
{
	return !strcasecmp(value, "yes");
}

static int load(const char *path, struct settings *s, unsigned *lines, struct err *e)
{
	if (file_load(path, s, lines, e))
		return -1;
	if (check_choices(s, path, e)) {
		settings_free(s);
		return -1;
	}
	for (const struct item *i = items; i->key; i++) {
		if (i->type != ITEM_TEXT || !expand_host((char **) ((char *) s + i->offset)))
			continue;
		settings_free(s);
		return err_set(e, "%s: out of memory", path);
	}
	return 0;
}

int settings_load(const char *path, struct settings *s, struct err *e)
{
	char space[PATH_MAX];

	return load(path ? path : settings_path(space, sizeof(space)), s, NULL, e);
}

int settings_each(const char *path, void (*each)(void *user, const char *key, const char *value, unsigned line),
		  void *user, struct err *e)
{
	unsigned lines[sizeof(items) / sizeof(items[0])];
	struct settings s;

	if (load(path, &s, lines, e))
		return -1;
	for (const struct item *i = items; i->key; i++) {
		const void *field = (const char *) &s + i->offset;
		char number[16];

		if (i->type == ITEM_NUMBER)
			snprintf(number, sizeof(number), "%u", *(const unsigned *) field);
		each(user, i->key, i->type == ITEM_NUMBER ? number : *(char *const *) field, lines[i - items]);
	}
	settings_free(&s);
	return 0;
}

void settings_free(struct settings *s)
{
	for (const struct item *i = items; i->key; i++) {
		char **field = (char **) ((char *) s + i->offset);

		if (i->type == ITEM_TEXT) {
			free(*field);
			*field = NULL;
		}
	}
}
