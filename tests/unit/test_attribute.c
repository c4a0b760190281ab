// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>
#include <string.h>

#include "client/attribute.h"

static struct nl_msg *new_message(size_t size)
{
	struct nl_msg *message = nlmsg_alloc_size(size + 4096);

	assert_non_null(message);
	assert_non_null(genlmsg_put(message, 1, 1, 0x20, 0, 0, STACKTAP_CMD_SET_SESSION, 1));
	return message;
}

/* The attribute of a type in a list, NULL when it is not there. */
static struct nlattr *find(struct nlattr *nest, int type)
{
	struct nlattr *attr;
	int left;

	nla_for_each_nested(attr, nest, left)
		if (nla_type(attr) == type)
			return attr;
	return NULL;
}

static struct nlattr *find_top(struct nl_msg *message, int type)
{
	return nlmsg_find_attr(nlmsg_hdr(message), GENL_HDRLEN, type);
}

/* What a kernel with one source and a filter sends. */
static void put_session(struct nl_msg *message, unsigned int sources)
{
	const uint64_t cpus[] = { 5, 0, 1 };
	const uint32_t tgids[] = { 7, 4194303 }, uids[] = { 0, 1000, UINT32_MAX - 1 };
	const uint64_t cgroups[] = { UINT64_MAX, 1 };
	/* the second is not terminated, as no kernel would send it */
	const char comms[2][STACKTAP_COMM_LEN] = { "bash", "0123456789abcde" "f" };
	struct nlattr *session = nla_nest_start(message, STACKTAP_A_SESSION);
	struct nlattr *list, *filter;

	nla_put_u64(message, STACKTAP_A_SESSION_ID, UINT64_MAX - 1);
	nla_put_u32(message, STACKTAP_A_OWNER_TGID, 42);
	nla_put_string(message, STACKTAP_A_OWNER_COMM, "a-name-that-is-longer-than-a-comm");
	nla_put_u8(message, STACKTAP_A_STATE, STACKTAP_STATE_RUNNING);
	nla_put_u64(message, STACKTAP_A_RING_BYTES, 1ULL << 40);
	/* of a newer minor version */
	nla_put_u64(message, STACKTAP_A_MAX + 7, 1);
	list = nla_nest_start(message, STACKTAP_A_SOURCES);
	for (unsigned int i = 0; i < sources; i++) {
		struct nlattr *source = nla_nest_start(message, STACKTAP_A_SOURCE);

		nla_put_u32(message, STACKTAP_SRC_ID, i);
		nla_put_string(message, STACKTAP_SRC_NAME, "cycles");
		nla_put_u32(message, STACKTAP_SRC_RATE_HZ, 99);
		nla_put_u32(message, STACKTAP_SRC_FALLBACK_ERRNO, 2);
		nla_nest_end(message, source);
	}
	nla_nest_end(message, list);
	filter = nla_nest_start(message, STACKTAP_A_FILTER);
	nla_put(message, STACKTAP_FILTER_CPUS, sizeof(cpus), cpus);
	nla_put(message, STACKTAP_FILTER_TGIDS, sizeof(tgids), tgids);
	nla_put(message, STACKTAP_FILTER_TIDS, sizeof(tgids[0]), tgids);
	nla_put(message, STACKTAP_FILTER_UIDS, sizeof(uids), uids);
	nla_put(message, STACKTAP_FILTER_COMMS, sizeof(comms), comms);
	nla_put(message, STACKTAP_FILTER_CGROUPS, sizeof(cgroups), cgroups);
	nla_put_u32(message, STACKTAP_FILTER_BYTES, 4096);
	nla_nest_end(message, filter);
	nla_nest_end(message, session);
}

static void test_session(void **state _unused_)
{
	struct nl_msg *message = new_message(0);
	struct control_session session;

	put_session(message, 1);
	assert_int_equal(attribute_parse_session(nlmsg_hdr(message), &session), 0);
	assert_true(session.id == UINT64_MAX - 1);
	assert_int_equal(session.owner_tgid, 42);
	assert_string_equal(session.owner_comm, "a-name-that-is-");
	assert_int_equal(session.state, STACKTAP_STATE_RUNNING);
	assert_true(session.ring_bytes == 1ULL << 40);
	assert_int_equal(session.source_count, 1);
	assert_string_equal(session.sources[0].name, "cycles");
	assert_int_equal(session.sources[0].rate_hz, 99);
	assert_int_equal(session.sources[0].fallback_errno, 2);
	assert_int_equal(session.filter.cpu_words, 3);
	assert_int_equal(session.filter.cpus[0], 5);
	assert_int_equal(session.filter.tgid_count, 2);
	assert_int_equal(session.filter.tgids[1], 4194303);
	assert_int_equal(session.filter.tid_count, 1);
	assert_int_equal(session.filter.uid_count, 3);
	assert_true(session.filter.uids[2] == UINT32_MAX - 1);
	assert_int_equal(session.filter.comm_count, 2);
	assert_string_equal(session.filter.comms[0], "bash");
	assert_string_equal(session.filter.comms[1], "0123456789abcde");
	assert_int_equal(session.filter.cgroup_count, 2);
	assert_true(session.filter.cgroups[0] == UINT64_MAX);
	assert_int_equal(session.filter.cgroup_fd_count, 0);
	assert_int_equal(session.filter.bytes, 4096);
	assert_true(control_filter_is_by_task(&session.filter));
	control_filter_done(&session.filter);
	assert_true(control_filter_is_empty(&session.filter));
	nlmsg_free(message);
}

static void test_too_many_sources(void **state _unused_)
{
	struct nl_msg *message = new_message(0);
	struct control_session session;

	put_session(message, STACKTAP_MAX_SOURCES + 1);
	assert_int_equal(attribute_parse_session(nlmsg_hdr(message), &session), -EBADMSG);
	nlmsg_free(message);
}

static void test_filter_of_odd_size(void **state _unused_)
{
	struct nl_msg *message = new_message(0);
	struct control_session session;
	struct nlattr *nest, *filter;

	nest = nla_nest_start(message, STACKTAP_A_SESSION);
	nla_put_u64(message, STACKTAP_A_SESSION_ID, 1);
	filter = nla_nest_start(message, STACKTAP_A_FILTER);
	nla_put(message, STACKTAP_FILTER_CPUS, 8, "12345678");
	nla_put(message, STACKTAP_FILTER_TGIDS, 7, "1234567");
	nla_nest_end(message, filter);
	nla_nest_end(message, nest);
	assert_int_equal(attribute_parse_session(nlmsg_hdr(message), &session), -EBADMSG);
	nlmsg_free(message);
}

static void put_counts(struct nl_msg *message, uint32_t source, uint64_t base)
{
	struct nlattr *nest = nla_nest_start(message, STACKTAP_A_COUNTS), *list;

	nla_put_u32(message, STACKTAP_CNT_SRC_ID, source);
	nla_put_u64(message, STACKTAP_CNT_CALLS, base);
	nla_put_u64(message, STACKTAP_CNT_RECORDED, base + 1);
	list = nla_nest_start(message, STACKTAP_CNT_LOST);
	nla_put_u64(message, STACKTAP_LOST_RING_FULL + 1, base + 2);
	nla_put_u64(message, STACKTAP_LOST_TOO_BIG + 1, base + 3);
	/* a reason that we do not know, one of a wrong size, and what is no reason at all */
	nla_put_u64(message, STACKTAP_LOST_REASONS + 1, 1);
	nla_put_u32(message, STACKTAP_LOST_REENTRY + 1, 1);
	nla_put_u64(message, 0, 1);
	nla_nest_end(message, list);
	nla_nest_end(message, nest);
}

/* Of modules before ABI 1.14, which do not tell: all of a counter that cpu-clock stands in for. */
static void test_fallback_recorded(void **state _unused_)
{
	static const struct {
		uint32_t fallback_errno;
		bool is_told;
		uint64_t fallback_recorded;
	} cases[] = { { 0, true, 30 }, { 16, true, 30 }, { 0, false, 0 }, { 16, false, 100 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct nl_msg *message = new_message(0);
		struct nlattr *nest = nla_nest_start(message, STACKTAP_A_CPU), *counts;
		struct control_cpu cpu;

		nla_put_u64(message, STACKTAP_A_SESSION_ID, 3);
		nla_put_u32(message, STACKTAP_A_CPU_ID, 17);
		nla_put_u8(message, STACKTAP_A_CPU_STATE, STACKTAP_CPU_ONLINE);
		counts = nla_nest_start(message, STACKTAP_A_COUNTS);
		nla_put_u32(message, STACKTAP_CNT_SRC_ID, 0);
		nla_put_u32(message, STACKTAP_CNT_FALLBACK_ERRNO, cases[i].fallback_errno);
		nla_put_u64(message, STACKTAP_CNT_RECORDED, 100);
		if (cases[i].is_told)
			nla_put_u64(message, STACKTAP_CNT_FALLBACK_RECORDED, 30);
		nla_nest_end(message, counts);
		nla_nest_end(message, nest);
		assert_int_equal(attribute_parse_cpu(nlmsg_hdr(message), &cpu), 0);
		assert_int_equal(cpu.counts[0].fallback_recorded, cases[i].fallback_recorded);
		nlmsg_free(message);
	}
}

static void test_cpu(void **state _unused_)
{
	struct nl_msg *message = new_message(0);
	struct control_cpu cpu;
	struct nlattr *nest = nla_nest_start(message, STACKTAP_A_CPU);

	nla_put_u64(message, STACKTAP_A_SESSION_ID, 3);
	nla_put_u32(message, STACKTAP_A_CPU_ID, 17);
	nla_put_u8(message, STACKTAP_A_CPU_STATE, STACKTAP_CPU_OFFLINE);
	put_counts(message, 0, 100);
	put_counts(message, 1, 200);
	nla_nest_end(message, nest);
	assert_int_equal(attribute_parse_cpu(nlmsg_hdr(message), &cpu), 0);
	assert_int_equal(cpu.cpu, 17);
	assert_int_equal(cpu.count_count, 2);
	assert_int_equal(cpu.counts[0].calls, 100);
	assert_int_equal(cpu.counts[1].source_id, 1);
	assert_int_equal(cpu.counts[1].recorded, 201);
	assert_int_equal(cpu.counts[1].lost[STACKTAP_LOST_RING_FULL], 202);
	assert_int_equal(cpu.counts[1].lost[STACKTAP_LOST_TOO_BIG], 203);
	assert_int_equal(cpu.counts[1].lost[STACKTAP_LOST_REENTRY], 0);
	/* what stands behind the array is not written by a reason beyond it */
	assert_int_equal(cpu.counts[1].enabled_ns, 0);
	nlmsg_free(message);
}

static void test_event_and_module(void **state _unused_)
{
	struct nl_msg *message = new_message(0);
	struct control_event event;
	struct control_module module = { .abi_major = 77 };
	struct nlattr *nest;

	nla_put_u8(message, STACKTAP_A_EVENT_KIND, STACKTAP_EVENT_FALLBACK);
	nla_put_u32(message, STACKTAP_A_CPU_ID, 0);
	nla_put_u32(message, STACKTAP_A_ERRNO, 2);
	assert_int_equal(attribute_parse_event(nlmsg_hdr(message), &event), 0);
	assert_true(event.has_cpu);
	assert_false(event.has_source);
	assert_int_equal(event.error, 2);
	assert_int_equal(event.count, 0);
	assert_int_equal(event.lost[STACKTAP_LOST_RING_FULL], 0);
	nest = nla_nest_start(message, STACKTAP_A_EVENT_LOST);
	nla_put_u64(message, STACKTAP_LOST_RING_FULL + 1, 5);
	nla_put_u64(message, STACKTAP_LOST_REASONS + 1, 6);
	nla_nest_end(message, nest);
	assert_int_equal(attribute_parse_event(nlmsg_hdr(message), &event), 0);
	assert_int_equal(event.lost[STACKTAP_LOST_RING_FULL], 5);
	/* what stands behind the array is not written by a reason beyond it */
	assert_true(event.has_cpu && !event.has_source && event.error == 2);
	/* without a version nothing is understood, and nothing is written */
	assert_int_equal(attribute_parse_module(nlmsg_hdr(message), &module), -EBADMSG);
	assert_int_equal(module.abi_major, 77);
	nla_put_u16(message, STACKTAP_A_ABI_MAJOR, 2);
	assert_int_equal(attribute_parse_module(nlmsg_hdr(message), &module), 0);
	assert_int_equal(module.abi_major, 2);
	nlmsg_free(message);
}

static void test_change(void **state _unused_)
{
	struct control_source sources[2] = {
		{ .id = 0, .name = "cycles", .type = 0, .mode = STACKTAP_MODE_PERIOD, .rate_hz = 99,
		  .nominal_hz = 3000000000 },
		{ .id = 1, .type = 1, .config = 2, .period = 100,
		  .flags = STACKTAP_SRC_EXCLUDE_KERNEL },
	};
	const uint32_t no_budget = 0;
	uint64_t cpus[2] = { 3, 0 };
	struct control_filter filter = { .cpus = cpus, .cpu_words = 2 };
	struct control_change change = { .sources = sources, .source_count = 2, .filter = &filter,
					 .user_frames = 512, .budget_ns = &no_budget };
	struct nl_msg *message;
	struct nlattr *list, *first, *second, *nest;

	filter.tgid_count = STACKTAP_MAX_TGIDS;
	filter.tgids = calloc(filter.tgid_count, sizeof(*filter.tgids));
	message = new_message(attribute_change_size(&change));
	assert_int_equal(attribute_put_change(message, &change), 0);

	list = find_top(message, STACKTAP_A_SOURCES);
	assert_non_null(list);
	/* strict kernels refuse a nest that does not say it is one */
	assert_true(list->nla_type & NLA_F_NESTED);
	first = find(list, STACKTAP_A_SOURCE);
	assert_int_equal(nla_get_u64(find(first, STACKTAP_SRC_NOMINAL_HZ)), 3000000000);
	second = (struct nlattr *)((char *)first + NLA_ALIGN(first->nla_len));
	assert_int_equal(nla_get_u64(find(second, STACKTAP_SRC_PERIOD)), 100);
	assert_null(find(second, STACKTAP_SRC_RATE_HZ));
	nest = find_top(message, STACKTAP_A_FILTER);
	assert_int_equal(nla_len(find(nest, STACKTAP_FILTER_CPUS)), 16);
	assert_int_equal(nla_len(find(nest, STACKTAP_FILTER_TGIDS)), STACKTAP_MAX_TGIDS * 4);
	assert_int_equal(nla_get_u32(find_top(message, STACKTAP_A_USER_FRAMES)), 512);
	assert_null(find_top(message, STACKTAP_A_TWO_PHASE));
	/* 0 has a meaning: none */
	assert_int_equal(nla_get_u32(find_top(message, STACKTAP_A_BUDGET_NS)), 0);
	nlmsg_free(message);

	/* more than an attribute can hold is said, not cut */
	filter.tgid_count = 20000;
	free(filter.tgids);
	filter.tgids = calloc(filter.tgid_count, sizeof(*filter.tgids));
	message = new_message(attribute_change_size(&change));
	assert_int_equal(attribute_put_change(message, &change), -E2BIG);
	nlmsg_free(message);
	free(filter.tgids);
}

static void test_task_filter_is_sent(void **state _unused_)
{
	uint32_t ids[STACKTAP_MAX_TGIDS] = { 1, 2, 3 };
	char comms[STACKTAP_MAX_COMMS][STACKTAP_COMM_LEN] = { "one", "two" };
	uint64_t cgroups[STACKTAP_MAX_CGROUPS] = { 17 };
	int fds[] = { 5, 6 };
	/* borrowed, never freed */
	struct control_filter filter = {
		.tids = ids, .tid_count = STACKTAP_MAX_TGIDS - 4, .uids = ids, .uid_count = 4,
		.comms = comms, .comm_count = STACKTAP_MAX_COMMS, .cgroup_fds = fds,
		.cgroup_fd_count = 2, .cgroups = cgroups, .cgroup_count = STACKTAP_MAX_CGROUPS - 2,
	};
	struct control_change change = { .filter = &filter };
	struct nl_msg *message = new_message(attribute_change_size(&change));
	struct nlattr *nest;

	assert_int_equal(attribute_put_change(message, &change), 0);
	nest = find_top(message, STACKTAP_A_FILTER);
	assert_null(find(nest, STACKTAP_FILTER_TGIDS));
	assert_int_equal(nla_len(find(nest, STACKTAP_FILTER_TIDS)), (STACKTAP_MAX_TGIDS - 4) * 4);
	assert_memory_equal(nla_data(find(nest, STACKTAP_FILTER_UIDS)), ids, 16);
	assert_memory_equal(nla_data(find(nest, STACKTAP_FILTER_COMMS)), comms, sizeof(comms));
	assert_memory_equal(nla_data(find(nest, STACKTAP_FILTER_CGROUP_FDS)), fds, 8);
	assert_int_equal(nla_len(find(nest, STACKTAP_FILTER_CGROUPS)), (STACKTAP_MAX_CGROUPS - 2) * 8);
	nlmsg_free(message);
}

static void test_empty_filter_is_sent(void **state _unused_)
{
	struct control_filter filter = { 0 };
	struct control_change change = { .filter = &filter };
	struct nl_msg *message = new_message(0);

	assert_int_equal(attribute_put_change(message, &change), 0);
	assert_non_null(find_top(message, STACKTAP_A_FILTER));
	assert_int_equal(nla_len(find_top(message, STACKTAP_A_FILTER)), 0);
	nlmsg_free(message);
}

static void test_rate(void **state _unused_)
{
	struct nl_msg *message = new_message(0);
	struct nlattr *source;

	assert_int_equal(attribute_put_rate(message, 3, 0, 0), 0);
	source = find(find_top(message, STACKTAP_A_SOURCES), STACKTAP_A_SOURCE);
	assert_int_equal(nla_get_u32(find(source, STACKTAP_SRC_ID)), 3);
	/* rate 0 goes out: its refusal is the kernel's to word */
	assert_int_equal(nla_get_u32(find(source, STACKTAP_SRC_RATE_HZ)), 0);
	assert_null(find(source, STACKTAP_SRC_PERIOD));
	nlmsg_free(message);
}

/* Bytes of a message changed at random: an answer or a refusal, under the sanitizers. */
static void test_damaged_messages(void **state _unused_)
{
	unsigned int seed = 1, refused = 0;

	for (int round = 0; round < 20000; round++) {
		struct nl_msg *message = new_message(0);
		struct control_session session;
		struct control_cpu cpu;
		struct control_event event;
		unsigned char *bytes;
		size_t size;

		put_session(message, 2);
		size = (size_t)nlmsg_datalen(nlmsg_hdr(message));
		/* a copy of exact size, so that reading past the end is seen */
		bytes = malloc(size + NLMSG_HDRLEN);
		memcpy(bytes, nlmsg_hdr(message), size + NLMSG_HDRLEN);
		for (int i = 0; i < 1 + round % 5; i++)
			bytes[NLMSG_HDRLEN + (size_t)rand_r(&seed) % size] =
				(unsigned char)rand_r(&seed);
		if (attribute_parse_session((void *)bytes, &session) == 0)
			control_filter_done(&session.filter);
		else
			refused++;
		attribute_parse_cpu((void *)bytes, &cpu);
		attribute_parse_event((void *)bytes, &event);
		free(bytes);
		nlmsg_free(message);
	}
	assert_in_range(refused, 1000, 19999);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_session),
		cmocka_unit_test(test_too_many_sources),
		cmocka_unit_test(test_filter_of_odd_size),
		cmocka_unit_test(test_cpu),
		cmocka_unit_test(test_fallback_recorded),
		cmocka_unit_test(test_event_and_module),
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_task_filter_is_sent),
		cmocka_unit_test(test_empty_filter_is_sent),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_damaged_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
