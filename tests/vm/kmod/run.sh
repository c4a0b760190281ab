#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In a guest, as root: every case of kmodtest, and the module's coming and going. Prints TAP.
#
# usage: run.sh DIRECTORY [case...]; DIRECTORY holds stacktap.ko and kmodtest
set -u
cd "$1" || exit 2
shift
export LC_ALL=C

number=0
failed=0
check() { # check STATUS TEXT
	number=$((number + 1))
	if [ "$1" = 0 ]; then
		echo "ok $number - $2"
	else
		echo "not ok $number - $2"
		failed=$((failed + 1))
	fi
}

run_case() {
	timeout "${CASE_SECONDS:-120}" ./kmodtest "$1" 2>&1 | sed 's/^/    /'
	check "${PIPESTATUS[0]}" "$1"
}

loaded() {
	grep -q '^stacktap ' /proc/modules
}

# an emulated CPU never keeps the budget, nor what PMU interrupts that walk stacks may take
insmod ./stacktap.ko handler_budget_ns=0 ceiling_permille=0 in_place_ns=1000000
check $? "insmod"
loaded || exit 1

if [ $# -gt 0 ]; then
	for name in "$@"; do
		run_case "$name"
	done
else
	for name in $(./kmodtest); do
		case $name in
		# the last is for below, the others have guests of their own: tests/vm/cases/, tests/matrix/
		tables | table-limits | lists | walk | signals | storm) ;;
		fuzz | slices | slice-* | nmi | in-place | cost | switches | turns | ceiling | degrade | fallback | no-counter | hold | busy | comers | suspend) ;;
		task-filters | abuse | ioctls | netlink | replies | lifetimes | races | owners | storms | pressure) ;;
		behind) ! uname -v | grep -q PREEMPT_RT || run_case "$name" ;;
		*) run_case "$name" ;;
		esac
	done

	coproc ./kmodtest hold
	read -r line <&"${COPROC[0]}"
	[ "$line" = held ]
	check $? "a mapping holds a session"
	! rmmod stacktap 2>/dev/null && loaded
	check $? "rmmod is refused meanwhile"
	echo >&"${COPROC[1]}"
	wait
	rmmod stacktap && ! loaded
	check $? "rmmod afterwards"

	bad=0
	for _ in $(seq 100); do
		insmod ./stacktap.ko && rmmod stacktap || bad=$((bad + 1))
	done
	check "$bad" "100 times insmod and rmmod"
fi
if loaded; then
	rmmod stacktap
	check $? "rmmod"
fi

! dmesg | grep -E 'WARNING:|BUG:|Oops|possible (circular|recursive)|Call [Tt]race|stalls? on CPU'
check $? "the kernel has not complained"
echo "1..$number"
[ "$failed" = 0 ]
