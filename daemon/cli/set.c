// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/percent.h"
#include "cli/cli.h"
#include "cli/filter.h"
#include "cli/session.h"

static const char help[] =
	"usage: stacktap set SESSION [OPTION...]\n\n"
	"Changes a session immediately, also while it runs. Filters that are not named\n"
	"stay as they are. SESSION is a session's id, its owner's name (stacktapd), or\n"
	"all.\n\n"
	"Sampling:\n"
	"  -F, --rate HZ           samples per second of a busy CPU, 1 to 10000\n"
	"  -c, --period N          one sample every N events\n"
	"      --source N          the source that --rate or --period changes (default:\n"
	"                          all)\n"
	"      --budget-ns N       mean time of overflow handlers above which sampling\n"
	"                          degrades; 0: never\n"
	"      --ceiling PERCENT   share of each CPU that the session may take; 0: the\n"
	"                          module's ceiling alone\n\n"
	"Filters:\n"
	"  -C, --cpus LIST         only these CPUs: 0-3,7\n"
	"  -p, --pid PID,...       only these processes\n"
	"  -t, --tid TID,...       only these threads\n"
	"  -u, --uid USER,...      only threads that run as these users, by name or\n"
	"                          number\n"
	"      --comm NAME,...     only threads with these names\n"
	"  -G, --cgroup PATH,...   only threads in these cgroups (v2) and below them\n"
	"      --user-only         only samples in user mode\n"
	"      --kernel-only       only samples in the kernel\n"
	"      --exclude-idle      exclude the idle task\n"
	"      --no-filter         remove all filters first, then set those named here\n\n"
	"Output:\n"
	"      --json              print the result as JSON\n"
	"  -h, --help\n";

enum {
	OPT_SOURCE = 256,
	OPT_NO_FILTER,
	OPT_BUDGET_NS,
	OPT_CEILING,
};

struct change {
	bool has_rate, has_period, has_source, has_budget, has_ceiling, no_filter;
	uint32_t ceiling_permille;
	uint64_t rate_hz, period, source, budget_ns;
	struct control_filter filter;	/* what is named; merged into each session's own */
	struct json *json;
};

static void change_done(struct change *change)
{
	control_filter_done(&change->filter);
}

static int set_rates(const struct change *change, struct control *control,
		     const struct control_session *session, const char *what)
{
	bool has_set = false;

	for (size_t i = 0; i < session->source_count; i++) {
		uint32_t id = session->sources[i].id;
		int ret;

		if (change->has_source && id != change->source)
			continue;
		has_set = true;
		ret = control_set_rate(control, session->id, id, (uint32_t)change->rate_hz,
				       change->period);
		if (ret < 0)
			return session_refused(control, what, ret);
	}
	if (!has_set)
		return cli_error("%s: there is no source %" PRIu64, what, change->source);
	return CLI_OK;
}

static int set_filter(const struct change *change, struct control *control,
		      const struct control_session *session, const char *what)
{
	const uint32_t modes = STACKTAP_FILTER_USER_ONLY | STACKTAP_FILTER_KERNEL_ONLY;
	const struct control_filter *wanted = &change->filter;
	struct control_filter merged = { 0 };
	struct control_change request = { .filter = &merged };
	int ret;

	if (!change->no_filter && session->filter.is_partial)
		return cli_error("%s: the kernel could not allocate memory to report the current "
				 "filter; replace the whole filter with --no-filter", what);
	/* borrowed from both; only read */
	if (!change->no_filter)
		merged = session->filter;
	if (wanted->cpus) {
		merged.cpus = wanted->cpus;
		merged.cpu_words = wanted->cpu_words;
	}
	if (wanted->tgids) {
		merged.tgids = wanted->tgids;
		merged.tgid_count = wanted->tgid_count;
	}
	if (wanted->tids) {
		merged.tids = wanted->tids;
		merged.tid_count = wanted->tid_count;
	}
	if (wanted->uids) {
		merged.uids = wanted->uids;
		merged.uid_count = wanted->uid_count;
	}
	if (wanted->comms) {
		merged.comms = wanted->comms;
		merged.comm_count = wanted->comm_count;
	}
	/* those in force are kept by their ids, which stand for them even when they were removed */
	if (wanted->cgroup_fd_count) {
		merged.cgroup_fds = wanted->cgroup_fds;
		merged.cgroup_fd_count = wanted->cgroup_fd_count;
		merged.cgroups = NULL;
		merged.cgroup_count = 0;
	}
	if (wanted->flags & modes)
		merged.flags &= ~modes;
	merged.flags |= wanted->flags;
	ret = control_set_session(control, session->id, &request);
	return ret < 0 ? session_refused(control, what, ret) : CLI_OK;
}

static int set_budget(const struct change *change, struct control *control,
		      const struct control_session *session, const char *what)
{
	const uint32_t budget_ns = (uint32_t)change->budget_ns;
	const struct control_change request = { .budget_ns = &budget_ns };
	int ret;

	if (!session->has_budget)
		return cli_error("%s: the loaded module (ABI before 1.8) does not support a "
				 "budget; load the module of this version", what);
	ret = control_set_session(control, session->id, &request);
	return ret < 0 ? session_refused(control, what, ret) : CLI_OK;
}

static int set_ceiling(const struct change *change, struct control *control,
		       const struct control_session *session, const char *what)
{
	const struct control_change request = { .ceiling_permille = &change->ceiling_permille };
	int ret;

	if (!session->has_ceiling)
		return cli_error("%s: the loaded module (ABI before 1.11) does not support a "
				 "ceiling; load the module of this version", what);
	ret = control_set_session(control, session->id, &request);
	return ret < 0 ? session_refused(control, what, ret) : CLI_OK;
}

static int apply(void *ctx, struct control *control, const struct control_session *session)
{
	const struct change *change = ctx;
	const struct control_filter *filter = &change->filter;
	char what[64];
	int ret = CLI_OK;

	snprintf(what, sizeof(what), "cannot change session %" PRIu64, session->id);
	if (change->has_rate || change->has_period)
		ret = set_rates(change, control, session, what);
	if (!ret && (change->no_filter || !control_filter_is_empty(filter)))
		ret = set_filter(change, control, session, what);
	if (!ret && change->has_budget)
		ret = set_budget(change, control, session, what);
	if (!ret && change->has_ceiling)
		ret = set_ceiling(change, control, session, what);
	if (!ret && change->json)
		json_u64(change->json, NULL, session->id);
	return ret;
}

static int run_change(struct change *change, const char *name, bool use_json)
{
	_cleanup_(session_closep) struct control *control = NULL;
	_cleanup_free_ char *text = NULL;
	_cleanup_fclose_ FILE *memory = NULL;
	struct json json;
	size_t size;
	int ret;

	ret = session_connect(&control, NULL);
	if (ret)
		return ret;
	if (use_json) {
		memory = open_memstream(&text, &size);
		if (!memory)
			return cli_error("out of memory");
		json_init(&json, memory);
		json_object(&json, NULL);
		json_array(&json, "sessions");
		change->json = &json;
	}
	ret = session_each_named(control, name, apply, change);
	if (ret || !memory)
		return ret;
	json_end(&json);
	json_end(&json);
	if (fflush(memory) == EOF)
		return cli_error("out of memory");
	fputs(text, stdout);
	return cli_finish();
}

int set_run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "rate", required_argument, NULL, 'F' },
		{ "period", required_argument, NULL, 'c' },
		{ "source", required_argument, NULL, OPT_SOURCE },
		FILTER_OPTIONS,
		{ "no-filter", no_argument, NULL, OPT_NO_FILTER },
		{ "budget-ns", required_argument, NULL, OPT_BUDGET_NS },
		{ "ceiling", required_argument, NULL, OPT_CEILING },
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	_cleanup_(change_done) struct change change = { 0 };
	struct control_filter *filter = &change.filter;
	bool use_json = false;
	int option, ret;

	opterr = 0;
	while ((option = cli_option(argc, argv, ":hF:c:" FILTER_LETTERS, options)) != -1) {
		switch (option) {
		case 'h':
			return cli_help(help);
		case 'F':
			if (!cli_parse_number(optarg, 1, STACKTAP_MAX_RATE_HZ, &change.rate_hz))
				return cli_usage_error("rate `%s' is not a number from 1 to %d Hz",
						       optarg, STACKTAP_MAX_RATE_HZ);
			change.has_rate = true;
			break;
		case 'c':
			if (!cli_parse_number(optarg, 1, INT64_MAX, &change.period))
				return cli_usage_error("period `%s' is not a number above 0", optarg);
			change.has_period = true;
			break;
		case OPT_SOURCE:
			if (!cli_parse_number(optarg, 0, STACKTAP_MAX_SOURCES - 1, &change.source))
				return cli_usage_error("source `%s' is not a number from 0 to %d",
						       optarg, STACKTAP_MAX_SOURCES - 1);
			change.has_source = true;
			break;
		case OPT_NO_FILTER:
			change.no_filter = true;
			break;
		case OPT_BUDGET_NS:
			if (!cli_parse_number(optarg, 0, UINT32_MAX, &change.budget_ns))
				return cli_usage_error("budget `%s' is not a number of ns below 2^32",
						       optarg);
			change.has_budget = true;
			break;
		case OPT_CEILING:
			if (!percent_parse(optarg, &change.ceiling_permille))
				return cli_usage_error("ceiling `%s' is not a percentage from 0 to 100 "
						       "with at most one decimal", optarg);
			change.has_ceiling = true;
			break;
		case 'j':
			use_json = true;
			cli_use_json();
			break;
		default:
			ret = filter_option(filter, option, optarg);
			if (ret == CLI_GO_ON)
				return cli_bad_option(argc, argv, option);
			if (ret)
				return ret;
		}
	}
	if (optind + 1 != argc)
		return cli_usage_error("set needs one session: an id, an owner's name, or all");
	if (change.has_rate && change.has_period)
		return cli_usage_error("--rate and --period exclude each other");
	if (change.has_source && !change.has_rate && !change.has_period)
		return cli_usage_error("--source needs --rate or --period");
	ret = filter_check(filter);
	if (ret)
		return ret;
	if (!change.has_rate && !change.has_period && !change.has_budget &&
	    !change.has_ceiling && !change.no_filter && control_filter_is_empty(filter))
		return cli_usage_error("nothing to change; see `stacktap set --help'");
	return run_change(&change, argv[optind], use_json);
}
