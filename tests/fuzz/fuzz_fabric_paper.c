/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#define BEGIN "tree 2 2 10 1 1\n"
#include "fabric.h"
