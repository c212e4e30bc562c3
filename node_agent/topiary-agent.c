/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <hwloc.h>
#include <sys/stat.h>

#include "base/cmd_line.h"
#include "base/file.h"
#include "base/log.h"
#include "deliver.h"
#include "hwview/machine.h"
#include "hwxml/canon.h"
#include "hwxml/redact.h"

/*
 * Notes
 *
 * One thread, which reads or discovers the document, keeps it for the node's own jobs and sends it until it is
 * acknowledged. What it keeps is in the files beside TopologyFile: it may be killed and started at any moment.
 */

/* Declared by libc. */
__attribute__((visibility("default"))) const char *argp_program_version = "topiary-agent " TOPIARY_VERSION;

struct args {
	const char *config, *input, *node;
	unsigned deadline;	/* seconds, 0: none */
	bool once, local, recheck, verbose;
};

static const struct cmd_option options[] = {
	{ "config", 'c', "FILE", CMD_TEXT(config), "Read FILE instead of the usual topiary.conf" },
	{ "input", 'i', "XML", CMD_TEXT(input), "Export this file instead of discovering the hardware" },
	{ "node", 'n', "NAME", CMD_TEXT(node), "Node name (default: NodeName)" },
	{ "deadline", 'd', "SECONDS", CMD_NUMBER(deadline, 1, 86400 * 7),
	  "Give up if the registry has not acknowledged by then" },
	{ "verbose", 'v', NULL, CMD_FLAG(verbose), "Log at level debug, whatever LogLevel is" },
	{ "once", '1', NULL, CMD_FLAG(once), "Make one attempt only" },
	{ "local", 'l', NULL, CMD_FLAG(local), "Write the local topology file and send nothing" },
	{ "recheck", 'r', NULL, CMD_FLAG(recheck),
	  "Ask whether the registry still has the local file's topology; send it if not" },
	{0},
};

static void check_together(void *args, struct argp_state *state)
{
	const struct args *o = args;

	if (o->recheck && (o->local || o->input))
		argp_error(state, "--recheck checks the local topology file: it excludes --input and --local");
}

static const struct cmd_syntax syntax = {
	.options = options, .check = check_together,
	.help = "Export this node's hardware topology: to a file for its own jobs, and to the registry.",
};

/* Beside TopologyFile, where that has no serial numbers: the complete document, for root and for --recheck. */
static const char *complete_file(const struct settings *s, char path[static PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s.complete", s->topology_file);
	return path;
}

/*
 * Creates the folder of the file if it is in our own run folder, because /run is empty after a boot. The file is
 * world-readable: what Linux shows to root alone is in the complete one, for root, and sent to the registry.
 */
static int keep_locally(const struct settings *s, const struct buf *xml, struct err *e)
{
	struct buf public = {0};
	char complete[PATH_MAX];
	int rc;

	if (mkdir(s->run_dir, 0755) && errno != EEXIST)
		return err_set(e, "%s: %s", s->run_dir, strerror(errno));
	complete_file(s, complete);
	if (settings_yes(s->publish_serials)) {
		unlink(complete);
		return file_replace(s->topology_file, xml->data, xml->len, 0644, e);
	}
	if (file_replace(complete, xml->data, xml->len, 0600, e))
		return -1;
	redact_xml(xml->data, xml->len, &public);
	if (public.failed)
		rc = err_set(e, "%s: out of memory", s->topology_file);
	else
		rc = file_replace(s->topology_file, public.data, public.len, 0644, e);
	buf_free(&public);
	return rc;
}

static int send_until_done(struct delivery *d, const struct args *o)
{
	char logged[sizeof(((struct err *) 0)->text)] = "";
	struct timespec now;
	struct err e;

	clock_gettime(CLOCK_BOOTTIME, &now);
	d->until = o->deadline ? now.tv_sec + o->deadline : 0;
	for (unsigned attempt = 0;; attempt++) {
		enum deliver_result rc = deliver_document(d, &e);
		unsigned left, ms;

		if (rc == DELIVER_DONE) {
			/* Not logged hourly on every node if nothing changed. */
			if (!o->recheck || d->sent)
				log_info("%s: acknowledged: %s", d->node, d->outcome);
			return 0;
		}
		/* A failure that lasts is logged once. */
		log_line(rc == DELIVER_REFUSED || o->once ? LOG_ERR : strcmp(e.text, logged) ? LOG_WARNING : LOG_DEBUG,
			 "%s: %s", d->node, e.text);
		memcpy(logged, e.text, sizeof(logged));
		if (rc == DELIVER_REFUSED || o->once)
			return -1;
		if (!(left = deliver_left(d))) {
			log_error("%s: not acknowledged within %u s", d->node, o->deadline);
			return -1;
		}
		/* A pause beyond the deadline is shortened, for a last attempt. */
		ms = deliver_pause(attempt, d->retry_after);
		ms = ms / 1000 >= left ? 1000 * left : ms;
		log_debug("%s: next attempt in %u ms", d->node, ms);
		nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000l }, NULL);
	}
}

/*
 * Checked here, because the registry's reply would come after the node's file is replaced. hwloc 1 wrote another DTD
 * and no version.
 */
static int read_input(const char *path, struct buf *xml, struct err *e)
{
	struct canon c;

	if (file_read(path, CANON_MAX_BYTES, xml, e))
		return -1;
	if (strstr(xml->data, "SYSTEM \"hwloc.dtd\"") || strstr(xml->data, "<topology>"))
		return err_set(e, "%s: XML of hwloc 1, expected hwloc 2 or 3; convert it with: "
			       "lstopo --input %s new.xml", path, path);
	if (canon_parse(xml->data, xml->len, path, &c, e))
		return -1;
	canon_free(&c);
	return 0;
}

/* What the last export of this boot was. 1 if only the file without serial numbers is there. */
static int read_kept(const struct settings *s, struct buf *xml, struct err *e)
{
	char complete[PATH_MAX];

	if (access(complete_file(s, complete), F_OK) == 0)
		return file_read(complete, CANON_MAX_BYTES, xml, e);
	if (file_read(s->topology_file, CANON_MAX_BYTES, xml, e))
		return -1;
	return !settings_yes(s->publish_serials);
}

/*
 * This machine's hardware as discovered by hwloc, including I/O devices, as XML in the format of ExportFormat. 0 or -1;
 * the caller frees out. Whatever cgroup the agent runs in, all cores of the node count: slurmd uses the same flag.
 */
static int discover_xml(const char *format, struct buf *out, struct err *e)
{
	hwloc_topology_t t;
	int rc;

	if (hwloc_topology_init(&t))
		return err_set(e, "hwloc: %s", strerror(errno));
	if (hwloc_topology_set_flags(t, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) ||
	    hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) ||
	    hwloc_topology_set_type_filter(t, HWLOC_OBJ_MISC, HWLOC_TYPE_FILTER_KEEP_ALL) || hwloc_topology_load(t))
		rc = err_set(e, "hwloc cannot discover this machine: %s", strerror(errno));
	else if ((rc = machine_export_as(t, strtoul(format, NULL, 10), out, e)))	/* own: 0 */
		err_within(e, "ExportFormat=%s", format);
	hwloc_topology_destroy(t);
	return rc;
}

/* What went offline after the export is not in it; steps on this node use the rest. */
static void warn_offline(const struct buf *xml)
{
	hwloc_topology_t t = machine_load(xml->data, xml->len, NULL);
	hwloc_bitmap_t present = machine_cpus("present", NULL), online = machine_cpus("online", NULL);
	hwloc_bitmap_t gone = hwloc_bitmap_alloc();
	char list[256] = "";

	if (t && present && online && gone &&
	    hwloc_bitmap_isincluded(hwloc_topology_get_topology_cpuset(t), present) &&
	    !hwloc_bitmap_andnot(gone, hwloc_topology_get_topology_cpuset(t), online) && !hwloc_bitmap_iszero(gone)) {
		hwloc_bitmap_list_snprintf(list, sizeof(list), gone);
		log_warning("CPUs %s went offline after the topology was exported, and Slurm still allocates them: set "
			    "them online (chcpu --enable %s), or restart slurmd and topiary-agent", list, list);
	}
	hwloc_bitmap_free(gone);
	hwloc_bitmap_free(online);
	hwloc_bitmap_free(present);
	if (t)
		hwloc_topology_destroy(t);
}

/*
 * The document to export: discovered or read (--input), and kept in this node's own file unless it is another node's;
 * for a recheck what was kept, or 1 if there is nothing to ask about.
 */
static int read_document(const struct args *o, const struct settings *s, bool own, struct buf *xml, struct err *e)
{
	if (o->recheck) {
		int rc = read_kept(s, xml, e);

		if (rc >= 0)
			warn_offline(xml);
		return rc;
	}
	if (o->input ? read_input(o->input, xml, e) : discover_xml(s->export_format, xml, e))
		return -1;
	return own || o->local ? keep_locally(s, xml, e) : 0;
}

static int agent_run(const struct args *o, const struct settings *s, struct buf *xml)
{
	struct delivery d = { .settings = s, .node = o->node ? o->node : s->node_name, .xml = xml };
	struct err e;
	int rc;

	if (!claim_node_valid(d.node)) {
		log_error("'%s' is not a node name: expected letters, digits, '.', '_' and '-'", d.node);
		return -1;
	}
	if (claim_boot_id(d.boot_id, &e) || (rc = read_document(o, s, !strcmp(d.node, s->node_name), xml, &e)) < 0) {
		log_error("%s: %s", d.node, e.text);
		return -1;
	}
	if (rc)
		log_info("%s: not rechecked: %s.complete was not written at this boot, because topiary-agent was of an "
			 "earlier release or PublishSerials was yes; the next boot or \"systemctl restart "
			 "topiary-agent\" writes it", d.node, s->topology_file);
	return o->local || rc ? 0 : send_until_done(&d, o);
}

int main(int argc, char **argv)
{
	struct args o = {0};
	struct settings s;
	struct buf xml = {0};
	struct err e;
	int rc;

	log_open("topiary-agent");
	cmd_line_parse(&syntax, &o, NULL, NULL, argc, argv);
	if (settings_load_named(o.config, &s, &e)) {
		log_error("%s", e.text);
		return EXIT_FAILURE;
	}
	log_set_level(o.verbose ? "debug" : s.log_level);
	rc = agent_run(&o, &s, &xml);
	buf_free(&xml);
	settings_free(&s);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
