/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "fabric/read/readers.h"
#include "fabric/read/slurm_parts.h"

/* One line of topology.conf(5), its values in place. */
static const struct {
	const char *key;
	size_t offset;
} keys[] = {
	{ "SwitchName", offsetof(struct slurm_record, name) }, { "Switches", offsetof(struct slurm_record, switches) },
	{ "Nodes", offsetof(struct slurm_record, nodes) }, { "LinkSpeed", offsetof(struct slurm_record, speed) },
	{ "BlockName", offsetof(struct slurm_record, block) }, { "BlockSizes", offsetof(struct slurm_record, sizes) },
	{ "RingName", offsetof(struct slurm_record, ring) },
};

static char **field_of(struct slurm_record *r, const char *key, size_t len)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strlen(keys[i].key) == len && !strncasecmp(keys[i].key, key, len))
			return (char **) ((char *) r + keys[i].offset);
	return NULL;
}

static int read_record(struct slurm *s, char *line)
{
	struct slurm_record r = {0};
	char *word;

	while ((word = lines_word_next(&line))) {
		size_t len = strcspn(word, "=");
		char **field = field_of(&r, word, len), *end;

		if (!strcasecmp(word, "Include"))
			return lines_wrong(s->lines, "Include is not followed: name the included file instead");
		if (!word[len] || !word[len + 1])
			return lines_wrong(s->lines, "'%.60s': expected Key=Value", word);
		if (!field)
			return lines_wrong(s->lines, "%.*s: unknown key", (int) (len < 60 ? len : 60), word);
		if (*field)
			return lines_wrong(s->lines, "%.*s: duplicate key", (int) len, word);
		*field = word + len + 1;
		end = *field + strlen(*field);
		if (**field == '"' && end > *field + 1 && end[-1] == '"') {
			end[-1] = '\0';
			++*field;
		}
	}
	return slurm_add(s, &r);
}

/* The next record: a line without its comment, and its continuations after '\'. NULL: the end, or s->lines->err. */
static char *record_next(struct slurm *s)
{
	char *line = lines_next(s->lines), *more;
	size_t len;

	if (!line)
		return NULL;
	line[strcspn(line, "#")] = '\0';
	while ((len = strlen(line)) && line[len - 1] == '\\') {
		line[len - 1] = '\0';
		more = s->lines->at;	/* with the blanks in front, as Slurm joins them: a list goes on without */
		if (!lines_next(s->lines))
			break;
		more[strcspn(more, "#")] = '\0';
		memmove(line + len - 1, more, strlen(more) + 1);
	}
	return line;
}

int read_slurm(struct lines *l, struct fabric_draft *m)
{
	struct slurm s = { .lines = l, .draft = m };
	char *record;
	int rc = 0;

	while (rc == 0 && (record = record_next(&s)))
		if (*record)
			rc = read_record(&s, record);
	return slurm_end(&s, rc);
}
