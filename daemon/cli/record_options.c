// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "base/percent.h"
#include "cli/cli.h"
#include "cli/record.h"
#include "client/event.h"
#include "export/environment.h"
#include "export/relabel.h"
#include "resolve/unwinder.h"

static const char help[] =
	"usage: stacktap record [OPTION...] [-- COMMAND [ARGUMENT...]]\n\n"
	"Samples until Ctrl-C, or until COMMAND or --duration ends, and writes a file of\n"
	"OTLP profiles. Needs the module, but not the daemon.\n\n"
	"What to sample:\n"
	"  -a, --all-cpus          all CPUs, system-wide (default without -p, -t or\n"
	"                          COMMAND)\n"
	"  -p, --pid PID,...       these processes with all their threads, not what they\n"
	"                          fork later\n"
	"  -t, --tid TID,...       these threads\n"
	"  -u, --uid USER,...      threads that run as these users, by name or number\n"
	"      --comm NAME,...     threads with these names (15 bytes at most)\n"
	"  -G, --cgroup PATH,...   threads in these cgroups (v2) and below them\n"
	"  -C, --cpu LIST          only these CPUs: 0-3,7\n"
	"      --user-only, --all-user\n"
	"                          only samples in user mode\n"
	"      --kernel-only, --all-kernel\n"
	"                          only samples in the kernel\n"
	"      --exclude-idle      exclude the idle task\n"
	"  COMMAND                 this command and all that it forks\n\n"
	"How to sample:\n"
	"  -e, --event EVENT       cycles (default), instructions, cpu-clock,\n"
	"                          page-faults, rNNN, PMU/term=value/, ... with :u, :k;\n"
	"                          with a rate or a period of its own: cycles/freq=997/,\n"
	"                          page-faults/period=100/; may be repeated\n"
	"  -F, --freq HZ           samples per second of a busy CPU (default: 99)\n"
	"  -c, --count N           one sample every N events; together with -F it\n"
	"                          applies to the event before it\n"
	"      --freq-mode         let the kernel adapt the period to the rate\n"
	"      --no-jitter         make all periods equal (default: random, around a\n"
	"                          mean); a program that runs in lockstep with them may\n"
	"                          then be sampled at one place only\n"
	"      --max-stack N       user frames per stack (default: 1024)\n"
	"  -g                      accepted as by perf; stacks are always recorded\n"
	"      --call-graph HOW    walk user stacks by unwind tables, which need no frame\n"
	"                          pointers (table, default), or by frame pointers (fp)\n"
	"      --slice-bytes N     user stack to copy into a sample while a new program\n"
	"                          has no tables yet (default: 16384; a multiple of 8\n"
	"                          from 1024 to 65536; 0: none)\n"
	"      --slice-max-bytes N\n"
	"                          the same for a stack that is known to be deeper\n"
	"                          (default: 65536)\n"
	"      --budget-ns N       mean time of overflow handlers above which sampling\n"
	"                          degrades in steps: kernel stack depth, then rate;\n"
	"                          0: never (default: the module's handler_budget_ns,\n"
	"                          2000)\n"
	"      --ceiling PERCENT   share of each CPU that this session may take (default:\n"
	"                          only the module's ceiling for all sessions together,\n"
	"                          1)\n"
	"      --sideband-bytes N  perf ring per CPU for the side band: mmap, fork, exit\n"
	"                          records (default: 32768; a power of two from 4096 to\n"
	"                          16777216)\n\n"
	"Output:\n"
	"      --lines             add source lines and inlined functions now, from\n"
	"                          DWARF on this host; takes CPU time and up to 256 MiB\n"
	"                          (`symbolize' adds them later, anywhere)\n"
	"      --relabel RULE      change resource attributes, or leave samples out, by a\n"
	"                          rule of [relabel], see stacktap.conf(5):\n"
	"                          'drop service.name payroll'; may be repeated\n"
	"      --service-name NAME\n"
	"                          service.name of all programs (OTEL_SERVICE_NAME\n"
	"                          overrides it)\n"
	"      --resource-attributes KEY=VALUE,...\n"
	"                          add resource attributes, percent-encoded\n"
	"                          (OTEL_RESOURCE_ATTRIBUTES overrides the same keys)\n"
	"      --command-line      add command lines, which may hold secrets\n"
	"      --no-kernel-addresses\n"
	"                          leave addresses of kernel code out of the file; names\n"
	"                          stay\n"
	"      --duration TIME     end after TIME: 10, 0.5, 2m, 1h (seconds without a\n"
	"                          unit)\n"
	"  -o, --output FILE       default: stacktap.otlp; - is standard output. Its\n"
	"                          extension selects the format: .otlp, a flame graph\n"
	"                          (.html, .svg), or a format of `convert' except .pgo:\n"
	"                          .pb.gz, .folded, .speedscope.json, .firefox.json, ...\n"
	"  -q, --quiet             print errors only\n"
	"  -v, --verbose           print more\n"
	"  -h, --help\n";

enum {
	OPT_DURATION = RECORD_OWN, OPT_RELABEL, OPT_SERVICE_NAME, OPT_RESOURCE_ATTRIBUTES, OPT_COMMAND_LINE,
	OPT_NO_KERNEL_ADDRESSES,
};

enum {
	DEFAULT_RATE_HZ = 99,
	SIDEBAND_MIN_BYTES = 4096,
	SIDEBAND_MAX_BYTES = 1 << 24,
};

struct parse {
	struct record_options *options;
	uint64_t rate_hz;		/* 0: not given */
	uint64_t last_period;		/* of the last -c */
	uint64_t periods[STACKTAP_MAX_SOURCES];	/* of a -c behind this -e */
	bool is_frequency;
	bool is_fixed;			/* --no-jitter */
};

static int add_event(struct parse *parse, const char *text)
{
	struct record_options *options = parse->options;
	char error[384];

	if (options->source_count == STACKTAP_MAX_SOURCES)
		return cli_usage_error("more than %d events", STACKTAP_MAX_SOURCES);
	if (event_parse(text, &options->sources[options->source_count], error, sizeof(error)) < 0)
		return cli_usage_error("%s", error);
	options->sources[options->source_count].id = (uint32_t)options->source_count;
	options->source_count++;
	return CLI_OK;
}

static int set_count(struct parse *parse, const char *text)
{
	uint64_t period;

	if (!cli_parse_number(text, 1, INT64_MAX, &period))
		return cli_usage_error("period `%s' is not a number above 0", text);
	parse->last_period = period;
	if (parse->options->source_count)
		parse->periods[parse->options->source_count - 1] = period;
	return CLI_OK;
}

static int set_sideband(struct record_options *options, const char *text)
{
	uint64_t bytes;

	if (!cli_parse_number(text, SIDEBAND_MIN_BYTES, SIDEBAND_MAX_BYTES, &bytes) ||
	    bytes & (bytes - 1))
		return cli_usage_error("`%s' is not a power of two from %d to %d bytes", text,
				       SIDEBAND_MIN_BYTES, SIDEBAND_MAX_BYTES);
	options->sideband_bytes = bytes;
	return CLI_OK;
}

static int set_slice(uint64_t *ret_bytes, const char *text)
{
	uint64_t bytes;

	if (!cli_parse_number(text, 0, STACKTAP_MAX_SLICE_BYTES, &bytes) || bytes % 8 ||
	    (bytes && bytes < STACKTAP_MIN_SLICE_BYTES))
		return cli_usage_error("`%s' is neither 0 nor a multiple of 8 from %d to %d bytes", text,
				       STACKTAP_MIN_SLICE_BYTES, STACKTAP_MAX_SLICE_BYTES);
	*ret_bytes = bytes;
	return CLI_OK;
}

static int add_rule(struct record_options *options, const char *rule)
{
	char error[256];
	int ret = options->relabel ? 0 : relabel_new(&options->relabel);

	if (!ret)
		ret = relabel_add(options->relabel, rule, error, sizeof(error));
	if (ret == -ENOMEM)
		return cli_error("out of memory");
	return ret < 0 ? cli_usage_error("--relabel: %s", error) : CLI_OK;
}

/*
 * As perf has it: -c alone is for all events. Where perf refuses, with -F beside it, it is for the
 * event that it follows.
 */
static int set_periods(struct parse *parse)
{
	struct record_options *options = parse->options;
	bool has_own = false, is_taken = false;

	for (size_t i = 0; i < options->source_count; i++) {
		struct control_source *source = &options->sources[i];
		uint64_t period = parse->rate_hz ? parse->periods[i] : parse->last_period;

		has_own |= parse->periods[i] != 0;
		if (parse->rate_hz && parse->periods[i] && (source->rate_hz || source->period))
			return cli_usage_error("event `%s' sets its own rate or period: remove the "
					       "-c after it", source->name);
		is_taken |= !source->rate_hz && !source->period;
		if (parse->is_fixed)
			source->flags |= STACKTAP_SRC_NO_JITTER;
		if (source->period)
			period = source->period;
		if (period && !source->rate_hz) {
			source->period = period;
			source->mode = STACKTAP_MODE_PERIOD;
			continue;
		}
		if (!source->rate_hz)
			source->rate_hz = (uint32_t)(parse->rate_hz ?: DEFAULT_RATE_HZ);
		if (parse->is_frequency)
			source->mode = STACKTAP_MODE_FREQ;
	}
	if (parse->last_period && !is_taken)
		return cli_usage_error("-c has no effect: every event sets its own rate or period");
	if (parse->rate_hz && parse->last_period && !has_own)
		return cli_usage_error("-F and -c together: put -c after the -e that it applies to");
	if (parse->is_frequency && parse->last_period && !parse->rate_hz)
		return cli_usage_error("--freq-mode needs a rate (-F), not a period (-c)");
	return CLI_OK;
}

static int parse_option(struct parse *parse, int option)
{
	struct record_options *options = parse->options;

	switch (option) {
	case 'a':
		options->has_all = true;
		return CLI_OK;
	case 'e':
		return add_event(parse, optarg);
	case 'F':
		if (!cli_parse_number(optarg, 1, STACKTAP_MAX_RATE_HZ, &parse->rate_hz))
			return cli_usage_error("rate `%s' is not a number from 1 to %d Hz", optarg,
					       STACKTAP_MAX_RATE_HZ);
		return CLI_OK;
	case 'c':
		return set_count(parse, optarg);
	case 'g':
		return CLI_OK;
	case 'o':
		options->output = optarg;
		return CLI_OK;
	case 'q':
		options->quiet = true;
		return CLI_OK;
	case 'v':
		options->verbose = true;
		return CLI_OK;
	case RECORD_FREQ_MODE:
		parse->is_frequency = true;
		return CLI_OK;
	case RECORD_NO_JITTER:
		parse->is_fixed = true;
		return CLI_OK;
	case RECORD_MAX_STACK:
		if (!cli_parse_number(optarg, 1, STACKTAP_MAX_USER_FRAMES, &options->user_frames))
			return cli_usage_error("depth `%s' is not a number from 1 to %d", optarg,
					       STACKTAP_MAX_USER_FRAMES);
		return CLI_OK;
	case RECORD_CALL_GRAPH:
		options->with_tables = !strcmp(optarg, "table");
		if (!options->with_tables && strcmp(optarg, "fp"))
			return cli_usage_error("unknown --call-graph `%s': use table or fp", optarg);
		return CLI_OK;
	case RECORD_SLICE_BYTES:
		return set_slice(&options->slice_bytes, optarg);
	case RECORD_SLICE_MAX_BYTES:
		return set_slice(&options->slice_max_bytes, optarg);
	case RECORD_BUDGET_NS:
		options->has_budget = true;
		if (!cli_parse_number(optarg, 0, UINT32_MAX, &options->budget_ns))
			return cli_usage_error("budget `%s' is not a number of ns below 2^32", optarg);
		return CLI_OK;
	case RECORD_CEILING:
		options->has_ceiling = true;
		if (!percent_parse(optarg, &options->ceiling_permille))
			return cli_usage_error("ceiling `%s' is not a percentage from 0 to 100 with at "
					       "most one decimal", optarg);
		return CLI_OK;
	case RECORD_LINES:
		options->with_lines = true;
		return CLI_OK;
	case RECORD_SIDEBAND_BYTES:
		return set_sideband(options, optarg);
	case OPT_NO_KERNEL_ADDRESSES:
		options->without_kernel_addresses = true;
		return CLI_OK;
	case OPT_SERVICE_NAME:
		options->service_name = optarg;
		return CLI_OK;
	case OPT_RESOURCE_ATTRIBUTES:
		options->attributes = optarg;
		return environment_is_pairs(optarg) ? CLI_OK :
			cli_usage_error("attributes `%s' are not of the form key=value,key=value", optarg);
	case OPT_COMMAND_LINE:
		options->with_command_line = true;
		return CLI_OK;
	case OPT_RELABEL:
		return add_rule(options, optarg);
	case OPT_DURATION:
		if (!cli_parse_duration(optarg, &options->duration_ms))
			return cli_usage_error("duration `%s' is not a time such as 10, 0.5 or 2m",
					       optarg);
		return CLI_OK;
	default:
		return filter_option(&options->filter, option, optarg);
	}
}

static int check(struct parse *parse)
{
	struct record_options *options = parse->options;
	int ret;

	if (!options->source_count) {
		ret = add_event(parse, "cycles");
		if (ret)
			return ret;
	}
	ret = set_periods(parse);
	if (ret)
		return ret;
	ret = filter_check(&options->filter);
	if (ret)
		return ret;
	if ((options->filter.tgids || options->filter.tids) &&
	    (options->has_all || options->command))
		return cli_usage_error("-p and -t exclude -a and a command");
	return CLI_OK;
}

int record_parse_as(const struct record_command *command, int argc, char **argv,
		    struct record_options *ret_options)
{
	struct parse parse = { .options = ret_options };
	int option, ret;

	*ret_options = (struct record_options){
		.output = "stacktap.otlp",
		.user_frames = STACKTAP_DEFAULT_USER_FRAMES,
		.with_tables = true,
		.slice_bytes = UNWINDER_SLICE_BYTES,
		.slice_max_bytes = UNWINDER_SLICE_MAX_BYTES,
	};
	opterr = 0;
	while ((option = cli_option(argc, argv, command->letters, command->options)) != -1) {
		if (option == 'h')
			return cli_help(command->help) + 1;
		if (option == '?' || option == ':')
			return cli_bad_option(argc, argv, option) + 1;
		ret = command->option ? command->option(command->ctx, option, optarg) : CLI_GO_ON;
		if (ret == CLI_GO_ON)
			ret = parse_option(&parse, option);
		if (ret)
			return ret + 1;
	}
	if (optind < argc)
		ret_options->command = argv + optind;
	ret = check(&parse);
	return ret ? ret + 1 : CLI_OK;
}

int record_parse(int argc, char **argv, struct record_options *ret_options)
{
	static const struct option long_options[] = {
		RECORD_OPTIONS,
		{ "output", required_argument, NULL, 'o' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "duration", required_argument, NULL, OPT_DURATION },
		{ "relabel", required_argument, NULL, OPT_RELABEL },
		{ "service-name", required_argument, NULL, OPT_SERVICE_NAME },
		{ "resource-attributes", required_argument, NULL, OPT_RESOURCE_ATTRIBUTES },
		{ "command-line", no_argument, NULL, OPT_COMMAND_LINE },
		{ "no-kernel-addresses", no_argument, NULL, OPT_NO_KERNEL_ADDRESSES },
		{ 0 },
	};
	const struct record_command command = {
		.help = help,
		/* '+': what follows the command's name is the command's */
		.letters = "+:o:qv" RECORD_LETTERS,
		.options = long_options,
	};

	return record_parse_as(&command, argc, argv, ret_options);
}

void record_options_done(struct record_options *options)
{
	control_filter_done(&options->filter);
	relabel_free(options->relabel);
}
