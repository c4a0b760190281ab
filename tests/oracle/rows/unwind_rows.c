// SPDX-License-Identifier: Apache-2.0
/*
 * Every row of a file's unwind table against libdw's, as JSON; the first differences on standard error. Exit status 1 if
 * a row is wrong.
 * usage: unwind_rows FILE
 */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "compare.h"
#include "unwind/compile.h"

enum { TOLD_MAX = 20 };

#define MEMORY_LIMIT ((size_t)2 << 30)

static uint64_t told;

static void tell(void *ctx, uint64_t address, const char *what)
{
	if (told++ < TOLD_MAX)
		fprintf(stderr, "%s: %#" PRIx64 ": %s\n", (const char *)ctx, address, what);
}

static int compare(const char *path, struct compare_result *ret_result)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_free_ void *data = NULL;
	struct compile_stats stats;
	struct unwind_table table;
	struct stat st;
	struct elf elf;
	size_t size;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	r = elf_open(&elf, fd, (uint64_t)st.st_size, 0);
	if (r < 0)
		return r;
	r = compile_elf(&elf, MEMORY_LIMIT, &data, &size, &stats);
	elf_close(&elf);
	return r ?: unwind_table_check(data, size, &table) ?:
		    compare_file(fd, &table, tell, (void *)(uintptr_t)path, ret_result);
}

int main(int argc, char **argv)
{
	struct compare_result result;
	struct json json;
	int r;

	if (argc != 2)
		return 2;
	r = compare(argv[1], &result);
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-r));
		return 2;
	}
	json_init(&json, stdout);
	json_object(&json, NULL);
	json_u64(&json, "rows", result.rows);
	json_u64(&json, "exact", result.exact);
	json_u64(&json, "no_rule", result.no_rule);
	json_u64(&json, "wrong", result.wrong);
	json_u64(&json, "refused", result.refused);
	json_u64(&json, "outside", result.outside);
	json_u64(&json, "gap_bytes", result.gap_bytes);
	json_end(&json);
	return result.wrong ? 1 : 0;
}
