# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
# Completion of Topiary's options of srun, sbatch and salloc in bash, in front of whatever completes Slurm's own. Options
# and values are those that the command itself prints. Belongs into /etc/bash_completion.d.

declare -A _topiary_slurm_own

# The values that --help names of an option in a list after a colon: "fit: off, prefer or require; ...".
_topiary_slurm_values() {
	"$1" --help 2>/dev/null | awk -v "option=$2" '
		/^ +-/ { mine = index($1 "=", option "=") == 1 }
		mine { text = text " " $0 }
		END {
			split(text, part, ": ")
			sub(/;.*/, "", part[2])
			gsub(/\[[^ ]*/, "", part[2])
			if (gsub(/ +or +|, */, " ", part[2]))
				print part[2]
		}'
}

_topiary_slurm() {
	local command=${1##*/} current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}
	# Bash makes a word of its own of the '=' in --option=value.
	if [[ $option == = ]]; then
		option=${COMP_WORDS[COMP_CWORD - 2]}
	elif [[ $current == = ]]; then
		current=
	fi
	if [[ $option == --topo-* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_topiary_slurm_values "$1" "$option")" -- "$current")
		return      # without a list of values bash offers files
	fi
	if [[ $current == --topo-* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$("$1" --help 2>/dev/null | grep -oE -- '^ +--topo-[a-z]+' | tr -d ' ' | sort -u)" -- "$current")
		return
	fi
	if [[ ! -v _topiary_slurm_own[$command] ]]; then
		# Loads Slurm's own completion, as bash-completion does when nothing is registered for a command.
		complete -r "$command"
		if type -t _comp_load >/dev/null; then
			_comp_load "$command"
		elif type -t _completion_loader >/dev/null; then
			_completion_loader "$command"
		fi
		_topiary_slurm_register "$command"
	fi
	[[ -z ${_topiary_slurm_own[$command]} ]] || "${_topiary_slurm_own[$command]}" "$@"
}

# Takes the place of the function that completes a command, and remembers that.
_topiary_slurm_register() {
	local function
	function=$(complete -p "$1" 2>/dev/null | sed -nE 's/.* -F ([^ ]+) .*/\1/p')
	[[ -z $function && ${2-} == lazily ]] || _topiary_slurm_own[$1]=$function
	complete -o default -F _topiary_slurm "$1"
}

for _topiary_slurm_command in srun sbatch salloc; do
	_topiary_slurm_register "$_topiary_slurm_command" lazily
done
unset _topiary_slurm_command
