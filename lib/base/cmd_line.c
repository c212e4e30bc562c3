/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/cmd_line.h"

#include "base/number.h"

#define OPTIONS_MAX 24
#define KEY_FIRST 0x100		/* of options without a letter: above all letters */
#define GROUP_COMMON 90		/* after the command's own in --help */

struct parser {
	const struct cmd_syntax *syntax;
	void *args;
	struct parser *common;		/* NULL in the common one itself */
	int operands;
};

uint64_t cmd_arg_number(struct argp_state *state, const char *what, const char *text, uint64_t min, uint64_t max)
{
	const char *at = text;
	uint64_t n = 0;

	if (number_read_long(&at, max, &n) || *at || n < min)
		argp_error(state, "%s=%s: expected a number from %" PRIu64 " to %" PRIu64, what, text, min, max);
	return n;
}

static bool option_ends(const struct cmd_option *o)
{
	return !o || (!o->name && !o->letter);
}

static void option_store(const struct parser *p, const struct cmd_option *o, char *text, struct argp_state *state)
{
	void *to = (char *) p->args + o->value.at;
	char what[64];
	uint64_t n;

	/* In argv, whose text is the program's. */
	if (o->value.form == ARG_WORD || o->value.form == ARG_KEYWORD || o->value.form == ARG_OPTIONAL)
		for (char *c = text; c && *c; c++)
			*c = tolower((unsigned char) *c);
	switch (o->value.form) {
	case ARG_TEXT:
	case ARG_OUTPUT:
	case ARG_WORD:
		*(const char **) to = text;
		break;
	case ARG_FLAG:
		*(bool *) to = true;
		break;
	case ARG_CONSTANT:
		for (const struct cmd_option *x = p->syntax->options; !option_ends(x); x++)
			if (x != o && x->value.form == ARG_CONSTANT && x->value.at == o->value.at &&
			    *(int *) to == (int) x->value.min)
				argp_error(state, "--%s and --%s exclude each other", x->name, o->name);
		*(int *) to = o->value.min;
		break;
	case ARG_NUMBER:
		snprintf(what, sizeof(what), "--%s", o->name);
		n = cmd_arg_number(state, what, text, o->value.min, o->value.max);
		if (o->value.size == sizeof(n))
			*(uint64_t *) to = n;
		else
			*(unsigned *) to = n;
		break;
	case ARG_KEYWORD:
		if ((*(int *) to = o->value.parse(text)) < 0)
			argp_error(state, "--%s=%s: invalid value, expected one of: %s", o->name, text,
				   o->value.keywords);
		break;
	case ARG_SET:
	case ARG_OPTIONAL:
		o->value.set(p->args, text, state);
		break;
	case ARG_NONE:
	case ARG_WORDS:
	case ARG_COMMAND:
		break;
	}
}

static error_t operands_store(struct parser *p, const struct argp_state *state)
{
	const struct cmd_arg *v = &p->syntax->operand;
	struct cmd_words words = { state->argv + state->next, state->argc - state->next };
	void *to = (char *) p->args + v->at;

	if (v->form == ARG_NONE || (v->form == ARG_TEXT && words.n > 1))
		return ARGP_ERR_UNKNOWN;
	if (v->form == ARG_TEXT)
		*(const char **) to = words.list[0];
	else
		*(struct cmd_words *) to = words;
	p->operands = words.n;
	return 0;
}

static int option_key(const struct cmd_syntax *s, const struct cmd_option *o)
{
	return o->letter ? o->letter : KEY_FIRST + (int) (o - s->options);
}

static error_t key_parse(int key, char *arg, struct argp_state *state)
{
	struct parser *p = state->input;
	const struct cmd_syntax *s = p->syntax;

	switch (key) {
	case ARGP_KEY_INIT:
		if (p->common)
			state->child_inputs[0] = p->common;
		return 0;
	case ARGP_KEY_ARGS:
		return operands_store(p, state);
	case ARGP_KEY_END:
		if (s->required && !p->operands)
			argp_error(state, "%s is required", s->required);
		if (s->check)
			s->check(p->args, state);
		return 0;
	}
	for (const struct cmd_option *o = s->options; !option_ends(o); o++)
		if (key == option_key(s, o))
			return option_store(p, o, arg, state), 0;
	return ARGP_ERR_UNKNOWN;
}

/* In argp's form, ended by an empty one. */
static void options_convert(const struct cmd_syntax *s, int group, struct argp_option out[static OPTIONS_MAX])
{
	int n = 0;

	for (const struct cmd_option *o = s->options; !option_ends(o) && n < OPTIONS_MAX - 1; o++)
		out[n++] = (struct argp_option){ o->name, option_key(s, o), o->argument,
						 (o->value.form == ARG_OPTIONAL ? OPTION_ARG_OPTIONAL : 0) |
						 (o->help ? 0 : OPTION_HIDDEN), o->help, group };
	out[n] = (struct argp_option){0};
}

void cmd_line_parse(const struct cmd_syntax *s, void *args, const struct cmd_syntax *common, void *common_args,
		    int argc, char **argv)
{
	struct argp_option own_options[OPTIONS_MAX], common_options[OPTIONS_MAX];
	const struct argp of_common = { common_options, key_parse, NULL, NULL, NULL, NULL, NULL };
	const struct argp_child children[] = { { &of_common, 0, NULL, 0 }, {0} };
	const struct argp own = { own_options, key_parse, s->operands, s->help, common ? children : NULL, NULL, NULL };
	struct parser for_common = { common, common_args, NULL, 0 };
	struct parser p = { s, args, common ? &for_common : NULL, 0 };

	options_convert(s, 0, own_options);
	if (common)
		options_convert(common, GROUP_COMMON, common_options);
	argp_parse(&own, argc, argv, s->operand.form == ARG_COMMAND ? ARGP_IN_ORDER : 0, NULL, &p);
}

int cmd_line_parse_first(const struct cmd_syntax *s, void *args, int argc, char **argv)
{
	struct argp_option options[OPTIONS_MAX];
	const struct argp argp = { options, key_parse, NULL, NULL, NULL, NULL, NULL };
	struct parser p = { s, args, NULL, 0 };
	int first = argc;

	options_convert(s, 0, options);
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER | ARGP_NO_HELP, &first, &p);
	return first;
}
