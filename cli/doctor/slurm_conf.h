/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/*
 * slurm.conf(5) and plugstack.conf (spank(7)) with the files that they include, and where in them each value is, for
 * `topiary doctor` and for `topiary enable`, which changes nothing else. As Slurm reads them: keys in any case, several
 * a line, quotes, comments, escapes, lines continued by a backslash, of a key given twice the last; a file that begins
 * with a byte order mark is refused.
 */
struct conf_key {
	char *name, *value;	/* of plugstack.conf: optional or required; the rest of the line */
	size_t file;		/* its number in files */
	size_t begin;		/* of the name in the file's text, */
	size_t at, len;		/* and of the value, with quotes and line breaks; */
	size_t *from;		/* of each byte of value, and of what follows the last */
	unsigned line;
};

struct conf_file {
	char *path;
	struct buf text;
	bool open;		/* its last line is continued, or has no end */
};

struct slurm_conf {
	struct conf_file *files;
	size_t nfiles;
	struct conf_key *keys;	/* in the order of reading; of lines of nodes and partitions only the first key */
	size_t nkeys;
};

enum conf_kind { CONF_SLURM, CONF_PLUGSTACK };

/* 0 or -1; free it in both cases. */
int slurm_conf_read(struct slurm_conf *c, const char *path, enum conf_kind kind, struct err *e);
void slurm_conf_free(struct slurm_conf *c);

/* The value that counts: the last one of that name. NULL: none. */
const struct conf_key *slurm_conf_find(const struct slurm_conf *c, const char *name);
/* Report former ones, which have no effect; Slurm says so in slurmctld's log alone. */
void slurm_conf_repeated(const struct slurm_conf *c, const char *name, void (*report)(void *user, const char *finding),
			 void *user);

/* SLURM_CONF, else /etc/slurm/slurm.conf, else that of a configless host, else the former again. */
const char *slurm_conf_path(void);
#define SLURM_CONF_CONFIGLESS "/run/slurm/conf/slurm.conf"

/* The path of a file beside this one; malloc'ed. An absolute name stays. NULL: memory is short. */
char *slurm_conf_beside(const char *path, const char *name);
