// SPDX-License-Identifier: Apache-2.0
#include "view/site.h"

#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "view/recording.h"

static const char help[] =
	"usage: stacktap serve [OPTION...] [FILE|DIRECTORY]\n\n"
	"Shows a file of OTLP profiles (default: stacktap.otlp), or a store's directory, to a browser\n"
	"and to go tool pprof on this host, until SIGINT or SIGTERM. Prints the address to open.\n\n"
	"  -l, --listen ADDRESS    [HOST:]PORT of the loopback interface, or the path of a unix socket\n"
	"                          (default: localhost:0, a port that is free)\n"
	"      --json              say the address as JSON\n"
	"  -h, --help\n";

struct options {
	const char *path, *address;
	bool use_json;
};

/* The exit code + 1, or 0 to go on. */
static int parse(int argc, char **argv, struct options *options)
{
	static const struct option long_options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "listen", required_argument, NULL, 'l' },
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	int option;

	opterr = 0;
	while ((option = cli_option(argc, argv, ":hl:", long_options)) != -1) {
		switch (option) {
		case 'h':
			return cli_help(help) + 1;
		case 'l':
			options->address = optarg;
			break;
		case 'j':
			options->use_json = true;
			cli_use_json();
			break;
		default:
			return cli_bad_option(argc, argv, option) + 1;
		}
	}
	if (optind + 1 < argc)
		return cli_usage_error("serve takes one file, not also `%s'", argv[optind + 1]) + 1;
	if (optind < argc)
		options->path = argv[optind];
	if (!strcmp(options->path, "-"))
		return cli_usage_error("serve reads its file anew for each answer, which standard "
				       "input does not allow: name a file") + 1;
	return CLI_OK;
}

static void say(const struct options *options, const char *name)
{
	struct json json;

	if (options->use_json) {
		json_init(&json, stdout);
		json_object(&json, NULL);
		json_string(&json, "address", name);
		json_end(&json);
	} else {
		printf("%s\n", name);
	}
}

static int wait_for_end(void)
{
	sigset_t set;
	int signal;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	return sigwait(&set, &signal) ? CLI_FAILED : CLI_OK;
}

static void block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

int serve_run(int argc, char **argv)
{
	struct options options = { .path = "stacktap.otlp", .address = "localhost:0" };
	char token[GUARD_TOKEN_SIZE], error[512];
	_cleanup_close_ int fd = -1;
	struct listener *listener;
	struct site site;
	int ret;

	ret = parse(argc, argv, &options);
	if (ret)
		return ret - 1;
	fd = open(options.path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return cli_error("Cannot open %s: %s.%s", options.path, strerror(errno),
				 recording_remedy(options.path, -errno));
	site.path = options.path;
	if (guard_make_token(token))
		return cli_error("there are no random bytes for a token: %s", strerror(errno));
	/* before there are threads, so that no other one takes them */
	block_signals();
	if (listener_open(&(struct listener_options){
		.address = options.address, .pool = POOL_REPORT, .handler = site_answer, .ctx = &site,
		/* what a unix socket needs not, its mode says who may use it */
		.token = strchr(options.address, '/') ? NULL : token,
	}, &listener, error, sizeof(error)) < 0)
		return cli_error("%s", error);
	say(&options, listener_name(listener));
	ret = cli_finish();
	if (!ret)
		ret = wait_for_end();
	listener_close(listener);
	return ret;
}
