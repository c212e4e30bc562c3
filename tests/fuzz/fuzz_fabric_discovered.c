/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#define BEGIN "Switch\t2 \"S-0000000000000001\"\t\t# \"s\" base port 0 lid 1 lmc 0\n"
#include "fabric.h"
