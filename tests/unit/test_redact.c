/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "table.h"
#include "hwxml/redact.h"

#define A "<info name=\"DMIProductSerial\" value=\"S1\"/>"
#define B "<info name=\"DMIProductUUID\" value=\"a>b\"/>"
#define KEPT "<info name=\"HostName\" value=\"DMIProductSerial\"/>"

TEST(removes_what_root_alone_sees)
{
	static const struct {
		const char *from, *to;
	} rows[] = {
		{ "", "" },
		{ "x", "x" },
		{ KEPT, KEPT },
		{ A, "" },
		{ "  <a>\n    " A "\n    " B "\n    " KEPT "\n  </a>\n", "  <a>\n    " KEPT "\n  </a>\n" },
		{ "  <a>\n    " KEPT "\n    " A "\n  </a>\n", "  <a>\n    " KEPT "\n  </a>\n" },
		{ "<a>" A KEPT B "</a>", "<a>" KEPT "</a>" },
		{ "<a " KEPT, "<a " KEPT },
		{ "<info value='S1' name='DMIBoardSerial'/>y", "y" },
		{ "<info\n  name = \"DMIBoardSerial\" value=\"S1\" ></info>y", "y" },
		{ "<info name=\"SerialNumber\" value=\"S1\"/>y", "y" },
		{ "<info name=\"AssetTag\" value=\"S1\"/>y", "y" },
		{ "<info name=\"DMIBoardAssetTag\" value=\"1\"/>", "<info name=\"DMIBoardAssetTag\" value=\"1\"/>" },
		{ "<info name=\"NVIDIAUUID\" value=\"1\"/>", "<info name=\"NVIDIAUUID\" value=\"1\"/>" },
		{ "<infos name=\"DMIBoardSerial\" value=\"1\"/>", "<infos name=\"DMIBoardSerial\" value=\"1\"/>" },
		{ "<info name=\"DMIBoardSerial", "<info name=\"DMIBoardSerial" },
		{ "<info name", "<info name" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf out = {0};

		redact_xml(rows[i].from, strlen(rows[i].from), &out);
		if (out.failed || strcmp(out.data, rows[i].to))
			fail_msg("row %zu: %s", i, out.data);
	}
}

TESTS_MAIN(NULL, NULL)
