# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
# Completion of topiary's commands in bash. Commands and options are those that the program itself tells; node names come
# from the registry when it answers within a second.

# The commands, or the long options of one.
_topiary_commands() {
	"$1" --help 2>/dev/null | sed -nE 's/^  ([a-z]+) .*/\1/p'
}
_topiary_options() {
	"$1" "$2" --help 2>/dev/null | sed -nE 's/^ +(-., *)?(--[a-z-]+).*/\2/p'
}

# The nodes whose names begin with $2, of the registry that the command line names.
_topiary_nodes() {
	local i where=()
	for ((i = 2; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--url | --config)
			[[ ${COMP_WORDS[i + 1]} == = ]] && where+=("${COMP_WORDS[i]}=${COMP_WORDS[i + 2]}") ||
				where+=("${COMP_WORDS[i]}=${COMP_WORDS[i + 1]}")
			;;
		esac
	done
	timeout 1 "$1" nodes --names "${where[@]}" 2>/dev/null | BEGINNING=$2 awk 'index($0, ENVIRON["BEGINNING"]) == 1'
}

# The jobs that slurmctld knows, when it answers within a second.
_topiary_jobs() {
	timeout 1 squeue -h -o %i 2>/dev/null
}

# The values of an option as words, "FILE" for files; nothing for what has no list.
_topiary_values() {
	case $1:$2 in
	*:--config | *:--output | *:-o | *:--matrix | map:--arch | map:--distances | *:--against | map:--snapshot | map:--env | replay:--snapshot | observed:--file | audit:--snapshot | audit:--jobs | audit:--nodes | audit:--switches | audit:--topology | audit:--sacct | audit:--html | bench:--from | *:--formulas) echo FILE ;;
	enable:--plugins | enable:--slurm-plugins | disable:--plugins | disable:--slurm-plugins) echo FILE ;;
	nodes:--drift) echo cosmetic wiring slow capacity any ;;
	*:--severity) echo cosmetic wiring slow capacity ;;
	*:--mode) echo strict allow-extra allow-missing ignore ;;
	show:--synthetic) echo hierarchy cores detail allocation ;;
	map:--format) echo plain openmpi openmpi-seq openmpi5 mpich intelmpi mvapich2 cray srun ;;
	matrix:--format) echo mm dense grf prof ;;
	fabric:--xml) echo FILE ;;
	fabric:--format) echo slurm slurm-yaml paper scotch dot json ;;
	map:--order) echo fabric ;;
	map:--costs) echo measured default ;;
	map:--explain) echo json ;;
	map:--effort) echo fast normal high ;;
	map:--fill) echo auto compact spread ;;
	move:--to) echo local ;;
	record:--set | top:--set) echo sw cpu power net gpu cpu+power+net+gpu ;;
	trace:--level | top:--level) echo Machine Package NUMANode L3Cache L2Cache Core PU ;;
	replay:--policies) echo stock block prefer prefer:l3 prefer:mem=off prefer:weight=job prefer:weight=queue require:l3 spread ;;
	esac
}

# Does the option take its value from the next word?
_topiary_takes_value() {
	[[ $3 =~ ^--?[a-z-]+$ ]] && "$1" "$2" --help 2>/dev/null | grep -qE -- "^ +(-., *)?$3(=|, --[a-z-]+=)"
}

_topiary_offer() {
	local values=$1
	if [[ $values == FILE ]]; then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$2")
	else
		mapfile -t COMPREPLY < <(compgen -W "$values" -- "$2")
	fi
}

_topiary() {
	local program=$1 current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} option=
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		_topiary_offer "$(_topiary_commands "$program") --help --version" "$current"
		return
	fi
	# Bash makes a word of its own of the '=' in --option=value.
	if [[ $current == = ]]; then
		option=$before current=
	elif [[ $before == = ]]; then
		option=${COMP_WORDS[COMP_CWORD - 2]}
	elif _topiary_takes_value "$program" "$command" "$before"; then
		option=$before
	fi
	if [[ $option == -* ]]; then
		_topiary_offer "$(_topiary_values "$command" "$option")" "$current"
		return
	fi
	if [[ $current == -* ]]; then
		_topiary_offer "$(_topiary_options "$program" "$command")" "$current"
		return
	fi
	case $command in
	nodes | drift | show | history | facts | accept | forget)
		mapfile -t COMPREPLY < <(_topiary_nodes "$program" "$current")
		;;
	diff | verify)
		_topiary_offer FILE "$current"
		mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(_topiary_nodes "$program" "$current")
		;;
	fabric)
		if ((COMP_CWORD == 2)); then
			_topiary_offer "show route discover export import history" "$current"
		else
			_topiary_offer FILE "$current"
		fi
		;;
	trace)
		if ((COMP_CWORD == 2)); then
			_topiary_offer "summary phases show replay html advise export" "$current"
		else
			_topiary_offer FILE "$current"
		fi
		;;
	shape | pack | snapshot | matrix | reorder)
		_topiary_offer FILE "$current"
		;;
	advise | why | memory | move)
		_topiary_offer "$(_topiary_jobs)" "$current"
		;;
	top)
		_topiary_offer FILE "$current"
		mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$(_topiary_jobs)" -- "$current")
		;;
	esac
}
complete -F _topiary topiary
