/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdio.h>

#include "base/array.h"
#include "monitor/events.h"

int monitor_events_head(const struct monitor_event *const *events, unsigned n, struct trace_head *h, struct err *e)
{
	struct trace_event *all = array_append(h->events, h->nevents, n);

	if (!all)
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < n; i++) {
		all[i].level = trace_head_level(h, "PU");
		snprintf(all[i].name, sizeof(all[i].name), "%s", events[i]->name);
		snprintf(all[i].unit, sizeof(all[i].unit), "%s", events[i]->unit);
	}
	return 0;
}
