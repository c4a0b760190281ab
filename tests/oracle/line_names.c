// SPDX-License-Identifier: Apache-2.0
/*
 * Functions and lines of a file as the parser finds them, for a check from outside: reads sorted ELF
 * addresses in hex, one a line, and answers each with its frames, innermost first,
 * "NAME<tab>FILE<tab>LINE<tab>COLUMN<tab>START", then an empty line.
 * usage: line_names FILE [DWZ-FILE]
 *        line_names FILE --split PACKAGE	or a .dwo file
 *        line_names --now FILE	as the daemon asks, which looks itself whether there are lines
 */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "helper/parser.h"

enum { NOW_MS = 20000 };

static struct object *open_object(const char *path, int *ret_fd)
{
	struct object *object = object_new(OBJECT_FILE, path);
	struct stat st;

	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (!object || *ret_fd < 0 || fstat(*ret_fd, &st) < 0)
		exit(2);
	object->size = (uint64_t)st.st_size;
	return object;
}

static void print_answer(const struct lines_answer *answer, uint32_t count)
{
	const struct lines_frame *frame = answer->frames;

	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t k = 0; k < answer->counts[i]; k++, frame++)
			printf("%s\t%s\t%u\t%u\t%u\n", answer->strings + frame->name,
			       answer->strings + frame->file, frame->line, frame->column,
			       frame->start_line);
		putchar('\n');
	}
}

/* Of a file that nothing is known of: what it may have lines by is asked first. */
static int find_now(struct parser *parser, struct object *object, int fd, const uint64_t *addresses, uint32_t count,
		    struct lines_answer *ret_answer)
{
	struct lines_facts facts;
	struct parser_work work;
	int r = parser_begin_lines(parser, &work);

	if (!r)
		r = parser_debug(parser, object, fd, NOW_MS, &facts);
	if (!r && !facts.has_dwarf && !facts.has_go_lines)
		r = -ENODATA;
	if (!r)
		r = parser_open_lines(parser, object, fd, facts.has_dwarf, NULL, NULL, NOW_MS);
	if (!r)
		r = parser_lines(parser, object, addresses, count, NOW_MS, ret_answer);
	parser_end_lines(parser, &work);
	return r;
}

/* While the parser had no CPU, as a busy host may let it happen, again: @is_open, unless what was open is gone with it. */
static int find(struct parser *parser, struct object *object, int fd, const struct parser_part parts[static 2], bool *is_open,
		const uint64_t *addresses, uint32_t count, struct lines_answer *ret_answer)
{
	unsigned int tries = PARSER_TRIES;
	int r;

	do {
		r = *is_open ? 0 : parser_open_lines(parser, object, fd, true, &parts[0], &parts[1], PARSER_LINES_MS);
		if (!r)
			r = parser_lines(parser, object, addresses, count, PARSER_LINES_MS, ret_answer);
		*is_open = !r;
	} while (r == -EAGAIN && --tries);
	return r;
}

int main(int argc, char **argv)
{
	static struct lines_answer answer;
	static uint64_t addresses[LINES_ADDRESSES_MAX];
	struct object *object, *alt = NULL, *package = NULL;
	struct parser_part parts[2] = { { .fd = -1 }, { .fd = -1 } };
	struct parser *parser;
	int fd, r;
	uint32_t count;
	char line[64];
	bool is_open = false;
	const bool is_now = argc == 3 && !strcmp(argv[1], "--now");

	if (is_now) {
		argc--;
		argv++;
	}
	if (argc == 4 && !strcmp(argv[2], "--split")) {
		package = open_object(argv[3], &parts[1].fd);
		parts[1].size = package->size;
		argc -= 2;
	}
	if (argc != 2 && argc != 3)
		return 2;
	object = open_object(argv[1], &fd);
	if (argc == 3) {
		alt = open_object(argv[2], &parts[0].fd);
		parts[0].size = alt->size;
	}
	if (parser_new(&parser) < 0)
		return 2;
	do {
		for (count = 0; count < LINES_ADDRESSES_MAX && fgets(line, sizeof(line), stdin);)
			addresses[count++] = strtoull(line, NULL, 16);
		r = is_now ? find_now(parser, object, fd, addresses, count, &answer) :
			     find(parser, object, fd, parts, &is_open, addresses, count, &answer);
		if (r < 0) {
			fprintf(stderr, "%s: %s\n", argv[1], strerror(-r));
			return 1;
		}
		print_answer(&answer, count);
		lines_answer_free(&answer);
	} while (count == LINES_ADDRESSES_MAX);
	parser_free(parser);
	object_unref(object);
	object_unref(alt);
	object_unref(package);
	close(fd);
	for (int i = 0; i < 2; i++)
		if (parts[i].fd >= 0)
			close(parts[i].fd);
	return 0;
}
