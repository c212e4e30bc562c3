/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <argp.h>

#include "base/std.h"

/*
 * The command line of a daemon or subcommand as a table, on top of argp: each option names the member of the program's
 * `struct args` that receives its value. Every usage error ends the process, as argp does.
 */

/* Operands of which there may be several; list is borrowed from argv. */
struct cmd_words {
	char **list;
	int n;
};

struct cmd_arg {
	enum cmd_arg_form {
		ARG_NONE,
		ARG_TEXT,	/* const char *, borrowed from argv */
		ARG_OUTPUT,	/* the same: a file that is written */
		ARG_WORD,	/* the same: keywords of small letters, which a user may write as capitals */
		ARG_WORDS,	/* struct cmd_words; operands only */
		ARG_COMMAND,	/* struct cmd_words; operands only, the first and all that follows it, options too */
		ARG_FLAG,	/* bool, becomes true */
		ARG_CONSTANT,	/* int, becomes min; options with other constants of the member are refused */
		ARG_NUMBER,	/* unsigned or uint64_t, from min to max */
		ARG_KEYWORD,	/* int >= 0, what parse returns for the text in small letters */
		ARG_SET,	/* set is called */
		ARG_OPTIONAL,	/* set is called with the text in small letters, or NULL if the option has no value */
	} form;
	size_t at, size;	/* of the member */
	uint64_t min, max;
	int (*parse)(const char *text);
	const char *keywords;	/* for the error message: "fast, normal, high" */
	void (*set)(void *args, const char *text, struct argp_state *state);
};

#define CMD_MEMBER(member) .at = offsetof(struct args, member), .size = sizeof(((struct args *) 0)->member)
#define CMD_TEXT(member) { .form = ARG_TEXT, CMD_MEMBER(member) }
#define CMD_WORD(member) { .form = ARG_WORD, CMD_MEMBER(member) }
#define CMD_OUTPUT(member) { .form = ARG_OUTPUT, CMD_MEMBER(member) }
#define CMD_WORDS(member) { .form = ARG_WORDS, CMD_MEMBER(member) }
#define CMD_COMMAND(member) { .form = ARG_COMMAND, CMD_MEMBER(member) }
#define CMD_FLAG(member) { .form = ARG_FLAG, CMD_MEMBER(member) }
#define CMD_CONSTANT(member, n) { .form = ARG_CONSTANT, CMD_MEMBER(member), .min = n }
#define CMD_NUMBER(member, least, most) { .form = ARG_NUMBER, CMD_MEMBER(member), .min = least, .max = most }
#define CMD_KEYWORD(member, function, names) \
	{ .form = ARG_KEYWORD, CMD_MEMBER(member), .parse = function, .keywords = names }
#define CMD_SET(function) { .form = ARG_SET, .set = function }
#define CMD_OPTIONAL(function) { .form = ARG_OPTIONAL, .set = function }

struct cmd_option {
	const char *name;	/* long name; NULL: only the letter */
	char letter;		/* 0: none */
	const char *argument;	/* in --help; NULL: takes none */
	struct cmd_arg value;
	const char *help;	/* NULL: Topiary's own, not for users */
};

struct cmd_syntax {
	const struct cmd_option *options;	/* ends with {0}; NULL: none */
	const char *operands, *help;		/* argp's args_doc and doc */
	struct cmd_arg operand;		/* ARG_NONE, ARG_TEXT (at most one) or ARG_WORDS */
	const char *required;			/* "a NODE": the operand is mandatory; NULL: it is not */
	/* Called last: reports what the table cannot express with argp_error, and may adjust args. */
	void (*check)(void *args, struct argp_state *state);
};

/* Parse argv into args, and what `common` has, unless NULL, into common_args. */
void cmd_line_parse(const struct cmd_syntax *s, void *args, const struct cmd_syntax *common, void *common_args,
		    int argc, char **argv);

/* Parse the options before the first operand: its index in argv, or argc if there is none. */
int cmd_line_parse_first(const struct cmd_syntax *s, void *args, int argc, char **argv);

/* The number in text, from min to max; otherwise a usage error that names `what` ("--job", "SLURM_JOB_ID"). */
uint64_t cmd_arg_number(struct argp_state *state, const char *what, const char *text, uint64_t min, uint64_t max);
