// SPDX-License-Identifier: Apache-2.0
/*
 * Every so many samples carry registers and a slice of the stack beside the module's own walk.
 * Unwind these by libdwfl and compare: of all processes, until there are enough or time is over.
 *
 * usage: shadow SAMPLES SECONDS [EVERY [RATE]]
 */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "capture/error.h"
#include "client/event.h"
#include "target.h"

enum {
	TARGETS_MAX = 256,
	REPORTED_MAX = 20,
	RING_BYTES = 8 << 20,	/* slices get a quarter of it */
	SCAN_MS = 50,
};

static struct target targets[TARGETS_MAX];
static size_t target_count;
static struct slice slice;
static struct {
	uint64_t samples, without, unknown, moved, frames, verdicts[VERDICTS];
	uint64_t our_ends[STACKTAP_END_REASONS];
	uint32_t deepest;
} counts;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "shadow: %s: %s\n", what, why);
	exit(1);
}

static struct target *find_target(uint32_t pid)
{
	for (size_t i = 0; i < target_count; i++)
		if (targets[i].pid == pid)
			return &targets[i];
	return NULL;
}

static void report(const struct target *target, const struct stacktap_sample *sample,
		   enum verdict verdict, const struct frames *ours, const struct frames *theirs)
{
	static const char *const names[] = {
		[VERDICT_BLIND] = "libdwfl is blind",
		[VERDICT_WE_ENDED] = "we ended", [VERDICT_THEY_ENDED] = "libdwfl ended",
		[VERDICT_WRONG] = "WRONG", [VERDICT_WRONG_ROOT] = "WRONG ROOT",
	};
	const struct stacktap_regs *regs = slice.sections->regs;
	static uint64_t by_verdict[VERDICTS];

	if (by_verdict[verdict]++ >= REPORTED_MAX)
		return;
	fprintf(stderr, "%s: %s, pid %u tid %u, slice %" PRIx64 " + %u, first miss %" PRIx64
		", flags %x\n", names[verdict], sample->comm, sample->tgid, sample->tid,
		slice.sections->slice_address, slice.sections->slice_bytes, slice.missed,
		sample->header.flags);
	frames_print("ours", ours);
	frames_print("libdwfl", theirs);
	fprintf(stderr, "  pc %" PRIx64 ", registers:", (uint64_t)regs->pc);
	for (uint32_t i = 0; i < regs->count; i++)
		fprintf(stderr, " %" PRIx64, (uint64_t)regs->regs[i]);
	fprintf(stderr, "\n");
	target_print_maps(target);
}

static void on_sample(void *ctx, const struct stacktap_sample *sample,
		      const struct sample_sections *sections)
{
	static struct frames ours, theirs;
	const struct target *target;
	enum verdict verdict;

	(void)ctx;
	counts.samples++;
	if (!sections->regs || !sections->user_count) {
		counts.without++;
		return;
	}
	target = find_target(sample->tgid);
	if (!target || !target->dwfl || sample->generation != target->generation ||
	    sample->exec_id != target->exec_id) {
		counts.unknown++;
		return;
	}
	slice = (struct slice){ .tid = sample->tid, .sections = sections };
	frames_of_sample(sample, sections, &ours);
	frames_by_dwfl(target->dwfl, &slice, &theirs);
	/* mapped since: we do not call that whole, and libdwfl has no word for it */
	if (ours.end != STACKTAP_END_COMPLETE && theirs.count < ours.count &&
	    !dwfl_addrmodule(target->dwfl, ours.pcs[theirs.count]))
		theirs.is_blind = true;
	verdict = frames_compare(&ours, &theirs);
	counts.verdicts[verdict]++;
	counts.our_ends[ours.end]++;
	counts.moved += sample->header.flags & STACKTAP_SAMPLE_MOVED ? 1 : 0;
	counts.frames += min_of(ours.count, theirs.count);
	counts.deepest = max_of(counts.deepest, ours.count);
	if (verdict != VERDICT_EQUAL && verdict != VERDICT_CUT)
		report(target, sample, verdict, &ours, &theirs);
}

/* With slices that held the whole stack, and code that libdwfl knows. */
static uint64_t compared(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < VERDICTS; i++)
		if (i != VERDICT_CUT && i != VERDICT_BLIND)
			sum += counts.verdicts[i];
	return sum;
}

static void forget(struct target *target)
{
	target_done(target);
	*target = targets[--target_count];
}

/* Take in what runs now, let go of what has ended. */
static void scan(struct capture *capture)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	if (!dir)
		die("/proc", strerror(errno));
	for (size_t i = target_count; i--;)
		if (!target_update(&targets[i], capture, &slice) &&
		    kill((pid_t)targets[i].pid, 0) < 0)
			forget(&targets[i]);
	while ((entry = readdir(dir)) && target_count < TARGETS_MAX) {
		uint32_t pid = (uint32_t)atoi(entry->d_name);

		if (!isdigit((unsigned char)entry->d_name[0]) || pid == (uint32_t)getpid() ||
		    find_target(pid))
			continue;
		targets[target_count] = (struct target){ .pid = pid };
		if (target_update(&targets[target_count], capture, &slice))
			target_count++;
	}
	closedir(dir);
}

static void start(struct control *control, const struct capture *capture, uint32_t every,
		  uint32_t rate)
{
	struct control_filter filter = { .flags = STACKTAP_FILTER_EXCLUDE_IDLE };
	struct control_source source = { 0 };
	struct control_change change = {
		.sources = &source, .source_count = 1, .filter = &filter,
		.slice_bytes = STACKTAP_MAX_SLICE_BYTES, .slice_every = every,
	};
	char error[256];

	if (event_parse("cycles", &source, error, sizeof(error)) < 0)
		die("cycles", error);
	source.rate_hz = rate;
	if (control_set_session(control, capture_session_id(capture), &change) < 0 ||
	    control_start(control, capture_session_id(capture)) < 0)
		die("the module", control_error(control));
}

static void print_counts(void)
{
	printf("{\"samples\": %" PRIu64 ", \"without\": %" PRIu64 ", \"unknown\": %" PRIu64
	       ", \"moved\": %" PRIu64 ", \"frames\": %" PRIu64 ", \"deepest\": %u"
	       ", \"compared\": %" PRIu64 ", \"equal\": %" PRIu64 ", \"we_ended\": %" PRIu64
	       ", \"they_ended\": %" PRIu64 ", \"cut\": %" PRIu64 ", \"blind\": %" PRIu64
	       ", \"wrong\": %" PRIu64
	       ", \"wrong_root\": %" PRIu64 ", \"ends\": [", counts.samples, counts.without,
	       counts.unknown, counts.moved, counts.frames, counts.deepest, compared(),
	       counts.verdicts[VERDICT_EQUAL], counts.verdicts[VERDICT_WE_ENDED],
	       counts.verdicts[VERDICT_THEY_ENDED], counts.verdicts[VERDICT_CUT],
	       counts.verdicts[VERDICT_BLIND], counts.verdicts[VERDICT_WRONG],
	       counts.verdicts[VERDICT_WRONG_ROOT]);
	for (int i = 0; i < STACKTAP_END_REASONS; i++)
		printf("%s%" PRIu64, i ? ", " : "", counts.our_ends[i]);
	puts("]}");
}

int main(int argc, char **argv)
{
	const struct capture_options options = {
		.ring_bytes = RING_BYTES, .without_sideband = true,
	};
	const struct capture_ops ops = { .sample = on_sample };
	struct control *control;
	struct capture *capture;
	uint64_t wanted, time_;
	time_t end;
	int r;

	if (argc < 3) {
		fputs("usage: shadow SAMPLES SECONDS [EVERY [RATE]]\n", stderr);
		return 2;
	}
	/* libdwfl would ask the network for debug files */
	unsetenv("DEBUGINFOD_URLS");
	wanted = strtoull(argv[1], NULL, 10);
	end = time(NULL) + atoi(argv[2]);
	r = capture_open(&options, &ops, NULL, &capture);
	if (r < 0)
		die("session", capture_strerror(r));
	r = control_open(&control);
	if (r < 0)
		die("netlink", strerror(-r));
	scan(capture);
	start(control, capture, argc > 3 ? (uint32_t)atoi(argv[3]) : 4,
	      argc > 4 ? (uint32_t)atoi(argv[4]) : 499);
	while (compared() < wanted && time(NULL) < end) {
		capture_wait(capture, SCAN_MS);
		capture_drain(capture, &time_);
		scan(capture);
	}
	control_stop(control, capture_session_id(capture));
	control_close(control);
	capture_close(capture);
	print_counts();
	while (target_count)
		forget(&targets[0]);
	return 0;
}
