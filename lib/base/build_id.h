/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <elf.h>
#include <sys/stat.h>

#include "base/std.h"

/*
 * The GNU build ID of a 64-bit ELF program, which the linker computes from its contents (ld(1), --build-id), in
 * hexadecimal; "" for any other file. All that the file says is bounded. For lib/capture, which links nothing, and the
 * command.
 */
enum { BUILD_ID_HEX = 41, BUILD_ID_SEGMENTS = 64, BUILD_ID_NOTES = 4096 };

static inline const char *build_id_read(const char *path, char hex[static BUILD_ID_HEX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	Elf64_Phdr segment;
	Elf64_Ehdr head;
	struct stat st;

	*hex = '\0';
	if (fd < 0)
		return hex;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64)
		head.e_phnum = 0;
	for (unsigned i = 0; i < head.e_phnum && i < BUILD_ID_SEGMENTS && !*hex; i++) {
		unsigned char notes[BUILD_ID_NOTES];
		ssize_t n = 0;

		if (pread(fd, &segment, sizeof(segment), head.e_phoff + i * sizeof(segment)) == sizeof(segment) &&
		    segment.p_type == PT_NOTE)
			n = pread(fd, notes, segment.p_filesz < sizeof(notes) ? segment.p_filesz : sizeof(notes),
				  segment.p_offset);
		for (size_t at = 0; n > 0 && at + sizeof(Elf64_Nhdr) + 4 <= (size_t) n && !*hex;) {
			Elf64_Nhdr note;
			size_t id, next;

			memcpy(&note, notes + at, sizeof(note));
			id = at + sizeof(note) + ((size_t) note.n_namesz + 3) / 4 * 4;
			next = id + ((size_t) note.n_descsz + 3) / 4 * 4;
			if (next <= (size_t) n && note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
			    !memcmp(notes + at + sizeof(note), "GNU", 4) && note.n_descsz >= 8)
				for (unsigned b = 0; b < note.n_descsz && b < (BUILD_ID_HEX - 1) / 2; b++)
					sprintf(hex + 2 * b, "%02x", notes[id + b]);
			at = next;
		}
	}
	close(fd);
	return hex;
}
