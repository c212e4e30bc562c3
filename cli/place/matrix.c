/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <dirent.h>
#include <math.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "cmd.h"
#include "learned.h"
#include "matrix_rule.h"
#include "table.h"

struct args {
	const char *format, *output, *rule, *tag;
	uint64_t seed;
	unsigned job;
	bool info;
	struct cmd_words files;
	const struct verb *verb;	/* NULL: the files are matrices */
};

typedef int verb_fn(const struct cmd *c, const struct args *a, struct err *e);
static verb_fn learned_print, learned_show, learned_forget, learned_export, learned_learn;

/* Of what --topo-matrix=auto keeps. */
static const struct verb {
	const char *name;
	verb_fn *run;
	int least, most;	/* words that follow */
} verbs[] = {
	{ "list", learned_print, 0, 1 }, { "show", learned_show, 1, 1 }, { "forget", learned_forget, 1, INT_MAX },
	{ "export", learned_export, 1, 1 }, { "learn", learned_learn, 1, 1 },
};

static const struct cmd_option options[] = {
	{ "format", 0, "NAME", CMD_WORD(format),
	  "Output format: mm (Matrix Market, default), dense (text), grf (Scotch) or prof (Open MPI's "
	  "monitoring, with numbers of messages); show: svg" },
	{ "output", 'o', "FILE", CMD_OUTPUT(output), "Write the matrix to FILE, atomically" },
	{ "info", 0, NULL, CMD_FLAG(info),
	  "Print the number of ranks and pairs, bytes, and the heaviest pairs; write the matrix only with -o" },
	{ "generate", 0, "RULE", CMD_WORD(rule), "Generate a matrix: stencil2d:XxY[:5|9], stencil3d:XxYxZ[:7|27], "
	  "pencils:XxY, ring:N, random:N or powerlaw:N" },
	{ "tag", 0, "TAG", CMD_TEXT(tag), "learn: that of --topo-matrix=auto:TAG" },
	{ "job", 0, "ID", CMD_NUMBER(job, 0, UINT32_MAX), "learn: the job whose run it is" },
	{ "seed", 0, "N", CMD_NUMBER(seed, 0, UINT64_MAX),
	  "Random seed; equal seeds give equal matrices (default: 1)" },
	{0},
};

static void check_together(void *args, struct argp_state *state)
{
	struct args *a = args;

	if (a->rule && a->files.n)
		argp_error(state, "--generate and FILE exclude each other");
	for (size_t i = 0; a->files.n && i < sizeof(verbs) / sizeof(*verbs); i++)
		if (!strcmp(a->files.list[0], verbs[i].name))
			a->verb = &verbs[i];
	if (a->verb && (a->files.n - 1 < a->verb->least || a->files.n - 1 > a->verb->most))
		argp_error(state, "%s: expected list [ID], show ID|FILE, forget ID..., export ID or learn DIRECTORY",
			   a->verb->name);
	if ((a->tag || a->job) && !(a->verb && a->verb->run == learned_learn))
		argp_error(state, "--tag and --job apply to learn only");
	if (!a->rule && !a->files.n)
		argp_error(state, "at least one FILE is required");
}

static const struct cmd_syntax syntax = {
	options, "FILE...\nlist [ID]\nshow ID|FILE\nforget ID...\nexport ID",
	"Read communication matrices, add them up, convert them. A directory stands for the "
	".prof files of the largest run in it, or of all runs of that size. list, show, forget and export are of the "
	"matrices that --topo-matrix=auto has learned; a file of such a name is ./list.",
	CMD_WORDS(files), NULL, check_together,
};

static int is_prof(const struct dirent *d)
{
	size_t len = strlen(d->d_name);

	return *d->d_name != '.' && len > 5 && !strcmp(d->d_name + len - 5, ".prof");
}

/*
 * The paths of the .prof files that begin so, by rank, *n of them, to be freed by the caller; NULL on error.
 */
static char **folder_paths(const char *folder, const char *prefix, size_t *n, struct err *e)
{
	struct dirent **found;
	int count = scandir(folder, &found, is_prof, versionsort);
	char **paths = count > 0 ? calloc(count, sizeof(*paths)) : NULL;
	bool failed = !paths;

	*n = 0;
	if (count < 0)
		err_set(e, "%s: %s", folder, strerror(errno));
	else if (!count)
		err_set(e, "%s: no .prof file in this directory", folder);
	for (int i = 0; i < count; i++) {
		if (!failed && !strncmp(found[i]->d_name, prefix, strlen(prefix))) {
			failed = asprintf(&paths[*n], "%s/%s", folder, found[i]->d_name) < 0;
			*n += !failed;
		}
		free(found[i]);
	}
	if (count >= 0)
		free(found);
	if (count > 0 && failed)
		err_set(e, "%s: out of memory", folder);
	return failed ? NULL : paths;
}

/* The rank in NAME.RANK.prof; a number above all ranks when there is none. */
static unsigned long rank_of(const char *path)
{
	const char *at = path + strlen(path) - strlen(".prof");

	while (at > path && isdigit((unsigned char) at[-1]))
		at--;
	return at > path && at[-1] == '.' && isdigit((unsigned char) *at) ? strtoul(at, NULL, 10) : ULONG_MAX;
}

/* How many ranks have a file, in any run; all of them when a file name has no rank. */
static unsigned count_ranks(const struct matrix_files *files, unsigned ranks)
{
	bool recorded[MATRIX_MAX_RANKS] = {false};
	unsigned n = 0;

	for (size_t i = 0; i < files->n; i++) {
		unsigned long rank = rank_of(files->path[i]);

		if (!files->used[i])
			continue;
		if (rank >= ranks)
			return ranks;
		n += !recorded[rank];
		recorded[rank] = true;
	}
	return n;
}

/* Of the files that begin so. missing: NULL to warn, or the number of ranks without a file. */
static struct matrix *read_folder(const char *folder, const char *prefix, unsigned *missing, struct err *e)
{
	struct matrix_files files = { .largest = true };
	struct matrix *m = NULL;

	files.path = folder_paths(folder, prefix, &files.n, e);
	if (files.path && !(files.used = calloc(files.n, sizeof(*files.used))))
		err_set(e, "%s: out of memory", folder);
	else if (files.path && (m = matrix_sum(&files, e))) {
		unsigned recorded = count_ranks(&files, m->ranks);
		size_t left_out = 0;

		for (size_t i = 0; i < files.n; i++)
			left_out += !files.used[i];
		if (missing)
			*missing = m->ranks - recorded;
		else if (left_out)
			log_warning("%s: ignored %zu file%s of smaller runs", folder, left_out,
				    PLURAL(left_out));
		if (!missing && recorded < m->ranks)
			log_warning("%s: only %u of %u ranks have a file", folder, recorded, m->ranks);
	}
	for (size_t i = 0; i < files.n; i++)
		free(files.path[i]);
	free(files.path);
	free(files.used);
	return m;
}

/* --- --info --- */

#define HEAVIEST 10

struct pair {
	unsigned a, b;
	double bytes;
};

struct summary {
	size_t pairs, most_partners;
	double bytes;
	struct pair heaviest[HEAVIEST];
	size_t nheaviest;
};

/* Stable: equal pairs keep their order. */
static void keep_heaviest(struct summary *s, struct pair p)
{
	size_t at = s->nheaviest;

	if (at == HEAVIEST && s->heaviest[at - 1].bytes >= p.bytes)
		return;
	at -= at == HEAVIEST;
	for (; at && s->heaviest[at - 1].bytes < p.bytes; at--)
		s->heaviest[at] = s->heaviest[at - 1];
	s->heaviest[at] = p;
	s->nheaviest += s->nheaviest < HEAVIEST;
}

static int info_print_text(const struct matrix *m, const struct summary *s, FILE *out, struct err *e)
{
	fprintf(out, "ranks      %u\n", m->ranks);
	fprintf(out, "pairs      %zu, %.1f partners a rank, at most %zu\n", s->pairs, 2.0 * s->pairs / m->ranks,
		s->most_partners);
	fprintf(out, "bytes      %.15g\n", s->bytes);
	for (size_t i = 0; i < s->nheaviest; i++)
		fprintf(out, "%-10s %u and %u: %.15g, %.2f %%\n", i ? "" : "heaviest", s->heaviest[i].a,
			s->heaviest[i].b, s->heaviest[i].bytes, 100 * s->heaviest[i].bytes / s->bytes);
	return fflush(out) ? err_set(e, "stdout: %s", strerror(errno)) : 0;
}

static int info_print_json(const struct matrix *m, const struct summary *s, FILE *out, struct err *e)
{
	json_t *pairs = json_array(), *all;
	int rc;

	for (size_t i = 0; i < s->nheaviest; i++)
		json_array_append_new(pairs, json_pack("{s:i, s:i, s:f}", "a", s->heaviest[i].a, "b", s->heaviest[i].b,
						       "bytes", s->heaviest[i].bytes));
	all = json_pack("{s:i, s:I, s:I, s:f, s:o}", "ranks", m->ranks, "pairs", (json_int_t) s->pairs, "most_partners",
			(json_int_t) s->most_partners, "bytes", s->bytes, "heaviest", pairs);
	rc = !all || json_dumpf(all, out, JSON_INDENT(2)) || putc('\n', out) == EOF || fflush(out);
	json_decref(all);
	return rc ? err_set(e, "stdout: %s", strerror(errno)) : 0;
}

/* --- list, show, forget, export, learn --- */

static const char *state_of(const struct learned *l)
{
	return learned_is_stable(l) ? "used" : l->nruns < 2 ? "one run: needs another" : "unstable: not used";
}

/* As short as is still one matrix, by which the commands find it. */
static int short_id(char *const *ids, size_t n, size_t i)
{
	int len = strlen(ids[i]), key = strrchr(ids[i], '-') ? strrchr(ids[i], '-') - ids[i] + 9 : len;

	for (size_t other = 0; other < n; other++)
		while (key < len && other != i && !strncmp(ids[i], ids[other], key))
			key++;
	return key < len ? key : len;
}

static int learned_print(const struct cmd *c, const struct args *a, struct err *e)
{
	struct table *t = table_new("ID|>RANKS|~PROGRAM|>RUNS|>LAST JOB|>DISTANCE|PATTERN|~STATE");
	json_t *all = json_array();
	char **ids, when[32];
	size_t n;
	int rc = learned_list(a->files.n > 1 ? a->files.list[1] : "", &ids, &n, e);

	if (!rc && !n && a->files.n > 1)
		rc = err_set(e, "%s: no learned matrix; see topiary matrix list", a->files.list[1]);
	for (size_t i = 0; i < n; i++) {
		const struct learned_run *last;
		struct learned l;
		struct err damaged = {""};
		bool missing;

		if (learned_read(ids[i], &l, &missing, &damaged)) {
			table_cell(t, "%s|%u|%s|0||||not used: %s", ids[i], (unsigned) strtoul(ids[i], NULL, 10),
				   *l.program ? l.program : "-", damaged.text);
			json_array_append_new(all, json_pack("{s:s, s:s}", "id", ids[i], "error", damaged.text));
			continue;
		}
		last = &l.run[l.nruns - 1];
		snprintf(when, sizeof(when), l.nruns > 1 ? "%.3f" : "", last->distance);
		table_cell(t, "%.*s|%u|%s|%u|%u|%s|%s|%s", short_id(ids, n, i), ids[i], l.matrix->ranks, l.program,
			   l.nruns, last->job, when, learned_pattern(l.matrix, l.pattern), state_of(&l));
		json_array_append_new(all, json_pack("{s:s, s:i, s:s, s:i, s:I, s:I, s:f, s:b, s:b, s:s}", "id", ids[i],
			"ranks", (int) l.matrix->ranks, "program", l.program, "runs", (int) l.nruns, "last_job",
			(json_int_t) last->job, "last_run", (json_int_t) last->at, "distance", last->distance, "used",
			 learned_is_stable(&l), "recorded", !learned_is_settled(&l),
			 "pattern", l.pattern));
		learned_free(&l);
	}
	for (size_t i = 0; i < n; i++)
		free(ids[i]);
	free(ids);
	if (rc || c->json) {
		table_free(t);
		if (!rc)
			return cmd_print_new(all, e);
		json_decref(all);
		return rc;
	}
	json_decref(all);
	return table_finish(t, e);
}

/* The only one that begins so, malloc'ed. */
static char *find_id(const char *word, struct err *e)
{
	char **ids, *only = NULL;
	size_t n;

	if (!*word) {
		err_set(e, "an empty word is no matrix; see topiary matrix list");
		return NULL;
	}
	if (learned_list(word, &ids, &n, e))
		return NULL;
	if (n == 1)
		only = ids[0];
	else if (!n && !access(word, F_OK))
		err_set(e, "%s: no learned matrix; topiary matrix show ./%s draws the file", word, word);
	else
		err_set(e, n ? "%s: %zu learned matrices begin so; see topiary matrix list" :
			"%s: no learned matrix; see topiary matrix list", word, n);
	for (size_t i = n == 1; i < n; i++)
		free(ids[i]);
	free(ids);
	return only;
}

static int find_learned(const char *word, struct learned *out, struct err *e)
{
	char *id = find_id(word, e);
	bool missing;
	int rc = id ? learned_read(id, out, &missing, e) : -1;

	free(id);
	return rc;
}

enum { BINS_MOST = 64 };

/* Ranks in rows and columns, at most BINS_MOST of each; a cell's shade is the root of its share of the heaviest. */
static int learned_show(const struct cmd *, const struct args *a, struct err *e)
{
	static const char *const shades[] = { " ", "░", "▒", "▓", "█" };
	static double heat[BINS_MOST][BINS_MOST];
	const char *word = a->files.list[1];
	struct learned l = {0};
	struct buf out = {0};
	bool svg = !strcmp(a->format, "svg");
	double most = 0, all = 0;
	unsigned bins;
	int rc = 0;

	if (!svg && strcmp(a->format, "mm"))
		return err_set(e, "--format=%s: show draws on the terminal, or with --format=svg", a->format);
	if (strchr(word, '/') ? !(l.matrix = matrix_read(word, e)) : find_learned(word, &l, e))
		return -1;
	bins = l.matrix->ranks < BINS_MOST ? l.matrix->ranks : BINS_MOST;
	for (unsigned r = 0; r < l.matrix->ranks; r++)
		for (size_t i = l.matrix->row[r]; i < l.matrix->row[r + 1]; i++) {
			unsigned row = (uint64_t) r * bins / l.matrix->ranks;
			unsigned column = (uint64_t) l.matrix->adj[i] * bins / l.matrix->ranks;
			double *cell = &heat[row][column];

			*cell += l.matrix->weight[i] / (row == column ? 2 : 1);
			all += l.matrix->weight[i] / 2;
			most = *cell > most ? *cell : most;
		}
	if (svg)
		buf_printf(&out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"512\" height=\"512\" "
			   "viewBox=\"0 0 %u %u\" fill=\"#b00020\">\n"
			   "<rect width=\"100%%\" height=\"100%%\" fill=\"#eee\"/>\n", bins, bins);
	else if (*l.id)
		buf_printf(&out, "%s: %s, %u run%s, %s\n", l.id, l.program, l.nruns, PLURAL(l.nruns), state_of(&l));
	for (unsigned row = 0; row < bins; row++) {
		for (unsigned column = 0; column < bins; column++) {
			double share = most > 0 ? sqrt(heat[row][column] / most) : 0;

			if (svg && share > 0)
				buf_printf(&out, "<rect x=\"%u\" y=\"%u\" width=\"1\" height=\"1\" "
					   "opacity=\"%.3f\"/>\n", column, row, share);
			else if (!svg)
				for (int twice = 0; twice < 2; twice++)
					buf_puts(&out, shades[(int) ceil(share * 4)]);
		}
		if (!svg)
			buf_puts(&out, "\n");
	}
	if (svg)
		buf_puts(&out, "</svg>\n");
	else
		buf_printf(&out, "%u ranks, %u a cell; the darkest: %.3g %% of all bytes; pattern: %s\n",
			   l.matrix->ranks, (l.matrix->ranks + bins - 1) / bins, all > 0 ? 100 * most / all : 0,
			   learned_pattern(l.matrix, l.pattern));
	rc = out.failed ? err_set(e, "out of memory") : cmd_write(a->output, &out, e);
	buf_free(&out);
	learned_free(&l);
	return rc;
}

static int learned_forget(const struct cmd *, const struct args *a, struct err *e)
{
	int rc = 0;

	for (int i = 1; i < a->files.n && !rc; i++) {
		char folder[PATH_MAX], path[2 * PATH_MAX], **ids = NULL;
		size_t n = 0;

		rc = learned_folder(folder, false, e);
		if (!rc && !strcmp(a->files.list[i], "all"))
			rc = learned_list("", &ids, &n, e);
		else if (!rc && (ids = calloc(1, sizeof(*ids))) && (ids[0] = find_id(a->files.list[i], e)))
			n = 1;
		else
			rc = -1;
		for (size_t one = 0; one < n; one++) {
			snprintf(path, sizeof(path), "%s/%s.mat", folder, ids[one]);
			if (!rc && unlink(path))
				rc = err_set(e, "%s: %s", path, strerror(errno));
			free(ids[one]);
		}
		free(ids);
	}
	return rc ? -1 : 0;
}

static int learned_export(const struct cmd *, const struct args *a, struct err *e)
{
	struct buf out = {0};
	struct learned l = {0};
	double scale = 1;
	int rc = find_learned(a->files.list[1], &l, e);

	rc = rc || matrix_write(l.matrix, a->format, &out, &scale, e) || cmd_write(a->output, &out, e) ? -1 : 0;
	buf_free(&out);
	learned_free(&l);
	return rc;
}

/* Does the recorder say of a program that it is not to be learned? Then *why has its words. */
static bool is_given_up(const char *folder, const char *key, struct err *why)
{
	struct buf text = {0};
	char path[PATH_MAX];
	bool found;

	snprintf(path, sizeof(path), "%.3900s/rank.%s.off", folder, key);
	found = !file_read(path, sizeof(why->text), &text, NULL);
	if (found)
		err_set(why, "%s", text.len ? text.data : "its ranks could not write why");
	buf_free(&text);
	return found;
}

/*
 * Records of a job's ranks, rank.KEY.RUN.RANK.prof, and the path of the program with that key, rank.KEY.program
 * (lib/capture): of each program its largest runs. A program that cannot be learned is a warning.
 */
static int learned_learn(const struct cmd *, const struct args *a, struct err *e)
{
	const char *folder = a->files.list[1], *tag = a->tag ? a->tag : "";
	DIR *dir = opendir(folder);
	unsigned programs = 0;
	struct dirent *d;

	if (!dir)
		return err_set(e, "%s: %s", folder, strerror(errno));
	while ((d = readdir(dir))) {
		char path[PATH_MAX], prefix[LEARNED_ID], found[LEARNED_KEY], key[LEARNED_KEY], id[LEARNED_ID];
		struct matrix *m = NULL;
		struct buf program = {0};
		unsigned missing = 0;
		struct stat st, now;
		int end = 0, rc;
		struct err why = {""};

		if (sscanf(d->d_name, "rank.%40[0-9a-z].program%n", found, &end) != 1 || !end || d->d_name[end])
			continue;
		programs++;
		snprintf(prefix, sizeof(prefix), "rank.%s.", found);
		snprintf(path, sizeof(path), "%s/%s", folder, d->d_name);
		rc = file_read(path, PATH_MAX, &program, &why) || lstat(path, &st) ? -1 : 0;
		if (!rc && !program.len)
			rc = err_set(&why, "its ranks could not write their records");
		rc = rc || is_given_up(folder, found, &why) || learned_key(program.data, tag, key, &why) ? -1 : 0;
		if (!rc && *found != 'x' && strcmp(key, found))
			rc = err_set(&why, "it was replaced while it ran");
		if (!rc && *found == 'x' && (stat(program.data, &now) || now.st_ctime > st.st_mtime))
			rc = err_set(&why, "it was replaced while it ran");
		if (!rc)
			rc = (m = read_folder(folder, prefix, &missing, &why)) ? 0 : -1;
		if (!rc && missing)
			rc = err_set(&why, "%u of %u ranks left no record", missing, m->ranks);
		/* Of one rank, or of ranks that exchange nothing, there is nothing to learn. */
		if (!rc && m->row[m->ranks]) {
			learned_id(m->ranks, tag, key, id);
			rc = learned_add(id, program.data, a->job, m, &why);
		}
		if (rc)
			log_warning("%s: not learned: %s", program.len ? program.data : path, why.text);
		matrix_free(m);
		buf_free(&program);
	}
	closedir(dir);
	/* A job may start no MPI program. */
	return programs || a->job ? 0 : err_set(e, "%s: no records of ranks: no file rank.KEY.program", folder);
}

int cmd_matrix(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = { .format = "mm", .seed = 1 };
	struct matrix_files files;
	struct matrix *m;
	struct buf out = {0};
	struct stat st;
	double scale = 1;
	int rc = 0;

	if (cmd_parse(c, &syntax, &a, argc, argv, e))
		return -1;
	if (a.verb)
		return a.verb->run(c, &a, e);
	files = (struct matrix_files){ .path = a.files.list, .n = a.files.n };
	if (a.rule)
		m = matrix_rule_make(a.rule, a.seed, e);
	else if (files.n == 1 && !stat(files.path[0], &st) && S_ISDIR(st.st_mode))
		m = read_folder(files.path[0], "", NULL, e);
	else
		m = matrix_sum(&files, e);
	if (!m)
		return -1;
	a.info |= c->json;
	if (a.info) {
		struct summary s = { .pairs = m->row[m->ranks] / 2 };

		for (unsigned r = 0; r < m->ranks; r++) {
			if (m->row[r + 1] - m->row[r] > s.most_partners)
				s.most_partners = m->row[r + 1] - m->row[r];
			for (size_t i = m->row[r]; i < m->row[r + 1]; i++)
				if (m->adj[i] > r) {
					s.bytes += m->weight[i];
					keep_heaviest(&s, (struct pair){ r, m->adj[i], m->weight[i] });
				}
		}
		rc = (c->json ? info_print_json : info_print_text)(m, &s, stdout, e);
	}
	if (rc == 0 && (a.output || !a.info)) {
		rc = matrix_write(m, a.format, &out, &scale, e);
		if (rc == 0)
			rc = cmd_write(a.output, &out, e);
		if (rc == 0 && scale != 1)
			log_warning("weights are divided by %.15g, because Scotch's are 31-bit integers", scale);
	}
	buf_free(&out);
	matrix_free(m);
	return rc;
}
