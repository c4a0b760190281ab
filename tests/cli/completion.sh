#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Completions in bash, fish and zsh: of each command's and program's options they offer those that its --help has, and no others;
# and what lives on the host.
# usage: completion.sh BUILD-DIRECTORY
set -u

output=$(realpath -m "${1:?usage: completion.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=../install/tap.bash
. tests/install/tap.bash

arch=$(uname -m)
[ "$arch" = aarch64 ] && arch=arm64
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
ln -s "$output/user-$arch/stacktap" "$output/user-$arch/stacktapd" "$scratch" || exit 1
ln -s "$PWD/packaging/soak" "$scratch/stacktap-soak"
PATH=$scratch:$PATH

commands=$(stacktap --help | sed -n 's/^  \([a-z-]*\) .*/\1/p')

# What a shell offers for each line of standard input, the lines apart by `=='.
bash_offers() {
	# shellcheck disable=SC2016 # the other bash expands it
	bash --norc -c 'for file in completion/stacktap{,d,-soak}; do . "$file"; done
		while IFS= read -r line; do
			read -ra COMP_WORDS <<<"$line"
			[[ $line != *" " ]] || COMP_WORDS+=("")
			COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
			read -r _ _ complete _ < <(complete -p "${COMP_WORDS[0]}")
			"$complete" </dev/null
			echo "== $line"
			((${#COMPREPLY[@]} == 0)) || printf "%s\n" "${COMPREPLY[@]}"
		done' 2>&1
}

fish_offers() {
	# shellcheck disable=SC2016 # fish expands it
	fish --no-config -c 'for file in completion/*.fish; source $file; end
		while read -l line; echo "== $line"; complete -C "$line"; end' 2>&1
}

# What zsh lists when ^X asks for it behind each argument, up to a word that it prints once the list is drawn. Until it
# shows the line again the terminal takes keys for itself, ^U among them.
zsh_offers() {
	cat >"$scratch/ask" <<-'ZSH'
		zmodload zsh/zpty
		zpty z "TERM=dumb PS1='' zsh -fi"
		zpty -w z "fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; LISTMAX=1000; offer() { zle list-choices; zle -R; zle -I; print -r 'LI''STED' }; zle -N offer; bindkey '^X' offer; echo REA''DY"
		zpty -r z said '*READY*'
		shift
		for line; do
			zpty -n -w z "$line"$'\x18'
			zpty -r z said "*LISTED*$line*"
			print -r -- "== $line"
			print -r -- $said
			zpty -n -w z $'\x15'
		done
		zpty -d z
	ZSH
	timeout 600 zsh -f "$scratch/ask" "$PWD/completion" "$@" 2>&1
}

# What is offered behind LINE, of all of standard input
behind() {
	awk -v head="== $1" '/^== /{ on = $0 == head; next } on'
}

options() {
	grep -oE -- '--[a-z][a-z-]*' | sort -u
}

# same_options SHELL OFFERS
same_options() {
	local line
	while read -r line; do
		# shellcheck disable=SC2086 # words
		same "$1: options of ${line% --}" "$(behind "$line" <<<"$2" | options)" "$(${line}help | options)"
	done < <(ask_options)
}

ask_options() {
	local program
	printf 'stacktap %s --\n' $commands
	for program in stacktapd stacktap-soak; do
		echo "$program --"
	done
}

# What runs on a host, and which sessions: the same for all shells.
host=$scratch/host
id=$(printf '%064d' 0 | tr 0 c)
other=$(printf '%064d' 0 | tr 0 d)
mkdir -p "$host"/proc/{101,102,103,104,105} "$host/bin"
echo "0::/system.slice/docker-$id.scope" >"$host/proc/101/cgroup"
echo "0::/lxc.payload.web/init.scope" >"$host/proc/102/cgroup"
echo "0::/machine.slice/systemd-nspawn@build.service/payload" >"$host/proc/103/cgroup"
echo "0::/machine.slice/machine-qemu-1.scope" >"$host/proc/104/cgroup"
echo "0::/machine.slice/libpod-conmon-$other.scope" >"$host/proc/105/cgroup"
for pid in 101 102 103 104 105; do
	echo "name-$pid" >"$host/proc/$pid/comm"
done
cat >"$host/bin/stacktap" <<-EOF
	#!/bin/sh
	[ "\$*" = "status --json" ] || exec "$scratch/stacktap" "\$@"
	echo '{"module":{},"sessions":[{"id":7,"state":"running","owner":{"pid":9,"comm":"stacktapd"},"sources":[{"id":3,"name":"cycles"}]}]}'
EOF
chmod +x "$host/bin/stacktap"
cgroups=(/system.slice '/system.slice/system-a\x2db.slice' /user.slice)
mkdir -p "${cgroups[@]/#/$host/sys/fs/cgroup}"
# the PMU of CPUs on arm64 and a hybrid's, with what is no event; one of an uncore, one of no CPU, one without events
mkdir -p "$host"/sys/bus/event_source/devices/{armv8_pmuv3_0,cpu_core,uncore_imc,msr}/events "$host/sys/bus/event_source/devices/breakpoint"
touch "$host"/sys/bus/event_source/devices/{armv8_pmuv3_0/{cpus,events/l1d_tlb},cpu_core/{cpus,events/mem-loads{,.scale,.unit}}} \
	"$host"/sys/bus/event_source/devices/{uncore_imc/{cpumask,events/data_reads},msr/events/tsc}
events=$(printf '%s\n' armv8_pmuv3_0/l1d_tlb/ branch-misses branches cache-misses cache-references context-switches cpu-clock cpu-migrations \
	cpu_core/mem-loads/ cycles instructions major-faults minor-faults page-faults task-clock | LC_ALL=C sort)
containers=$(printf '%s\n' build "$id" web | sort)
names=$(printf 'name-%s\n' 101 102 103 104 105)
sessions=$(printf '%s\n' 7 all stacktapd)

on_host() {
	local PATH=$host/bin:$PATH
	export _stacktap_proc=$host/proc _stacktap_sys=$host/sys
	"$@"
}

same_options bash "$(ask_options | bash_offers)"
same "bash: levels of stacktapd" "$(echo 'stacktapd --log-level ' | bash_offers | sed 1d | tr '\n' ' ')" "error warning info debug "
same "bash: commands" "$(echo 'stacktap ' | bash_offers | sed 1d | grep -v '^--' | sort)" "$(printf '%s\n' $commands help | sort)"
same "bash: commands behind help" "$(echo 'stacktap help ' | bash_offers | sed 1d | sort)" "$(sort <<<"$commands")"
same "bash: rows of report" "$(echo 'stacktap report --by ' | bash_offers | sed 1d | sort | tr '\n' ' ')" "cgroup container function line object process service thread "
same "bash: rows of diff" "$(echo 'stacktap diff --by ' | bash_offers | sed 1d | sort | tr '\n' ' ')" "cgroup container function object process service thread "
same "bash: live containers" "$(echo 'stacktap report --container ' | on_host bash_offers | sed 1d | sort)" "$containers"
same "bash: pids" "$(echo 'stacktap record -p ' | on_host bash_offers | sed 1d | tr '\n' ' ')" "101 102 103 104 105 "
for option in 'record -e' 'top --event' 'report --event'; do
	same "bash: events of $option" "$(echo "stacktap $option " | on_host bash_offers | sed 1d | LC_ALL=C sort)" "$events"
done
same "bash: names of processes" "$(echo 'stacktap report --process ' | on_host bash_offers | sed 1d)" "$names"
same "bash: sessions" "$(echo 'stacktap stop ' | on_host bash_offers | sed 1d | grep -v '^--' | sort)" "$sessions"
for option in 'record -G' 'report --cgroup'; do
	same "bash: cgroups of $option" "$(echo "stacktap $option " | on_host bash_offers | sed 1d | sort)" "$(printf '%s\n' /system.slice/ /user.slice)"
	same "bash: cgroups below, of $option" "$(echo "stacktap $option /system.slice/" | on_host bash_offers | sed 1d)" \
		'/system.slice/system-a\x2db.slice'
done

# Whoever has a cgroup of his own calls those below it as he likes, and his programs, and `compgen -W' expands words.
mkdir -p "$scratch"/hostile/{bin,proc/1}
# shellcheck disable=SC2016 # nobody shall expand it
{
	echo '0::/user.slice/user-1000.slice/lxc/$(echo>ran)' >"$scratch/hostile/proc/1/cgroup"
	echo '$(echo>ran)' >"$scratch/hostile/proc/1/comm"
	printf '#!/bin/sh\necho '\''{"sessions":[{"id":7,"state":"running","owner":{"pid":9,"comm":"$(echo>ran)"}}]}'\''\n' \
		>"$scratch/hostile/bin/stacktap"
}
chmod +x "$scratch/hostile/bin/stacktap"
for line in 'report --container' 'report --process' 'record --comm' 'stop' 'set'; do
	# shellcheck disable=SC2016 # the other bash expands it
	said=$(cd "$scratch/hostile" && PATH=$PWD/bin:$PATH _stacktap_proc=$PWD/proc bash --norc -c '. "$1"; COMP_WORDS=(stacktap $2 "")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _stacktap; printf "%s\n" "${COMPREPLY[@]}"' bash "$OLDPWD/completion/stacktap" "$line")
	check "bash runs no name: $line" test ! -e "$scratch/hostile/ran"
	check "bash offers no such name: $line" test -z "$(grep -F ran <<<"$said")"
	rm -f "$scratch/hostile/ran"
done

if command -v fish >/dev/null; then
	same "fish: live containers" "$(echo 'stacktap report --container ' | on_host fish_offers | sed 1d | sort)" "$containers"
	for option in 'record -e' 'top --event' 'report --event'; do
		same "fish: events of $option" "$(echo "stacktap $option " | on_host fish_offers | sed 1d | LC_ALL=C sort)" "$events"
	done
	same "fish: names of processes" "$(echo 'stacktap report --process ' | on_host fish_offers | sed 1d | sort)" "$names"
	check "fish: pids" grep -qw $$ <<<"$(echo 'stacktap record -p ' | fish_offers)"
	same "fish: sessions" "$(echo 'stacktap stop ' | on_host fish_offers | sed 1d | sort)" "$sessions"
	for option in 'record -G' 'report --cgroup'; do
		same "fish: cgroups of $option" "$(echo "stacktap $option " | on_host fish_offers | sed 1d)" "$(printf '%s\n' "${cgroups[@]}")"
	done
	same_options fish "$(ask_options | fish_offers)"
	same "fish: levels of stacktapd" "$(echo 'stacktapd --log-level ' | fish_offers | sed '1d; s/\t.*//' | tr '\n' ' ')" "debug error info warning "
	same "fish: commands" "$(echo 'stacktap ' | fish_offers | sed '1d; s/\t.*//' | sort)" "$(printf '%s\n' $commands help | sort)"
	same "fish: commands behind help" "$(echo 'stacktap help ' | fish_offers | sed '1d; s/\t.*//' | sort)" "$(sort <<<"$commands")"
	same "fish: values of annotate" "$(echo 'stacktap annotate -M ' | fish_offers | sed 1d | tr '\n' ' ')" "att intel "
	same "fish: values" "$(echo 'stacktap convert -f ' | fish_offers | sed 1d | tr '\n' ' ')" \
		"$(stacktap convert --help | sed -n 's/^  \([a-z-]*\)  *\..*/\1/p' | sort | tr '\n' ' ')"
else
	skip "fish" "there is no fish (tests/setup check)"
fi
if command -v zsh >/dev/null; then
	for file in completion/_*; do
		check "zsh: $file parses" zsh -n "$file"
	done
	mapfile -t lines < <(ask_options)
	offers=$(zsh_offers "${lines[@]}" 'stacktap ' 'stacktap help ' 'stacktap convert -f ' 'stacktap annotate -M ' 'stacktapd --log-level ')
	same_options zsh "$offers"
	mkdir "$host/proc/106"
	printf '\033[31mred' >"$host/proc/106/comm"
	live=$(on_host zsh_offers 'stacktap report --container ' 'stacktap report --process ' 'stacktap stop ' 'stacktap record -G ' \
		'stacktap report --cgroup /system.slice/' 'stacktap record -p ' 'stacktap record -e ' 'stacktap report --event ')
	for option in 'record -e' 'report --event'; do
		same "zsh: events of $option" "$(behind "stacktap $option " <<<"$live" | grep -v stacktap | grep -oE '[a-z0-9_/-]{5,}' | LC_ALL=C sort)" "$events"
	done
	same "zsh: pids" "$(behind 'stacktap record -p ' <<<"$live" | grep -oE '10[0-9] +-- name-10[0-9]' | tr -s ' ' | sort)" \
		"$(printf '%s\n' 101 102 103 104 105 | sed 's/.*/& -- name-&/')"
	same "zsh: cgroups" "$(behind 'stacktap record -G ' <<<"$live" | grep -oE '[a-z]+\.slice/?' | sort)" "$(printf '%s\n' system.slice/ user.slice/)"
	check "zsh: cgroups below" grep -qF 'system-a' <<<"$live"
	check "zsh: no name gives the terminal commands" test -z "$(grep -F $'\e[31m' <<<"$live")"
	for word in $containers name-101 name-105 7 all stacktapd; do
		check "zsh, live: $word" grep -qE -- "(^|[^a-z0-9-])$word([^a-z0-9-]|$)" <<<"$live"
	done
	check "zsh, live: no machine that is no container, no monitor, no source" test -z "$(grep -oE "qemu|$other|\b3\b" <<<"$live")"
	for word in $commands help; do
		check "zsh: $word" grep -qE -- "^$word([^a-z-]|$)" <<<"$(behind 'stacktap ' <<<"$offers")"
	done
	for word in $commands; do
		check "zsh: help $word" grep -qE -- "^$word([^a-z-]|$)" <<<"$(behind 'stacktap help ' <<<"$offers")"
	done
	for word in speedscope intel warning; do
		check "zsh: $word" grep -qE -- "(^|[^a-z-])$word([^a-z-]|$)" <<<"$offers"
	done
else
	skip "zsh" "there is no zsh (tests/setup check)"
fi
finish
