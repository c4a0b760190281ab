// SPDX-License-Identifier: Apache-2.0
#include "client/attribute.h"

#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>
#include <string.h>

#define U8 { .type = NLA_U8 }
#define U16 { .type = NLA_U16 }
#define FLAG { .type = NLA_FLAG }
#define U32 { .type = NLA_U32 }
#define U64 { .type = NLA_U64 }
#define STRING { .type = NLA_STRING }
#define NEST { .type = NLA_NESTED }

/* libnl wants policies that it may write to */
static struct nla_policy top_policy[STACKTAP_A_MAX + 1] = {
	[STACKTAP_A_ABI_MAJOR] = U16,
	[STACKTAP_A_ABI_MINOR] = U16,
	[STACKTAP_A_MODULE_VERSION] = STRING,
	[STACKTAP_A_FEATURES] = U64,
	[STACKTAP_A_SESSIONS] = U32,
	[STACKTAP_A_SESSION] = NEST,
	[STACKTAP_A_SESSION_ID] = U64,
	[STACKTAP_A_OWNER_TGID] = U32,
	[STACKTAP_A_OWNER_COMM] = STRING,
	[STACKTAP_A_STATE] = U8,
	[STACKTAP_A_GENERATION] = U64,
	[STACKTAP_A_CREATED] = U64,
	[STACKTAP_A_USER_FRAMES] = U32,
	[STACKTAP_A_WALK_LIMIT_NS] = U32,
	[STACKTAP_A_RING_BYTES] = U64,
	[STACKTAP_A_RING_USED] = U64,
	[STACKTAP_A_STASH_BYTES] = U64,
	[STACKTAP_A_SOURCES] = NEST,
	[STACKTAP_A_SOURCE] = NEST,
	[STACKTAP_A_FILTER] = NEST,
	[STACKTAP_A_CPU] = NEST,
	[STACKTAP_A_CPU_ID] = U32,
	[STACKTAP_A_CPU_STATE] = U8,
	[STACKTAP_A_COUNTS] = NEST,
	[STACKTAP_A_EVENT_KIND] = U8,
	[STACKTAP_A_EVENT_TIME] = U64,
	[STACKTAP_A_EVENT_COUNT] = U64,
	[STACKTAP_A_SRC_ID] = U32,
	[STACKTAP_A_ERRNO] = U32,
	[STACKTAP_A_TABLES] = U32,
	[STACKTAP_A_TABLE_ROWS] = U64,
	[STACKTAP_A_TABLE_BYTES] = U64,
	[STACKTAP_A_TABLE_LIMIT] = U64,
	[STACKTAP_A_LISTS] = U32,
	[STACKTAP_A_LIST_BYTES] = U64,
	[STACKTAP_A_LISTS_REFUSED] = U64,
	[STACKTAP_A_TABLE_HITS] = U64,
	[STACKTAP_A_TABLE_MISSES] = U64,
	[STACKTAP_A_TABLE_FRAMES] = U64,
	[STACKTAP_A_TABLE_FP_FRAMES] = U64,
	[STACKTAP_A_TABLE_SEARCHES] = U64,
	[STACKTAP_A_TABLE] = NEST,
	[STACKTAP_A_TABLE_ID] = U64,
	[STACKTAP_A_TABLE_USERS] = U32,
	[STACKTAP_A_TABLE_HIT] = U64,
	[STACKTAP_A_SLICE_BYTES] = U32,
	[STACKTAP_A_SLICE_MAX_BYTES] = U32,
	[STACKTAP_A_SLICE_EVERY] = U32,
	[STACKTAP_A_SLICES] = U64,
	[STACKTAP_A_SLICES_REFUSED] = U64,
	[STACKTAP_A_HANDLER_NS] = U64,
	[STACKTAP_A_HANDLER_TIMES] = NEST,
	[STACKTAP_A_DRAIN_NS] = U64,
	[STACKTAP_A_DRAIN_TIMES] = NEST,
	[STACKTAP_A_BUDGET_NS] = U32,
	[STACKTAP_A_DEGRADED] = U32,
	[STACKTAP_A_DEGRADATIONS] = U64,
	[STACKTAP_A_RATES_REFUSED] = U64,
	[STACKTAP_A_KERNEL_FRAMES] = U32,
	[STACKTAP_A_RATE_DIVISOR] = U32,
	[STACKTAP_A_OFFLINES] = U64,
	[STACKTAP_A_EVENT_LOST] = NEST,
	[STACKTAP_A_CEILING] = U32,
};

static struct nla_policy source_policy[STACKTAP_SRC_ATTR_MAX + 1] = {
	[STACKTAP_SRC_ID] = U32,
	[STACKTAP_SRC_NAME] = STRING,
	[STACKTAP_SRC_TYPE] = U32,
	[STACKTAP_SRC_CONFIG] = U64,
	[STACKTAP_SRC_CONFIG1] = U64,
	[STACKTAP_SRC_CONFIG2] = U64,
	[STACKTAP_SRC_MODE] = U8,
	[STACKTAP_SRC_PERIOD] = U64,
	[STACKTAP_SRC_RATE_HZ] = U32,
	[STACKTAP_SRC_NOMINAL_HZ] = U64,
	[STACKTAP_SRC_FLAGS] = U32,
	[STACKTAP_SRC_FALLBACK_ERRNO] = U32,
	[STACKTAP_SRC_FALLBACK_CPUS] = U32,
};

static struct nla_policy filter_policy[STACKTAP_FILTER_ATTR_MAX + 1] = {
	[STACKTAP_FILTER_FLAGS] = U32,
	[STACKTAP_FILTER_BYTES] = U32,
	[STACKTAP_FILTER_PARTIAL] = FLAG,
};

static struct nla_policy count_policy[STACKTAP_CNT_ATTR_MAX + 1] = {
	[STACKTAP_CNT_SRC_ID] = U32,
	[STACKTAP_CNT_TYPE] = U32,
	[STACKTAP_CNT_CONFIG] = U64,
	[STACKTAP_CNT_PERIOD] = U64,
	[STACKTAP_CNT_FALLBACK_ERRNO] = U32,
	[STACKTAP_CNT_CALLS] = U64,
	[STACKTAP_CNT_RECORDED] = U64,
	[STACKTAP_CNT_FILTERED] = U64,
	[STACKTAP_CNT_THROTTLED] = U64,
	[STACKTAP_CNT_LOST] = NEST,
	[STACKTAP_CNT_ENABLED_NS] = U64,
	[STACKTAP_CNT_RUNNING_NS] = U64,
	[STACKTAP_CNT_MOVED] = U64,
	[STACKTAP_CNT_STALE] = U64,
	[STACKTAP_CNT_KERNEL_END] = NEST,
	[STACKTAP_CNT_USER_END] = NEST,
	[STACKTAP_CNT_STALLED] = U64,
	[STACKTAP_CNT_SHARE] = U32,
	[STACKTAP_CNT_MULTIPLEXED] = U64,
	[STACKTAP_CNT_RAISES] = U64,
	[STACKTAP_CNT_TIMES_AT] = U64,
	[STACKTAP_CNT_MISSED] = U64,
	[STACKTAP_CNT_IN_PLACE] = U64,
	[STACKTAP_CNT_PUT_OFF] = U64,
	[STACKTAP_CNT_FALLBACK_RECORDED] = U64,
};

static uint32_t get_u32(struct nlattr *attr)
{
	return attr ? nla_get_u32(attr) : 0;
}

static uint64_t get_u64(struct nlattr *attr)
{
	return attr ? nla_get_u64(attr) : 0;
}

static void get_string(struct nlattr *attr, char *buffer, size_t size)
{
	if (attr)
		nla_strlcpy(buffer, attr, size);
}

static int parse_top(struct nlmsghdr *message, struct nlattr **attrs)
{
	return genlmsg_parse(message, 0, attrs, STACKTAP_A_MAX, top_policy) < 0 ? -EBADMSG : 0;
}

int attribute_parse_module(struct nlmsghdr *message, struct control_module *ret_module)
{
	struct nlattr *attrs[STACKTAP_A_MAX + 1];
	struct control_module module = { 0 };
	int ret;

	ret = parse_top(message, attrs);
	if (ret < 0)
		return ret;
	/* without the version nothing else can be understood */
	if (!attrs[STACKTAP_A_ABI_MAJOR])
		return -EBADMSG;
	module.abi_major = nla_get_u16(attrs[STACKTAP_A_ABI_MAJOR]);
	if (attrs[STACKTAP_A_ABI_MINOR])
		module.abi_minor = nla_get_u16(attrs[STACKTAP_A_ABI_MINOR]);
	get_string(attrs[STACKTAP_A_MODULE_VERSION], module.version, sizeof(module.version));
	module.features = get_u64(attrs[STACKTAP_A_FEATURES]);
	module.sessions = get_u32(attrs[STACKTAP_A_SESSIONS]);
	module.tables = get_u32(attrs[STACKTAP_A_TABLES]);
	module.lists = get_u32(attrs[STACKTAP_A_LISTS]);
	module.table_rows = get_u64(attrs[STACKTAP_A_TABLE_ROWS]);
	module.table_bytes = get_u64(attrs[STACKTAP_A_TABLE_BYTES]);
	module.list_bytes = get_u64(attrs[STACKTAP_A_LIST_BYTES]);
	module.table_limit = get_u64(attrs[STACKTAP_A_TABLE_LIMIT]);
	module.has_ceiling = attrs[STACKTAP_A_CEILING] != NULL;
	module.ceiling_permille = get_u32(attrs[STACKTAP_A_CEILING]);
	*ret_module = module;
	return 0;
}

static int parse_source(struct nlattr *nest, struct control_source *ret_source)
{
	struct nlattr *attrs[STACKTAP_SRC_ATTR_MAX + 1];

	if (nla_parse_nested(attrs, STACKTAP_SRC_ATTR_MAX, nest, source_policy) < 0)
		return -EBADMSG;
	ret_source->id = get_u32(attrs[STACKTAP_SRC_ID]);
	get_string(attrs[STACKTAP_SRC_NAME], ret_source->name, sizeof(ret_source->name));
	ret_source->type = get_u32(attrs[STACKTAP_SRC_TYPE]);
	ret_source->config = get_u64(attrs[STACKTAP_SRC_CONFIG]);
	ret_source->config1 = get_u64(attrs[STACKTAP_SRC_CONFIG1]);
	ret_source->config2 = get_u64(attrs[STACKTAP_SRC_CONFIG2]);
	if (attrs[STACKTAP_SRC_MODE])
		ret_source->mode = nla_get_u8(attrs[STACKTAP_SRC_MODE]);
	ret_source->period = get_u64(attrs[STACKTAP_SRC_PERIOD]);
	ret_source->rate_hz = get_u32(attrs[STACKTAP_SRC_RATE_HZ]);
	ret_source->nominal_hz = get_u64(attrs[STACKTAP_SRC_NOMINAL_HZ]);
	ret_source->flags = get_u32(attrs[STACKTAP_SRC_FLAGS]);
	ret_source->fallback_errno = get_u32(attrs[STACKTAP_SRC_FALLBACK_ERRNO]);
	ret_source->fallback_cpus = get_u32(attrs[STACKTAP_SRC_FALLBACK_CPUS]);
	return 0;
}

/* Copy an attribute that is an array of @unit bytes each. */
static int parse_array(struct nlattr *attr, size_t unit, void *ret_array, size_t *ret_count)
{
	size_t size = (size_t)nla_len(attr);
	void *copy;

	if (!size || size % unit)
		return -EBADMSG;
	copy = malloc(size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, nla_data(attr), size);
	memcpy(ret_array, &copy, sizeof(copy));
	*ret_count = size / unit;
	return 0;
}

static int parse_filter(struct nlattr *nest, struct control_filter *ret_filter)
{
	struct nlattr *attrs[STACKTAP_FILTER_ATTR_MAX + 1];
	const struct {
		int type;
		size_t unit;
		void *ret_array;
		size_t *ret_count;
	} arrays[] = {
		{ STACKTAP_FILTER_CPUS, sizeof(uint64_t), &ret_filter->cpus,
		  &ret_filter->cpu_words },
		{ STACKTAP_FILTER_TGIDS, sizeof(uint32_t), &ret_filter->tgids,
		  &ret_filter->tgid_count },
		{ STACKTAP_FILTER_TIDS, sizeof(uint32_t), &ret_filter->tids,
		  &ret_filter->tid_count },
		{ STACKTAP_FILTER_UIDS, sizeof(uint32_t), &ret_filter->uids,
		  &ret_filter->uid_count },
		{ STACKTAP_FILTER_COMMS, STACKTAP_COMM_LEN, &ret_filter->comms,
		  &ret_filter->comm_count },
		{ STACKTAP_FILTER_CGROUPS, sizeof(uint64_t), &ret_filter->cgroups,
		  &ret_filter->cgroup_count },
	};
	int ret = 0;

	if (nla_parse_nested(attrs, STACKTAP_FILTER_ATTR_MAX, nest, filter_policy) < 0)
		return -EBADMSG;
	ret_filter->flags = get_u32(attrs[STACKTAP_FILTER_FLAGS]);
	ret_filter->bytes = get_u32(attrs[STACKTAP_FILTER_BYTES]);
	ret_filter->is_partial = attrs[STACKTAP_FILTER_PARTIAL] != NULL;
	for (size_t i = 0; !ret && i < ARRAY_SIZE(arrays); i++)
		if (attrs[arrays[i].type])
			ret = parse_array(attrs[arrays[i].type], arrays[i].unit,
					  arrays[i].ret_array, arrays[i].ret_count);
	for (size_t i = 0; !ret && i < ret_filter->comm_count; i++)
		ret_filter->comms[i][STACKTAP_COMM_LEN - 1] = '\0';
	return ret;
}

int attribute_parse_session(struct nlmsghdr *message, struct control_session *ret_session)
{
	struct nlattr *top[STACKTAP_A_MAX + 1], *attrs[STACKTAP_A_MAX + 1], *nest;
	struct control_session session = { 0 };
	int ret, left;

	ret = parse_top(message, top);
	if (ret < 0)
		return ret;
	if (!top[STACKTAP_A_SESSION] ||
	    nla_parse_nested(attrs, STACKTAP_A_MAX, top[STACKTAP_A_SESSION], top_policy) < 0 ||
	    !attrs[STACKTAP_A_SESSION_ID])
		return -EBADMSG;
	session.id = nla_get_u64(attrs[STACKTAP_A_SESSION_ID]);
	session.owner_tgid = get_u32(attrs[STACKTAP_A_OWNER_TGID]);
	get_string(attrs[STACKTAP_A_OWNER_COMM], session.owner_comm, sizeof(session.owner_comm));
	if (attrs[STACKTAP_A_STATE])
		session.state = nla_get_u8(attrs[STACKTAP_A_STATE]);
	session.generation = get_u64(attrs[STACKTAP_A_GENERATION]);
	session.created = get_u64(attrs[STACKTAP_A_CREATED]);
	session.user_frames = get_u32(attrs[STACKTAP_A_USER_FRAMES]);
	session.walk_limit_ns = get_u32(attrs[STACKTAP_A_WALK_LIMIT_NS]);
	session.slice_bytes = get_u32(attrs[STACKTAP_A_SLICE_BYTES]);
	session.slice_every = get_u32(attrs[STACKTAP_A_SLICE_EVERY]);
	session.slice_max_bytes = get_u32(attrs[STACKTAP_A_SLICE_MAX_BYTES]);
	session.has_budget = attrs[STACKTAP_A_BUDGET_NS] != NULL;
	session.budget_ns = get_u32(attrs[STACKTAP_A_BUDGET_NS]);
	session.has_ceiling = attrs[STACKTAP_A_CEILING] != NULL;
	session.ceiling_permille = get_u32(attrs[STACKTAP_A_CEILING]);
	session.degraded = get_u32(attrs[STACKTAP_A_DEGRADED]);
	session.degradations = get_u64(attrs[STACKTAP_A_DEGRADATIONS]);
	session.rates_refused = get_u64(attrs[STACKTAP_A_RATES_REFUSED]);
	session.kernel_frames = get_u32(attrs[STACKTAP_A_KERNEL_FRAMES]);
	session.rate_divisor = get_u32(attrs[STACKTAP_A_RATE_DIVISOR]);
	session.ring_bytes = get_u64(attrs[STACKTAP_A_RING_BYTES]);
	session.stash_bytes = get_u64(attrs[STACKTAP_A_STASH_BYTES]);
	session.tables = get_u32(attrs[STACKTAP_A_TABLES]);
	session.lists = get_u32(attrs[STACKTAP_A_LISTS]);
	session.table_bytes = get_u64(attrs[STACKTAP_A_TABLE_BYTES]);
	session.list_bytes = get_u64(attrs[STACKTAP_A_LIST_BYTES]);
	session.lists_refused = get_u64(attrs[STACKTAP_A_LISTS_REFUSED]);
	if (attrs[STACKTAP_A_SOURCES]) {
		nla_for_each_nested(nest, attrs[STACKTAP_A_SOURCES], left) {
			if (session.source_count == STACKTAP_MAX_SOURCES)
				return -EBADMSG;
			ret = parse_source(nest, &session.sources[session.source_count++]);
			if (ret < 0)
				return ret;
		}
	}
	if (attrs[STACKTAP_A_FILTER]) {
		ret = parse_filter(attrs[STACKTAP_A_FILTER], &session.filter);
		if (ret < 0) {
			control_filter_done(&session.filter);
			return ret;
		}
	}
	*ret_session = session;
	return 0;
}

/* u64 attributes whose type is an index plus one; newer modules may know more indices */
static void parse_indexed(struct nlattr *nest, uint64_t *values, int count)
{
	struct nlattr *attr;
	int left;

	if (!nest)
		return;
	nla_for_each_nested(attr, nest, left) {
		int index = nla_type(attr) - 1;

		if (index >= 0 && index < count && nla_len(attr) == sizeof(uint64_t))
			values[index] = nla_get_u64(attr);
	}
}

static int parse_counts(struct nlattr *nest, struct control_counts *ret_counts)
{
	struct nlattr *attrs[STACKTAP_CNT_ATTR_MAX + 1];

	if (nla_parse_nested(attrs, STACKTAP_CNT_ATTR_MAX, nest, count_policy) < 0)
		return -EBADMSG;
	ret_counts->source_id = get_u32(attrs[STACKTAP_CNT_SRC_ID]);
	ret_counts->type = get_u32(attrs[STACKTAP_CNT_TYPE]);
	ret_counts->config = get_u64(attrs[STACKTAP_CNT_CONFIG]);
	ret_counts->period = get_u64(attrs[STACKTAP_CNT_PERIOD]);
	ret_counts->fallback_errno = get_u32(attrs[STACKTAP_CNT_FALLBACK_ERRNO]);
	ret_counts->calls = get_u64(attrs[STACKTAP_CNT_CALLS]);
	ret_counts->recorded = get_u64(attrs[STACKTAP_CNT_RECORDED]);
	ret_counts->filtered = get_u64(attrs[STACKTAP_CNT_FILTERED]);
	ret_counts->throttled = get_u64(attrs[STACKTAP_CNT_THROTTLED]);
	ret_counts->enabled_ns = get_u64(attrs[STACKTAP_CNT_ENABLED_NS]);
	ret_counts->running_ns = get_u64(attrs[STACKTAP_CNT_RUNNING_NS]);
	ret_counts->has_times_at = attrs[STACKTAP_CNT_TIMES_AT] != NULL;
	ret_counts->times_at = get_u64(attrs[STACKTAP_CNT_TIMES_AT]);
	ret_counts->moved = get_u64(attrs[STACKTAP_CNT_MOVED]);
	ret_counts->stale = get_u64(attrs[STACKTAP_CNT_STALE]);
	ret_counts->stalled = get_u64(attrs[STACKTAP_CNT_STALLED]);
	ret_counts->share_percent = attrs[STACKTAP_CNT_SHARE] ?
					    get_u32(attrs[STACKTAP_CNT_SHARE]) : 100;
	ret_counts->multiplexed = get_u64(attrs[STACKTAP_CNT_MULTIPLEXED]);
	ret_counts->raises = get_u64(attrs[STACKTAP_CNT_RAISES]);
	ret_counts->missed = get_u64(attrs[STACKTAP_CNT_MISSED]);
	ret_counts->in_place = get_u64(attrs[STACKTAP_CNT_IN_PLACE]);
	ret_counts->put_off = get_u64(attrs[STACKTAP_CNT_PUT_OFF]);
	if (attrs[STACKTAP_CNT_FALLBACK_RECORDED])
		ret_counts->fallback_recorded = get_u64(attrs[STACKTAP_CNT_FALLBACK_RECORDED]);
	else
		ret_counts->fallback_recorded = ret_counts->fallback_errno ? ret_counts->recorded : 0;
	parse_indexed(attrs[STACKTAP_CNT_LOST], ret_counts->lost, STACKTAP_LOST_REASONS);
	parse_indexed(attrs[STACKTAP_CNT_KERNEL_END], ret_counts->kernel_end, STACKTAP_END_REASONS);
	parse_indexed(attrs[STACKTAP_CNT_USER_END], ret_counts->user_end, STACKTAP_END_REASONS);
	return 0;
}

int attribute_parse_cpu(struct nlmsghdr *message, struct control_cpu *ret_cpu)
{
	struct nlattr *top[STACKTAP_A_MAX + 1], *attrs[STACKTAP_A_MAX + 1], *nest;
	struct control_cpu cpu = { 0 };
	int ret, left;

	ret = parse_top(message, top);
	if (ret < 0)
		return ret;
	if (!top[STACKTAP_A_CPU] ||
	    nla_parse_nested(attrs, STACKTAP_A_MAX, top[STACKTAP_A_CPU], top_policy) < 0 ||
	    !attrs[STACKTAP_A_SESSION_ID] || !attrs[STACKTAP_A_CPU_ID])
		return -EBADMSG;
	cpu.session_id = nla_get_u64(attrs[STACKTAP_A_SESSION_ID]);
	cpu.cpu = nla_get_u32(attrs[STACKTAP_A_CPU_ID]);
	if (attrs[STACKTAP_A_CPU_STATE])
		cpu.state = nla_get_u8(attrs[STACKTAP_A_CPU_STATE]);
	cpu.error = get_u32(attrs[STACKTAP_A_ERRNO]);
	cpu.has_offlines = attrs[STACKTAP_A_OFFLINES] != NULL;
	cpu.offlines = get_u64(attrs[STACKTAP_A_OFFLINES]);
	cpu.ring_bytes = get_u64(attrs[STACKTAP_A_RING_BYTES]);
	cpu.ring_used = get_u64(attrs[STACKTAP_A_RING_USED]);
	cpu.table_hits = get_u64(attrs[STACKTAP_A_TABLE_HITS]);
	cpu.table_misses = get_u64(attrs[STACKTAP_A_TABLE_MISSES]);
	cpu.table_frames = get_u64(attrs[STACKTAP_A_TABLE_FRAMES]);
	cpu.table_fp_frames = get_u64(attrs[STACKTAP_A_TABLE_FP_FRAMES]);
	cpu.table_searches = get_u64(attrs[STACKTAP_A_TABLE_SEARCHES]);
	cpu.slices = get_u64(attrs[STACKTAP_A_SLICES]);
	cpu.slices_refused = get_u64(attrs[STACKTAP_A_SLICES_REFUSED]);
	cpu.has_costs = attrs[STACKTAP_A_HANDLER_NS] != NULL;
	cpu.handler.ns = get_u64(attrs[STACKTAP_A_HANDLER_NS]);
	cpu.drain.ns = get_u64(attrs[STACKTAP_A_DRAIN_NS]);
	parse_indexed(attrs[STACKTAP_A_HANDLER_TIMES], cpu.handler.times, STACKTAP_TIME_BUCKETS);
	parse_indexed(attrs[STACKTAP_A_DRAIN_TIMES], cpu.drain.times, STACKTAP_TIME_BUCKETS);
	/* COUNTS is repeated, so the table of attributes above holds only the last one */
	nla_for_each_nested(nest, top[STACKTAP_A_CPU], left) {
		if (nla_type(nest) != STACKTAP_A_COUNTS)
			continue;
		if (cpu.count_count == STACKTAP_MAX_SOURCES)
			return -EBADMSG;
		ret = parse_counts(nest, &cpu.counts[cpu.count_count++]);
		if (ret < 0)
			return ret;
	}
	*ret_cpu = cpu;
	return 0;
}

int attribute_parse_table(struct nlmsghdr *message, struct control_table *ret_table)
{
	struct nlattr *top[STACKTAP_A_MAX + 1], *attrs[STACKTAP_A_MAX + 1];
	int ret;

	ret = parse_top(message, top);
	if (ret < 0)
		return ret;
	if (!top[STACKTAP_A_TABLE] ||
	    nla_parse_nested(attrs, STACKTAP_A_MAX, top[STACKTAP_A_TABLE], top_policy) < 0 ||
	    !attrs[STACKTAP_A_TABLE_ID])
		return -EBADMSG;
	*ret_table = (struct control_table){
		.id = nla_get_u64(attrs[STACKTAP_A_TABLE_ID]),
		.bytes = get_u64(attrs[STACKTAP_A_TABLE_BYTES]),
		.rows = get_u64(attrs[STACKTAP_A_TABLE_ROWS]),
		.users = get_u32(attrs[STACKTAP_A_TABLE_USERS]),
		.hit = get_u64(attrs[STACKTAP_A_TABLE_HIT]),
	};
	return 0;
}

int attribute_parse_event(struct nlmsghdr *message, struct control_event *ret_event)
{
	struct nlattr *attrs[STACKTAP_A_MAX + 1];
	struct control_event event = { 0 };
	int ret;

	ret = parse_top(message, attrs);
	if (ret < 0)
		return ret;
	if (!attrs[STACKTAP_A_EVENT_KIND])
		return -EBADMSG;
	event.kind = nla_get_u8(attrs[STACKTAP_A_EVENT_KIND]);
	event.time = get_u64(attrs[STACKTAP_A_EVENT_TIME]);
	event.session_id = get_u64(attrs[STACKTAP_A_SESSION_ID]);
	event.count = get_u64(attrs[STACKTAP_A_EVENT_COUNT]);
	event.has_lost = attrs[STACKTAP_A_EVENT_LOST] != NULL;
	parse_indexed(attrs[STACKTAP_A_EVENT_LOST], event.lost, STACKTAP_LOST_REASONS);
	event.has_cpu = attrs[STACKTAP_A_CPU_ID] != NULL;
	event.cpu = get_u32(attrs[STACKTAP_A_CPU_ID]);
	event.has_source = attrs[STACKTAP_A_SRC_ID] != NULL;
	event.source_id = get_u32(attrs[STACKTAP_A_SRC_ID]);
	event.error = get_u32(attrs[STACKTAP_A_ERRNO]);
	*ret_event = event;
	return 0;
}

size_t attribute_change_size(const struct control_change *change)
{
	enum {
		FIXED = 256,
		SOURCE = 256,	/* ten attributes of at most 12 bytes and the name */
	};
	size_t size = FIXED + change->source_count * SOURCE;

	if (change->filter)
		size += (change->filter->cpu_words + change->filter->cgroup_count) *
				sizeof(uint64_t) +
			(change->filter->tgid_count + change->filter->tid_count +
			 change->filter->uid_count + change->filter->cgroup_fd_count) *
				sizeof(uint32_t) +
			change->filter->comm_count * STACKTAP_COMM_LEN;
	return size;
}

static int put_source(struct nl_msg *message, const struct control_source *source)
{
	struct nlattr *nest = nla_nest_start(message, STACKTAP_A_SOURCE | NLA_F_NESTED);

	if (!nest || nla_put_u32(message, STACKTAP_SRC_ID, source->id) ||
	    (source->name[0] && nla_put_string(message, STACKTAP_SRC_NAME, source->name)) ||
	    nla_put_u32(message, STACKTAP_SRC_TYPE, source->type) ||
	    nla_put_u64(message, STACKTAP_SRC_CONFIG, source->config) ||
	    (source->config1 && nla_put_u64(message, STACKTAP_SRC_CONFIG1, source->config1)) ||
	    (source->config2 && nla_put_u64(message, STACKTAP_SRC_CONFIG2, source->config2)) ||
	    (source->mode && nla_put_u8(message, STACKTAP_SRC_MODE, source->mode)) ||
	    (source->period && nla_put_u64(message, STACKTAP_SRC_PERIOD, source->period)) ||
	    (source->rate_hz && nla_put_u32(message, STACKTAP_SRC_RATE_HZ, source->rate_hz)) ||
	    (source->nominal_hz &&
	     nla_put_u64(message, STACKTAP_SRC_NOMINAL_HZ, source->nominal_hz)) ||
	    (source->flags && nla_put_u32(message, STACKTAP_SRC_FLAGS, source->flags)))
		return -EMSGSIZE;
	nla_nest_end(message, nest);
	return 0;
}

/* libnl takes an attribute's length as int and checks it against the message alone */
static int put_array(struct nl_msg *message, int type, const void *data, size_t size)
{
	if (!size)
		return 0;
	if (size > UINT16_MAX - NLA_HDRLEN)
		return -E2BIG;
	return nla_put(message, type, (int)size, data) ? -EMSGSIZE : 0;
}

static int put_filter(struct nl_msg *message, const struct control_filter *filter)
{
	const struct {
		int type;
		const void *data;
		size_t size;
	} arrays[] = {
		{ STACKTAP_FILTER_CPUS, filter->cpus, filter->cpu_words * sizeof(uint64_t) },
		{ STACKTAP_FILTER_TGIDS, filter->tgids, filter->tgid_count * sizeof(uint32_t) },
		{ STACKTAP_FILTER_TIDS, filter->tids, filter->tid_count * sizeof(uint32_t) },
		{ STACKTAP_FILTER_UIDS, filter->uids, filter->uid_count * sizeof(uint32_t) },
		{ STACKTAP_FILTER_COMMS, filter->comms, filter->comm_count * STACKTAP_COMM_LEN },
		{ STACKTAP_FILTER_CGROUP_FDS, filter->cgroup_fds,
		  filter->cgroup_fd_count * sizeof(int) },
		{ STACKTAP_FILTER_CGROUPS, filter->cgroups,
		  filter->cgroup_count * sizeof(uint64_t) },
	};
	struct nlattr *nest = nla_nest_start(message, STACKTAP_A_FILTER | NLA_F_NESTED);
	int ret = 0;

	if (!nest)
		return -EMSGSIZE;
	for (size_t i = 0; !ret && i < ARRAY_SIZE(arrays); i++)
		ret = put_array(message, arrays[i].type, arrays[i].data, arrays[i].size);
	if (!ret && filter->flags && nla_put_u32(message, STACKTAP_FILTER_FLAGS, filter->flags))
		ret = -EMSGSIZE;
	if (ret < 0)
		return ret;
	/* an empty nest has a meaning: no filter */
	return nla_nest_end_keep_empty(message, nest) < 0 ? -E2BIG : 0;
}

int attribute_put_change(struct nl_msg *message, const struct control_change *change)
{
	int ret;

	if (change->source_count) {
		struct nlattr *nest = nla_nest_start(message, STACKTAP_A_SOURCES | NLA_F_NESTED);

		if (!nest)
			return -EMSGSIZE;
		for (size_t i = 0; i < change->source_count; i++) {
			ret = put_source(message, &change->sources[i]);
			if (ret < 0)
				return ret;
		}
		nla_nest_end(message, nest);
	}
	if (change->filter) {
		ret = put_filter(message, change->filter);
		if (ret < 0)
			return ret;
	}
	if ((change->user_frames &&
	     nla_put_u32(message, STACKTAP_A_USER_FRAMES, change->user_frames)) ||
	    (change->walk_limit_ns &&
	     nla_put_u32(message, STACKTAP_A_WALK_LIMIT_NS, change->walk_limit_ns)) ||
	    (change->slice_bytes &&
	     nla_put_u32(message, STACKTAP_A_SLICE_BYTES, change->slice_bytes)) ||
	    (change->slice_every &&
	     nla_put_u32(message, STACKTAP_A_SLICE_EVERY, change->slice_every)) ||
	    (change->slice_max_bytes &&
	     nla_put_u32(message, STACKTAP_A_SLICE_MAX_BYTES, change->slice_max_bytes)) ||
	    (change->budget_ns &&
	     nla_put_u32(message, STACKTAP_A_BUDGET_NS, *change->budget_ns)) ||
	    (change->ceiling_permille &&
	     nla_put_u32(message, STACKTAP_A_CEILING, *change->ceiling_permille)) ||
	    (change->two_phase && nla_put_flag(message, STACKTAP_A_TWO_PHASE)))
		return -EMSGSIZE;
	return 0;
}

int attribute_put_rate(struct nl_msg *message, uint32_t source_id, uint32_t rate_hz,
		       uint64_t period)
{
	struct nlattr *sources, *source;

	sources = nla_nest_start(message, STACKTAP_A_SOURCES | NLA_F_NESTED);
	if (!sources)
		return -EMSGSIZE;
	source = nla_nest_start(message, STACKTAP_A_SOURCE | NLA_F_NESTED);
	/* a rate of 0 without a period is sent as it is: the kernel says what is wrong with it */
	if (!source || nla_put_u32(message, STACKTAP_SRC_ID, source_id) ||
	    (period ? nla_put_u64(message, STACKTAP_SRC_PERIOD, period) :
		      nla_put_u32(message, STACKTAP_SRC_RATE_HZ, rate_hz)))
		return -EMSGSIZE;
	nla_nest_end(message, source);
	nla_nest_end(message, sources);
	return 0;
}
