/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_MOVES_H
#define TOPIARY_REGISTRY_MOVES_H

#include "pass.h"

/*
 * Documents that are stored one way are stored another way; what they are stays. A document is moved only after what will be kept of it
 * has given it back, and only while it still is what it was: a node that boots meanwhile is left alone, and is never waited for.
 */

/* Whose documents. */
enum shelfmark {
	PRESENT,	/* what nodes export now */
	RECENT,		/* those of them that came after a time */
	DRIFTED,	/* those of them that drift since before a time */
	PAST,		/* what they exported before */
};

/* A document in hand. The strings are borrowed. */
struct held {
	const char *node, *since, *sha256;
	struct buf xml;		/* hashed and found right */
	size_t kept;		/* bytes of its present diff */
};

/* Moves to be made together, from one form. */
struct moves {
	enum shelfmark who;
	const char *from;	/* the form */
	const char *time;	/* RECENT, DRIFTED: that time; NULL for any */
	bool undrift;		/* those that are moved drift no more */
	int (*each)(struct moves *m, const struct held *h, struct err *e);
	int (*after)(struct moves *m, struct err *e);	/* called when each document of a batch was in hand; or NULL */
	void *user;		/* each's own */
	unsigned n;
	unsigned long long made;
	bool whole;		/* after moves_each: every document was in hand, but for the bad */
	unsigned bad;		/* documents that could not be read back, and what was wrong with the first */
	struct err first_bad;
	struct buf column[5];
};

/* Where a document stands well: a form of a base and what it keeps of the document. Free with buf_free(&diff). */
struct fit {
	char form[16];
	struct buf diff;
};

/*
 * How the base holds the document: as itself, or in the fields of its latest form, which is widened for it when need be. 0, 1 when it
 * differs in more than fields, -1.
 */
int fit_base(struct pass *p, int base, const struct buf *xml, struct fit *out, struct err *e);

/* Note a move; fit's diff is copied. 0 or -1. */
int moves_add(struct moves *m, const struct held *h, const struct fit *fit, struct err *e);

/*
 * Call m->each for every document of m->who that is stored by m->from, make the moves that it adds, and rest, batch by batch. 0, also
 * when topiaryd ends; -1 when one of each's calls was, or when a document cannot be read back, which leaves that one where it is.
 */
int moves_each(struct pass *p, struct moves *m, struct err *e);

#endif
