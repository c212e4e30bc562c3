/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "table.h"
#include "base/array.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/printable.h"
#include "base/settings.h"

static char *dir, path[64];

static void put(const char *text)
{
	assert_ok(file_replace(path, text, strlen(text), 0600, &err));
}

TEST(replaces_files)
{
	struct buf b = {0};
	struct stat st;

	put("one");
	put("two");
	assert_int_equal(file_read(path, 3, &b, &err), 0);
	assert_string_equal(b.data, "two");
	buf_free(&b);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(file_read(path, 2, &b, &err), -1);
	assert_non_null(strstr(err.text, path));
	assert_null(b.data);
	put("");
	assert_int_equal(file_read(path, 0, &b, &err), 0);
	assert_int_equal(b.len, 0);
	assert_string_equal(b.data, "");
	buf_free(&b);
	assert_int_equal(file_read(dir, 100, &b, &err), -1);
	assert_int_equal(file_read("/nowhere/at/all", 100, &b, &err), -1);
	assert_int_equal(file_replace("/nowhere/at/all", "x", 1, 0600, &err), -1);
}

/* A link that somebody put in the place of a file is replaced; what it points to keeps its bytes. */
TEST(replaces_links_and_never_follows)
{
	char other[80];
	FREED(buf_free) struct buf b = {0};

	snprintf(other, sizeof(other), "%s/other", dir);
	assert_int_equal(file_replace(other, "mine", 4, 0600, NULL), 0);
	unlink(path);
	assert_int_equal(symlink(other, path), 0);
	put("new");
	assert_int_equal(file_read(other, 100, &b, NULL), 0);
	assert_string_equal(b.data, "mine");
}

TEST(hashes)
{
	char hex[HASH_HEX];

	/* FIPS 180-4, example of the one-block message "abc" */
	hash_hex("abc", 3, hex);
	assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(reads_settings)
{
	char host[256] = "", want[2 * sizeof(host) + sizeof("/run/x")];
	struct settings s;

	gethostname(host, sizeof(host) - 1);
	host[strcspn(host, ".")] = '\0';
	put("# a comment\nsnapshotfile = /tmp/s\nSnapshotPoll=3\nRunDir=/run/%h/x%h\nTopoLevel=l3\n"
	    "TopoMatrix=Off\nPeerCheck=WARN\nMonitorMetricsSet=SW+Cpu\nTlsCA=/etc/CA\n");
	assert_ok(settings_load(path, &s, &err));
	assert_string_equal(s.snapshot_file, "/tmp/s");
	assert_int_equal(s.snapshot_poll, 3);
	snprintf(want, sizeof(want), "/run/%s/x%s", host, host);
	assert_string_equal(s.run_dir, want);
	assert_string_equal(s.topo_level, "l3");
	assert_string_equal(s.topo_fit, "prefer");
	assert_string_equal(s.topo_matrix, "off");
	assert_string_equal(s.peer_check, "warn");
	assert_string_equal(s.monitor_metrics_set, "sw+cpu");
	assert_string_equal(s.tls_ca, "/etc/CA");
	settings_free(&s);
	assert_int_equal(settings_load("/nowhere/topiary.conf", &s, &err), 0);
	assert_int_equal(s.map_timeout, 60);
	assert_string_equal(s.topo_level, "node");
	assert_int_equal(s.keep_history, 365);
	assert_int_equal(s.node_documents, 24);
	assert_int_equal(s.node_bytes, 16);
	assert_string_equal(s.drift_hook, "");
	assert_string_equal(s.peer_check, "refuse");
	settings_free(&s);
}

TEST(mode_is_for_some_jobs)
{
	static const struct {
		const char *lines, *partition, *qos, *account, *excludes;
	} rows[] = {
		{ "", NULL, NULL, NULL, NULL },
		{ "TopoPartitions=debug, long", "long", NULL, "a", NULL },
		{ "TopoPartitions=debug", "Debug", NULL, NULL, "TopoPartitions" },
		{ "TopoPartitions=debug", NULL, NULL, NULL, "TopoPartitions" },
		{ "TopoQos=High,Pilot", "any", "pilot", NULL, NULL },
		{ "TopoQos=pilot", "any", "pilots", NULL, "TopoQos" },
		{ "TopoQos=pilot", "any", NULL, "pilot", "TopoQos" },
		{ "TopoAccounts=Physics", "any", NULL, "physics", NULL },
		{ "TopoAccounts=physics", "any", NULL, "phys", "TopoAccounts" },
		{ "TopoPartitions=p\nTopoQos=q\nTopoAccounts=a", "p", "q", "a", NULL },
		{ "TopoPartitions=p\nTopoQos=q\nTopoAccounts=a", "p", "q", "b", "TopoAccounts" },
		{ "TopoPartitions=p\nTopoQos=q\nTopoAccounts=a", "x", "q", "a", "TopoPartitions" },
	};
	struct settings s;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *why;

		put(rows[i].lines);
		assert_ok(settings_load(path, &s, &err));
		why = settings_mode_excludes(&s, rows[i].partition, rows[i].qos, rows[i].account);
		assert_true(!why == !rows[i].excludes);
		if (why)
			assert_non_null(strstr(why, rows[i].excludes));
		settings_free(&s);
	}
}

/* A line is one line, whatever its length, and where it begins; what is longest is a comment that would set a key. */
TEST(reads_lines)
{
	static const struct {
		const char *before;
		unsigned filler;	/* bytes of 'x' between the two */
		const char *after, *admins;
		unsigned history;
	} rows[] = {
		{ "# ", 197, "KeepHistory=1\n", "root", 365 },
		{ "# ", 100000, "KeepHistory=1\nAdmins=b", "b", 365 },
		{ "", 0, "Admins=a\n\tKeepHistory=7\n", "a", 7 },
		{ "", 0, "Admins=a\n  b=c\n", NULL, 0 },
		{ "", 0, "\xef\xbb\xbf" "Admins=a\r\n\r\nKeepHistory = 7 \r\n", "a", 7 },
		{ "", 0, "Admins=a#b;c # d\nKeepHistory=7\t;x=y\n", "a#b;c", 7 },
		{ "", 0, "Admins=a=b\nAdmins=\n", "", 365 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		char *text = malloc(rows[i].filler + 200);
		FREED(settings_free) struct settings s = {0};
		int rc;

		sprintf(text, "%s%*s%s", rows[i].before, (int) rows[i].filler, "", rows[i].after);
		memset(text + strlen(rows[i].before), 'x', rows[i].filler);
		put(text);
		free(text);
		rc = settings_load(path, &s, &err);
		if (rc != (rows[i].admins ? 0 : -1))
			fail_msg("row %zu: %s", i, rc ? err.text : "accepted");
		if (rc)
			continue;
		if (strcmp(s.admins, rows[i].admins) || s.keep_history != rows[i].history)
			fail_msg("row %zu: Admins=%s KeepHistory=%u", i, s.admins, s.keep_history);
	}
}

TEST(reads_long_values)
{
	char text[6000] = "Database=";
	FREED(settings_free) struct settings s;

	memset(text + 9, 'd', 5000);
	put(text);
	assert_ok(settings_load(path, &s, &err));
	assert_string_equal(s.database, text + 9);
}

TEST(a_named_file_exists)
{
	struct settings s;

	assert_int_equal(settings_load_named("/nowhere/c.conf", &s, &err), -1);
	assert_string_equal(err.text, "/nowhere/c.conf, named by --config: No such file or directory");
	setenv("TOPIARY_CONF", "/nowhere/t.conf", 1);
	assert_int_equal(settings_load_named(NULL, &s, &err), -1);
	assert_string_equal(err.text, "/nowhere/t.conf, named by TOPIARY_CONF: No such file or directory");
	assert_int_equal(settings_load_named("/", &s, &err), -1);
	assert_string_equal(err.text, "/: Is a directory");
	assert_int_equal(settings_load_named("/dev/null", &s, &err), 0);
	settings_free(&s);
	unsetenv("TOPIARY_CONF");
	setenv("SLURM_CONF", "/nowhere/slurm.conf", 1);
	assert_int_equal(settings_load_named(NULL, &s, &err), 0);
	settings_free(&s);
	unsetenv("SLURM_CONF");
}

static void note_origin(void *user, const char *key, const char *value, struct settings_origin origin)
{
	struct buf *b = user;

	if (origin.line || !strcmp(key, "MapTimeout"))
		buf_printf(b, "%s=%s:%u(%u) ", key, value, origin.line, origin.before);
}

TEST(names_the_line_of_each_value)
{
	struct buf b = {0};

	put("# a comment\n\n; another\nTopoFit=prefer\nsnapshotpoll = 3\nTopoFit=off\n");
	assert_ok(settings_each(path, note_origin, &b, &err));
	assert_string_equal(b.data, "SnapshotPoll=3:5(0) TopoFit=off:6(4) MapTimeout=60:0(0) ");
	buf_free(&b);
	put("TopoFits=off\n");
	b = (struct buf){0};
	assert_int_equal(settings_each(path, note_origin, &b, &err), -1);
	assert_null(b.data);
}

static void settings_refused(const char *text, const char *error)
{
	struct settings s;
	struct err e = {""};

	put(text);
	if (!settings_load(path, &s, &e))
		fail_msg("accepted: %s", text);
	if (strncmp(e.text, path, strlen(path)) || !strstr(e.text, error))
		fail_msg("'%s' has no '%s'", e.text, error);
}

TEST(refuses_settings)
{
	cases_each("refused/settings.txt", settings_refused);
}

TEST(prefixes_errors)
{
	assert_int_equal(err_set(&err, "line %d", 3), -1);
	assert_int_equal(err_within(&err, "file %s", "x"), -1);
	assert_string_equal(err.text, "file x: line 3");
	err_within(&err, "file x");
	assert_string_equal(err.text, "file x: line 3");
	err_within(&err, "file");
	assert_string_equal(err.text, "file: file x: line 3");
	assert_int_equal(err_set(NULL, "nobody listens"), -1);
}

TEST(arrays_grow)
{
	unsigned *list = NULL, n = 0, *three, *before;
	struct { char name[24]; } *wide = NULL;
	size_t nwide = 0;

	for (unsigned i = 0; i < 100; i++)
		*array_add(list, n) = i;
	assert_int_equal(n, 100);
	assert_int_equal(array_reserve(list, n, 1000), 0);
	memset(list + n, 0xff, 1000 * sizeof(*list));
	three = array_append(list, n, 3);
	assert_ptr_equal(three, list + 100);
	assert_int_equal(n, 103);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(list[i], i < 100 ? i : 0);
	before = list;
	assert_null(array_append(list, n, SIZE_MAX / 2));
	assert_int_equal(array_reserve(list, n, SIZE_MAX), -1);
	assert_int_equal(array_reserve(list, n, SIZE_MAX / sizeof(*list) - n), -1);
	assert_ptr_equal(list, before);
	assert_int_equal(n, 103);
	/* One that has shrunk. */
	for (n = 5; n < 9;)
		*array_add(list, n) = 7;
	assert_int_equal(list[4], 4);
	assert_int_equal(list[8], 7);
	assert_int_equal(array_reserve(wide, nwide, 0), 0);
	for (unsigned i = 0; i < 1000; i++)
		snprintf(array_add(wide, nwide)->name, sizeof(wide->name), "%u", i);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(atoi(wide[i].name), i);
	free(list);
	free(wide);
}

TEST(controls_are_seen)
{
	static const struct {
		const char *text, *printed;
	} rows[] = {
		{ "", "" }, { "cn1", "cn1" }, { "\x1b[2J\n", "?[2J " },
		{ "no\tsuch\r\nnode", "no such  node" }, { "a\x7f", "a?" },
		{ "\xc2\x9b" "2J", "??2J" }, { "\xc2\x80\xc2\x9f", "????" },
		/* Overrides, isolates and marks of direction, what is invisible. */
		{ "\xe2\x80\xae" "cn1", "???cn1" }, { "\xe2\x81\xa6\xe2\x81\xa9", "??????" }, { "\xd8\x9c", "??" },
		{ "c\xe2\x80\x8bn\xef\xbb\xbf", "c???n???" }, { "\xe2\x80\xa8", "\xe2\x80\xa8" },
		{ "\xe2\x80\x93\xe2\x80\xa6\xe2\x82\xac\xd8\x9b\xe2\x80",
		  "\xe2\x80\x93\xe2\x80\xa6\xe2\x82\xac\xd8\x9b\xe2\x80" },
		/* A letter, a space that does not break, and what was cut off within a character. */
		{ "\xc3\x9b \xc2\xa0 \xc2\xbf", "\xc3\x9b \xc2\xa0 \xc2\xbf" }, { "x\xc2", "x\xc2" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		char text[32];

		strcpy(text, rows[i].text);
		assert_int_equal(is_printable(text), !strcmp(rows[i].text, rows[i].printed));
		assert_string_equal(printable(text), rows[i].printed);
	}
}

FIXTURE(setup)
{
	return snprintf(path, sizeof(path), "%s/file", dir = folder_new()) < 0;
}

TESTS_MAIN(setup, NULL)
