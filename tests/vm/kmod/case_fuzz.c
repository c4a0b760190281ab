// SPDX-License-Identifier: Apache-2.0
/*
 * Tables and lists from hell while everybody samples: several processes at once load and drop them,
 * others burn, recurse, run on impossible stacks, fork and exec. The module has to agree with the
 * library on each of them, to keep its books, and the kernel to keep quiet.
 *
 * FUZZ_ROUNDS and FUZZ_SEED in the environment; the same seed makes the same tables and lists.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stacktap/unwind_table.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "forge.h"
#include "frameless.h"
#include "load.h"
#include "module.h"
#include "sliced.h"
#include "tables.h"
#include "tap.h"

enum {
	WORKERS = 3,
	VICTIMS = 6,
	HELD = 8,		/* tables that one worker has at a time */
	RACED_BYTES = 8192,
	ROUNDS = 400,
	MAX_COUNT = 2048,	/* of mappings in a list, mostly; more now and then */
};

/* what all of the processes share */
struct arena {
	pid_t victims[VICTIMS];
	struct {
		unsigned int rounds, loaded, refused, listed, unlisted, gone, sessions;
		unsigned int disputes;	/* the module and the library disagree */
		unsigned int failures;
		uint64_t hits, frames, slices, ends[STACKTAP_END_REASONS];
		uint64_t longest_ms;	/* of one call of the module */
		char last[96];		/* dispute or failure */
	} workers[WORKERS];
	/* written to all the time */
	uint64_t raced[RACED_BYTES / 8];
};

struct worker {
	unsigned int number;
	struct arena *arena;
	struct dice dice;
	struct client client;
	uint64_t ids[HELD], starts[HELD];
	unsigned int held;
	struct stacktap_mapping mappings[STACKTAP_MAX_MAPPINGS];
};

#define STATS(worker) ((worker)->arena->workers[(worker)->number])
#define SAY(worker, ...) snprintf(STATS(worker).last, sizeof(STATS(worker).last), __VA_ARGS__)

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ull + now.tv_nsec / 1000000;
}

static void timed(struct worker *worker, uint64_t since)
{
	uint64_t took = now_ms() - since;

	if (took > STATS(worker).longest_ms)
		STATS(worker).longest_ms = took;
}

/* limits and want of memory are nobody's fault */
static bool is_for_want(int err)
{
	return err == -ENOSPC || err == -EDQUOT || err == -ENOMEM;
}

static void drop_one(struct worker *worker)
{
	unsigned int i;

	if (!worker->held)
		return;
	i = dice_roll(&worker->dice, worker->held);
	if (tables_drop(&worker->client, worker->ids[i])) {
		STATS(worker).failures++;
		SAY(worker, "drop");
	}
	worker->held--;
	worker->ids[i] = worker->ids[worker->held];
	worker->starts[i] = worker->starts[worker->held];
}

/* @expected: 0, -EINVAL, or 1 when nobody knows. */
static void load_one(struct worker *worker, const void *data, size_t size, uint64_t start,
		     int expected)
{
	uint64_t id = 0, since = now_ms();
	unsigned int i;
	int err;

	if (worker->held == HELD)
		drop_one(worker);
	err = tables_load(&worker->client, data, size, &id);
	timed(worker, since);
	if (err) {
		STATS(worker).refused++;
		if (!is_for_want(err) && expected != 1 && err != expected) {
			STATS(worker).disputes++;
			SAY(worker, "%zu bytes: %d instead of %d", size, err, expected);
		}
		return;
	}
	STATS(worker).loaded++;
	if (expected < 0) {
		STATS(worker).disputes++;
		SAY(worker, "%zu bad bytes were taken", size);
	}
	for (i = 0; i < worker->held; i++)
		if (worker->ids[i] == id)
			return;
	worker->ids[worker->held] = id;
	worker->starts[worker->held++] = start;
}

static void load_some(struct worker *worker)
{
	struct dice *dice = &worker->dice;
	uint64_t text[2], start, header_start;
	void *data, *copy;
	size_t size;

	frameless_text(&text[0], &text[1]);
	switch (dice_roll(dice, 8)) {
	case 0:
		data = forge_noise(dice, &size);
		load_one(worker, data, size, 0, forge_verdict(data, size));
		break;
	case 1:
		data = frameless_filler(dice_roll(dice, 1u << 20), 1 + dice_roll(dice, 3000), &size);
		load_one(worker, data, size, 0, 0);
		break;
	case 2:
		/* sound when it was copied to where it is changed all the time */
		data = forge_table(dice, text[0], 4096, &size);
		if (size <= RACED_BYTES) {
			memcpy(worker->arena->raced, data, size);
			load_one(worker, worker->arena->raced, size, text[0], 1);
		}
		break;
	case 3:
	case 4:
		copy = (void *)(uintptr_t)frameless_table(&size);
		data = malloc(size);
		memcpy(data, copy, size);
		forge_spoil(dice, data, size);
		memcpy(&header_start, (char *)data + offsetof(struct unwind_table_header, start), 8);
		load_one(worker, data, size, header_start, forge_verdict(data, size));
		break;
	default:
		start = dice_roll(dice, 3) ? text[0] : dice_roll(dice, 1u << 30);
		data = forge_table(dice, start, 1 + dice_roll(dice, 1u << 18), &size);
		if (!dice_roll(dice, 3))
			forge_spoil(dice, data, size);
		load_one(worker, data, size, start, forge_verdict(data, size));
		break;
	}
	free(data);
}

static void set_one(struct worker *worker, const struct stacktap_mapping *mappings, uint32_t count,
		    int expected)
{
	pid_t pid = worker->arena->victims[dice_roll(&worker->dice, VICTIMS)];
	uint64_t since = now_ms();
	struct stacktap_image image;
	int err;

	/* ourselves as well, who are in the middle of it */
	if (!dice_roll(&worker->dice, 8))
		pid = getpid();
	err = tables_image(&worker->client, pid, &image);
	if (!err)
		err = tables_set(&worker->client, &image, 1 + dice_roll(&worker->dice, 1000),
				 mappings, count);
	timed(worker, since);
	if (err == -ESRCH || err == -ESTALE) {
		STATS(worker).gone++;
		return;
	}
	if (err)
		STATS(worker).unlisted++;
	else
		STATS(worker).listed++;
	if (!is_for_want(err) && expected != 1 && err != expected) {
		STATS(worker).disputes++;
		SAY(worker, "%u mappings: %d instead of %d", count, err, expected);
	}
}

static void set_some(struct worker *worker)
{
	struct dice *dice = &worker->dice;
	uint32_t max = dice_roll(dice, 20) ? MAX_COUNT : STACKTAP_MAX_MAPPINGS, count;

	if (!dice_roll(dice, 16)) {
		/* whatever lies there by now, with tables that nobody holds */
		set_one(worker, (const void *)worker->arena->raced, RACED_BYTES / 32, 1);
		return;
	}
	if (!dice_roll(dice, 16)) {
		set_one(worker, NULL, 0, 0);
		return;
	}
	count = forge_list(dice, worker->mappings, max, worker->ids, worker->starts, worker->held);
	set_one(worker, worker->mappings, count, forge_list_verdict(worker->mappings, count));
}

static void take_ends(const struct sample_view *view, void *arg)
{
	struct worker *worker = arg;

	STATS(worker).ends[view->sample->user_end]++;
	STATS(worker).slices += !!view->slice;
}

static void begin_session(struct worker *worker)
{
	struct source source = {
		.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK, .rate_hz = 199 + dice_roll(&worker->dice, 800),
	};
	struct dice *dice = &worker->dice;
	struct client *client = &worker->client;
	struct message message;
	int err;

	err = client_open(client);
	if (!err)
		err = client_add_rings(client, dice_roll(dice, 3) ? 1 << 18 : 16384);
	if (!err)
		err = client_set_sources(client, &source, 1);
	if (!err && dice_roll(dice, 2)) {
		err = client_set_slices(client, 1024 + 8 * dice_roll(dice, 8065),
					dice_roll(dice, 5));
		if (!err && dice_roll(dice, 2))
			err = client_set_slice_max(client, 1024 + 8 * dice_roll(dice, 8065));
	}
	if (!err) {
		client_begin(client, &message, STACKTAP_CMD_SET_SESSION);
		message_put_u32(&message, STACKTAP_A_USER_FRAMES,
				1 + dice_roll(dice, STACKTAP_MAX_USER_FRAMES));
		if (dice_roll(dice, 2))
			message_put_u32(&message, STACKTAP_A_WALK_LIMIT_NS,
					1000 + dice_roll(dice, 99001));
		if (dice_roll(dice, 2))
			message_put(&message, STACKTAP_A_TWO_PHASE, NULL, 0);
		err = client_send(client, &message);
	}
	if (!err)
		err = client_start(client);
	client->visit = take_ends;
	client->visit_arg = worker;
	worker->held = 0;
	STATS(worker).sessions++;
	if (err) {
		STATS(worker).failures++;
		SAY(worker, "a session: %d %.60s", err, client->wire.sentence);
	}
}

static void end_session(struct worker *worker)
{
	struct client *client = &worker->client;
	unsigned int i;

	STATS(worker).hits += tables_count(client, STACKTAP_A_TABLE_HITS);
	STATS(worker).frames += tables_count(client, STACKTAP_A_TABLE_FRAMES);
	/* half of them end in the midst of it */
	if (dice_roll(&worker->dice, 2)) {
		client_stop(client);
		for (i = 0; i < 3; i++) {
			client_drain(client);
			client_flush(client);
		}
		client_drain(client);
		if (!client_balanced(client)) {
			STATS(worker).failures++;
			SAY(worker, "the ledger: %s", client->malformed_why);
		}
	}
	client_close(client);
}

static _Noreturn void work(struct worker *worker, unsigned int rounds)
{
	unsigned int round;

	begin_session(worker);
	for (round = 0; round < rounds; round++) {
		STATS(worker).rounds++;
		load_some(worker);
		set_some(worker);
		if (!dice_roll(&worker->dice, 6))
			drop_one(worker);
		if (!dice_roll(&worker->dice, 16))
			tables_listed(&worker->client, dice_roll(&worker->dice, 2), NULL);
		if (!dice_roll(&worker->dice, 100)) {
			end_session(worker);
			begin_session(worker);
		}
		client_drain(&worker->client);
	}
	end_session(worker);
	_exit(0);
}

static __attribute__((noinline)) unsigned int recurse(unsigned int depth)
{
	volatile unsigned int sum = depth;

	if (!depth)
		frameless_burn(10);
	else
		sum += recurse(depth - 1);
	return sum + 1;
}

/* Pages of the stack come and go, and code that no list knows of is called. */
static _Noreturn void churn(void)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *area;

	for (;;) {
		char depth[65536];

		memset(depth, 1, sizeof(depth));
		__asm__ volatile("" : : "r" (depth) : "memory");
		frameless_burn(2);
		madvise((void *)(((uintptr_t)depth + page) & -page), sizeof(depth) / 2, MADV_DONTNEED);
		area = mmap(NULL, 64 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
		if (area != MAP_FAILED)
			munmap(area, 64 * page);
	}
}

static _Noreturn void breed(void)
{
	for (;;) {
		pid_t pid = fork();

		if (!pid) {
			frameless_burn(5);
			execl("/bin/true", "true", NULL);
			_exit(1);
		}
		frameless_burn(2);
		waitpid(pid, NULL, 0);
	}
}

static _Noreturn void scribble(struct arena *arena, struct dice *dice)
{
	for (;;)
		arena->raced[dice_roll(dice, RACED_BYTES / 8)] ^= 1ull << dice_roll(dice, 64);
}

static pid_t fork_one(struct arena *arena, struct dice *dice)
{
	unsigned int kind = dice_roll(dice, 8);
	struct sliced sliced;
	pid_t pid;

	if (kind < 2)
		return sliced_fork(dice_roll(dice, SLICED_WHERES), 1024, 0, &sliced) ? -1 : sliced.pid;
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	switch (kind) {
	case 2:
		scribble(arena, dice);
	case 3:
		churn();
	case 4:
		breed();
	case 5:
		frameless_interrupt(3);
		break;
	}
	for (;;) {
		recurse(dice_roll(dice, 400));
		load_burn(5);
	}
}

static pid_t fork_victim(struct arena *arena, struct dice *dice)
{
	pid_t pid;

	do {
		pid = fork_one(arena, dice);
	} while (pid <= 0);
	return pid;
}

static void report(const struct arena *arena)
{
	uint64_t hits = 0, frames = 0, slices = 0, ends[STACKTAP_END_REASONS] = { 0 }, longest = 0;
	unsigned int rounds = 0, loaded = 0, refused = 0, listed = 0, unlisted = 0, bad = 0, i, end;

	for (i = 0; i < WORKERS; i++) {
		rounds += arena->workers[i].rounds;
		loaded += arena->workers[i].loaded;
		refused += arena->workers[i].refused;
		listed += arena->workers[i].listed;
		unlisted += arena->workers[i].unlisted;
		hits += arena->workers[i].hits;
		frames += arena->workers[i].frames;
		slices += arena->workers[i].slices;
		bad += arena->workers[i].disputes + arena->workers[i].failures;
		if (arena->workers[i].longest_ms > longest)
			longest = arena->workers[i].longest_ms;
		for (end = 0; end < STACKTAP_END_REASONS; end++)
			ends[end] += arena->workers[i].ends[end];
		if (arena->workers[i].last[0])
			tap_note("worker %u: %s", i, arena->workers[i].last);
	}
	tap(!bad, "%u rounds: of the tables and lists the module says what the library says", rounds);
	tap(loaded > rounds / 8 && refused > rounds / 8, "%u tables were taken, %u refused", loaded,
	    refused);
	tap(listed > rounds / 8 && unlisted > rounds / 16, "%u lists were taken, %u refused", listed,
	    unlisted);
	tap(hits > 20 && frames > hits, "%llu stacks were walked by them, %llu frames",
	    (unsigned long long)hits, (unsigned long long)frames);
	tap_note("complete %llu, depth %llu, time %llu, unreadable %llu, no rule %llu, bad frame %llu, no list %llu; %llu slices; the longest call took %llu ms",
		 (unsigned long long)ends[STACKTAP_END_COMPLETE],
		 (unsigned long long)ends[STACKTAP_END_DEPTH],
		 (unsigned long long)ends[STACKTAP_END_TIME],
		 (unsigned long long)ends[STACKTAP_END_UNREADABLE],
		 (unsigned long long)ends[STACKTAP_END_NO_RULE],
		 (unsigned long long)ends[STACKTAP_END_BAD_FRAME],
		 (unsigned long long)ends[STACKTAP_END_NO_MAPPINGS], (unsigned long long)slices,
		 (unsigned long long)longest);
}

void case_fuzz(void)
{
	unsigned int rounds = module_setting("FUZZ_ROUNDS", ROUNDS), seed = module_setting("FUZZ_SEED", 1);
	struct arena *arena = mmap(NULL, sizeof(*arena), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct worker *worker = calloc(1, sizeof(*worker));
	unsigned int i, alive = WORKERS, bad = 0;
	struct client client;
	struct dice dice;
	pid_t workers[WORKERS];
	int status;

	if (arena == MAP_FAILED || !worker || !tap(!client_open(&client), "seed %u", seed))
		return;
	dice_seed(&dice, seed + 1000);
	for (i = 0; i < VICTIMS; i++)
		arena->victims[i] = fork_victim(arena, &dice);
	for (i = 0; i < WORKERS; i++) {
		workers[i] = fork();
		if (!workers[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			worker->number = i;
			worker->arena = arena;
			dice_seed(&worker->dice, seed * WORKERS + i);
			work(worker, rounds);
		}
	}
	while (alive) {
		usleep(50000);
		for (i = 0; i < WORKERS; i++) {
			if (workers[i] > 0 && waitpid(workers[i], &status, WNOHANG) == workers[i]) {
				bad += !!status;
				workers[i] = 0;
				alive--;
			}
		}
		/* a life of some seconds each */
		if (!dice_roll(&dice, 10)) {
			i = dice_roll(&dice, VICTIMS);
			load_kill(arena->victims[i]);
			arena->victims[i] = fork_victim(arena, &dice);
		}
	}
	for (i = 0; i < VICTIMS; i++)
		load_kill(arena->victims[i]);
	tap(!bad, "all workers came to their end");
	report(arena);
	tap(tables_wait(&client, 0) && !tables_of_module(&client).tables, "nothing of it stays");
	client_close(&client);
}
