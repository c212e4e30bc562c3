/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "changes.h"
#include "target.h"
#include "hwcmp/compare.h"

#define STATUS_UNKNOWN 4

/* The exit status by severity. */
static const int statuses[SEVERITY_COUNT] = {
	[SEVERITY_COSMETIC] = 1, [SEVERITY_WIRING] = 2, [SEVERITY_SLOW] = 5, [SEVERITY_CAPACITY] = 3,
};

#define SECONDS 10

struct args {
	int mode, least;	/* enum verify_mode, enum severity */
	const char *against, *name;
	bool verbose;
};

static const struct cmd_option options[] = {
	{ "mode", 0, "MODE",
	  CMD_KEYWORD(mode, verify_mode_parse, "strict, allow-extra, allow-missing, ignore"),
	  "strict (default), allow-extra, allow-missing or ignore" },
	{ "against", 0, "FILE", CMD_TEXT(against), "Compare with this XML file, without the registry" },
	{ "severity", 0, "SEVERITY", CMD_KEYWORD(least, drift_severity_parse, "cosmetic, wiring, slow, capacity"),
	  "Ignore changes below cosmetic, wiring (default), slow or capacity" },
	{ "verbose", 0, NULL, CMD_FLAG(verbose), "Also report success" },
	{0},
};

static const struct cmd_syntax syntax = {
	options, "[NODE]\n--against FILE [FILE]",
	"Check a node against its class, or a topology against a file, for Slurm's HealthCheckProgram.\v"
	"The exit status is 0 for no change, 1 for cosmetic changes, 2 for wiring, 5 for a slow node, 3 for capacity, "
	"4 on an error.",
	CMD_TEXT(name), NULL, NULL,
};

static void on_alarm(int signal)
{
	static const char words[] = "topiary: verify: no answer within 10 s\n";
	ssize_t ignored = write(STDERR_FILENO, words, sizeof(words) - 1);

	(void)signal, (void)ignored;
	_exit(STATUS_UNKNOWN);
}

static int changes_of_files(const char *is, const char *expected, struct changes *out, struct err *e)
{
	struct tree *a = tree_of_file(expected, e), *b = a ? tree_of_file(is, e) : NULL;
	int rc = b ? compare_trees(a, b, out, e) : -1;

	tree_free(a);
	tree_free(b);
	return rc;
}

static int changes_of_node(const struct cmd *c, const char *node, struct changes *out, struct err *e)
{
	json_t *answer = cmd_get_node(c, node, "/drift", e);
	int rc = answer ? changes_from_json(json_object_get(answer, "changes"), out, e) : -1;

	json_decref(answer);
	return rc;
}

/* Changes that the mode allows, or below the severity, are not reported. */
static void changes_keep(struct changes *c, const struct args *a)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		struct changes one = { &c->list[i], 1 };

		if (changes_verdict(&one, a->mode) >= a->least)
			c->list[n++] = c->list[i];
		else
			change_free(&c->list[i]);
	}
	c->n = n;
}

static int print_json(const char *name, const struct changes *c, int verdict, struct err *e)
{
	return cmd_print_new(json_pack("{s:s,s:s?,s:o}", "checked", name, "severity",
				       verdict < 0 ? NULL : severity_name(verdict), "changes", changes_to_json(c)), e);
}

static int print_words(const char *name, const struct changes *c, bool verbose, struct err *e)
{
	for (size_t i = 0; i < c->n; i++)
		change_print(&c->list[i], stdout);
	if (!c->n && verbose)
		printf("%s: as expected\n", name);
	return fflush(stdout) || ferror(stdout) ? err_set(e, "stdout: %s", strerror(errno)) : 0;
}

static int changes_report(struct cmd *c, const struct args *a, const char *name, struct changes *changes, struct err *e)
{
	int verdict, rc;

	changes_keep(changes, a);
	verdict = changes_verdict(changes, a->mode);
	rc = c->json ? print_json(name, changes, verdict, e) : print_words(name, changes, a->verbose, e);
	if (!rc)
		c->status = verdict < 0 ? 0 : statuses[verdict];
	return rc;
}

int cmd_verify(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = { .mode = VERIFY_STRICT, .least = SEVERITY_WIRING };
	struct changes changes;
	const char *name;
	int rc;

	c->status = argp_err_exit_status = STATUS_UNKNOWN;
	if (cmd_parse(c, &syntax, &a, argc, argv, e))
		return -1;
	signal(SIGALRM, on_alarm);
	alarm(SECONDS);
	name = a.name ? a.name : a.against ? c->settings.topology_file : c->settings.node_name;
	rc = a.against ? changes_of_files(name, a.against, &changes, e) : changes_of_node(c, name, &changes, e);
	if (rc)
		return -1;
	rc = changes_report(c, &a, name, &changes, e);
	changes_free(&changes);
	return rc;
}
