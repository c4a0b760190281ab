#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# stacktap-soak without a module: options, the manual's agreement with them, and what it reads of the output of others.
# usage: soak.sh BUILD-DIRECTORY
set -u

cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=../install/tap.bash
. tests/install/tap.bash

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# run STATUS SAID OPTION...
run() {
	local want=$1 said=$2 have
	shift 2
	timeout 30 packaging/soak "$@" </dev/null >"$scratch/out" 2>&1
	have=$?
	[ "$have" -eq "$want" ] && grep -qF -- "$said" "$scratch/out" && return
	echo "exit status $have, not $want, or no '$said' in:"
	cat "$scratch/out"
	return 1
}

# function FUNCTION ARGUMENT...: what it prints
function_of() { bash -c '. packaging/soak && "$@"' - "$@"; }

check "--help" run 0 'usage: stacktap-soak' --help
check "--help fits 80 columns" test "$(wc -L <"$scratch/out")" -le 80
while read -r option; do
	check "the manual knows $option" grep -qF -- "*$option*" man/stacktap-soak.8.scd
done < <(grep -oE -- '^  --[a-z-]+' "$scratch/out" | grep -v help | tr -d ' ')
check "an unknown option" run 2 '--bogus is no option' --bogus
check "a duration without a value" run 2 '--duration wants a value' --duration
check "a duration that is none" run 2 '--duration 5y is no time' --duration=5y
check "a rate that is none" run 2 '--max-rate 20000 is not between 1 and 10000' --max-rate 20000
if [ ! -e /sys/module/stacktap ]; then
	if [ "$(id -u)" -eq 0 ]; then
		check "no module" run 2 "the kernel module stacktap is not loaded: run \`modprobe stacktap'"
	else
		check "no root" run 2 'this needs root'
	fi
fi
same "a duration" "$(function_of seconds_of 90) $(function_of seconds_of 10m) $(function_of seconds_of 2h) \
$(function_of seconds_of 7d)" "90 600 7200 604800"

# Ctrl-C is sent to everything that a terminal has in the foreground
mkdir "$scratch/bin"
cat >"$scratch/bin/stacktap" <<'PYTHON'
#!/usr/bin/python3
import signal, sys, time
signal.signal(signal.SIGINT, lambda *_: sys.exit(7))
open(sys.argv[-1], "w").close()
time.sleep(20 if sys.argv[1] == "record" else 2)
PYTHON
chmod +x "$scratch/bin/stacktap"
interrupt() {
	local soak=$PWD/packaging/soak
	(cd "$scratch" && rm -f -- - ready && PATH=$scratch/bin:$PATH exec timeout 20 setsid --wait bash -c ". '$soak'; $1")
}
same "Ctrl-C ends no session" "$(interrupt "trap 'interrupted=1' INT; work=. ; start 5 -a
	for i in {1..50}; do [ -e - ] && break; sleep 0.1; done
	kill -INT 0; sleep 0.5
	kill -TERM \$started && reap \$started; echo \$? \$interrupted")" "143 1"
same "what Ctrl-C ended is done again" "$(interrupt "trap 'interrupted=1' INT
	(for i in {1..50}; do [ -e ready ] && break; sleep 0.1; done; kill -INT 0) &
	again stacktap status ready; echo \$? \$interrupted")" "0 1"

# stacktap status --json, as short as it can be
cat >"$scratch/status.json" <<'JSON'
{"module":{"version":"0.1.0","sessions":2},"sessions":[
{"id":3,"state":"running","owner":{"pid":41,"comm":"\"cpu\":9"},"sources":[{"id":0,"name":"cycles"}],
 "filter":{"cpus":[0,1],"pids":[7]},"cpus":[
 {"cpu":0,"state":"running","errno":0,"handler":{"count":3,"ns":500,"times_below_ns":{"128":0,"256":3},"more":0},
  "drain":{"count":1,"ns":70,"times_below_ns":{"128":1},"more":2},
  "counts":[{"source":0,"calls":10,"recorded":7,"filtered":1,"throttled":0,"lost_total":2,"lost":{"budget":2}},
            {"source":1,"calls":4,"recorded":2,"filtered":1,"throttled":0,"lost_total":0,"lost":{"budget":0}}]},
 {"cpu":12,"state":"offline","errno":0,"counts":[]}]}],
"daemon":{"cpu":5,"state":"x"}}
JSON
same "status --json: time, counts and what does not add up, per session and CPU" \
	"$(function_of status_lines <"$scratch/status.json")" "$(cat <<'LINES'
time 3 256 3
time 3 128 1
time 3 more 2
cpu 3 41 0 570 14 9 2 2 1
cpu 3 41 12 0 0 0 0 0 0
LINES
)"

# looks TEXT...: what two looks at these lines of status count for CPU 0, and how much is kept for the next one
looks() {
	# shellcheck disable=SC2016 # the other shell's
	bash -c '. packaging/soak; work=$1; shift
		status() { printf "%s\n" "${text[@]}" >"$work/status"; }
		for what; do IFS=/ read -ra text <<<"$what"; look; done
		echo "${total[0]}" "${#seen[@]}"' - "$scratch" "$@"
}
same "time of sessions that come and go, and nothing kept of those that have gone" \
	"$(looks 'cpu 3 41 0 500/cpu 3 41 1 1/cpu 4 42 0 30' 'cpu 4 42 0 50/time 4 128 1' 'cpu 5 43 0 7')" "557 1"

# shellcheck disable=SC2016 # the other shell's
limits() {
	bash -c '. packaging/soak; perf_limit=$1 max_rate=$3 limit=10000; echo "$2" >"$1"; most_rate; restore_limit
		cat "$1"; echo "$limit_fell"' - "$scratch/limit" "$@" | tr '\n' ' '
}
same "a limit that perf has lowered is kept to, and put back" "$(limits 5000 9999)" "5000 10000 5000 "
same "one that it has not lowered" "$(limits 10000 999)" "999 10000 0 "

# as Documentation/filesystems/proc.rst has it
cat >"$scratch/threads" <<'STATUS'
Name:	migration/2
Pid:	21
Cpus_allowed_list:	2
Name:	dpdk
Pid:	400
VmSize:	    5004 kB
Cpus_allowed_list:	3
Name:	bash
Pid:	401
VmSize:	    5004 kB
Cpus_allowed_list:	0-3
Name:	kworker/1:0
Pid:	22
Cpus_allowed_list:	1
STATUS
same "a CPU that a program is bound to" "$(function_of bound_cpus <"$scratch/threads")" 3
same "one of this host's threads" "$(taskset -c 0 sleep 5 & sleep 0.3
	function_of bound_cpus <"/proc/$!/status"; kill $!)" 0

printf 'cpu 3 41 0 0 0 0 0 0 0\ncpu 4 42 0 0 0 0 0 0 0\ncpu 4 42 1 9 2 2 0 0 0\n' >"$scratch/status"
# shellcheck disable=SC2016 # the other shell's
same "a session that is there, and one that samples" "$(bash -c '. packaging/soak; work=$1
	echo "$(session_of 41) $(sampling_of 41) $(sampling_of 42)"' - "$scratch")" "3  4"

# SIGKILL leaves nobody to end what runs
burns_on() {
	local tries burner
	# shellcheck disable=SC2016 # the other shell's
	burner=$(bash -c '. packaging/soak; nproc() { echo 1; }; keep_busy >/dev/null; echo "${burners[0]}"; kill -KILL $$' 2>/dev/null)
	# nice 19 gets little of a busy host
	for tries in {1..200}; do
		# who ended may be there until somebody asks how
		grep -q . "/proc/${burner:?}/cmdline" 2>/dev/null || { echo "ended"; return; }
		sleep 0.1
	done
	echo "runs after $tries looks"
	kill "$burner"
}
same "busy programs end when stacktap-soak was killed" "$(burns_on)" ended

# as Documentation/ABI/testing/dev-kmsg has it
cat >"$scratch/kmsg" <<'KMSG'
7,160,424069,-;pci_root PNP0A03:00: host bridge window [io  0x0000-0x0cf7] (ignored)
 SUBSYSTEM=acpi
4,339,5140900,c;rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:
30,340,5690716,-;systemd[1]: BUG: not the kernel's, stall
KMSG
same "the kernel's log, behind a record" "$(function_of log_records 160 <"$scratch/kmsg")" "$(cat <<'LINES'
339 kernel rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:
340 other systemd[1]: BUG: not the kernel's, stall
LINES
)"
for line in 'rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:' 'WARNING: CPU: 1 PID: 7 at kernel/fork.c:1 x+0x1/0x2' \
	'BUG: unable to handle page fault' 'watchdog: BUG: soft lockup - CPU#0 stuck for 22s!'; do
	check "a complaint: $line" function_of is_complaint "$line"
done
for line in 'firmware: module installed' 'perf: interrupt took too long (2501 > 2500)' 'smpboot: CPU 1 is now offline'; do
	check "none: $line" bash -c '. packaging/soak && ! is_complaint "$1"' - "$line"
done

# as Documentation/trace/timerlat-tracer.rst has it
cat >"$scratch/timerlat" <<'TRACE'
          <idle>-0       [000] d.h1    54.029328: #1     context    irq timer_latency       932 ns
           <...>-867     [000] ....    54.029339: #1     context thread timer_latency     11700 ns
          <idle>-0       [001] dNh1    54.029346: #1     context    irq timer_latency      2833 ns
           <...>-868     [001] ....    54.029353: #1     context thread timer_latency      9820 ns
          <idle>-0       [000] d.h1    54.030328: #2     context    irq timer_latency       769 ns
           <...>-867     [000] ....    54.030330: #2     context thread timer_latency      3070 ns
TRACE
same "timerlat's trace" "$(function_of timerlat_histogram <"$scratch/timerlat")" \
	"timerlat, 3 wake-ups: 12 us at most; < 4 us 33.33 %; < 16 us 66.67 %"
cat >"$scratch/cyclictest" <<'HISTOGRAM'
# Histogram
000000 000000	000000
000003 000005	000003
000004 000001	000000
000090 000000	000001
# Total: 000000006 000000004
# Min Latencies: 00003 00003
# Avg Latencies: 00003 00011
# Max Latencies: 00004 00090
HISTOGRAM
same "cyclictest's histogram" "$(function_of cyclictest_histogram <"$scratch/cyclictest")" \
	"cyclictest, 10 wake-ups: 90 us at most; <= 3 us 80 %; <= 90 us 100 %"
finish
