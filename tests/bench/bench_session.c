// SPDX-License-Identifier: Apache-2.0
/*
 * Sample the whole machine while a command runs and do nothing else meanwhile: buffers hold all of
 * it, so that the only cost is the kernel's. The command stops itself where sampling is to begin and
 * again where it is to end. Afterwards its samples are counted.
 *
 * prints "samples=N frames=F bytes=B": means of user frames and of bytes per sample
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampler.h"

void sampler_die(const char *what)
{
	fprintf(stderr, "bench_session: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void usage(void)
{
	fprintf(stderr, "usage: bench_session perf|stacktap [--cycles] [--period N]\n"
			"                     [--no-stacks] [--dwarf] [--two-phase] [--no-jitter] [--noop]\n"
			"                     [--tables] [--filter N] -- COMMAND...\n");
	exit(2);
}

static pid_t start(char **command)
{
	pid_t pid = fork();

	if (pid < 0)
		sampler_die("fork");
	if (!pid) {
		execv(command[0], command);
		fprintf(stderr, "bench_session: %s: %s\n", command[0], strerror(errno));
		_exit(127);
	}
	return pid;
}

/* Wait for the command's next stop, or for its end. */
static void await(pid_t pid, bool is_end)
{
	int status;

	if (waitpid(pid, &status, is_end ? 0 : WUNTRACED) < 0)
		sampler_die("waitpid");
	if (is_end ? status : !WIFSTOPPED(status)) {
		fprintf(stderr, "bench_session: the command failed, wait status %#x\n", status);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "cycles", no_argument, NULL, 'c' },
		{ "period", required_argument, NULL, 'p' },
		{ "no-stacks", no_argument, NULL, 'n' },
		{ "two-phase", no_argument, NULL, '2' },
		{ "no-jitter", no_argument, NULL, 'j' },
		{ "noop", no_argument, NULL, '0' },
		{ "dwarf", no_argument, NULL, 'd' },
		{ "tables", no_argument, NULL, 't' },
		{ "filter", required_argument, NULL, 'f' },
		{ 0 }
	};
	struct sampler_request request = { .period = 1003009 };
	struct sampler_count count = { 0 };
	bool is_perf;
	pid_t pid;
	int c;

	if (argc < 2 || (strcmp(argv[1], "perf") && strcmp(argv[1], "stacktap")))
		usage();
	is_perf = !strcmp(argv[1], "perf");
	optind = 2;
	while ((c = getopt_long(argc, argv, "+", options, NULL)) >= 0) {
		switch (c) {
		case 'c':
			request.cycles = true;
			break;
		case 'p':
			request.period = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			request.without_stacks = true;
			break;
		case '2':
			request.two_phase = true;
			break;
		case 'j':
			request.fixed = true;
			break;
		case '0':
			request.noop = true;
			break;
		case 'd':
			request.dwarf = true;
			break;
		case 't':
			request.by_tables = true;
			break;
		case 'f':
			request.filter = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		default:
			usage();
		}
	}
	if (optind == argc)
		usage();

	pid = start(argv + optind);
	await(pid, false);
	request.pid = pid;
	if (is_perf)
		sampler_perf_start(&request);
	else
		sampler_stacktap_start(&request);
	kill(pid, SIGCONT);
	await(pid, false);
	if (is_perf)
		sampler_perf_stop(pid, &count);
	else
		sampler_stacktap_stop(pid, &count);
	kill(pid, SIGCONT);
	await(pid, true);
	if (!count.samples) {
		fprintf(stderr, "bench_session: not one sample of the command\n");
		return 1;
	}
	printf("samples=%" PRIu64 " frames=%.2f bytes=%.1f\n", count.samples,
	       (double)count.user_frames / (double)count.samples,
	       (double)count.record_bytes / (double)count.samples);
	return 0;
}
