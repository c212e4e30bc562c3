/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "openapi.h"

__asm__(".section .rodata\n"
	"openapi_begin:\n"
	".incbin \"docs/openapi.yaml\"\n"
	"openapi_end:\n"
	".previous\n");
extern const char openapi_begin[], openapi_end[];

void read_openapi(struct call *c)
{
	struct buf text = {0};

	buf_add(&text, openapi_begin, openapi_end - openapi_begin);
	call_body(c, "application/yaml", &text);
}
