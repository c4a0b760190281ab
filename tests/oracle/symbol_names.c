// SPDX-License-Identifier: Apache-2.0
/*
 * Names of a file's functions as the parser finds them, for a check from outside: reads ELF addresses
 * in hex, one a line, and answers each with "START NAME", "START" of a function without a name, or "-". What is in
 * Go's code has a G before it.
 * usage: symbol_names FILE
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "helper/parser.h"

/* As record does at its end: ten seconds, and again while the parser had no CPU, as a busy host may let it happen. */
static int read_table(struct parser *parser, const struct object *object, int fd, const struct symtab_reclaim *reclaim,
		      struct symtab **ret_symtab)
{
	unsigned int tries = PARSER_TRIES;
	int r;

	parser_wait(parser, true);
	for (;;) {
		r = parser_symtab(parser, object, fd, reclaim, ret_symtab);
		if ((r != -EAGAIN && (r < 0 || !(*ret_symtab)->is_late)) || !--tries)
			return r;
		if (!r)
			symtab_free(*ret_symtab);
	}
}

static bool make_room(void *ctx _unused_, size_t bytes _unused_)
{
	return false;
}

int main(int argc, char **argv)
{
	char line[64], name[SYMTAB_NAME_MAX];
	const struct symtab_reclaim reclaim = { .make_room = make_room };
	struct symtab *symtab;
	struct object *object;
	struct parser *parser;
	struct stat st;
	int fd, r;

	if (argc != 2)
		return 2;
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return 2;
	object = object_new(OBJECT_FILE, argv[1]);
	if (!object || parser_new(&parser) < 0)
		return 2;
	object->size = (uint64_t)st.st_size;
	r = read_table(parser, object, fd, &reclaim, &symtab);
	if (r < 0) {
		fprintf(stderr, "%s: error %d\n", argv[1], -r);
		return 1;
	}
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t address = strtoull(line, NULL, 16);
		const struct symbol *symbol = symtab_find(symtab, address);

		if (symtab_is_go(symtab, address))
			putchar('G');
		if (symbol && !symbol_is_named(symbol))
			printf("%" PRIx64 "\n", symtab_start(symtab, symbol));
		else if (symbol && parser_name(parser, object, fd, symtab, symbol, name) == 0)
			printf("%" PRIx64 " %s\n", symtab_start(symtab, symbol), name);
		else
			printf("-\n");
	}
	symtab_free(symtab);
	parser_free(parser);
	object_unref(object);
	close(fd);
	return 0;
}
