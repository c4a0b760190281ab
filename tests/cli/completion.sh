#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Completions in the shells that have them: what fish and zsh offer is what --help has. (bash: stacktap.sh)
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
ln -s "$output/user-$arch/stacktap" "$scratch/stacktap" || exit 1
PATH=$scratch:$PATH

commands=$(stacktap --help | sed -n 's/^  \([a-z-]*\) .*/\1/p')

# What fish offers for each line of standard input, the lines apart by `=='.
fish_offers() {
	# shellcheck disable=SC2016 # fish expands it
	fish --no-config -c 'source completion/stacktap.fish
		while read -l line; echo "== $line"; complete -C "$line"; end' 2>&1
}

# What zsh lists when ^X asks for it behind each argument.
zsh_offers() {
	cat >"$scratch/ask" <<-'ZSH'
		zmodload zsh/zpty
		zpty z "TERM=dumb PS1='' zsh -fi"
		zpty -w z "fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; LISTMAX=1000; bindkey '^X' list-choices; echo REA''DY"
		zpty -r z said '*READY*'
		shift
		for line; do
			zpty -n -w z "$line"$'\x18'
			for i in {1..40}; do
				sleep 0.05
				while zpty -r -t z said; do print -rn -- $said; i=0; done
			done
			zpty -n -w z $'\x15'
		done
		zpty -d z
	ZSH
	timeout 60 zsh -f "$scratch/ask" "$PWD/completion" "$@" 2>&1
}

if command -v fish >/dev/null; then
	offers=$(for command in $commands; do echo "stacktap $command --"; done | fish_offers)
	for command in $commands; do
		# of top it also has those of record, which top's help does not repeat
		same "fish lacks no option of $command" "$(comm -13 \
			<(awk -v head="== stacktap $command --" '/^== /{ on = $0 == head; next } on' <<<"$offers" | sort -u) \
			<(stacktap "$command" --help | grep -oE -- '--[a-z][a-z-]*' | sort -u))" ""
	done
	same "fish: commands" "$(echo 'stacktap ' | fish_offers | sed '1d; s/\t.*//' | sort)" "$(sort <<<"$commands")"
	same "fish: values of annotate" "$(echo 'stacktap annotate -M ' | fish_offers | sed 1d | tr '\n' ' ')" "att intel "
	same "fish: values" "$(echo 'stacktap convert -f ' | fish_offers | sed 1d | tr '\n' ' ')" \
		"$(stacktap convert --help | sed -n 's/^  \([a-z-]*\)  *\..*/\1/p' | sort | tr '\n' ' ')"
else
	skip "fish" "there is no fish (tests/setup check)"
fi
if command -v zsh >/dev/null; then
	check "zsh: it parses" zsh -n completion/_stacktap
	offers=$(zsh_offers 'stacktap ' 'stacktap report --' 'stacktap top --' 'stacktap convert -f ' 'stacktap annotate -M ')
	for word in $commands $(stacktap report --help | grep -oE -- '--[a-z][a-z-]*') --window speedscope intel; do
		check "zsh: $word" grep -qE -- "(^|[^a-z-])$word([^a-z-]|$)" <<<"$offers"
	done
else
	skip "zsh" "there is no zsh (tests/setup check)"
fi
finish
