// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/parser_error.h"
#include "helper/parser.h"
#include "unwind/listing.h"
#include "unwind/rule.h"

static const char help[] =
	"usage: stacktap unwind-info [OPTION...] FILE [ADDRESS]\n\n"
	"Compiles the call frame information of an ELF file into the table that user\n"
	"stacks are unwound with, and prints its rows: an address, and the rule that\n"
	"holds from there on. With ADDRESS (an ELF virtual address, 0x... or decimal)\n"
	"only the row that holds there.\n\n"
	"      --summary  sizes and counts, not the rows\n"
	"      --json     everything as JSON\n"
	"  -h, --help\n";

enum { OPT_SUMMARY = 256 };

struct options {
	const char *path;
	uint64_t address;
	bool has_address, use_json, is_summary;
};

struct info {
	const struct options *options;
	struct parser *parser;
	const struct machine *machine;
	struct unwind_table table;
	const void *data;
	size_t bytes;
	struct compile_stats stats;
};

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static double ratio(const struct info *info)
{
	uint64_t source = info->stats.eh_bytes ? info->stats.eh_bytes : info->stats.debug_bytes;

	return source ? (double)info->bytes / (double)source : 0;
}

static void print_summary(const struct info *info)
{
	const struct compile_stats *stats = &info->stats;

	printf("%s: %u rows, %u rules, %zu bytes (%.3f of %" PRIu64 " bytes of %s)\n",
	       info->options->path, info->table.row_count, info->table.rule_count, info->bytes,
	       ratio(info), stats->eh_bytes ? stats->eh_bytes : stats->debug_bytes,
	       stats->eh_bytes ? ".eh_frame" : ".debug_frame");
	printf("code: %" PRIu64 " bytes, %.2f %% with a rule, %.2f %% not expressible, %.2f %% "
	       "without call frame information\n",
	       stats->text_bytes, percent(stats->covered_bytes, stats->text_bytes),
	       percent(stats->no_rule_bytes, stats->text_bytes),
	       percent(stats->text_bytes - min_of(stats->text_bytes,
						  stats->covered_bytes + stats->no_rule_bytes),
		       stats->text_bytes));
	printf("compiled %" PRIu64 " frame entries in %.1f ms with %zu KiB of memory\n",
	       stats->fdes, (double)stats->ns / NSEC_PER_MSEC, stats->memory / 1024);
}

static void print_row(const struct info *info, const struct listing *listing)
{
	char text[RULE_TEXT_MAX];

	rule_format(info->machine, listing->rule, text);
	printf("%016" PRIx64 "  %s\n", listing->start, text);
}

static void json_row(const struct info *info, struct json *json, const struct listing *listing)
{
	char text[RULE_TEXT_MAX];

	rule_format(info->machine, listing->rule, text);
	json_object(json, NULL);
	json_u64(json, "start", listing->start);
	json_u64(json, "end", listing->end);
	json_string(json, "rule", text);
	json_end(json);
}

static void print_json(const struct info *info)
{
	const struct compile_stats *stats = &info->stats;
	struct listing listing;
	struct json json;

	json_init(&json, stdout);
	json_object(&json, NULL);
	json_string(&json, "file", info->options->path);
	json_string(&json, "machine", info->machine->elf == EM_X86_64 ? "x86_64" : "aarch64");
	json_u64(&json, "bytes", info->bytes);
	json_u64(&json, "rows", info->table.row_count);
	json_u64(&json, "rules", info->table.rule_count);
	json_u64(&json, "eh_frame_bytes", stats->eh_bytes);
	json_u64(&json, "debug_frame_bytes", stats->debug_bytes);
	json_u64(&json, "text_bytes", stats->text_bytes);
	json_u64(&json, "covered_bytes", stats->covered_bytes);
	json_u64(&json, "no_rule_bytes", stats->no_rule_bytes);
	json_u64(&json, "frame_entries", stats->fdes);
	json_u64(&json, "compile_ns", stats->ns);
	json_u64(&json, "compile_memory", stats->memory);
	if (!info->options->is_summary) {
		json_array(&json, "table");
		for (listing_begin(&listing, &info->table); listing_next(&listing);)
			if (!info->options->has_address ||
			    (listing.start <= info->options->address &&
			     listing.end > info->options->address))
				json_row(info, &json, &listing);
		json_end(&json);
	}
	json_end(&json);
}

static int print_address(const struct info *info)
{
	uint64_t address = info->options->address;
	struct listing listing;

	for (listing_begin(&listing, &info->table); listing_next(&listing);)
		if (listing.start <= address && listing.end > address) {
			print_row(info, &listing);
			return cli_finish();
		}
	return cli_error("%s: the table has no row for %#" PRIx64, info->options->path, address);
}

static int print_text(const struct info *info)
{
	struct listing listing;

	if (info->options->has_address)
		return print_address(info);
	print_summary(info);
	if (!info->options->is_summary)
		for (listing_begin(&listing, &info->table); listing_next(&listing);)
			print_row(info, &listing);
	return cli_finish();
}

static const char *reason(int error)
{
	switch (error) {
	case -ENODATA:
		return "it has no call frame information";
	case -ENOTSUP:
		return "not an x86_64 or aarch64 program or library";
	case -ENOEXEC:
		return "not an ELF file";
	case -EFBIG:
	case -ENOMEM:
		return "its call frame information is too large";
	case -ETIME:
	case -ETIMEDOUT:
		return "compiling its table takes more than 10 seconds; try again when the host is less busy";
	case -EPIPE:
		return "the parser crashed on this file, or ran out of memory; `readelf --debug-dump=frames' may "
		       "show what is wrong in the file";
	case -EAGAIN:
		return "the parser cannot be started; raise the limits of open files and processes, "
		       "`ulimit -n' and `ulimit -u'";
	default:
		return parser_error(error);
	}
}

/* Compiled where the daemon has it done, within the same limits. */
static int compile(struct info *info, const struct object *object, int fd)
{
	int r = parser_table(info->parser, object, fd, &info->data, &info->bytes, &info->stats);

	if (r < 0)
		return cli_error("%s: %s", object->path, reason(r));
	if (unwind_table_check(info->data, info->bytes, &info->table) < 0)
		return cli_error("%s: the table does not pass its own check", object->path);
	info->machine = machine_find(info->table.machine);
	return CLI_OK;
}

static int load(struct info *info)
{
	const char *path = info->options->path;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct object *object;
	struct stat st;
	int ret;

	if (fd < 0 || fstat(fd, &st) < 0)
		return cli_error("%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return cli_error("%s: not a regular file", path);
	object = object_new(OBJECT_FILE, path);
	if (!object || parser_new(&info->parser) < 0) {
		object_unref(object);
		return cli_error("out of memory");
	}
	object_set_file(object, &st);
	ret = compile(info, object, fd);
	object_unref(object);
	return ret;
}

static bool parse_address(const char *text, uint64_t *ret_address)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret_address = strtoull(text, &end, 0);
	return !errno && !*end;
}

static int parse(int argc, char **argv, struct options *options)
{
	static const struct option long_options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "summary", no_argument, NULL, OPT_SUMMARY },
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	int option;

	opterr = 0;
	while ((option = cli_option(argc, argv, ":h", long_options)) != -1) {
		switch (option) {
		case 'h':
			return cli_help(help) + 1;
		case OPT_SUMMARY:
			options->is_summary = true;
			break;
		case 'j':
			options->use_json = true;
			cli_use_json();
			break;
		default:
			return cli_bad_option(argc, argv, option) + 1;
		}
	}
	if (optind == argc)
		return cli_usage_error("unwind-info needs a file; see --help") + 1;
	options->path = argv[optind++];
	if (optind < argc) {
		if (!parse_address(argv[optind], &options->address))
			return cli_usage_error("`%s' is not an address", argv[optind]) + 1;
		options->has_address = true;
		optind++;
	}
	if (optind < argc)
		return cli_usage_error("unwind-info takes a file and an address, not also `%s'",
				       argv[optind]) + 1;
	if (options->has_address && options->is_summary)
		return cli_usage_error("an address does not go with --summary") + 1;
	return CLI_OK;
}

int unwind_info_run(int argc, char **argv)
{
	struct options options = { 0 };
	struct info info = { .options = &options };
	int ret;

	ret = parse(argc, argv, &options);
	if (ret)
		return ret - 1;
	ret = load(&info);
	if (ret == CLI_OK && options.use_json) {
		print_json(&info);
		ret = cli_finish();
	} else if (ret == CLI_OK) {
		ret = print_text(&info);
	}
	parser_unmap(info.data, info.bytes);
	parser_free(info.parser);
	return ret;
}
