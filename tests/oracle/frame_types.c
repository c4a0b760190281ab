// SPDX-License-Identifier: Apache-2.0
/*
 * What frames of a real process are called, and their types, as a payload has them: reads addresses in hex, one a line, once
 * the process has been looked at, which it says, and may be gone again. The payload's dictionary goes to OUTPUT, with one Stack.
 * usage: frame_types PID OUTPUT		addresses of memory that no file is behind
 *        frame_types PID OUTPUT DUMP	the same, of a process that has mapped this jitdump
 *        frame_types PID OUTPUT FILE	offsets in a file
 */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/pool.h"
#include "export/frames.h"
#include "process/scan.h"
#include "resolve/symbolizer.h"

enum {
	ADDRESSES_MAX = 4096,
	TRIES = 300,		/* a tenth of a second each: until the first name is there, */
	TRIES_MORE = 20,	/* and of all that come after it, together */
};

static struct hash_table files = { .index.pool = POOL_PROCESSES };

static struct mapped_file *file_of(const char *path)
{
	struct mapped_file *file = mapped_file_new(path ? OBJECT_FILE : OBJECT_ANONYMOUS, path ?: "//anon");
	struct stat st;

	if (!file || (path && stat(path, &st) < 0))
		exit(2);
	if (path) {
		file->major = major(st.st_dev);
		file->minor = minor(st.st_dev);
		file->inode = st.st_ino;
	}
	return file;
}

/* A map that is older than its process is another one's. */
static uint64_t start_time_of(const char *pid)
{
	char path[64];
	uint64_t start;
	int proc;

	snprintf(path, sizeof(path), "/proc/%.20s", pid);
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0 || process_start_time(proc, &start) < 0)
		exit(2);
	close(proc);
	return start;
}

static void resolve(struct symbolizer *symbolizer, struct image *image, struct location *location)
{
	struct stack *stack = calloc(1, sizeof(*stack) + sizeof(stack->locations[0]));
	struct window_counts counts = { 0 };
	struct window_sample sample = { .image = image, .stack = stack, .count = 1 };
	struct window window = {
		.counts = &counts, .samples = &sample, .sample_count = 1,
		.locations = &location, .location_count = 1,
	};

	if (!stack)
		exit(2);
	stack->count = 1;
	stack->locations[0] = location;
	symbolizer_resolve(symbolizer, &window);
	free(stack);
}

/* The last Location that was made of it: one that is put off gets no name any more. */
static struct location *name(struct symbolizer *symbolizer, struct image *image, struct mapped_file *file, uint64_t address,
			     int *tries)
{
	struct location *location;

	for (;; --*tries) {
		location = location_new(file, address, FRAME_NATIVE, false);
		resolve(symbolizer, image, location);
		if (location->line_count && *tries > TRIES_MORE)
			*tries = TRIES_MORE;
		if (location->line_count || *tries <= 0)
			return location;
		location_unref(location);
		usleep(100000);
	}
}

static int write_dictionary(struct stack *stack, const char *path)
{
	struct dictionary dictionary;
	enum naming naming;
	uint8_t *bytes;
	FILE *output;
	bool is_written;

	dictionary_init(&dictionary);
	if (dictionary_reset(&dictionary) < 0 || frames_stack(&dictionary, stack, &naming) < 0)
		return 2;
	bytes = malloc(dictionary_size(&dictionary));
	output = fopen(path, "we");
	if (!bytes || !output)
		return 2;
	dictionary_write(&dictionary, bytes);
	is_written = fwrite(bytes, dictionary_size(&dictionary), 1, output) == 1;
	is_written &= fclose(output) == 0;
	dictionary_free(&dictionary);
	free(bytes);
	return is_written ? 0 : 2;
}

int main(int argc, char **argv)
{
	const struct symbolizer_options options = { .with_kernel_addresses = true };
	struct mapped_file *file, *seen = NULL;
	struct symbolizer *symbolizer;
	struct image *image;
	struct stack *stack;
	char line[64];
	int tries = TRIES, r;

	if (argc != 3 && argc != 4)
		return 2;
	if (argc == 4)
		seen = file_of(argv[3]);
	file = seen && !strstr(argv[3], "/jit-") ? mapped_file_ref(seen) : file_of(NULL);
	image = image_new(&files, (uint32_t)strtoul(argv[1], NULL, 10), 0, "");
	stack = calloc(1, sizeof(*stack) + ADDRESSES_MAX * sizeof(stack->locations[0]));
	if (!image || !stack || symbolizer_new(&options, &symbolizer) < 0)
		return 2;
	image->start_time = start_time_of(argv[1]);
	symbolizer_see_image(symbolizer, image, NULL);
	if (seen)
		symbolizer_see_file(symbolizer, image, seen);
	printf("ready\n");
	fflush(stdout);
	while (stack->count < ADDRESSES_MAX && fgets(line, sizeof(line), stdin))
		stack->locations[stack->count++] = name(symbolizer, image, file, strtoull(line, NULL, 16), &tries);
	r = write_dictionary(stack, argv[2]);
	for (uint32_t i = 0; i < stack->count; i++)
		location_unref(stack->locations[i]);
	free(stack);
	symbolizer_free(symbolizer);
	mapped_file_unref(file);
	mapped_file_unref(seen);
	image_unref(image);
	return r;
}
