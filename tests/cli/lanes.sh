#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/run itself, in a tree of its own with lanes of a line: nothing that fails in the background is lost, and
# nothing runs on when it is told to end.
# usage: lanes.sh BUILD-DIRECTORY
set -u

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=../install/tap.bash
. tests/install/tap.bash

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/tests/check" "$scratch/tests/cli"
cp tests/run "$scratch/tests"
printf '#!/bin/sh\necho "ok 1 - b"\n' >"$scratch/tests/cli/b.sh"
chmod +x "$scratch/tests/cli/b.sh"

# lanes BACKGROUND-SCRIPT LANE...: the exit status of tests/run, and its totals
lanes() {
	printf '#!/bin/bash\n%s\n' "$1" >"$scratch/tests/check/static.sh"
	chmod +x "$scratch/tests/check/static.sh"
	shift
	timeout 20 "$scratch/tests/run" "$scratch/build" "$scratch/make" "$@" </dev/null >"$scratch/out" 2>&1
	echo "$?, $(grep -E '^[0-9]+ passed' "$scratch/out" | tail -n 1)"
}

same "a lane in the background passes" "$(lanes 'echo "ok 1 - a"' 'check&' cli check)" "0, 2 passed, 0 failed, 0 skipped"
same "it is shown where it is waited for" "$(grep -E '^(===|ok)' "$scratch/out" | tr '\n' ' ')" \
	"=== cli ok 1 - b === check ok 1 - a === summary "
same "one fails there" "$(lanes 'echo "not ok 1 - a"' 'check&' cli check)" "1, 1 passed, 1 failed, 0 skipped"
# with all said, and after a run that left a good end
printf '#!/bin/bash\necho "1 passed, 0 failed, 0 skipped"\n[ ! -e %s ] || kill -KILL $PPID\nsleep 0.2\n' "$scratch/fatal" >"$scratch/make"
chmod +x "$scratch/make"
same "a lane of make" "$(lanes '' 'unit&' cli unit)" "0, 2 passed, 0 failed, 0 skipped"
touch "$scratch/fatal"
same "one whose shell is killed fails" "$(lanes '' 'unit&' cli unit)" "1, 2 passed, 1 failed, 0 skipped"
same "one that nothing waits for is refused" "$(lanes 'echo "not ok 1 - a"' 'check&' cli)" "2, "

# end SIGNAL: what becomes of a process that a lane in the background has started
end() {
	local tries
	rm -f "$scratch/begun"
	printf '#!/bin/bash\nsleep 60 &\necho $! >%s.new\nmv %s.new %s\nwait\n' "$scratch/begun"{,,} >"$scratch/tests/check/static.sh"
	printf '#!/bin/sh\nexec sleep 5\n' >"$scratch/tests/cli/b.sh"
	python3 -B - "$1" "$scratch" <<'PYTHON' || return
import os, signal, subprocess, sys, time
top = sys.argv[2]
# as started from a terminal
run = subprocess.Popen([f"{top}/tests/run", f"{top}/build", "make", "check&", "cli", "check"], start_new_session=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
for _ in range(100):
    if os.path.exists(f"{top}/begun"):
        break
    time.sleep(0.1)
os.killpg(run.pid, getattr(signal, sys.argv[1]))
run.wait(20)
PYTHON
	for tries in {1..20}; do
		# who ended may be there until somebody asks how
		grep -q . "/proc/$(<"$scratch/begun")/cmdline" 2>/dev/null || { echo "ended"; return; }
		sleep 0.1
	done
	echo "runs on after $tries looks"
	kill "$(<"$scratch/begun")"
}
same "Ctrl-C ends what lanes in the background have started" "$(end SIGINT)" ended
same "so does SIGTERM" "$(end SIGTERM)" ended
finish
