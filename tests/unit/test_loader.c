// SPDX-License-Identifier: Apache-2.0
/* From mapping lists of real programs to what a session is asked for; the session is the test's. */
#include "fixture.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "base/pool.h"
#include "helper/parser_ask.h"
#include "resolve/symbolizer.h"
#include "resolve/loader.h"

#include <stacktap/unwind_table.h>

enum {
	TABLES_MAX = 16,
	RANGES_MAX = 16,
	PID = 4194400,	/* above every kernel's pid_max */
};

#define BASE 0x7f0000000000ULL

static const char source[] =
	"#include <stdlib.h>\n"
	"int __attribute__((noinline)) inner(int n)\n"
	"{ volatile int a[40]; a[n] = rand(); return a[n]; }\n"
	"int main(int argc, char **argv) { (void)argv; return inner(argc) & 1; }\n";

static struct held {
	uint64_t id, bytes, hit;
	uint64_t *copy;
} held[TABLES_MAX];

static struct session {
	uint64_t next_id, limit, now;
	uint64_t starved_ns;	/* of open_ns nobody has a CPU */
	uint64_t open_ns;	/* that opening a file takes */
	unsigned int loads, drops, sets, images;
	int set_error, image_error, open_error;
	struct stacktap_mappings_set set;
	struct stacktap_mapping ranges[RANGES_MAX];
} session;

static struct symbolizer *symbolizer;
static struct loader *loader;
static struct image *image;

static struct held *find_held(uint64_t id)
{
	for (size_t i = 0; i < TABLES_MAX; i++)
		if (held[i].id == id)
			return &held[i];
	return NULL;
}

static int load_table(struct stacktap_table_load *load)
{
	const void *data = (const void *)(uintptr_t)load->data;
	struct unwind_table view;
	struct held *free_slot;
	uint64_t used = 0;

	session.loads++;
	assert_int_equal(unwind_table_check(data, load->data_bytes, &view), 0);
	for (size_t i = 0; i < TABLES_MAX; i++) {
		if (held[i].id && held[i].bytes == load->data_bytes &&
		    !memcmp(held[i].copy, data, load->data_bytes)) {
			load->table_id = held[i].id;
			return 0;
		}
		used += held[i].id ? held[i].bytes : 0;
	}
	if (used + load->data_bytes > session.limit)
		return -ENOSPC;
	free_slot = find_held(0);
	assert_non_null(free_slot);
	free_slot->copy = malloc(load->data_bytes);
	memcpy(free_slot->copy, data, load->data_bytes);
	free_slot->bytes = load->data_bytes;
	free_slot->id = load->table_id = ++session.next_id;
	free_slot->hit = 0;
	return 0;
}

static int drop_table(uint64_t id)
{
	struct held *one = find_held(id);

	session.drops++;
	assert_non_null(one);
	free(one->copy);
	*one = (struct held){ 0 };
	return 0;
}

static int set_mappings(const struct stacktap_mappings_set *set)
{
	const struct stacktap_mapping *ranges = (const void *)(uintptr_t)set->mappings;

	session.sets++;
	assert_in_range(set->count, 0, RANGES_MAX);
	for (uint32_t i = 0; i < set->count; i++) {
		assert_true(ranges[i].start < ranges[i].end);
		assert_true(!i || ranges[i].start >= ranges[i - 1].end);
		if (ranges[i].table_id && !find_held(ranges[i].table_id))
			return -ENOENT;
	}
	session.set = *set;
	memcpy(session.ranges, ranges, set->count * sizeof(*ranges));
	return session.set_error;
}

static int request(void *ctx _unused_, unsigned long number, void *argument)
{
	struct stacktap_image *asked = argument;

	switch (number) {
	case STACKTAP_IOC_TABLE_LOAD:
		return load_table(argument);
	case STACKTAP_IOC_TABLE_DROP:
		return drop_table(((struct stacktap_table_drop *)argument)->table_id);
	case STACKTAP_IOC_MAPPINGS_SET:
		return set_mappings(argument);
	case STACKTAP_IOC_IMAGE:
		session.images++;
		asked->start_time = 500 * NSEC_PER_MSEC + 7;
		asked->exec_id = 42;
		return session.image_error;
	}
	fail_msg("request %lx", number);
	return -ENOTTY;
}

static int open_object(void *ctx _unused_, struct object *object, uint32_t tgid, int *ret_fd)
{
	session.now += session.open_ns;
	symbolizer_parser(symbolizer)->starved_ns += session.starved_ns;
	if (session.open_error)
		return session.open_error;
	return symbolizer_open(symbolizer, object, tgid, ret_fd);
}

static int each_table(void *ctx _unused_,
		      int (*each)(void *each_ctx, uint64_t id, uint64_t bytes, uint64_t hit),
		      void *each_ctx)
{
	int r = 0;

	for (size_t i = 0; i < TABLES_MAX && !r; i++)
		if (held[i].id)
			r = each(each_ctx, held[i].id, held[i].bytes, held[i].hit);
	return r;
}

static uint64_t now(void)
{
	return session.now;
}

static int setup(void **state _unused_)
{
	const struct symbolizer_options options = { .sysroot = "" };
	struct tables_ops ops = {
		.request = request,
		.open = open_object,
		.each_table = each_table,
		.now = now,
	};

	session = (struct session){ .limit = 1 << 20, .now = NSEC_PER_SEC };
	image = image_new(NULL, PID, 0, "program");
	if (!image || symbolizer_new(&options, &symbolizer))
		return -ENOMEM;
	ops.parser = symbolizer_parser(symbolizer);
	return loader_new(&ops, &loader);
}

static int teardown(void **state _unused_)
{
	for (size_t i = 0; i < TABLES_MAX; i++) {
		free(held[i].copy);
		held[i] = (struct held){ 0 };
	}
	image_unref(image);
	loader_free(loader);
	symbolizer_free(symbolizer);
	return pool_get(POOL_TABLES)->used || pool_get(POOL_PROCESSES)->used;
}

/* Map the file's executable segment, or its first @bytes, at @start. Returns its offset. */
static uint64_t map(const char *path, uint64_t start, uint64_t *ret_vaddr)
{
	struct mapped_file *file = mapped_file_new(OBJECT_FILE, path);
	const struct object *object;
	uint64_t offset, end;
	bool replaced;
	struct stat st;

	assert_non_null(file);
	assert_int_equal(stat(path, &st), 0);
	file->inode = st.st_ino;
	symbolizer_see_file(symbolizer, image, file);
	object = mapped_file_object(file);
	assert_non_null(object);
	if (object->segment_count) {
		/* as the kernel does: whole pages, which the segment's ends need not be */
		offset = object->segments[0].offset & ~4095ULL;
		end = (object->segments[0].offset + object->segments[0].size + 4095) & ~4095ULL;
		*ret_vaddr = object->segments[0].vaddr - (object->segments[0].offset - offset);
	} else {
		offset = 0;
		end = 4096;
		*ret_vaddr = 0;
	}
	assert_int_equal(image_map(image, start, start + end - offset, offset, 5, file, &replaced),
			 0);
	mapped_file_unref(file);
	return offset;
}

static int load(void)
{
	struct mapping_list *list = mapping_list_new(image, 99);
	int r;

	assert_non_null(list);
	r = loader_load(loader, list);
	mapping_list_free(list);
	return r;
}

static const char *program(const char *name, const char *flags)
{
	char all[256];

	snprintf(all, sizeof(all), "-O2 -fomit-frame-pointer %s", flags);
	return fixture_build(name, all, source);
}

static struct loader_stats stats(void)
{
	struct loader_stats result;

	loader_stats(loader, &result);
	return result;
}

static void test_bias_and_table(void **state _unused_)
{
	const char *path = program("fixed", "-no-pie");
	uint64_t vaddr, address;
	const struct held *table;
	struct unwind_table view;
	const struct unwind_rule *rule;

	map(path, BASE, &vaddr);
	assert_true(vaddr > 0);
	assert_int_equal(load(), 0);
	assert_int_equal(session.set.count, 1);
	assert_int_equal(session.set.generation, 99);
	assert_int_equal(session.set.tgid, PID);
	/* no sample has told who runs there, so the module was asked */
	assert_int_equal(session.images, 1);
	assert_int_equal(session.set.exec_id, 42);
	assert_int_equal(session.ranges[0].start, BASE);
	assert_int_equal(session.ranges[0].bias, BASE - vaddr);
	/* inner() has 160 bytes of locals: once they are there the CFA is at least as far away */
	address = strtoull(fixture_ask("nm fixed | sed -n 's/ T inner$//p'"), NULL, 16);
	table = find_held(session.ranges[0].table_id);
	assert_non_null(table);
	assert_int_equal(unwind_table_check(table->copy, table->bytes, &view), 0);
	address += BASE - vaddr;	/* where it runs */
	rule = unwind_table_find(&view, address + 16 - session.ranges[0].bias);
	assert_non_null(rule);
	assert_in_range(rule->cfa_offset, 160, 300);

	assert_int_equal(stats().tables.tables, 1);
	assert_int_equal(stats().tables.compiled, 1);
	assert_int_equal(stats().tables.bytes, table->bytes);
	assert_in_range(stats().tables.rows, 4, 1000);
	assert_int_equal(stats().lists, 1);
	/* the second list needs no second table */
	assert_int_equal(load(), 0);
	assert_int_equal(session.loads, 1);
}

static void test_ranges_without_table(void **state _unused_)
{
	struct mapped_file *anonymous = mapped_file_new(OBJECT_ANONYMOUS, "");
	struct mapped_file *vdso = mapped_file_new(OBJECT_VDSO, "[vdso]");
	uint64_t vaddr;
	bool replaced;

	fixture_write("text", "no ELF file at all\n");
	map(fixture_path("text"), 0x10000, &vaddr);
	image_map(image, 0x20000, 0x30000, 0x20000, 5, anonymous, &replaced);
	symbolizer_see_file(symbolizer, image, vdso);
	image_map(image, BASE, BASE + 0x2000, 0, 5, vdso, &replaced);
	image_map(image, 0xffffffffff600000, 0xffffffffff601000, 0, 5, anonymous, &replaced);
	mapped_file_unref(anonymous);
	mapped_file_unref(vdso);
	assert_int_equal(load(), 0);
	/* the page at the top is not user memory; all else is listed */
	assert_int_equal(session.set.count, 3);
	assert_int_equal(session.ranges[0].table_id, 0);
	assert_int_equal(session.ranges[1].table_id, 0);
	assert_int_not_equal(session.ranges[2].table_id, 0);
	assert_int_equal(session.ranges[2].bias, BASE);
}

static void test_failure_is_remembered(void **state _unused_)
{
	uint64_t vaddr;

	map(fixture_build("bare", "-static -nostdlib -fno-asynchronous-unwind-tables "
			  "-fno-stack-protector -Wl,-e,enter",
			  "void enter(void) { for (;;) ; }\n"),
	    BASE, &vaddr);
	assert_int_equal(load(), 0);
	assert_int_equal(load(), 0);
	assert_int_equal(session.ranges[0].table_id, 0);
	assert_int_equal(stats().tables.failed, 1);
	assert_non_null(strstr(stats().tables.last_failed, "/bare: no unwind information"));
	assert_int_equal(session.loads, 0);
}

/* Two pages of code that lie far apart: an index of all in between is not made. */
static void test_too_large_is_named(void **state _unused_)
{
	uint64_t vaddr;

	map(fixture_build("sparse", "-static -nostdlib -fno-stack-protector -Wl,-e,enter "
			  "-Wl,--section-start=.far=0x70000000",
			  "__attribute__((section(\".far\"))) void far(void) { }\n"
			  "void enter(void) { for (;;) far(); }\n"),
	    BASE, &vaddr);
	assert_int_equal(load(), 0);
	assert_int_equal(load(), 0);
	assert_int_equal(session.ranges[0].table_id, 0);
	assert_int_equal(stats().tables.refused_files, 1);
	assert_non_null(strstr(stats().tables.last_refused, "/sparse: the table is too large"));
}

static void test_same_bytes_once(void **state _unused_)
{
	uint64_t vaddr;

	map(program("one", ""), BASE, &vaddr);
	fixture_run("cp one two");
	map(fixture_path("two"), BASE + 0x100000, &vaddr);
	assert_int_equal(load(), 0);
	assert_int_equal(session.ranges[0].table_id, session.ranges[1].table_id);
	assert_int_equal(stats().tables.tables, 1);
}

static void test_least_recently_hit_goes(void **state _unused_)
{
	uint64_t vaddr, first, second;

	map(program("one", ""), BASE, &vaddr);
	map(program("other", "-DEXTRA -fno-inline -funroll-loops -falign-functions=64"),
	    BASE + 0x100000, &vaddr);
	assert_int_equal(load(), 0);
	first = session.ranges[0].table_id;
	second = session.ranges[1].table_id;
	assert_int_not_equal(first, second);
	session.limit = stats().tables.bytes;

	/* all were loaded a moment ago: the newcomer has to do without */
	map(program("third", "-fno-inline -falign-functions=32"), BASE + 0x200000, &vaddr);
	assert_int_equal(load(), 0);
	assert_int_equal(session.drops, 0);
	assert_int_equal(session.ranges[2].table_id, 0);
	assert_int_equal(stats().tables.refused, 1);
	assert_int_equal(stats().tables.refused_files, 1);
	assert_non_null(strstr(stats().tables.last_refused, "/third: the module has no room for its "));
	assert_false(loader_wants_lists(loader));

	/* later the one that no walk has used goes */
	session.now += 60 * NSEC_PER_SEC;
	find_held(first)->hit = session.now - 20 * NSEC_PER_SEC;
	find_held(second)->hit = session.now - 30 * NSEC_PER_SEC;
	assert_int_equal(load(), 0);
	assert_int_equal(session.drops, 1);
	assert_null(find_held(second));
	assert_int_equal(session.ranges[0].table_id, first);
	assert_int_equal(session.ranges[1].table_id, 0);
	assert_int_not_equal(session.ranges[2].table_id, 0);
	assert_int_equal(stats().tables.evicted, 1);
	assert_int_equal(stats().tables.refused_files, 0);
	assert_string_equal(stats().tables.last_refused, "");
	assert_true(loader_wants_lists(loader));
	assert_false(loader_wants_lists(loader));
	/* and does not come back at once */
	assert_int_equal(load(), 0);
	assert_int_equal(session.ranges[1].table_id, 0);
	assert_int_equal(session.drops, 1);
}

static void test_forgotten_table_is_loaded_again(void **state _unused_)
{
	uint64_t vaddr, old;

	map(program("one", ""), BASE, &vaddr);
	assert_int_equal(load(), 0);
	old = session.ranges[0].table_id;
	drop_table(old);
	assert_int_equal(load(), 0);
	assert_int_not_equal(session.ranges[0].table_id, old);
	assert_non_null(find_held(session.ranges[0].table_id));
	assert_int_equal(session.loads, 2);
}

static void test_whose_list_it_is(void **state _unused_)
{
	uint64_t vaddr;

	map(program("one", ""), BASE, &vaddr);
	image->start_time = 500 * NSEC_PER_MSEC;	/* /proc's */
	assert_int_equal(load(), 0);
	image->start_time = 600 * NSEC_PER_MSEC;
	assert_int_equal(load(), -ESRCH);
	session.image_error = -ESTALE;
	image->start_time = 0;
	assert_int_equal(load(), -ESTALE);
	assert_int_equal(session.sets, 1);
	assert_int_equal(stats().lists_gone, 2);
	image->exec_id = 8;
	image->exec_id_known = true;
	image->start_time = 123456;
	assert_int_equal(load(), 0);
	assert_int_equal(session.set.start_time, 123456);
	assert_int_equal(session.set.exec_id, 8);
	session.set_error = -ENOMEM;
	assert_int_equal(load(), -ENOMEM);
	assert_int_equal(stats().lists_refused, 1);
}

static void test_compiling_takes_part_of_the_time(void **state _unused_)
{
	uint64_t vaddr;

	map(program("slow", ""), BASE, &vaddr);
	session.open_ns = 40 * NSEC_PER_SEC;
	assert_int_equal(load(), 0);
	assert_true(session.ranges[0].table_id != 0);
	/* that was more than there was to spend: the next one has to wait */
	map(program("late", "-DOTHER"), BASE + 0x10000000, &vaddr);
	assert_int_equal(load(), 0);
	assert_int_equal(session.ranges[1].table_id, 0);
	assert_int_equal(stats().tables.deferred, 1);
	assert_false(loader_wants_lists(loader));
	/* ten seconds more than there were, at a quarter of the time */
	session.now += 41 * NSEC_PER_SEC;
	assert_true(loader_wants_lists(loader));
	assert_false(loader_wants_lists(loader));
	session.open_ns = 0;
	assert_int_equal(load(), 0);
	assert_true(session.ranges[1].table_id != 0);
	assert_int_equal(stats().tables.deferred, 1);
}

/* Of fifteen seconds that one may take; half of the time is paid for however long nobody had a CPU. */
static void test_waiting_for_a_cpu_is_not_paid_for(void **state _unused_)
{
	static const char *const names[] = { "first", "second", "third" };
	uint64_t vaddr;

	session.open_ns = 20 * NSEC_PER_SEC;
	session.starved_ns = 19 * NSEC_PER_SEC;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char flags[16];

		snprintf(flags, sizeof(flags), "-DOTHER=%zu", i);
		map(program(names[i], flags), BASE + i * 0x10000000, &vaddr);
	}
	assert_int_equal(load(), 0);
	assert_true(session.ranges[0].table_id != 0);
	assert_true(session.ranges[1].table_id != 0);
	assert_int_equal(session.ranges[2].table_id, 0);
	assert_int_equal(stats().tables.deferred, 1);
}

/*
 * Who has many slow files: what it may not take any more, others may, of the same file as well. A child of it is not
 * another one.
 */
static void test_one_payer_leaves_time_for_others(void **state _unused_)
{
	struct image *hungry = image, *child;
	uint64_t vaddr;

	hungry->payer = 7;
	map(program("slow", ""), BASE, &vaddr);
	session.open_ns = 16 * NSEC_PER_SEC;
	assert_int_equal(load(), 0);
	assert_true(session.ranges[0].table_id != 0);
	map(program("late", "-DOTHER"), BASE + 0x10000000, &vaddr);
	assert_int_equal(load(), 0);
	assert_int_equal(session.ranges[1].table_id, 0);
	assert_int_equal(stats().tables.deferred, 1);
	image = child = image_new(NULL, PID + 1, 0, "child");
	assert_non_null(child);
	child->payer = 7;
	map(program("more", "-DMORE"), BASE, &vaddr);
	assert_int_equal(load(), 0);
	assert_int_equal(session.ranges[0].table_id, 0);
	assert_int_equal(stats().tables.deferred, 2);
	session.open_ns = 0;
	image = image_new(NULL, PID + 2, 0, "other");
	assert_non_null(image);
	image->payer = 8;
	map(fixture_path("late"), BASE, &vaddr);
	assert_int_equal(load(), 0);
	assert_true(session.ranges[0].table_id != 0);
	assert_int_equal(stats().tables.deferred, 2);
	image_unref(child);
	image_unref(hungry);
}

/* The pool's limit holds while a table passes; what it is refused for is told, and it comes later. */
static void test_a_table_that_passes_stays_within_the_pool(void **state _unused_)
{
	struct pool *pool = pool_get(POOL_TABLES);
	const size_t limit = pool->limit;
	uint64_t vaddr;

	map(program("first", ""), BASE, &vaddr);
	assert_int_equal(load(), 0);
	assert_true(session.ranges[0].table_id != 0);
	map(program("passing", "-DOTHER"), BASE + 0x10000000, &vaddr);
	/* what the next one is known by, but for its table */
	pool->limit = pool->used + stats().tables.bytes;
	pool->peak = pool->used;
	assert_int_equal(load(), 0);
	assert_int_equal(session.ranges[1].table_id, 0);
	assert_true(pool->peak <= pool->limit);
	assert_int_equal(stats().tables.refused_files, 1);
	assert_non_null(strstr(stats().tables.last_refused, "passing: no room for the table, see pool tables"));
	pool->limit = limit;
	session.now += 6 * NSEC_PER_SEC;
	assert_int_equal(load(), 0);
	assert_true(session.ranges[1].table_id != 0);
	assert_int_equal(stats().tables.refused_files, 0);
}

static void test_what_may_pass_is_tried_again(void **state _unused_)
{
	uint64_t vaddr;

	map(program("slow", ""), BASE, &vaddr);
	session.open_error = -EIO;
	assert_int_equal(load(), 0);
	assert_int_equal(stats().tables.failed, 1);
	session.now += 4 * NSEC_PER_SEC;
	assert_int_equal(load(), 0);
	assert_int_equal(stats().tables.failed, 1);
	session.now += 2 * NSEC_PER_SEC;
	assert_int_equal(load(), 0);
	assert_int_equal(stats().tables.failed, 2);
	/* later each time */
	session.now += 6 * NSEC_PER_SEC;
	assert_int_equal(load(), 0);
	assert_int_equal(stats().tables.failed, 2);
	session.open_error = 0;
	/* a program that maps nothing new gets its table as well */
	assert_false(loader_wants_lists(loader));
	session.now += 40 * NSEC_PER_SEC;
	assert_true(loader_wants_lists(loader));
	assert_int_equal(load(), 0);
	assert_true(session.ranges[0].table_id != 0);
}

/* That nobody had time just then says nothing of the file, whether the opener says so, or the parser. */
static void test_a_hurry_refuses_no_file(void **state _unused_)
{
	struct parser *parser = symbolizer_parser(symbolizer);
	uint64_t vaddr;

	map(program("hurried", ""), BASE, &vaddr);
	session.open_error = -ETIME;
	assert_int_equal(load(), 0);
	assert_int_equal(stats().tables.deferred, 1);
	session.open_error = 0;
	parser_until(parser, &(struct deadline){ .at = DEADLINE_NONE, .is_over = true });
	assert_int_equal(load(), 0);
	parser_until(parser, NULL);
	assert_int_equal(session.ranges[0].table_id, 0);
	assert_int_equal(stats().tables.deferred, 2);
	assert_int_equal(stats().tables.failed + stats().tables.refused_files, 0);
	assert_int_equal(load(), 0);
	assert_true(session.ranges[0].table_id != 0);
}

/* What a file system says of a quota is an error of the file's, and may pass. */
static void test_a_quota_is_no_want_of_time(void **state _unused_)
{
	uint64_t vaddr;

	map(program("of_a_quota", ""), BASE, &vaddr);
	session.open_error = -EDQUOT;
	assert_int_equal(load(), 0);
	assert_int_equal(stats().tables.deferred, 0);
	assert_int_equal(stats().tables.failed, 1);
	session.open_error = 0;
	session.now += 60 * NSEC_PER_SEC;
	assert_int_equal(load(), 0);
	assert_true(session.ranges[0].table_id != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bias_and_table, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ranges_without_table, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failure_is_remembered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_large_is_named, setup, teardown),
		cmocka_unit_test_setup_teardown(test_same_bytes_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_least_recently_hit_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forgotten_table_is_loaded_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_compiling_takes_part_of_the_time, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_waiting_for_a_cpu_is_not_paid_for, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_payer_leaves_time_for_others, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_table_that_passes_stays_within_the_pool, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_what_may_pass_is_tried_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_hurry_refuses_no_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_quota_is_no_want_of_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_whose_list_it_is, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
