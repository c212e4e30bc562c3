/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

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
	char spank[PATH_MAX];		/* the file that plugstack.conf names, or "" */
	char spank_config[PATH_MAX];	/* of its line: config=, or "" */
	bool without_slurm;		/* this host has none */
	bool registry;			/* it answered */
};

/* A line of the report. remedy is NULL for what is in order. */
void doctor_add(struct doctor *d, enum doctor_level level, const char *remedy, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
#define doctor_ok(d, ...) doctor_add(d, DOCTOR_OK, NULL, __VA_ARGS__)
#define doctor_note(d, remedy, ...) doctor_add(d, DOCTOR_NOTE, remedy, __VA_ARGS__)
#define doctor_warn(d, remedy, ...) doctor_add(d, DOCTOR_WARNING, remedy, __VA_ARGS__)
#define doctor_error(d, remedy, ...) doctor_add(d, DOCTOR_ERROR, remedy, __VA_ARGS__)

/* A key of slurm.conf, from the file, else from slurmctld; "" where neither has it. */
const char *doctor_slurm(const struct doctor *d, const char *key);
/* The path of a file beside slurm.conf. */
const char *doctor_beside(const struct doctor *d, const char *name, char path[static PATH_MAX]);
/* Is this the name of this host? SlurmctldHost may have an address behind it, in parentheses. */
bool doctor_is_here(const struct doctor *d, const char *name);

/*
 * Run argv in a child process that is killed after DOCTOR_SECONDS; what it prints to out, which the caller frees. 0, or
 * -1 unless it ended with 0. Functions that may hang are run by cmd_child (child.h).
 */
int doctor_run(const char *const argv[], struct buf *out, struct err *e);

/* Seconds since the epoch of a time of the registry (RFC 3339, UTC) or of scontrol (local), 0 where it is none. */
time_t doctor_seconds(const char *text, bool utc);
/* Compare this host's clock with that of `whose` host, 0 where that is unknown, and add a line. */
void doctor_compare_clock(struct doctor *d, const char *whose, time_t theirs);

/* The checks of doctor.c's table; each adds its lines. */
typedef void doctor_check(struct doctor *d);
doctor_check doctor_slurm_conf, doctor_controller, doctor_plugindir, doctor_plugins, doctor_select, doctor_task,
	doctor_mpi, doctor_submit, doctor_plugstack, doctor_preloaded, doctor_loaded, doctor_hwloc;
doctor_check doctor_munge, doctor_registry, doctor_names, doctor_exports, doctor_snapshot, doctor_readable,
	doctor_name, doctor_topology, doctor_run_dir, doctor_monitor;
