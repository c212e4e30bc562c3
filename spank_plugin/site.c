/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "site.h"

#include <string.h>

#include "base/settings.h"
#include "options.h"

static const struct {
	const char *key, *option;
	size_t field;		/* of struct settings */
} rows[] = {
	{ "TopoPlace", "topo-place", offsetof(struct settings, topo_place) },
	{ "TopoMembind", "topo-membind", offsetof(struct settings, topo_membind) },
	{ "TopoOmp", "topo-omp", offsetof(struct settings, topo_omp) },
	{ "TopoNic", "topo-nic", offsetof(struct settings, topo_nic) },
};

static const char *config_of(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], "config=", 7))
			return argv[i] + 7;
	return NULL;
}

int site_defaults(spank_t sp, int argc, char **argv)
{
	struct settings s;
	struct err e;

	(void) sp;
	/* step_open reads it again, and says what is wrong with it. */
	if (settings_load(config_of(argc, argv), &s, NULL))
		return 0;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *value = *(char **) ((char *) &s + rows[i].field);

		if (bind_request_set(&options.bind, rows[i].option, value, &e))
			slurm_error("topiary: %s in topiary.conf is ignored: %s", rows[i].key, e.text);
	}
	settings_free(&s);
	return 0;
}
