// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/pool.h"
#include "profile/location_cache.h"
#include "symbol/kallsyms.h"
#include "resolve/kernel.h"
#include "resolve/source.h"
#include "symbol/htlhash.h"

#define TEXT UINT64_C(0xffffffff9a200000)	/* where KASLR put it */
#if defined(__x86_64__)
#define LINK 0xffffffff81000000ULL
#else
#define LINK 0ULL
#endif

static const char symbols[] =
	"0000000000000000 A fixed_percpu_data\n"
	"ffffffff9a200000 T _text\n"
	"ffffffff9a200000 T startup_64\n"
	"ffffffff9a200100 t __do_work\n"
	"ffffffff9a200100 T do_work\n"
	"ffffffff9a200100 W weak_work\n"
	"ffffffff9a200180 t $x\n"
	"ffffffff9a2001c0 t .Llabel\n"
	"ffffffff9a200200 t later\n"
	"ffffffff9a300000 D data_thing\n"
	"ffffffff9a400000 B _end\n"
	"ffffffffc0a01000 t second_init\t[second]\n"
	"ffffffffc0a01100 t second_work\t[second]\n"
	"ffffffffc0900000 t first_work\t[first]\n"
	"ffffffffc0b00000 t bpf_prog_6deef7357e7b4530_dump\t[bpf]\n";

static const char modules[] =
	"second 16384 0 - Live 0xffffffffc0a01000\n"
	"first 8192 1 second, Live 0xffffffffc0900000 (OE)\n";

static void write_notes(const char *name, const char *digits)
{
	fixture_run("python3 -c 'import struct, sys; d = bytes.fromhex(sys.argv[1]); "
		    "open(sys.argv[2], \"wb\").write(struct.pack(\"<III\", 4, len(d), 3) + "
		    "b\"GNU\\0\" + d)' "
		    "%s %s", digits, name);
}

static int make_sysroot(void **state)
{
	(void)state;
	fixture_run("mkdir -p proc sys/kernel sys/module/first/notes sys/module/second/notes");
	fixture_write("proc/kallsyms", symbols);
	fixture_write("proc/modules", modules);
	write_notes("sys/kernel/notes", "00112233445566778899aabbccddeeff00112233");
	write_notes("sys/module/second/notes/.note.gnu.build-id",
		    "ffffffffffffffffffff00000000000000000000");
	return 0;
}

static void functions_are_found_by_address(void **state)
{
	struct kallsyms *kallsyms;
	uint64_t start;

	(void)state;
	assert_int_equal(kallsyms_read(fixture_path("proc/kallsyms"), &kallsyms), 0);
	assert_int_equal(kallsyms->text, TEXT);
	assert_int_equal(kallsyms->end, TEXT + 0x200000);
	assert_false(kallsyms->is_hidden);
	/* aliases: exported, no underscores, not weak */
	assert_string_equal(kallsyms_find(kallsyms, TEXT + 0x100, &start), "do_work");
	/* neither mapping symbols nor labels nor data */
	assert_string_equal(kallsyms_find(kallsyms, TEXT + 0x1ff, &start), "do_work");
	assert_int_equal(start, TEXT + 0x100);
	assert_string_equal(kallsyms_find(kallsyms, TEXT + 0x200, &start), "later");
	assert_string_equal(kallsyms_find(kallsyms, TEXT + 1, &start), "startup_64");
	/* modules come unsorted */
	assert_string_equal(kallsyms_find(kallsyms, 0xffffffffc0900010, &start), "first_work");
	assert_null(kallsyms_find(kallsyms, TEXT - 1, &start));
	assert_null(kallsyms_find(kallsyms, 0x400000, &start));
	kallsyms_free(kallsyms);
}

struct setup {
	struct kernel *kernel;
	struct names *names;
};

static struct setup set_up(void)
{
	struct setup setup;

	assert_int_equal(kernel_new(fixture_directory(), &setup.kernel), 0);
	assert_int_equal(names_new(NULL, &setup.names), 0);
	return setup;
}

static void tear_down(struct setup *setup)
{
	kernel_free(setup->kernel);
	names_free(setup->names);
}

static struct location *resolve(struct setup *setup, uint64_t address, bool is_return,
				bool with_address)
{
	struct location *location;

	location = location_new(kernel_file(setup->kernel), address, FRAME_KERNEL, is_return);
	assert_non_null(location);
	kernel_resolve(setup->kernel, setup->names, location, with_address);
	return location;
}

static const char *name_of(const struct location *location)
{
	return location->line_count ? location->lines[0].function->name : "";
}

static void check(struct setup *setup, uint64_t address, bool is_return, const char *object,
		  uint64_t expected, const char *name)
{
	struct location *location = resolve(setup, address, is_return, true);

	assert_string_equal(name_of(location), name);
	assert_string_equal(location->object ? location->object->path : "", object);
	assert_int_equal(location->address, expected);
	assert_int_equal(location->source, !name[0] ? SOURCE_NONE : !object[0] ? SOURCE_BPF :
					   object[0] == '[' ? SOURCE_KERNEL : SOURCE_MODULE);
	location_unref(location);
}

static void addresses_do_not_tell_where_the_kernel_is(void **state)
{
	struct setup setup = set_up();

	(void)state;
	check(&setup, TEXT + 0x110, false, "[kernel]", LINK + 0x110, "do_work");
	check(&setup, 0xffffffffc0a01104, false, "second", 0x104, "second_work");
	check(&setup, 0xffffffffc0900004, false, "first", 4, "first_work");
	/* a call that does not return ends its function: its return address is the next one's */
	check(&setup, TEXT + 0x200, true, "[kernel]", LINK + 0x200, "do_work");
	check(&setup, TEXT + 0x200, false, "[kernel]", LINK + 0x200, "later");
	/* no place in any file */
	check(&setup, 0xffffffffc0b00010, false, "", 0, "bpf_prog_6deef7357e7b4530_dump");
	/* text that nobody owns must not get the last function before it */
	check(&setup, 0xffffffffc0a01000 + 16384, false, "", 0, "");
	check(&setup, TEXT - 0x1000, false, "", 0, "");
	tear_down(&setup);
}

static void objects_have_build_ids(void **state)
{
	struct setup setup = set_up();
	const struct object *kernel = mapped_file_object(kernel_file(setup.kernel));
	struct location *second = resolve(&setup, 0xffffffffc0a01104, false, true);
	struct location *first = resolve(&setup, 0xffffffffc0900004, false, true);
	char hash[33];

	(void)state;
	assert_string_equal(kernel->build_id, "00112233445566778899aabbccddeeff00112233");
	htlhash_memory("00112233445566778899aabbccddeeff00112233", 40, hash);
	assert_string_equal(kernel->htlhash, hash);
	htlhash_memory("ffffffffffffffffffff00000000000000000000", 40, hash);
	assert_string_equal(second->object->htlhash, hash);
	assert_string_equal(first->object->htlhash, "");
	assert_int_equal(kernel->state, OBJECT_READY);
	assert_int_equal(kernel->address_start, LINK);
	assert_int_equal(kernel->address_limit, LINK + 0x200000);
	assert_string_equal(second->object->build_id, "ffffffffffffffffffff00000000000000000000");
	assert_int_equal(second->object->kind, OBJECT_MODULE);
	assert_int_equal(second->object->address_limit, 16384);
	assert_string_equal(first->object->build_id, "");
	location_unref(first);
	location_unref(second);
	tear_down(&setup);
}

static void privacy_leaves_names_only(void **state)
{
	struct setup setup = set_up();
	struct location *location = resolve(&setup, TEXT + 0x110, false, false);

	(void)state;
	assert_string_equal(name_of(location), "do_work");
	assert_int_equal(location->address, 0);
	location_unref(location);
	tear_down(&setup);
}

/* kptr_restrict: every address reads as zero */
static void hidden_addresses_give_no_names(void **state)
{
	struct kallsyms *kallsyms;
	struct setup setup;

	(void)state;
	fixture_run("sed -E 's/^[0-9a-f]{16}/0000000000000000/' proc/kallsyms > proc/hidden && "
		    "mv proc/hidden proc/kallsyms");
	assert_int_equal(kallsyms_read(fixture_path("proc/kallsyms"), &kallsyms), 0);
	assert_true(kallsyms->is_hidden);
	kallsyms_free(kallsyms);
	setup = set_up();
	check(&setup, TEXT + 0x110, false, "", 0, "");
	tear_down(&setup);
	/* as systemd's ProtectKernelTunables= shows it */
	fixture_run(": > proc/kallsyms");
	assert_int_equal(kallsyms_read(fixture_path("proc/kallsyms"), &kallsyms), 0);
	assert_true(kallsyms->is_hidden);
	kallsyms_free(kallsyms);
	/* no file at all */
	fixture_run("rm proc/kallsyms proc/modules");
	setup = set_up();
	check(&setup, TEXT + 0x110, false, "", 0, "");
	tear_down(&setup);
	make_sysroot(NULL);
}

#define NOWHERE 0xffffffffc0c00010	/* no module's */

static bool is_named(struct setup *setup, uint64_t address, unsigned int number)
{
	struct location *location = resolve(setup, address, false, true);
	char name[32];
	bool is;

	snprintf(name, sizeof(name), "late_%u", number);
	is = !strcmp(name_of(location), name);
	location_unref(location);
	return is;
}

/* Reading all symbols is a hundred milliseconds: what never has a name does not bring that every window. */
static void what_has_no_name_is_sought_ever_more_rarely(void **state)
{
	struct setup setup = set_up();
	uint64_t now = clock_monotonic();
	unsigned int reads = 0;

	(void)state;
	check(&setup, NOWHERE, false, "", 0, "");
	fixture_run("echo 'ffffffffc0c00000 t late [bpf]' >> proc/kallsyms");
	kernel_refresh(setup.kernel, now + 19 * NSEC_PER_SEC);
	check(&setup, NOWHERE, false, "", 0, "");
	/* it may have come unheard */
	kernel_refresh(setup.kernel, now + 21 * NSEC_PER_SEC);
	check(&setup, NOWHERE, false, "", 0, "late");
	/* twenty minutes of windows, each with an address that has no name */
	for (unsigned int i = 3; i <= 60; i++) {
		fixture_run("sed -i 's/ late[^ ]*/ late_%u/' proc/kallsyms", i);
		check(&setup, TEXT - 0x1000, false, "", 0, "");
		kernel_refresh(setup.kernel, now + i * 20 * NSEC_PER_SEC);
		reads += is_named(&setup, NOWHERE, i);
	}
	assert_in_range(reads, 4, 6);
	tear_down(&setup);
	make_sysroot(NULL);
}

static void a_module_brings_its_names(void **state)
{
	struct setup setup = set_up();
	const uint64_t now = clock_monotonic();

	(void)state;
	check(&setup, NOWHERE, false, "", 0, "");
	fixture_run("echo 'third 16384 0 - Live 0xffffffffc0c00000' >> proc/modules && "
		    "echo 'ffffffffc0c00000 t third_work [third]' >> proc/kallsyms");
	kernel_refresh(setup.kernel, now + 9 * NSEC_PER_SEC);
	check(&setup, NOWHERE, false, "third", 16, "");
	/* what the others are has not changed */
	check(&setup, 0xffffffffc0900004, false, "first", 4, "first_work");
	kernel_refresh(setup.kernel, now + 11 * NSEC_PER_SEC);
	check(&setup, NOWHERE, false, "third", 16, "third_work");
	tear_down(&setup);
	make_sysroot(NULL);
}

static void check_late(struct setup *setup, uint64_t address, const char *name, bool is_late)
{
	struct location *location = resolve(setup, address, false, true);

	assert_string_equal(name_of(location), name);
	assert_int_equal(location->is_late, is_late);
	location_unref(location);
}

/* There is no time to read them again: what has no name for that says so, and nothing else. */
static void names_that_symbols_were_not_read_for_are_late(void **state)
{
	struct setup setup = set_up();
	const uint64_t now = clock_monotonic();

	(void)state;
	fixture_run("echo 'third 16384 0 - Live 0xffffffffc0c00000' >> proc/modules && "
		    "echo 'ffffffffc0c00000 t third_work [third]' >> proc/kallsyms");
	kernel_let_read(setup.kernel, false);
	for (int i = 11; i < 13; i++) {
		kernel_refresh(setup.kernel, now + i * NSEC_PER_SEC);
		check_late(&setup, NOWHERE, "", true);
		check_late(&setup, 0xffffffffc0900004, "first_work", false);
		check_late(&setup, TEXT + 0x110, "do_work", false);
	}
	kernel_let_read(setup.kernel, true);
	kernel_refresh(setup.kernel, now + 13 * NSEC_PER_SEC);
	check_late(&setup, NOWHERE, "third_work", false);
	tear_down(&setup);
	make_sysroot(NULL);
}

/* Its samples of before are in the batch, or in the next one, which had begun. */
static void check_replaced(struct setup *setup, uint64_t now, uint64_t address, const char *object, const char *name)
{
	kernel_refresh(setup->kernel, now + 11 * NSEC_PER_SEC);
	check(setup, address, false, "", 0, "");
	kernel_refresh(setup->kernel, now + 12 * NSEC_PER_SEC);
	check(setup, address, false, "", 0, "");
	kernel_refresh(setup->kernel, now + 13 * NSEC_PER_SEC);
	check(setup, address, false, object, 4, name);
}

static void a_module_has_not_the_names_of_the_one_before(void **state)
{
	struct setup setup = set_up();
	const uint64_t now = clock_monotonic();

	(void)state;
	check(&setup, 0xffffffffc0900004, false, "first", 4, "first_work");
	fixture_run("sed -i 's/^first/other/' proc/modules && sed -i 's/first_work.*/other_work [other]/' proc/kallsyms");
	check_replaced(&setup, now, 0xffffffffc0900004, "other", "other_work");
	tear_down(&setup);
	make_sysroot(NULL);
}

/* The same name, place and size, but another build. */
static void load_again(bool was_sampled)
{
	struct setup setup = set_up();
	const uint64_t now = clock_monotonic();

	if (was_sampled)
		check(&setup, 0xffffffffc0900004, false, "first", 4, "first_work");
	fixture_run("mv sys/module/first sys/module/before && mkdir -p sys/module/first && "
		    "sed -i 's/first_work/next_work/' proc/kallsyms");
	check_replaced(&setup, now, 0xffffffffc0900004, "first", "next_work");
	tear_down(&setup);
	fixture_run("rm -r sys/module/before");
	make_sysroot(NULL);
}

static void a_module_that_was_loaded_again_is_another(void **state)
{
	(void)state;
	load_again(true);
}

static void a_module_that_was_loaded_again_has_new_symbols(void **state)
{
	(void)state;
	load_again(false);
}

static void a_module_that_left_names_nothing(void **state)
{
	struct setup setup = set_up();
	const uint64_t now = clock_monotonic();

	(void)state;
	check(&setup, 0xffffffffc0900004, false, "first", 4, "first_work");
	fixture_run("sed -i '/^first/d' proc/modules");
	kernel_refresh(setup.kernel, now + 2 * NSEC_PER_SEC);
	check(&setup, 0xffffffffc0900004, false, "", 0, "");
	fixture_run("echo 'ffffffffc0900000 t bpf_prog_1_late [bpf]' >proc/kallsyms.bpf && "
		    "grep -v first_work proc/kallsyms >>proc/kallsyms.bpf && mv proc/kallsyms.bpf proc/kallsyms");
	kernel_refresh(setup.kernel, now + 11 * NSEC_PER_SEC);
	check(&setup, 0xffffffffc0900004, false, "", 0, "");
	kernel_refresh(setup.kernel, now + 12 * NSEC_PER_SEC);
	check(&setup, 0xffffffffc0900004, false, "", 0, "bpf_prog_1_late");
	tear_down(&setup);
	make_sysroot(NULL);
}

/* The window in which that is seen has its samples, and what came since would name them. */
static void a_module_that_left_is_not_what_came_since(void **state)
{
	struct setup setup = set_up();
	const uint64_t now = clock_monotonic();

	(void)state;
	fixture_run("sed -i '/^first/d' proc/modules && "
		    "sed -i 's/first_work.*/bpf_prog_1_late [bpf]/' proc/kallsyms");
	kernel_refresh(setup.kernel, now + 11 * NSEC_PER_SEC);
	check(&setup, 0xffffffffc0900004, false, "", 0, "");
	kernel_refresh(setup.kernel, now + 22 * NSEC_PER_SEC);
	check(&setup, 0xffffffffc0900004, false, "", 0, "");
	kernel_refresh(setup.kernel, now + 33 * NSEC_PER_SEC);
	check(&setup, 0xffffffffc0900004, false, "", 0, "bpf_prog_1_late");
	tear_down(&setup);
	make_sysroot(NULL);
}

/* One that comes into the room of another's data takes no name from it. */
static void a_neighbour_is_not_replaced(void **state)
{
	struct setup setup = set_up();
	const uint64_t now = clock_monotonic();

	(void)state;
	check(&setup, 0xffffffffc0900004, false, "first", 4, "first_work");
	fixture_run("echo 'next 4096 0 - Live 0xffffffffc0901000' >> proc/modules && "
		    "echo 'ffffffffc0901000 t next_work [next]' >> proc/kallsyms");
	kernel_refresh(setup.kernel, now + 11 * NSEC_PER_SEC);
	check(&setup, 0xffffffffc0900004, false, "first", 4, "first_work");
	check(&setup, 0xffffffffc0901004, false, "next", 4, "next_work");
	tear_down(&setup);
	make_sysroot(NULL);
}

static void what_cannot_be_read_is_as_it_was(void **state)
{
	struct setup setup = set_up();
	const uint64_t now = clock_monotonic();

	(void)state;
	check(&setup, 0xffffffffc0900004, false, "first", 4, "first_work");
	fixture_run("mv proc/modules proc/away && mkdir proc/modules");
	kernel_refresh(setup.kernel, now + 11 * NSEC_PER_SEC);
	check(&setup, 0xffffffffc0900004, false, "first", 4, "first_work");
	tear_down(&setup);
	fixture_run("rmdir proc/modules");
	make_sysroot(NULL);
}

/* Whose window is over is not used in the next one, but of the image. */
static void windows_share_what_stays(void **state)
{
	const uint64_t addresses[] = { 0xffffffffc0900004, 0xffffffffc0b00010, NOWHERE, TEXT - 16, TEXT + 0x110 };
	struct setup setup = set_up();
	struct location_cache cache;
	struct location *one, *other;
	bool is_first;

	(void)state;
	location_cache_init(&cache);
	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		assert_int_equal(location_cache_get(&cache, kernel_file(setup.kernel), addresses[i], FRAME_KERNEL, false,
						    &one, &is_first), 0);
		location_ref(one);
		location_cache_advance(&cache);
		assert_int_equal(location_cache_get(&cache, kernel_file(setup.kernel), addresses[i], FRAME_KERNEL, false,
						    &other, &is_first), 0);
		assert_int_equal(one == other, addresses[i] == TEXT + 0x110);
		location_unref(one);
	}
	location_cache_free(&cache);
	tear_down(&setup);
}

/* A trampoline or a program of BPF that came where another was; the side band tells. */
static void stale_symbols_name_no_other_text(void **state)
{
	struct setup setup = set_up();
	const uint64_t now = clock_monotonic();

	(void)state;
	fixture_run("sed -i 's/bpf_prog.*/ftrace_trampoline [__builtin__ftrace]/' proc/kallsyms");
	kernel_changed(setup.kernel);
	kernel_refresh(setup.kernel, now + 2 * NSEC_PER_SEC);
	check(&setup, 0xffffffffc0b00010, false, "", 0, "");
	check(&setup, TEXT + 0x110, false, "[kernel]", LINK + 0x110, "do_work");
	kernel_refresh(setup.kernel, now + 11 * NSEC_PER_SEC);
	check(&setup, 0xffffffffc0b00010, false, "", 0, "ftrace_trampoline");
	tear_down(&setup);
	make_sysroot(NULL);
}

static void garbage_is_skipped(void **state)
{
	struct kallsyms *kallsyms;
	uint64_t start;

	(void)state;
	fixture_write("garbage", "\n\n \nxyz\nffffffff81000000\nffffffff81000000 T\n"
				 "ffffffff81000000 T \nffffffff81000000T name\n"
				 "-1 T minus\nffffffff81000010 t good\n"
				 "ffffffffffffffffffffffff t too_long_a_number\n");
	assert_int_equal(kallsyms_read(fixture_path("garbage"), &kallsyms), 0);
	assert_string_equal(kallsyms_find(kallsyms, 0xffffffff81000020, &start), "good");
	kallsyms_free(kallsyms);
}

static void a_big_kernel_fits(void **state)
{
	size_t used = atomic_load(&pool_get(POOL_SYMBOLS)->used);
	struct kallsyms *kallsyms;
	FILE *file = fopen(fixture_path("big"), "we");
	uint64_t start;

	(void)state;
	for (int i = 0; i < 150000; i++)
		fprintf(file, "%016" PRIx64 " t a_function_of_usual_length_%d\n",
			TEXT + (uint64_t)i * 64, i);
	fclose(file);
	assert_int_equal(kallsyms_read(fixture_path("big"), &kallsyms), 0);
	assert_int_equal(kallsyms->count, 150000);
	assert_false(kallsyms->is_partial);
	assert_true(atomic_load(&pool_get(POOL_SYMBOLS)->used) - used < 10 * 1024 * 1024);
	assert_string_equal(kallsyms_find(kallsyms, TEXT + 149999 * 64 + 3, &start),
			    "a_function_of_usual_length_149999");
	kallsyms_free(kallsyms);
	assert_int_equal(atomic_load(&pool_get(POOL_SYMBOLS)->used), used);
}

/* Every function of the kernel that runs the test, where it may be seen. */
static void the_running_kernel_is_read(void **state)
{
	struct kallsyms *kallsyms;
	char line[512], type, name[256];
	uint64_t address, start;
	size_t checked = 0, same = 0;
	FILE *file;

	(void)state;
	if (kallsyms_read("/proc/kallsyms", &kallsyms) < 0 || kallsyms->is_hidden) {
		print_message("kernel addresses are hidden here\n");
		skip();
	}
	print_message("%u kernel functions in %zu bytes\n", kallsyms->count, kallsyms->bytes);
	file = fopen("/proc/kallsyms", "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%" SCNx64 " %c %255s", &address, &type, name) != 3 ||
		    !strchr("tT", type) || address < 1ULL << 63)
			continue;
		checked++;
		/* or an alias of it */
		assert_non_null(kallsyms_find(kallsyms, address, &start));
		assert_int_equal(start, address);
		same += !strcmp(kallsyms_find(kallsyms, address, &start), name);
	}
	assert_true(checked > 1000);
	assert_true(same * 10 > checked * 7);
	fclose(file);
	kallsyms_free(kallsyms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_found_by_address),
		cmocka_unit_test(addresses_do_not_tell_where_the_kernel_is),
		cmocka_unit_test(objects_have_build_ids),
		cmocka_unit_test(privacy_leaves_names_only),
		cmocka_unit_test(hidden_addresses_give_no_names),
		cmocka_unit_test(what_has_no_name_is_sought_ever_more_rarely),
		cmocka_unit_test(a_module_brings_its_names),
		cmocka_unit_test(names_that_symbols_were_not_read_for_are_late),
		cmocka_unit_test(a_module_has_not_the_names_of_the_one_before),
		cmocka_unit_test(a_module_that_was_loaded_again_is_another),
		cmocka_unit_test(a_module_that_left_names_nothing),
		cmocka_unit_test(a_module_that_left_is_not_what_came_since),
		cmocka_unit_test(a_module_that_was_loaded_again_has_new_symbols),
		cmocka_unit_test(a_neighbour_is_not_replaced),
		cmocka_unit_test(what_cannot_be_read_is_as_it_was),
		cmocka_unit_test(windows_share_what_stays),
		cmocka_unit_test(stale_symbols_name_no_other_text),
		cmocka_unit_test(garbage_is_skipped),
		cmocka_unit_test(a_big_kernel_fits),
		cmocka_unit_test(the_running_kernel_is_read),
	};

	return cmocka_run_group_tests(tests, make_sysroot, NULL);
}
