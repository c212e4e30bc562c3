/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
#define ARCH AUDIT_ARCH_PPC64LE
#elif defined(__s390x__)
#define ARCH AUDIT_ARCH_S390X
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCH AUDIT_ARCH_RISCV64
#else
#error "confine.c: unknown architecture: add its AUDIT_ARCH_ of <linux/audit.h>"
#endif

static const int allowed[] = {
	SYS_read, SYS_write, SYS_pread64, SYS_pwrite64, SYS_lseek, SYS_ftruncate, SYS_fallocate, SYS_close, SYS_mmap,
		SYS_munmap,
	SYS_mremap, SYS_mprotect, SYS_madvise, SYS_brk, SYS_futex, SYS_getrandom, SYS_clock_gettime, SYS_sysinfo,
		SYS_exit,
	SYS_exit_group,
#ifdef __SANITIZE_ADDRESS__	/* it looks for an alternate stack when a process ends */
	SYS_sigaltstack,
#endif
};

enum { ALLOWED = sizeof(allowed) / sizeof(*allowed), HEAD = 4 };

static int drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
	       syscall(SYS_capset, &head, none) ? -1 : 0;
}

/* Written by hand: libseccomp 2.5 never returns when an allocation fails. */
static int filter_calls(void)
{
	struct sock_filter code[HEAD + ALLOWED + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	for (int i = 0; i < ALLOWED; i++)
		code[HEAD + i] = (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], ALLOWED - i, 0);
	code[HEAD + ALLOWED] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES);
	code[HEAD + ALLOWED + 1] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int confine_self(struct err *e)
{
	prctl(PR_SET_NAME, "topiary-image");
	return drop_capabilities() || filter_calls() ?
	       err_set(e, "the process that restricts the topology cannot be sandboxed: %s", strerror(errno)) : 0;
}
