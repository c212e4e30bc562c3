/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "monitor/ask.h"

#include "monitor/events.h"

#define FORM "topiary monitor 1\nuid %u\nhz %u\nset %s\n"
#define FORM_GPUS "gpus %s\n"
#define EXPECTED "off, sw or on, followed by ,hz=1 to 100, ,set=%s and ,advise"

static const struct {
	const char *word, *set;
	unsigned hz;
} words[] = {
	{ "off", "sw", 0 },
	{ "sw", "sw", 1 },
	{ "on", "cpu", 1 },
};

static int set_set(struct monitor_request *r, const char *value)
{
	if (strlen(value) >= sizeof(r->set) || !monitor_sets_exist(value))
		return -1;
	snprintf(r->set, sizeof(r->set), "%s", value);
	return 0;
}

static int part_parse(struct monitor_request *r, const char *part)
{
	if (!strcasecmp(part, "advise")) {
		r->advise = true;
		return 0;
	}
	if (!strncasecmp(part, "hz=", 3)) {
		const char *value = part + 3;
		char *end;
		unsigned long hz = strtoul(value, &end, 10);

		if (*value < '1' || *value > '9' || *end || hz > ASK_HZ_MAX)
			return -1;
		r->hz = hz;
		return 0;
	}
	return strncasecmp(part, "set=", 4) ? -1 : set_set(r, part + 4);
}

/* The word before the first comma. */
static int word_parse(struct monitor_request *r, const char *word)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(word, words[i].word)) {
			r->hz = words[i].hz;
			return set_set(r, words[i].set);
		}
	return -1;
}

int monitor_request_parse(const char *name, const char *value, struct monitor_request *out, struct err *e)
{
	struct monitor_request r = {0};
	char text[64] = "", *rest = strncpy(text, value, sizeof(text) - 1), *part;
	int rc = -1;

	if (strlen(value) < sizeof(text))
		rc = word_parse(&r, strsep(&rest, ","));
	while (!rc && (part = strsep(&rest, ",")))
		rc = !r.hz || part_parse(&r, part);
	if (rc)
		return err_set(e, "%s=%.64s: expected " EXPECTED, name, value, monitor_set_names);
	*out = r;
	return 0;
}

void monitor_ask_write(const struct monitor_ask *a, struct buf *out)
{
	buf_printf(out, FORM, (unsigned) a->uid, a->request.hz, a->request.set);
	if (*a->gpus)
		buf_printf(out, FORM_GPUS, a->gpus);
}

int monitor_ask_parse(const char *text, struct monitor_ask *out, struct err *e)
{
	struct monitor_ask a = {0};
	struct buf again = {0};
	unsigned uid;
	char set[sizeof(a.request.set)];
	int n = sscanf(text, "topiary monitor 1 uid %10u hz %3u set %31s gpus %255s", &uid, &a.request.hz, set, a.gpus);
	int rc = 0;

	if (n < 3 || a.request.hz > ASK_HZ_MAX || set_set(&a.request, set) ||
	    strspn(a.gpus, "0123456789,") != strlen(a.gpus))
		return err_set(e, "not what slurmstepd writes");
	a.uid = uid;
	monitor_ask_write(&a, &again);
	if (again.failed || strcmp(text, again.data))
		rc = err_set(e, "not what slurmstepd writes");
	buf_free(&again);
	if (!rc)
		*out = a;
	return rc;
}
