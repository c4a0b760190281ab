#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The command line without a module: help, exit codes, the words of errors, JSON.
# usage: stacktap.sh BUILD-DIRECTORY
set -u

output=$(realpath -m "${1:?usage: stacktap.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=../install/tap.bash
. tests/install/tap.bash

arch=$(uname -m)
[ "$arch" = aarch64 ] && arch=arm64
stacktap=$output/user-$arch/stacktap helpers=$PWD/tests/cli
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
out=$scratch/out err=$scratch/err

[ -x "$stacktap" ] || {
	echo "not ok 1 - there is $stacktap (make user)"
	exit 1
}
if [ -e /sys/module/stacktap ]; then
	skip "the command line without a module" "the module is loaded here"
	finish
	exit 77
fi

# run STATUS ARGUMENT...: it ends with STATUS
run() {
	local want=$1 have
	shift
	(cd "$scratch" && timeout 30 "$stacktap" "$@") </dev/null >"$out" 2>"$err"
	have=$?
	[ "$have" -eq "$want" ] || {
		echo "exit status $have, not $want"
		cat "$out" "$err"
		return 1
	}
}

# says FILE WORDS
says() {
	grep -qF -- "$2" "$1" || {
		echo "no '$2' in:"
		cat "$1"
		return 1
	}
}

refused() {
	local text=$1 status=$2 words=$3
	shift 3
	check "$text: exit status $status" run "$status" "$@"
	check "$text: says '$words'" says "$err" "$words"
	check "$text: in one line" test "$(wc -l <"$err")" -eq 1
	check "$text: nothing on standard output" test ! -s "$out"
}

# options that a page defines: at the left edge, behind a tab is what they mean
defined() {
	grep -E '^\*-' | grep -oE -- '\*(-[a-zA-Z]|--[a-z][a-z-]*)\*' | tr -d '*' | LC_ALL=C sort -u
}

# options in a text
mentioned() {
	grep -oP -- '(?<![\w-])(-[a-zA-Z]|--[a-z][a-z-]*)(?![\w-])' | LC_ALL=C sort -u
}

commands=$("$stacktap" --help | sed -n 's/^  \([a-z-]*\) .*/\1/p')
same "--help lists the commands" "$(tr '\n' ' ' <<<"$commands")" \
	"record top report flamegraph diff annotate serve convert objects symbolize store status start stop set events doctor unwind-info "
check "--help" run 0 --help
check "help" run 0 help
"$stacktap" --help >"$scratch/overview"
check "help is --help" cmp "$out" "$scratch/overview"
check "--help fits 80 columns" test "$(wc -L <"$scratch/overview")" -le 80
same "headings of --help are those of stacktap(8)" "$(grep -E '^[A-Z].*:$' "$scratch/overview")" \
	"$(sed -n '/^# COMMANDS/,/^# EXIT/s/^## \(.*\)/\1:/p' man/stacktap.8.scd.in)"
check "help of an option" run 0 help --help
check "is the overview, too" cmp "$out" "$scratch/overview"
refused "help of an unknown command" 2 "unknown command \`recrod'; did you mean \`record'?" help recrod
mkdir -p "$scratch/man/man8"
printf '.TH stacktap-report 8\n.SH NAME\nstacktap-report - of the manual\n' >"$scratch/man/man8/stacktap-report.8"
export MANPATH=$scratch/man
if command -v man >/dev/null; then
	check "help of a command" run 0 help report
	check "is its manual page" says "$out" "of the manual"
else
	skip "help of a command is its manual page" "there is no man (apt install man-db)"
fi
# what stands for man(1) where pages were left out of the system
mkdir -p "$scratch/minimized"
printf '#!/bin/sh\necho "This system has been minimized by removing packages and content"\n' >"$scratch/minimized/man"
chmod +x "$scratch/minimized/man"
for path in "$PATH" /no/such "$scratch/minimized:$PATH"; do
	check "help of a command without a page" env PATH="$path" "$BASH" -c '"$1" help top >"$2" 2>"$3"' - "$stacktap" "$out" "$err"
	check "is its --help" cmp "$out" <("$stacktap" top --help)
	check "and nothing is said of that" test ! -s "$err"
done
unset MANPATH
check "--version" run 0 --version
same "--version prints the version" "$(cat "$out")" \
	"stacktap $(sed -n 's/^#define STACKTAP_VERSION *"\(.*\)"/\1/p' include/stacktap/version.h)"
for command in $commands; do
	check "$command --help" run 0 "$command" --help
	check "$command --help is its own" says "$out" "$command"
	check "$command -h" run 0 "$command" -h
	check "$command --help fits 80 columns" test "$(wc -L <"$out")" -le 80
	man/page <"man/stacktap-$command.8.scd.in" >"$scratch/page"
	same "the page of $command has its --help's options, each with a meaning, and no others" "$(defined <"$scratch/page")" \
		"$(mentioned <"$out" | grep -vxE -- '-h|--help')"
	check "headings of $command's --help and page, and what stands below each" python3 -B "$helpers/headings.py" "$out" "$scratch/page"
	same "its name is --help's line" "$(sed -n "s/^stacktap-$command - //p" "$scratch/page")" \
		"$("$stacktap" --help | sed -n "s/^  $command  *//p")"
	check "the overview lists it" grep -qxF "*stacktap-$command*(8)" man/stacktap.8.scd.in
done

check "the manual has the keys that top's help shows" python3 -c '
import re
source, page = open("daemon/cli/top_screen.c").read(), open("man/stacktap-top.8.scd.in").read()
lines = re.findall(r"\"(.*)\\n\"", source[source.index("keys_help[]"):source.index("Any key")])
keys = [key.strip() for line in lines for key in (line.split(":")[0].split(",") if ", " in line[:10] else line[:10].split())]
section = page[page.index("# KEYS"):page.index("# ENVIRONMENT")].replace("*", "")
absent = [key for key in keys if not re.search(rf"(?i)(?<!\w){re.escape(key)}(?!\w)", section)]
assert len(keys) > 20 and not absent, (keys, absent)'

check "an unknown command" run 2 recrod
check "an unknown command is named" says "$err" recrod
check "and the near one" says "$err" "did you mean \`record'"
refused "one that is near to nothing" 2 "unknown command \`xyzzy': \`stacktap --help' lists the commands" xyzzy

module="the kernel module stacktap is not loaded: run \`modprobe stacktap'"
check "no command, no module" run 1
check "no command, no module: says why" says "$err" "$module"
check "no command, no module: says what is next" says "$err" "stacktap doctor"
check "no command, no module: in three lines" test "$(wc -l <"$err")" -eq 3
refused "status" 1 "$module" status
refused "stop" 1 "$module" stop 1
refused "start" 1 "$module" start all
refused "set" 1 "$module" set 1 --rate 99
refused "events" 1 "$module" events
refused "record" 1 "modprobe stacktap" record -a --duration 1
refused "top" 1 "modprobe stacktap" top -n 1
refused "top: delay" 2 "\`0.01'" top -d 0.01
refused "top: group" 2 "\`cat'" top --group cat
refused "top: column" 2 "\`name'" top --sort name
refused "top: filter" 2 "\`('" top --filter "("
refused "top: user and kernel only" 2 "exclude each other" top --user-only --kernel-only
refused "top: two events" 2 "one event" top -e cycles -e page-faults
refused "report: by lines" 2 "unknown --by \`lines': use line, function, object, process, thread, container, service or cgroup" report --by lines x.otlp
refused "diff: by line" 2 "unknown --by \`line': use function, object, process, thread, container, service or cgroup" diff --by line x.otlp y.otlp
refused "top: command" 2 "\`sleep'" top sleep 1
check "record leaves no file" test -z "$(ls "$scratch"/stacktap.otlp* 2>/dev/null)"

for command in status "top -n 1" "stop 1" "start 1" "set 1 --rate 9" events "report x.otlp" "diff x.otlp y.otlp" "annotate f x.otlp" "flamegraph x.otlp" "convert -o x.folded x.otlp" "serve x.otlp" "objects x.otlp" "symbolize -o y.otlp x.otlp" "store list /no/such" \
	"unwind-info x.so"; do
	# shellcheck disable=SC2086 # words are arguments
	check "$command --json" run 1 $command --json
	check "$command --json says the error in JSON" python3 -c '
import json, sys
value = json.load(open(sys.argv[1]))
assert list(value) == ["error"] and len(value["error"]) > 20, value' "$out"
	check "$command --json says nothing else" test ! -s "$err"
done

refused "unknown option" 2 "--bogus" record --bogus
refused "unknown option, mistyped" 2 "did you mean \`--duration'" record --duratoin=5
refused "unknown option, of the default command" 2 "did you mean \`--json'" --jsn
refused "unknown short option" 2 "-Z" record -aZ
refused "ambiguous option" 2 "--al" record --al
refused "option without its argument" 2 "-F" record -F
refused "long option without its argument" 2 "--duration" record --duration
refused "rate 0" 2 "1 to 10000" record -F 0
refused "rate 10^9" 2 "1 to 10000" record -F 1000000000
refused "rate beyond all numbers" 2 "1 to 10000" record -F 99999999999999999999999
refused "attributes of no such form" 2 "key=value" record --resource-attributes nonsense
refused "negative rate" 2 "-5" record -F -5
refused "rate in words" 2 "many" record -F many
refused "period 0" 2 "period" record -c 0
refused "rate and period of nothing" 2 "-F and -c" record -F 99 -c 1000
refused "period behind a rate of its own" 2 "remove the -c after it" record -F 9 -e cycles/freq=97/ -c 1000
refused "period that no event takes" 2 "-c has no effect: every event sets its own rate or period" record -e cycles/freq=97/ -c 1000
refused "precise event" 2 "remove the modifier: cycles:u" record -e cycles:upp
refused "unknown event" 2 "did you mean \`cycles'" record -e cylces
refused "tracepoint" 2 "tracepoints are not supported" record -e sched:sched_switch
refused "too many events" 2 "more than 8" record -e cs -e cs -e cs -e cs -e cs -e cs -e cs -e cs -e cs
refused "duration" 2 "soon" record --duration soon
refused "duration 0" 2 "\`0'" record --duration 0
refused "depth" 2 "4096" record --max-stack 5000
refused "unknown --call-graph" 2 "use table or fp" record --call-graph dwarf
refused "no such process" 1 "no process 4194303" record -p 4194303
refused "no process at all" 2 "names no process" record -p ,
refused "a process in words" 2 "init" record -p init
refused "process and command" 2 "-p and -t exclude" record -p 1 -- true
refused "process and all" 2 "-p and -t exclude" record -p 1 -a
refused "thread and all" 2 "-p and -t exclude" record -t 1 -a
refused "no such thread" 1 "no thread 4194303" record -t 4194303
refused "no such user" 1 "no user \`no-such-user'" record -u no-such-user
refused "user beyond all" 2 "4294967295" record -u 4294967295
refused "name too long" 2 "use \`0123456789abcde'" record --comm 0123456789abcdef
refused "no name at all" 2 "names no program" record --comm ,
refused "no such cgroup" 1 "cgroup" record -G no/such.slice
refused "set: name too long" 2 "15 bytes" set all --comm 0123456789abcdef
refused "bad CPU list" 2 "1-" record -C 1-
refused "no such CPU" 1 "no CPU 4095" record -C 0,4095
refused "user and kernel only" 2 "exclude each other" record --user-only --kernel-only
refused "no such directory" 1 "/no/such/x.otlp" record -o /no/such/x.otlp
for ending in foo json otlp.gz htm; do
	refused "record -o x.$ending" 2 ".otlp .html .svg .pb.gz .pprof .folded" record -o "x.$ending"
done
same "docs/formats.md has the endings that record knows" "$(awk '/^\| ending /{ on = 1 } on && /^$/{ exit } on' docs/formats.md |
	grep -oE '^[^|]*\|[^|]*' | grep -oE '`\.[a-z.-]+`' | tr -d '`' | grep -vx '\.pgo' | sort)" \
	"$(sed 's/.*extensions are //' "$err" | tr ' ' '\n' | sort)"
refused "record -o x.pgo" 2 "stacktap symbolize" record -o x.pgo
for name in x x.otlp .hidden dir.d/x x.html x.svg x.pb.gz x.folded x.speedscope.json x.firefox.json x.perf; do
	mkdir -p "$scratch/dir.d"
	refused "record -o $name gets as far as the module" 1 "modprobe stacktap" record -o "$name"
done
check "and none leaves a file" test -z "$(ls -A "$scratch/dir.d"; ls -d "$scratch"/x* 2>/dev/null)"
refused "status with an argument" 2 "extra" status extra
refused "stop of nothing" 2 "needs one session" stop
refused "stop of two" 2 "needs one session" stop 1 2
refused "set of nothing" 2 "nothing to change" set 1
refused "set without a session" 2 "needs one session" set --rate 9
refused "set of rate and period" 2 "exclude each other" set 1 --rate 9 --period 9
refused "set of a lone source" 2 "--source needs" set 1 --source 0
refused "set of source 8" 2 "0 to 7" set 1 --rate 1 --source 8
refused "set of a budget in words" 2 "below 2^32" set 1 --budget-ns much
refused "record with a budget in words" 2 "below 2^32" record --budget-ns 2us
refused "events without end" 2 "\`0'" events --count 0
refused "no such file" 1 "/no/such.otlp" report /no/such.otlp
refused "no recording yet" 1 "\`stacktap record' writes one" report
refused "no recording yet, objects" 1 "\`stacktap record' writes one" objects
refused "two files" 2 "b.otlp" report a.otlp b.otlp
refused "limit" 2 "ten" report -n ten x.otlp

refused "no file" 2 "needs a file" unwind-info
refused "no such object" 1 "/no/such.so" unwind-info /no/such.so
refused "no ELF file" 1 "not an ELF file" unwind-info /etc/passwd
refused "a directory" 1 "not a regular file" unwind-info /
refused "address" 2 "\`x' is not an address" unwind-info "$stacktap" x
refused "two addresses" 2 "2" unwind-info "$stacktap" 1 2
refused "address and summary" 2 "not go with --summary" unwind-info --summary "$stacktap" 1
main=0x$(nm "$stacktap" | awk '$3 == "main" { print $1 }')
check "unwind-info" run 0 unwind-info "$stacktap"
check "unwind-info prints rows" test "$(grep -c 'cfa=' "$out")" -gt 1000
check "unwind-info ADDRESS" run 0 unwind-info "$stacktap" "$main"
same "unwind-info ADDRESS prints its row" "$(sed 's/.*  //' "$out")" "cfa=sp+8 ra=[cfa-8] fp=same"
check "unwind-info ADDRESS outside" run 1 unwind-info "$stacktap" 0xffffffff
check "unwind-info --summary" run 0 unwind-info --summary "$stacktap"
same "unwind-info --summary prints no rows" "$(wc -l <"$out")" 3
check "unwind-info --json" run 0 unwind-info --json "$stacktap"
check "unwind-info --json holds together" python3 -c '
import json, sys
value = json.load(open(sys.argv[1]))
assert value["rows"] == len(value["table"]) > 1000, value["rows"]
assert all(a["end"] == b["start"] for a, b in zip(value["table"], value["table"][1:]))
assert 0 < value["bytes"] <= value["eh_frame_bytes"] / 2' "$out"
# Foreign bytes are read in the parser alone, whose end is not the command's.
ends() {
	"$helpers/parser_ends.py" "$1" "$scratch/long.so" "$stacktap" unwind-info "$scratch/long.so" </dev/null >"$out" 2>"$err"
	[ $? -eq 1 ] && [ "$(wc -l <"$err")" -eq 1 ] && [ ! -s "$out" ] && says "$err" "$scratch/long.so: $2"
}
check "unwind-info whose parser crashes" ends SIGKILL "the parser crashed on this file, or ran out of memory; \`readelf"
check "unwind-info whose parser hangs" ends SIGSTOP "compiling its table takes more than 10 seconds; try again"
(ulimit -n 4 && "$stacktap" unwind-info "$stacktap") >"$out" 2>"$err" </dev/null
same "unwind-info without a parser: exit status" $? 1
check "unwind-info without a parser says so" says "$err" "the parser cannot be started; raise the limits"
check "unwind-info without a parser prints no rows" test ! -s "$out"
refused "doctor with an argument" 2 "extra" doctor extra
# What it finds is this machine's; that its words agree with each other is not.
cat >"$scratch/doctor.py" <<'PYTHON'
import json, os, subprocess, sys
program, wrapper = sys.argv[1], sys.argv[2:]
def run(*options):
    return subprocess.run([*wrapper, program, "doctor", *options], capture_output=True, text=True)
result, text = run("--json"), run()
value = json.loads(result.stdout)
checks = {check["name"]: check for check in value["checks"]}
states = [check["state"] for check in value["checks"]]
assert not result.stderr and not text.stderr, result.stderr + text.stderr
assert len(checks) == len(states) == 18, checks
assert states.count("problem") == value["problems"], states
assert states.count("warning") == value["warnings"]
assert result.returncode == text.returncode == (1 if value["problems"] else 0), result.returncode
assert all(check["remedy"] for check in checks.values()
           if check["state"] in ("problem", "warning")), checks
assert os.uname().release in checks["kernel"]["text"]
assert checks["module"]["state"] != "ok", checks["module"]
assert checks["limits"]["state"] == "unknown"
lines = text.stdout.splitlines()
assert lines[-1].startswith(f"{value['problems']} problem")
for check in checks.values():
    assert any(check["text"] in line for line in lines), check
    assert not check["remedy"] or any(line.endswith("-> " + check["remedy"]) for line in lines)
if wrapper or os.geteuid():
    assert "neither CAP_PERFMON" in checks["privilege"]["text"], checks["privilege"]
PYTHON
check "doctor agrees with itself" python3 "$scratch/doctor.py" "$stacktap"
if [ "$(id -u)" -eq 0 ]; then
	check "doctor without capabilities" python3 "$scratch/doctor.py" "$stacktap" \
		setpriv --bounding-set -all --inh-caps -all
else
	check "doctor without capabilities" python3 "$scratch/doctor.py" "$stacktap"
fi
refused "side band of odd size" 2 "5000" record --sideband-bytes 5000
refused "slice of odd size" 2 "1028" record --slice-bytes 1028
refused "small slice" 2 "1024" record --slice-max-bytes 1016
refused "large slice" 2 "65536" record --slice-max-bytes 65544
refused "side band below a page" 2 "2048" record --sideband-bytes 2048

refused "no time" 2 "\`soon'" report --from soon x.otlp
refused "no time span" 2 "\`@5'" report --since @5 x.otlp
python3 -B tests/otlp/make_sample.py --payloads 3 --events 20 "$scratch/sample.otlp"
check "report" run 0 report sample.otlp
same "report prints all processes" "$(grep -c 'samples, service' "$out")" 4
check "report --process --event" run 0 report --process 4711 --event cpu sample.otlp
same "report --process --event prints one" "$(grep -c 'samples, service' "$out")" 1
check "report --json of the middle third" run 0 report --json --from 15 --to 30 sample.otlp
check "report --json has the middle third" python3 -c '
import json, sys
value = json.load(open(sys.argv[1]))
assert [event["samples"] for event in value["events"]] == [66, 4], value["events"]' "$out"
# shellcheck disable=SC2016 # the inner shell expands it
check "report of a pipe, its last seconds" bash -c 'cat "$2" | "$1" report --since 16 - | grep -F "samples 66,"' - \
	"$stacktap" "$scratch/sample.otlp"
"$stacktap" report "$scratch/sample.otlp" | sed 1d >"$scratch/whole"
check "report of a pipe, the same errors" cmp "$scratch/whole" <("$stacktap" report - < <(cat "$scratch/sample.otlp") | sed 1d)
# as in a full /tmp, no file may be larger than 1 KiB
(
	trap '' XFSZ
	ulimit -f 1
	"$stacktap" report - < <(cat "$scratch/sample.otlp") 2>"$scratch/said"
) | sed 1d >"$scratch/once"
check "report of a pipe that cannot be kept says so" says "$scratch/said" \
	"cannot copy standard input to a temporary file in ${TMPDIR:-/tmp} (File too large): sampling errors (±) are not shown; save the recording"
same "and shows none" "$(grep -c ± "$scratch/once")" 0
same "and the same shares" "$(sed 's/ ± [0-9.]*//g; s/  */ /g' "$scratch/once")" "$(sed 's/ ± [0-9.]*//g; s/  */ /g' "$scratch/whole")"
TMPDIR=$scratch/absent "$stacktap" report --json - < <(cat "$scratch/sample.otlp") 2>"$scratch/said" >"$out"
check "JSON of a pipe without TMPDIR is told of, too" says "$scratch/said" "temporary file in $scratch/absent (No such file or directory): sampling"
refused "report of no such process" 1 "no process 9" report --process 9 sample.otlp
refused "report of no such process, and what helps" 1 "; \`stacktap report --by process' lists those there are" report --process 9 sample.otlp
refused "report of what is there, but not together" 1 "there are no samples of process burn and thread x in it" \
	report --process burn --thread x sample.otlp
refused "report of no such thread" 1 "no thread x" report --thread x sample.otlp
refused "report of no such container" 1 "no container x" report --container x sample.otlp
refused "report of no such service" 1 "no service x" report --service x sample.otlp
refused "report of no such event" 1 "no event x in it; \`stacktap report' lists" report --event x sample.otlp
refused "report of no such time" 1 "no samples in it from 3600 s on" report --from 1h sample.otlp

install -m 000 "$scratch/sample.otlp" "$scratch/theirs.otlp"
no_rights=()
[ "$(id -u)" -ne 0 ] || no_rights=(setpriv --bounding-set -all --inh-caps -all)
for command in report objects "serve -l 0"; do
	# shellcheck disable=SC2086,SC2016 # words are arguments; the inner shell expands it
	check "$command of what is another's says what helps" bash -c 'out=$(timeout 30 "$@" 2>&1)
		test $? -eq 1 && grep -F "Permission denied; recordings are readable by their owner alone: use sudo" <<<"$out"' - \
		"${no_rights[@]}" "$stacktap" $command "$scratch/theirs.otlp"
done

refused "report of two views" 2 "exclude each other" report --tree --callers sample.otlp
refused "report by nothing" 2 "unknown --by \`cat'" report --by cat sample.otlp
refused "report --percent-limit of processes" 2 "--percent-limit" report --percent-limit 1 sample.otlp
refused "report --filter of the summary" 2 "--filter does not work with --summary" report --summary --filter x sample.otlp
refused "report --filter of no expression" 2 "invalid regular expression \`('" report --filter '(' sample.otlp
for options in "" "--by function"; do
	# shellcheck disable=SC2086 # words
	check "report${options:+ $options} --filter" python3 -B -c '
import json, subprocess, sys
def rows(*more):
    said = json.loads(subprocess.run([*sys.argv[1:], *more], capture_output=True, check=True).stdout)
    return said["rows"] if "rows" in said else [
        dict(function, process=process["name"]) for event in said["events"] for process in event["processes"]
        for function in process["functions"]]
every = rows()
name = every[0]["name"]
some = rows("--filter", "^" + name[:4])
assert some and some == [row for row in every if any(str(row.get(key, "")).startswith(name[:4])
                                                     for key in ("name", "file", "process"))], (some, every)
assert not rows("--filter", "^nobody has this$")' "$stacktap" report --json -n 0 $options "$scratch/sample.otlp"
done
check "report --by line" run 0 report --by line sample.otlp
check "report --by line of what has none says so" says "$err" "sample.otlp has no source lines: \`stacktap symbolize' adds them"
refused "report --percent-limit in words" 2 "\`much'" report --tree --percent-limit much sample.otlp
refused "report --addresses of a tree" 2 "--addresses" report --addresses --tree sample.otlp
refused "report --tree of no such process" 1 "no process 9" report --tree --process 9 sample.otlp
refused "report --summary of no such file" 1 "/no/such.otlp" report --summary /no/such.otlp

refused "diff of one file" 2 "two files" diff a.otlp
refused "diff of three files" 2 "not 3" diff a.otlp b.otlp c.otlp
refused "diff of no such file" 1 "/no/such.otlp" diff sample.otlp /no/such.otlp
refused "diff of standard input twice" 2 "standard input" diff - -
refused "diff of two times of two files" 2 "two times of one file" diff --before-to 15 a.otlp b.otlp
refused "diff: no time" 2 "\`soon'" diff --before-from soon a.otlp
refused "diff of a time before without samples" 1 "sample.otlp: there are no samples in it from 3600 s on" \
	diff --before-from 1h --from 15 sample.otlp
refused "diff of a time after without samples" 1 "sample.otlp: there are no samples in it from 50.5 s to 2023-11-14T22:14:20Z" \
	diff --before-to 15 --from 50.5 --to @1700000060 sample.otlp
refused "diff of two times and no such process" 1 "no process 9 in it up to 15 s" \
	diff --before-to 15 --from 15 --process 9 sample.otlp
refused "diff by nothing" 2 "unknown --by \`cat'" diff --by cat a.otlp b.otlp
refused "diff --filter of no expression" 2 "invalid regular expression \`('" diff --filter '(' a.otlp b.otlp
refused "diff: no percentage" 2 "\`much'" diff --fail-over much a.otlp b.otlp
refused "diff: beyond all" 2 "\`101%'" diff --fail-over 101% a.otlp b.otlp
refused "diff of no such process" 1 "no process 9" diff --process 9 sample.otlp sample.otlp
check "diff" run 0 diff --fail-over 0 sample.otlp sample.otlp
check "diff of a file and itself finds nothing" test "$(grep -c ': 0 grew, 0 shrank, ' "$out")" -eq 3

# of one function 10 % before, 20 % after: 10 points
PYTHONPATH=tests/view python3 -B -c '
import sys, diff
for seed, (name, planted) in enumerate((("fast", 0.10), ("slow", 0.20))):
    with open(f"{sys.argv[1]}/{name}.otlp", "wb") as file:
        file.write(diff.recording(seed, planted, stays=0.5))' "$scratch"
check "--fail-over 5% of a function that grew by 10 points" run 3 diff --fail-over 5% fast.otlp slow.otlp
check "which it names" says "$out" "planted"
check "and it says so" says "$out" "--fail-over 5%: failed, 2 functions grew by more than 5 percentage points"
check "--fail-over 15% of it" run 0 diff --fail-over 15% fast.otlp slow.otlp
check "and it says what it looked for" says "$out" "--fail-over 15%: passed, 0 functions grew by more than 15 percentage points"
check "--fail-over 5% of one that shrank" run 0 diff --fail-over 5% --filter planted slow.otlp fast.otlp
check "without it a change is no failure" run 0 diff fast.otlp slow.otlp
check "as JSON the exit status is the same" run 3 diff --json --fail-over 5 fast.otlp slow.otlp
check "nothing is on standard error then" test ! -s "$err"

# A file may not grow at all: what was there stays, and nothing is left beside it
for name in kept.html kept.pb.gz; do
	echo old >"$scratch/$name"
	command=convert
	[ "$name" = kept.pb.gz ] || command=flamegraph
	# shellcheck disable=SC2016 # the inner shell expands it
	check "$command without room for its file" bash -c 'cd "$3" || exit; trap "" XFSZ; ulimit -f 0
		said=$("$1" "$2" -o "$4" sample.otlp 2>&1); [ $? -eq 1 ] && [ "$said" = "stacktap: cannot write $4: File too large" ]' \
		- "$stacktap" "$command" "$scratch" "$name"
	same "$command keeps what was there" "$(cat "$scratch/$name")" old
	check "$command leaves nothing beside it" test ! -e "$scratch/$name.partial"
done
# Files are their user's alone, and have one writer at a time
check "convert for the mode of its file" run 0 convert -o mode.pb.gz sample.otlp
same "nobody else may read what is written" "$(stat -c %a "$scratch/mode.pb.gz")" 600
exec 9>"$scratch/busy.html.partial"
flock 9
refused "a file that is being written" 1 "cannot write busy.html: Device or resource busy" flamegraph -o busy.html sample.otlp
check "its writer's part is left" test -e "$scratch/busy.html.partial"
exec 9>&-

# The last of two messages is cut off
cat "$scratch/sample.otlp" "$scratch/sample.otlp" | head -c -10 >"$scratch/cut.otlp"
for command in "report" "convert -o cut.pb.gz" "flamegraph -o cut.html"; do
	# shellcheck disable=SC2086 # an option and its value
	check "$command of what is cut off" run 0 $command cut.otlp
	check "$command says so" says "$err" "cut.otlp is cut off or damaged; this is what is whole"
done

# on_terminal TERM ARGUMENT...: with standard input and output on a terminal, and a pager that can be told by what it writes
mkdir -p "$scratch/pager"
printf '#!/bin/sh\ncat >/dev/null\necho paged\n' >"$scratch/pager/less"
chmod +x "$scratch/pager/less"
on_terminal() {
	(cd "$scratch" && TERM=$1 PATH=$scratch/pager:$PATH timeout 30 script -qec "$stacktap ${*:2}" /dev/null) </dev/null >"$out" 2>&1
}
on_terminal xterm report sample.otlp
check "report on a terminal is paged" says "$out" paged
on_terminal dumb report sample.otlp
check "not on one that cannot move its cursor" says "$out" "samples 198, source cpu"
on_terminal xterm report -
check "report does not wait for a terminal's input" says "$out" "standard input is a terminal"
on_terminal xterm convert --format pprof -o - sample.otlp
check "nothing binary on a terminal" says "$out" "this is binary: redirect standard output, or name a file with -o"

check "alone, without a module" run 1
check "says what is next" says "$err" "next: run \`stacktap doctor', which checks this host"
check "and what can be done without one" says "$err" "without the module: \`stacktap convert -o stacktap.otlp perf.data'"

refused "flamegraph of no such file" 1 "/no/such.otlp" flamegraph /no/such.otlp
refused "flamegraph of two files" 2 "b.otlp" flamegraph a.otlp b.otlp
refused "flamegraph: unknown option" 2 "--bogus" flamegraph --bogus
check "flamegraph: JSON and page both on standard output" run 2 flamegraph --json -o - sample.otlp
refused "flamegraph of no such process" 1 "no process 9" flamegraph --process 9 sample.otlp
refused "flamegraph into no directory" 1 "/no/such/x.html" flamegraph -o /no/such/x.html sample.otlp
refused "flamegraph --diff of no such file" 1 "/no/such.otlp" flamegraph --diff /no/such.otlp sample.otlp
refused "flamegraph --diff of a file and a time" 2 "use one of them" flamegraph --diff a.otlp --before-to 15 sample.otlp
refused "flamegraph of a time before without samples" 1 "no samples in it from 3600 s on" flamegraph --before-from 1h sample.otlp
refused "flamegraph --diff of standard input twice" 2 "standard input" flamegraph --diff - -
check "flamegraph leaves nothing behind" test -z "$(ls "$scratch"/flamegraph* 2>/dev/null)"
check "flamegraph" run 0 flamegraph sample.otlp
check "flamegraph says what it wrote" says "$err" "flamegraph.html: 210 samples, 10 nodes"
check "flamegraph says nothing on standard output" test ! -s "$out"
check "flamegraph leaves no partial file" test ! -e "$scratch/flamegraph.html.partial"
check "flamegraph replaces an older one" run 0 flamegraph -o flamegraph.html --process 4711 sample.otlp
check "flamegraph of a part" says "$err" "135 samples"
# shellcheck disable=SC2016 # the inner shell expands it
check "flamegraph of a pipe, into a pipe" bash -c 'cat "$2" | "$1" flamegraph -o - - | grep -q "<!DOCTYPE html>"' - \
	"$stacktap" "$scratch/sample.otlp"
check "flamegraph --json" run 0 flamegraph --json -o x.html sample.otlp
check "flamegraph --json says what it wrote" python3 -c '
import json, os, sys
value = json.load(open(sys.argv[1]))
assert value["samples"] == 210 and value["format"] == "html" and value["events"] == 2, value
assert value["bytes"] == os.path.getsize(sys.argv[2]), value' "$out" "$scratch/x.html"
check "flamegraph --diff" run 0 flamegraph --diff sample.otlp --svg sample.otlp
check "flamegraph of two times" run 0 flamegraph --before-to 15 --from 15 -o times.svg sample.otlp
check "flamegraph of two times says what it compares" grep -q 'sample.otlp: what changed between two times' "$scratch/times.svg"
check "flamegraph --diff says what it compares" grep -q 'sample.otlp: what changed since sample.otlp' \
	"$scratch/flamegraph.svg"
check "flamegraph --svg" run 0 flamegraph --svg --title 'a < b' sample.otlp
check "flamegraph --svg is XML" python3 -c '
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
assert root[0].text == "a < b", root[0].text
assert len(root.findall("{*}g")) == 10, len(root.findall("{*}g"))' "$scratch/flamegraph.svg"
check "flamegraph -o x.svg" run 0 flamegraph -o x.svg --event off_cpu sample.otlp
check "flamegraph -o x.svg is one" grep -q '<svg' "$scratch/x.svg"
# shellcheck disable=SC2016
check "flamegraph onto a full disk" bash -c 'cd "$2" && "$1" flamegraph -o /dev/full sample.otlp; test $? -eq 1' - \
	"$stacktap" "$scratch"

refused "serve of no such file" 1 "/no/such.otlp" serve /no/such.otlp
refused "serve of two files" 2 "b.otlp" serve a.otlp b.otlp
refused "serve to other hosts" 1 "ssh -L" serve -l 0.0.0.0:0 sample.otlp
printf '\037\213\010 pprof' >"$scratch/cpu.pb.gz"
: >"$scratch/nothing.otlp"
head -c 100 "$scratch/sample.otlp" >"$scratch/begun.otlp"
refused "serve of no profile" 1 "cpu.pb.gz is a perf or pprof file, not OTLP: \`stacktap convert" serve cpu.pb.gz
refused "serve of nothing" 1 "nothing.otlp holds no profiles" serve nothing.otlp
refused "serve of what is cut off" 1 "begun.otlp is cut off inside its first message" serve begun.otlp
refused "serve of nothing on standard input" 1 "standard input holds no profiles" serve -
python3 -c 'import socket, sys, time
one = socket.create_server(("127.0.0.1", 0))
print(one.getsockname()[1], flush=True)
time.sleep(30)' >"$scratch/port" &
occupant=$!
until [ -s "$scratch/port" ]; do sleep 0.1; done
refused "serve where another one listens" 1 "cannot listen on $(<"$scratch/port"): Address already in use" serve -l "$(<"$scratch/port")" sample.otlp
kill "$occupant"
refused "serve nowhere" 1 "\`port' is not an address" serve -l port sample.otlp
refused "serve in no directory, by unix:" 1 "cannot listen on /no/such/s: No such file" serve -l unix:/no/such/s sample.otlp
refused "serve in no directory" 1 "cannot listen on /no/such/s: No such file" serve -l /no/such/s sample.otlp

refused "objects of no such file" 1 "/no/such.otlp" objects sample.otlp /no/such.otlp
check "objects" run 0 objects sample.otlp
check "objects says what it has frames of" says "$out" "/usr/bin/burn"
check "objects --missing --json" run 0 objects --missing --json sample.otlp
check "objects --missing has what lacks a name" python3 -c '
import json, sys
found = json.load(open(sys.argv[1]))["objects"]
sys.exit(not found or any(not one["unnamed"] for one in found))' "$out"
# a store of two files: the first message, and both others, of which the last is cut off later
python3 -c '
import os, sys
data = open(sys.argv[1] + "/sample.otlp", "rb").read()
first = 4 + int.from_bytes(data[:4], "big")
os.mkdir(sys.argv[1] + "/kept")
for time, part in (1764000000000, data[:first]), (1764000015000, data[first:]):
    with open(f"{sys.argv[1]}/kept/profiles-{time}.otlp", "wb") as file:
        file.write(part)
' "$scratch"
touch -d "3 hours ago" "$scratch/kept/profiles-1764000000000.otlp"
check "objects of a file" run 0 objects --json sample.otlp
cp "$out" "$scratch/objects.json"
check "objects of a store" run 0 objects --json kept
check "objects of a store has what the file has" cmp "$out" "$scratch/objects.json"
check "symbolize of a store" run 0 symbolize --debug-dir "$scratch/kept" -o x.otlp kept
check "symbolize of a store makes one file of it" cmp "$scratch/sample.otlp" "$scratch/x.otlp"
check "symbolize of a store into a directory" run 0 symbolize --debug-dir "$scratch/kept" -o named/ kept
check "symbolize of a store into a directory that is there" run 0 symbolize --debug-dir "$scratch/kept" -o named kept
check "symbolize makes the same files there" diff -r "$scratch/kept" "$scratch/named"
refused "symbolize of a store into itself" 1 "name another directory" symbolize -o kept kept
refused "symbolize of a store into a directory that cannot be" 1 "No such file" symbolize -o no/such/ kept
refused "symbolize of a file into a directory" 1 "named" symbolize -o named sample.otlp
mkdir "$scratch/none"
refused "symbolize of an empty store" 1 "holds no profiles" symbolize -o x.otlp none
refused "objects of an empty store" 1 "holds no profiles: there is no file profiles-TIME.otlp in it" objects none
refused "report of an empty store" 1 "holds no profiles: there is no file profiles-TIME.otlp in it" report none
refused "store of nothing" 2 "list, export or prune" store
refused "store of no such verb" 2 "unknown store command \`show'" store show
refused "store of two directories" 2 "store takes one directory" store list kept kept
refused "store of no such directory" 1 "/no/such: No such file" store list /no/such
refused "store export to nowhere" 2 "-o FILE" store export kept
refused "store export to nowhere, of nowhere" 2 "-o FILE" store export /no/such
refused "store export of another time" 1 "has nothing from that time" store export -o none.otlp --to @1 kept
check "store export leaves no file behind" test ! -e "$scratch/none.otlp"
refused "store prune of what" 2 "--older-than" store prune kept
refused "store prune by no time" 2 "\`old'" store prune --older-than old kept
refused "store prune by no size" 2 "\`1T'" store prune --max-bytes 1T kept
check "store list --json" run 0 store list --json kept
check "store list counts messages and samples" python3 -c '
import json, sys
files = json.load(open(sys.argv[1]))["files"]
assert [f["messages"] for f in files] == [1, 2], files
assert [f["samples"] for f in files] == [files[0]["samples"], 2 * files[0]["samples"]] and files[0]["samples"] > 0, files
assert files[0]["to"] <= files[1]["from"] and not any(f["damaged"] for f in files), files' "$out"
check "store list" run 0 store list kept
same "store list has a line for each" "$(wc -l <"$out")" 3
check "store export" run 0 store export -o all.otlp kept
check "store export gives back what was kept" cmp "$scratch/sample.otlp" "$scratch/all.otlp"
check "store export of the middle third" run 0 store export --from 15 --to 30 -o - kept
cp "$out" "$scratch/middle.otlp"
check "store export of the middle third as a file" run 0 report --json middle.otlp
check "store export has one message of it" python3 -c '
import sys
data = open(sys.argv[1], "rb").read()
assert len(data) == 4 + int.from_bytes(data[:4], "big")
assert data in open(sys.argv[2], "rb").read()' "$scratch/middle.otlp" "$scratch/sample.otlp"
check "store export of the last" run 0 store export --since 10 -o last.otlp --json kept
check "store export says what it wrote" says "$out" '"messages":1'
check "store prune --dry-run" run 0 store prune -n --older-than 2h kept
check "store prune --dry-run says what it would do" says "$out" "would remove 1 of 2 files"
check "store prune --dry-run removes nothing" test -e "$scratch/kept/profiles-1764000000000.otlp"
exec 7<"$scratch/kept"
flock -n 7
refused "store prune of what a daemon has open" 1 "in use by a daemon" store prune --older-than 2h kept
exec 7<&-
check "store prune" run 0 store prune --older-than 2h kept
same "store prune removes what is old" "$(ls "$scratch/kept")" profiles-1764000015000.otlp
truncate -s -1 "$scratch/kept/profiles-1764000015000.otlp"
check "store list of what is being written" run 0 store list --json kept
check "store list has the whole messages" says "$out" '"messages":1'
check "store prune --max-bytes" run 0 store prune --max-bytes 1K --json kept
check "store prune --max-bytes says how many" says "$out" '"removed":1'
check "store list of an empty store" run 0 store list kept
same "store list of an empty store has its head" "$(wc -l <"$out")" 1
refused "store export of an empty store" 1 "kept holds no profiles" store export -o none.otlp kept

refused "symbolize of no such file" 1 "/no/such.otlp" symbolize -o x.otlp /no/such.otlp
refused "symbolize to nothing" 2 "-o FILE" symbolize sample.otlp
refused "symbolize of two files" 2 "b.otlp" symbolize -o x.otlp a.otlp b.otlp
refused "symbolize by no such file" 1 "/no/such" symbolize --binary /no/such -o x.otlp sample.otlp
refused "symbolize by no such directory" 1 "/no/such" symbolize --debug-dir /no/such -o x.otlp sample.otlp
refused "symbolize in no such tree" 1 "/no/such" symbolize --sysroot /no/such -o x.otlp sample.otlp
refused "symbolize by a server that is none" 2 "https://debuginfod.example" symbolize --debuginfod debuginfod -o x.otlp sample.otlp
refused "symbolize by a file as a server" 2 "file:///" symbolize --debuginfod file:///etc -o x.otlp sample.otlp
refused "symbolize by files of no size" 2 "100M" symbolize --debuginfod http://localhost:9 --debuginfod-max 0 -o x.otlp sample.otlp
refused "symbolize by a server for no time" 2 "1h" symbolize --debuginfod http://localhost:9 --debuginfod-timeout 2h -o x.otlp sample.otlp
HOME="" XDG_CACHE_HOME="" refused "symbolize without a place for what is fetched" 1 "XDG_CACHE_HOME" symbolize --debuginfod http://localhost:9 -o x.otlp sample.otlp
check "symbolize without any debug file" run 0 symbolize --debug-dir "$scratch" -o x.otlp sample.otlp
check "symbolize says that there was none" says "$out" "there is no file of this build"
check "symbolize leaves what it cannot name" cmp "$scratch/sample.otlp" "$scratch/x.otlp"
refused "report of lines and addresses" 2 "--addresses and --lines" report --lines --addresses sample.otlp
refused "report of lines by what" 2 "--lines is for" report --lines --tree sample.otlp
refused "annotate of nothing" 2 "a FUNCTION" annotate
refused "annotate of two files" 2 "b.otlp" annotate f a.otlp b.otlp
refused "annotate of a file alone" 2 "needs a FUNCTION before the file; \`stacktap report sample.otlp' lists the hottest" annotate sample.otlp
refused "annotate of no such file" 1 "/no/such.otlp" annotate f /no/such.otlp
refused "annotate of no such function" 1 "no function \`f'" annotate f sample.otlp
refused "annotate of one that only calls" 1 "itself: 210 are in what it calls" annotate main sample.otlp
refused "annotate in no such object" 1 "of libx.so in it" annotate --object libx.so alpha sample.otlp
refused "annotate of no such process" 1 "no process 1" annotate --process 1 alpha sample.otlp
refused "annotate in no such style" 2 "\`masm'" annotate -M masm f sample.otlp
refused "annotate with no such limit" 2 "\`much'" annotate --percent-limit much f sample.otlp
refused "annotate by no such file" 1 "/no/such" annotate --binary /no/such alpha sample.otlp
refused "annotate without lines and code" 1 "no file of this build" annotate --debug-dir "$scratch" alpha sample.otlp
refused "annotate of the kernel" 1 "kernel" annotate "read_zero" sample.otlp
refused "convert of no such file" 1 "/no/such.otlp" convert -o x.folded /no/such.otlp
refused "convert to nothing" 2 "-o FILE" convert sample.otlp
refused "convert to what" 2 "\`x.json'" convert -o x.json sample.otlp
refused "convert to no format, which there are" 2 "firefox, perf-script" convert --format svg -o x sample.otlp
refused "convert to no format" 2 "\`svg'" convert --format svg -o x sample.otlp
refused "convert of two files" 2 "b.otlp" convert -o x.folded a.otlp b.otlp
refused "convert of no value" 2 "\`time'" convert --value time -o x.folded sample.otlp
refused "convert of no such event" 1 "no event x" convert --event x -o x.folded sample.otlp
check "convert" run 0 convert -o x.folded sample.otlp
check "convert says what it lost" says "$err" "x.folded: 198 samples of cpu as folded, without times, threads"
check "convert says what else it lost" says "$err" "without 1 more event (--event)"
check "convert says it in one line" test "$(wc -l <"$err")" -eq 1
same "convert writes the stacks" "$(sort "$scratch/x.folded")" "burn;main;[no symbol] 6
burn;main;alpha 60
burn;main;beta 60
burn;main;read_zero_[k] 3
copy;main;[no symbol] 6
copy;main;gamma 60
copy;main;read_zero_[k] 3"
# shellcheck disable=SC2016 # the inner shell expands it
check "convert of a pipe, into a pipe" bash -c 'cat "$2" | "$1" convert --event off_cpu --value weight --format folded -o - - |
	grep -Fx "burn;main;read_zero_[k] 12000"' - "$stacktap" "$scratch/sample.otlp"
check "convert --json" run 0 convert --json -f pprof -o x.bin --process 4712 sample.otlp
check "convert --json says what it wrote" python3 -c '
import gzip, json, os, sys
value = json.load(open(sys.argv[1]))
assert value["format"] == "pprof" and value["samples"] == 69 and value["other_events"] == 1, value
assert value["bytes"] == os.path.getsize(sys.argv[2]), value
assert b"gamma" in gzip.open(sys.argv[2]).read()' "$out" "$scratch/x.bin"
check "convert pprof to otlp" run 0 convert -o back.otlp x.bin
check "convert to otlp says what it lost" says "$err" "back.otlp: 69 samples of pprof as otlp"
check "and says what OTLP wants of a Profile, and of no payload that is not there" bash -c '
	python3 -B tests/otlp/check.py "$1" | grep -E "profile_id|period_type|payload_format|original"; test $? = 1' - "$scratch/back.otlp"
check "and back" run 0 convert -o back.folded back.otlp
same "what comes back is what there was" "$(sort "$scratch/back.folded")" "copy;main;[no symbol] 6
copy;main;gamma 60
copy;main;read_zero_[k] 3"
python3 -B - "$scratch" <<'PYTHON'
import gzip, sys
# a sample of no name; of the whole two comments of which one is no UTF-8, frames to drop and to keep, a document
whole = b"\x32\0\x0a\0\x12\6\x0a\1\7\x12\1\1\x22\2\x08\7"
strings = b"".join(b"\x32" + bytes([len(text)]) + text for text in (b"it was slow", b"h\xff\xfe", b"^skip$", b"^keep$", b"https://example.com/"))
for name, more in (("remarks", b"\x6a\2\1\2\x38\3\x40\4\x78\5"), ("chatty", b"\x68\1" * 257),
                   ("negative", b"\x12\x0f\x0a\1\7\x12\x0a" + b"\xfe" + b"\xff" * 8 + b"\1")):
    with gzip.open(f"{sys.argv[1]}/{name}.pprof", "wb") as file:
        file.write(whole + strings + more)
PYTHON
check "convert pprof with comments to otlp" run 0 convert -o remarks.otlp remarks.pprof
check "says that a text is not what it was" says "$err" "as otlp, without 1 text with control characters, no UTF-8 or more than 4095 bytes as it was"
check "its comments are the Profile's, by OpenTelemetry's name" python3 -B -c '
import sys
sys.path[:0] = ["tests/otlp"]
import wire
(payload,) = wire.read(sys.argv[1])
data = wire.decode(payload)[0]
tables, (profile,) = data.dictionary, data.resource_profiles[0].scope_profiles[0].profiles
said = {tables.string_table[tables.attribute_table[i].key_strindex]: tables.attribute_table[i].value for i in profile.attribute_indices}
assert [value.string_value for value in said["pprof.profile.comment"].array_value.values] == ["it was slow", "h??"], said
assert said["pprof.profile.drop_frames"].string_value == "^skip$" and said["pprof.profile.keep_frames"].string_value == "^keep$", said
assert said["pprof.profile.doc_url"].string_value == "https://example.com/", said
' "$scratch/remarks.otlp"
check "and back" run 0 convert -o remarks.pb.gz remarks.otlp
check "says what a recording has more" says "$err" "as pprof, without times and CPUs"
check "and nothing that it has not" grep -x 'stacktap: .*, without times and CPUs' "$err"
check "convert pprof with a negative value to otlp" run 0 convert -o negative.otlp negative.pprof
check "and back without it" run 0 convert -o negative.pb.gz negative.otlp
check "which is told" says "$err" "as pprof, without times and CPUs; values below 0"
check "and has it again" bash -c 'zcat "$1" | grep -aF "it was slow" && zcat "$1" | grep -aF "^keep$"' - "$scratch/remarks.pb.gz"
check "convert pprof with many comments" run 0 convert -o chatty.otlp chatty.pprof
check "says that not all were kept" says "$err" "as otlp, without comments beyond the first 256"
printf 'a b 1/2 5.000000001: 7 cycles: \n\t ffffffff81000000 f+0x1 ([k])\n\n' >"$scratch/script"
check "convert perf script to otlp" run 0 convert -o back.otlp script
check "its samples" run 0 report --json back.otlp
check "have all that perf says" python3 -c '
import json, sys
event, = json.load(open(sys.argv[1]))["events"]
process, = event["processes"]
assert (event["source"], event["samples"], event["weight"]) == ("cycles", 1, 7), event
assert (process["pid"], process["name"], process["functions"][0]["name"]) == (1, "a b", "f"), process' "$out"
# shellcheck disable=SC2016 # the inner shell expands it
check "convert of a pipe to otlp" bash -c 'cd "$2" && cat script | "$1" convert -o piped.otlp - && cmp piped.otlp back.otlp' - \
	"$stacktap" "$scratch"
printf 'PERFILE2........' >"$scratch/perf.data"
# shellcheck disable=SC2016
check "convert of perf.data in a pipe" bash -c '"$1" convert -f otlp -o - - <"$2/perf.data" 2>&1 | grep "pass the file"' - \
	"$stacktap" "$scratch"
refused "report of perf.data" 1 "perf.data is a perf or pprof file, not OTLP: \`stacktap convert" report perf.data
refused "report of pprof" 1 "x.bin is a perf or pprof file, not OTLP: \`stacktap convert" report x.bin
refused "objects of perf.data" 1 "perf.data is a perf or pprof file, not OTLP: \`stacktap convert" objects perf.data
refused "symbolize of pprof" 1 "x.bin is a perf or pprof file, not OTLP: \`stacktap convert" symbolize -o named.otlp x.bin
refused "convert to default.pgo without lines" 1 "stacktap symbolize" convert -o default.pgo sample.otlp
refused "convert to otlp of a part" 2 "samples cannot be selected" convert --process 1 -o y.otlp x.bin
refused "convert to otlp of no such file" 1 "/no/such.pb.gz" convert -o y.otlp /no/such.pb.gz
head -c 100 "$scratch/x.bin" >"$scratch/cut.bin"
refused "convert to otlp of a file that is cut off" 1 "cut.bin is damaged" convert -o y.otlp cut.bin
refused "convert to otlp of otlp" 1 "sample.otlp is neither pprof" convert -o y.otlp sample.otlp
# shellcheck disable=SC2016
check "convert onto a full disk" bash -c 'cd "$2" && "$1" convert --format perf-script -o /dev/full sample.otlp; test $? -eq 1' - \
	"$stacktap" "$scratch"

head -c 4096 /dev/urandom >"$scratch/random.otlp"
printf 'hello, world' >"$scratch/hello.otlp"
: >"$scratch/empty.otlp"
for file in random hello empty; do
	check "report of $file bytes" run 1 report "$file.otlp"
	check "report of $file bytes names the file" says "$err" "$file.otlp"
	refused "flamegraph of $file bytes" 1 "$file.otlp" flamegraph "$file.otlp"
	refused "convert of $file bytes" 1 "$file.otlp" convert -o x.perf "$file.otlp"
done

# a message, two seconds nothing, another one: on a terminal it says how far it is, and takes that away again
check "progress on a terminal" python3 -B -c '
import fcntl, pty, struct, subprocess, sys, termios, time
sys.path.insert(0, "tests/cli")
from terminal import drain
own, terminal = pty.openpty()
child = subprocess.Popen([sys.argv[1], "report", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=terminal)
message = open(sys.argv[2], "rb").read()
child.stdin.write(message)
child.stdin.flush()
# from when it has read that on, whenever it does
while child.poll() is None and struct.unpack("i", fcntl.ioctl(child.stdin, termios.FIONREAD, bytes(4)))[0]:
    time.sleep(0.1)
time.sleep(2.5)
child.stdin.write(message)
out, _ = child.communicate()
said = drain(own, terminal, child)
assert b"samples" in out and child.returncode == 0, out
assert said == b"\rreading: 0 MB \r\x1b[K", said' "$stacktap" "$scratch/sample.otlp"

# of 8 samples 2 are named and 4 by range
python3 -B - "$scratch/quality.otlp" <<'PYTHON'
import sys
sys.path.insert(0, "tests/otlp")
import make_sample, wire
from wire import Message
builder = make_sample.Builder()
stack = builder.stack(builder.location("f", 0x1000))
builder.resource([Message("Profile", sample_type=builder.value_type("samples", "count"), time_unix_nano=10**18, duration_nano=10**9,
                          samples=[make_sample.sample(stack, (), (), (8,))], period=10**7, profile_id=bytes([1]) * 16,
                          attribute_indices=builder.attributes(stacktap__samples=8, stacktap__named=2, stacktap__by_range=4))],
                 process__pid=7)
open(sys.argv[1], "wb").write(wire.frame(make_sample.encode(builder.data)))
PYTHON
check "report of what has names" run 0 report quality.otlp
check "tells what has none" says "$out" ", 25.0 % named, 50.0 % by function range, 25.0 % unnamed, "

# on a terminal through a pager, whose end is waited for; not into a pipe
paged() {
	PYTHONPATH=$helpers python3 -B -c '
import pty, subprocess, sys
from terminal import drain
own, terminal = pty.openpty()
child = subprocess.Popen(sys.argv[1:], stdin=terminal, stdout=terminal, stderr=subprocess.DEVNULL)
sys.stdout.write(drain(own, terminal, child).decode().replace("\r\n", "\n"))
sys.exit(child.returncode)' env "$@" >"$out"
}
# shellcheck disable=SC2086 # words
for command in "report sample.otlp" "report --tree sample.otlp" "diff sample.otlp sample.otlp"; do
	(cd "$scratch" && "$stacktap" $command | sed 's/^/paged: /') >"$scratch/paged"
	# shellcheck disable=SC2086 # words
	(cd "$scratch" && paged STACKTAP_PAGER="sleep 0.3; sed 's/^/paged: /'" PAGER=false "$stacktap" $command)
	check "$command through STACKTAP_PAGER" cmp "$out" "$scratch/paged"
done
(cd "$scratch" && paged PAGER=cat "$stacktap" report sample.otlp)
check "no pager" says "$out" "sample.otlp: "
(cd "$scratch" && paged PAGER="sed s/^/paged:/" "$stacktap" report --json sample.otlp)
check "no pager of JSON" python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$out"

# lines are as wide as the terminal at most, but for --wide
python3 -B - "$stacktap" "$scratch" <<'PYTHON' >"$out" 2>&1
import fcntl, os, pty, re, struct, subprocess, sys, termios, unicodedata
sys.path[:0] = ["tests/cli", "tests/otlp"]
import make_sample, wire
from terminal import drain
from wire import Message
stacktap, scratch = sys.argv[1:]
LONG = "void std::vector<std::pair<std::string, int>, Alloc>::_M_realloc_insert<std::pair<std::string, int>>(std::pair<std::string, int>&&)"
FILE = "/usr/lib/x86_64-linux-gnu/a/directory/that/is/deep/libshöp.so.6"
CGROUP = "/system.slice/system-a.slice/system-a-b.slice/user@1000.service/app.slice/shop-0123456789.scope"
builder = make_sample.Builder()
image = builder.mapping(FILE, 0x1000, 0x900000)
frames = [builder.location(name, 0x1000 + 16 * i, mapping=image) for i, name in
          enumerate([LONG, *(f"caller_{i}_of_a_long_name" for i in range(70)), "main"])]
builder.dictionary.location_table[frames[0]].lines[:] = [Message("Line", line=123456, function_index=builder.intern(
    "function_table", Message("Function", name_strindex=builder.string(LONG), filename_strindex=builder.string("/src/vector_of_pairs.tcc"))))]
again = builder.location("calls_itself_and_has_a_long_name_" + 20 * "漢", 0x9000, mapping=image)
ranged = builder.location("libshöp.so.6+0x3f0190e0", 0xa000, mapping=image)
for start, name in ((10**18, "a"), (10**18, "b")):
    builder.data.resource_profiles.clear()
    thread = builder.attributes(thread__id=7, thread__name="worker-" + 20 * "漢")
    counts = (300, 300) if name == "a" else (100, 500)
    samples = [make_sample.sample(builder.stack(*stack), thread, (), (count,))
               for stack, count in zip((frames, frames[1:], 50 * [again], [ranged]), (*counts, 100, 50))]
    builder.resource([Message("Profile", sample_type=builder.value_type("samples", "count"), samples=samples,
                              time_unix_nano=start, duration_nano=10**9, period=10**7, profile_id=bytes([1]) * 16,
                              period_type=builder.value_type("cpu", "nanoseconds"))],
                     process__pid=7, process__executable__name=60 * "p", process__linux__cgroup=CGROUP)
    with open(f"{scratch}/wide_{name}.otlp", "wb") as file:
        file.write(wire.frame(make_sample.encode(builder.data)))


def lines(width, *command):
    own, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    child = subprocess.Popen([stacktap, *command], stdin=terminal, stdout=terminal, cwd=scratch,
                             env=dict(os.environ, PAGER="cat", LC_ALL="C"))
    said = drain(own, terminal, child)
    assert child.returncode == 0, said
    return said.decode().splitlines()


def columns(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def rows_of(said):
    return [line for line in said if re.match(r"[ ~]? *[+-]?\d+\.\d\d ", line)]


def sentences(said):
    """What is no row of names, nor a heading, which goes on in further lines."""
    return "".join("".join(line.split()) for line in said if line not in rows_of(said) and
                   not re.match(r" +(SELF|TOTAL|SHARE|BEFORE|CHANGE)\b", line))


DIFF = ("diff", "--all", "wide_a.otlp", "wide_b.otlp")
for command in (("report", "wide_a.otlp"), ("report", "--lines", "wide_a.otlp"), ("report", "--by", "function", "wide_a.otlp"), ("report", "--by", "line", "wide_a.otlp"), ("report", "--by", "object", "wide_a.otlp"),
                ("report", "--by", "cgroup", "wide_a.otlp"), ("report", "--by", "thread", "wide_a.otlp"), ("report", "--by", "process", "wide_a.otlp"), ("report", "--tree", "wide_a.otlp"), ("report", "--callers", "wide_a.otlp"), DIFF):
    whole = subprocess.run([stacktap, *command], cwd=scratch, check=True, capture_output=True, text=True).stdout.splitlines()
    assert lines(60, *command, "--wide") == whole, whole
    assert lines(400, *command) == whole, whole
    for width in (20, 21, 28, 39, 40, 59, 60, 80, 100):
        fit = lines(width, *command)
        rows = rows_of(fit)
        long = [line for line in fit if columns(line) > width]
        assert not long and rows and len(rows) == len(rows_of(whole)), long
        assert sentences(fit) == sentences(whole), (fit, whole)
        # each has something of a name, or the end of a line's number
        assert all(re.search(r"[^\W\d]|….*\d$", re.sub(r"\[[ku]\]|\bsamples?\b|too few", "", line)) for line in rows), rows
fit = "\n".join(lines(80, *DIFF))
assert "libshöp.so.6" in fit and "/usr/lib" not in fit and "void std::vec" in fit and "…" in fit, fit
# a name that has its file's is not cut for that
assert any(line.endswith("[u] libshöp.so.6+0x3f0190e0") for line in lines(70, "report", "--by", "function", "wide_a.otlp"))
assert any(line.endswith("shop-0123456789.scope") and "…" in line for line in lines(80, "report", "--by", "cgroup", "wide_a.otlp"))
assert any(line.endswith("(50 times)") and "calls_" in line for line in lines(40, "report", "--tree", "wide_a.otlp"))
assert any(line.endswith("  vector_of_pairs.tcc:123456") for line in lines(80, "report", "--lines", "wide_a.otlp"))
assert any(line.endswith("rs.tcc:123456") and "…" in line for line in lines(40, "report", "--by", "line", "wide_a.otlp"))
assert any(line.endswith(":123456") and "…" in line for line in lines(28, "report", "--lines", "wide_a.otlp"))
assert any("p…, " in line and "漢" in line for line in lines(80, "report", "--by", "thread", "wide_a.otlp"))
summary = subprocess.run([stacktap, "report", "--summary", "wide_a.otlp"], cwd=scratch, check=True, capture_output=True, text=True).stdout.splitlines()
assert len(summary) == 10 and max(map(columns, summary)) > 150 and lines(60, "report", "--summary", "--wide", "wide_a.otlp") == summary, summary
for width in (20, 21, 40, 80, 100):
    fit = lines(width, "report", "--summary", "wide_a.otlp")
    assert max(map(columns, fit)) <= width and "".join("".join(line.split()) for line in fit) == "".join("".join(line.split()) for line in summary), fit
    # topics stand apart, and no word is divided that fits into a line
    assert sum(not line.startswith(" ") for line in fit) == 10, fit
    begin = min(11, width // 4)
    words = {word for line in fit for word in line.split()}
    assert all(line.startswith(" " * begin) and line[begin] != " " for line in fit if line.startswith(" ")), fit
    assert {word for line in summary for word in line.split() if columns(word) <= width - 11} <= words, fit

with open(f"{scratch}/fit.c", "w") as file:
    file.write("".join(["int count;\n\nint a_function_of_quite_a_long_name(int start)\n{\n\tfor (int i = 0; i < start; i++) {\n",
                        *(f"\t\tcount += count / (i + {i}); /* 漢漢 a remark that is as long as remarks should not be, and then some */\n" for i in range(3, 9)),
                        "\t}\n\treturn count;\n}\n\nint main(void)\n{\n\treturn a_function_of_quite_a_long_name(3);\n}\n"]))
subprocess.run([os.environ.get("CC", "cc"), "-g", "-O0", "-no-pie", "-Wl,--build-id", "-o", "fit", "fit.c"], cwd=scratch, check=True)
notes = subprocess.run(["readelf", "-nW", "fit"], cwd=scratch, check=True, capture_output=True, text=True).stdout
(symbol,) = [line.split() for line in subprocess.run(["nm", "-S", "fit"], cwd=scratch, check=True, capture_output=True, text=True).stdout.splitlines() if "quite_a_long" in line]
builder, start, size = make_sample.Builder(), int(symbol[0], 16), int(symbol[1], 16)
builder.dictionary.mapping_table.append(Message("Mapping", memory_start=0x400000, memory_limit=0x500000, filename_strindex=builder.string(FILE),
                                                attribute_indices=builder.attributes(process__executable__build_id__gnu=re.search("Build ID: ([0-9a-f]+)", notes).group(1))))
# of 20 functions at a time, so that there are errors; each address, be it that of an instruction or not
samples = [make_sample.sample(builder.stack(builder.location("a_function_of_quite_a_long_name", start + at, mapping=len(builder.dictionary.mapping_table) - 1)),
                              builder.attributes(thread__id=7, thread__name="x"), [10**18 + k * 10**7 + at for k in range(at % 7, 900, 9)]) for at in range(size)]
builder.resource([Message("Profile", sample_type=builder.value_type("samples", "count"), samples=samples, time_unix_nano=10**18, duration_nano=10**10,
                          period=10**7, profile_id=bytes([1]) * 16, period_type=builder.value_type("cpu", "nanoseconds"))], process__pid=7, process__executable__name="fit")
with open(f"{scratch}/fit.otlp", "wb") as file:
    file.write(wire.frame(make_sample.encode(builder.data)))
for options in ((), ("--no-source",), ("--no-source", "--asm-raw"), ("--percent-limit", "3")):
    command = ("annotate", *options, "--binary", "fit", "--source-dir", ".", "a_function_of_quite_a_long_name", "fit.otlp")
    whole = subprocess.run([stacktap, *command], cwd=scratch, check=True, capture_output=True, text=True).stdout.splitlines()
    assert [line.expandtabs(8).rstrip() for line in lines(50, *command, "--wide")] == [line.expandtabs(8).rstrip() for line in whole], whole
    rows = [line for line in whole if re.match(r" +\d+\.\d\d %", line)]
    assert len(rows) > 4 and max(map(columns, whole)) > 100 and sum("±" in line for line in rows) > 4, whole
    for width in (20, 21, 30, 39, 40, 59, 60, 80):
        fit = lines(width, *command)
        have = [line for line in fit if re.match(r" +\d+\.\d\d %", line) and "all" not in line]
        assert max(map(columns, fit)) <= width and "\t" not in "".join(fit), [line for line in fit if columns(line) > width]
        # each row is there with its share, in further columns what has room
        assert [line.split("%")[0] for line in have] == [line.split("%")[0] for line in rows], (have, rows)
        assert any("±" in line for line in have) == (width >= 60), have
        counts = [re.search(r"%(?: ± [\d.]+)? +(\d+) ", line).group(1) for line in rows]
        assert width < 40 or [re.search(r"%(?: ± [\d.]+)? +(\d+) ", line).group(1) for line in have] == counts, have
        said = "".join("".join(line.split()) for line in fit)
        assert "mostlybehindtheonethattookthetime" in said and ("mov" in said if "--no-source" in options else "cou" in said), fit
print("fits")
PYTHON
check "lines fit the terminal" says "$out" fits
if [ "$(id -u)" -ne 0 ] || ! unshare --mount true 2>/dev/null; then
	skip "a C library without C.UTF-8" "needs root and a mount namespace"
else
	# shellcheck disable=SC2016 # the inner shell expands it
	check "a C library without C.UTF-8 marks what is left out with ~" unshare --mount sh -c 'mount -t tmpfs tmp /usr/lib/locale &&
		LC_ALL=C PAGER=cat exec python3 -B -c "$1" "$2" "$3"' - '
import fcntl, pty, struct, subprocess, sys, termios
sys.path.insert(0, "tests/cli")
from terminal import drain
own, terminal = pty.openpty()
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
child = subprocess.Popen([sys.argv[1], "report", "--by", "function", sys.argv[2]], stdin=terminal, stdout=terminal)
said = drain(own, terminal, child).decode()
rows = [line for line in said.splitlines() if "%" in line]
assert any(line.endswith("~") for line in rows) and "…" not in said and max(map(len, rows)) <= 60, said' "$stacktap" "$scratch/wide_a.otlp"
fi

# the others, whose clock goes three seconds on each time that it is asked
cat >"$scratch/hurry.c" <<'EOF'
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *now)
{
	static time_t gone;
	int ret = (int)syscall(SYS_clock_gettime, id, now);

	now->tv_sec += gone += 3;
	return ret;
}
EOF
"${CC:-cc}" -shared -fPIC -o "$scratch/hurry.so" "$scratch/hurry.c"
mkdir -p "$scratch/slow"
cat "$scratch/sample.otlp" "$scratch/sample.otlp" >"$scratch/slow/profiles-1764000000000.otlp"
for command in "store list slow" "store export -o slow.otlp slow" \
	"symbolize -o slow.otlp slow" "symbolize -o slow2 slow" \
	"convert -o slow.folded slow"; do
	# shellcheck disable=SC2086 # words
	check "progress of $command" python3 -B -c '
import os, pty, re, subprocess, sys
sys.path.insert(0, "tests/cli")
from terminal import drain
own, terminal = pty.openpty()
child = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=terminal,
                         env=dict(os.environ, LD_PRELOAD=sys.argv[1]), cwd=os.path.dirname(sys.argv[1]))
said = drain(own, terminal, child)
assert child.returncode == 0 and re.match(rb"\r(?:reading: (?:0 MB|\d+ %) \r)+\x1b\[K", said), said
assert b"reading" not in said.split(b"\x1b[K")[-1], said
shares = [int(share) for share in re.findall(rb"reading: (\d+) %", said)]
grows = len(shares) > 2 and shares == sorted(set(shares)) and shares[-1] == 100
assert grows if sys.argv[3] == "symbolize" else not shares, shares' "$scratch/hurry.so" "$stacktap" $command
done

# shellcheck disable=SC2016 # the inner shell expands it
check "closed standard output" bash -c '"$1" --help >&-; test $? -eq 1' - "$stacktap"
# shellcheck disable=SC2016
check "full standard output" bash -c '"$1" record --help >/dev/full; test $? -eq 1' - "$stacktap"
finish
