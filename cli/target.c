/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "target.h"

#include "base/file.h"
#include "client/cred.h"
#include "hwxml/canon.h"

/* Parse a zone: "Z", "+01:00" or nothing (local time), into seconds east of UTC. NULL on a syntax error. */
static const char *read_zone(const char *at, bool *local, long *east)
{
	unsigned hours, minutes;
	int used = 0;

	*local = !*at;
	*east = 0;
	if (*at == 'Z' || *at == 'z')
		return at + 1;
	if (*at != '+' && *at != '-')
		return at;
	if (sscanf(at + 1, "%2u:%2u%n", &hours, &minutes, &used) != 2 || used != 5 || hours > 23 || minutes > 59)
		return NULL;
	*east = (*at == '-' ? -1 : 1) * (long) (hours * 3600 + minutes * 60);
	return at + 1 + used;
}

/* Parse ".25", at most six digits. NULL when no digit follows the point. */
static const char *read_fraction(const char *at, char fraction[static 7])
{
	size_t digits;

	if (*at != '.')
		return at;
	digits = strspn(++at, "0123456789");
	snprintf(fraction, 7, "%.*s", (int) digits, at);
	return digits ? at + digits : NULL;
}

static const char *read_clock(const char *at, struct tm *tm, char fraction[static 7])
{
	const char *end;

	if (*at != ' ' && *at != 'T' && *at != 't')
		return at;
	if (!(end = strptime(at + 1, "%H:%M:%S", tm)))
		return strptime(at + 1, "%H:%M", tm);
	return read_fraction(end, fraction);
}

int when_parse(const char *words, char out[static WHEN_MAX], struct err *e)
{
	struct tm tm = { .tm_isdst = -1 };
	char fraction[7] = WHEN_END, text[WHEN_MAX];
	const char *at = strptime(words, "%Y-%m-%d", &tm);
	bool local = true;
	long east = 0;
	time_t t;

	if (at)
		at = read_clock(at, &tm, fraction);
	if (at)
		at = read_zone(at, &local, &east);
	if (!at || *at)
		return err_set(
			e, "'%.100s': expected a time such as 2026-11-20, '2026-11-20 14:00' or 2026-11-20T14:00:00Z",
			words);
	t = local ? mktime(&tm) : timegm(&tm) - east;
	if (t > time(NULL) + 1)
		return err_set(e, "'%.100s' is in the future", words);
	gmtime_r(&t, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out, WHEN_MAX, "%.31s.%sZ", text, fraction);
	return 0;
}

const char *when_local(const char *utc, char out[static WHEN_MAX])
{
	struct tm tm = {0};
	time_t t;

	snprintf(out, WHEN_MAX, "%s", utc ? utc : "-");
	if (!utc || !strptime(utc, "%Y-%m-%dT%H:%M:%S", &tm))
		return out;
	t = timegm(&tm);
	localtime_r(&t, &tm);
	strftime(out, WHEN_MAX, "%Y-%m-%d %H:%M:%S", &tm);
	return out;
}

int target_parse(const char *text, struct target *out, struct err *e)
{
	size_t len = strcspn(text, "@");
	struct target t = {0};

	snprintf(t.node, sizeof(t.node), "%.*s", (int) len, text);
	if (len >= sizeof(t.node) || !claim_node_valid(t.node))
		return err_set(e, "'%.100s': not a node name", text);
	if (text[len] && when_parse(text + len + 1, t.at, e))
		return err_within(e, "%s", t.node);
	*out = t;
	return 0;
}

/* Frees the text. */
static struct tree *tree_of_text(struct buf *xml, const char *name, struct err *e)
{
	struct tree *t = tree_parse(xml->data ? xml->data : "", xml->len, name, e);

	buf_free(xml);
	return t;
}

struct tree *tree_of_file(const char *path, struct err *e)
{
	struct buf xml = {0};

	return file_read(path, CANON_MAX_BYTES, &xml, e) ? NULL : tree_of_text(&xml, path, e);
}

int target_read(const struct cmd *c, const struct target *t, const char *form, struct buf *out, struct err *e)
{
	struct buf path = {0};
	int rc;

	cmd_node_path(&path, t->node, "/topology");
	cmd_query(&path, "at", *t->at ? t->at : NULL);
	cmd_query(&path, "form", form);
	rc = path.failed ? err_set(e, "%s: out of memory", t->node) : cmd_get(c, path.data, out, e);
	buf_free(&path);
	return rc;
}

struct tree *tree_of_target(const struct cmd *c, const struct target *t, struct err *e)
{
	struct buf xml = {0};

	return target_read(c, t, NULL, &xml, e) ? NULL : tree_of_text(&xml, t->node, e);
}
