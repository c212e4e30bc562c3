/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "site.h"

#include <stddef.h>

#include "options.h"
#include "step.h"

static const struct {
	const char *key, *option;
	size_t field;		/* of struct settings */
} rows[] = {
	{ "TopoPlace", "topo-place", offsetof(struct settings, topo_place) },
	{ "TopoMembind", "topo-membind", offsetof(struct settings, topo_membind) },
	{ "TopoOmp", "topo-omp", offsetof(struct settings, topo_omp) },
	{ "TopoNic", "topo-nic", offsetof(struct settings, topo_nic) },
};

int site_defaults(spank_t sp, int argc, char **argv)
{
	struct err e;

	(void) sp;
	/* step_open tries again, and says what is wrong. */
	if (step_configure(argc, argv, NULL))
		return 0;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *value = *(char **) ((char *) &step.settings + rows[i].field);

		if (bind_request_set(&options.bind, rows[i].option, value, &e))
			slurm_error("topiary: %s in topiary.conf is ignored: %s", rows[i].key, e.text);
	}
	return 0;
}
