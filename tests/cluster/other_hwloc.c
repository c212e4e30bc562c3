/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors
 *
 * LD_PRELOAD: a slurmstepd that is linked with the next major version of hwloc.
 */
#include <hwloc.h>

unsigned hwloc_get_api_version(void)
{
	return ((HWLOC_API_VERSION >> 16) + 1) << 16;
}
