// SPDX-License-Identifier: Apache-2.0
/* Return hooks of all kinds that this kernel has: none is a caller in its stacks. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "load.h"
#include "tap.h"

#define TRACING "/sys/kernel/tracing/"

enum {
	HOOKS_ENOUGH = 30,		/* stacks under a hooked function */
	HOOKS_TRAMPOLINES = 16,
};

struct hook_kind {
	const char *name;
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

struct hooked_stacks {
	uint32_t tgid;
	struct range hooked;
	struct range trampolines[HOOKS_TRAMPOLINES];
	unsigned int nr_trampolines;
	uint64_t under;		/* stacks with the hooked function as a caller */
	uint64_t whole, ended;	/* of these: beyond it to the end, and to the hook */
	uint64_t trampoline;	/* has one for a caller */
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
	return false;
}

static void visit(const struct sample_view *view, void *arg)
{
	struct hooked_stacks *stacks = arg;
	unsigned int i, j;

	if (view->sample->tgid != stacks->tgid)
		return;
	/* behind the leaf: a trampoline runs as well */
	for (i = 1; i < view->nr_kernel && !is_in(&stacks->hooked, view->kernel_ips[i]); i++)
		;
	if (i >= view->nr_kernel)
		return;
	stacks->under++;
	for (j = i + 1; j < view->nr_kernel; j++) {
		if (is_trampoline(stacks, view->kernel_ips[j])) {
			stacks->trampoline++;
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

static void see_start(uint64_t address, const char *name, void *arg)
{
	struct hooked_stacks *stacks = arg;
	struct range *range = NULL;

	if (!strcmp(name, HOOKED))
		range = &stacks->hooked;
	else if (!strcmp(name, "return_to_handler") || strstr(name, "kretprobe_trampoline") ||
		 strstr(name, "rethook_trampoline"))
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

static void sample_under(const struct hook_kind *kind, struct hooked_stacks *stacks)
{
	struct client client;
	unsigned int i;
	pid_t pid;

	stacks->under = stacks->whole = stacks->ended = stacks->trampoline = 0;
	if (!tap(!client_open(&client) && !client_add_rings(&client, 1 << 20) &&
		 !client_set_sources(&client, &clock_997, 1), "%s: a session", kind->name))
		return;
	client.visit = visit;
	client.visit_arg = stacks;
	/* after the hook: none of its calls is without */
	pid = load_fork(0, true);
	stacks->tgid = pid;
	tap(!client_start(&client), "START");
	for (i = 0; i < 600 && stacks->under < HOOKS_ENOUGH; i++) {
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
	if (!tap(stacks.hooked.start, HOOKED " and %u trampolines", stacks.nr_trampolines))
		return;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct hook_kind *kind = &kinds[i];

		forget_traced();
		if (!load_write(kind->set[0], kind->set[1])) {
			tap_note("%s: this kernel has none", kind->name);
			continue;
		}
		if (load_write(kind->enable[0], kind->enable[1])) {
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
