/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/buf.h"
#include "made.h"
#include "map/places/places.h"
#include "map/rankfile/rankfile.h"

/* Core i of every node has PUs i and i + 16, but on cn2, where they are 2i and 2i + 1. */
static struct numbers *numbers(unsigned host)
{
	struct numbers *n = calloc(1, sizeof(*n));

	n->cores = 8;
	n->first = calloc(9, sizeof(unsigned));
	n->pu = calloc(16, sizeof(unsigned));
	for (unsigned i = 0; i < 8; i++) {
		n->first[i + 1] = 2 * i + 2;
		n->pu[2 * i] = host == 2 ? 2 * i : i;
		n->pu[2 * i + 1] = host == 2 ? 2 * i + 1 : i + 16;
	}
	return n;
}

struct row {
	const char *format, *cores;
	unsigned cpus;			/* of a place */
	unsigned n, place[8];		/* each rank's; the nodes' places count on from node to node */
	const char *file, *env;		/* NULL: what is wrong, is `says` */
	const char *says;
};

static const struct row rows[] = {
	{ "plain", "1-2,5", 2, 4, { 3, 1, 0, 5 }, "0 cn1 0\n1 cn0 1\n2 cn0 0\n3 cn1 2\n", "", NULL },
	{ "openmpi", "1-2,5", 2, 4, { 3, 1, 0, 5 },
	  "rank 0=cn1 slot=0\nrank 1=cn0 slot=1\nrank 2=cn0 slot=0\nrank 3=cn1 slot=2\n",
	  "OMPI_MCA_rmaps_rank_file_path=/f\n", NULL },
	{ "openmpi-seq", "1-2,5", 2, 4, { 3, 1, 0, 5 }, "cn1 0\ncn0 1\ncn0 0\ncn1 2\n",
	  "OMPI_MCA_rmaps_base_mapping_policy=seq\nOMPI_MCA_orte_default_hostfile=/f\n", NULL },
	{ "openmpi-seq", "2-5", 4, 2, { 3, 0 }, "cn1 2,3\ncn0 0,1\n",
	  "OMPI_MCA_rmaps_base_mapping_policy=seq\nOMPI_MCA_orte_default_hostfile=/f\n", NULL },
	{ "openmpi5", "2-5", 4, 2, { 3, 0 }, "rank 0=cn1 slot=2,3\nrank 1=cn0 slot=0,1\n", "", NULL },
	/* Runs on one host are a line, and never two of them, which Hydra would take for one. */
	{ "mpich", "1-2,5", 2, 4, { 3, 1, 0, 5 }, "cn1:1 binding=user:1+17\ncn0:2 binding=user:2+18,1+17\n"
	  "cn1:1 binding=user:5+21\n", "HYDRA_HOST_FILE=/f\n", NULL },
	{ "mpich", "0-7", 4, 2, { 1, 8 }, "cn0:1 binding=user:2+18+3+19\ncn2:1 binding=user:0+1+2+3\n",
	  "HYDRA_HOST_FILE=/f\n", NULL },
	{ "intelmpi", "1-2,5", 2, 4, { 1, 4, 0, 3 }, "cn0:1\ncn1:1\ncn0:1\ncn1:1\n",
	  "I_MPI_PIN_DOMAIN=[0x40004,0x20002]\n", NULL },
	{ "intelmpi", "1-2,5", 2, 3, { 1, 4, 3 }, NULL, NULL,
	  "intelmpi: one list of CPUs serves all hosts, but 1 of the ranks are on cn0 "
	  "and 2 on cn1" },
	{ "intelmpi", "1-2,5", 2, 4, { 3, 1, 0, 5 }, NULL, NULL,
	  "intelmpi: one list of CPUs serves all hosts, but rank 0 on cn1 and rank "
	  "1 on cn0, each the host's rank 0, have different ones" },
	/* The same core has other numbers there. */
	{ "intelmpi", "1-2,5", 2, 2, { 0, 6 }, NULL, NULL,
	  "intelmpi: one list of CPUs serves all hosts, but rank 1 on cn2 and rank "
	  "0 on cn0, each the host's rank 0, have different ones" },
	{ "mvapich2", "1-2,5", 2, 3, { 1, 4, 0 }, "cn0\ncn1\ncn0\n",
	  "HYDRA_HOST_FILE=/f\nMV2_ENABLE_AFFINITY=1\nMV2_CPU_MAPPING=2,18:1,17\n", NULL },
	{ "mvapich2", "1-2,5", 2, 4, { 3, 1, 0, 5 }, NULL, NULL,
	  "mvapich2: one list of CPUs serves all hosts, but rank 0 on cn1 and rank "
	  "1 on cn0, each the host's rank 0, have different ones" },
	{ "cray", "1-2,5", 2, 4, { 3, 1, 0, 5 }, "2,1\n0,3\n", "MPICH_RANK_REORDER_METHOD=3\n"
	  "MPICH_RANK_REORDER_FILE=/f\n", NULL },
	{ "srun", "1-2,5", 2, 4, { 3, 1, 0, 5 }, "cn1\ncn0\ncn0\ncn1\n", "SLURM_HOSTFILE=/f\n"
	  "SLURM_DISTRIBUTION=arbitrary\nTOPIARY_HOSTFILE=/f\nTOPIARY_PLACES=cn0:1,0/cn1:0,2\n", NULL },
	{ "srun", "0-7", 6, 2, { 1, 0 }, "cn0\ncn0\n", "SLURM_HOSTFILE=/f\nSLURM_DISTRIBUTION=arbitrary\n"
	  "TOPIARY_HOSTFILE=/f\nTOPIARY_PLACES=cn0:4-6,0-2\n", NULL },
	{ "lam", "0", 2, 1, { 0 }, NULL, NULL, "lam: unknown rank file format; expected one of: plain, openmpi,"
	  " openmpi-seq, openmpi5, mpich, intelmpi, mvapich2, cray, srun" },
};

static struct places *nodes(const struct row *row)
{
	struct places *p = places_new();

	p->numbers = calloc(4, sizeof(*p->numbers));
	for (unsigned h = 0; h < 3; h++) {
		char name[8];

		snprintf(name, sizeof(name), "cn%u", h);
		add(p, name, "Package:2 Core:4 PU:2", row->cores, row->cpus);
		p->numbers[h] = numbers(h);
	}
	return p;
}

static void check(const struct row *row, int rc, const struct buf *told, const char *wanted, const struct err *e)
{
	if (rc != (wanted ? 0 : -1) || strcmp(wanted ? wanted : row->says, rc ? e->text : told->data ? told->data : ""))
		fail_msg("%s: not\n%sbut\n%s", row->format, wanted ? wanted : row->says, rc ? e->text : told->data);
}

TEST(writes_what_launchers_read)
{
	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(places_free) struct places *p = nodes(&rows[i]);
		unsigned place[8];
		struct mapping m = { .ranks = rows[i].n, .place = memcpy(place, rows[i].place, sizeof(place)) };
		FREED(buf_free) struct buf file = {0}, env = {0};

		check(&rows[i], rankfile_write(rows[i].format, p, &m, &file, &err), &file, rows[i].file, &err);
		check(&rows[i], rankfile_env(rows[i].format, p, &m, "/f", &env, &err), &env, rows[i].env, &err);
	}
}

TEST(wants_numbers)
{
	OWNED(places_free) struct places *p = places_of(2, "Core:4", NULL);
	unsigned place[] = { 0, 4 };
	struct mapping m = { .ranks = 2, .place = place };
	FREED(buf_free) struct buf text = {0};
	struct err e = {""};

	assert_true(rankfile_wants_numbers("mpich"));
	assert_false(rankfile_wants_numbers("srun"));
	assert_int_equal(rankfile_write("mpich", p, &m, &text, &e), -1);
	assert_string_equal(e.text, "format mpich needs the OS CPU numbers of cn0, which are not known");
	p->numbers = calloc(3, sizeof(*p->numbers));
	p->numbers[0] = calloc(1, sizeof(struct numbers));
	p->numbers[1] = numbers(1);
	assert_int_equal(rankfile_write("mpich", p, &m, &text, &e), -1);
	assert_string_equal(e.text, "cn0 has 0 cores, no core 0");
}

/* 4000 ranks of five digits and a comma. */
TEST(limits_the_length_of_lines)
{
	enum { RANKS = 4000 };
	OWNED(places_free) struct places *p = places_of(1, "Core:4000", NULL);
	struct numbers *n = calloc(1, sizeof(*n));
	struct mapping m = { .ranks = RANKS, .place = calloc(RANKS, sizeof(unsigned)) };
	FREED(buf_free) struct buf text = {0};
	struct err e = {""};

	n->cores = RANKS;
	n->first = calloc(RANKS + 1, sizeof(unsigned));
	n->pu = calloc(RANKS, sizeof(unsigned));
	for (unsigned i = 0; i < RANKS; i++) {
		m.place[i] = n->first[i] = i;
		n->pu[i] = 10000 + i;
	}
	n->first[RANKS] = RANKS;
	p->numbers = calloc(2, sizeof(*p->numbers));
	p->numbers[0] = n;
	assert_int_equal(rankfile_write("mpich", p, &m, &text, &e), -1);
	assert_string_equal(e.text, "mpich: ranks 0 to 3999, side by side on cn0, need a line longer than the 16000"
			    " bytes that Hydra reads");
	assert_int_equal(text.len, 0);
	m.ranks = 2600;
	assert_int_equal(rankfile_write("mpich", p, &m, &text, &e), 0);
	free(m.place);
}

TEST(leaves_out_more_places_than_a_variable_holds)
{
	enum { RANKS = 30000 };
	OWNED(places_free) struct places *p = places_of(1, "Core:30000", NULL);
	struct mapping m = { .ranks = RANKS, .place = calloc(RANKS, sizeof(unsigned)) };
	FREED(buf_free) struct buf text = {0};

	for (unsigned i = 0; i < RANKS; i++)
		m.place[i] = i;
	assert_int_equal(rankfile_env("srun", p, &m, "/f", &text, NULL), 0);
	assert_null(strstr(text.data, "TOPIARY_PLACES"));
	assert_non_null(strstr(text.data, "TOPIARY_HOSTFILE=/f\n"));
	free(m.place);
}

TESTS_MAIN(NULL, NULL)
