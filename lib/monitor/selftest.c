/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/std.h"
#include "monitor/events.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define SLOTS 8u		/* general and fixed counters of any CPU, at most */
#define ROUNDS 500000u
#define SLACK 20000u		/* instructions: reading the counters, an interrupt's return */

/* ROUNDS times two instructions where we know the machine's; elsewhere at least one. */
static uint64_t loop_run(void)
{
	unsigned long rounds = ROUNDS;

#if defined(__x86_64__)
	__asm__ volatile("1: sub $1, %0\n\tjnz 1b" : "+r"(rounds) : : "cc");
	return 2 * (uint64_t) ROUNDS;
#elif defined(__aarch64__)
	__asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(rounds) : : "cc");
	return 2 * (uint64_t) ROUNDS;
#else
	for (volatile unsigned long i = 0; i < rounds; i++)
		;
	return ROUNDS;
#endif
}

const char *monitor_selftest_judge(const uint64_t *counts, size_t n, uint64_t least, char *text, size_t size)
{
	uint64_t low = UINT64_MAX, high = 0;

	for (size_t i = 0; i < n; i++) {
		low = counts[i] < low ? counts[i] : low;
		high = counts[i] > high ? counts[i] : high;
	}
	if (!n || (low >= least && high - low <= least / 100 + SLACK && high <= 20 * least))
		return NULL;
	snprintf(text, size, "%zu of one event gave %llu to %llu of at least %llu", n, (unsigned long long) low,
		 (unsigned long long) high, (unsigned long long) least);
	return text;
}

const char *monitor_selftest(void)
{
	static const char *wrong;
	static bool is_done;

	if (!is_done) {
		static char text[128];
		struct perf_event_attr a = {
			.size = sizeof(a),
			.type = PERF_TYPE_HARDWARE,
			.config = PERF_COUNT_HW_INSTRUCTIONS,
			.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
			.disabled = 1,
			.exclude_kernel = 1,
			.exclude_hv = 1,
		};
		uint64_t counts[SLOTS], least;
		int fds[SLOTS];
		size_t n = 0, open = 0;

		while (open < SLOTS &&
		       (fds[open] = syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)) >= 0)
			open++;
		for (size_t i = 0; i < open; i++)
			ioctl(fds[i], PERF_EVENT_IOC_ENABLE, 0);
		least = loop_run();
		for (size_t i = 0; i < open; i++)
			ioctl(fds[i], PERF_EVENT_IOC_DISABLE, 0);
		for (size_t i = 0; i < open; i++) {
			uint64_t now[3];	/* count, time enabled, time running */

			/* Those that found no counter, or had to share it, are not judged. */
			if (read(fds[i], now, sizeof(now)) == sizeof(now) && now[2] && now[1] == now[2])
				counts[n++] = now[0];
			close(fds[i]);
		}
		wrong = monitor_selftest_judge(counts, n, least, text, sizeof(text));
	}
	is_done = true;
	return wrong;
}
