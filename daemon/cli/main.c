// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/log.h"
#include "base/near.h"
#include "cli/child.h"
#include "cli/cli.h"
#include "cli/manual.h"
#include "cli/progress.h"

#include <stacktap/version.h>

enum group {
	GROUP_READING,
	GROUP_FILES,
	GROUP_SESSIONS,
	GROUP_HOST,
};

static const char *const headings[] = {
	[GROUP_READING] = "Record and read",
	[GROUP_FILES] = "Files",
	[GROUP_SESSIONS] = "Sessions",
	[GROUP_HOST] = "This host",
};

static const struct command {
	enum group group;
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;	/* one line */
} commands[] = {
	{ GROUP_READING, "record", record_run, "sample and write an OTLP profile" },
	{ GROUP_READING, "top", top_run, "show the hottest functions right now" },
	{ GROUP_READING, "report", report_run, "print the hottest functions of an OTLP profile" },
	{ GROUP_READING, "flamegraph", flamegraph_run,
	  "draw an OTLP profile as an HTML page or an SVG picture" },
	{ GROUP_READING, "diff", diff_run,
	  "compare two OTLP profiles: what grew and what shrank significantly" },
	{ GROUP_READING, "annotate", annotate_run,
	  "print the lines or instructions of a function, with their samples" },
	{ GROUP_READING, "serve", serve_run,
	  "show OTLP profiles to a browser and go tool pprof on this host" },
	{ GROUP_FILES, "convert", convert_run,
	  "write an OTLP profile in the format of another tool" },
	{ GROUP_FILES, "objects", objects_run,
	  "list the programs and libraries in an OTLP profile, by build-id" },
	{ GROUP_FILES, "symbolize", symbolize_run,
	  "add names and lines to an OTLP profile, from debug files" },
	{ GROUP_FILES, "store", store_run, "list, export and prune what a store or spool keeps" },
	{ GROUP_SESSIONS, "status", status_run,
	  "show module, sessions, counters and the daemon's status" },
	{ GROUP_SESSIONS, "start", start_run, "start sampling in a session" },
	{ GROUP_SESSIONS, "stop", stop_run, "stop sampling in a session" },
	{ GROUP_SESSIONS, "set", set_run, "change a session's rate or filters while it runs" },
	{ GROUP_SESSIONS, "events", events_run,
	  "print events of sessions and CPUs as they happen" },
	{ GROUP_HOST, "doctor", doctor_run,
	  "check what stacktap needs from this host, and print remedies" },
	{ GROUP_HOST, "unwind-info", unwind_info_run, "show the unwind table of an ELF file" },
};

static void print_help(void)
{
	fputs("usage: stacktap [COMMAND] [OPTION...]\n\n"
	      "Profiles this host, shows what was recorded, and controls sessions. Without a\n"
	      "command: status.\n", stdout);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!i || commands[i].group != commands[i - 1].group)
			printf("\n%s:\n", headings[commands[i].group]);
		printf("  %-11s %s\n", commands[i].name, commands[i].help);
	}
	fputs("\n  -h, --help     this text; `stacktap COMMAND --help' has a command's options\n"
	      "      --version  print the version\n\n"
	      "`stacktap help COMMAND' shows a command's manual page.\n", stdout);
}

static const char *near_command(const char *name)
{
	struct near near = near_to(name);

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		near_see(&near, commands[i].name);
	return near_best(&near);
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static int say_unknown(const char *name)
{
	const char *nearest = near_command(name);

	if (nearest)
		return cli_usage_error("unknown command `%s'; did you mean `%s'?", name, nearest);
	return cli_usage_error("unknown command `%s': `stacktap --help' lists the commands", name);
}

/* As git's: a command's page, or the overview. A tree that is not installed has no pages. */
static int help_run(const char *name)
{
	const struct command *command = name ? find(name) : NULL;

	if (!name) {
		print_help();
		return cli_finish();
	}
	if (!command)
		return say_unknown(name);
	manual_show(name);
	return command->run(2, (char *[]){ (char *)(uintptr_t)name, (char *)(uintptr_t)"--help", NULL });
}

/* Somebody's first look: what keeps it from working here is not the end of it. */
static int run_alone(int argc, char **argv)
{
	int ret = status_run(argc, argv);

	if (ret == CLI_FAILED)
		fputs("next: run `stacktap doctor', which checks this host; then `sudo stacktap "
		      "record -a --duration 10 -o - >stacktap.otlp' and `stacktap "
		      "flamegraph'\nwithout the module: `stacktap convert -o stacktap.otlp "
		      "perf.data', then `stacktap flamegraph'\n", stderr);
	return ret;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct command *command;

	if (child_keep_environment() < 0)
		return cli_error("out of memory");
	log_setup("stacktap", LOG_LEVEL_WARNING);

	if (name && (!strcmp(name, "--help") || !strcmp(name, "-h")))
		return help_run(NULL);
	if (name && !strcmp(name, "help"))
		return help_run(argc > 2 && argv[2][0] != '-' ? argv[2] : NULL);
	if (name && (!strcmp(name, "--version") || !strcmp(name, "-V"))) {
		puts("stacktap " STACKTAP_VERSION);
		return cli_finish();
	}
	/* options alone are those of the default command */
	if (!name)
		return run_alone(argc, argv);
	if (name[0] == '-')
		return status_run(argc, argv);
	progress_watch();
	command = find(name);
	return command ? command->run(argc - 1, argv + 1) : say_unknown(name);
}
