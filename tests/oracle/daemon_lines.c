// SPDX-License-Identifier: Apache-2.0
/*
 * Names and lines of a program as the daemon finds them while it records with `lines = yes', for a check from outside: by the
 * way that windows go, with all files that belong to it. Reads sorted ELF addresses in hex, one a line, and answers as line_names
 * does; then what was counted, on stderr.
 * usage: daemon_lines FILE [DIRECTORY-OF-INDICES]
 */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "process/details.h"
#include "resolve/symbolizer.h"

enum {
	ADDRESSES_MAX = 1 << 16,
	WINDOWS_MAX = 1000,	/* in which what was put off is asked for again, */
	WINDOW_US = 100000,	/* after as long: a busy host has less time for names */
};

static struct hash_table files = { .index.pool = POOL_PROCESSES };
static struct symbolizer *symbolizer;
static struct image *image;
static struct mapped_file *file;

/* What is mapped is known by its place in the file. */
static uint64_t offset_of(uint64_t address)
{
	const struct object *object = mapped_file_object(file);

	for (size_t i = 0; i < object->segment_count; i++)
		if (address - object->segments[i].vaddr < object->segments[i].size)
			return address - object->segments[i].vaddr + object->segments[i].offset;
	return UINT64_MAX;
}

/* One window, of a sample for each Location. */
static void resolve(struct location **locations, size_t count)
{
	struct window window = { .location_count = count, .sample_count = count, .locations = locations, .profile_count = 1 };
	struct stack **stacks = calloc(count, sizeof(*stacks));

	window.profiles = calloc(1, sizeof(*window.profiles));
	window.counts = calloc(1, sizeof(*window.counts));
	window.samples = calloc(count, sizeof(*window.samples));
	for (size_t i = 0; i < count; i++) {
		stacks[i] = calloc(1, sizeof(*stacks[i]) + sizeof(stacks[i]->locations[0]));
		stacks[i]->count = 1;
		stacks[i]->locations[0] = locations[i];
		window.samples[i] = (struct window_sample){ .image = image, .stack = stacks[i], .count = 1 };
	}
	symbolizer_resolve(symbolizer, &window);
	symbolizer_after_window(symbolizer);
	for (size_t i = 0; i < count; i++)
		free(stacks[i]);
	free(stacks);
	free(window.samples);
	free(window.counts);
	free(window.profiles);
}

/* As thread A does: another Location takes the place of each that was put off. */
static size_t renew(struct location **locations, size_t count, struct location **ret_pending)
{
	size_t pending = 0;

	for (size_t i = 0; i < count; i++) {
		struct location *old = locations[i];

		if (old->is_resolved && !old->is_put_off)
			continue;
		if (old->is_resolved) {
			locations[i] = location_new(file, old->offset, FRAME_NATIVE, false);
			location_unref(old);
		}
		ret_pending[pending++] = locations[i];
	}
	return pending;
}

static void print_location(const struct location *location)
{
	for (uint32_t k = 0; k < location->line_count; k++) {
		const struct line *line = &location->lines[k];

		printf("%s\t%s\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\n", line->function->system_name,
		       line->function->filename ?: "", line->line, line->column, line->function->start_line);
	}
	putchar('\n');
}

int main(int argc, char **argv)
{
	struct symbolizer_options options = { .with_lines = true, .with_kernel_addresses = true };
	static struct location *locations[ADDRESSES_MAX], *pending[ADDRESSES_MAX];
	struct symbolizer_stats stats;
	size_t count = 0, left;
	char line[64];
	struct stat st;

	options.indices = (struct indices_options){ .directory = argc == 3 ? argv[2] : NULL, .limit_bytes = 64 << 20 };
	if ((argc != 2 && argc != 3) || stat(argv[1], &st) < 0 || symbolizer_new(&options, &symbolizer) < 0)
		return 2;
	file = mapped_file_new(OBJECT_FILE, argv[1]);
	file->major = major(st.st_dev);
	file->minor = minor(st.st_dev);
	file->inode = st.st_ino;
	image = image_new(&files, (uint32_t)getpid(), 0, "oracle");
	symbolizer_see_image(symbolizer, image, NULL);
	symbolizer_see_file(symbolizer, image, file);
	if (!mapped_file_object(file))
		return 2;
	while (count < ADDRESSES_MAX && fgets(line, sizeof(line), stdin))
		locations[count++] = location_new(file, offset_of(strtoull(line, NULL, 16)), FRAME_NATIVE, false);
	for (int i = 0; i < WINDOWS_MAX && (left = renew(locations, count, pending)); i++) {
		usleep(i ? WINDOW_US : 0);
		resolve(pending, left);
	}
	for (size_t i = 0; i < count; i++) {
		print_location(locations[i]);
		location_unref(locations[i]);
	}
	/* what waits to be written is dropped at the end */
	do {
		usleep(1000);
		symbolizer_stats(symbolizer, &stats);
	} while (stats.indices.written + stats.indices.dropped < stats.indices.made);
	fprintf(stderr, "moved %" PRIu64 " packages %" PRIu64 " dwos %" PRIu64 " refused %" PRIu64 " without_inlined %" PRIu64,
		stats.lines.parts.moved, stats.lines.parts.packages, stats.lines.parts.dwos, stats.lines.parts.refused,
		stats.lines.without_inlined);
	fprintf(stderr, " index_loaded %" PRIu64 " index_made %" PRIu64 " index_refused %" PRIu64 " index_late %" PRIu64 "\n",
		stats.indices.loaded, stats.indices.made, stats.indices.refused, stats.indices.late);
	image_unref(image);
	mapped_file_unref(file);
	symbolizer_free(symbolizer);
	return 0;
}
