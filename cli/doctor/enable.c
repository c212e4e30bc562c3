/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/file.h"
#include "base/order.h"
#include "child.h"
#include "cmd.h"
#include "slurm_conf.h"

/*
 * `topiary enable` and `topiary disable` change slurm.conf and plugstack.conf, and the files that these include, where
 * a site has settings of its own: an element of a list is added or removed, all else stays byte for byte. A file is
 * replaced by rename; the former one is beside it.
 */
#define MARK " # added by topiary enable"
#define BACKUP ".before-topiary"
#define DIFF_SECONDS 60
#define DIFF_MAX (64u << 20)
#define SELECT "select_cons_tres.so"
#define SPANK "spank_topiary.so"

enum part { PLACEMENT = 1, OPTIONS = 2, MESSAGES = 4 };
static const struct {
	const char *name;
	enum part part;
} parts[] = { { "placement", PLACEMENT }, { "options", OPTIONS }, { "messages", MESSAGES } };

struct args {
	bool dry_run;
	const char *ours, *theirs;	/* directories of PluginDir */
	struct cmd_words parts;
	unsigned which;			/* enum part */
};

static const struct cmd_option options[] = {
	{ "dry-run", 'n', NULL, CMD_FLAG(dry_run), "Only print what would be changed" },
	{ "plugins", 0, "DIR", CMD_TEXT(ours), "Topiary's directory for PluginDir (default: " SLURM_PLUGINDIR ")" },
	{ "slurm-plugins", 0, "DIR", CMD_TEXT(theirs),
	  "Slurm's own directory, where PluginDir is not set (default: " SLURM_OWN_PLUGINDIR ")" },
	{0},
};

static void check_parts(void *args, struct argp_state *state)
{
	struct args *a = args;

	for (int i = 0; i < a->parts.n; i++) {
		unsigned part = 0;

		for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++)
			part |= !strcmp(parts[k].name, a->parts.list[i]) ? parts[k].part : 0;
		a->which |= part;
		if (!part)
			argp_error(state, "'%s': expected placement, options or messages", a->parts.list[i]);
	}
}

static const struct cmd_syntax enable_syntax = {
	options, "[placement] [options] [messages]",
	"Enable Topiary in slurm.conf and plugstack.conf: the placement of jobs (PluginDir) and the options --topo-... "
	"(plugstack.conf) by default; messages about refused jobs (JobSubmitPlugins).",
	CMD_WORDS(parts), NULL, check_parts,
};
static const struct cmd_syntax disable_syntax = {
	options, "[placement] [options] [messages]",
	"Remove Topiary from slurm.conf and plugstack.conf: everything by default; with the placement the messages.",
	CMD_WORDS(parts), NULL, check_parts,
};

/* --- edits of a text --- */

struct edit {
	size_t file, at, len;	/* bytes that are removed */
	char *insert;		/* or NULL */
	size_t order;		/* of edits at one place */
};

struct edits {
	struct slurm_conf conf;
	struct edit *list;
	size_t n;
};

/* Without a text only removes. */
static int __attribute__((format(printf, 6, 7))) edit_add(struct edits *x, size_t file, size_t at, size_t len,
							  struct err *e, const char *fmt, ...)
{
	struct edit *edit = array_add(x->list, x->n);
	char *insert = NULL;
	bool failed = !edit;
	va_list ap;

	va_start(ap, fmt);
	if (edit && *fmt)
		failed = vasprintf(&insert, fmt, ap) < 0;
	va_end(ap);
	if (failed)
		return err_set(e, "out of memory");
	*edit = (struct edit){ file, at, len, insert, x->n };
	return 0;
}

/* A line at the end of the first file, which may end with a line that is continued, or with none. */
static int edit_append(struct edits *x, const char *line, struct err *e)
{
	size_t end = x->conf.files[0].text.len;
	bool again = x->n && x->list[x->n - 1].file == 0 && x->list[x->n - 1].at == end;

	return edit_add(x, 0, end, 0, e, "%s%s\n", again || !x->conf.files[0].open ? "" : "\n", line);
}

static bool is_marked(const struct buf *t, size_t end)
{
	return t->len - end >= strlen(MARK) && !memcmp(t->data + end, MARK, strlen(MARK));
}

/* Removes a key with its value, and its line if nothing of the site's is left in it. */
static int edit_remove_key(struct edits *x, const struct conf_key *k, struct err *e)
{
	const struct buf *t = &x->conf.files[k->file].text;
	size_t from = k->begin, to = k->at + k->len, begin = from, end = to;

	while (begin > 0 && (t->data[begin - 1] == ' ' || t->data[begin - 1] == '\t'))
		begin--;
	end += is_marked(t, end) ? strlen(MARK) : 0;
	end += strspn(t->data + end, " \t\r");
	if ((begin == 0 || t->data[begin - 1] == '\n') && (end == t->len || t->data[end] == '\n'))
		from = begin, to = end + (end < t->len);
	return edit_add(x, k->file, from, to - from, e, "%s", "");
}

/* --- elements of lists, in slurm.conf --- */

/* The elements of ours in a list; names: any of them. */
struct list {
	const char *key, *names[3];
	char separator;
};

/* An element of a list in a value: from its separator on. */
struct element {
	size_t at, len;			/* in the file, with one separator */
	bool alone;			/* no other is in the list */
	bool first;
};

static bool element_find(const struct conf_key *k, const struct list *l, struct element *out)
{
	const char separator[] = { l->separator, '\0' };
	bool found = false, more = true;
	unsigned count = 0;

	for (const char *at = k->value; more; count++) {
		const char *from = at + strspn(at, " \t"), *end = at + strcspn(at, separator), *to = end;

		while (to > from && strchr(" \t/", to[-1]))
			to--;
		more = *end;
		for (size_t i = 0; l->names[i] && !found; i++)
			if (strlen(l->names[i]) == (size_t) (to - from) && !memcmp(l->names[i], from, to - from)) {
				*out = (struct element){ .at = k->from[(count ? at - 1 : from) - k->value],
							 .first = !count };
				out->len = k->from[(count ? end : more ? end + 1 : to) - k->value] - out->at;
				found = true;
			}
		at = end + more;
	}
	out->alone = found && count == 1;
	return found;
}

static void repeated_report(void *, const char *finding)
{
	fprintf(stderr, "topiary: %s; make one line of both\n", finding);
}

/* Our directory is the first of its list, our plugin the last; `whole` is the line where the site has none. */
static int list_add(struct edits *x, const struct list *l, bool first, const char *whole, struct err *e)
{
	const struct conf_key *k = slurm_conf_find(&x->conf, l->key);
	struct element had;
	bool has;

	slurm_conf_repeated(&x->conf, l->key, repeated_report, NULL);
	if (!k)
		return edit_append(x, whole, e);
	has = element_find(k, l, &had);
	if (has && (!first || had.first))
		return 0;
	if (has && edit_add(x, k->file, had.at, had.len, e, "%s", ""))
		return -1;
	if (first)
		return edit_add(x, k->file, k->from[0], 0, e, "%s%c", l->names[0], l->separator);
	return edit_add(x, k->file, k->from[strlen(k->value)], 0, e, "%c%s", l->separator, l->names[0]);
}

/* Removes an element wherever it is; a value that this command wrote, and one that would be empty, with its key. */
static int list_remove(struct edits *x, const struct list *l, const char *added, struct err *e)
{
	struct element had;

	for (size_t i = 0; i < x->conf.nkeys; i++) {
		const struct conf_key *k = &x->conf.keys[i];
		bool marked = is_marked(&x->conf.files[k->file].text, k->at + k->len);

		if (strcasecmp(k->name, l->key) || !element_find(k, l, &had))
			continue;
		if (had.alone || (marked && !strcmp(k->value, added)) ?
		    edit_remove_key(x, k, e) : edit_add(x, k->file, had.at, had.len, e, "%s", ""))
			return -1;
	}
	return 0;
}

/* --- the parts --- */

static int check_plugin(const char *dir, const char *file, const char *advice, struct err *e)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return access(path, F_OK) ? err_set(e, "%s: %s: %s", path, strerror(errno), advice) : 0;
}

#define INSTALL "install topiary-slurm on this host, or use --plugins"

/* Slurm takes no relative path, and a list of directories is divided at ':'. out: without a '/' at its end. */
static int check_directory(const char *option, const char *dir, char out[static PATH_MAX], struct err *e)
{
	size_t len = strlen(dir);

	while (len > 1 && dir[len - 1] == '/')
		len--;
	if (*dir != '/' || len >= PATH_MAX || dir[strcspn(dir, ":,#=\"'\\ \t\r\n")])
		return err_set(e, "--%s=%.200s: expected an absolute path without blanks, quotes and any of :,#=\\",
			       option, dir);
	snprintf(out, PATH_MAX, "%.*s", (int) len, dir);
	return 0;
}

/* Directories of PluginDir that are not ours, and have the plugins of Topiary. */
static void report_others(const struct edits *x, const char *ours)
{
	const struct conf_key *k = slurm_conf_find(&x->conf, "PluginDir");
	char *all = k ? strdup(k->value) : NULL, *rest = all, *dir;

	while (rest && (dir = strsep(&rest, ":"))) {
		size_t len = strlen(ours);

		if ((strncmp(dir, ours, len) || dir[len + strspn(dir + len, "/")]) && *dir == '/' &&
		    !check_plugin(dir, SPANK, "", NULL))
			fprintf(stderr, "topiary: PluginDir keeps %s, which has Topiary's plugins: to remove it, too,"
				" use --plugins=%s\n", dir, dir);
	}
	free(all);
}

static int change_placement(struct edits *x, const struct args *a, bool enable, struct err *e)
{
	const struct list list = { "PluginDir", { a->ours }, ':' };
	char whole[2 * PATH_MAX + 64];

	snprintf(whole, sizeof(whole), "PluginDir=%s:%s" MARK, a->ours, a->theirs);
	if (!enable) {
		whole[strlen(whole) - strlen(MARK)] = '\0';
		report_others(x, a->ours);
		return list_remove(x, &list, whole + strlen("PluginDir="), e);
	}
	if (check_plugin(a->ours, SELECT, INSTALL, e) ||
	    (!slurm_conf_find(&x->conf, list.key) &&
	     check_plugin(a->theirs, SELECT, "where Slurm's own plugins are, is for --slurm-plugins", e)))
		return -1;
	return list_add(x, &list, true, whole, e);
}

/* The line with our plugin in plugstack.conf; of several the first stays where it is enabled. */
static int change_options(struct edits *x, const struct args *a, const char *config, bool enable, struct err *e)
{
	char line[2 * PATH_MAX + 64];
	bool kept = false;

	for (size_t i = 0; i < x->conf.nkeys; i++) {
		const struct conf_key *k = &x->conf.keys[i];
		const char *found = strstr(k->value, SPANK);

		if (!found || memchr(k->value, ' ', found - k->value))
			continue;
		if (enable && !kept)
			kept = true;
		else if (edit_remove_key(x, k, e))
			return -1;
	}
	if (kept || !enable)
		return 0;
	snprintf(line, sizeof(line), "optional %s/" SPANK "%s%s", a->ours, config ? " config=" : "",
		 config ? config : "");
	return check_plugin(a->ours, SPANK, INSTALL, e) ? -1 : edit_append(x, line, e);
}

/* --- files --- */

ORDER(edit_compare, struct edit, COMPARE(x->file, y->file) ?: COMPARE(x->at, y->at) ?: COMPARE(x->order, y->order))

/* With the owner and mode of the file that it replaces, or a copy of. */
static int write_like(const char *path, const struct buf *text, const struct stat *like, struct err *e)
{
	char new[PATH_MAX + 16];

	snprintf(new, sizeof(new), "%s.topiary-new", path);
	if (file_replace(new, text->data ? text->data : "", text->len, like->st_mode & 07777, e))
		return -1;
	if (chown(new, like->st_uid, like->st_gid) || rename(new, path)) {
		err_set(e, "%s: %s", path, strerror(errno));
		unlink(new);
		return -1;
	}
	return 0;
}

/* A symbolic link stays one. */
static int file_change(const struct conf_file *f, const struct buf *new, struct err *e)
{
	struct stat like = { .st_mode = 0644, .st_uid = geteuid(), .st_gid = getegid() };
	char real[PATH_MAX], backup[PATH_MAX + sizeof(BACKUP)];
	bool is_new = !realpath(f->path, real);

	if (is_new)
		snprintf(real, sizeof(real), "%s", f->path);
	snprintf(backup, sizeof(backup), "%s" BACKUP, real);
	if ((!is_new && stat(real, &like)) || (!is_new && write_like(backup, &f->text, &like, e)))
		return is_new ? -1 : err_within(e, "not changed");
	if (write_like(real, new, &like, e))
		return -1;
	if (is_new)
		printf("%s: written\n", real);
	else
		printf("%s: changed; the former file is %s\n", real, backup);
	return 0;
}

/* 1 if something is changed, 0, -1. */
static int edits_finish(struct edits *x, bool dry_run, struct err *e)
{
	int rc = 0;

	if (x->n)
		qsort(x->list, x->n, sizeof(*x->list), edit_compare);
	for (size_t file = 0; rc >= 0 && file < x->conf.nfiles; file++) {
		const struct buf *t = &x->conf.files[file].text;
		bool touched = false;
		struct buf new = {0};
		size_t at = 0;

		for (size_t i = 0; i < x->n; i++) {
			const struct edit *edit = &x->list[i];

			if (edit->file != file)
				continue;
			buf_add(&new, t->data + at, edit->at - at);
			buf_puts(&new, edit->insert ? edit->insert : "");
			at = edit->at + edit->len;
			touched = true;
		}
		if (touched && at < t->len)
			buf_add(&new, t->data + at, t->len - at);
		if (new.failed)
			rc = err_set(e, "out of memory");
		else if (touched) {
			/* What diff(1) prints of the file and its new text. */
			const char *path = x->conf.files[file].path;
			int fd = memfd_create("topiary", 0);
			char text[32];
			const char *const argv[] = { "diff", "-u", "--label", path, "--label", path,
						     access(path, F_OK) ? "/dev/null" : path, text, NULL };
			struct buf out = {0};

			snprintf(text, sizeof(text), "/dev/fd/%d", fd);
			if (fd < 0 || file_write(fd, new.data, new.len) ||
			    cmd_program(argv, STDERR_TOO, DIFF_SECONDS, DIFF_MAX, &out, NULL) < 0)
				printf("%s: diff cannot be started\n", path);
			fputs(out.len ? out.data : "", stdout);
			buf_free(&out);
			if (fd >= 0)
				close(fd);
			rc = dry_run ? 1 : file_change(&x->conf.files[file], &new, e) ? -1 : 1;
		}
		buf_free(&new);
	}
	return rc;
}

static void edits_free(struct edits *x)
{
	for (size_t i = 0; i < x->n; i++)
		free(x->list[i].insert);
	free(x->list);
	slurm_conf_free(&x->conf);
}

/* plugstack.conf, which need not exist. */
static int stack_read(const struct slurm_conf *slurm, const char *path, struct edits *x, struct err *e)
{
	const struct conf_key *named = slurm_conf_find(slurm, "PlugStackConfig");
	char *stack = slurm_conf_beside(path, named ? named->value : "plugstack.conf");
	int rc = stack ? 0 : err_set(e, "out of memory");

	if (rc == 0 && access(stack, F_OK) == 0) {
		rc = slurm_conf_read(&x->conf, stack, CONF_PLUGSTACK, e);
	} else if (rc == 0) {
		if (!array_add(x->conf.files, x->conf.nfiles))
			rc = err_set(e, "out of memory");
		else {
			x->conf.files[0].path = stack;
			stack = NULL;
		}
	}
	free(stack);
	return rc;
}

static int change(struct cmd *c, const struct cmd_syntax *syntax, int argc, char **argv, bool enable, struct err *e)
{
	static const struct list messages = { "JobSubmitPlugins", { "topiary", "job_submit/topiary" }, ',' };
	struct args a = { .ours = SLURM_PLUGINDIR, .theirs = SLURM_OWN_PLUGINDIR };
	const char *path = slurm_conf_path();
	char ours[PATH_MAX], theirs[PATH_MAX];
	struct edits slurm = {0}, stack = {0};
	int rc, more = 0;

	if (cmd_parse(c, syntax, &a, argc, argv, e) || check_directory("plugins", a.ours, ours, e) ||
	    check_directory("slurm-plugins", a.theirs, theirs, e))
		return -1;
	if (enable && c->config && *c->config != '/')
		return err_set(e, "--config=%.200s: expected an absolute path, which plugstack.conf is to have",
			       c->config);
	a.ours = ours;
	a.theirs = theirs;
	if (!strcmp(path, SLURM_CONF_CONFIGLESS))
		return err_set(e, "%s comes from the controller: run this command there", path);
	if (!a.which)
		a.which = PLACEMENT | OPTIONS | (enable ? 0 : MESSAGES);
	if (!enable && a.which & PLACEMENT)	/* job_submit/topiary asks the select plugin */
		a.which |= MESSAGES;
	rc = slurm_conf_read(&slurm.conf, path, CONF_SLURM, e);
	if (rc == 0 && a.which & PLACEMENT)
		rc = change_placement(&slurm, &a, enable, e);
	if (rc == 0 && a.which & MESSAGES)
		rc = enable ? list_add(&slurm, &messages, false, "JobSubmitPlugins=topiary" MARK, e) :
			      list_remove(&slurm, &messages, "topiary", e);
	if (rc == 0 && a.which & OPTIONS && (rc = stack_read(&slurm.conf, path, &stack, e)) == 0)
		rc = change_options(&stack, &a, c->config, enable, e);
	if (rc == 0)
		rc = edits_finish(&slurm, a.dry_run, e);
	if (rc >= 0 && (more = edits_finish(&stack, a.dry_run, e)) < 0)
		rc = -1;
	if (rc == 0 && !more)
		puts("nothing to change");
	else if (rc > 0 && !a.dry_run)
		puts("If hosts have copies of these files, copy them; then on each controller: "
		     "systemctl restart slurmctld; and once: scontrol reconfigure");
	edits_free(&slurm);
	edits_free(&stack);
	return rc < 0 ? -1 : 0;
}

int cmd_enable(struct cmd *c, int argc, char **argv, struct err *e)
{
	return change(c, &enable_syntax, argc, argv, true, e);
}

int cmd_disable(struct cmd *c, int argc, char **argv, struct err *e)
{
	return change(c, &disable_syntax, argc, argv, false, e);
}
