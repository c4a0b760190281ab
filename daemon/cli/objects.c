// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/messages.h"
#include "view/census.h"
#include "view/recording.h"

static const char help[] =
	"usage: stacktap objects [OPTION...] [FILE|DIRECTORY...]\n\n"
	"Lists the programs, libraries and kernel modules that have frames in files of\n"
	"OTLP profiles (default: stacktap.otlp; - is standard input) or in a store's\n"
	"directory, with the build-ids by which debug files are found, see\n"
	"`stacktap symbolize'.\n\n"
	"      --missing  only objects that have frames without names\n"
	"      --json     everything as JSON\n"
	"  -h, --help\n";

enum { OPT_MISSING = 256 };

struct options {
	bool only_missing, use_json;
};

static int add(void *ctx, const uint8_t *data, size_t size)
{
	return census_add(ctx, data, size);
}

static bool is_shown(const struct options *options, const struct recorded_object *object)
{
	return object->locations && (object->unnamed || !options->only_missing);
}

/* Most unnamed Locations first, then by how many samples are concerned. */
static int compare(const void *a, const void *b)
{
	const struct recorded_object *x = *(const struct recorded_object *const *)a;
	const struct recorded_object *y = *(const struct recorded_object *const *)b;

	if (!x->unnamed != !y->unnamed)
		return x->unnamed ? -1 : 1;
	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return strcmp(x->path, y->path) ?: strcmp(x->build_id, y->build_id) ?:
	       strcmp(x->htlhash, y->htlhash);
}

static double share(const struct census *census, const struct recorded_object *object)
{
	return census->samples ? 100.0 * (double)object->samples / (double)census->samples : 0;
}

static void print_text(const struct census *census, struct recorded_object *const *objects,
		       size_t count)
{
	if (count)
		printf(" SAMPLES   FRAMES  UNNAMED  BUILD-ID                                  OBJECT\n");
	for (size_t i = 0; i < count; i++) {
		const struct recorded_object *object = objects[i];
		char id[48];

		if (object->build_id[0] || !object->htlhash[0])
			snprintf(id, sizeof(id), "%s", object->build_id[0] ? object->build_id : "-");
		else
			snprintf(id, sizeof(id), "htlhash:%s", object->htlhash);
		printf("%6.2f %% %8u %8u  %-40s  %s\n", share(census, object), object->locations,
		       object->unnamed, id, object->path[0] ? object->path : "[no mapping]");
	}
}

static void print_json(const struct census *census, struct recorded_object *const *objects,
		       size_t count)
{
	struct json json;

	json_init(&json, stdout);
	json_object(&json, NULL);
	json_u64(&json, "samples", census->samples);
	json_array(&json, "objects");
	for (size_t i = 0; i < count; i++) {
		const struct recorded_object *object = objects[i];

		json_object(&json, NULL);
		json_string(&json, "path", object->path[0] ? object->path : NULL);
		json_string(&json, "build_id", object->build_id[0] ? object->build_id : NULL);
		json_string(&json, "htlhash", object->htlhash[0] ? object->htlhash : NULL);
		json_u64(&json, "samples", object->samples);
		json_u64(&json, "frames", object->locations);
		json_u64(&json, "unnamed", object->unnamed);
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
}

static int print(const struct options *options, const struct census *census)
{
	_cleanup_free_ struct recorded_object **objects =
		calloc((size_t)census->objects.count + 1, sizeof(*objects));
	size_t count = 0;

	if (!objects)
		return cli_error("out of memory");
	for (uint32_t i = 0; i < census->objects.count; i++)
		if (is_shown(options, census_at(census, i)))
			objects[count++] = census_at(census, i);
	qsort(objects, count, sizeof(struct recorded_object *), compare);
	if (options->use_json)
		print_json(census, objects, count);
	else
		print_text(census, objects, count);
	if (!count && !options->use_json)
		puts(options->only_missing ? "Every frame has a name." : "There are no frames.");
	return cli_finish();
}

static int take(struct census *census, const char *path, const struct options *options)
{
	struct messages messages;
	int ret = messages_open(path, &messages);

	if (ret)
		return ret;
	ret = messages_each(&messages, add, census);
	if (!ret && messages.is_cut && !options->use_json)
		fprintf(stderr, "stacktap: %s is cut off or damaged; this is what is whole\n",
			recording_name(path));
	messages_close(&messages);
	return ret;
}

int objects_run(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "missing", no_argument, NULL, OPT_MISSING },
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	_cleanup_(census_free) struct census census;
	struct options options = { 0 };
	int option, ret = CLI_OK;

	census_init(&census);
	opterr = 0;
	while ((option = cli_option(argc, argv, ":h", long_options)) != -1) {
		switch (option) {
		case 'h':
			return cli_help(help);
		case OPT_MISSING:
			options.only_missing = true;
			break;
		case 'j':
			options.use_json = true;
			cli_use_json();
			break;
		default:
			return cli_bad_option(argc, argv, option);
		}
	}
	if (optind == argc)
		ret = take(&census, "stacktap.otlp", &options);
	for (int i = optind; !ret && i < argc; i++)
		ret = take(&census, argv[i], &options);
	return ret ? ret : print(&options, &census);
}
