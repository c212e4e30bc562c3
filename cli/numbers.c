/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "numbers.h"

#include <stdlib.h>
#include <string.h>

#include "target.h"
#include "map/matrix/numbers.h"
#include "shape/hostset.h"

/* Frees the tree, which may be NULL after an error. */
static struct numbers *numbers_of_tree(struct tree *t, const char *name, struct err *e)
{
	struct numbers *n = t ? numbers_of(t, e) : NULL;

	if (t && !n)
		err_within(e, "%s", name);
	tree_free(t);
	return n;
}

static struct numbers *numbers_of_node(const struct cmd *c, const char *host, struct err *e)
{
	struct target node = {0};

	return target_parse(host, &node, e) ? NULL : numbers_of_tree(tree_of_target(c, &node, e), host, e);
}

/* Hosts without places are skipped; of a host named twice the first file counts. */
static int hosts_fill(const char *list, const char *file, struct places *p, struct err *e)
{
	struct hostset *hosts = hostset_parse(list, e);
	int rc = hosts ? 0 : -1;

	for (unsigned h = 0; rc == 0 && h < p->nhosts; h++)
		if (!p->numbers[h] && hostset_has(hosts, p->hosts[h]))
			rc = (p->numbers[h] = numbers_of_tree(tree_of_file(file, e), file, e)) ? 0 : -1;
	hostset_free(hosts);
	return rc;
}

static int words_fill(char *words, struct places *p, struct err *e)
{
	char *save = NULL;

	for (char *item = strtok_r(words, ";", &save); item; item = strtok_r(NULL, ";", &save)) {
		char *file = strchr(item, '=');

		if (!file)
			return err_set(e, "'%s': expected HOSTS=FILE", item);
		*file++ = '\0';
		if (hosts_fill(item, file, p, e))
			return -1;
	}
	return 0;
}

int numbers_load(const struct cmd *c, const char *words, struct places *p, struct err *e)
{
	char *copy = strdup(words ? words : "");
	int rc = -1;

	p->numbers = calloc(p->nhosts + 1, sizeof(*p->numbers));
	if (!copy || !p->numbers)
		err_set(e, "out of memory");
	else
		rc = words_fill(copy, p, e);
	free(copy);
	for (unsigned h = 0; !rc && h < p->nhosts; h++)
		if (!p->numbers[h] && !(p->numbers[h] = numbers_of_node(c, p->hosts[h], e)))
			rc = err_within(e, "%s: no topology with its OS CPU numbers", p->hosts[h]);
	return rc;
}
