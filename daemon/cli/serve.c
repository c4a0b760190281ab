// SPDX-License-Identifier: Apache-2.0
#include "view/site.h"

#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/select.h"
#include "view/recording.h"

static const char help[] =
	"usage: stacktap serve [OPTION...] [FILE|DIRECTORY]\n\n"
	"Shows a file of OTLP profiles (default: stacktap.otlp; - is standard input), or\n"
	"a store's directory, to a browser and to go tool pprof on this host, until\n"
	"SIGINT or SIGTERM. Prints the address to open.\n\n"
	"Serving:\n"
	"  -l, --listen ADDRESS    [HOST:]PORT of the loopback interface, or the path of\n"
	"                          a unix socket (default: localhost:0, a free port)\n"
	"      --json              print the address as JSON\n"
	"  -h, --help\n\n"
	"These select what is shown; a query can override them.\n\n"
	SELECT_HELP;

struct options {
	const char *path, *address;
	struct selection selection;
	bool use_json;
};

/* The exit code + 1, or 0 to go on. */
static int parse(int argc, char **argv, struct options *options)
{
	static const struct option long_options[] = {
		{ "help", no_argument, NULL, 'h' },
		SELECT_OPTIONS,
		{ "listen", required_argument, NULL, 'l' },
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	int option, ret;

	opterr = 0;
	while ((option = cli_option(argc, argv, ":hl:", long_options)) != -1) {
		switch (option) {
		case 'h':
			return cli_help(help) + 1;
		case 'l':
			/* the daemon's configuration wants the prefix */
			options->address = optarg + (strncmp(optarg, "unix:", 5) ? 0 : 5);
			break;
		case SELECT_PROCESS ... SELECT_END - 1:
			ret = select_parse(option, optarg, &options->selection);
			if (ret)
				return ret + 1;
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
	return CLI_OK;
}

/* What is read anew for each answer: of standard input a copy in a file without a name. */
static int open_recording(const char *path, int *ret_fd)
{
	_cleanup_fclose_ FILE *copy = NULL;
	char bytes[BUFSIZ];
	size_t got;

	if (strcmp(path, "-")) {
		*ret_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		return *ret_fd < 0 ? -errno : 0;
	}
	if (isatty(STDIN_FILENO))
		return -ENOTTY;
	copy = tmpfile();
	if (!copy)
		return -errno;
	while ((got = fread(bytes, 1, sizeof(bytes), stdin)))
		if (fwrite(bytes, 1, got, copy) != got)
			return -errno;
	if (ferror(stdin) || fflush(copy))
		return -errno;
	*ret_fd = fcntl(fileno(copy), F_DUPFD_CLOEXEC, 3);
	return *ret_fd < 0 || lseek(*ret_fd, 0, SEEK_SET) < 0 ? -errno : 0;
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
	char token[GUARD_TOKEN_SIZE], error[512], copy[32];
	_cleanup_close_ int fd = -1;
	struct listener *listener;
	struct stat status;
	struct site site;
	int ret;

	ret = parse(argc, argv, &options);
	if (ret)
		return ret - 1;
	ret = open_recording(options.path, &fd);
	if (ret == -ENOTTY)
		return cli_error("standard input is a terminal: name a file, or redirect one to it");
	if (ret)
		return cli_error("cannot open %s: %s%s", recording_name(options.path), strerror(-ret),
				 recording_remedy(options.path, ret));
	/* a store may begin later, and then has it */
	if (!fstat(fd, &status) && S_ISREG(status.st_mode) &&
	    recording_check(fd, recording_name(options.path), error, sizeof(error)) < 0)
		return cli_error("%s", error);
	/* the terminal is for the address; views are made for browsers, several at once */
	recording_watch(NULL);
	site = (struct site){ .path = options.path, .selection = options.selection };
	if (!strcmp(options.path, "-")) {
		snprintf(copy, sizeof(copy), "/proc/self/fd/%d", fd);
		site.path = copy;
		site.name = recording_name(options.path);
	}
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
