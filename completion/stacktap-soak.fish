# fish completion for stacktap-soak
# SPDX-License-Identifier: Apache-2.0

complete -c stacktap-soak -f
complete -c stacktap-soak -l duration -x -a '10m 1h 4h 2d' -d 'how long'
complete -c stacktap-soak -l max-rate -x -a '999 9999' -d 'the highest rate in Hz'
complete -c stacktap-soak -l no-hotplug -d 'take no CPU offline'
complete -c stacktap-soak -l no-load -d 'without busy programs'
complete -c stacktap-soak -l no-fuzzer -d 'without perf_fuzzer'
complete -c stacktap-soak -l no-latency -d 'without tracers and cyclictest'
complete -c stacktap-soak -l report -r -F -d 'also write the report to a file'
complete -c stacktap-soak -s h -l help -d 'help'
