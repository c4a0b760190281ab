// SPDX-License-Identifier: Apache-2.0
#include "cli/status.h"

#include <inttypes.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <string.h>

#include "base/cpulist.h"
#include "cli/cli.h"
#include "cli/session.h"
#include "client/event.h"
#include "client/name.h"
#include "service/statusfile.h"

static const char help[] =
	"usage: stacktap [status] [--json]\n\n"
	"Prints the module's version and features, all sessions with sources, filters\n"
	"and counters, and the daemon's status.\n\n"
	"  --json      as JSON\n"
	"  -h, --help\n";

static void status_done(struct status *status)
{
	for (size_t i = 0; i < status->session_count; i++) {
		control_filter_done(&status->sessions[i].session.filter);
		free(status->sessions[i].cpus);
	}
	free(status->sessions);
	free(status->daemon_text);
	free(status->daemon_json);
}

static int add_cpu(void *ctx, const struct control_cpu *cpu)
{
	struct status_session *session = ctx;

	if (session->cpu_count == session->cpu_capacity) {
		size_t capacity = session->cpu_capacity ? 2 * session->cpu_capacity : 8;
		struct control_cpu *cpus = reallocarray(session->cpus, capacity, sizeof(*cpus));

		if (!cpus)
			return -ENOMEM;
		session->cpus = cpus;
		session->cpu_capacity = capacity;
	}
	session->cpus[session->cpu_count++] = *cpu;
	return 0;
}

struct ids {
	uint64_t ids[STACKTAP_MAX_SESSIONS];
	size_t count;
};

static int add_id(void *ctx, const struct control_session *session)
{
	struct ids *ids = ctx;

	if (ids->count == ARRAY_SIZE(ids->ids))
		return -EOVERFLOW;
	ids->ids[ids->count++] = session->id;
	return 0;
}

static int gather(struct control *control, struct status *status)
{
	struct ids ids = { 0 };
	int ret;

	ret = control_each_session(control, add_id, &ids);
	if (ret < 0)
		return ret;
	status->sessions = calloc(ids.count + 1, sizeof(*status->sessions));
	if (!status->sessions)
		return -ENOMEM;
	for (size_t i = 0; i < ids.count; i++) {
		struct status_session *session = &status->sessions[status->session_count];

		ret = control_get_session(control, ids.ids[i], &session->session);
		/* it ended since it was listed */
		if (ret == -ENOENT || ret == -ESRCH || ret == -ENODEV)
			continue;
		if (ret < 0)
			return ret;
		status->session_count++;
		ret = control_each_cpu(control, ids.ids[i], add_cpu, session);
		if (ret < 0 && ret != -ENOENT && ret != -ESRCH && ret != -ENODEV)
			return ret;
	}
	return 0;
}

int status_run(int argc, char **argv)
{
	_cleanup_(session_closep) struct control *control = NULL;
	_cleanup_(status_done) struct status status = { 0 };
	bool use_json;
	int ret;

	ret = cli_parse_json(argc, argv, help, &use_json);
	if (ret != CLI_GO_ON)
		return ret;
	if (optind != argc)
		return cli_usage_error("status takes no argument `%s'", argv[optind]);
	ret = session_connect(&control, &status.module);
	if (ret)
		return ret;
	ret = gather(control, &status);
	if (ret < 0)
		return session_refused(control, "cannot read the sessions", ret);
	/* what the daemon wrote is an addition; without it the rest still counts */
	ret = statusfile_read(STATUSFILE_DIRECTORY, &status.daemon_text, &status.daemon_json,
			      &status.daemon_json_size);
	status.daemon_error = ret < 0 ? -ret : 0;
	if (use_json)
		status_print_json(&status);
	else
		status_print_text(&status);
	return cli_finish();
}

uint64_t status_lost(const struct control_counts *counts)
{
	uint64_t total = 0;

	for (size_t i = 0; i < STACKTAP_LOST_REASONS; i++)
		total += counts->lost[i];
	return total;
}

uint64_t status_cost_count(const struct control_cost *cost)
{
	uint64_t count = 0;

	for (size_t i = 0; i < STACKTAP_TIME_BUCKETS; i++)
		count += cost->times[i];
	return count;
}

static void print_source(const struct control_source *source)
{
	const char *name = event_name(source->type, source->config);

	printf("  source %u: %s", source->id, source->name[0] ? source->name : name ? name : "?");
	if (source->rate_hz)
		printf(", %u Hz", source->rate_hz);
	if (source->mode == STACKTAP_MODE_FREQ)
		printf(", period adapted by the kernel");
	else if (source->period)
		printf(", period %" PRIu64 "%s", source->period,
		       event_is_clock(source->type, source->config) ? " ns" : "");
	else if (source->nominal_hz && source->rate_hz)
		printf(", period %" PRIu64, source->nominal_hz / source->rate_hz);
	if (source->mode == STACKTAP_MODE_PERIOD && source->flags & STACKTAP_SRC_NO_JITTER)
		printf(", no jitter");
	if (source->flags & STACKTAP_SRC_EXCLUDE_USER)
		printf(", kernel only");
	if (source->flags & STACKTAP_SRC_EXCLUDE_KERNEL)
		printf(", user only");
	putchar('\n');
	if (source->fallback_errno)
		printf("    using cpu-clock on %u CPU%s (fallback): %s (%s)\n",
		       source->fallback_cpus, source->fallback_cpus == 1 ? "" : "s",
		       strerror((int)source->fallback_errno),
		       name_of_errno(source->fallback_errno));
}

static void print_ids(const char *what, const uint32_t *ids, size_t count)
{
	enum { SHOWN = 10 };

	if (!count)
		return;
	printf(" %s", what);
	for (size_t i = 0; i < count && i < SHOWN; i++)
		printf(" %u", ids[i]);
	printf("%s (%zu);", count > SHOWN ? " ..." : "", count);
}

static void print_cgroup(uint64_t id)
{
	char path[PATH_MAX];

	if (!control_cgroup_path(id, path, sizeof(path)))
		printf(" %s", path);
	else
		printf(" %" PRIu64 " (removed, or not visible from here)", id);
}

static void print_filter(const struct control_filter *filter)
{
	if (control_filter_is_empty(filter))
		return;
	fputs("  filter:", stdout);
	if (filter->cpus) {
		struct cpulist list = { filter->cpus, filter->cpu_words };
		char text[256];

		cpulist_format(&list, text, sizeof(text));
		printf(" CPUs %s;", text);
	}
	if (filter->is_partial)
		fputs(" ids that the kernel had no memory to report;", stdout);
	print_ids("processes", filter->tgids, filter->tgid_count);
	print_ids("threads", filter->tids, filter->tid_count);
	print_ids("users", filter->uids, filter->uid_count);
	if (filter->comm_count) {
		fputs(" names", stdout);
		for (size_t i = 0; i < filter->comm_count; i++)
			printf("%s %s", i ? "," : "", filter->comms[i]);
		putchar(';');
	}
	if (filter->cgroup_count)
		fputs(" cgroups", stdout);
	for (size_t i = 0; i < filter->cgroup_count; i++)
		print_cgroup(filter->cgroups[i]);
	if (filter->cgroup_count)
		putchar(';');
	if (filter->flags & STACKTAP_FILTER_USER_ONLY)
		fputs(" user mode only;", stdout);
	if (filter->flags & STACKTAP_FILTER_KERNEL_ONLY)
		fputs(" kernel only;", stdout);
	if (filter->flags & STACKTAP_FILTER_EXCLUDE_IDLE)
		fputs(" without idle;", stdout);
	putchar('\n');
}

static void print_cpus(const struct status_session *session)
{
	uint64_t lost[STACKTAP_LOST_REASONS] = { 0 }, total = 0, stalled = 0, multiplexed = 0;
	uint64_t raises = 0, missed = 0;
	unsigned int shared = 0, least = 100;

	if (session->cpu_count)
		printf("  %4s %-8s %-18s %12s %12s %12s %9s %9s %6s\n", "CPU", "STATE", "COUNTS",
		       "CALLS", "RECORDED", "FILTERED", "THROTTLED", "LOST", "RING");
	for (size_t i = 0; i < session->cpu_count; i++) {
		const struct control_cpu *cpu = &session->cpus[i];

		for (size_t j = 0; j < cpu->count_count; j++) {
			const struct control_counts *counts = &cpu->counts[j];
			const char *name = event_name(counts->type, counts->config);

			printf("  %4u %-8s %-18s %12" PRIu64 " %12" PRIu64 " %12" PRIu64
			       " %9" PRIu64 " %9" PRIu64 " %4" PRIu64 " %%\n",
			       cpu->cpu, name_of_cpu_state(cpu->state), name ? name : "other",
			       counts->calls, counts->recorded, counts->filtered,
			       counts->throttled, status_lost(counts),
			       cpu->ring_bytes ? cpu->ring_used * 100 / cpu->ring_bytes : 0);
			stalled += counts->stalled;
			multiplexed += counts->multiplexed;
			raises += counts->raises;
			missed += counts->missed;
			shared += counts->share_percent < STACKTAP_MULTIPLEX_PERCENT;
			least = min_of(least, counts->share_percent);
			for (size_t k = 0; k < STACKTAP_LOST_REASONS; k++) {
				lost[k] += counts->lost[k];
				total += counts->lost[k];
			}
		}
	}
	for (size_t i = 0; i < session->cpu_count; i++) {
		const struct control_cpu *cpu = &session->cpus[i];

		if (cpu->offlines)
			printf("  CPU %u went offline %" PRIu64 " times\n", cpu->cpu, cpu->offlines);
		if (cpu->error)
			printf("  CPU %u has no counter: %s (%s)\n", cpu->cpu,
			       strerror((int)cpu->error), name_of_errno(cpu->error));
	}
	if (stalled)
		printf("  counter stopped overflowing; re-armed %" PRIu64 " times\n", stalled);
	if (raises)
		printf("  the overflow handler doubled its period %" PRIu64 " times, to keep the ceiling or "
		       "the maximum rate\n", raises);
	if (missed)
		printf("  missed %" PRIu64 " periods: timers were late\n", missed);
	if (shared)
		printf("  MULTIPLEXED: %u of these counters share the PMU with others; each counts "
		       "at least %u %% of the time\n", shared, least);
	else if (multiplexed)
		printf("  other counters took the place of these in the PMU %" PRIu64 " times\n",
		       multiplexed);
	if (!total)
		return;
	fputs("  lost:", stdout);
	for (size_t k = 0; k < STACKTAP_LOST_REASONS; k++)
		if (lost[k])
			printf(" %" PRIu64 " %s", lost[k], name_of_lost((unsigned int)k));
	putchar('\n');
}

static void cost_add(struct control_cost *sum, const struct control_cost *cost)
{
	sum->ns += cost->ns;
	for (size_t i = 0; i < STACKTAP_TIME_BUCKETS; i++)
		sum->times[i] += cost->times[i];
}

static void print_cost(const char *name, const struct control_cost *cost)
{
	uint64_t count = status_cost_count(cost), seen = 0;
	unsigned int i;

	if (!count)
		return;
	printf("  %s: mean %" PRIu64 " ns,", name, cost->ns / count);
	for (i = 0; i + 1 < STACKTAP_TIME_BUCKETS; i++) {
		seen += cost->times[i];
		if (seen >= count - count / 100)
			break;
	}
	if (i + 1 < STACKTAP_TIME_BUCKETS)
		printf(" 99 %% below %" PRIu64 " ns\n", status_cost_bound(i));
	else
		printf(" less than 99 %% below %" PRIu64 " ns\n", status_cost_bound(i - 1));
}

/* Which share of the samples of PMU interrupts these finished themselves, where there are any. */
static void print_places(const struct status_session *session)
{
	uint64_t recorded = 0, in_place = 0, put_off = 0;

	for (size_t i = 0; i < session->cpu_count; i++) {
		const struct control_cpu *cpu = &session->cpus[i];

		for (size_t j = 0; j < cpu->count_count; j++) {
			const struct control_counts *counts = &cpu->counts[j];

			/* cpu-clock's own are not a PMU's, also those of a fallback that is over */
			if (counts->type != PERF_TYPE_SOFTWARE || counts->fallback_errno)
				recorded += counts->recorded - min_of(counts->fallback_recorded, counts->recorded);
			in_place += counts->in_place;
			put_off += counts->put_off;
		}
	}
	if (recorded)
		printf("  %.1f %% of the samples of PMU interrupts finished in the interrupt, without phase 2; %" PRIu64
		       " begun there and left to it\n", 100.0 * (double)in_place / (double)recorded, put_off);
}

static void print_costs(const struct status_session *session)
{
	struct control_cost handler = { 0 }, drain = { 0 };

	for (size_t i = 0; i < session->cpu_count; i++) {
		cost_add(&handler, &session->cpus[i].handler);
		cost_add(&drain, &session->cpus[i].drain);
	}
	if (session->cpu_count && !session->cpus[0].has_costs)
		puts("  time in the overflow handler: unknown, as the kernel does not know the "
		     "frequency of the CPU's time counter (TSC, CNTVCT), or the module is older than "
		     "ABI 1.6; the handler budget is not enforced");
	print_cost("time in the overflow handler", &handler);
	print_cost("time in phase 2", &drain);
	print_places(session);
}

static void print_budget(const struct control_session *session)
{
	if (!session->has_budget)
		return;
	if (session->ceiling_permille)
		printf("  ceiling of this session: %u.%u %% of each CPU\n",
		       session->ceiling_permille / 10, session->ceiling_permille % 10);
	if (session->degraded && session->budget_ns)
		printf("  DEGRADED: overflow handlers exceeded their budget of %u ns, or the ceiling: kernel "
		       "stacks up to %u frames, rates divided by %u\n", session->budget_ns,
		       session->kernel_frames, session->rate_divisor);
	else if (session->degraded)
		printf("  DEGRADED: to keep the ceiling: kernel stacks up to %u frames, rates divided by "
		       "%u\n", session->kernel_frames, session->rate_divisor);
	if (session->degradations)
		printf("  degraded by a step %" PRIu64 " times; rate changes refused %" PRIu64
		       " times\n", session->degradations, session->rates_refused);
}

/* How user stacks were walked and ended. */
static void print_stacks(const struct status_session *session)
{
	uint64_t ends[STACKTAP_END_REASONS] = { 0 }, hits = 0, misses = 0, frames = 0, fp = 0;
	uint64_t total = 0, slices = 0, refused = 0, searches = 0;

	for (size_t i = 0; i < session->cpu_count; i++) {
		const struct control_cpu *cpu = &session->cpus[i];

		hits += cpu->table_hits;
		misses += cpu->table_misses;
		frames += cpu->table_frames;
		fp += cpu->table_fp_frames;
		searches += cpu->table_searches;
		slices += cpu->slices;
		refused += cpu->slices_refused;
		for (size_t j = 0; j < cpu->count_count; j++)
			for (size_t k = STACKTAP_END_COMPLETE; k < STACKTAP_END_REASONS; k++) {
				ends[k] += cpu->counts[j].user_end[k];
				total += cpu->counts[j].user_end[k];
			}
	}
	if (total) {
		fputs("  user stacks:", stdout);
		for (unsigned int k = STACKTAP_END_COMPLETE; k < STACKTAP_END_REASONS; k++)
			if (ends[k])
				printf(" %" PRIu64 " %s", ends[k], name_of_end(k));
		putchar('\n');
	}
	if (session->session.lists)
		printf("  unwind tables: %u, %" PRIu64 " bytes; %u mapping lists, %" PRIu64
		       " bytes, %" PRIu64 " refused at fork\n", session->session.tables,
		       session->session.table_bytes, session->session.lists,
		       session->session.list_bytes, session->session.lists_refused);
	if (hits || misses)
		printf("  stacks walked with a list %" PRIu64 ", without %" PRIu64 "; frames %" PRIu64
		       ", of them by frame pointer %" PRIu64 "; searches in tables %" PRIu64 "\n",
		       hits, misses, frames, fp, searches);
	if (slices || refused)
		printf("  stack slices: %" PRIu64 " written, %" PRIu64 " refused\n", slices, refused);
}

void status_print_text(const struct status *status)
{
	const struct control_module *module = &status->module;

	printf("module: stacktap %s, ABI %u.%u\n  features:", module->version, module->abi_major,
	       module->abi_minor);
	for (unsigned int bit = 0; bit < 64; bit++)
		if (module->features >> bit & 1 && name_of_feature(bit))
			printf(" %s", name_of_feature(bit));
	putchar('\n');
	if (module->features & STACKTAP_FEATURE_TABLES)
		printf("  unwind tables: %u, %" PRIu64 " rows, %" PRIu64 " bytes; %u mapping lists, %"
		       PRIu64 " bytes; limit %" PRIu64 "\n", module->tables, module->table_rows,
		       module->table_bytes, module->lists, module->list_bytes, module->table_limit);
	if (module->has_ceiling && module->ceiling_permille)
		printf("  ceiling: %u.%u %% of each CPU\n", module->ceiling_permille / 10,
		       module->ceiling_permille % 10);
	else
		puts("  ceiling: none");
	if (!status->session_count)
		puts("no sessions");
	for (size_t i = 0; i < status->session_count; i++) {
		const struct control_session *session = &status->sessions[i].session;

		printf("session %" PRIu64 ": %s, of %s (%u)\n", session->id,
		       name_of_state(session->state), session->owner_comm, session->owner_tgid);
		for (size_t j = 0; j < session->source_count; j++)
			print_source(&session->sources[j]);
		print_filter(&session->filter);
		printf("  user stacks up to %u frames; %" PRIu64 " bytes of rings, %" PRIu64
		       " of stash\n", session->user_frames, session->ring_bytes,
		       session->stash_bytes);
		print_budget(session);
		print_cpus(&status->sessions[i]);
		print_stacks(&status->sessions[i]);
		print_costs(&status->sessions[i]);
	}
	if (status->daemon_text)
		fputs(status->daemon_text, stdout);
	else if (status->daemon_error)
		printf("daemon: unknown, cannot read %s: %s\n", STATUSFILE_DIRECTORY,
		       strerror(status->daemon_error));
	else
		puts("daemon: not running");
}
