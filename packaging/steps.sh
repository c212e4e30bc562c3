# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
#
# For the scripts here, which name themselves in $me and their log in $log: work in steps, one line each.

fail() {
	echo "$me: $1" >&2
	test ! -s "$log" || echo "$me: the log is $log" >&2
	exit 1
}

# step TEXT FUNCTION ARGUMENTS...: one line, its time, and on failure the reason
step() {
	text=$1
	shift
	began=$(date +%s)
	printf '%s: %s ... ' "$me" "$text"
	echo "=== $text" >>"$log"
	# Not in a condition: there, set -e would not hold.
	set +e
	(set -e; "$@") >>"$log" 2>&1
	status=$?
	set -e
	if test "$status" -ne 0; then
		echo failed
		fail "$text: $(grep -v '^$' "$log" | tail -n 1)"
	fi
	echo "done ($(($(date +%s) - began)) s)"
}

# list FILE: its lines without comments
list() {
	sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$1"
}
