// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "symbol/facts.h"
#include "symbol/htlhash.h"
#include "symbol/symtab.h"

static const char program[] = "int puts(const char *);\n"
			      "__attribute__((noinline)) int work(int x) { return x * 3; }\n"
			      "int main(int c, char **v) { return puts(v[0]) + work(c); }\n";

static int open_file(const char *path, struct stat *ret_stat)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, ret_stat), 0);
	return fd;
}

static struct object *facts_of(const char *path, int *ret_result)
{
	struct object *object = object_new(OBJECT_FILE, path);
	struct stat st;
	struct elf elf;
	int fd;

	assert_non_null(object);
	fd = open_file(path, &st);
	*ret_result = elf_open(&elf, fd, (uint64_t)st.st_size, 0);
	if (*ret_result == 0) {
		*ret_result = facts_read(&elf, object);
		elf_close(&elf);
	}
	close(fd);
	return object;
}

static void build_id_is_the_linkers(void **state)
{
	const char *id = "0123456789abcdef0011223344556677deadbeef";
	char flags[128];
	struct object *object;
	int r;

	(void)state;
	snprintf(flags, sizeof(flags), "-Wl,--build-id=0x%s", id);
	object = facts_of(fixture_build("with_id", flags, program), &r);
	assert_int_equal(r, 0);
	assert_string_equal(object->build_id, id);
	object_unref(object);
	object = facts_of(fixture_build("without_id", "-Wl,--build-id=none", program), &r);
	assert_int_equal(r, 0);
	assert_string_equal(object->build_id, "");
	object_unref(object);
	/* only the program headers lead to it */
	fixture_run("objcopy --strip-section-headers with_id headless 2>/dev/null || "
		    "{ cp with_id headless && printf '\\0\\0\\0\\0\\0\\0\\0\\0' | "
		    "dd of=headless bs=1 seek=40 conv=notrunc status=none; }");
	object = facts_of(fixture_path("headless"), &r);
	assert_int_equal(r, 0);
	assert_string_equal(object->build_id, id);
	object_unref(object);
}

/* Sizes that lead out of the section; the copy ends where ASan sees a byte too many. */
static void broken_notes_are_left(void **state)
{
	static const uint32_t sizes[] = { 0,  3,  4,	      5,	  20,
					  21, 24, 0x7fffffff, 0xfffffffc, 0xffffffff };
	uint32_t note[9] = { 4, 20, NT_GNU_BUILD_ID, 0x00554e47, 1, 2, 3, 4, 5 };
	char id[41];

	(void)state;
	elf_notes_build_id(note, sizeof(note), 4, id);
	assert_int_equal(strlen(id), 40);
	for (size_t i = 0; i < ARRAY_SIZE(sizes) * ARRAY_SIZE(sizes); i++) {
		for (size_t size = 0; size <= sizeof(note); size += 4) {
			uint32_t *copy = malloc(size ? size : 1);

			note[0] = sizes[i % ARRAY_SIZE(sizes)];
			note[1] = sizes[i / ARRAY_SIZE(sizes)];
			memcpy(copy, note, size);
			elf_notes_build_id(copy, size, 4, id);
			assert_true(!id[0] || (note[0] == 4 && note[1] <= size - 16));
			elf_notes_build_id(copy, size, 8, id);
			free(copy);
		}
	}
}

static int first_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	*(uint64_t *)ctx = info->dlpi_addr;
	return 1;
}

/* The loader's own arithmetic and the kernel's mapping list are the truth. */
static void file_offsets_become_the_loaders_addresses(void **state)
{
	uint64_t here = (uint64_t)(uintptr_t)file_offsets_become_the_loaders_addresses;
	uint64_t start, end, offset, bias = 0, address;
	char line[512], *maps = NULL;
	size_t capacity = 0;
	struct object *object;
	FILE *file;
	int r, seen = 0;

	(void)state;
	dl_iterate_phdr(first_object, &bias);
	object = facts_of("/proc/self/exe", &r);
	assert_int_equal(r, 0);
	file = fopen("/proc/self/maps", "re");
	assert_non_null(file);
	while (getline(&maps, &capacity, file) > 0) {
		if (sscanf(maps, "%lx-%lx %s %lx", &start, &end, line, &offset) != 4 ||
		    here < start || here >= end)
			continue;
		assert_true(object_address(object, here - start + offset, &address));
		assert_int_equal(address, here - bias);
		assert_true(address >= object->address_start && address < object->address_limit);
		seen++;
	}
	assert_int_equal(seen, 1);
	assert_false(object_address(object, 1ULL << 40, &address));
	free(maps);
	fclose(file);
	object_unref(object);
}

/* coreutils compute the same from the same definition */
static void htlhash_is_sha256_of_the_ends(void **state)
{
	static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, 8191, 8192, 100000 };
	char hash[33], memory_hash[33];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint8_t *data;
		size_t size;
		int fd;

		fixture_run("head -c %zu /dev/urandom > blob", sizes[i]);
		fd = open(fixture_path("blob"), O_RDONLY | O_CLOEXEC);
		assert_int_equal(htlhash_file(fd, sizes[i], hash), 0);
		assert_string_equal(hash, fixture_ask("{ head -c 4096 blob; tail -c 4096 blob; "
						      "python3 -c 'import os; os.write(1, "
						      "(%zu).to_bytes(8, \"big\"))'; } | "
						      "sha256sum | cut -c 1-32", sizes[i]));
		data = fixture_load(fixture_path("blob"), &size);
		htlhash_memory(data, size, memory_hash);
		assert_string_equal(hash, memory_hash);
		/* cut off since its size was asked for */
		assert_int_equal(htlhash_file(fd, sizes[i] + 1, hash), -ENODATA);
		free(data);
		close(fd);
	}
}

static void what_is_no_elf_is_refused(void **state)
{
	uint8_t *data, *copy;
	struct elf elf;
	size_t size;

	(void)state;
	data = fixture_load(fixture_build("whole", "", program), &size);
	/* every length that cuts the headers; the copy ends where ASan sees a byte too many */
	for (size_t cut = 0; cut < 2048; cut++) {
		struct object *object = object_new(OBJECT_FILE, "/cut");

		copy = malloc(cut ? cut : 1);
		memcpy(copy, data, cut);
		if (elf_open_memory(&elf, copy, cut) == 0) {
			assert_true(cut >= 64);
			facts_read(&elf, object);
			elf_close(&elf);
		}
		free(copy);
		object_unref(object);
	}
	assert_int_equal(elf_open_memory(&elf, "#!/bin/sh\nexit 0\n", 17), -ENOEXEC);
	/* the other byte order */
	data[EI_DATA] ^= 3;
	assert_int_equal(elf_open_memory(&elf, data, size), -ENOEXEC);
	free(data);
}

static void lying_counts_take_no_memory(void **state)
{
	uint8_t *data;
	Elf64_Ehdr *ehdr;
	Elf64_Shdr *shdrs;
	struct elf elf;
	size_t size;

	(void)state;
	data = fixture_load(fixture_build("liar", "", program), &size);
	ehdr = (Elf64_Ehdr *)(void *)data;
	shdrs = (Elf64_Shdr *)(void *)(data + ehdr->e_shoff);
	/* the count is in the first section header: 2^60 of them */
	ehdr->e_shnum = 0;
	shdrs[0].sh_size = 1ULL << 60;
	assert_int_equal(elf_open_memory(&elf, data, size), 0);
	assert_int_equal(elf.shdr_count, 0);
	elf_close(&elf);
	/* a true count found there works */
	shdrs[0].sh_size = 5;
	assert_int_equal(elf_open_memory(&elf, data, size), 0);
	assert_int_equal(elf.shdr_count, 5);
	elf_close(&elf);
	ehdr->e_phnum = 0xfffe;
	assert_int_equal(elf_open_memory(&elf, data, size), -ENOEXEC);
	free(data);
}

static void reading_stops_at_the_deadline(void **state)
{
	struct stat st;
	struct elf elf;
	int fd;

	(void)state;
	fd = open_file(fixture_build("late", "", program), &st);
	assert_int_equal(elf_open(&elf, fd, (uint64_t)st.st_size, clock_monotonic() - 1), -ETIME);
	close(fd);
}

/* Everything that is ever done with a file, on @data. */
static void use(const uint8_t *data, size_t size)
{
	struct object *object = object_new(OBJECT_FILE, "/mutant");
	struct symtab *symtab;
	struct elf elf;
	uint64_t address;

	if (elf_open_memory(&elf, data, size) == 0) {
		facts_read(&elf, object);
		object_address(object, 0x1000, &address);
		if (symtab_read(&elf, NULL, 0, NULL, &symtab) == 0) {
			for (uint32_t i = 0; i < min_of(symtab->count, 64U); i++) {
				char name[SYMTAB_NAME_MAX];
				uint64_t at = symtab_start(symtab, &symtab->symbols[i]);

				symtab_find(symtab, at);
				symtab_find(symtab, at + 1);
				symtab_name(symtab, &symtab->symbols[i], name);
			}
			symtab_free(symtab);
		}
		elf_close(&elf);
	}
	object_unref(object);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return *seed >> 33;
}

/* Bytes flipped where they matter: the headers get half of them. */
static void mutated_files_do_no_harm(void **state)
{
	uint64_t seed = 42, started = clock_monotonic();
	size_t size, used = atomic_load(&pool_get(POOL_SYMBOLS)->used);
	uint8_t *data, *mutant;
	Elf64_Ehdr ehdr;

	(void)state;
	data = fixture_load(fixture_build("mutable", "-s -Wl,-z,norelro -rdynamic", program),
			    &size);
	memcpy(&ehdr, data, sizeof(ehdr));
	mutant = malloc(size);
	for (int i = 0; i < 10000; i++) {
		int flips = 1 + (int)(next_random(&seed) % 8);

		memcpy(mutant, data, size);
		for (int j = 0; j < flips; j++) {
			size_t at;

			switch (next_random(&seed) % 4) {
			case 0:
				at = next_random(&seed) % (sizeof(ehdr) + 16 * 56);
				break;
			case 1:
				at = ehdr.e_shoff + next_random(&seed) % (size - ehdr.e_shoff);
				break;
			default:
				at = next_random(&seed) % size;
			}
			mutant[at] = (uint8_t)next_random(&seed);
		}
		use(mutant, size);
	}
	assert_int_equal(atomic_load(&pool_get(POOL_SYMBOLS)->used), used);
	print_message("10000 mutants in %.1f s\n",
		      (double)(clock_monotonic() - started) / (double)NSEC_PER_SEC);
	free(mutant);
	free(data);
}

static void write_at(const char *path, uint64_t offset, char byte)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
	close(fd);
}

/* Who reads thousands of names asks the kernel for a few blocks of them. */
static void small_pieces_come_from_what_was_read_around_them(void **state)
{
	enum { BLOCK = 64 << 10, AT = 2 * BLOCK };
	const char *path = fixture_build("cached", "", program);
	static char large[BLOCK], small[16];
	struct stat st;
	struct elf elf;
	int fd;

	(void)state;
	fixture_run("truncate -s %d cached", 4 * BLOCK + 100);
	fd = open_file(path, &st);
	assert_int_equal(elf_open_cached(&elf, fd, (uint64_t)st.st_size + 100, 0), 0);
	write_at(path, AT - 1, 'a');
	write_at(path, AT, 'b');
	assert_int_equal(elf_read(&elf, AT - 8, small, sizeof(small)), 0);
	assert_memory_equal(small, "\0\0\0\0\0\0\0ab\0\0\0\0\0\0\0", sizeof(small));
	/* both blocks are there now, and stay as they were */
	write_at(path, 2 * AT - 1, 'c');
	write_at(path, AT - BLOCK, 'd');
	assert_int_equal(elf_read(&elf, AT - BLOCK, small, sizeof(small)), 0);
	assert_int_equal(small[0], 0);
	assert_int_equal(elf_read(&elf, AT - BLOCK, large, sizeof(large)), 0);
	assert_int_equal(large[0], 'd');
	assert_int_equal(elf_read(&elf, 2 * AT - 1, small, 1), 0);
	assert_int_equal(small[0], 'c');
	/* the block at the end of a file that was cut is not all there, the piece is */
	assert_int_equal(elf_read(&elf, 2 * AT, small, sizeof(small)), 0);
	assert_int_equal(elf_read(&elf, 2 * AT + 96, small, sizeof(small)), -ENODATA);
	elf_close(&elf);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(build_id_is_the_linkers),
		cmocka_unit_test(broken_notes_are_left),
		cmocka_unit_test(file_offsets_become_the_loaders_addresses),
		cmocka_unit_test(htlhash_is_sha256_of_the_ends),
		cmocka_unit_test(what_is_no_elf_is_refused),
		cmocka_unit_test(lying_counts_take_no_memory),
		cmocka_unit_test(reading_stops_at_the_deadline),
		cmocka_unit_test(small_pieces_come_from_what_was_read_around_them),
		cmocka_unit_test(mutated_files_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
