// SPDX-License-Identifier: Apache-2.0
/*
 * What the module must do, seen from the smallest possible user space. One subcommand per subject,
 * each prints TAP and is run in a guest by run.sh.
 */
#include <stdio.h>
#include <string.h>

#include "cases.h"
#include "tap.h"

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "clock", case_clock },
	{ "cycles", case_cycles },
	{ "two-phase", case_two_phase },
	{ "stalled", case_stalled },
	{ "missed", case_missed },
	{ "drawn", case_drawn },
	{ "filters", case_filters },
	{ "task-filters", case_task_filters },
	{ "rate", case_rate },
	{ "hotplug", case_hotplug },
	{ "killed", case_killed },
	{ "scribble", case_scribble },
	{ "mmap", case_mmap },
	{ "refusals", case_refusals },
	{ "rights", case_rights },
	{ "events", case_events },
	{ "hooks", case_hooks },
	{ "edges", case_edges },
	{ "replies", case_replies },
	{ "limit", case_limit },
	{ "no-counter", case_no_counter },
	{ "turned-back", case_turned_back },
	{ "tables", case_tables },
	{ "table-limits", case_table_limits },
	{ "lists", case_lists },
	{ "walk", case_walk },
	{ "signals", case_signals },
	{ "storm", case_storm },
	{ "fuzz", case_fuzz },
	{ "slices", case_slices },
	{ "slice-limits", case_slice_limits },
	{ "slice-every", case_slice_every },
	{ "slice-lockdown", case_slice_lockdown },
	{ "abuse", case_abuse },
	{ "ioctls", case_ioctls },
	{ "netlink", case_netlink },
	{ "lifetimes", case_lifetimes },
	{ "races", case_races },
	{ "comers", case_comers },
	{ "owners", case_owners },
	{ "storms", case_storms },
	{ "pressure", case_pressure },
	{ "nmi", case_nmi },
	{ "in-place", case_in_place },
	{ "cost", case_cost },
	{ "switches", case_switches },
	{ "turns", case_turns },
	{ "behind", case_behind },
	{ "ceiling", case_ceiling },
	{ "degrade", case_degrade },
	{ "fallback", case_fallback },
	{ "suspend", case_suspend },
	{ "hold", case_hold },
	{ "busy", case_busy },
};

int main(int argc, char **argv)
{
	unsigned int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc == 2 && !strcmp(argv[1], cases[i].name)) {
			cases[i].run();
			return tap_done();
		}
		if (argc == 1)
			puts(cases[i].name);
	}
	return argc == 1 ? 0 : 2;
}
