// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/outfile.h"
#include "cli/progress.h"
#include "cli/select.h"
#include "export/record.h"
#include "export/store_list.h"
#include "view/narrow.h"
#include "view/recording.h"
#include "view/store_reader.h"

#define DEFAULT_DIRECTORY "/var/lib/stacktap"

static const char help[] =
	"usage: stacktap store list [OPTION...] [DIRECTORY]\n"
	"       stacktap store export -o FILE [OPTION...] [DIRECTORY]\n"
	"       stacktap store prune [OPTION...] [DIRECTORY]\n\n"
	"Shows the files of a store or spool (default: " DEFAULT_DIRECTORY "),\n"
	"copies their messages into one file of OTLP profiles, or removes the oldest of\n"
	"them.\n\n"
	"Export:\n"
	"  -o, --output FILE       file to write; - is standard output\n"
	"      --from T, --to T    messages that have samples in this time: 2.5, 500ms,\n"
	"                          1m after the store begins, a date\n"
	"                          (2026-11-23T14:00:05Z), or @SECONDS since 1970\n"
	"      --since TIME        of the last 10s, 500ms, 1m, 2h\n"
	"      --process NAME|PID, --thread NAME|TID, --container ID, --service NAME,\n"
	"      --cgroup PATH, --event NAME\n"
	"                          only what they select of these messages\n\n"
	"Prune:\n"
	"      --older-than TIME   files whose last message is older than 90m, 24h\n"
	"      --max-bytes SIZE    the oldest files, until the others have SIZE bytes\n"
	"                          at most; K, M or G may follow\n"
	"  -n, --dry-run           only say what would be removed\n\n"
	"Output:\n"
	"      --json              everything as JSON\n"
	"  -h, --help\n";

enum { OPT_OLDER = 256, OPT_BYTES, OPT_JSON };

struct options {
	const char *verb, *directory, *output;
	struct selection selection;
	uint64_t older_ms, max_bytes;
	bool has_range, has_part, has_older, has_bytes, is_dry, use_json;
};

/* A file of the store, with what its messages hold. */
struct part {
	uint64_t time;		/* as it is called */
	uint64_t bytes, changed;	/* when, Unix ms */
	uint64_t messages, samples;
	struct time_span span;
	bool is_damaged;
};

struct parts {
	int directory;
	struct part *list;
	size_t count;
};

static void parts_done(struct parts *parts)
{
	if (parts->directory >= 0)
		close(parts->directory);
	free(parts->list);
}

static void store_reader_closep(struct store_reader **reader)
{
	if (*reader)
		store_reader_close(*reader);
}

/* -ENOENT: the daemon has removed it. */
static int part_each(const struct parts *parts, struct part *part,
		     int (*each)(void *ctx, const uint8_t *data, size_t size), void *ctx)
{
	_cleanup_(store_reader_closep) struct store_reader *reader = NULL;
	_cleanup_close_ int fd = store_open_file(parts->directory, part->time);
	const uint8_t *data;
	size_t size;
	int ret;

	if (fd < 0)
		return fd;
	ret = store_reader_open(fd, &reader);
	while (!ret && (ret = store_reader_next(reader, &data, &size)) > 0) {
		progress_read(size);
		ret = each(ctx, data, size);
	}
	/* the end of the file that is being written is no damage */
	part->is_damaged = ret == -EBADMSG || (ret == -ENODATA && part != &parts->list[parts->count - 1]);
	return ret == -EBADMSG || ret == -ENODATA ? 0 : ret;
}

static int count_message(void *ctx, const uint8_t *data, size_t size)
{
	struct part *part = ctx;

	part->messages++;
	return recording_widen(data, size, &part->span, &part->samples);
}

static int parts_open(const char *directory, struct parts *ret_parts)
{
	_cleanup_free_ uint64_t *times = NULL;
	size_t count;
	int ret;

	*ret_parts = (struct parts){ .directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	if (ret_parts->directory < 0)
		return cli_error("cannot open %s: %s%s", directory, strerror(errno),
				 recording_remedy(directory, -errno));
	ret = store_list(ret_parts->directory, &times, &count);
	if (!ret) {
		ret_parts->list = calloc(count + 1, sizeof(*ret_parts->list));
		if (!ret_parts->list)
			ret = -ENOMEM;
	}
	if (ret)
		return cli_error("cannot read %s: %s", directory, strerror(-ret));
	for (size_t i = 0; i < count; i++) {
		_cleanup_close_ int fd = store_open_file(ret_parts->directory, times[i]);
		struct stat st;

		if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		ret_parts->list[ret_parts->count++] = (struct part){
			.time = times[i], .bytes = (uint64_t)st.st_size,
			.changed = (uint64_t)st.st_mtim.tv_sec * 1000 +
				   (uint64_t)st.st_mtim.tv_nsec / NSEC_PER_MSEC,
			.span = { .from = UINT64_MAX },
		};
	}
	return CLI_OK;
}

static int parts_count(struct parts *parts, const char *directory)
{
	for (size_t i = 0; i < parts->count; i++) {
		struct part *part = &parts->list[i];
		int ret = part_each(parts, part, count_message, part);

		if (ret < 0 && ret != -ENOENT)
			return cli_error("cannot read a file of %s: %s", directory, strerror(-ret));
	}
	progress_done();
	return CLI_OK;
}

static void format_time(uint64_t ns, char text[static 32])
{
	time_t seconds = (time_t)(ns / NSEC_PER_SEC);
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) || !strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &tm))
		snprintf(text, 32, "@%" PRIu64, (uint64_t)seconds);
}

static int run_list(const struct options *options, struct parts *parts)
{
	struct json json;
	int ret = parts_count(parts, options->directory);

	if (ret)
		return ret;
	if (options->use_json) {
		json_init(&json, stdout);
		json_object(&json, NULL);
		json_string(&json, "directory", options->directory);
		json_array(&json, "files");
	} else {
		printf("FROM                  TO                           BYTES  MESSAGES     SAMPLES\n");
	}
	for (size_t i = 0; i < parts->count; i++) {
		const struct part *part = &parts->list[i];
		char from[32] = "-", to[32] = "-", name[48];

		if (part->span.to) {
			format_time(part->span.from, from);
			format_time(part->span.to, to);
		}
		if (!options->use_json) {
			printf("%-20s  %-20s  %12" PRIu64 "  %8" PRIu64 "  %10" PRIu64 "%s\n", from, to,
			       part->bytes, part->messages, part->samples,
			       part->is_damaged ? "  damaged" : "");
			continue;
		}
		snprintf(name, sizeof(name), "%" PRIu64, part->time);
		json_object(&json, NULL);
		json_string(&json, "begun_ms", name);
		json_string(&json, "from", part->span.to ? from : NULL);
		json_string(&json, "to", part->span.to ? to : NULL);
		json_u64(&json, "bytes", part->bytes);
		json_u64(&json, "messages", part->messages);
		json_u64(&json, "samples", part->samples);
		json_bool(&json, "damaged", part->is_damaged);
		json_end(&json);
	}
	if (options->use_json) {
		json_end(&json);
		json_end(&json);
	}
	return cli_finish();
}

struct copy {
	struct outfile output;
	struct time_span wanted;
	struct texts texts;
	struct reader *reader;		/* of what is selected beside a time; NULL: all */
	struct buffer narrowed;
	uint64_t messages, samples;
};

static int copy_message(void *ctx, const uint8_t *data, size_t size)
{
	struct copy *copy = ctx;
	struct time_span span = { .from = UINT64_MAX };
	uint8_t length[RECORD_LENGTH];
	uint64_t samples = 0;
	int ret = recording_widen(data, size, &span, &samples);

	if (ret < 0 || span.to <= copy->wanted.from || span.from >= copy->wanted.to)
		return ret;
	if (copy->reader) {
		ret = narrow_message(copy->reader, data, size, &copy->narrowed);
		data = copy->narrowed.data;
		size = copy->narrowed.size;
		samples = 0;
		ret = ret < 0 || !size ? ret : recording_widen(data, size, &span, &samples);
		if (ret < 0 || !size)
			return ret;
	}
	for (size_t i = 0; i < sizeof(length); i++)
		length[i] = (uint8_t)(size >> 8 * (sizeof(length) - 1 - i));
	if (fwrite(length, 1, sizeof(length), copy->output.file) != sizeof(length) ||
	    fwrite(data, 1, size, copy->output.file) != size)
		return -EIO;
	copy->messages++;
	copy->samples += samples;
	return 0;
}

static void say_copied(const struct options *options, const struct copy *copy, uint64_t bytes)
{
	const bool is_stdout = !strcmp(options->output, "-");
	FILE *stream = is_stdout ? stderr : stdout;
	struct json json;

	if (!options->use_json) {
		fprintf(stream, "%s: %" PRIu64 " messages, %" PRIu64 " samples, %" PRIu64 " bytes\n",
			options->output, copy->messages, copy->samples, bytes);
		return;
	}
	json_init(&json, stream);
	json_object(&json, NULL);
	json_string(&json, "output", options->output);
	json_u64(&json, "messages", copy->messages);
	json_u64(&json, "samples", copy->samples);
	json_u64(&json, "bytes", bytes);
	json_end(&json);
}

static int copy_parts(const struct options *options, struct parts *parts, struct copy *copy)
{
	char error[PATH_MAX + 256];
	uint64_t bytes;
	int ret = 0;

	for (size_t i = 0; i < parts->count; i++) {
		ret = part_each(parts, &parts->list[i], copy_message, copy);
		if (ret < 0 && ret != -ENOENT)
			return cli_error(ret == -EIO ? "cannot write %s: %s" : "cannot read a file for %s: %s",
					 options->output, strerror(-ret));
	}
	progress_done();
	if (!copy->messages && options->has_part)
		return select_found_nothing(&options->selection, options->directory);
	if (!copy->messages && options->has_range)
		return cli_error("%s has nothing from that time", options->directory);
	if (!copy->messages) {
		recording_fail_empty(options->directory, false, !parts->count, error, sizeof(error));
		return cli_error("%s", error);
	}
	ret = outfile_finish(&copy->output, &bytes);
	if (ret)
		return ret;
	say_copied(options, copy, bytes);
	return cli_finish();
}

static int run_export(const struct options *options, struct parts *parts)
{
	struct time_span all = { .from = UINT64_MAX };
	struct copy copy = { 0 };
	int ret;

	ret = selection_needs_bounds(&options->selection) ? parts_count(parts, options->directory) : 0;
	for (size_t i = 0; i < parts->count; i++) {
		all.from = min_of(all.from, parts->list[i].span.from);
		all.to = max_of(all.to, parts->list[i].span.to);
	}
	if (!ret)
		ret = outfile_open(options->output, true, &copy.output);
	if (ret)
		return ret;
	copy.wanted = options->has_range ? selection_span(&options->selection, all.from, all.to) :
					   (struct time_span){ .to = UINT64_MAX };
	texts_init(&copy.texts);
	buffer_init(&copy.narrowed, POOL_REPORT);
	if (options->has_part &&
	    reader_new(&copy.texts, &options->selection, false, &(struct reader_sink){ 0 }, &copy.reader))
		ret = cli_error("out of memory");
	else
		ret = copy_parts(options, parts, &copy);
	reader_free(copy.reader);
	buffer_free(&copy.narrowed);
	texts_free(&copy.texts);
	outfile_done(&copy.output);
	return ret;
}

/* How many of the oldest files are too old, or too much. */
static size_t count_surplus(const struct options *options, const struct parts *parts)
{
	const uint64_t now = clock_read(CLOCK_REALTIME) / NSEC_PER_MSEC;
	uint64_t bytes = 0;
	size_t surplus = 0;

	for (size_t i = 0; i < parts->count; i++)
		bytes += parts->list[i].bytes;
	for (size_t i = 0; i < parts->count; i++) {
		const struct part *part = &parts->list[i];

		if (!(options->has_bytes && bytes > options->max_bytes) &&
		    !(options->has_older && part->changed < now && now - part->changed > options->older_ms))
			break;
		bytes -= part->bytes;
		surplus++;
	}
	return surplus;
}

static int run_prune(const struct options *options, struct parts *parts)
{
	size_t surplus = count_surplus(options, parts), removed = 0;
	uint64_t bytes = 0;
	struct json json;
	int ret = 0;

	if (!options->is_dry && flock(parts->directory, LOCK_EX | LOCK_NB) < 0)
		return cli_error("%s is in use by a daemon, which removes files itself: see max_bytes and "
				 "max_age_hours in stacktap.conf(5)", options->directory);
	for (; !ret && removed < surplus; removed++) {
		if (!options->is_dry)
			ret = store_remove_file(parts->directory, parts->list[removed].time);
		if (!ret)
			bytes += parts->list[removed].bytes;
	}
	if (ret < 0)
		return cli_error("cannot remove a file of %s: %s", options->directory, strerror(-ret));
	if (!options->use_json) {
		printf("%s: %s%zu of %zu files, %" PRIu64 " bytes\n", options->directory,
		       options->is_dry ? "would remove " : "removed ", removed, parts->count, bytes);
		return cli_finish();
	}
	json_init(&json, stdout);
	json_object(&json, NULL);
	json_bool(&json, "dry_run", options->is_dry);
	json_u64(&json, "files", parts->count);
	json_u64(&json, "removed", removed);
	json_u64(&json, "bytes", bytes);
	json_end(&json);
	return cli_finish();
}

/* What each verb needs, before anything is looked at. */
static int check(const struct options *options)
{
	if (!strcmp(options->verb, "export") && !options->output)
		return cli_usage_error("store export needs -o FILE");
	if (!strcmp(options->verb, "prune") && !options->has_older && !options->has_bytes)
		return cli_usage_error("store prune needs --older-than TIME or --max-bytes SIZE");
	return CLI_OK;
}

static const struct {
	const char *name;
	int (*run)(const struct options *options, struct parts *parts);
} verbs[] = {
	{ "list", run_list },
	{ "export", run_export },
	{ "prune", run_prune },
};

static int parse_option(int option, struct options *options)
{
	switch (option) {
	case 'o':
		options->output = optarg;
		return CLI_GO_ON;
	case 'n':
		options->is_dry = true;
		return CLI_GO_ON;
	case OPT_OLDER:
		options->has_older = true;
		return cli_parse_duration(optarg, &options->older_ms) ? CLI_GO_ON :
			cli_usage_error("`%s' is not a time like 90m or 24h", optarg);
	case OPT_BYTES:
		options->has_bytes = true;
		return cli_parse_bytes(optarg, &options->max_bytes) ? CLI_GO_ON :
			cli_usage_error("`%s' is not a size like 100M", optarg);
	case SELECT_FROM:
	case SELECT_TO:
	case SELECT_SINCE:
		options->has_range = true;
		return select_parse(option, optarg, &options->selection) ?: CLI_GO_ON;
	default:
		options->has_part = true;
		return select_parse(option, optarg, &options->selection) ?: CLI_GO_ON;
	}
}

static int parse(int argc, char **argv, struct options *options)
{
	static const struct option table[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "from", required_argument, NULL, SELECT_FROM },
		{ "to", required_argument, NULL, SELECT_TO },
		{ "since", required_argument, NULL, SELECT_SINCE },
		{ "process", required_argument, NULL, SELECT_PROCESS },
		{ "thread", required_argument, NULL, SELECT_THREAD },
		{ "container", required_argument, NULL, SELECT_CONTAINER },
		{ "service", required_argument, NULL, SELECT_SERVICE },
		{ "cgroup", required_argument, NULL, SELECT_CGROUP },
		{ "event", required_argument, NULL, SELECT_EVENT },
		{ "older-than", required_argument, NULL, OPT_OLDER },
		{ "max-bytes", required_argument, NULL, OPT_BYTES },
		{ "dry-run", no_argument, NULL, 'n' },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int option, ret;

	while ((option = cli_option(argc, argv, ":o:nh", table)) != -1) {
		if (option == 'h')
			return cli_help(help);
		if (option == '?' || option == ':')
			return cli_bad_option(argc, argv, option);
		if (option == OPT_JSON) {
			options->use_json = true;
			cli_use_json();
			continue;
		}
		ret = parse_option(option, options);
		if (ret != CLI_GO_ON)
			return ret;
	}
	if (optind == argc)
		return cli_usage_error("store needs a command: list, export or prune");
	options->verb = argv[optind++];
	options->directory = optind < argc ? argv[optind++] : DEFAULT_DIRECTORY;
	if (optind < argc)
		return cli_usage_error("store takes one directory, not also `%s'", argv[optind]);
	return CLI_GO_ON;
}

int store_run(int argc, char **argv)
{
	struct options options = { 0 };
	int ret = parse(argc, argv, &options);

	if (ret != CLI_GO_ON)
		return ret;
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		_cleanup_(parts_done) struct parts parts = { .directory = -1 };

		if (strcmp(options.verb, verbs[i].name) != 0)
			continue;
		ret = check(&options) ?: parts_open(options.directory, &parts);
		return ret ? ret : verbs[i].run(&options, &parts);
	}
	return cli_usage_error("unknown store command `%s': use list, export or prune", options.verb);
}
