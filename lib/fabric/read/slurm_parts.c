/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/read/slurm_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "fabric/recognise/grid.h"

/* The lines where an end was defined and first referred to; 0: never. */
struct mention {
	unsigned defined, used;
};

static struct mention *mention_of(struct slurm *s, unsigned end)
{
	while (end >= s->nmentions)
		if (!array_add(s->mentions, s->nmentions))
			return NULL;
	return &s->mentions[end];
}

static int add_child(struct slurm *s, enum draft_end_kind kind, const char *name)
{
	int end = draft_end(s->draft, kind, name);
	struct mention *mention = end < 0 ? NULL : mention_of(s, end);

	if (!mention || draft_cable(s->draft, s->parent, 0, end, 0, 0))
		return lines_wrong(s->lines, "out of memory");
	if (!mention->used)
		mention->used = s->lines->line;
	return 0;
}

static int add_host(const char *name, void *user)
{
	return add_child(user, END_HOST, name);
}

static int add_switch(const char *name, void *user)
{
	return add_child(user, END_SWITCH, name);
}

/* Errors of draft_each do not name the line; ours do. */
static int add_children(struct slurm *s, const char *list, int (*add)(const char *name, void *user))
{
	struct err *e = s->lines->err, own = {""};

	if (!list)
		return 0;
	if (e)
		e->text[0] = '\0';
	if (draft_each(s->draft, list, add, s, &own) == 0)
		return 0;
	return e && e->text[0] ? -1 : lines_wrong(s->lines, "%s", own.text);
}

static int switch_define(struct slurm *s, const char *name)
{
	int end = draft_end(s->draft, END_SWITCH, name);
	struct mention *mention = end < 0 ? NULL : mention_of(s, end);

	if (!mention)
		return lines_wrong(s->lines, "out of memory");
	if (mention->defined)
		return lines_wrong(s->lines, "%.100s: already defined in line %u", name, mention->defined);
	mention->defined = s->lines->line;
	s->parent = end;
	return 0;
}

static int add_block(struct slurm *s)
{
	if (array_reserve(s->blocks, s->nblocks, 1))
		return lines_wrong(s->lines, "out of memory");
	s->blocks[s->nblocks++] = s->parent;
	return 0;
}

static int read_sizes(struct slurm *s, char *list)
{
	char *save = NULL;

	for (char *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		unsigned last = s->nsizes ? s->sizes[s->nsizes - 1] : 0, size;

		if (!lines_word_number(word, 1u << 24, &size) || size <= last || (last && size % last))
			return lines_wrong(s->lines, "BlockSizes: '%.40s': not a multiple of the previous size", word);
		if (s->nsizes == SLURM_BLOCK_SIZES)
			return lines_wrong(s->lines, "BlockSizes: more than %u sizes", SLURM_BLOCK_SIZES);
		s->sizes[s->nsizes++] = size;
	}
	return 0;
}

int slurm_add(struct slurm *s, const struct slurm_record *r)
{
	if (r->sizes)
		return read_sizes(s, r->sizes);
	if (r->ring && r->nodes && !r->name && !r->block && !r->switches)
		return grid_ring(s->lines, s->draft, r->ring, r->nodes);
	if (r->ring)
		return lines_wrong(s->lines, "a ring has Nodes only");
	if (!r->name == !r->block)
		return lines_wrong(s->lines, "missing SwitchName or BlockName");
	if (r->block && r->switches)
		return lines_wrong(s->lines, "a block has Nodes, not Switches");
	if (switch_define(s, r->name ? r->name : r->block) || (r->block && add_block(s)))
		return -1;
	return add_children(s, r->switches, add_switch) || add_children(s, r->nodes, add_host) ? -1 : 0;
}

static int check_defined(struct slurm *s)
{
	for (unsigned i = 0; i < s->nmentions; i++)
		if (s->mentions[i].used && !s->mentions[i].defined && draft_is_switch(s->draft, i)) {
			s->lines->line = s->mentions[i].used;
			return lines_wrong(s->lines, "%.100s: undefined switch", draft_key(s->draft, i));
		}
	return 0;
}

/* Joins blocks: as many in a row as make the next size, and all under one; a switch for each. */
static int join_blocks(struct slurm *s)
{
	for (unsigned level = 1; s->nblocks > 1 && level <= s->nsizes; level++) {
		bool top = level == s->nsizes;
		unsigned each = top ? s->nblocks : s->sizes[level] / s->sizes[level - 1], n = 0;

		for (unsigned i = 0; i < s->nblocks; i++) {
			char name[48];
			int end;

			snprintf(name, sizeof(name), top ? "blocks" : "blocks%u-%u", top ? 0 : s->sizes[level],
				 i / each);
			end = draft_end(s->draft, END_SWITCH, name);
			if (end < 0 || draft_cable(s->draft, end, 0, s->blocks[i], 0, 0))
				return lines_wrong(s->lines, "out of memory");
			if (i % each == 0)
				s->blocks[n++] = end;
		}
		s->nblocks = n;
	}
	return 0;
}

int slurm_end(struct slurm *s, int rc)
{
	if (rc == 0)
		rc = check_defined(s);
	if (rc == 0 && s->nblocks && !s->nsizes)
		s->nsizes = 1;
	if (rc == 0)
		rc = join_blocks(s);
	free(s->mentions);
	free(s->blocks);
	return rc;
}
