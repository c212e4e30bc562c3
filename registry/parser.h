/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_PARSER_H
#define TOPIARY_REGISTRY_PARSER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"

/*
 * Foreign bytes are decompressed and parsed only by a worker process that lives for one document, with nothing but its own memory
 * and one socket (sandbox.h). Workers are forked by a small parent that was itself forked before topiaryd had threads.
 */
struct parser;

/* Call before any thread is started. NULL with an error. parser_stop accepts NULL. */
struct parser *parser_start(struct err *e);
void parser_stop(struct parser *p);
/* The parent's process id, for whoever receives SIGCHLD. */
pid_t parser_pid(const struct parser *p);

struct parsed {
	struct buf original;	/* as the node exported it; its hash is the one that was asked for */
	struct buf xml;		/* canonical */
	char *shape;
	char *host;		/* or NULL */
};

enum parser_result { PARSER_OK, PARSER_REFUSED, PARSER_FAILED };

/*
 * Open a zstd frame that must hold `length` bytes with this SHA-256, and read the XML. PARSER_REFUSED: the document is bad.
 * PARSER_FAILED: no worker could be had, or it gave no answer, which may be for want of time on a busy machine.
 * Both with an error and *out untouched. Free with parsed_free.
 */
enum parser_result parser_read(struct parser *p, const char *name, const struct buf *zip, size_t length,
			       const char sha256[static HASH_HEX], struct parsed *out, struct err *e);
void parsed_free(struct parsed *d);

#endif
