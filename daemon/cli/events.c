// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/session.h"
#include "client/name.h"

static const char help[] =
	"usage: stacktap events [OPTION...]\n\n"
	"Prints events as they happen: sessions created, started, changed, stopped and\n"
	"destroyed; CPUs going online and offline; fallbacks to cpu-clock and their\n"
	"ends; throttling, multiplexing, losses, degradation. Ends with Ctrl-C. Needs\n"
	"CAP_SYS_ADMIN.\n\n"
	"  -n, --count N        end after N events\n"
	"      --duration TIME  end after TIME: 10, 0.5, 2m, 1h (seconds without a unit)\n"
	"      --json           one JSON object per line\n"
	"  -h, --help\n";

enum {
	OPT_DURATION = 256,
	WAIT_MS = 1000,
};

struct options {
	bool use_json;
	uint64_t count, duration_ms;	/* 0: without end */
};

static volatile sig_atomic_t is_stopped;

static void on_signal(int number _unused_)
{
	is_stopped = 1;
}

/* No SA_RESTART: a signal ends the wait for the next event. */
static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

static void print_json(const struct control_event *event, uint64_t unix_ns)
{
	struct json json;

	json_init(&json, stdout);
	json_object(&json, NULL);
	json_u64(&json, "time_unix_nano", unix_ns);
	json_u64(&json, "time_monotonic_nano", event->time);
	json_string(&json, "event", name_of_event(event->kind));
	json_u64(&json, "session", event->session_id);
	if (event->has_cpu)
		json_u64(&json, "cpu", event->cpu);
	if (event->has_source)
		json_u64(&json, "source", event->source_id);
	if (event->count)
		json_u64(&json, "count", event->count);
	if (event->has_lost) {
		json_object(&json, "lost");
		for (unsigned int i = 0; i < STACKTAP_LOST_REASONS; i++)
			json_u64(&json, name_of_lost(i), event->lost[i]);
		json_end(&json);
	}
	if (event->error) {
		json_u64(&json, "errno", event->error);
		json_string(&json, "errno_name", name_of_errno(event->error));
	}
	json_end(&json);
}

static void print_text(const struct control_event *event, uint64_t unix_ns)
{
	time_t seconds = (time_t)(unix_ns / NSEC_PER_SEC);
	char clock[16];
	struct tm tm;

	localtime_r(&seconds, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	printf("%s.%03u %s session %" PRIu64, clock,
	       (unsigned int)(unix_ns % NSEC_PER_SEC / NSEC_PER_MSEC), name_of_event(event->kind),
	       event->session_id);
	if (event->has_source)
		printf(" source %u", event->source_id);
	if (event->has_cpu)
		printf(" CPU %u", event->cpu);
	if (event->count)
		printf(" count %" PRIu64, event->count);
	for (unsigned int i = 0; i < STACKTAP_LOST_REASONS; i++)
		if (event->lost[i])
			printf(" %s %" PRIu64, name_of_lost(i), event->lost[i]);
	if (event->error)
		printf("%s%s (%s)",
		       event->kind == STACKTAP_EVENT_FALLBACK_END ? ": it was cpu-clock since " : ": ",
		       strerror((int)event->error), name_of_errno(event->error));
	putchar('\n');
}

static int listen_to(struct control *control, const struct options *options)
{
	uint64_t start = clock_monotonic(), seen = 0;
	int64_t offset = clock_realtime_offset();

	while (!options->count || seen < options->count) {
		uint64_t elapsed_ms = (clock_monotonic() - start) / NSEC_PER_MSEC;
		uint64_t wait_ms = WAIT_MS;
		struct control_event event;
		uint64_t unix_ns;
		int ret;

		if (options->duration_ms) {
			if (elapsed_ms >= options->duration_ms)
				break;
			wait_ms = min_of(wait_ms, options->duration_ms - elapsed_ms);
		}
		/* what came before the signal is told */
		ret = control_next_event(control, is_stopped ? 0 : (int)wait_ms, &event);
		if (!ret && is_stopped)
			break;
		if (ret == -EINTR || !ret)
			continue;
		if (ret == -ENOBUFS) {
			fputs("stacktap: events came faster than they could be read; some are "
			      "missing here\n", stderr);
			continue;
		}
		if (ret < 0)
			return cli_error("cannot read events: %s", strerror(-ret));
		seen++;
		unix_ns = event.time + (uint64_t)offset;
		if (options->use_json)
			print_json(&event, unix_ns);
		else
			print_text(&event, unix_ns);
		/* whoever reads a pipe wants each line when it happens */
		if (fflush(stdout) == EOF)
			break;
	}
	return cli_finish();
}

int events_run(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "count", required_argument, NULL, 'n' },
		{ "duration", required_argument, NULL, OPT_DURATION },
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	_cleanup_(session_closep) struct control *control = NULL;
	struct options options = { 0 };
	int option, ret;

	opterr = 0;
	while ((option = cli_option(argc, argv, ":hn:", long_options)) != -1) {
		switch (option) {
		case 'h':
			return cli_help(help);
		case 'n':
			if (!cli_parse_number(optarg, 1, UINT64_MAX, &options.count))
				return cli_usage_error("count `%s' is not a number above 0", optarg);
			break;
		case OPT_DURATION:
			if (!cli_parse_duration(optarg, &options.duration_ms))
				return cli_usage_error("duration `%s' is not a time such as 10, 0.5 or 2m",
						       optarg);
			break;
		case 'j':
			options.use_json = true;
			cli_use_json();
			break;
		default:
			return cli_bad_option(argc, argv, option);
		}
	}
	if (optind != argc)
		return cli_usage_error("events takes no argument `%s'", argv[optind]);
	ret = session_connect(&control, NULL);
	if (ret)
		return ret;
	catch_signals();
	ret = control_subscribe(control);
	if (ret == -EPERM)
		return cli_error("cannot listen to events: CAP_SYS_ADMIN is needed, run it with sudo");
	if (ret == -ENOENT)
		return cli_error("cannot listen to events: this kernel cannot restrict them to "
				 "CAP_SYS_ADMIN, so the module sends none; stable releases since "
				 "December 2023 can");
	if (ret < 0)
		return cli_error("cannot listen to events: %s", strerror(-ret));
	return listen_to(control, &options);
}
