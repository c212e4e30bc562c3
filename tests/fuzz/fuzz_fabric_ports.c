/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#define BEGIN \
	"SW  1  1 0x0000000000000001 4x QDR - CA  2  1 0x0000000000000002 ( 's' - 'h HCA-1' )\n"
#include "fabric.h"
