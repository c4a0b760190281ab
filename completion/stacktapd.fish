# fish completion for stacktapd
# SPDX-License-Identifier: Apache-2.0

complete -c stacktapd -f
complete -c stacktapd -l config -r -F -d 'configuration'
complete -c stacktapd -l check-config -d 'check the configuration and exit'
complete -c stacktapd -l dump-config -d 'print the configuration in force and exit'
complete -c stacktapd -l foreground -d 'accepted; it always runs in the foreground'
complete -c stacktapd -l no-load-module -d 'do not load the kernel module'
complete -c stacktapd -l log-level -x -a 'error warning info debug' -d 'what to log'
complete -c stacktapd -s h -l help -d 'help'
complete -c stacktapd -l version -d 'version'
