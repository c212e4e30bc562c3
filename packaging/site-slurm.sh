# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
#
# For make-deb and make-rpm, after steps.sh: which Slurm their packages are for. SLURM_SRC names its source, configured; SLURM_PREFIX its
# installation, if that is not the distribution's.

# find_slurm PLUGINDIR: sets src, slurm_version and plugindir, which is Slurm's own: PLUGINDIR without SLURM_PREFIX.
find_slurm() {
	named=${SLURM_SRC:-${CACHE:-$PWD/.cache}/src/slurm}
	src=$(cd "$named" 2>/dev/null && pwd -P) || fail "$named: no such directory; SLURM_SRC names the source of Slurm"
	test -e "$src/config.h" || fail "$src: not the source of a Slurm that was configured: it has no config.h"
	slurm_version=$(sed -n 's/^#define SLURM_VERSION_STRING[[:space:]]*"\(.*\)"$/\1/p' "$src/config.h")
	test -n "$slurm_version" || fail "$src/config.h: it does not define SLURM_VERSION_STRING"
	plugindir=$1
	test -n "${SLURM_PREFIX:-}" || return 0
	for plugindir in "$SLURM_PREFIX"/lib64/slurm "$SLURM_PREFIX"/lib/*/slurm "$SLURM_PREFIX"/lib/slurm; do
		test ! -e "$plugindir/select_cons_tres.so" || return 0
	done
	fail "$SLURM_PREFIX: no Slurm is installed there: lib64/slurm/select_cons_tres.so is missing"
}

# The script that runs before the plugins are installed beside a Slurm that is in no package, of which nothing can be required.
preinstall() {
	sed -e '/^#[^!]/d; /^#$/d' -e "s|@PREFIX@|$SLURM_PREFIX|g; s|@VERSION@|$slurm_version|g" packaging/preinstall.in
}
