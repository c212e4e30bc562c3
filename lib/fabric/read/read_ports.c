/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/read/readers.h"

/*
 * ibnetdiscover -p (infiniband-diags, ibnetdiscover(8)): a line for each port,
 *	SW  58 36 0x00066a00e3006b6f 4x QDR - SW   3 26 0x00066a00e3006cb2 ( 'leaf' - 'spine' )
 *	SW  58 18 0x00066a00e3006b6f 4x SDR                                  'leaf'
 * The GUID is a switch's own, but of an adapter that of its port.
 */
struct port {
	const char *type;
	unsigned port, end;
	uint64_t guid;
};

bool reader_is_chatter(const char *line)
{
	static const char *const starts[] = { "#", "DR path ", "ibwarn: ", "src/", "Chassis ", "Non-Chassis " };

	if (!*line)
		return true;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (!strncmp(line, starts[i], strlen(starts[i])))
			return true;
	return false;
}

unsigned reader_ib_mbps(const char *width, const char *speed)
{
	static const struct {
		const char *name;
		unsigned lane;
	} speeds[] = {
		{ "SDR", 2000 }, { "DDR", 4000 }, { "QDR", 8000 }, { "FDR10", 10000 }, { "FDR", 13636 },
		{ "EDR", 25000 },
		{ "HDR", 50000 }, { "NDR", 100000 }, { "XDR", 200000 },
	};
	unsigned lanes = strtoul(width, NULL, 10);

	for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
		if (!strcmp(speed, speeds[i].name) && lanes <= 12)
			return lanes * speeds[i].lane;
	return 0;
}

static bool read_guid(const char *word, uint64_t *out)
{
	char *end;

	if (strncmp(word, "0x", 2) || strlen(word) > 18)
		return false;
	*out = strtoull(word, &end, 16);
	return !*end && *out;
}

/* Reads type, lid, port and GUID. */
static int read_port(struct lines *l, char **at, struct port *p)
{
	const char *lid, *port, *guid;
	unsigned ignored;

	p->type = lines_word_next(at);
	lid = lines_word_next(at);
	port = lines_word_next(at);
	guid = lines_word_next(at);
	if (!p->type || (strcmp(p->type, "SW") && strcmp(p->type, "CA") && strcmp(p->type, "RT")))
		return lines_wrong(l, "expected SW, CA or RT");
	if (!guid || !lines_word_number(lid, 0xffffff, &ignored) || !lines_word_number(port, 255, &p->port) ||
	    !read_guid(guid, &p->guid))
		return lines_wrong(l, "expected lid, port and GUID after %s", p->type);
	return 0;
}

static int add_port(struct lines *l, struct fabric_draft *m, struct port *p, const char *text, size_t len)
{
	bool is_switch = !strcmp(p->type, "SW");
	char key[32];
	int end;

	snprintf(key, sizeof(key), "%c-%016llx", is_switch ? 'S' : 'P', (unsigned long long) p->guid);
	end = draft_end(m, is_switch ? END_SWITCH : END_ADAPTER, key);
	if (end < 0 || draft_describe(m, end, text, len))
		return lines_wrong(l, "out of memory");
	draft_guid(m, end, is_switch ? p->guid : 0, is_switch ? 0 : p->guid, is_switch ? 0 : p->port);
	p->end = end;
	return 0;
}

/* Reads 'one' alone, or ( 'one' - 'other' ): the two texts; the second may be empty. */
static int read_texts(struct lines *l, const char *at, const char *text[2], size_t len[2])
{
	static const char between[] = "' - '";
	const char *open = strchr(at, '\''), *close = strrchr(at, '\''), *middle;

	if (!open || close == open)
		return lines_wrong(l, "missing description in quotes");
	middle = strstr(open + 1, between);
	text[0] = open + 1;
	len[0] = (middle ? middle : close) - text[0];
	text[1] = middle ? middle + strlen(between) : close;
	if (text[1] > close)
		return lines_wrong(l, "missing quote after the description");
	len[1] = close - text[1];
	return 0;
}

static int read_line(struct lines *l, struct fabric_draft *m, char *at)
{
	const char *width, *speed, *text[2] = { "", "" };
	struct port near, far;
	bool linked;
	size_t len[2] = {0};

	if (read_port(l, &at, &near))
		return -1;
	width = lines_word_next(&at);
	speed = lines_word_next(&at);
	if (!speed)
		return lines_wrong(l, "expected width and speed after the GUID");
	at += strspn(at, " \t");
	linked = at[0] == '-' && lines_word_next(&at);
	if ((linked && read_port(l, &at, &far)) || read_texts(l, at, text, len) ||
	    add_port(l, m, &near, text[0], len[0]))
		return -1;
	if (!linked)
		return 0;
	if (add_port(l, m, &far, text[1], len[1]))
		return -1;
	if (draft_cable(m, near.end, near.port, far.end, far.port, reader_ib_mbps(width, speed)))
		return lines_wrong(l, "out of memory");
	return 0;
}

int read_ports(struct lines *l, struct fabric_draft *m)
{
	char *line;

	while ((line = lines_next(l)))
		if (!reader_is_chatter(line) && read_line(l, m, line))
			return -1;
	return 0;
}
