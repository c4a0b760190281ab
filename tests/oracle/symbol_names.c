// SPDX-License-Identifier: Apache-2.0
/*
 * Names of a file's functions, for a check from outside: reads ELF addresses in hex, one a line,
 * and answers each with "START NAME", or "-" where there is none. usage: symbol_names FILE
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "symbol/symtab.h"

int main(int argc, char **argv)
{
	char line[64], name[SYMTAB_NAME_MAX];
	struct symtab *symtab;
	struct stat st;
	struct elf elf;
	int fd, r;

	if (argc != 2)
		return 2;
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return 2;
	r = elf_open(&elf, fd, (uint64_t)st.st_size, 0);
	if (r == 0) {
		r = symtab_read(&elf, NULL, &symtab);
		elf_close(&elf);
	}
	if (r < 0) {
		fprintf(stderr, "%s: error %d\n", argv[1], -r);
		return 1;
	}
	if (symtab->partial)
		fprintf(stderr, "%s: partial: %s\n", argv[1], symtab->partial);
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t address = strtoull(line, NULL, 16);
		const struct symbol *symbol = symtab_find(symtab, address);

		if (symbol && symtab_name(symtab, symbol, fd, name) == 0)
			printf("%" PRIx64 " %s\n", symtab_start(symtab, symbol), name);
		else
			printf("-\n");
	}
	symtab_free(symtab);
	close(fd);
	return 0;
}
