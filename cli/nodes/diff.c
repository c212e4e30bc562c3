/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "changes.h"
#include "target.h"
#include "hwcmp/compare.h"
#include "hwcmp/hwdiff.h"

/* diff(1) */
enum { STATUS_EQUAL, STATUS_DIFFERENT, STATUS_TROUBLE };

struct args {
	struct cmd_words names;
	bool hwloc, all;
};

/* One side of the comparison: a file, or a node at some time. */
struct end {
	const char *name;
	struct target target;	/* node "" for a file */
	struct tree *tree;
};

static const struct cmd_option options[] = {
	{ "all", 0, NULL, CMD_FLAG(all), "Also report differences of identity: names, serial numbers, addresses" },
	{ "hwloc", 0, NULL, CMD_FLAG(hwloc),
	  "Print hwloc's diff XML for hwloc-patch(1), if hwloc can express the difference" },
	{0},
};

static void check_names(void *args, struct argp_state *state)
{
	const struct cmd_words *names = &((struct args *) args)->names;

	if (names->n != 2 && (names->n != 1 || !strchr(names->list[0], '@')))
		argp_error(state, "expected two of FILE, NODE or NODE@WHEN, or one NODE@WHEN to compare with its "
			   "present state");
}

static const struct cmd_syntax syntax = {
	options, "A B\nNODE@WHEN",
	"Compare two topologies, each a file, a NODE or a NODE@WHEN.\v"
	"The exit status is 0 if they are equal apart from names, serial numbers and addresses, 1 if they differ, "
	"2 on an error.",
	CMD_WORDS(names), NULL, check_names,
};

static int end_name(struct end *end, const char *name, struct err *e)
{
	end->name = name;
	if (strchr(name, '/') || access(name, F_OK) == 0)
		return 0;
	return target_parse(name, &end->target, e);
}

static int end_load(const struct cmd *c, struct end *end, struct err *e)
{
	end->tree = *end->target.node ? tree_of_target(c, &end->target, e) : tree_of_file(end->name, e);
	return end->tree ? 0 : -1;
}

static int diff_status(const struct changes *c)
{
	return changes_count(c, SEVERITY_IDENTITY) < c->n ? STATUS_DIFFERENT : STATUS_EQUAL;
}

static int print_json(const struct end ends[2], const struct changes *c, struct err *e)
{
	return cmd_print_new(json_pack("{s:s,s:s,s:o,s:o}", "from", ends[0].name, "to", ends[1].name, "changes",
				       changes_to_json(c), "counts", changes_counts(c)), e);
}

static void print_counts(const struct changes *c)
{
	const char *gap = ": ";

	printf("%zu change%s", c->n, c->n == 1 ? "" : "s");
	for (int s = SEVERITY_COUNT - 1; s >= 0; s--) {
		size_t n = changes_count(c, s);

		if (n) {
			printf("%s%zu %s", gap, n, severity_name(s));
			gap = ", ";
		}
	}
	putchar('\n');
}

static int print_words(const struct changes *c, bool all, struct err *e)
{
	for (size_t i = 0; i < c->n; i++)
		if (all || c->list[i].severity != SEVERITY_IDENTITY)
			change_print(&c->list[i], stdout);
	print_counts(c);
	return fflush(stdout) || ferror(stdout) ? err_set(e, "stdout: %s", strerror(errno)) : 0;
}

static int print_hwloc(const struct end ends[2], struct err *e)
{
	const struct buf *a = &ends[0].tree->canonical, *b = &ends[1].tree->canonical;
	struct buf out = {0};
	int rc = hwdiff_xml(a->data, a->len, b->data, b->len, &out, e);

	if (rc > 0)
		rc = err_set(e, "%.100s and %.100s: hwloc's diff format cannot express added or removed objects",
			     ends[0].name, ends[1].name);
	else if (!rc)
		rc = out.failed ? err_set(e, "out of memory") : cmd_write(NULL, &out, e);
	buf_free(&out);
	return rc;
}

static int ends_compare(struct cmd *c, const struct args *a, const struct end ends[2], struct err *e)
{
	bool itself = *ends[0].target.node && !strcmp(ends[0].target.node, ends[1].target.node);
	struct changes changes;
	int rc;

	if (compare_trees(ends[0].tree, ends[1].tree, &changes, e))
		return -1;
	if (a->hwloc)
		rc = print_hwloc(ends, e);
	else
		rc = c->json ? print_json(ends, &changes, e) : print_words(&changes, a->all || itself, e);
	if (!rc)
		c->status = diff_status(&changes);
	changes_free(&changes);
	return rc;
}

int cmd_diff(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct end ends[2] = {0};
	struct args a = {0};
	int rc;

	c->status = argp_err_exit_status = STATUS_TROUBLE;
	if (cmd_parse(c, &syntax, &a, argc, argv, e) || end_name(&ends[0], a.names.list[0], e))
		return -1;
	rc = end_name(&ends[1], a.names.n > 1 ? a.names.list[1] : ends[0].target.node, e);
	if (!rc && !end_load(c, &ends[0], e) && !end_load(c, &ends[1], e))
		rc = ends_compare(c, &a, ends, e);
	else
		rc = -1;
	tree_free(ends[0].tree);
	tree_free(ends[1].tree);
	return rc;
}
