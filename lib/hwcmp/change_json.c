/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <jansson.h>

#include "hwcmp/compare.h"

json_t *change_to_json(const struct change *c)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "severity", severity_name(c->severity), "direction",
			 change_direction_name(c->direction), "object", c->object, "what", c->what, "from", c->from,
			 "to", c->to, "words", c->words);
}
