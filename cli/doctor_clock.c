/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>

#include "doctor.h"

#define MUNGE_TTL 300 /* seconds that a credential is valid for: MUNGE_DEFAULT_TTL of munged */

time_t doctor_seconds(const char *text, bool utc)
{
	struct tm tm = { .tm_isdst = -1 };

	if (!strptime(text, "%Y-%m-%dT%H:%M:%S", &tm))
		return 0;
	return utc ? timegm(&tm) : mktime(&tm);
}

void doctor_compare_clock(struct doctor *d, const char *whose, time_t theirs)
{
	long ahead = (long) (time(NULL) - theirs);

	if (!theirs)
		return;
	if (labs(ahead) > DOCTOR_CLOCK_LIMIT)
		doctor_add(d, labs(ahead) >= MUNGE_TTL ? DOCTOR_ERROR : DOCTOR_WARNING,
			   "synchronise the clocks (chrony, NTP): munge rejects credentials from 300 s on",
			   "the clock of %s is %ld s %s %s's", d->host, labs(ahead), ahead > 0 ? "ahead of" : "behind",
			   whose);
	else
		doctor_add(d, DOCTOR_OK, NULL, "the clock differs by %ld s from %s's", labs(ahead), whose);
}
