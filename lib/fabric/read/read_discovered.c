/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/read/readers.h"

/*
 * ibnetdiscover (infiniband-diags, ibnetdiscover(8), "Topology file format"), also with groups of chassis:
 *	switchguid=0x66a00e3006b6f(66a00e3006b6f)
 *	Switch	36 "S-00066a00e3006b6f"		# "leaf" enhanced port 0 lid 58 lmc 0
 *	[1]	"H-00117500006f39e6"[1](117500006f39e6)	# "cn001 mlx5_0" lid 106 4xQDR
 */
struct record {
	bool open;
	unsigned end;
};

/* The keyword of a record, and its ID. */
static const struct {
	const char *word;
	char start;
} types[] = { { "Switch", 'S' }, { "Ca", 'H' }, { "Rt", 'R' } };

/* The text in quotes at *at, NUL-terminated, and *at after it; NULL: none. */
static char *read_quoted(char **at)
{
	char *open = strchr(*at, '"'), *close = open ? strchr(open + 1, '"') : NULL;

	if (!close)
		return NULL;
	*close = '\0';
	*at = close + 1;
	return open + 1;
}

/* "S-00066a00e3006b6f": the GUID, or 0. */
static uint64_t id_guid(const char *id)
{
	char *end;
	uint64_t guid;

	if (strlen(id) < 3 || id[1] != '-' || !strchr("SHR", id[0]) || !isxdigit((unsigned char) id[2]))
		return 0;
	guid = strtoull(id + 2, &end, 16);
	return *end ? 0 : guid;
}

static int add_end(struct lines *l, struct fabric_draft *m, const char *id, const char *text)
{
	int end;

	if (!id_guid(id))
		return lines_wrong(l, "\"%.60s\": expected S-, H- or R- and a GUID", id);
	end = draft_end(m, id[0] == 'S' ? END_SWITCH : END_ADAPTER, id);
	if (end < 0 || (text && draft_describe(m, end, text, strlen(text))))
		return lines_wrong(l, "out of memory");
	draft_guid(m, end, id_guid(id), 0, 0);
	return end;
}

/* "[3]", and what may follow: "[ext 3]", "(GUID of the port)". */
static bool read_place(char **at, unsigned *port, uint64_t *guid)
{
	char *end, *c = *at;

	*guid = 0;
	if (c[0] != '[' || !isdigit((unsigned char) c[1]))
		return false;
	*port = strtoul(c + 1, &end, 10);
	if (*end != ']' || *port > 255)
		return false;
	for (c = end + 1; *c == '[' || *c == '('; c = end + 1) {
		if (!(end = strchr(c, *c == '[' ? ']' : ')')))
			return false;
		if (*c == '(')
			*guid = strtoull(c + 1, NULL, 16);
	}
	*at = c;
	return true;
}

/* The last word of the line: "4xQDR". */
static unsigned read_speed(char *comment)
{
	char *width = strrchr(comment, ' '), *speed;

	if (!width || !(speed = strchr(++width, 'x')))
		return 0;
	return reader_ib_mbps(width, speed + 1);
}

static int read_cable(struct lines *l, struct fabric_draft *m, const struct record *r, char *at)
{
	unsigned near_port, far_port, mbps;
	uint64_t near_guid, far_guid;
	char *id, *comment, *text;
	int far;

	if (!r->open)
		return lines_wrong(l, "port before the first Switch, Ca or Rt");
	if (!read_place(&at, &near_port, &near_guid) || !(id = read_quoted(&at)) ||
	    !read_place(&at, &far_port, &far_guid))
		return lines_wrong(l, "expected '[port] \"ID\"[port]'");
	comment = strchr(at, '#');
	mbps = comment ? read_speed(comment) : 0;
	text = comment ? read_quoted(&comment) : NULL;
	far = add_end(l, m, id, text);
	if (far < 0)
		return -1;
	draft_guid(m, r->end, 0, near_guid, 0);
	draft_guid(m, far, 0, far_guid, 0);
	if (draft_cable(m, r->end, near_port, far, far_port, mbps))
		return lines_wrong(l, "out of memory");
	return 0;
}

static int read_head(struct lines *l, struct fabric_draft *m, struct record *r, char start, char *at)
{
	const char *ports = lines_word_next(&at);
	char *id = ports ? read_quoted(&at) : NULL, *comment;
	unsigned ignored;
	int end;

	if (!id || !lines_word_number(ports, 65535, &ignored))
		return lines_wrong(l, "expected a number of ports and \"ID\"");
	comment = strchr(at, '#');
	if (id[0] != start)
		return lines_wrong(l, "\"%.60s\": ID of another type of device", id);
	end = add_end(l, m, id, comment ? read_quoted(&comment) : NULL);
	if (end < 0)
		return -1;
	*r = (struct record){ true, end };
	return 0;
}

/* Lines that precede a record. */
static bool is_fact(const char *line)
{
	static const char *const names[] = { "vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=", "rtguid=" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(line, names[i], strlen(names[i])))
			return true;
	return false;
}

static int read_line(struct lines *l, struct fabric_draft *m, struct record *r, char *line)
{
	char *at = line, *type;

	if (*line == '[')
		return read_cable(l, m, r, line);
	if (is_fact(line))
		return 0;
	type = lines_word_next(&at);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(type, types[i].word))
			return read_head(l, m, r, types[i].start, at);
	return lines_wrong(l, "'%.60s': not output of ibnetdiscover", type);
}

int read_discovered(struct lines *l, struct fabric_draft *m)
{
	struct record r = {0};
	char *line;

	while ((line = lines_next(l)))
		if (!reader_is_chatter(line) && read_line(l, m, &r, line))
			return -1;
	return 0;
}
