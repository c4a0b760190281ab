// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cgroup.h>
#include <net/genetlink.h>
#include <stacktap/version.h>

#include "ceiling.h"
#include "device.h"
#include "idset.h"
#include "mappings.h"
#include "report.h"

static int put_u64(struct sk_buff *skb, int type, u64 value)
{
	/* PAD is number 1 in each of our attribute sets that has 64-bit values */
	return nla_put_u64_64bit(skb, type, value, STACKTAP_A_PAD);
}

enum {
	/* a session but for its filter: eight sources and a handful of numbers */
	REPORT_SESSION_BYTES = 1024 + STACKTAP_MAX_SOURCES * (STACKTAP_NAME_LEN + 192),
	/* the filter but for its sets of ids */
	REPORT_FILTER_BYTES = 64 + NR_CPUS / 8 + STACKTAP_MAX_COMMS * STACKTAP_COMM_LEN +
			      STACKTAP_MAX_CGROUPS * sizeof(u64),
	/* a CPU, with two histograms, and each of its counters, with three arrays */
	REPORT_CPU_BYTES = 512 + 2 * STACKTAP_TIME_BUCKETS * (NLA_HDRLEN + sizeof(u64)),
	REPORT_COUNTER_BYTES = 256 + (STACKTAP_LOST_REASONS + 2 * STACKTAP_END_REASONS) *
				     (NLA_HDRLEN + sizeof(u64)),
};

static_assert(REPORT_SESSION_BYTES + REPORT_FILTER_BYTES <= REPORT_MAX_BYTES);
static_assert(REPORT_CPU_BYTES + STACKTAP_MAX_SOURCES * REPORT_COUNTER_BYTES <= REPORT_MAX_BYTES);
/* the length of a nest has 16 bits */
static_assert(REPORT_SESSION_BYTES + REPORT_FILTER_BYTES + STACKTAP_MAX_TGIDS * sizeof(u32) <
	      U16_MAX);
static_assert(STACKTAP_A_PAD == (int)STACKTAP_SRC_PAD);
static_assert(STACKTAP_A_PAD == (int)STACKTAP_CNT_PAD);

int st_report_module(struct sk_buff *skb)
{
	struct stacktap_table_sums sums;
	u64 list_bytes;
	u32 lists;

	st_table_sum(&sums);
	st_mappings_sum(&lists, &list_bytes);
	if (nla_put_u16(skb, STACKTAP_A_ABI_MAJOR, STACKTAP_ABI_MAJOR) ||
	    nla_put_u16(skb, STACKTAP_A_ABI_MINOR, STACKTAP_ABI_MINOR) ||
	    nla_put_string(skb, STACKTAP_A_MODULE_VERSION, STACKTAP_VERSION) ||
	    put_u64(skb, STACKTAP_A_FEATURES, st_device_features()) ||
	    nla_put_u32(skb, STACKTAP_A_SESSIONS, st_session_count()) ||
	    nla_put_u32(skb, STACKTAP_A_TABLES, sums.count) ||
	    put_u64(skb, STACKTAP_A_TABLE_ROWS, sums.rows) ||
	    put_u64(skb, STACKTAP_A_TABLE_BYTES, sums.bytes) ||
	    put_u64(skb, STACKTAP_A_TABLE_LIMIT, sums.limit) ||
	    nla_put_u32(skb, STACKTAP_A_LISTS, lists) ||
	    put_u64(skb, STACKTAP_A_LIST_BYTES, list_bytes) ||
	    nla_put_u32(skb, STACKTAP_A_CEILING, st_ceiling_permille()))
		return -EMSGSIZE;
	return 0;
}

static int report_source(struct sk_buff *skb, struct stacktap_session *session, unsigned int index)
{
	const struct stacktap_source *source = &session->sources[index];
	unsigned int cpu, fallback_cpus = 0;
	u32 fallback_errno = 0;
	struct nlattr *nest;

	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		if (!pc || !pc->counters[index].fallback_errno)
			continue;
		fallback_errno = pc->counters[index].fallback_errno;
		fallback_cpus++;
	}

	nest = nla_nest_start(skb, STACKTAP_A_SOURCE);
	if (!nest ||
	    nla_put_u32(skb, STACKTAP_SRC_ID, index) ||
	    nla_put_string(skb, STACKTAP_SRC_NAME, source->name) ||
	    nla_put_u32(skb, STACKTAP_SRC_TYPE, source->type) ||
	    put_u64(skb, STACKTAP_SRC_CONFIG, source->config) ||
	    (source->config1 && put_u64(skb, STACKTAP_SRC_CONFIG1, source->config1)) ||
	    (source->config2 && put_u64(skb, STACKTAP_SRC_CONFIG2, source->config2)) ||
	    nla_put_u8(skb, STACKTAP_SRC_MODE, source->mode) ||
	    (st_source_period(source) &&
	     put_u64(skb, STACKTAP_SRC_PERIOD, st_source_period(source))) ||
	    (source->rate_hz && nla_put_u32(skb, STACKTAP_SRC_RATE_HZ, source->rate_hz)) ||
	    (source->nominal_hz && put_u64(skb, STACKTAP_SRC_NOMINAL_HZ, source->nominal_hz)) ||
	    nla_put_u32(skb, STACKTAP_SRC_FLAGS, source->flags) ||
	    nla_put_u32(skb, STACKTAP_SRC_FALLBACK_ERRNO, fallback_errno) ||
	    nla_put_u32(skb, STACKTAP_SRC_FALLBACK_CPUS, fallback_cpus))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int report_cpus(struct sk_buff *skb, const struct stacktap_filter *filter)
{
	unsigned int nr_words = DIV_ROUND_UP(nr_cpu_ids, 64), cpu;
	struct nlattr *words;
	u64 *bits;

	if (!filter->has_cpus)
		return 0;
	words = nla_reserve(skb, STACKTAP_FILTER_CPUS, nr_words * sizeof(*bits));
	if (!words)
		return -EMSGSIZE;
	bits = nla_data(words);
	memset(bits, 0, nr_words * sizeof(*bits));
	for_each_cpu(cpu, filter->cpus)
		bits[cpu / 64] |= 1ULL << cpu % 64;
	return 0;
}

static int report_ids(struct sk_buff *skb, int type, const struct idset *set)
{
	struct nlattr *ids;

	if (!set)
		return 0;
	ids = nla_reserve(skb, type, set->nr * sizeof(u32));
	if (!ids)
		return -EMSGSIZE;
	st_idset_copy(set, nla_data(ids));
	return 0;
}

static int report_cgroups(struct sk_buff *skb, const struct stacktap_filter *filter)
{
	struct nlattr *ids;
	unsigned int i;

	if (!filter->nr_cgroups)
		return 0;
	ids = nla_reserve(skb, STACKTAP_FILTER_CGROUPS, filter->nr_cgroups * sizeof(u64));
	if (!ids)
		return -EMSGSIZE;
	for (i = 0; i < filter->nr_cgroups; i++) {
		u64 id = cgroup_id(filter->cgroups[i]);

		memcpy(nla_data(ids) + i * sizeof(id), &id, sizeof(id));
	}
	return 0;
}

/* How many ids the sets of @filter have, which may be NULL. */
static size_t filter_ids(const struct stacktap_filter *filter)
{
	if (!filter)
		return 0;
	return (filter->tgids ? filter->tgids->nr : 0) + (filter->tids ? filter->tids->nr : 0) +
	       (filter->uids ? filter->uids->nr : 0);
}

static int report_id_sets(struct sk_buff *skb, const struct stacktap_filter *filter, bool partial)
{
	if (partial && filter_ids(filter))
		return nla_put_flag(skb, STACKTAP_FILTER_PARTIAL);
	return report_ids(skb, STACKTAP_FILTER_TGIDS, filter->tgids) ?:
	       report_ids(skb, STACKTAP_FILTER_TIDS, filter->tids) ?:
	       report_ids(skb, STACKTAP_FILTER_UIDS, filter->uids);
}

static int report_filter(struct sk_buff *skb, const struct stacktap_filter *filter, bool partial)
{
	struct nlattr *nest = nla_nest_start(skb, STACKTAP_A_FILTER);

	if (!nest)
		return -EMSGSIZE;
	if (filter &&
	    (report_cpus(skb, filter) ||
	     report_id_sets(skb, filter, partial) ||
	     (filter->nr_comms &&
	      nla_put(skb, STACKTAP_FILTER_COMMS, filter->nr_comms * STACKTAP_COMM_LEN,
		      filter->comms)) ||
	     report_cgroups(skb, filter) ||
	     (filter->flags && nla_put_u32(skb, STACKTAP_FILTER_FLAGS, filter->flags)) ||
	     nla_put_u32(skb, STACKTAP_FILTER_BYTES, st_filter_bytes(filter))))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

int st_report_table(struct sk_buff *skb, const struct stacktap_table_info *info)
{
	struct nlattr *nest = nla_nest_start(skb, STACKTAP_A_TABLE);

	if (!nest)
		return -EMSGSIZE;
	if (put_u64(skb, STACKTAP_A_TABLE_ID, info->id) ||
	    put_u64(skb, STACKTAP_A_TABLE_BYTES, info->bytes) ||
	    put_u64(skb, STACKTAP_A_TABLE_ROWS, info->rows) ||
	    nla_put_u32(skb, STACKTAP_A_TABLE_USERS, info->users) ||
	    put_u64(skb, STACKTAP_A_TABLE_HIT, info->hit)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}

static int report_session_tables(struct sk_buff *skb, struct stacktap_tables *tables)
{
	struct stacktap_table_sums sums;

	st_table_sum_session(tables, &sums);
	if (nla_put_u32(skb, STACKTAP_A_TABLES, sums.count) ||
	    put_u64(skb, STACKTAP_A_TABLE_BYTES, sums.bytes) ||
	    put_u64(skb, STACKTAP_A_TABLE_LIMIT, sums.limit) ||
	    nla_put_u32(skb, STACKTAP_A_LISTS, atomic_read(&tables->lists)) ||
	    put_u64(skb, STACKTAP_A_LIST_BYTES, atomic_long_read(&tables->list_bytes)) ||
	    put_u64(skb, STACKTAP_A_LISTS_REFUSED, atomic64_read(&tables->lists_refused)))
		return -EMSGSIZE;
	return 0;
}

static int report_degrading(struct sk_buff *skb, const struct stacktap_session *session)
{
	if (nla_put_u32(skb, STACKTAP_A_BUDGET_NS, session->budget_ns) ||
	    nla_put_u32(skb, STACKTAP_A_DEGRADED, session->degrade.step) ||
	    put_u64(skb, STACKTAP_A_DEGRADATIONS, session->degradations) ||
	    put_u64(skb, STACKTAP_A_RATES_REFUSED, session->rates_refused) ||
	    nla_put_u32(skb, STACKTAP_A_KERNEL_FRAMES, session->kernel_frames) ||
	    nla_put_u32(skb, STACKTAP_A_RATE_DIVISOR,
			1U << degrade_rate_shift(session->degrade.step)))
		return -EMSGSIZE;
	return 0;
}

static int report_session_attrs(struct sk_buff *skb, struct stacktap_session *session,
				bool partial)
{
	u64 ring_bytes = 0, stash = 0;
	struct nlattr *sources;
	unsigned int cpu, i;

	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		if (!pc)
			continue;
		ring_bytes += pc->ring->data_bytes;
		stash += stash_bytes(pc->stash);
	}
	if (put_u64(skb, STACKTAP_A_SESSION_ID, session->id) ||
	    nla_put_u32(skb, STACKTAP_A_OWNER_TGID, session->owner_tgid) ||
	    nla_put_string(skb, STACKTAP_A_OWNER_COMM, session->owner_comm) ||
	    nla_put_u8(skb, STACKTAP_A_STATE, session->state) ||
	    put_u64(skb, STACKTAP_A_GENERATION, session->generation) ||
	    put_u64(skb, STACKTAP_A_CREATED, session->created) ||
	    nla_put_u32(skb, STACKTAP_A_USER_FRAMES, session->user_frames) ||
	    nla_put_u32(skb, STACKTAP_A_WALK_LIMIT_NS, session->walk_limit_ns) ||
	    (session->slice_bytes &&
	     nla_put_u32(skb, STACKTAP_A_SLICE_BYTES, session->slice_bytes)) ||
	    (session->slice_max_bytes &&
	     nla_put_u32(skb, STACKTAP_A_SLICE_MAX_BYTES, session->slice_max_bytes)) ||
	    (session->slice_every &&
	     nla_put_u32(skb, STACKTAP_A_SLICE_EVERY, session->slice_every)) ||
	    put_u64(skb, STACKTAP_A_RING_BYTES, ring_bytes) ||
	    put_u64(skb, STACKTAP_A_STASH_BYTES, stash) ||
	    (session->two_phase && nla_put_flag(skb, STACKTAP_A_TWO_PHASE)) ||
	    nla_put_u32(skb, STACKTAP_A_CEILING, session->ceiling_permille) ||
	    report_degrading(skb, session) || report_session_tables(skb, &session->tables))
		return -EMSGSIZE;
	sources = nla_nest_start(skb, STACKTAP_A_SOURCES);
	if (!sources)
		return -EMSGSIZE;
	for (i = 0; i < session->nr_sources; i++)
		if (report_source(skb, session, i))
			return -EMSGSIZE;
	nla_nest_end(skb, sources);
	return report_filter(skb, session_filter(session), partial);
}

size_t st_report_session_bytes(struct stacktap_session *session)
{
	return REPORT_SESSION_BYTES + REPORT_FILTER_BYTES +
	       filter_ids(session_filter(session)) * sizeof(u32);
}

int st_report_session(struct sk_buff *skb, struct stacktap_session *session, bool partial)
{
	struct nlattr *nest;

	lockdep_assert_held(&session->lock);
	nest = nla_nest_start(skb, STACKTAP_A_SESSION);
	if (!nest)
		return -EMSGSIZE;
	if (report_session_attrs(skb, session, partial)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}

int st_report_array(struct sk_buff *skb, int type, const u64 *values, unsigned int nr)
{
	struct nlattr *nest = nla_nest_start(skb, type);
	unsigned int i;

	if (!nest)
		return -EMSGSIZE;
	/* numbered from 1, so there is no number for padding; readers copy the u64 out */
	for (i = 0; i < nr; i++)
		if (nla_put(skb, i + 1, sizeof(values[i]), &values[i]))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* The sum of two; @other may be NULL. */
static int report_cost(struct sk_buff *skb, int ns_type, int times_type,
		       const struct stacktap_cost *cost, const struct stacktap_cost *other)
{
	u64 times[STACKTAP_TIME_BUCKETS], ns = local64_read(&cost->ns);
	unsigned int i;

	if (!cost_is_known())
		return 0;
	for (i = 0; i < STACKTAP_TIME_BUCKETS; i++)
		times[i] = local64_read(&cost->times[i]);
	if (other) {
		ns += local64_read(&other->ns);
		for (i = 0; i < STACKTAP_TIME_BUCKETS; i++)
			times[i] += local64_read(&other->times[i]);
	}
	if (put_u64(skb, ns_type, ns))
		return -EMSGSIZE;
	return st_report_array(skb, times_type, times, STACKTAP_TIME_BUCKETS);
}

/* A reading of one counter; while it runs the parts may be a few overflows apart. */
struct stacktap_counts {
	u64 calls;
	u64 recorded;
	u64 filtered;
	u64 throttled;
	u64 moved;
	u64 stale;
	u64 lost[STACKTAP_LOST_REASONS];
	u64 kernel_end[STACKTAP_END_REASONS];
	u64 user_end[STACKTAP_END_REASONS];
};

static void counts_read(const struct stacktap_counter *counter, struct stacktap_counts *ret_counts)
{
	unsigned int i;

	ret_counts->calls = local64_read(&counter->calls);
	ret_counts->recorded = local64_read(&counter->recorded);
	ret_counts->filtered = local64_read(&counter->filtered);
	ret_counts->throttled = local64_read(&counter->throttled);
	ret_counts->moved = local64_read(&counter->moved);
	ret_counts->stale = local64_read(&counter->stale);
	for (i = 0; i < STACKTAP_LOST_REASONS; i++)
		ret_counts->lost[i] = local64_read(&counter->lost[i]);
	for (i = 0; i < STACKTAP_END_REASONS; i++) {
		ret_counts->kernel_end[i] = local64_read(&counter->kernel_end[i]);
		ret_counts->user_end[i] = local64_read(&counter->user_end[i]);
	}
}

static int report_counter(struct sk_buff *skb, struct stacktap_counter *counter)
{
	struct stacktap_counts counts;
	u64 enabled_ns, running_ns, times_at;
	struct nlattr *nest;

	counts_read(counter, &counts);
	st_counter_last_times(counter, &enabled_ns, &running_ns, &times_at);
	nest = nla_nest_start(skb, STACKTAP_A_COUNTS);
	if (!nest ||
	    nla_put_u32(skb, STACKTAP_CNT_SRC_ID, counter->index) ||
	    nla_put_u32(skb, STACKTAP_CNT_TYPE, counter->type) ||
	    put_u64(skb, STACKTAP_CNT_CONFIG, counter->config) ||
	    put_u64(skb, STACKTAP_CNT_PERIOD, counter->period) ||
	    nla_put_u32(skb, STACKTAP_CNT_FALLBACK_ERRNO, counter->fallback_errno) ||
	    put_u64(skb, STACKTAP_CNT_CALLS, counts.calls) ||
	    put_u64(skb, STACKTAP_CNT_RECORDED, counts.recorded) ||
	    put_u64(skb, STACKTAP_CNT_FILTERED, counts.filtered) ||
	    put_u64(skb, STACKTAP_CNT_THROTTLED, counts.throttled) ||
	    st_report_array(skb, STACKTAP_CNT_LOST, counts.lost, STACKTAP_LOST_REASONS) ||
	    put_u64(skb, STACKTAP_CNT_ENABLED_NS, enabled_ns) ||
	    put_u64(skb, STACKTAP_CNT_RUNNING_NS, running_ns) ||
	    put_u64(skb, STACKTAP_CNT_TIMES_AT, times_at) ||
	    put_u64(skb, STACKTAP_CNT_MOVED, counts.moved) ||
	    put_u64(skb, STACKTAP_CNT_STALE, counts.stale) ||
	    put_u64(skb, STACKTAP_CNT_STALLED, counter->stalled) ||
	    nla_put_u32(skb, STACKTAP_CNT_SHARE, counter->share.percent) ||
	    put_u64(skb, STACKTAP_CNT_MULTIPLEXED, counter->multiplexed) ||
	    put_u64(skb, STACKTAP_CNT_RAISES, local64_read(&counter->raises)) ||
	    put_u64(skb, STACKTAP_CNT_MISSED, local64_read(&counter->missed)) ||
	    put_u64(skb, STACKTAP_CNT_IN_PLACE, local64_read(&counter->in_place)) ||
	    put_u64(skb, STACKTAP_CNT_PUT_OFF, local64_read(&counter->put_off)) ||
	    put_u64(skb, STACKTAP_CNT_FALLBACK_RECORDED,
		    st_counter_fallback_recorded(counter, counts.recorded)) ||
	    st_report_array(skb, STACKTAP_CNT_KERNEL_END, counts.kernel_end,
			    STACKTAP_END_REASONS) ||
	    st_report_array(skb, STACKTAP_CNT_USER_END, counts.user_end, STACKTAP_END_REASONS))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static enum stacktap_cpu_state report_cpu_state(struct stacktap_session *session,
						struct stacktap_cpu *cpu)
{
	if (session->state != STACKTAP_STATE_RUNNING)
		return STACKTAP_CPU_STOPPED;
	if (!cpumask_test_cpu(cpu->cpu, session->online))
		return STACKTAP_CPU_OFFLINE;
	if (!st_filter_wants_cpu(session_filter(session), cpu->cpu))
		return STACKTAP_CPU_DESELECTED;
	return cpu->active ? STACKTAP_CPU_ONLINE : STACKTAP_CPU_NO_COUNTER;
}

int st_report_cpu(struct sk_buff *skb, struct stacktap_session *session, struct stacktap_cpu *cpu)
{
	struct nlattr *nest;
	unsigned int i;

	lockdep_assert_held(&session->lock);
	nest = nla_nest_start(skb, STACKTAP_A_CPU);
	if (!nest)
		return -EMSGSIZE;
	if (put_u64(skb, STACKTAP_A_SESSION_ID, session->id) ||
	    nla_put_u32(skb, STACKTAP_A_CPU_ID, cpu->cpu) ||
	    nla_put_u8(skb, STACKTAP_A_CPU_STATE, report_cpu_state(session, cpu)) ||
	    (cpu->error && nla_put_u32(skb, STACKTAP_A_ERRNO, cpu->error)) ||
	    put_u64(skb, STACKTAP_A_OFFLINES, READ_ONCE(cpu->hotplug_seq)) ||
	    put_u64(skb, STACKTAP_A_RING_BYTES, cpu->ring->data_bytes) ||
	    put_u64(skb, STACKTAP_A_RING_USED, st_ring_used(cpu->ring)) ||
	    put_u64(skb, STACKTAP_A_TABLE_HITS, local64_read(&cpu->table_hits)) ||
	    put_u64(skb, STACKTAP_A_TABLE_MISSES, local64_read(&cpu->table_misses)) ||
	    put_u64(skb, STACKTAP_A_TABLE_FRAMES, local64_read(&cpu->table_frames)) ||
	    put_u64(skb, STACKTAP_A_TABLE_FP_FRAMES, local64_read(&cpu->table_fp_frames)) ||
	    put_u64(skb, STACKTAP_A_TABLE_SEARCHES, local64_read(&cpu->table_searches)) ||
	    put_u64(skb, STACKTAP_A_SLICES, local64_read(&cpu->slices.written)) ||
	    put_u64(skb, STACKTAP_A_SLICES_REFUSED, local64_read(&cpu->slices.refused)))
		goto err_cancel;
	if (report_cost(skb, STACKTAP_A_HANDLER_NS, STACKTAP_A_HANDLER_TIMES, &cpu->handler_cost,
			&cpu->whole_cost) ||
	    report_cost(skb, STACKTAP_A_DRAIN_NS, STACKTAP_A_DRAIN_TIMES, &cpu->drain_cost, NULL))
		goto err_cancel;
	for (i = 0; i < session->nr_sources; i++)
		if (report_counter(skb, &cpu->counters[i]))
			goto err_cancel;
	nla_nest_end(skb, nest);
	return 0;

err_cancel:
	nla_nest_cancel(skb, nest);
	return -EMSGSIZE;
}
