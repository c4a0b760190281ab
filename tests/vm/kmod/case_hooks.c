// SPDX-License-Identifier: Apache-2.0
/*
 * Return hooks of all kinds that this kernel has: none is a caller in its stacks, and none that runs hides
 * that it has the caller.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "load.h"
#include "tap.h"

#define TRACING "/sys/kernel/tracing/"

enum {
	HOOKS_ENOUGH = 30,		/* stacks under a hooked function */
	HOOKS_RUNNING = 4,		/* stacks that end in a trampoline, which run for a moment */
	HOOKS_ROUNDS_RUNNING = 60,	/* how long to wait for that many, as none need come */
	HOOKS_TRAMPOLINES = 16,
	HOOKS_WRONG = 4,		/* stacks that are shown */
	HOOKS_FRAMES = 24,		/* of each */
};

struct hook_kind {
	const char *name;
	bool is_graph;			/* its trampoline is return_to_handler */
	const char *set[2];		/* a file of tracefs and what it takes */
	const char *enable[2];
	const char *disable[2];
	const char *unset[2];
};

/* called by read() of /dev/zero, and calls what takes the time */
#define HOOKED "vfs_read"

static const struct hook_kind kinds[] = {
	{
		.name = "kretprobe",
		.set = { TRACING "kprobe_events", "r:stacktap/hooked " HOOKED },
		.enable = { TRACING "events/stacktap/hooked/enable", "1" },
		.disable = { TRACING "events/stacktap/hooked/enable", "0" },
		.unset = { TRACING "kprobe_events", "-:stacktap/hooked" },
	}, {
		/* by rethook up to 6.13, since then by what function-graph has */
		.name = "fprobe",
		.set = { TRACING "dynamic_events", "f:stacktap/hooked " HOOKED "%return" },
		.enable = { TRACING "events/stacktap/hooked/enable", "1" },
		.disable = { TRACING "events/stacktap/hooked/enable", "0" },
		.unset = { TRACING "dynamic_events", "-:stacktap/hooked" },
	}, {
		.name = "function-graph",
		.is_graph = true,
		.set = { TRACING "set_ftrace_filter", HOOKED },
		.enable = { TRACING "current_tracer", "function_graph" },
		.disable = { TRACING "current_tracer", "nop" },
		.unset = { TRACING "set_ftrace_filter", "!" HOOKED },
	},
};

static const struct source clock_997 = {
	.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
	.rate_hz = 997,
};

struct range {
	uint64_t start, end;
};

struct wrong_stack {
	uint64_t ips[HOOKS_FRAMES];
	unsigned int nr, end;
};

struct hooked_stacks {
	uint32_t tgid;
	struct range hooked;
	struct range trampolines[HOOKS_TRAMPOLINES];
	unsigned int nr_trampolines;
	struct range graph;	/* function-graph's */
	bool has_orc;		/* this kernel has rules for its stacks */
	uint64_t under;		/* stacks with the hooked function as a caller */
	uint64_t whole, ended;	/* of these: beyond it to the end, and to the hook */
	uint64_t trampoline;	/* has one for a caller */
	/* of all: those that end in a trampoline that runs, and those that lack a caller and do not say so */
	uint64_t running, cut;
	uint64_t stepped;	/* go on behind a trampoline that was interrupted */
	struct wrong_stack wrong[HOOKS_WRONG];
	unsigned int nr_wrong;
};

static bool is_in(const struct range *range, uint64_t ip)
{
	return ip >= range->start && ip < range->end;
}

static bool is_trampoline(const struct hooked_stacks *stacks, uint64_t ip)
{
	unsigned int i;

	for (i = 0; i < stacks->nr_trampolines; i++)
		if (is_in(&stacks->trampolines[i], ip))
			return true;
	return is_in(&stacks->graph, ip);
}

static void keep_wrong(struct hooked_stacks *stacks, const struct sample_view *view)
{
	struct wrong_stack *wrong = &stacks->wrong[stacks->nr_wrong];

	if (stacks->nr_wrong == HOOKS_WRONG)
		return;
	stacks->nr_wrong++;
	wrong->nr = view->nr_kernel < HOOKS_FRAMES ? view->nr_kernel : HOOKS_FRAMES;
	wrong->end = view->sample->kernel_end;
	memcpy(wrong->ips, view->kernel_ips, wrong->nr * sizeof(wrong->ips[0]));
}

/*
 * x86's rules lead through some trampolines that run to a caller. By frame pointers it is left out of all,
 * on arm64 of function-graph's.
 */
static bool lacks_caller(const struct hooked_stacks *stacks, const struct sample_view *view)
{
	unsigned int i;

	for (i = 0; i + 1 < view->nr_kernel && !stacks->has_orc; i++) {
#ifdef __aarch64__
		if (is_in(&stacks->graph, view->kernel_ips[i]))
#else
		if (is_trampoline(stacks, view->kernel_ips[i]))
#endif
			return true;
	}
	return is_trampoline(stacks, view->kernel_ips[view->nr_kernel - 1]);
}

/*
 * Only where it calls the rules of a trampoline are sure: one that was interrupted is the end of its stack, but on
 * arm64, where all but function-graph's have a frame.
 */
static bool steps_on(const struct hooked_stacks *stacks, const struct sample_view *view)
{
#ifdef __aarch64__
	bool ends = is_in(&stacks->graph, view->kernel_ips[0]);
#else
	bool ends = is_trampoline(stacks, view->kernel_ips[0]);
#endif

	return ends && view->sample->kernel_end != STACKTAP_END_HOOK;
}

static void visit(const struct sample_view *view, void *arg)
{
	struct hooked_stacks *stacks = arg;
	unsigned int i, j;

	if (view->sample->tgid != stacks->tgid || !view->nr_kernel)
		return;
	if (view->sample->kernel_end == STACKTAP_END_COMPLETE && lacks_caller(stacks, view)) {
		stacks->cut++;
		keep_wrong(stacks, view);
	}
	if (steps_on(stacks, view)) {
		stacks->stepped++;
		keep_wrong(stacks, view);
	}
	/* behind the leaf: a trampoline runs as well */
	for (i = 1; i < view->nr_kernel && !is_in(&stacks->hooked, view->kernel_ips[i]); i++)
		;
	if (i >= view->nr_kernel) {
		stacks->running += view->sample->kernel_end == STACKTAP_END_HOOK;
		return;
	}
	stacks->under++;
	for (j = i + 1; j < view->nr_kernel; j++) {
		if (is_trampoline(stacks, view->kernel_ips[j])) {
			stacks->trampoline++;
			keep_wrong(stacks, view);
			return;
		}
	}
	if (i + 1 < view->nr_kernel)
		stacks->whole += view->sample->kernel_end == STACKTAP_END_COMPLETE;
	else
		stacks->ended += view->sample->kernel_end == STACKTAP_END_HOOK;
}

/* Each line of kallsyms that has an address and a name. */
static void each_symbol(void (*see)(uint64_t address, const char *name, void *arg), void *arg)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	char line[512], name[256], type;
	uint64_t address;

	if (!file)
		return;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%" SCNx64 " %c %255s", &address, &type, name) == 3)
			see(address, name, arg);
	fclose(file);
}

struct place {
	uint64_t ip, start;
	char name[64];
};

static void see_place(uint64_t address, const char *name, void *arg)
{
	struct place *place = arg;

	if (address <= place->ip && address > place->start) {
		place->start = address;
		snprintf(place->name, sizeof(place->name), "%.63s", name);
	}
}

static void show_wrong(const struct hooked_stacks *stacks)
{
	unsigned int i, j;

	for (i = 0; i < stacks->nr_wrong; i++) {
		tap_note("stack %u, end %u:", i, stacks->wrong[i].end);
		for (j = 0; j < stacks->wrong[i].nr; j++) {
			struct place place = { .ip = stacks->wrong[i].ips[j] };

			each_symbol(see_place, &place);
			tap_note("  %s+%#" PRIx64, place.name, place.ip - place.start);
		}
	}
}

static void see_start(uint64_t address, const char *name, void *arg)
{
	struct hooked_stacks *stacks = arg;
	struct range *range = NULL;

	if (!strcmp(name, HOOKED))
		range = &stacks->hooked;
	else if (!strcmp(name, "return_to_handler"))
		range = &stacks->graph;
	else if (!strcmp(name, "__start_orc_unwind"))
		stacks->has_orc = true;
	else if (!strcmp(name, "kretprobe_trampoline") || !strcmp(name, "__kretprobe_trampoline") ||
		 !strcmp(name, "arch_rethook_trampoline"))
		range = stacks->nr_trampolines < HOOKS_TRAMPOLINES ?
			&stacks->trampolines[stacks->nr_trampolines++] : NULL;
	if (range)
		*range = (struct range){ address, UINT64_MAX };
}

static void end_before(struct range *range, uint64_t address)
{
	if (address > range->start && address < range->end)
		range->end = address;
}

static void see_end(uint64_t address, const char *name __attribute__((unused)), void *arg)
{
	struct hooked_stacks *stacks = arg;
	unsigned int i;

	end_before(&stacks->hooked, address);
	end_before(&stacks->graph, address);
	for (i = 0; i < stacks->nr_trampolines; i++)
		end_before(&stacks->trampolines[i], address);
}

static void forget_traced(void)
{
	int fd = open(TRACING "trace", O_WRONLY | O_TRUNC | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
}

/* Is there anything in ftrace's buffer, but for its head? */
static bool has_traced(void)
{
	FILE *file = fopen(TRACING "trace", "re");
	bool found = false;
	char line[512];

	while (file && !found && fgets(line, sizeof(line), file))
		found = line[0] != '#' && line[0] != '\n';
	if (file)
		fclose(file);
	return found;
}

/* Long reads, in which the hook's return is far off, and short ones, that trampolines run often. */
static pid_t fork_reader(void)
{
	static char buffer[1 << 16];
	pid_t pid = fork();
	unsigned int i;
	int zero;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	while (read(zero, buffer, sizeof(buffer)) > 0)
		for (i = 0; i < 16 && read(zero, buffer, 1) > 0; i++)
			;
	_exit(1);
}

static void sample_under(const struct hook_kind *kind, struct hooked_stacks *stacks)
{
	struct client client;
	unsigned int i;
	pid_t pid;

	stacks->under = stacks->whole = stacks->ended = stacks->trampoline = 0;
	stacks->running = stacks->cut = stacks->stepped = stacks->nr_wrong = 0;
	if (!tap(!client_open(&client) && !client_add_rings(&client, 1 << 20) &&
		 !client_set_sources(&client, &clock_997, 1), "%s: a session", kind->name))
		return;
	client.visit = visit;
	client.visit_arg = stacks;
	/* after the hook: none of its calls is without */
	pid = fork_reader();
	stacks->tgid = pid;
	tap(!client_start(&client), "START");
	for (i = 0; i < 600 && (stacks->under < HOOKS_ENOUGH ||
				(stacks->running < HOOKS_RUNNING && i < HOOKS_ROUNDS_RUNNING)); i++) {
		usleep(50000);
		client_drain(&client);
	}
	tap(!client_stop(&client), "STOP");
	client_drain(&client);
	load_kill(pid);
	tap(has_traced(), "%s: the hook is called", kind->name);
	tap(stacks->under >= HOOKS_ENOUGH && !stacks->trampoline,
	    "%s: of %" PRIu64 " stacks %" PRIu64 " have a trampoline for a caller", kind->name,
	    stacks->under, stacks->trampoline);
	tap((stacks->whole + stacks->ended) * 10 >= stacks->under * 9,
	    "%s: %" PRIu64 " are whole, %" PRIu64 " end at the hook", kind->name, stacks->whole,
	    stacks->ended);
	tap(!stacks->cut, "%s: %" PRIu64 " stacks without a caller say that they are whole", kind->name,
	    stacks->cut);
	tap(!stacks->stepped, "%s: %" PRIu64 " stacks go on behind a trampoline that was interrupted", kind->name,
	    stacks->stepped);
	tap_note("%s: %" PRIu64 " stacks end in the hook", kind->name, stacks->running);
	show_wrong(stacks);
	client_close(&client);
}

void case_hooks(void)
{
	struct hooked_stacks stacks = { 0 };
	unsigned int i, seen = 0;

	if (access(TRACING "trace", F_OK) && mount("tracefs", TRACING, "tracefs", 0, NULL)) {
		tap(errno == ENODEV || errno == ENOENT, "no tracefs: %s", strerror(errno));
		return;
	}
	each_symbol(see_start, &stacks);
	each_symbol(see_end, &stacks);
	/* all kernels here have kprobes */
	if (!tap(stacks.hooked.start && stacks.nr_trampolines, HOOKED " and %u trampolines of kretprobes",
		 stacks.nr_trampolines))
		return;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct hook_kind *kind = &kinds[i];

		forget_traced();
		if (!load_write(kind->set[0], kind->set[1])) {
			tap_note("%s: this kernel has none", kind->name);
			continue;
		}
		if (load_write(kind->enable[0], kind->enable[1])) {
			if (kind->is_graph)
				tap(stacks.graph.start, "%s: its trampoline has a name", kind->name);
			sample_under(kind, &stacks);
			seen++;
		} else {
			tap_note("%s: this kernel has none", kind->name);
		}
		load_write(kind->disable[0], kind->disable[1]);
		tap(load_write(kind->unset[0], kind->unset[1]), "%s: removed", kind->name);
	}
	tap(seen, "%u kinds of hooks", seen);
}
