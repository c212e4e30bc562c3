/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Parsing of documents in worker processes that serve one request each, with no access but to their memory and one
 * socket (worker.h). Workers are forked by a small parent, itself forked before topiaryd had threads. Called by
 * encode.c, drift.c, http and upkeep; started by topiaryd.c.
 */
struct parser;

/* Call before any thread is started. NULL with an error. parser_stop accepts NULL. */
struct parser *parser_start(struct err *e);
void parser_stop(struct parser *p);
/* The parent's process id, for the receiver of SIGCHLD. */
pid_t parser_pid(const struct parser *p);
/* How many documents it parses or compares at once. */
unsigned parser_workers(const struct parser *p);

/*
 * PARSER_REFUSED: the document is invalid. PARSER_FAILED: no worker, or no reply in time, which may be due to load.
 * Both with an error, and out untouched.
 */
enum parser_result { PARSER_OK, PARSER_REFUSED, PARSER_FAILED };

/* A parsed document (shape/strings.h, hwxml/tree.h). Free with parsed_free. */
struct parsed {
	char *cores, *hierarchy, *detail, *allocation;
	unsigned ncores, npus;
	char *facts;		/* tree_facts */
};
/*
 * kept, unless NULL, is set to the worker that has parsed the document, which waits some seconds for parser_compare: to
 * be closed by close(2), or -1.
 */
enum parser_result parser_read(struct parser *p, const char *name, const struct buf *xml, struct parsed *out,
			       int *kept, struct err *e);
void parsed_free(struct parsed *d);

/* The canonical form (hwxml/canon.h). The caller frees out. */
enum parser_result parser_canon(struct parser *p, const char *name, const struct buf *xml, struct buf *out,
				struct err *e);

/*
 * Changes between two documents (hwcmp/compare.h) as a JSON list of objects with severity, direction, object, what,
 * from, to, words, most severe first; *severity is the highest, or SEVERITY_IDENTITY. With `drift`, identity is left
 * out. kept: the worker that has parsed `to` (parser_read), or NULL. The caller frees *json.
 */
enum parser_result parser_compare(struct parser *p, const char *name, const struct buf *from, const struct buf *to,
				  int drift, int *kept, char **json, int *severity, struct err *e);

/*
 * Validation of worker replies, since a worker has just parsed untrusted bytes. Called by parser.c. Pure functions; the
 * bytes are followed by a NUL, as those of every buf.
 */

/* UTF-8 without NUL, as PostgreSQL and JSON require. */
bool parser_validate_text(const struct buf *b);
/* The same without control characters, and not empty. */
bool parser_validate_line(const struct buf *b);
/* Lines as tree_facts (hwxml/tree.h) writes them. */
bool parser_validate_facts(const struct buf *b);
/* A shape (shape/shape.h) of so many cores and PUs. */
bool parser_validate_shape(const struct buf *text, unsigned cores, unsigned pus);
/*
 * The highest severity (hwcmp/compare.h) in a list of changes as parser_compare returns it, or -1 when it is invalid.
 */
int parser_validate_changes(const struct buf *text);
