// SPDX-License-Identifier: Apache-2.0
/* Of all threads that there are, and of each apart. */
#include "unit.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/work.h"

#define LATE ((uint64_t)(WORK_SECONDS + 60) * NSEC_PER_SEC)

enum { THREADS = 5 };

static pthread_barrier_t barrier;

struct hand {
	pthread_t thread;
	const char *name;
	struct work work;
	bool hangs;
};

static void *work_once(void *ctx)
{
	struct hand *hand = ctx;

	work_enter(&hand->work, hand->name);
	work_begin();
	if (!hand->hangs)
		work_end();
	pthread_barrier_wait(&barrier);
	/* it is looked at */
	pthread_barrier_wait(&barrier);
	work_leave();
	return NULL;
}

/* Whichever it is, whenever it entered. */
static void each_thread_is_seen(void **state)
{
	static const char *const names[THREADS] = { "a", "b", "c", "d", "e" };

	(void)state;
	for (int hung = -1; hung < THREADS; hung++) {
		struct hand hands[THREADS] = { 0 };
		const char *name;

		assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS + 1), 0);
		for (int i = 0; i < THREADS; i++) {
			hands[i].name = names[i];
			hands[i].hangs = i == hung;
			assert_int_equal(pthread_create(&hands[i].thread, NULL, work_once, &hands[i]), 0);
		}
		pthread_barrier_wait(&barrier);
		assert_null(work_hung(clock_monotonic(), NULL));
		name = work_hung(clock_monotonic() + LATE, NULL);
		assert_true(hung < 0 ? !name : name && !strcmp(name, names[hung]));
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(work_taken(&hands[i].work, clock_monotonic() + LATE) >= LATE, i == hung);
		pthread_barrier_wait(&barrier);
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(pthread_join(hands[i].thread, NULL), 0);
		assert_null(work_hung(clock_monotonic() + LATE, NULL));
		pthread_barrier_destroy(&barrier);
	}
}

/* A receiver may be given ten minutes. */
static void waiting_has_its_own_time(void **state)
{
	const uint64_t wait = 600 * NSEC_PER_SEC;
	uint64_t taken = 0;
	struct work work;

	(void)state;
	work_enter(&work, "test");
	work_begin();
	work_wait(wait);
	assert_null(work_hung(clock_monotonic() + wait, NULL));
	assert_string_equal(work_hung(clock_monotonic() + wait + LATE, &taken), "test");
	assert_true(taken >= wait + LATE);
	/* and the next piece of work has not */
	work_begin();
	assert_string_equal(work_hung(clock_monotonic() + LATE, NULL), "test");
	work_leave();
}

static void who_has_not_entered_may_call(void **state)
{
	(void)state;
	work_begin();
	work_wait(1);
	work_end();
	assert_null(work_hung(clock_monotonic() + LATE, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_thread_is_seen),
		cmocka_unit_test(waiting_has_its_own_time),
		cmocka_unit_test(who_has_not_entered_may_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
