// SPDX-License-Identifier: Apache-2.0
/*
 * The daemon: options, signals and the rhythm of status and watchdog around one service.
 */
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "broker/broker.h"
#include "export/environment.h"
#include "service/config.h"
#include "service/daemon.h"
#include "service/notify.h"
#include "service/status.h"

#include <stacktap/version.h>

enum {
	LOOK_SECONDS = 5,	/* between looks at the kill switch, the minute and the configuration's file */
	EXIT_USAGE = 2,
	OPT_CONFIG = 256,
	OPT_FOREGROUND,
	OPT_CHECK_CONFIG,
	OPT_DUMP_CONFIG,
	OPT_NO_LOAD_MODULE,
	OPT_LOG_LEVEL,
	OPT_VERSION,
};

static const char help[] =
	"usage: stacktapd [OPTION...]\n\n"
	"Profiles the whole host all the time and exports OpenTelemetry profiles.\n\n"
	"      --config FILE      configuration (default: " CONFIG_PATH ",\n"
	"                         if it exists)\n"
	"      --check-config     check the configuration, print what is wrong with it,\n"
	"                         and exit\n"
	"      --dump-config      print the configuration in force and exit\n"
	"      --foreground       accepted; it always runs in the foreground\n"
	"      --no-load-module   do not load the kernel module\n"
	"      --log-level LEVEL  error, warning, info or debug\n"
	"  -h, --help\n"
	"      --version\n\n"
	"On SIGHUP it reads the configuration again, on SIGUSR1 and SIGUSR2 it logs its\n"
	"status and memory pools, on SIGTERM and SIGINT it stops sampling, exports what\n"
	"is left and exits.\n";

static int parse_level(const char *text, uint64_t *ret_level)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };
	static const enum log_level levels[] = { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING,
						 LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(text, names[i])) {
			*ret_level = levels[i];
			return 0;
		}
	return -EINVAL;
}

/* 0: go on; else the exit status plus one */
static int parse_options(int argc, char **argv, struct options *options)
{
	static const struct option long_options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ "config", required_argument, NULL, OPT_CONFIG },
		{ "foreground", no_argument, NULL, OPT_FOREGROUND },
		{ "check-config", no_argument, NULL, OPT_CHECK_CONFIG },
		{ "dump-config", no_argument, NULL, OPT_DUMP_CONFIG },
		{ "no-load-module", no_argument, NULL, OPT_NO_LOAD_MODULE },
		{ "log-level", required_argument, NULL, OPT_LOG_LEVEL },
		{ 0 },
	};
	uint64_t level;
	int option;

	while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		switch (option) {
		case 'h':
			fputs(help, stdout);
			return EXIT_SUCCESS + 1;
		case OPT_VERSION:
			puts("stacktapd " STACKTAP_VERSION);
			return EXIT_SUCCESS + 1;
		case OPT_CONFIG:
			options->config_path = optarg;
			options->has_config = true;
			break;
		case OPT_FOREGROUND:
			break;
		case OPT_CHECK_CONFIG:
			options->check_config = true;
			break;
		case OPT_DUMP_CONFIG:
			options->dump_config = true;
			break;
		case OPT_NO_LOAD_MODULE:
			options->no_load_module = true;
			break;
		case OPT_LOG_LEVEL:
			if (parse_level(optarg, &level) < 0) {
				fprintf(stderr, "stacktapd: unknown log level `%s': use error, "
					"warning, info or debug\n", optarg);
				return EXIT_USAGE + 1;
			}
			options->log_level = optarg;
			break;
		default:
			fputs("see stacktapd --help\n", stderr);
			return EXIT_USAGE + 1;
		}
	}
	if (optind != argc) {
		fprintf(stderr, "stacktapd: unexpected argument `%s'\n", argv[optind]);
		return EXIT_USAGE + 1;
	}
	return 0;
}

/* The file under the command line's options. The default file may be missing. */
static int load_config(const struct options *options, struct config *ret_config, char *error,
		       size_t error_size)
{
	int ret;

	ret = config_load(options->config_path, ret_config, error, error_size);
	if (ret == -ENOENT && !options->has_config) {
		config_init(ret_config);
		ret = 0;
	}
	if (ret < 0)
		return ret;
	if (options->no_load_module)
		ret_config->load_module = false;
	if (options->log_level)
		parse_level(options->log_level, &ret_config->log_level);
	return 0;
}

static void log_pools(void)
{
	_cleanup_free_ char *text = NULL;
	char *saved = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return;
	status_print_pools(stream);
	if (fclose(stream) == EOF)
		return;
	for (char *line = strtok_r(text, "\n", &saved); line; line = strtok_r(NULL, "\n", &saved))
		log_info("%s", line);
}

static void update_status(struct daemon *daemon, bool with_log)
{
	struct pipeline_stats pipeline;
	struct exporter_stats exporter;
	struct snapshot snapshot;
	int ret;

	daemon_snapshot(daemon, &snapshot, &pipeline, &exporter);
	if (daemon->endpoint)
		endpoint_tell(daemon->endpoint, &snapshot);
	busy_tell(&daemon->busy, pipeline.busy_ns[THREAD_NAMES]);
	if (daemon->statusfile) {
		ret = statusfile_write(daemon->statusfile, &snapshot);
		if (ret < 0)
			log_warning("cannot write %s: %s", STATUSFILE_DIRECTORY, strerror(-ret));
	}
	notify_status("session %" PRIu64 ": %" PRIu64 " samples, %" PRIu64 " lost; %" PRIu64
		      " payloads sent, %" PRIu64 " stored, %" PRIu64 " waiting, %" PRIu64 " dropped",
		      snapshot.session_id, pipeline.counts.samples,
		      snapshot_counter(&snapshot, COUNTER_WINDOWS_lost, 0),
		      exporter.sum.payloads_sent, exporter.payloads_stored, exporter.sum.payloads_waiting,
		      exporter.sum.payloads_dropped);
	if (!with_log)
		return;
	log_info("session %" PRIu64 ": %" PRIu64 " samples, %" PRIu64 " complete, %" PRIu64
		 " named, %" PRIu64 " lost, %" PRIu64 " stale; %" PRIu64 " windows; %" PRIu64
		 " payloads sent, %" PRIu64 " stored, %" PRIu64 " waiting, %" PRIu64 " dropped%s%s",
		 snapshot.session_id, pipeline.counts.samples, pipeline.counts.complete,
		 pipeline.counts.named, snapshot_counter(&snapshot, COUNTER_WINDOWS_lost, 0),
		 pipeline.counts.stale,
		 pipeline.windows, exporter.sum.payloads_sent, exporter.payloads_stored,
		 exporter.sum.payloads_waiting, exporter.sum.payloads_dropped,
		 exporter.sum.last_error[0] ? "; last error: " : "", exporter.sum.last_error);
	log_pools();
}

static void say_what_runs(const struct daemon *daemon)
{
	const struct config *config = service_config(daemon->service);
	const char *endpoint = service_endpoint(daemon->service);
	size_t receivers;

	service_destinations(daemon->service, &receivers);
	/* CONFIG records say what counts, see pipeline/drain.c */
	log_info("session %" PRIu64 ": requested %s%s at %" PRIu64 " %s; profiles go to %s%s",
		 service_session_id(daemon->service), config->events[0],
		 config->event_count > 1 ? " and others" : "",
		 config->period ? config->period : config->rate_hz,
		 config->period ? "events per sample" : "Hz",
		 endpoint ? endpoint : service_store(daemon->service),
		 receivers > 1 ? " and others" : "");
}

static char *dup_or_null(const char *text)
{
	return text ? strdup(text) : NULL;
}

static void look_at_pause(struct daemon *daemon)
{
	const enum pause_reason before = daemon->told;
	struct pause_stats stats;
	enum pause_reason after;
	char error[256];
	int ret;

	pthread_mutex_lock(&daemon->lock);
	ret = service_look(daemon->service, error, sizeof(error));
	pthread_mutex_unlock(&daemon->lock);
	daemon->told = after = service_pause(daemon->service, &stats);
	if (ret < 0)
		log_error("%s; it is tried again", error);
	else if (after != before && after == PAUSE_KILL_SWITCH)
		log_warning("the kill switch %s exists: nothing is sampled until it is removed",
			    service_config(daemon->service)->kill_switch);
	else if (after != before && after == PAUSE_UNKNOWN)
		log_warning("cannot check for the kill switch %s: %s; nothing is sampled until that works: repair that path, or set "
			    "[fleet] kill_switch to one on a local disk",
			    service_config(daemon->service)->kill_switch, strerror(stats.error));
	else if (after != before && (before == PAUSE_KILL_SWITCH || before == PAUSE_UNKNOWN))
		log_info("the kill switch was removed%s", after == PAUSE_NONE ? ": sampling resumes" : "");
}

/* False: nothing runs any more. */
static bool reload(struct daemon *daemon)
{
	_cleanup_free_ char *listen = NULL, *serve = NULL;
	char error[512];
	struct config config;
	int ret;

	notify_reloading();
	watch_note(&daemon->watch, daemon->options.config_path);
	ret = load_config(&daemon->options, &config, error, sizeof(error));
	if (!ret) {
		listen = dup_or_null(service_config(daemon->service)->metrics_listen);
		serve = dup_or_null(service_config(daemon->service)->serve_listen);
		pthread_mutex_lock(&daemon->lock);
		ret = service_reload(daemon->service, &config, error, sizeof(error));
		pthread_mutex_unlock(&daemon->lock);
	}
	if (ret == -ESHUTDOWN) {
		log_error("%s; the old configuration cannot be restored either", error);
		return false;
	}
	daemon->reloads += ret == 0;
	daemon->reloads_failed += ret < 0;
	if (ret < 0) {
		log_error("%s; the old configuration stays in force", error);
	} else {
		log_setup("stacktapd", (enum log_level)service_config(daemon->service)->log_level);
		log_info("configuration is read again");
		daemon_reopen_endpoint(daemon, listen);
		daemon_reopen_server(daemon, serve);
		daemon_close_push(daemon, false);
		daemon_open_push(daemon);
		say_what_runs(daemon);
		look_at_pause(daemon);
	}
	notify_ready();
	return true;
}

/* What a fleet tool puts in place; false: as reload(). */
static bool look(struct daemon *daemon)
{
	look_at_pause(daemon);
	if (!service_config(daemon->service)->with_watch ||
	    !watch_look(&daemon->watch, daemon->options.config_path))
		return true;
	log_info("%s has changed", daemon->options.config_path);
	return reload(daemon);
}

/* What to do about the signals that are pending; false: end. */
static bool take_signals(struct daemon *daemon)
{
	struct signalfd_siginfo info;

	while (read(daemon->signals, &info, sizeof(info)) == sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGHUP:
			if (!reload(daemon))
				return false;
			break;
		case SIGUSR1:
		case SIGUSR2:
			update_status(daemon, true);
			break;
		default:
			log_info("%s: exporting what there is", strsignal((int)info.ssi_signo));
			return false;
		}
	}
	return true;
}

/* False: it failed. */
static bool loop(struct daemon *daemon)
{
	const uint64_t watchdog_ns = notify_watchdog_ms() * NSEC_PER_MSEC;
	uint64_t next_status = 0, next_watchdog = 0, next_look = 0;

	for (;;) {
		struct pollfd pollfds[] = {
			{ .fd = daemon->signals, .events = POLLIN },
			{ .fd = broker_socket() },	/* that it hung up */
		};
		uint64_t now = clock_monotonic(), next;

		if (now >= next_status) {
			update_status(daemon, false);
			next_status = now + service_config(daemon->service)->status_seconds *
						    NSEC_PER_SEC;
		}
		/* asking takes the locks that the threads publish under, so one that hangs there is noticed as well */
		if (watchdog_ns && now >= next_watchdog) {
			struct pipeline_stats pipeline;
			struct exporter_stats exporter;

			service_stats(daemon->service, &pipeline, &exporter);
			if (busy_makes_progress(&daemon->busy, clock_monotonic()))
				notify_watchdog();
			next_watchdog = now + watchdog_ns;
		}
		if (now >= next_look) {
			if (!look(daemon))
				return true;
			next_look = now + LOOK_SECONDS * NSEC_PER_SEC;
		}
		next = min_of(next_status, next_look);
		if (watchdog_ns)
			next = min_of(next, next_watchdog);
		if (poll(pollfds, ARRAY_SIZE(pollfds), (int)((next - now) / NSEC_PER_MSEC) + 1) < 0 &&
		    errno != EINTR) {
			log_error("poll: %s", strerror(errno));
			return false;
		}
		if (pollfds[0].revents && !take_signals(daemon))
			return true;
		if (pollfds[1].revents) {
			log_error("stacktap-broker has exited; without it no helper can be started, so stacktapd exits as well: "
				  "start it again");
			return false;
		}
	}
}

/* Blocked before any thread starts, so that only the loop sees them. */
static int open_signals(void)
{
	static const int numbers[] = { SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2 };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		sigaddset(&set, numbers[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* a peer that closes its connection is an error of write(), no reason to die */
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int run(struct daemon *daemon, struct config *config)
{
	bool is_good;
	char error[512];
	int ret;

	otlp_series_init(&daemon->series, clock_read(CLOCK_REALTIME));
	ret = rights_give_up(config, daemon->options.config_path, &daemon->rights, error, sizeof(error));
	if (ret < 0) {
		log_error("%s", error);
		notify_status("%s", error);
		config_done(config);
		return EXIT_FAILURE;
	}
	keeper_check(&daemon->kept);
	ret = statusfile_open(STATUSFILE_DIRECTORY, &daemon->statusfile);
	if (ret == -EBUSY) {
		log_error("another stacktapd is already running");
		config_done(config);
		return EXIT_FAILURE;
	}
	if (ret < 0)
		log_warning("no status in %s: %s", STATUSFILE_DIRECTORY, strerror(-ret));
	ret = service_start(config, &daemon->kept, &daemon->service, error, sizeof(error));
	if (ret == -EINTR) {
		log_info("%s", error);
		statusfile_close(daemon->statusfile);
		return EXIT_SUCCESS;
	}
	if (ret < 0) {
		log_error("%s", error);
		notify_status("%s", error);
		statusfile_close(daemon->statusfile);
		return EXIT_FAILURE;
	}
	say_what_runs(daemon);
	daemon_open_endpoint(daemon);
	daemon_open_server(daemon);
	daemon_open_push(daemon);
	notify_ready();
	is_good = loop(daemon);
	notify_stopping();
	daemon_close_push(daemon, true);
	daemon_close_endpoint(daemon);
	daemon_close_server(daemon);
	service_stop(daemon->service);
	service_free(daemon->service);
	statusfile_close(daemon->statusfile);
	return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Are its cgroups there now? */
static int check_filter(const struct config *config)
{
	_cleanup_(control_filter_done) struct control_filter filter = { 0 };
	char error[512];
	int ret = config_filter(config, &filter, error, sizeof(error));

	if (ret < 0)
		log_error("%s", error);
	return ret;
}

/* The variables of OTEL_, which win over the file, are as much of the configuration. */
static int check_environment(char *error, size_t error_size)
{
	struct environment environment;
	int ret = environment_load(&environment, error, error_size);

	if (!ret)
		environment_free(&environment);
	return ret;
}

int main(int argc, char **argv)
{
	struct daemon daemon = { .options = { .config_path = CONFIG_PATH }, .signals = -1,
				 .started = clock_monotonic(), .lock = PTHREAD_MUTEX_INITIALIZER };
	struct config config;
	char error[512];
	int ret;

	umask(0077);
	log_setup("stacktapd", LOG_LEVEL_INFO);
	ret = parse_options(argc, argv, &daemon.options);
	if (ret)
		return ret - 1;
	watch_note(&daemon.watch, daemon.options.config_path);
	ret = load_config(&daemon.options, &config, error, sizeof(error));
	if (!ret) {
		ret = check_environment(error, sizeof(error));
		if (ret)
			config_done(&config);
	}
	if (ret < 0) {
		log_error("%s", error);
		keeper_drop();
		return daemon.options.check_config ? EXIT_FAILURE : EXIT_USAGE;
	}
	if (daemon.options.check_config || daemon.options.dump_config) {
		if (daemon.options.dump_config)
			config_dump(&config, stdout);
		ret = daemon.options.check_config ? check_filter(&config) : 0;
		config_done(&config);
		return ret < 0 || fflush(stdout) == EOF ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	log_setup("stacktapd", (enum log_level)config.log_level);
	keeper_take(&daemon.kept);
	daemon.signals = open_signals();
	if (daemon.signals < 0) {
		log_error("signalfd: %s", strerror(errno));
		config_done(&config);
		return EXIT_FAILURE;
	}
	ret = run(&daemon, &config);
	keeper_drop();
	broker_end();
	close(daemon.signals);
	return ret;
}
