// SPDX-License-Identifier: Apache-2.0
/* Stacks walked by tables. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "frameless.h"
#include "load.h"
#include "tables.h"
#include "tap.h"

static const struct source clock_997 = {
	.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
	.rate_hz = 997,
};

/* samples in frameless code, by process: [0] anybody else, [1] of @tgid */
struct walks {
	uint32_t tgid;
	uint64_t generation;
	uint64_t leaf[2], whole[2], listed[2], unlisted_end[2];
	/* stacks with a signal in between, and those of them that are not what they have to be */
	uint64_t interrupted, wrong;
};

static void visit(const struct sample_view *view, void *arg)
{
	struct walks *walks = arg;
	const struct stacktap_sample *sample = view->sample;
	unsigned int who = sample->tgid == walks->tgid;

	/* what an emulated CPU cut, which its host took away in the walk, says nothing */
	if (sample->user_end == STACKTAP_END_TIME)
		return;
	if (view->nr_exact && who) {
		unsigned int exact = view->exact[0];

		if (!frameless_is_interrupted(view->user_ips, view->nr_user, exact))
			walks->wrong++;
		else if (frameless_is_leaf(view->user_ips[exact]))
			walks->interrupted++;
		if (frameless_is_leaf(view->user_ips[exact]) &&
		    !frameless_is_whole(view->user_ips + exact, view->nr_user - exact))
			walks->wrong++;
		return;
	}
	if (!view->nr_user || !frameless_is_leaf(view->user_ips[0]))
		return;
	walks->leaf[who]++;
	walks->whole[who] += frameless_is_whole(view->user_ips, view->nr_user);
	walks->listed[who] += sample->generation == walks->generation;
	walks->unlisted_end[who] += !sample->generation && sample->user_end == STACKTAP_END_NO_MAPPINGS;
}

static void walks_reset(struct client *client, struct walks *walks, uint32_t tgid)
{
	client_drain(client);
	memset(walks, 0, sizeof(*walks));
	walks->tgid = tgid;
	walks->generation = 77;
}

static bool open_walks(struct client *client, struct walks *walks)
{
	memset(walks, 0, sizeof(*walks));
	if (!tap(!client_open(client) && !client_add_rings(client, 1 << 20), "a session, rings"))
		return false;
	client->visit = visit;
	client->visit_arg = walks;
	return tap(!client_set_sources(client, &clock_997, 1) && !client_start(client), "START");
}

/* Until there are @count samples of frameless code by @who, or half a minute is over. */
static void burn_until(struct client *client, const struct walks *walks, unsigned int who,
		       unsigned int count)
{
	unsigned int i;

	for (i = 0; i < 300 && walks->leaf[who] < count; i++) {
		if (who)
			frameless_burn(100);
		else
			usleep(100000);
		client_drain(client);
	}
}

static pid_t fork_burning(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		frameless_burn(1000);
}

void case_walk(void)
{
	struct client client;
	struct walks walks;
	uint64_t hit, frames;
	pid_t pid;

	if (!open_walks(&client, &walks))
		return;
	walks_reset(&client, &walks, getpid());
	burn_until(&client, &walks, 1, 30);
	tap(walks.leaf[1] >= 30 && !walks.whole[1] && !walks.unlisted_end[1],
	    "%llu stacks by frame pointers, none whole", (unsigned long long)walks.leaf[1]);
	tap(!tables_count(&client, STACKTAP_A_TABLE_MISSES), "nothing missed without lists");

	tap(!tables_set_frameless(&client, getpid(), 77), "table and list");
	walks_reset(&client, &walks, getpid());
	burn_until(&client, &walks, 1, 100);
	tap(walks.leaf[1] >= 100 && walks.whole[1] == walks.leaf[1], "%llu of %llu stacks are whole",
	    (unsigned long long)walks.whole[1], (unsigned long long)walks.leaf[1]);
	tap(walks.listed[1] == walks.leaf[1], "and carry the generation");
	frames = tables_count(&client, STACKTAP_A_TABLE_FRAMES);
	tap(tables_count(&client, STACKTAP_A_TABLE_HITS) >= walks.leaf[1] &&
	    frames > tables_count(&client, STACKTAP_A_TABLE_FP_FRAMES) + 2 * walks.leaf[1],
	    "hits and frames are counted");
	tap(tables_listed(&client, false, &hit) == 1 && hit, "so is the table's last hit");

	/* the child's mm is new, but not its mappings */
	pid = fork_burning();
	walks_reset(&client, &walks, getpid());
	burn_until(&client, &walks, 0, 100);
	tap(walks.leaf[0] >= 100 && walks.whole[0] == walks.leaf[0] && walks.listed[0] == walks.leaf[0],
	    "a child's: %llu of %llu", (unsigned long long)walks.whole[0],
	    (unsigned long long)walks.leaf[0]);
	load_kill(pid);

	/* one that lost its list, beside us who have one */
	pid = fork_burning();
	{
		struct stacktap_image image;

		tap(!tables_image(&client, pid, &image) && !tables_set(&client, &image, 1, NULL, 0),
		    "a child without");
	}
	walks_reset(&client, &walks, getpid());
	burn_until(&client, &walks, 0, 30);
	/* one walk may have begun before */
	tap(walks.leaf[0] >= 30 && walks.whole[0] <= 1 && walks.unlisted_end[0] + 1 >= walks.leaf[0],
	    "%llu of its %llu stacks say so", (unsigned long long)walks.unlisted_end[0],
	    (unsigned long long)walks.leaf[0]);
	tap(tables_count(&client, STACKTAP_A_TABLE_MISSES) >= walks.leaf[0], "and are counted as missed");
	load_kill(pid);

	client_stop(&client);
	client_drain(&client);
	tap(client_balanced(&client), "the ledger balances");
	client_close(&client);
}

void case_signals(void)
{
	struct client client;
	struct walks walks;
	unsigned int i;

	if (!open_walks(&client, &walks))
		return;
	tap(!tables_set_frameless(&client, getpid(), 77), "table and list");
	tap(!frameless_interrupt(5), "a timer");
	walks_reset(&client, &walks, getpid());
	for (i = 0; i < 600 && walks.interrupted < 50; i++) {
		frameless_burn(100);
		client_drain(&client);
	}
	/* while the kernel changes the registers for a signal they are those of two places */
	tap(walks.interrupted >= 50 && walks.wrong * 20 <= walks.interrupted,
	    "%llu stacks go through a signal to what it interrupted, %llu are wrong",
	    (unsigned long long)walks.interrupted, (unsigned long long)walks.wrong);
	client_stop(&client);
	client_drain(&client);
	tap(client_balanced(&client), "the ledger balances");
	client_close(&client);
}

/* Tables with random rules; valid, but for this program they are lies. */
static uint64_t load_forged(struct client *client)
{
	unsigned char data[512];
	unsigned int flips;
	uint64_t id = 0;
	size_t size;

	do {
		memcpy(data, frameless_table(&size), sizeof(data));
		for (flips = rand() % 16 + 1; flips; flips--)
			data[32 + rand() % (size - 32)] = rand();
		frameless_checksum(data, size);
	} while (tables_load(client, data, size, &id));
	return id;
}

/* Everything changes while everybody samples. */
void case_storm(void)
{
	struct stacktap_mapping mappings[1] = { 0 };
	struct stacktap_image images[2], image;
	struct client client, other;
	unsigned int rounds = 0, bad = 0, i;
	struct walks walks;
	uint64_t id, hits, text[2];
	pid_t pids[2], pid;
	time_t end;

	if (!open_walks(&client, &walks) || !tap(!client_open(&other), "another session"))
		return;
	srand(2);
	for (i = 0; i < 2; i++) {
		pids[i] = fork_burning();
		bad += !!tables_image(&client, pids[i], &images[i]);
	}
	frameless_text(&text[0], &text[1]);
	mappings[0].start = text[0];
	mappings[0].end = text[1];
	end = time(NULL) + 15;
	while (time(NULL) < end) {
		id = load_forged(&client);
		mappings[0].table_id = id;
		for (i = 0; i < 2; i++) {
			mappings[0].bias = rand() % 3 ? 0 : rand() % 4096;
			bad += !!tables_set(&client, &images[i], rounds + 1, mappings, 1);
		}
		bad += !!tables_drop(&client, id);
		if (!(rounds % 8)) {
			pid = fork();
			if (!pid)
				execl("/bin/true", "true", NULL);
			waitpid(pid, NULL, 0);
			/* gone, or another image, or none of this */
			if (!tables_image(&client, getpid(), &image))
				bad += !!tables_set(&client, &image, 1, NULL, 0);
		}
		if (!(rounds % 16)) {
			client_close(&other);
			bad += !!client_open(&other);
			bad += !!tables_set_frameless(&other, pids[0], rounds + 1);
		}
		client_drain(&client);
		rounds++;
	}
	hits = tables_count(&client, STACKTAP_A_TABLE_HITS);
	tap(!bad && rounds > 4, "%u rounds, %u refusals", rounds, bad);
	tap(hits > 20, "%llu stacks walked by forged tables", (unsigned long long)hits);
	for (i = 0; i < 2; i++)
		load_kill(pids[i]);
	client_stop(&client);
	client_drain(&client);
	tap(client_balanced(&client), "the ledger balances");
	client_close(&client);
	tap(!tables_of_module(&other).lists || tables_wait(&other, 0), "no lists are left");
	client_close(&other);
}
