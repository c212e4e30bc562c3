/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/model/names.h"
#include "fabric/read/readers.h"

#include "base/file.h"
#include "fabric/recognise/draft.h"

/* --- a line for each port --- */

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

/* Output of ibnetdiscover that is not part of the fabric: comments, and its path when verbose. */
static bool is_diagnostic(const char *line)
{
	static const char *const starts[] = { "#", "DR path ", "ibwarn: ", "src/", "Chassis ", "Non-Chassis " };

	if (!*line)
		return true;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (!strncmp(line, starts[i], strlen(starts[i])))
			return true;
	return false;
}

/* Data rate in Mbit/s of "4x" and "QDR"; 0: unknown. */
static unsigned ib_mbps(const char *width, const char *speed)
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

static int port_line(struct lines *l, struct fabric_draft *m, char *at)
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
	if (draft_cable(m, near.end, near.port, far.end, far.port, ib_mbps(width, speed)))
		return lines_wrong(l, "out of memory");
	return 0;
}

static int read_ports(struct lines *l, struct fabric_draft *m)
{
	char *line;

	while ((line = lines_next(l)))
		if (!is_diagnostic(line) && port_line(l, m, line))
			return -1;
	return 0;
}

/* --- ibnetdiscover's topology file --- */

/*
 * ibnetdiscover (infiniband-diags, ibnetdiscover(8), "Topology file format"), also with groups of chassis:
 *	switchguid=0x66a00e3006b6f(66a00e3006b6f)
 *	Switch	36 "S-00066a00e3006b6f"		# "leaf" enhanced port 0 lid 58 lmc 0
 *	[1]	"H-00117500006f39e6"[1](117500006f39e6)	# "cn001 mlx5_0" lid 106 4xQDR
 */
struct record {
	bool open;
	unsigned end;
	uint64_t system;	/* of the record that follows */
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
	return ib_mbps(width, speed + 1);
}

static int record_line(struct lines *l, struct fabric_draft *m, struct record *r, char *line)
{
	static const char *const facts[] = { "vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=", "rtguid=" };
	char *at = line, *type;

	if (*line == '[') {
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
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)	/* lines that precede a record */
		if (!strncmp(line, facts[i], strlen(facts[i]))) {
			if (!strncmp(line, "sysimgguid=", 11))
				r->system = strtoull(line + 11, NULL, 16);
			return 0;
		}
	type = lines_word_next(&at);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(type, types[i].word)) {
			char start = types[i].start;
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
			if (start == 'H' && draft_system(m, end, r->system, false))
				return lines_wrong(l, "out of memory");
			*r = (struct record){ true, end, 0 };
			return 0;
		}
	return lines_wrong(l, "'%.60s': not output of ibnetdiscover", type);
}

static int read_discovered(struct lines *l, struct fabric_draft *m)
{
	struct record r = {0};
	char *line;

	while ((line = lines_next(l)))
		if (!is_diagnostic(line) && record_line(l, m, &r, line))
			return -1;
	return 0;
}

/* --- opareport --- */

/*
 * Omni-Path's opareport (opareport(8)) -o links: two lines for each link, then details that are not read.
 *	100g 0x001175010108866d   1 FI   cn001 hfi1_0
 *	<->  0x00117501027ab700   3 SW   leaf
 * The XML of -o topology, and of -o links -x, has an element a line: links, each of two ports; nodes, which are not
 * read.
 */
static int read_links(struct lines *l, struct fabric_draft *m)
{
	unsigned gbps = 0, stated = 0, links = 0, port[2];
	char guids[32] = "", ports[8] = "", kind[8] = "", desc[128] = "", key[32], *at;
	bool is_xml = false, in_link = false;
	int end[2] = { -1, -1 };

	while ((at = lines_next(l))) {
		char *guid_word = guids, *port_word = ports, *type = kind, *name = desc;
		bool far = !strncmp(at, "<->", 3), is_switch;
		unsigned count;
		uint64_t guid;
		int used = 0;

		if (*at == '<' && !far) {
			is_xml = true;
			in_link = !strncmp(at, "<Link ", 6) || (in_link && strcmp(at, "</Link>"));
			if (sscanf(at, "<LinkCount>%u", &stated) == 1 || sscanf(at, "<Rate>%u", &gbps) == 1 ||
			    sscanf(at, "<NodeGUID>%31[^<]", guids) == 1 || sscanf(at, "<PortNum>%7[^<]", ports) == 1 ||
			    sscanf(at, "<NodeType>%7[^<]", kind) == 1 || sscanf(at, "<NodeDesc>%127[^<]", desc) == 1 ||
			    !in_link || strcmp(at, "</Port>"))
				continue;
			far = end[0] >= 0;
		} else {
			if (sscanf(at, "%u Links in Fabric%n", &count, &used) == 1 && used) {
				stated = count;
				continue;
			}
			if (!far && (sscanf(at, "%4ug %n", &gbps, &used) != 1 || !used || strncmp(at + used, "0x", 2)))
				continue;
			if (far && end[0] < 0)
				return lines_wrong(l, "missing line of the link's first end");
			lines_word_next(&at);
			guid_word = lines_word_next(&at);
			port_word = lines_word_next(&at);
			type = lines_word_next(&at);
			name = at + strspn(at, " \t");
		}
		is_switch = type && !strcmp(type, "SW");
		if (!type || (!is_switch && strcmp(type, "FI")) || !read_guid(guid_word, &guid) ||
		    !lines_word_number(port_word, 255, &port[far]))
			return lines_wrong(l, "expected GUID, port, FI or SW, and a name");
		snprintf(key, sizeof(key), "%c-%016llx", is_switch ? 'S' : 'H', (unsigned long long) guid);
		end[far] = draft_end(m, is_switch ? END_SWITCH : END_ADAPTER, key);
		if (end[far] < 0 || draft_describe(m, end[far], name, strlen(name)))
			return lines_wrong(l, "out of memory");
		draft_guid(m, end[far], guid, 0, 0);
		if (!far)
			continue;
		if (draft_cable(m, end[0], port[0], end[1], port[1], 1000 * gbps))
			return lines_wrong(l, "out of memory");
		end[0] = -1;
		links++;
	}
	if (is_xml && !links)
		return lines_wrong(l, "no links: expected opareport's XML of a fabric");
	return links < stated ? lines_wrong(l, "%u of %u links: the report is cut off", links, stated) : 0;
}

/* --- lldpcli --- */

#define LLDP_TOP "lldp-top"	/* the switch that joins those of which only the hosts' links are known */

/* Ports have names. */
static unsigned port_number(const char *name)
{
	unsigned number = 0;

	for (; *name; name++)
		number = 31 * number + (unsigned char) *name;
	return number % 0x7fffffff + 1;
}

/*
 * Lldpd's lldpcli(8) -f keyvalue show chassis, then show neighbors, of one host after the other:
 *	local-chassis.chassis.name=cn1
 *	lldp.eth0.via=LLDP
 *	lldp.eth0.chassis.name=leaf1
 *	lldp.eth0.chassis.Bridge.enabled=on
 *	lldp.eth0.port.descr=swp1
 * A neighbour that forwards is a switch, and others are left out. Hosts do not see how switches are joined: they are
 * by one more. Other lines go on with a value of several, as a switch's description may be.
 */
static int read_neighbours(struct lines *l, struct fabric_draft *m)
{
	char *line, name[256] = "", port[256] = "";
	int host = -1, leaf, top;
	bool forwards = false, neighbours = false, is_end;
	unsigned near = 0, mbps = 0, of;

	do {
		char *value = (line = lines_next(l)) ? strchr(line, '=') : NULL, *key = NULL, *end;
		bool remote = line && !strncmp(line, "lldp.", 5), local = line && !strncmp(line, "local-chassis.", 14);

		if (line && !remote && !local)
			continue;
		if (line && !value)
			return lines_wrong(l, "expected KEY=value, as lldpcli -f keyvalue prints");
		if (value)
			*value++ = '\0';
		if (remote)
			key = strstr(line, ".chassis.") ?: strstr(line, ".port.") ?: strstr(line, ".via");
		if (key)
			*key++ = '\0';
		/* A neighbour ends where the next one begins. */
		is_end = !line || local || (key && !strcmp(key, "via"));
		if (is_end && forwards && *name) {
			if ((leaf = draft_end(m, END_SWITCH, name)) < 0 ||
			    (top = draft_end(m, END_SWITCH, LLDP_TOP)) < 0 ||
			    draft_cable(m, host, near, leaf, port_number(port), mbps) ||
			    draft_cable(m, leaf, ~0u, top, leaf + 1, 0))
				return lines_wrong(l, "out of memory");
		}
		forwards &= !is_end;
		/* The next host, of which no line may have the name. */
		host = local && neighbours ? -1 : host;
		neighbours = remote || (neighbours && !local);
		if (line && !strcmp(line, "local-chassis.chassis.name")) {
			value[names_short(value)] = '\0';
			if (!names_fit(value))
				return lines_wrong(l, "'%.100s': invalid host name", value);
			if ((host = draft_end(m, END_HOST, value)) < 0)
				return lines_wrong(l, "out of memory");
		}
		if (!key)
			continue;
		if (host < 0)
			return lines_wrong(l, "neighbours of an unknown host: expected lldpcli -f keyvalue show "
					   "chassis first");
		if (!strcmp(key, "via")) {
			*name = *port = '\0';
			mbps = 0;
			near = port_number(line + 5);
		} else if (!strcmp(key, "chassis.name")) {
			struct buf valid = {0};

			value[names_short(value)] = '\0';
			names_switch(value, &valid);
			snprintf(name, sizeof(name), "%s", valid.data && !valid.failed ? valid.data : "");
			buf_free(&valid);
		} else if (!strcmp(key, "chassis.Bridge.enabled") || !strcmp(key, "chassis.Router.enabled")) {
			forwards |= !strcmp(value, "on");
		} else if (!strcmp(key, "port.ifname") || !strcmp(key, "port.descr") || !strcmp(key, "port.local") ||
			   (!strcmp(key, "port.mac") && !*port)) {
			snprintf(port, sizeof(port), "%s", value);
		} else if (!strcmp(key, "port.auto-negotiation.current")) {
			of = strtoul(value, &end, 10) % 1000000;
			mbps = !strncmp(end, "Gbase", 5) ? 1000 * of : !strncasecmp(end, "base", 4) ? of : 0;
		}
	} while (line);
	return host >= 0 ? 0 :
		lines_wrong(l, "no local-chassis.chassis.name: expected lldpcli -f keyvalue show chassis");
}

/* --- any file --- */

#define MAX_BYTES ((size_t) 256 << 20)

static int read_paper(struct lines *l, struct fabric_draft *m);

/* The reader of a file, by the beginning of its first line that is not a comment. */
static const struct {
	const char *start;
	int (*read)(struct lines *l, struct fabric_draft *m);
} forms[] = {
	{ "SW ", read_ports }, { "CA ", read_ports }, { "RT ", read_ports },
	{ "vendid=", read_discovered }, { "devid=", read_discovered }, { "sysimgguid=", read_discovered },
	{ "switchguid=", read_discovered }, { "caguid=", read_discovered }, { "rtguid=", read_discovered },
	{ "Link Summary", read_links }, { "Rate NodeGUID", read_links }, { "<", read_links },
	{ "Switch\t", read_discovered }, { "Switch ", read_discovered },
	{ "Ca\t", read_discovered }, { "Ca ", read_discovered },
	{ "local-chassis.", read_neighbours }, { "lldp.", read_neighbours },
	{ "SwitchName", read_slurm }, { "Switches", read_slurm }, { "Nodes", read_slurm },
	{ "BlockName", read_slurm }, { "BlockSizes", read_slurm }, { "RingName", read_slurm },
	{ "Include ", read_slurm },
	{ "---", read_yaml }, { "%YAML", read_yaml }, { "- ", read_yaml }, { "[", read_yaml }, { "{", read_yaml },
	{ "tree ", read_paper }, { "torus ", read_paper }, { "graph ", read_paper }, { "alltoall ", read_paper },
	{ "ring ", read_paper }, { "node ", read_paper },
};

/* Reached when there are several files: read_source reads a single one itself. */
static int read_paper(struct lines *l, struct fabric_draft *)
{
	return lines_wrong(l, "a file of this format cannot be combined with others");
}

static int read_source(const struct fabric_text *s, struct fabric_draft *m, struct hierarchy **given, struct err *e)
{
	int (*read)(struct lines *l, struct fabric_draft *m) = NULL;
	struct lines l;
	const char *line;
	int rc = -1;

	if (lines_open(&l, s->text, s->len, s->name, e))
		return -1;
	do
		line = lines_next(&l);
	while (line && is_diagnostic(line));
	for (size_t i = 0; line && !read && i < sizeof(forms) / sizeof(forms[0]); i++)
		if (!strncasecmp(line, forms[i].start, strlen(forms[i].start)))
			read = forms[i].read;
	if (!line)
		err_set(e, "%s: empty", s->name);
	else if (!read)
		lines_wrong(&l, "'%.40s': unknown format; expected output of ibnetdiscover, opareport or "
			    "lldpcli, topology.conf, topology.yaml, a tree or a torus", line);
	lines_close(&l);
	if (!read)
		return -1;
	if (read == read_paper && given) {
		*given = hierarchy_parse(s->text, s->len, s->name, e);
		return *given ? 0 : -1;
	}
	if (lines_open(&l, s->text, s->len, s->name, e))
		return -1;
	rc = read(&l, m);
	lines_close(&l);
	return rc;
}

struct fabric *fabric_parse(const struct fabric_text *texts, size_t n, const struct fabric_names *names,
			    struct err *e)
{
	struct fabric_draft *m = draft_new();
	struct hierarchy *given = NULL;
	struct fabric *f = NULL;
	int rc = m && n ? 0 : err_set(e, n ? "out of memory" : "no input file");

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = read_source(&texts[i], m, n == 1 ? &given : NULL, e);
	if (rc == 0)
		f = given ? fabric_given(given, e) : draft_finish(m, names, e);
	draft_free(m);
	return f;
}

struct fabric *fabric_read(const char *const *paths, size_t n, const struct fabric_names *names, struct err *e)
{
	struct fabric_text *texts = calloc(n + 1, sizeof(*texts));
	struct buf *bufs = calloc(n + 1, sizeof(*bufs));
	struct fabric *f = NULL;
	int rc = texts && bufs ? 0 : err_set(e, "out of memory");

	for (size_t i = 0; i < n && rc == 0; i++) {
		rc = file_read_input(paths[i], MAX_BYTES, &texts[i].name, &bufs[i], e);
		texts[i].text = bufs[i].data ? bufs[i].data : "";
		texts[i].len = bufs[i].len;
	}
	if (rc == 0)
		f = fabric_parse(texts, n, names, e);
	for (size_t i = 0; bufs && i < n; i++)
		buf_free(&bufs[i]);
	free(bufs);
	free(texts);
	return f;
}
