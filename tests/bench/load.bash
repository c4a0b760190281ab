# SPDX-License-Identifier: Apache-2.0
# What a busy guest does, for scripts in it; $bench is where its programs are.
# shellcheck shell=bash

# what a host has besides: @1 processes that sleep
crowd=()
crowd_start() {
	local i

	mkfifo /tmp/never
	exec 9<>/tmp/never
	for ((i = 0; i < $1; i++)); do
		case $((i % 10)) in
		0) python3 -c 'import ssl, sqlite3, sys; sys.stdin.read()' <&9 & ;;
		1) sqlite3 :memory: <&9 >/dev/null & ;;
		2 | 3) perl -e '<STDIN>' <&9 & ;;
		4 | 5 | 6) bash -c read <&9 & ;;
		*) sleep 1000 & ;;
		esac
		crowd+=($!)
	done
}

programs=(deep digest list pack interpret query)

# with frame pointers, unlike Debian's programs: its stacks are whole
deep() { "${bench:?}/workload_depth" 6000; }
digest() { openssl speed -seconds 1 -evp sha256 -bytes 16384 2>&1; }
list() { for _ in 1 2 3; do ls -lR /usr/lib; done; }
pack() { head -c 800000 /usr/bin/perf | xz -6; }
interpret() {
	python3 -c '
import json
for n in range(60):
    json.loads(json.dumps([{str(k): sorted(range(k % 50))} for k in range(200)]))'
}
query() {
	sqlite3 :memory: 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
		WHERE i < 60000) SELECT sum(i * i % 7), count(DISTINCT i % 1000) FROM n;'
}

# one program after the other for @1 seconds, from the @2nd on: long ones, short ones, interpreters
busy() {
	local end=$((SECONDS + $1)) i=${2:-0}

	while ((SECONDS < end)); do
		"${programs[i++ % ${#programs[@]}]}" >/dev/null || :
	done
}
