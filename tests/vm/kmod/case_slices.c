// SPDX-License-Identifier: Apache-2.0
/* Registers and stack slices: what they hold, how many there may be, and when there are none. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "frameless.h"
#include "late.h"
#include "load.h"
#include "sliced.h"
#include "tables.h"
#include "tap.h"

enum {
	WAIT_ROUNDS = 600,	/* of a tenth of a second */
	CONTENT_BYTES = 4096,	/* little, so that slow guests copy all of it in time */
};

/* static, because the stack of a child of ours is to be small */
static struct client client;

static bool open_sliced(uint32_t rate_hz, uint32_t ring_bytes, uint32_t slice_bytes, uint32_t every)
{
	struct source source = {
		.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK, .rate_hz = rate_hz,
	};

	return tap(!client_open(&client) && client.info.features & STACKTAP_FEATURE_STACK_SLICE &&
		   !client_add_rings(&client, ring_bytes) && !client_set_sources(&client, &source, 1) &&
		   !client_set_slices(&client, slice_bytes, every), "a session with slices of %u",
		   slice_bytes);
}

static int set_u32(uint16_t type, uint32_t value)
{
	struct message message;

	client_begin(&client, &message, STACKTAP_CMD_SET_SESSION);
	message_put_u32(&message, type, value);
	return client_send(&client, &message);
}

/* Stop, and see whether everything is accounted for, slices included. */
static void close_sliced(void)
{
	uint64_t written, refused;
	unsigned int i;

	tap(!client_stop(&client), "STOP");
	/* what found no room is written when there is some */
	for (i = 0; i < 3; i++) {
		client_drain(&client);
		client_flush(&client);
	}
	client_drain(&client);
	written = tables_count(&client, STACKTAP_A_SLICES);
	refused = tables_count(&client, STACKTAP_A_SLICES_REFUSED);
	tap(client_balanced(&client), "the ledger balances");
	tap(written == client.slices && refused == client.sliceless,
	    "%llu slices of %llu that were written, %llu samples without of %llu refused",
	    (unsigned long long)client.slices, (unsigned long long)written,
	    (unsigned long long)client.sliceless, (unsigned long long)refused);
	client_close(&client);
}

/* what came of one process that spins */
struct seen {
	const struct sliced *sliced;
	unsigned int samples, right, short_ones, wrong;
	const char *fault;
};

static void visit_sliced(const struct sample_view *view, void *arg)
{
	struct seen *seen = arg;
	const char *fault;

	if (!seen->sliced || view->sample->tgid != (uint32_t)seen->sliced->pid ||
	    !sliced_is_spinning(view))
		return;
	seen->samples++;
	if (!view->regs)
		return;
	fault = sliced_fault(seen->sliced, view);
	if (fault) {
		seen->wrong++;
		seen->fault = fault;
	} else if (view->slice_end == STACKTAP_END_TIME) {
		seen->short_ones++;
	} else {
		seen->right++;
	}
}

/* Slices of a process on @where, in the session, which runs. */
static bool check_where(enum sliced_where where, uint32_t slice_bytes, uint32_t most)
{
	struct seen seen = { NULL };
	struct sliced sliced;
	uint32_t tgid;
	unsigned int i;

	if (!tap(!sliced_fork(where, slice_bytes, most, &sliced), "a process on %s",
		 sliced_name(where)))
		return false;
	tgid = sliced.pid;
	client_set_filter(&client, 0, &tgid, 1, 0);
	seen.sliced = &sliced;
	client.visit = visit_sliced;
	client.visit_arg = &seen;
	for (i = 0; i < WAIT_ROUNDS && seen.right < 20 && seen.wrong < 20; i++) {
		usleep(100000);
		client_drain(&client);
	}
	client.visit = NULL;
	load_kill(sliced.pid);
	return tap(seen.right >= 20 && !seen.wrong,
		   "%s: %u of %u samples have its registers and %u bytes (%u cut for time, %u wrong: %s)",
		   sliced_name(where), seen.right, seen.samples, sliced.bytes, seen.short_ones,
		   seen.wrong, seen.fault ? seen.fault : "-");
}

static void check_contents(bool two_phase)
{
	enum sliced_where where;
	struct message message;

	if (!open_sliced(499, 8 << 20, CONTENT_BYTES, 0))
		return;
	if (two_phase) {
		client_begin(&client, &message, STACKTAP_CMD_SET_SESSION);
		message_put(&message, STACKTAP_A_TWO_PHASE, NULL, 0);
		tap(!client_send(&client, &message), "in two phases");
	}
	tap(!client_start(&client), "START");
	for (where = 0; where < SLICED_WHERES; where++)
		if (!check_where(where, CONTENT_BYTES, 0))
			break;
	close_sliced();
}

/* More than SLICE_BYTES where it is known how much there is, and no more than SLICE_MAX_BYTES. */
static void check_most(uint32_t most)
{
	static const enum sliced_where wheres[] = { SLICED_BASE, SLICED_THREAD, SLICED_WIDE };
	unsigned int i;

	if (!open_sliced(499, 8 << 20, STACKTAP_MIN_SLICE_BYTES, 0))
		return;
	tap(!client_set_slice_max(&client, most) && !client_start(&client),
	    "%u bytes at most, and START", most);
	for (i = 0; i < sizeof(wheres) / sizeof(wheres[0]); i++)
		if (!check_where(wheres[i], STACKTAP_MIN_SLICE_BYTES, most))
			break;
	close_sliced();
}

/* slices of one process by what they have of @whole bytes */
struct sizes {
	uint32_t tgid, whole;
	unsigned int full, short_ones, other;
};

static void visit_sizes(const struct sample_view *view, void *arg)
{
	struct sizes *sizes = arg;

	if (view->sample->tgid != sizes->tgid || !sliced_is_spinning(view) || !view->slice ||
	    view->slice_end == STACKTAP_END_TIME)
		return;
	if (view->slice_bytes == sizes->whole)
		sizes->full++;
	else if (view->slice_bytes == STACKTAP_MIN_SLICE_BYTES)
		sizes->short_ones++;
	else
		sizes->other++;
}

/* In a quarter of a small ring is room for a large slice, and then for one of SLICE_BYTES. */
static void check_most_room(void)
{
	/* where a ring has 64 KiB at least, a quarter of it has room for eight large ones and then for none */
	const unsigned int enough = sysconf(_SC_PAGESIZE) > STACKTAP_RING_MIN_BYTES ? 0 : 20;
	struct sizes sizes = { 0 };
	struct sliced sliced;
	unsigned int i;

	if (!open_sliced(499, STACKTAP_RING_MIN_BYTES, STACKTAP_MIN_SLICE_BYTES, 0))
		return;
	tap(!client_set_slice_max(&client, 4096) && !client_start(&client), "a small ring");
	if (!tap(!sliced_fork(SLICED_THREAD, STACKTAP_MIN_SLICE_BYTES, 4096, &sliced), "in it"))
		return;
	sizes.tgid = sliced.pid;
	sizes.whole = sliced.bytes;
	client_set_filter(&client, 0, &sizes.tgid, 1, 0);
	client.visit = visit_sizes;
	client.visit_arg = &sizes;
	for (i = 0; i < WAIT_ROUNDS && (sizes.full < 20 || sizes.short_ones < enough); i++) {
		usleep(100000);
		client_drain(&client);
	}
	load_kill(sliced.pid);
	tap(sizes.full >= 20 && sizes.short_ones >= enough && !sizes.other,
	    "%u slices of %u bytes, %u of %u for want of room, %u of another size", sizes.full,
	    sizes.whole, sizes.short_ones, STACKTAP_MIN_SLICE_BYTES, sizes.other);
	close_sliced();
}

void case_slices(void)
{
	check_contents(false);
	check_contents(true);
	check_most(4096);
	check_most(2048);
	check_most(1496);
	check_most_room();
}

/* slices of one process by the time of their samples, in the order of one CPU */
struct shares {
	uint32_t tgid;
	uint64_t since;
	unsigned int count, most, slices, cut;
	uint32_t longest;
};

static void visit_shares(const struct sample_view *view, void *arg)
{
	struct shares *shares = arg;
	uint64_t time = view->sample->header.time;

	if (view->sample->tgid != shares->tgid || !view->slice)
		return;
	if (time - shares->since >= 100000000) {
		shares->since = time;
		shares->count = 0;
	}
	if (++shares->count > shares->most)
		shares->most = shares->count;
	shares->slices++;
	shares->cut += view->slice_end == STACKTAP_END_TIME;
	if (view->slice_bytes > shares->longest)
		shares->longest = view->slice_bytes;
}

static pid_t fork_on_first_cpu(enum sliced_where where, struct sliced *sliced)
{
	cpu_set_t old, set;

	sched_getaffinity(0, sizeof(old), &old);
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	/* a child has what its parent has */
	sched_setaffinity(0, sizeof(set), &set);
	if (sliced_fork(where, 1024, 0, sliced))
		sliced->pid = -1;
	sched_setaffinity(0, sizeof(old), &old);
	return sliced->pid;
}

static uint64_t refused(void)
{
	return tables_count(&client, STACKTAP_A_SLICES_REFUSED);
}

/* Sixteen per address space and 100 ms. */
static void check_shares(void)
{
	struct shares shares = { 0 };
	struct sliced sliced;
	unsigned int i;

	if (!open_sliced(2000, 4 << 20, 1024, 0))
		return;
	shares.tgid = fork_on_first_cpu(SLICED_WIDE, &sliced);
	client.visit = visit_shares;
	client.visit_arg = &shares;
	client_set_filter(&client, 0, &shares.tgid, 1, 0);
	tap(!client_start(&client), "START");
	for (i = 0; i < WAIT_ROUNDS && (shares.slices < 100 || refused() < 50); i++) {
		usleep(100000);
		client_drain(&client);
	}
	load_kill(sliced.pid);
	client_drain(&client);
	tap(shares.slices >= 100 && refused() >= 50, "%u slices of one process, %llu refused",
	    shares.slices, (unsigned long long)refused());
	tap(shares.most == STACKTAP_SLICES_PER_SPACE, "at most %u in 100 ms", shares.most);
	close_sliced();
}

/* A quarter of a ring that nobody reads. What is right is client_drain()'s to say. */
static void check_quarter(void)
{
	const struct ring *ring = &client.rings[0];
	struct sliced sliced[4];
	unsigned int i, round;

	if (!open_sliced(999, 65536, 4096, 0))
		return;
	for (i = 0; i < 4; i++)
		fork_on_first_cpu(SLICED_WIDE, &sliced[i]);
	tap(!client_start(&client), "START");
	for (round = 0; round < 3; round++) {
		uint64_t before = refused();

		for (i = 0; i < WAIT_ROUNDS && refused() < before + 5; i++)
			usleep(100000);
		client_drain(&client);
		/* the next one, however short it may be, was refused; or it was another CPU's */
		tap(refused() >= before + 5 && ring->slice_bytes <= ring->data_bytes / 4,
		    "round %u: %llu of %llu bytes are slices", round,
		    (unsigned long long)ring->slice_bytes, (unsigned long long)ring->data_bytes);
	}
	for (i = 0; i < 4; i++)
		load_kill(sliced[i].pid);
	tap(client.slices > 6, "%llu slices in all", (unsigned long long)client.slices);
	close_sliced();
}

/* The time limit of the walk holds for both. */
static void check_time(void)
{
	struct shares shares = { 0 };
	struct sliced sliced;
	unsigned int i;

	if (!open_sliced(999, 4 << 20, STACKTAP_MAX_SLICE_BYTES, 0))
		return;
	tap(!set_u32(STACKTAP_A_WALK_LIMIT_NS, 1000), "a limit of 1 us");
	shares.tgid = fork_on_first_cpu(SLICED_WIDE, &sliced);
	client.visit = visit_shares;
	client.visit_arg = &shares;
	client_set_filter(&client, 0, &shares.tgid, 1, 0);
	tap(!client_start(&client), "START");
	for (i = 0; i < WAIT_ROUNDS && shares.slices < 50; i++) {
		usleep(100000);
		client_drain(&client);
	}
	load_kill(sliced.pid);
	tap(shares.slices >= 50 && shares.cut == shares.slices,
	    "%u of %u slices of 64 KiB are cut for time, the longest has %u bytes", shares.cut,
	    shares.slices, shares.longest);
	close_sliced();
}

static bool refuses(uint16_t type, uint32_t value, int expected)
{
	int err;

	client.wire.sentence[0] = 0;
	err = set_u32(type, value);
	return tap(err == expected && client.wire.sentence[0], "%u: %d, \"%s\"", value, err,
		   client.wire.sentence);
}

struct settings {
	uint32_t bytes, every, most;
};

static void visit_settings(const void *attrs, size_t size, void *arg)
{
	const void *session = attr_find(attrs, size, STACKTAP_A_SESSION, &size);
	struct settings *settings = arg;

	settings->bytes = attr_u32(session, size, STACKTAP_A_SLICE_BYTES);
	settings->every = attr_u32(session, size, STACKTAP_A_SLICE_EVERY);
	settings->most = attr_u32(session, size, STACKTAP_A_SLICE_MAX_BYTES);
}

static bool shows(uint32_t bytes, uint32_t every, uint32_t most)
{
	struct settings settings = { ~0u, ~0u, ~0u };
	struct message message;

	client_begin(&client, &message, STACKTAP_CMD_GET_SESSION);
	return !wire_call(&client.wire, &message, visit_settings, &settings) &&
	       settings.bytes == bytes && settings.every == every && settings.most == most;
}

static void check_refusals(void)
{
	if (!open_sliced(99, 65536, 1024, 0))
		return;
	tap(shows(1024, 0, 0), "GET_SESSION shows it");
	refuses(STACKTAP_A_SLICE_BYTES, 1, -ERANGE);
	refuses(STACKTAP_A_SLICE_BYTES, 1016, -ERANGE);
	refuses(STACKTAP_A_SLICE_BYTES, 1028, -ERANGE);
	refuses(STACKTAP_A_SLICE_BYTES, 65544, -ERANGE);
	refuses(STACKTAP_A_SLICE_BYTES, UINT32_MAX, -ERANGE);
	refuses(STACKTAP_A_SLICE_MAX_BYTES, 1016, -ERANGE);
	refuses(STACKTAP_A_SLICE_MAX_BYTES, 2044, -ERANGE);
	refuses(STACKTAP_A_SLICE_MAX_BYTES, 65544, -ERANGE);
	tap(shows(1024, 0, 0), "nothing changed");
	tap(!set_u32(STACKTAP_A_SLICE_EVERY, 7) && shows(1024, 7, 0), "SLICE_EVERY");
	refuses(STACKTAP_A_SLICE_BYTES, 0, -EINVAL);
	tap(!set_u32(STACKTAP_A_SLICE_MAX_BYTES, 2048) && shows(1024, 7, 2048) &&
	    !set_u32(STACKTAP_A_SLICE_EVERY, 0), "SLICE_MAX_BYTES");
	refuses(STACKTAP_A_SLICE_BYTES, 0, -EINVAL);
	tap(!set_u32(STACKTAP_A_SLICE_MAX_BYTES, 0) && !set_u32(STACKTAP_A_SLICE_BYTES, 0) &&
	    shows(0, 0, 0), "all can be taken back");
	refuses(STACKTAP_A_SLICE_EVERY, 7, -EINVAL);
	refuses(STACKTAP_A_SLICE_MAX_BYTES, 2048, -EINVAL);
	tap(!client_set_slices(&client, STACKTAP_MAX_SLICE_BYTES, 1) &&
	    !set_u32(STACKTAP_A_SLICE_MAX_BYTES, STACKTAP_MAX_SLICE_BYTES) &&
	    shows(STACKTAP_MAX_SLICE_BYTES, 1, STACKTAP_MAX_SLICE_BYTES), "as much as there may be");
	tap(!client_start(&client), "START");
	refuses(STACKTAP_A_SLICE_BYTES, 1024, -EBUSY);
	refuses(STACKTAP_A_SLICE_EVERY, 2, -EBUSY);
	refuses(STACKTAP_A_SLICE_MAX_BYTES, 1024, -EBUSY);
	tap(!client_stop(&client), "STOP");
	client_close(&client);
}

void case_slice_limits(void)
{
	check_refusals();
	check_shares();
	check_quarter();
	check_time();
}

/* samples of frameless code, in the order of one CPU */
struct compared {
	uint32_t tgid;
	unsigned int listed, due, sliced, unlisted, whole, equal, late, stray, stray_ends;
};

/* of a list that knows nothing of the code that runs, as if that had been mapped since */
#define STRAY_GENERATION 78

static void visit_compared(const struct sample_view *view, void *arg)
{
	struct compared *compared = arg;
	unsigned int count, common, end, user_end = view->sample->user_end;
	uint64_t ips[256];
	bool is_equal;

	if (view->sample->tgid != compared->tgid || !view->nr_user)
		return;
	if (view->sample->generation == STRAY_GENERATION) {
		compared->stray++;
		compared->stray_ends += view->sample->user_end == STACKTAP_END_NO_MAPPINGS ||
					view->sample->user_end == STACKTAP_END_TIME;
	} else if (view->sample->generation) {
		compared->listed++;
		if (compared->listed % 3 == 0)
			compared->due += !!view->slice;
	}
	if (!view->slice)
		return;
	/* that walk is asked how far it came */
	if (user_end == STACKTAP_END_GUESSED)
		user_end = STACKTAP_END_COMPLETE;
	count = late_walk(view, ips, 256, &end);
	if (!view->sample->generation || view->sample->generation == STRAY_GENERATION) {
		if (!frameless_is_leaf(view->user_ips[0]) || view->slice_end == STACKTAP_END_TIME)
			return;
		compared->unlisted++;
		compared->late += frameless_is_whole(ips, count);
		return;
	}
	compared->sliced++;
	compared->whole += view->slice_end == STACKTAP_END_COMPLETE;
	common = count < view->nr_user ? count : view->nr_user;
	/* what the slice did not have ended one of them, and time the other */
	if (count < view->nr_user)
		is_equal = end == STACKTAP_END_UNREADABLE &&
			   view->slice_end != STACKTAP_END_COMPLETE;
	else
		is_equal = user_end == STACKTAP_END_TIME ||
			   (count == view->nr_user && end == user_end);
	is_equal &= !memcmp(ips, view->user_ips, common * sizeof(*ips));
	if (!is_equal)
		tap_note("%u frames in the module, end %u; %u from %u bytes (%u), end %u",
			 view->nr_user, view->sample->user_end, count, view->slice_bytes,
			 view->slice_end, end);
	compared->equal += is_equal;
}

static pid_t fork_frameless(void)
{
	cpu_set_t set;
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
	sliced_touch_stack();
	for (;;)
		frameless_burn(1000);
}

void case_slice_every(void)
{
	const struct stacktap_mapping elsewhere = { .start = 0x10000, .end = 0x11000 };
	struct compared compared = { 0 };
	struct stacktap_image image;
	unsigned int i;

	if (!open_sliced(499, 4 << 20, 16384, 3))
		return;
	client.visit = visit_compared;
	client.visit_arg = &compared;
	compared.tgid = fork_frameless();
	client_set_filter(&client, 0, &compared.tgid, 1, 0);
	tap(!client_start(&client), "START");
	for (i = 0; i < WAIT_ROUNDS && compared.unlisted < 50; i++) {
		usleep(100000);
		client_drain(&client);
	}
	tap(compared.unlisted >= 50 && compared.late == compared.unlisted && !compared.listed,
	    "without a list: late, %u of %u stacks are whole", compared.late, compared.unlisted);

	tap(!tables_set_frameless(&client, compared.tgid, 77), "table and list");
	for (i = 0; i < WAIT_ROUNDS && compared.whole < 50; i++) {
		usleep(100000);
		client_drain(&client);
	}
	tap(compared.sliced >= 50 && compared.sliced == compared.listed / 3 &&
	    compared.due == compared.sliced, "with one, %u of %u samples have a slice, each third",
	    compared.sliced, compared.listed);
	tap(compared.equal == compared.sliced, "late, %u of %u are walked as in the module",
	    compared.equal, compared.sliced);
	tap(compared.whole >= 50, "%u of them to the stack's beginning", compared.whole);

	tap(!tables_image(&client, compared.tgid, &image) &&
	    !tables_set(&client, &image, STRAY_GENERATION, &elsewhere, 1), "a list of other code");
	compared.unlisted = compared.late = 0;
	for (i = 0; i < WAIT_ROUNDS && compared.unlisted < 50; i++) {
		usleep(100000);
		client_drain(&client);
	}
	tap(compared.unlisted >= 50 && compared.late == compared.unlisted &&
	    compared.stray_ends == compared.stray,
	    "late as well where code was mapped since: %u of %u whole, %u of %u stacks say so",
	    compared.late, compared.unlisted, compared.stray_ends, compared.stray);

	tap(!tables_set(&client, &image, 1, NULL, 0), "no list again");
	compared.unlisted = compared.late = 0;
	for (i = 0; i < WAIT_ROUNDS && compared.unlisted < 50; i++) {
		usleep(100000);
		client_drain(&client);
	}
	tap(compared.unlisted >= 50 && compared.late == compared.unlisted, "then slices come as before");
	load_kill(compared.tgid);
	close_sliced();
}

static int lock_down(void)
{
	static const char level[] = "confidentiality";
	int fd = open("/sys/kernel/security/lockdown", O_WRONLY | O_CLOEXEC);
	int err = fd < 0 || write(fd, level, sizeof(level) - 1) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return err;
}

void case_slice_lockdown(void)
{
	struct stacktap_mapping mapping = { .start = 0x10000, .end = 0x20000 };
	struct stacktap_image image;
	struct sliced sliced;
	uint64_t before;
	unsigned int i;

	if (!open_sliced(499, 1 << 20, 1024, 0))
		return;
	tap(!client_start(&client) && !client_stop(&client), "START and STOP");
	client_drain(&client);
	before = client.slices;
	tap(!tables_image(&client, getpid(), &image) && !tables_set(&client, &image, 1, &mapping, 1),
	    "a list");
	tap(!lock_down(), "the kernel is locked down");
	tap(tables_set(&client, &image, 2, &mapping, 1) == -EACCES, "no list any more");
	client.wire.sentence[0] = 0;
	tap(client_start(&client) == -EPERM && client.wire.sentence[0], "START: \"%s\"",
	    client.wire.sentence);
	refuses(STACKTAP_A_SLICE_BYTES, 1024, -EPERM);
	refuses(STACKTAP_A_SLICE_EVERY, 5, -EPERM);
	refuses(STACKTAP_A_SLICE_MAX_BYTES, 2048, -EPERM);
	tap(!client_set_slices(&client, 0, 0) && !client_start(&client), "without slices it runs");
	tap(!tables_of_session(&client).lists, "and without the list from before");
	sliced_fork(SLICED_WIDE, 1024, 0, &sliced);
	for (i = 0; i < WAIT_ROUNDS && client_samples(&client, 0) < 50; i++) {
		usleep(100000);
		client_drain(&client);
	}
	load_kill(sliced.pid);
	tap(client_samples(&client, 0) >= 50 && client.slices == before,
	    "%llu samples, %llu more slices", (unsigned long long)client_samples(&client, 0),
	    (unsigned long long)(client.slices - before));
	close_sliced();
}
