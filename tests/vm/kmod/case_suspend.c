// SPDX-License-Identifier: Apache-2.0
/*
 * The machine sleeps while it is sampled, as far as the kernel's own test of it goes: all but the firmware
 * and the way back from it. All CPUs but one go, what stays has its devices and clocks stopped. For a guest
 * that needs none of its devices afterwards.
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "load.h"
#include "tap.h"

enum {
	SUSPEND_CPUS = 2,
	SUSPEND_ENOUGH = 50,
	SUSPEND_LEAST_MS = 2000,	/* the test takes five seconds */
};

/* How long the machine has slept since it booted. */
static int64_t slept_ms(void)
{
	struct timespec boot, mono;

	clock_gettime(CLOCK_BOOTTIME, &boot);
	clock_gettime(CLOCK_MONOTONIC, &mono);
	return (boot.tv_sec - mono.tv_sec) * 1000 + (boot.tv_nsec - mono.tv_nsec) / 1000000;
}

/* Each CPU has more samples than at @since by as many as are enough. */
static bool sampled(struct client *client, const uint64_t *since)
{
	unsigned int cpu, i;

	for (i = 0; i < 600; i++) {
		client_drain(client);
		for (cpu = 0; cpu < SUSPEND_CPUS; cpu++)
			if (client->ledgers[cpu][0].samples < since[cpu] + SUSPEND_ENOUGH)
				break;
		if (cpu == SUSPEND_CPUS)
			return true;
		usleep(50000);
	}
	return false;
}

void case_suspend(void)
{
	static const struct source clock = {
		.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK, .rate_hz = 199,
	};
	uint64_t since[SUSPEND_CPUS] = { 0 };
	struct client client;
	pid_t users[SUSPEND_CPUS];
	int64_t slept;
	unsigned int cpu;

	if (!tap(load_write("/sys/power/mem_sleep", "deep") && load_write("/sys/power/pm_test", "core"),
		 "the kernel can test how it sleeps"))
		return;
	if (!tap(!client_open(&client) && !client_add_rings(&client, 4 << 20) &&
		 !client_set_sources(&client, &clock, 1) && !client_start(&client), "a session"))
		return;
	for (cpu = 0; cpu < SUSPEND_CPUS; cpu++)
		users[cpu] = load_fork(cpu, false);
	tap(sampled(&client, since), "samples of each CPU");
	slept = slept_ms();
	tap(load_write("/sys/power/state", "mem"), "the machine sleeps and wakes");
	slept = slept_ms() - slept;
	tap(slept >= SUSPEND_LEAST_MS, "for %" PRId64 " ms", slept);
	client_drain(&client);
	for (cpu = 0; cpu < SUSPEND_CPUS; cpu++)
		since[cpu] = client.ledgers[cpu][0].samples;
	tap(sampled(&client, since), "each CPU is sampled again");
	tap(!client_stop(&client), "STOP");
	client_drain(&client);
	tap(client_balanced(&client), "ledger balances");
	tap(!client.malformed, "records are well formed (%s)", client.malformed_why ?: "all");
	for (cpu = 0; cpu < SUSPEND_CPUS; cpu++)
		load_kill(users[cpu]);
	client_close(&client);
}
