# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
#
# For the scripts here: a minimal Debian in a folder, by this machine's own way to its mirror. $VERSION_CODENAME is this machine's suite.

# The address of Debian that this machine's own apt uses.
mirror() {
	apt-get update --print-uris | sed -n "s|^'\(.*\)/dists/${VERSION_CODENAME:-stable}/InRelease'.*|\1|p" | head -n 1
}

# bootstrap SUITE ROOT
bootstrap() {
	from=$(mirror)
	test -n "$from" || {
		echo "this machine's apt names no mirror of Debian"
		return 1
	}
	rm -rf --one-file-system "$2.new"
	debootstrap --variant=minbase "$1" "$2.new" "$from" "$(script)"
	configure_apt "$2.new"
	# Whole only under its own name.
	mv "$2.new" "$2"
}

# All suites of Debian share one script, and an older debootstrap need not know a newer suite's name.
script() {
	echo "${DEBOOTSTRAP_DIR:-/usr/share/debootstrap}/scripts/sid"
}

# How this machine reaches its mirror; what nobody reads there is left out, and nothing waits for the disk.
configure_apt() {
	apt-config dump | grep '^Acquire::' | grep -v '^Acquire::IndexTargets' >"$1/etc/apt/apt.conf.d/00machine"
	for file in /etc/apt/auth.conf /etc/apt/auth.conf.d /etc/ssl/certs/ca-certificates.crt /usr/local/share/ca-certificates; do
		test ! -e "$file" || cp -rL --parents -t "$1" "$file"
	done
	printf '%s\n' force-unsafe-io 'path-exclude=/usr/share/doc/*' 'path-exclude=/usr/share/man/*' \
		'path-exclude=/usr/share/locale/*' >"$1/etc/dpkg/dpkg.cfg.d/lean"
}
