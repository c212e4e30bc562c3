/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/* One more node of a machine's kind: its XML on standard output. */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/log.h"
#include "bench/clones.h"
#include "hwxml/canon.h"

struct options {
	struct clones_how how;
	const char *base;
	unsigned number, generation;
};

static const struct argp_option option_list[] = {
	{ "variant", 'v', "NAME", 0, "nic, core, dimm or pci: one of these is missing, or sits elsewhere", 0 },
	{ "pad", 'p', "BYTES", 0, "Grow the document with PCI devices to about BYTES", 0 },
	{ "generation", 'g', "N", 0, "The node after N repairs", 0 },
	{0},
};

static int whole_number(const char *text, unsigned long max, unsigned long *out)
{
	char *end;

	*out = strtoul(text, &end, 10);
	return *end || end == text || *out > max ? -1 : 0;
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct options *o = state->input;
	unsigned long n = 0;
	int variant;

	switch (key) {
	case 'v':
		if ((variant = variant_parse(value)) < 0)
			argp_error(state, "--variant=%s: nic, core, dimm or pci", value);
		o->how.variant = variant;
		return 0;
	case 'p':
		if (whole_number(value, CANON_MAX_BYTES, &o->how.pad))
			argp_error(state, "--pad=%s: bytes, at most %u", value, CANON_MAX_BYTES);
		return 0;
	case 'g':
		if (whole_number(value, 1 << 16, &n))
			argp_error(state, "--generation=%s: a number up to 65536", value);
		o->generation = n;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num == 0)
			o->base = value;
		else if (state->arg_num > 1 || whole_number(value, 999999, &n))
			argp_error(state, "%s: a node's number, at most 999999, is wanted", value);
		o->number = n;
		return 0;
	case ARGP_KEY_END:
		if (state->arg_num < 2)
			argp_usage(state);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = { option_list, parse_option, "BASE.xml NUMBER",
				  "Write the XML of one more node like BASE.",
	NULL, NULL, NULL };

int main(int argc, char **argv)
{
	struct options o = {0};
	struct buf base = {0}, out = {0};
	struct clones *c;
	struct err e;
	int rc = 1;

	log_open("clone");
	argp_parse(&argp, argc, argv, 0, NULL, &o);
	o.how.which = o.number;
	if (file_read(o.base, CANON_MAX_BYTES, &base, &e) ||
	    !(c = clones_new(base.data, base.len, o.base, &o.how, &e))) {
		log_error("%s", e.text);
		goto done;
	}
	clones_make(c, o.number, o.generation, &out);
	clones_free(c);
	rc = out.failed || fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout);
	if (rc)
		log_error("%s: not written whole", o.base);
done:
	buf_free(&base);
	buf_free(&out);
	return rc;
}
