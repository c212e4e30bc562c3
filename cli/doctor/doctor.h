/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_DOCTOR_DOCTOR_H
#define TOPIARY_CLI_DOCTOR_DOCTOR_H

#include <limits.h>
#include <stdbool.h>
#include <time.h>

#include "cmd.h"

/* What `topiary doctor` finds; the exit status is that of the worst (topiary(1), doctor). */
enum doctor_level { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_WARNING, DOCTOR_ERROR };

#define DOCTOR_SECONDS 5	/* that one probe of a daemon may take */
#define DOCTOR_CLOCK_LIMIT 60	/* seconds that two clocks may differ without a finding */

struct doctor {
	struct cmd *cmd;
	const char *group, *key;	/* of the check that runs */
	json_t *findings;		/* objects: group, check, level, finding, remedy */
	enum doctor_level worst;
	const char *slurm_conf;		/* path of this host's slurm.conf */
	json_t *in_file;		/* its keys in lower case, or NULL; what scontrol reports fills the gaps */
	json_t *nodes;			/* objects of `scontrol show nodes`: name to keys; NULL without a controller */
	char host[65];			/* short host name */
	char spank[4096];		/* the file that plugstack.conf names, or "" */
	char spank_config[4096];	/* of its line: config=, or "" */
	bool without_slurm;		/* this host has none */
	bool registry;			/* it answered */
};

/* One line of the report. remedy is NULL for what is in order. */
void doctor_add(struct doctor *d, enum doctor_level level, const char *remedy, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* A key of slurm.conf, from the file, else from slurmctld; "" where neither has it. */
const char *doctor_slurm(const struct doctor *d, const char *key);

/* The path of a file beside slurm.conf. */
const char *doctor_beside(const struct doctor *d, const char *name, char path[static PATH_MAX]);

/*
 * Run argv, both outputs to out, which the caller frees; killed after DOCTOR_SECONDS. 0, or -1 unless it exited with 0.
 */
int doctor_run(const char *const argv[], struct buf *out, struct err *e);
/* The same for a function in a child process. */
int doctor_limited(int (*work)(const struct doctor *d, struct buf *out, struct err *e), const struct doctor *d,
		   struct buf *out, struct err *e);

/* Does SlurmctldHost name this host? */
bool doctor_is_controller(const struct doctor *d);

/* Seconds since the epoch of a time of the registry (RFC 3339, UTC) or of scontrol (local), 0 where it is none. */
time_t doctor_seconds(const char *text, bool utc);
/* Compare this host's clock with that of `whose` host, 0 where that is unknown, and add a line. */
void doctor_compare_clock(struct doctor *d, const char *whose, time_t theirs);

/* The checks; each adds its lines. */
void doctor_check_slurm_conf(struct doctor *d);
void doctor_check_controller(struct doctor *d);
void doctor_check_plugindir(struct doctor *d);
void doctor_check_plugins(struct doctor *d);
void doctor_check_select(struct doctor *d);
void doctor_check_task(struct doctor *d);
void doctor_check_mpi(struct doctor *d);
void doctor_check_submit(struct doctor *d);
void doctor_check_loaded(struct doctor *d);
void doctor_check_hwloc(struct doctor *d);
void doctor_check_plugstack(struct doctor *d);
void doctor_check_recorders(struct doctor *d);
void doctor_check_values(struct doctor *d);
void doctor_check_settings(struct doctor *d);
void doctor_check_account(struct doctor *d);
void doctor_check_munge(struct doctor *d);
void doctor_check_registry(struct doctor *d);
void doctor_check_names(struct doctor *d);
void doctor_check_name(struct doctor *d);
void doctor_check_readable(struct doctor *d);
void doctor_check_snapshot(struct doctor *d);
void doctor_check_exports(struct doctor *d);
void doctor_check_topology(struct doctor *d);
void doctor_check_run_dir(struct doctor *d);
void doctor_check_monitor(struct doctor *d);

#endif
