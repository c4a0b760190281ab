// SPDX-License-Identifier: Apache-2.0
/* A CPU's counter that no longer goes at the rate that the kernel says. */
#include "fixture.h"

#include <stdbool.h>

#include <stacktap/ticks.h>

enum { KHZ = 2500000 };

static const uint64_t second = 1000000000;

struct host {
	struct ticks_watch watch;
	uint64_t ticks, ns;
};

static bool look(struct host *host, uint32_t cpu)
{
	return ticks_watch(&host->watch, cpu, host->ticks, host->ns, KHZ);
}

static bool after(struct host *host, uint64_t ns, uint64_t khz)
{
	host->ns += ns;
	host->ticks += ns / 1000 * khz / 1000;
	return look(host, 0);
}

static void test_twentieth(void **state _unused_)
{
	assert_true(ticks_hold(KHZ * 1000ULL, second, KHZ));
	assert_true(ticks_hold(KHZ * 1049ULL, second, KHZ));
	assert_true(ticks_hold(KHZ * 951ULL, second, KHZ));
	assert_false(ticks_hold(KHZ * 1051ULL, second, KHZ));
	assert_false(ticks_hold(KHZ * 949ULL, second, KHZ));
	assert_false(ticks_hold(0, second, KHZ));
	assert_true(ticks_hold(KHZ * 1000000ULL, 1000 * second, KHZ));
}

static void test_slower_host(void **state _unused_)
{
	struct host host = { .ticks = 77, .ns = 5 };

	assert_true(look(&host, 0));
	for (unsigned int i = 0; i < 10; i++)
		assert_true(after(&host, 2 * second, KHZ));
	assert_true(after(&host, 2 * second, KHZ / 2));
	assert_true(after(&host, 2 * second, KHZ / 2));
	assert_false(after(&host, 2 * second, KHZ / 2));
}

/* Two looks in the same moment tell nothing, but the next is from the first of them. */
static void test_many_looks(void **state _unused_)
{
	struct host host = { .ticks = 77, .ns = 5 };

	assert_true(look(&host, 0));
	for (unsigned int i = 0; i < 29; i++)
		assert_true(after(&host, second / 10, KHZ * 2));
	assert_false(after(&host, second / 10, KHZ * 2));
}

static void test_jumps(void **state _unused_)
{
	struct host host = { .ticks = 1ULL << 40, .ns = 5 };

	assert_true(look(&host, 0));
	for (unsigned int i = 0; i < 10; i++) {
		host.ticks = i & 1 ? host.ticks - (1ULL << 38) : host.ticks + (1ULL << 50);
		assert_true(after(&host, 2 * second, KHZ));
		assert_true(after(&host, 2 * second, KHZ));
	}
}

/* Each CPU's counter may stand elsewhere; and the machine may have slept. */
static void test_nothing_compares(void **state _unused_)
{
	struct host host = { .ticks = 77, .ns = 5 };

	assert_true(look(&host, 0));
	for (uint32_t i = 1; i < 10; i++) {
		host.ns += 2 * second;
		host.ticks = i * 12345;
		assert_true(look(&host, i));
	}
	for (unsigned int i = 0; i < 10; i++) {
		host.ns += 1001 * second;
		assert_true(look(&host, 9));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_twentieth),
		cmocka_unit_test(test_slower_host),
		cmocka_unit_test(test_many_looks),
		cmocka_unit_test(test_jumps),
		cmocka_unit_test(test_nothing_compares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
