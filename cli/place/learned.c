/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "learned.h"

#include <dirent.h>
#include <math.h>

#include "base/array.h"
#include "base/build_id.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/order.h"

#define SUFFIX ".mat"
#define MAX_PROGRAM (512u << 20)
#define DAY 86400

int learned_folder(char path[static PATH_MAX], bool make, struct err *e)
{
	const char *own = getenv("TOPIARY_MATRICES"), *home = getenv("HOME");
	struct stat st;

	if (snprintf(path, PATH_MAX, "%s%s", own && *own ? own : home ? home : "",
		     own && *own ? "" : "/.local/share/topiary/matrices") >= PATH_MAX - LEARNED_ID || *path != '/')
		return err_set(e, "the folder of learned matrices: HOME or TOPIARY_MATRICES is no absolute path");
	if (make)
		file_make_parents(path, 0700);
	if (make && mkdir(path, 0700) && errno != EEXIST)
		return err_set(e, "%s: %s", path, strerror(errno));
	if (lstat(path, &st))
		return errno == ENOENT ? 0 : err_set(e, "%s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, "%s: not used: not a directory of this user alone", path);
	return 0;
}

/* Their program is a script, which the build ID does not know. */
static bool is_interpreter(const char *program)
{
	static const char *const names[] = {
		"python", "perl", "julia", "R", "Rscript", "lua", "ruby", "java", "octave", "node", "sh", "bash",
		"dash",
	};
	const char *name = strrchr(program, '/') ? strrchr(program, '/') + 1 : program;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		size_t len = strlen(names[i]);

		if (!strncmp(name, names[i], len) && strspn(name + len, "0123456789.-") == strlen(name + len))
			return true;
	}
	return false;
}

int learned_key(const char *program, const char *tag, char key[static LEARNED_KEY], struct err *e)
{
	struct buf text = {0};
	char hash[HASH_HEX], *real = realpath(program, NULL);
	int rc = 0;

	if (!real)
		return err_set(e, "%s: %s", program, strerror(errno));
	if (!*tag && is_interpreter(real)) {
		rc = err_set(e, "%s runs scripts, which its build ID does not distinguish: name each by a tag, "
			     "--topo-matrix=auto:TAG", program);
	} else if (!*build_id_read(real, key)) {
		rc = file_read(real, MAX_PROGRAM, &text, e);
		if (!rc && (text.len < SELFMAG || memcmp(text.data, ELFMAG, SELFMAG)))
			rc = err_set(e, "%s: not an ELF program", program);
		if (!rc) {
			hash_hex(text.data, text.len, hash);
			snprintf(key, LEARNED_KEY, "%.40s", hash);
		}
		buf_free(&text);
	}
	free(real);
	return rc;
}

void learned_id(unsigned ranks, const char *tag, const char *key, char id[static LEARNED_ID])
{
	snprintf(id, LEARNED_ID, "%u-%.32s%s%.40s", ranks, tag, *tag ? "-" : "", key);
}

static int is_matrix(const struct dirent *d)
{
	size_t len = strlen(d->d_name);

	return *d->d_name != '.' && len > strlen(SUFFIX) && len < LEARNED_ID &&
	       !strcmp(d->d_name + len - strlen(SUFFIX), SUFFIX);
}

int learned_list(const char *prefix, char ***ids, size_t *n, struct err *e)
{
	char folder[PATH_MAX];
	struct dirent **found;
	int count;

	*ids = NULL;
	*n = 0;
	if (learned_folder(folder, false, e))
		return -1;
	if ((count = scandir(folder, &found, is_matrix, versionsort)) < 0)
		return errno == ENOENT ? 0 : err_set(e, "%s: %s", folder, strerror(errno));
	if (!(*ids = calloc(count + 1, sizeof(**ids))))
		err_set(e, "out of memory");
	for (int i = 0; i < count; i++) {
		found[i]->d_name[strlen(found[i]->d_name) - strlen(SUFFIX)] = '\0';
		if (*ids && !strncmp(found[i]->d_name, prefix, strlen(prefix)) &&
		    ((*ids)[*n] = strdup(found[i]->d_name)))
			++*n;
		free(found[i]);
	}
	free(found);
	return *ids ? 0 : -1;
}

int learned_read(const char *id, struct learned *out, bool *missing, struct err *e)
{
	struct buf text = {0};
	unsigned ranks = 0;
	char folder[PATH_MAX];
	struct stat st;

	*out = (struct learned){0};
	*missing = false;
	if (learned_folder(folder, false, e))
		return -1;
	snprintf(out->id, sizeof(out->id), "%s", id);
	if (snprintf(out->path, sizeof(out->path), "%s/%s" SUFFIX, folder, id) >= (int) sizeof(out->path))
		return err_set(e, "%.100s: %s", id, strerror(ENAMETOOLONG));
	if (lstat(out->path, &st)) {
		*missing = errno == ENOENT;
		return err_set(e, "%s: %s", out->path, strerror(errno));
	}
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return err_set(e, "%s: not a file of this user", out->path);
	if (file_read(out->path, LEARNED_FILE_BYTES, &text, e))
		return -1;
	for (const char *at = text.data; at && *at == '%'; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
		struct learned_run r;

		if (!strncmp(at, "% program ", 10))
			snprintf(out->program, sizeof(out->program), "%.*s", (int) strcspn(at + 10, "\n"), at + 10);
		else if (!strncmp(at, "% pattern ", 10))
			snprintf(out->pattern, sizeof(out->pattern), "%.*s", (int) strcspn(at + 10, "\n"), at + 10);
		else if (out->nruns < LEARNED_RUNS &&
			 sscanf(at, "%% run %u %lld %lf", &r.job, &r.at, &r.distance) == 3 &&
			 r.at >= 0 && r.at < 1LL << 40)
			out->run[out->nruns++] = r;
	}
	out->matrix = matrix_parse(text.data, text.len, out->path, e);
	buf_free(&text);
	if (out->matrix && (sscanf(id, "%u-", &ranks) != 1 || ranks != out->matrix->ranks || !out->nruns)) {
		matrix_free(out->matrix);
		out->matrix = NULL;
		err_set(e, "%s: damaged: %s", out->path, out->nruns ? "another number of ranks than its name has" :
			"it names no run");
	}
	out->recorded = ranks;
	return out->matrix ? 0 : -1;
}

const char *learned_pattern(const struct matrix *m, char text[static PATTERN_TEXT])
{
	struct pattern p;

	if (!*text && pattern_recognise(m, &p, NULL))
		snprintf(text, PATTERN_TEXT, "-");
	else if (!*text)
		pattern_describe(&p, text);
	return text;
}

/* From what is learned of another number of ranks. 0, or -1 with the reason. */
static int resize_from(const char *id, const struct learned *own, unsigned ranks, struct learned *out, struct err *e)
{
	struct pattern p, resized;
	struct matrix *made;
	char text[PATTERN_TEXT], sides[PATTERN_TEXT];
	bool missing;

	if (learned_read(id, out, &missing, e))
		return -1;
	if (!learned_is_stable(out))
		return err_set(e, "no two runs agree");
	if (!strcmp(out->pattern, "-") || strstr(out->pattern, PATTERN_SHUFFLED))
		return err_set(e, "no pattern that is known for other numbers of ranks");
	if (pattern_recognise(out->matrix, &p, e) || pattern_resize(&p, ranks, &resized, e))
		return -1;
	if (!(made = pattern_matrix(&resized)))
		return err_set(e, "out of memory");
	matrix_free(out->matrix);
	out->matrix = made;
	if (own->matrix && matrix_distance(own->matrix, made) > LEARNED_DISTANCE)
		return err_set(e, "their pattern is not that of the run that is recorded");
	pattern_describe(&p, text);
	pattern_describe_sides(&resized, sides);
	snprintf(out->resized, sizeof(out->resized), p.sides > 1 ? "%s, here %s" : "%s", text, sides);
	return 0;
}

/* Of so many other numbers. */
#define RESIZE_TRIES 4

int learned_resize(const struct learned *own, unsigned ranks, struct learned *out, struct err *e)
{
	const char *program = strchr(own->id, '-');
	char **ids;
	size_t n;
	int rc = -1;

	*out = (struct learned){0};
	if (learned_list("", &ids, &n, e))
		return -1;
	err_set(e, "no other number of ranks is recorded");
	for (unsigned tries = 0; tries < RESIZE_TRIES && rc; tries++) {
		double nearest = INFINITY;
		unsigned number = 0;
		size_t at = n;

		for (size_t i = 0; i < n; i++) {
			unsigned long other = ids[i] ? strtoul(ids[i], NULL, 10) : 0;
			double away = fabs(log((double) other / ranks));

			if (ids[i] && !strcmp(strchr(ids[i], '-') ?: "", program) && other != ranks && away < nearest) {
				nearest = away;
				number = other;
				at = i;
			}
		}
		if (at == n)
			break;
		learned_free(out);
		if ((rc = resize_from(ids[at], own, ranks, out, e)))
			err_within(e, "%u ranks", number);
		free(ids[at]);
		ids[at] = NULL;
	}
	for (size_t i = 0; i < n; i++)
		free(ids[i]);
	free(ids);
	if (rc)
		learned_free(out);
	return rc;
}

void learned_free(struct learned *l)
{
	matrix_free(l->matrix);
	l->matrix = NULL;
}

bool learned_is_stable(const struct learned *l)
{
	return l->nruns > 1 && l->run[l->nruns - 1].distance <= LEARNED_DISTANCE;
}

bool learned_is_settled(const struct learned *l)
{
	return (learned_is_stable(l) || l->nruns == LEARNED_RUNS) &&
	       time(NULL) - l->run[l->nruns - 1].at < LEARNED_DAYS * DAY;
}

struct kept {
	char *path;
	off_t bytes;
	time_t at;
};

ORDER(kept_compare, struct kept, COMPARE(y->at, x->at))

/* Keeps the newest files within the bounds. What cannot be removed stays. */
static void remove_oldest(const char *folder)
{
	DIR *dir = opendir(folder);
	struct kept *kept = NULL, *k;
	size_t n = 0;
	off_t bytes = 0;
	struct dirent *d;
	struct stat st;

	while (dir && (d = readdir(dir))) {
		char *path = NULL;

		if (fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    asprintf(&path, "%s/%s", folder, d->d_name) < 0)
			continue;
		if (S_ISDIR(st.st_mode) && !strncmp(d->d_name, "recording.", 10) &&
		    time(NULL) - st.st_mtime > 7 * DAY) {
			/* A folder of records whose job was killed before they were added. */
			DIR *records = opendir(path);
			struct dirent *entry;

			while (records && (entry = readdir(records)))
				if (!strncmp(entry->d_name, "rank.", 5))
					unlinkat(dirfd(records), entry->d_name, 0);
			if (records)
				closedir(records);
			rmdir(path);
		}
		if (S_ISREG(st.st_mode) && is_matrix(d) && (k = array_add(kept, n)))
			*k = (struct kept){ path, st.st_size, st.st_mtime };
		else
			free(path);
	}
	if (dir)
		closedir(dir);
	if (n)
		qsort(kept, n, sizeof(*kept), kept_compare);
	for (size_t i = 0; i < n; i++) {
		bytes += kept[i].bytes;
		if (i >= LEARNED_FILES || bytes > LEARNED_BYTES)
			unlink(kept[i].path);
		free(kept[i].path);
	}
	free(kept);
}

/* A file's text of a matrix, with the lines of comments that it begins with. */
static int learned_write(const struct matrix *m, const char *format, const struct buf *comments, struct buf *out,
			 struct err *e)
{
	struct buf text = {0};
	double scale;
	int rc = matrix_write(m, format, &text, &scale, e);
	/* Behind the banner of Matrix Market. */
	size_t line = !rc && *text.data == '%' ? strcspn(text.data, "\n") + 1 : 0;

	if (!rc) {
		out->len = 0;
		buf_add(out, text.data, line);
		buf_add(out, comments->data, comments->len);
		buf_puts(out, text.data + line);
		rc = out->failed ? err_set(e, "out of memory") : 0;
	}
	buf_free(&text);
	return rc;
}

int learned_add(const char *id, const char *program, unsigned job, const struct matrix *m, struct err *e)
{
	struct buf out = {0}, comments = {0};
	char pattern[PATTERN_TEXT] = "";
	struct learned_run new = { job, time(NULL), 1 };
	char folder[PATH_MAX];
	struct learned old;
	struct err damaged;
	bool missing;
	int rc;

	if (learned_folder(folder, true, e))
		return -1;
	if (!learned_read(id, &old, &missing, &damaged))
		new.distance = matrix_distance(old.matrix, m);
	else if (!missing)
		log_warning("%s; replaced by this run", damaged.text);
	if (!old.matrix)
		old.nruns = 0;
	learned_free(&old);
	buf_printf(&comments, "%% program %.*s\n%% pattern %s\n", (int) strcspn(program, "\n"), program,
		   learned_pattern(m, pattern));
	for (unsigned i = old.nruns == LEARNED_RUNS; i <= old.nruns; i++) {
		const struct learned_run *r = i < old.nruns ? &old.run[i] : &new;

		buf_printf(&comments, "%% run %u %lld %.6f\n", r->job, r->at, r->distance);
	}
	rc = comments.failed ? err_set(e, "out of memory") :
			       learned_write(m, m->messages ? "prof" : "mm", &comments, &out, e);
	if (!rc && m->messages && out.len > LEARNED_FILE_BYTES)
		rc = learned_write(m, "mm", &comments, &out, e);
	if (!rc)
		rc = out.len > LEARNED_FILE_BYTES ?
			err_set(e, "%s: a matrix of %zu bytes, at most %u are kept", program, out.len,
				LEARNED_FILE_BYTES) :
			file_replace(old.path, out.data, out.len, 0600, e);
	buf_free(&comments);
	buf_free(&out);
	remove_oldest(folder);
	return rc;
}
