/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <sys/types.h>

#include "base/err.h"

/*
 * topiary.conf, read by every part of Topiary: one file, beside slurm.conf for the plugins, as gres.conf and
 * topology.conf are, and the same keys everywhere, so that a site may share one file. topiary.conf(5) is the reference
 * for users. In paths "%h" stands for the short host name, so that several nodes may live on one machine; settings_load
 * expands it.
 */
/* Precedes the release of Topiary in the bytes of each program and plugin that reads topiary.conf. */
#define SETTINGS_RELEASE "release of Topiary: "

struct settings {
	char *snapshot_file;	/* SnapshotFile: shapes and nodes, for slurmctld */
	char *costs_file;	/* CostsFile: measured costs of the nodes, for topiary map */
	char *fabric_file;	/* FabricFile: the levels of the network above the nodes, for topiary map */
	unsigned snapshot_poll;	/* SnapshotPoll: seconds between two looks at it */
	char *run_dir;		/* RunDir: root's own folder on a node, below it JOB.STEP/ */
	char *topology_file;	/* TopologyFile: the node's exported XML */
	char *export_format;	/* ExportFormat: own, 2 or 3: the format of XML that agents write (hwview/machine.h) */
	char *topo_mode;	/* TopoMode: off, observe or on */
	char *topo_partitions;	/* TopoPartitions, TopoQos, TopoAccounts: for whose jobs TopoMode is; empty: all */
	char *topo_qos, *topo_accounts;
	char *observe_file;	/* ObserveFile: what slurmctld's user writes with TopoMode=observe */
	unsigned observe_share;	/* ObserveShare: percent of slurmctld's CPU time for it */
	char *topo_fit;		/* TopoFit: default of --topo-fit: off, prefer or require (score/request.h) */
	char *topo_level;	/* TopoLevel: default of --topo-level: package, die, numa, l3, l2 or node */
	char *topo_mem;		/* TopoMem: default of --topo-mem: off, prefer or require */
	char *topo_weight;	/* TopoWeight: what is best for the job first, or for others: job, long or queue */
	char *topo_gpu_cores;	/* TopoGpuCores: for jobs without GPUs, the cores near free ones: spare or ignore */
	char *topo_verdicts;	/* TopoVerdicts: the comment of a job that has its verdict: admin, system or off */
	char *without_snapshot;	/* WithoutSnapshot: run or wait, for jobs with fit require, without a snapshot */
	char *topo_tasks;	/* TopoTasks: default of --topo-tasks: off or auto */
	char *topo_place;	/* TopoPlace: default of --topo-place; likewise the next three (bind/request.h) */
	char *topo_membind, *topo_omp, *topo_nic;	/* TopoMembind, TopoOmp, TopoNic */
	char *topo_mems;	/* TopoMems: default of --topo-mems: off, prefer or strict */
	char *topo_hwloc;	/* TopoHwloc: default of --topo-hwloc: on or off */
	char *topo_matrix;	/* TopoMatrix: default of --topo-matrix: off or auto */
	char *topo_monitor;	/* TopoMonitor: default of --topo-monitor (monitor/ask.h) */
	char *monitor_metrics;	/* MonitorMetrics: topiary-monitor's file for Prometheus' node_exporter; empty: none */
	unsigned monitor_metrics_interval;	/* MonitorMetricsInterval: seconds between two writes of it */
	char *monitor_metrics_set;	/* MonitorMetricsSet: what it has (monitor/events.h) */
	char *monitor_metrics_jobs;	/* MonitorMetricsJobs: yes or no: does it name the node's jobs? */
	char *topiary_command;	/* TopiaryCommand: the path of topiary, run as the user to make a rank file */
	unsigned map_timeout;	/* MapTimeout: seconds it may take */
	unsigned nic_planes;	/* NicPlanes: networks of a node's devices; with several, no task is bound to one */
	char *registry_url;	/* RegistryURL: where agents and commands find topiaryd */
	char *registry_user;	/* RegistryUser: name or uid of the user who runs topiaryd and signs acknowledgements */
	char *munge_socket;	/* MungeSocket: empty for munge's own */
	char *node_name;	/* NodeName of this host in slurm.conf */
	char *tls_ca;		/* TlsCA: PEM file of the CAs for the registry's certificate; empty: the system's */
	char *tls_certificate, *tls_key;	/* TlsCertificate, TlsKey: topiaryd's PEM files; empty: plain HTTP */
	char *listen;		/* Listen: topiaryd's ADDRESS:PORT */
	char *database;		/* Database: a libpq connection string */
	char *read_database;	/* ReadDatabase: another for what only reads; empty: the same */
	char *schema_dir;	/* SchemaDir: the numbered migrations */
	unsigned storm_rate;	/* StormRate: exports a second that agents are to bring at most, all together */
	unsigned body_memory;	/* BodyMemory: MiB of request bodies that topiaryd holds at once */
	char *peer_check;	/* PeerCheck: off, warn or refuse, if an export comes from no address of its node */
	char *publish_serials;	/* PublishSerials: yes or no: export what only root may read (hwxml/redact.h)? */
	char *read_facts;	/* ReadFacts: who may read facts: anyone, users (with a credential) or admins */
	char *node_domain;	/* NodeDomain: cut from names of nodes in the registry, or keep */
	char *known_nodes;	/* KnownNodes: the nodes that may be exported, as a host list; empty: any */
	char *admins;		/* Admins: users, by name or uid, with administrative requests, beside topiaryd's own */
	char *admin_hosts;	/* AdminHosts: hosts or addresses from which they may, beside the registry's own host */
	char *trusted_proxies;	/* TrustedProxies: addresses whose X-Forwarded-For names the client */
	char *controller_hosts;	/* ControllerHosts: hosts that follow the snapshot, each of which has a metric */
	unsigned node_documents;	/* NodeDocuments: new documents stored per node and day; 0: no limit */
	unsigned node_bytes;	/* NodeBytes: MiB of them, as stored; 0: no limit */
	unsigned keep_history;	/* KeepHistory: days that former exports and jobs' summaries are kept, 0 for ever */
	unsigned upkeep_interval;	/* UpkeepInterval: seconds between topiaryd's passes in the background */
	char *log_level;	/* LogLevel: error, warning, info or debug: what the daemons log (base/log.h) */
	char *drift_hook;	/* DriftHook: program run when a node newly differs from its class; empty: none */
};

/*
 * Load path, or, when it is NULL, settings_path; a file that does not exist has no keys. A daemon or plugin that must
 * not read its environment names the path. 0, or -1 with nothing held and an error that begins with FILE:LINE. Free
 * with settings_free.
 */
int settings_load(const char *path, struct settings *s, struct err *e);
/* The same for commands and daemons: a file that --config (config, or NULL) or TOPIARY_CONF names must exist. */
int settings_load_named(const char *config, struct settings *s, struct err *e);
/* $TOPIARY_CONF, or topiary.conf beside $SLURM_CONF, or /etc/slurm/topiary.conf; in space or longer lived. */
const char *settings_path(char *space, size_t size);
/*
 * For `topiary doctor`: calls each() with every key, its value as settings_load(path) would set it, and where that is
 * from. 0, or -1 before any call.
 */
struct settings_origin {
	unsigned line;		/* of the file; 0: the default */
	unsigned before;	/* the line whose value it replaced; 0: none */
};
typedef void settings_each_fn(void *user, const char *key, const char *value, struct settings_origin origin);
int settings_each(const char *path, settings_each_fn *each, void *user, struct err *e);
/* NULL if TopoMode is for such a job, else why not. A name is NULL where the job has none. */
const char *settings_mode_excludes(const struct settings *s, const char *partition, const char *qos,
				   const char *account);
/* Is a value "yes"? What is neither that nor "no" is found out by settings_load. */
bool settings_yes(const char *value);

/* Splits ADDRESS:PORT, [ADDRESS]:PORT for IPv6; port remains part of address. 0, or -1 if it is neither. */
int settings_address(const char *address, char host[static 256], const char **port);

void settings_free(struct settings *s);

/* The short host name, which is "%h" in paths. */
void settings_host(char *host, size_t size);

/*
 * The uid of RegistryUser: name is an account's, or the uid itself in digits, which needs no account on this host.
 * 0, or -1 with e set and *uid untouched.
 */
int settings_uid(const char *name, uid_t *uid, struct err *e);
