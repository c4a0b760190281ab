/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KMODTEST_CASES_H
#define KMODTEST_CASES_H

void case_clock(void);
void case_cycles(void);
void case_two_phase(void);
void case_stalled(void);
void case_filters(void);
void case_task_filters(void);
void case_rate(void);
void case_hotplug(void);
void case_killed(void);
void case_scribble(void);
void case_mmap(void);
void case_refusals(void);
void case_events(void);
void case_edges(void);
void case_limit(void);
void case_no_counter(void);
void case_turned_back(void);
void case_tables(void);
void case_table_limits(void);
void case_lists(void);
void case_walk(void);
void case_signals(void);
void case_storm(void);
void case_fuzz(void);
void case_slices(void);
void case_slice_limits(void);
void case_slice_every(void);
void case_slice_lockdown(void);
void case_abuse(void);
void case_ioctls(void);
void case_netlink(void);
void case_lifetimes(void);
void case_races(void);
void case_comers(void);
void case_owners(void);
void case_storms(void);
void case_pressure(void);
void case_nmi(void);
void case_cost(void);
void case_degrade(void);
void case_suspend(void);
void case_hold(void);

#endif /* KMODTEST_CASES_H */
