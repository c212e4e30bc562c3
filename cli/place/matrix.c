/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <ctype.h>
#include <dirent.h>
#include <sys/stat.h>

#include "base/log.h"
#include "cmd.h"
#include "matrix_rule.h"

struct args {
	const char *format, *output, *rule;
	uint64_t seed;
	bool info;
	struct cmd_words files;
};

static const struct cmd_option options[] = {
	{ "format", 0, "NAME", CMD_TEXT(format),
	  "Output format: mm (Matrix Market, default), dense (text) or grf (Scotch)" },
	{ "output", 'o', "FILE", CMD_TEXT(output), "Write the matrix to FILE, atomically" },
	{ "info", 0, NULL, CMD_FLAG(info),
	  "Print the number of ranks and pairs, bytes, and the heaviest pairs; write the matrix only with -o" },
	{ "generate", 0, "RULE", CMD_TEXT(rule), "Generate a matrix: stencil2d:XxY[:5|9], stencil3d:XxYxZ[:7|27], "
	  "pencils:XxY, ring:N, random:N or powerlaw:N" },
	{ "seed", 0, "N", CMD_NUMBER(seed, 0, UINT64_MAX),
	  "Random seed; equal seeds give equal matrices (default: 1)" },
	{0},
};

static void check_together(void *args, struct argp_state *state)
{
	const struct args *a = args;

	if (a->rule && a->files.n)
		argp_error(state, "--generate and FILE exclude each other");
	if (!a->rule && !a->files.n)
		argp_error(state, "at least one FILE is required");
}

static const struct cmd_syntax syntax = {
	options, "FILE...",
	"Read communication matrices, add them up, convert them. A directory stands for the "
	".prof files of the largest run in it, or of all runs of that size.",
	CMD_WORDS(files), NULL, check_together,
};

static int is_prof(const struct dirent *d)
{
	size_t len = strlen(d->d_name);

	return *d->d_name != '.' && len > 5 && !strcmp(d->d_name + len - 5, ".prof");
}

/* The paths of the .prof files by rank, *n of them, to be freed by the caller; NULL on error. */
static char **folder_paths(const char *folder, size_t *n, struct err *e)
{
	struct dirent **found;
	int count = scandir(folder, &found, is_prof, versionsort);
	char **paths = count > 0 ? calloc(count, sizeof(*paths)) : NULL;
	bool failed = !paths;

	if (count < 0)
		err_set(e, "%s: %s", folder, strerror(errno));
	else if (!count)
		err_set(e, "%s: no .prof file in this directory", folder);
	for (int i = 0; i < count; i++) {
		failed = failed || asprintf(&paths[i], "%s/%s", folder, found[i]->d_name) < 0;
		free(found[i]);
	}
	if (count >= 0)
		free(found);
	if (count > 0 && failed)
		err_set(e, "%s: out of memory", folder);
	*n = failed ? 0 : count;
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

static struct matrix *read_folder(const char *folder, struct err *e)
{
	struct matrix_files files = { .largest = true };
	struct matrix *m = NULL;

	files.path = folder_paths(folder, &files.n, e);
	if (files.path && !(files.used = calloc(files.n, sizeof(*files.used))))
		err_set(e, "%s: out of memory", folder);
	else if (files.path && (m = matrix_sum(&files, e))) {
		unsigned recorded = count_ranks(&files, m->ranks);
		size_t left_out = 0;

		for (size_t i = 0; i < files.n; i++)
			left_out += !files.used[i];
		if (left_out)
			log_warning("%s: ignored %zu file%s of smaller runs", folder, left_out,
				    PLURAL(left_out));
		if (recorded < m->ranks)
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

static int matrix_print_info(const struct matrix *m, bool json, struct err *e)
{
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
	return (json ? info_print_json : info_print_text)(m, &s, stdout, e);
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
	files = (struct matrix_files){ .path = a.files.list, .n = a.files.n };
	if (a.rule)
		m = matrix_rule_make(a.rule, a.seed, e);
	else if (files.n == 1 && !stat(files.path[0], &st) && S_ISDIR(st.st_mode))
		m = read_folder(files.path[0], e);
	else
		m = matrix_sum(&files, e);
	if (!m)
		return -1;
	a.info |= c->json;
	if (a.info)
		rc = matrix_print_info(m, c->json, e);
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
