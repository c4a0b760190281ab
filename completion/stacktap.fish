# fish completion for stacktap
# SPDX-License-Identifier: Apache-2.0
# Commands and options are those of `stacktap --help' and `stacktap COMMAND --help'.

function __stacktap_commands
    stacktap --help 2>/dev/null | string match -rg '^  ([a-z][a-z-]*) +(.*)$' | paste -d \t - -
end

function __stacktap_command
    set -l words (commandline -opc)
    test (count $words) -gt 1; and not string match -q -- '-*' $words[2]; and echo $words[2]
end

function __stacktap_options
    set -l command (__stacktap_command)
    string match -q -- '-*' (commandline -ct); or return
    stacktap $command --help 2>/dev/null | string match -ar -- '--[a-z][a-z-]*' | sort -u
end

# by number, and by the program that owns it
function __stacktap_sessions
    echo all
    stacktap status --json 2>/dev/null | string match -arg '\{"id":([0-9]+),"state":"[a-z]*","owner":\{"pid":[0-9]+,"comm":"([^" ]*)"' | sort -u
end

# tests have another /sys
function __stacktap_sys
    set -q _stacktap_sys; and echo $_stacktap_sys; or echo /sys
end

# Below cgroup v2's mount, as /proc/PID/cgroup has them.
function __stacktap_cgroups
    set -l root (__stacktap_sys)/fs/cgroup
    test -d $root/unified; and set root $root/unified
    find $root -mindepth 1 -type d -printf '/%P\n' 2>/dev/null | sort
end

# Generic ones, and those of the CPUs' PMUs, which may be sources: the others have a cpumask, or are msr.
function __stacktap_events
    printf '%s\n' cycles instructions cache-references cache-misses branches branch-misses cpu-clock task-clock \
        page-faults minor-faults major-faults context-switches cpu-migrations
    for pmu in (__stacktap_sys)/bus/event_source/devices/*
        test -e $pmu/cpumask; or string match -q '*/msr' $pmu; and continue
        for event in $pmu/events/*
            string replace -rf '.*/([^/]+)/events/([^/.]+)$' '$1/$2/' $event
        end
    end
end

# tests have another /proc
function __stacktap_proc
    set -q _stacktap_proc; and echo $_stacktap_proc; or echo /proc
end

# Of what runs, as `report' calls it: ids, and the names of LXC's and systemd's machines.
function __stacktap_containers
    cat (__stacktap_proc)/*/cgroup 2>/dev/null | string match -v '*conmon*' |
        string match -rg '([0-9a-f]{64})|/lxc(?:\.payload\.|/)([^/]+)|/(?:systemd-nspawn@|machine-)(?!qemu)([^/]+)\.(?:service|scope)' |
        string match -v '' | sort -u
end

function __stacktap_names
    cat (__stacktap_proc)/*/comm 2>/dev/null | sort -u
end

function __stacktap_is
    contains -- (__stacktap_command) $argv
end

complete -c stacktap -f
complete -c stacktap -n 'not __stacktap_command' -a '(__stacktap_commands) help'
complete -c stacktap -n '__stacktap_is help' -a '(__stacktap_commands)'
complete -c stacktap -a '(__stacktap_options)'
complete -c stacktap -n '__stacktap_is report diff annotate flamegraph serve convert objects symbolize unwind-info' -F
complete -c stacktap -n '__stacktap_is store' -a 'list export prune (__fish_complete_directories)'
complete -c stacktap -n '__stacktap_is start stop set' -a '(__stacktap_sessions)'
complete -c stacktap -n '__stacktap_is record top' -s e -l event -x -a '(__stacktap_events)'
complete -c stacktap -n '__stacktap_is report diff annotate flamegraph serve convert store' -l event -x -a '(__stacktap_events)'
complete -c stacktap -n '__stacktap_is record top set' -s p -l pid -x -a '(__fish_complete_pids)'
complete -c stacktap -n '__stacktap_is record top set' -s t -l tid -x -a '(__fish_complete_pids)'
complete -c stacktap -n '__stacktap_is record top set' -s u -l uid -x -a '(__fish_complete_users)'
complete -c stacktap -n '__stacktap_is record top set' -s G -l cgroup -x -a '(__stacktap_cgroups)'
complete -c stacktap -n '__stacktap_is record top' -l call-graph -x -a 'fp table'
complete -c stacktap -n '__stacktap_is report' -l by -x -a 'function line process thread object container service cgroup'
complete -c stacktap -n '__stacktap_is diff' -l by -x -a 'function object process thread container service cgroup'
complete -c stacktap -n '__stacktap_is top' -l group -x -a 'function process thread object container service cgroup'
complete -c stacktap -n '__stacktap_is top' -l sort -x -a 'self total'
complete -c stacktap -n '__stacktap_is convert' -s f -l format -x -a 'pprof folded speedscope firefox perf-script otlp'
complete -c stacktap -n '__stacktap_is convert' -l value -x -a 'samples weight'
complete -c stacktap -n '__stacktap_is serve' -s l -l listen -x -a 'localhost:0 localhost:8080'
complete -c stacktap -n '__stacktap_is report diff annotate flamegraph serve convert store' -l cgroup -x -a '(__stacktap_cgroups)'
complete -c stacktap -n '__stacktap_is top report diff annotate flamegraph serve convert store' -l container -x -a '(__stacktap_containers)'
complete -c stacktap -n '__stacktap_is top report diff annotate flamegraph serve convert store' -l process -x -a '(__stacktap_names)'
complete -c stacktap -n '__stacktap_is top report diff annotate flamegraph serve convert store' -l thread -x -a '(__stacktap_names)'
complete -c stacktap -n '__stacktap_is record top set' -l comm -x -a '(__stacktap_names)'
complete -c stacktap -n '__stacktap_is record flamegraph convert symbolize store' -s o -l output -r -F
complete -c stacktap -n '__stacktap_is flamegraph' -l diff -r -F
complete -c stacktap -n '__stacktap_is symbolize annotate' -l binary -r -F
complete -c stacktap -n '__stacktap_is symbolize annotate' -l debug-dir -x -a '(__fish_complete_directories)'
complete -c stacktap -n '__stacktap_is symbolize annotate' -l sysroot -x -a '(__fish_complete_directories)'
complete -c stacktap -n '__stacktap_is report annotate symbolize' -l debuginfod -x
complete -c stacktap -n '__stacktap_is report annotate symbolize' -l debuginfod-max -x -a '512M 2G'
complete -c stacktap -n '__stacktap_is report annotate symbolize' -l debuginfod-timeout -x -a '30s 2m'
complete -c stacktap -n '__stacktap_is annotate' -l source-dir -x -a '(__fish_complete_directories)'
complete -c stacktap -n '__stacktap_is annotate' -s M -l disassembler-style -x -a 'att intel'
