// SPDX-License-Identifier: Apache-2.0
/*
 * What a name costs: the first lookup in an object, and all that follow, in CPU time of this process and the parser.
 * Addresses are taken at random from the functions of its symbol table.
 * usage: bench_symbols FILE COUNT ADDRESSES
 * ADDRESSES is a file that COUNT of them are written to, in hex, for others.
 *        bench_symbols FILE --line ADDRESS
 * Looks up the line of this one, as a whole program that others can be compared with.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "helper/parser.h"

enum { WARM = 20000000, LINES = 20 * LINES_ADDRESSES_MAX };

static uint64_t state = 88172645463325252ULL;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static bool make_room(void *ctx _unused_, size_t bytes _unused_)
{
	return false;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void tell(const char *name, double value, const char *unit)
{
	printf("{\"name\": \"%s\", \"value\": %.6f, \"unit\": \"%s\"}\n", name, value, unit);
}

/* ns, so far */
static uint64_t cpu_time(struct parser *parser)
{
	struct parser_stats stats;
	struct timespec time = { 0 };
	clockid_t clock;

	parser_stats(parser, &stats);
	if (clock_getcpuclockid(stats.helper.pid, &clock) || clock_gettime(clock, &time))
		exit(2);
	return clock_read(CLOCK_PROCESS_CPUTIME_ID) + (uint64_t)time.tv_sec * NSEC_PER_SEC +
	       (uint64_t)time.tv_nsec;
}

static double seconds_since(struct parser *parser, uint64_t began)
{
	return (double)(cpu_time(parser) - began) / (double)NSEC_PER_SEC;
}

static int bench_names(struct parser *parser, struct object *object, int fd, uint64_t *addresses,
		       size_t count)
{
	const struct symtab_reclaim reclaim = { .make_room = make_room };
	char name[SYMTAB_NAME_MAX];
	const struct symbol *symbol = NULL;
	uint64_t began = cpu_time(parser), found = 0;
	struct symtab *symtab;
	int r = parser_symtab(parser, object, fd, &reclaim, &symtab);

	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		addresses[i] = symtab_start(symtab, &symtab->symbols[next_random() % symtab->count]);
	symbol = symtab_find(symtab, addresses[0]);
	r = symbol ? parser_name(parser, object, fd, symtab, symbol, name) : -ENOENT;
	tell("cold name", seconds_since(parser, began), "s");
	for (size_t i = 0; !r && i < count; i++) {
		symbol = symtab_find(symtab, addresses[i]);
		r = symbol ? parser_name(parser, object, fd, symtab, symbol, name) : -ENOENT;
	}
	tell("all names", seconds_since(parser, began), "s");
	began = cpu_time(parser);
	for (uint32_t i = 0; i < WARM; i++)
		found += symtab_find(symtab, addresses[i % count]) != NULL;
	tell("warm names", WARM / seconds_since(parser, began), "/s");
	symtab_free(symtab);
	return found == WARM ? r : -ENOENT;
}

static int bench_lines(struct parser *parser, struct object *object, int fd, const uint64_t *addresses,
		       size_t count)
{
	static struct lines_answer answer;
	uint64_t some[LINES_ADDRESSES_MAX], began = cpu_time(parser);
	int r = parser_open_lines(parser, object, fd, true, NULL, NULL, PARSER_LINES_MS);

	if (!r)
		r = parser_lines(parser, object, addresses, 1, PARSER_LINES_MS, &answer);
	if (r < 0)
		return r;
	lines_answer_free(&answer);
	tell("cold line", seconds_since(parser, began), "s");
	began = cpu_time(parser);
	for (size_t done = 0; !r && done < LINES; done += ARRAY_SIZE(some)) {
		for (size_t i = 0; i < ARRAY_SIZE(some); i++)
			some[i] = addresses[next_random() % count];
		qsort(some, ARRAY_SIZE(some), sizeof(some[0]), by_number);
		r = parser_lines(parser, object, some, ARRAY_SIZE(some), PARSER_LINES_MS, &answer);
		if (!r)
			lines_answer_free(&answer);
	}
	tell("warm lines", LINES / seconds_since(parser, began), "/s");
	return r;
}

static int look_up(struct parser *parser, struct object *object, int fd, uint64_t address)
{
	static struct lines_answer answer;
	int r = parser_open_lines(parser, object, fd, true, NULL, NULL, PARSER_LINES_MS);

	if (!r)
		r = parser_lines(parser, object, &address, 1, PARSER_LINES_MS, &answer);
	if (!r && (!answer.frame_count || !answer.frames[0].line))
		r = -ENOENT;
	if (!r)
		lines_answer_free(&answer);
	return r;
}

int main(int argc, char **argv)
{
	const bool is_line = argc == 4 && !strcmp(argv[2], "--line");
	const size_t count = is_line ? 1 : argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
	uint64_t *addresses = calloc(count + 1, sizeof(*addresses));
	struct object *object;
	struct parser *parser;
	struct stat st;
	FILE *file;
	int fd, r;

	if (!count || !addresses)
		return 2;
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	object = object_new(OBJECT_FILE, argv[1]);
	if (fd < 0 || fstat(fd, &st) < 0 || !object || parser_new(&parser) < 0)
		return 2;
	object_set_file(object, &st);
	if (is_line) {
		r = look_up(parser, object, fd, strtoull(argv[3], NULL, 16));
		goto out;
	}
	/* the helper's start is no lookup's */
	r = parser_is_same(parser, object, fd) == -EPIPE ? -EPIPE : 0;
	if (!r)
		r = bench_names(parser, object, fd, addresses, count);
	if (!r)
		r = bench_lines(parser, object, fd, addresses, count);
	file = r ? NULL : fopen(argv[3], "we");
	for (size_t i = 0; file && i < count; i++)
		fprintf(file, "0x%" PRIx64 "\n", addresses[i]);
	if (r < 0)
		fprintf(stderr, "%s: error %d\n", argv[1], -r);
	r |= !file || fclose(file);
out:
	parser_free(parser);
	object_unref(object);
	close(fd);
	free(addresses);
	return r ? 1 : 0;
}
