# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests here: TAP for bash. `check TEXT COMMAND...` is one assertion; what the command
# says is shown when it fails. `finish` prints the plan and is the script's exit status.
# shellcheck shell=bash

tap_number=0
tap_failed=0

check() {
	local text=$1 said
	shift
	tap_number=$((tap_number + 1))
	if said=$("$@" 2>&1); then
		echo "ok $tap_number - $text"
		return 0
	fi
	tap_failed=$((tap_failed + 1))
	echo "not ok $tap_number - $text"
	[ -z "$said" ] || tail -n 40 <<<"$said" | sed 's/^/#   /'
	return 1
}

# same TEXT HAVE WANT
same() {
	check "$1" tap_same "$2" "$3"
}

tap_same() {
	[ "$1" = "$2" ] || {
		diff <(echo "$2") <(echo "$1")
		return 1
	}
}

skip() {
	tap_number=$((tap_number + 1))
	echo "ok $tap_number - $1 # SKIP $2"
}

finish() {
	echo "1..$tap_number"
	[ "$tap_failed" -eq 0 ]
}
