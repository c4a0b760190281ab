// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <string.h>

#include "base/clock.h"
#include "process/process.h"
#include "process/scan.h"
#include "process/table.h"
#include "profile/window.h"

#define MS NSEC_PER_MSEC
#define BOOT(ms) ((ms) * MS + 123)	/* a start time finer than /proc's ticks */

static struct process_table *table;
static unsigned int images_seen, files_seen;
static struct image *last_parent;

static void see_image(void *ctx _unused_, struct image *image _unused_, struct image *parent)
{
	images_seen++;
	last_parent = parent;
}

static bool has_room;

static bool see_file(void *ctx _unused_, struct image *image _unused_,
		     struct mapped_file *file _unused_)
{
	files_seen++;
	return has_room;
}

static int setup(void **state _unused_)
{
	const struct process_observer observer = { .image = see_image, .file = see_file };

	images_seen = files_seen = 0;
	has_room = true;
	return process_table_new(&observer, &table);
}

static int teardown(void **state _unused_)
{
	process_table_free(table);
	/* every image, list, file and table has given its bytes back */
	return pool_get(POOL_PROCESSES)->used != 0;
}

static void map(uint64_t time, uint32_t pid, uint64_t address, uint64_t length, uint64_t offset,
		uint64_t inode, const char *path)
{
	process_table_mmap(table, &(struct sideband_mmap){
					  .time = time,
					  .pid = pid,
					  .tid = pid,
					  .address = address,
					  .length = length,
					  .file_offset = offset,
					  .major = 8,
					  .minor = 1,
					  .inode = inode,
					  .inode_generation = 3,
					  .path = path,
				  });
}

static void exec_(uint64_t time, uint32_t pid, const char *comm)
{
	process_table_comm(table, &(struct sideband_task){ .time = time, .pid = pid, .tid = pid,
							   .comm = comm, .is_exec = true });
}

static void fork_(uint64_t time, uint32_t pid, uint32_t tid, uint32_t parent)
{
	process_table_fork(table, &(struct sideband_task){ .time = time, .pid = pid, .tid = tid,
							   .parent_pid = parent,
							   .parent_tid = parent });
}

static void exit_(uint64_t time, uint32_t pid, uint32_t tid)
{
	process_table_exit(table, &(struct sideband_task){ .time = time, .pid = pid, .tid = tid });
}

static uint16_t sample_flags = STACKTAP_SAMPLE_USER_MODE;

static struct stacktap_sample sample_of(uint64_t time, uint32_t tgid, uint64_t start, uint64_t exec_id)
{
	return (struct stacktap_sample){
		.header = { .time = time, .type = STACKTAP_RECORD_SAMPLE, .flags = sample_flags },
		.tgid = tgid,
		.tid = tgid,
		.start_time = start,
		.exec_id = exec_id,
		.comm = "sampled",
	};
}

static struct image *image_of(uint64_t time, uint32_t tgid, uint64_t start, uint64_t exec_id,
			      uint16_t *ret_marks)
{
	const struct stacktap_sample sample = sample_of(time, tgid, start, exec_id);

	return process_table_image(table, &sample, ret_marks);
}

/* Which file a sample's address is attributed to; "?" when none. Fails unless the marks match. */
static const char *where(uint64_t time, uint32_t tgid, uint64_t start, uint64_t exec_id,
			 uint64_t address, uint16_t marks)
{
	uint16_t got;
	struct image *image = image_of(time, tgid, start, exec_id, &got);
	const struct mapping *mapping;

	assert_non_null(image);
	assert_int_equal(got, marks);
	mapping = image_find_mapping(image, address);
	return mapping ? mapping->file->path : "?";
}

static uint32_t wanted_scan(void)
{
	uint32_t tgid;

	return process_table_wants_scan(table, &tgid) ? tgid : UINT32_MAX;
}

static void merge(uint64_t time, uint32_t tgid, uint64_t start, const char *comm, size_t count,
		  const struct process_snapshot_mapping *mappings)
{
	struct process_snapshot snapshot = {
		.time = time,
		.tgid = tgid,
		.start_time = start / (10 * MS) * (10 * MS),
		.mapping_count = count,
	};
	struct process_snapshot_mapping copies[8];

	memcpy(copies, mappings, count * sizeof(*mappings));
	snprintf(snapshot.comm, sizeof(snapshot.comm), "%s", comm);
	snapshot.mappings = copies;
	process_table_merge(table, &snapshot);
}

static const struct process_snapshot_mapping scanned_a[] = {
	{ 0x1000, 0x3000, 0, 8, 1, 11, (char *)(uintptr_t)"/bin/a" },
	{ 0x7000, 0x9000, 0x1000, 8, 1, 12, (char *)(uintptr_t)"/lib/c" },
};

static void test_exec_replaces_everything(void **state _unused_)
{
	uint16_t marks;

	exec_(100 * MS, 10, "first");
	map(101 * MS, 10, 0x1000, 0x1000, 0, 1, "/bin/first");
	map(101 * MS, 10, 0x8000, 0x1000, 0, 2, "/lib/x");
	exec_(200 * MS, 10, "second");
	map(201 * MS, 10, 0x1000, 0x1000, 0, 3, "/bin/second");

	/* the events are ahead of the samples: each goes to what ran at its time */
	assert_string_equal(where(150 * MS, 10, BOOT(90), 7, 0x1800, 0), "/bin/first");
	assert_string_equal(where(250 * MS, 10, BOOT(90), 8, 0x1800, 0), "/bin/second");
	assert_string_equal(where(160 * MS, 10, BOOT(90), 7, 0x8800, 0), "/lib/x");
	assert_string_equal(where(260 * MS, 10, BOOT(90), 8, 0x8800, 0), "?");
	/* what /proc says by then is of the second alone */
	assert_true(image_of(170 * MS, 10, BOOT(90), 7, &marks)->is_succeeded);
	assert_false(image_of(270 * MS, 10, BOOT(90), 8, &marks)->is_succeeded);
	assert_int_equal(wanted_scan(), UINT32_MAX);
}

static void test_sample_around_an_exec_is_marked(void **state _unused_)
{
	exec_(100 * MS, 10, "first");
	map(100 * MS, 10, 0x1000, 0x1000, 0, 1, "/bin/first");
	exec_(200 * MS, 10, "second");
	map(200 * MS, 10, 0x1000, 0x1000, 0, 3, "/bin/second");
	/* nothing has told yet whose number 7 is */
	where(200 * MS - 5000, 10, BOOT(90), 7, 0x1800, SAMPLE_DOUBTFUL);
	assert_string_equal(where(150 * MS, 10, BOOT(90), 7, 0x1800, 0), "/bin/first");
	/* now it has */
	assert_string_equal(where(200 * MS - 5000, 10, BOOT(90), 7, 0x1800, 0), "/bin/first");
	assert_string_equal(where(200 * MS - 5000, 10, BOOT(90), 8, 0x1800, 0), "/bin/second");
}

/* The exec event comes before the number changes: what is sampled in between says the old one. */
static void test_old_number_right_after_an_exec(void **state _unused_)
{
	exec_(10 * MS, 5, "parent");
	map(10 * MS, 5, 0x1000, 0x1000, 0, 1, "/bin/parent");
	fork_(100 * MS, 10, 10, 5);
	exec_(110 * MS, 10, "child");
	map(111 * MS, 10, 0x1000, 0x1000, 0, 2, "/bin/child");
	sample_flags = 0;
	where(110 * MS + 50000, 10, BOOT(100), 7, 0x1800, 0);
	sample_flags = STACKTAP_SAMPLE_USER_MODE;
	assert_string_equal(where(120 * MS, 10, BOOT(100), 8, 0x1800, 0), "/bin/child");
	assert_int_equal(wanted_scan(), UINT32_MAX);
	/* one that never leaves the kernel is bound in the end */
	sample_flags = 0;
	exec_(500 * MS, 10, "next");
	where(501 * MS, 10, BOOT(100), 8, 0x1800, 0);
	where(700 * MS, 10, BOOT(100), 9, 0x1800, 0);
	sample_flags = STACKTAP_SAMPLE_USER_MODE;
	where(710 * MS, 10, BOOT(100), 10, 0x1800, SAMPLE_DOUBTFUL);
}

static void test_fork_copies_and_shares_files(void **state _unused_)
{
	uint16_t marks;
	struct image *parent, *child;

	exec_(100 * MS, 10, "shell");
	map(101 * MS, 10, 0x1000, 0x1000, 0, 1, "/bin/shell");
	fork_(200 * MS, 11, 11, 10);
	/* what the parent maps later is not the child's */
	map(201 * MS, 10, 0x5000, 0x1000, 0, 5, "/lib/late");
	assert_string_equal(where(210 * MS, 11, BOOT(190), 7, 0x1800, 0), "/bin/shell");
	assert_string_equal(where(210 * MS, 11, BOOT(190), 7, 0x5800, 0), "?");
	assert_string_equal(where(210 * MS, 10, BOOT(90), 7, 0x5800, 0), "/lib/late");
	parent = image_of(210 * MS, 10, BOOT(90), 7, &marks);
	child = image_of(210 * MS, 11, BOOT(190), 7, &marks);
	assert_ptr_equal(image_find_mapping(parent, 0x1000)->file,
			 image_find_mapping(child, 0x1000)->file);
	assert_string_equal(child->comm, "shell");
	/* and the child's exec leaves the parent alone */
	exec_(220 * MS, 11, "ls");
	map(221 * MS, 11, 0x1000, 0x1000, 0, 6, "/bin/ls");
	assert_string_equal(where(230 * MS, 11, BOOT(190), 8, 0x1800, 0), "/bin/ls");
	assert_string_equal(where(230 * MS, 10, BOOT(90), 7, 0x1800, 0), "/bin/shell");
	assert_ptr_equal(last_parent, parent);
	assert_int_equal(wanted_scan(), UINT32_MAX);
}

static void test_short_lived_needs_no_proc(void **state _unused_)
{
	exec_(1 * MS, 1, "parent");
	map(1 * MS, 1, 0x1000, 0x1000, 0, 1, "/bin/parent");
	for (uint32_t pid = 100; pid < 300; pid++) {
		uint64_t t = pid * 10 * MS;
		char path[32];

		snprintf(path, sizeof(path), "/tmp/program%u", pid);
		fork_(t, pid, pid, 1);
		exec_(t + 1 * MS, pid, "program");
		map(t + 2 * MS, pid, 0x1000, 0x1000, 0, pid, path);
		exit_(t + 9 * MS, pid, pid);
		/* delivered after all of it */
		assert_string_equal(where(t + 5 * MS, pid, BOOT(pid * 10), 2, 0x1234, 0), path);
		assert_string_equal(where(t + MS / 2, pid, BOOT(pid * 10), 1, 0x1234, 0),
				    "/bin/parent");
	}
	assert_int_equal(wanted_scan(), UINT32_MAX);
	/* thread B is shown each program in time */
	assert_true(images_seen >= 200 && files_seen >= 200);
}

static void test_pid_reuse(void **state _unused_)
{
	exec_(100 * MS, 10, "old");
	map(100 * MS, 10, 0x1000, 0x1000, 0, 1, "/bin/old");
	where(110 * MS, 10, BOOT(90), 1, 0x1800, 0);
	exit_(120 * MS, 10, 10);
	exec_(10 * MS, 5, "parent");
	map(10 * MS, 5, 0x1000, 0x1000, 0, 2, "/bin/parent");
	fork_(130 * MS, 10, 10, 5);
	/* even with the old one's number the start times tell them apart */
	assert_string_equal(where(140 * MS, 10, BOOT(130), 1, 0x1800, 0), "/bin/parent");
	assert_string_equal(where(115 * MS, 10, BOOT(90), 1, 0x1800, 0), "/bin/old");
}

static void test_unseen_pid_reuse_is_doubted(void **state _unused_)
{
	exec_(100 * MS, 10, "old");
	map(100 * MS, 10, 0x1000, 0x1000, 0, 1, "/bin/old");
	where(110 * MS, 10, BOOT(90), 1, 0x1800, 0);
	/* exit, fork and exec were lost */
	assert_string_equal(where(500 * MS, 10, BOOT(400), 1, 0x1800, SAMPLE_DOUBTFUL), "?");
	assert_int_equal(wanted_scan(), 10);
	merge(600 * MS, 10, BOOT(400), "new", 2, scanned_a);
	assert_string_equal(where(700 * MS, 10, BOOT(400), 1, 0x1800, 0), "/bin/a");
	/* from before anybody looked */
	where(550 * MS, 10, BOOT(400), 1, 0x1800, SAMPLE_DOUBTFUL);
	assert_string_equal(where(120 * MS, 10, BOOT(90), 1, 0x1800, 0), "/bin/old");
}

static void test_lost_exec_is_doubted(void **state _unused_)
{
	exec_(100 * MS, 10, "old");
	map(100 * MS, 10, 0x1000, 0x1000, 0, 1, "/bin/old");
	where(110 * MS, 10, BOOT(90), 1, 0x1800, 0);
	assert_string_equal(where(200 * MS, 10, BOOT(90), 2, 0x1800, SAMPLE_DOUBTFUL), "?");
	assert_int_equal(wanted_scan(), 10);
	assert_string_equal(where(115 * MS, 10, BOOT(90), 1, 0x1800, 0), "/bin/old");
}

static void test_unknown_process_is_scanned(void **state _unused_)
{
	where(100 * MS, 77, BOOT(50), 1, 0x1800, SAMPLE_DOUBTFUL);
	assert_int_equal(wanted_scan(), 77);
	/* asked for once, then at growing intervals */
	where(101 * MS, 77, BOOT(50), 1, 0x1800, SAMPLE_DOUBTFUL);
	assert_int_equal(wanted_scan(), UINT32_MAX);
	where(1200 * MS, 77, BOOT(50), 1, 0x1800, SAMPLE_DOUBTFUL);
	assert_int_equal(wanted_scan(), 77);
	where(2300 * MS, 77, BOOT(50), 1, 0x1800, SAMPLE_DOUBTFUL);
	assert_int_equal(wanted_scan(), UINT32_MAX);
	merge(2400 * MS, 77, BOOT(50), "sampled", 2, scanned_a);
	assert_string_equal(where(2500 * MS, 77, BOOT(50), 1, 0x7800, 0), "/lib/c");
	process_table_gone(table, 77, 2600 * MS);
	process_table_expire(table, 10000 * MS);
	assert_int_equal(process_table_count(table), 0);
}

static void test_overlap_cuts_and_splits(void **state _unused_)
{
	uint16_t marks;
	struct image *image;
	const struct mapping *mapping;

	exec_(100 * MS, 10, "a");
	map(100 * MS, 10, 0x10000, 0x10000, 0x5000, 1, "/lib/big");
	where(110 * MS, 10, BOOT(90), 1, 0x10000, 0);
	/* into the middle: both ends stay, and know their offsets */
	map(120 * MS, 10, 0x14000, 0x1000, 0, 2, "/lib/small");
	image = image_of(130 * MS, 10, BOOT(90), 1, &marks);
	assert_int_equal(image->mapping_count, 3);
	mapping = image_find_mapping(image, 0x13fff);
	assert_int_equal(mapping->start, 0x10000);
	assert_int_equal(mapping->end, 0x14000);
	assert_int_equal(mapping->file_offset, 0x5000);
	assert_string_equal(image_find_mapping(image, 0x14000)->file->path, "/lib/small");
	mapping = image_find_mapping(image, 0x15000);
	assert_int_equal(mapping->file_offset, 0xa000);
	assert_int_equal(mapping->end, 0x20000);
	/* over the seam and over an end */
	map(140 * MS, 10, 0x13000, 0x1800, 0, 3, "/lib/seam");
	assert_int_equal(image->mapping_count, 4);
	mapping = image_find_mapping(image, 0x14800);
	assert_string_equal(mapping->file->path, "/lib/small");
	assert_int_equal(mapping->file_offset, 0x800);
	assert_int_equal(image_find_mapping(image, 0x12fff)->end, 0x13000);
	/* over all of it */
	map(150 * MS, 10, 0x1000, 0x100000, 0, 4, "/lib/all");
	assert_int_equal(image->mapping_count, 1);
	/* a sample from before that cannot be told apart any more */
	assert_string_equal(where(145 * MS, 10, BOOT(90), 1, 0x14000, SAMPLE_DOUBTFUL),
			    "/lib/all");
	where(150 * MS - 5000, 10, BOOT(90), 1, 0x14000, 0);
}

static void test_dlopen_marks_nothing(void **state _unused_)
{
	exec_(100 * MS, 10, "a");
	map(100 * MS, 10, 0x1000, 0x1000, 0, 1, "/bin/a");
	map(200 * MS, 10, 0x5000, 0x1000, 0, 2, "/lib/plugin");
	assert_string_equal(where(150 * MS, 10, BOOT(90), 1, 0x1800, 0), "/bin/a");
	assert_string_equal(where(250 * MS, 10, BOOT(90), 1, 0x5800, 0), "/lib/plugin");
}

/* mremap and munmap emit no event: a leaf in no mapping gives it away. */
static void test_mremap_is_found_by_a_scan(void **state _unused_)
{
	static const struct process_snapshot_mapping moved[] = {
		{ 0x5000, 0x6000, 0, 8, 1, 1, (char *)(uintptr_t)"/bin/a" },
	};
	uint16_t marks;
	struct image *image;

	exec_(100 * MS, 10, "a");
	map(100 * MS, 10, 0x1000, 0x1000, 0, 1, "/bin/a");
	image = image_of(150 * MS, 10, BOOT(90), 1, &marks);
	assert_null(image_find_mapping(image, 0x5800));
	process_table_suspect(table, image, 150 * MS);
	assert_int_equal(wanted_scan(), 10);
	merge(160 * MS, 10, BOOT(90), "a", 1, moved);
	assert_string_equal(where(170 * MS, 10, BOOT(90), 1, 0x5800, 0), "/bin/a");
	assert_string_equal(where(170 * MS, 10, BOOT(90), 1, 0x1800, 0), "?");
	where(155 * MS, 10, BOOT(90), 1, 0x5800, SAMPLE_DOUBTFUL);
}

static void test_loss_is_doubted_until_a_later_scan(void **state _unused_)
{
	exec_(100 * MS, 10, "a");
	map(100 * MS, 10, 0x1000, 0x2000, 0, 11, "/bin/a");
	where(110 * MS, 10, BOOT(90), 1, 0x1800, 0);
	process_table_doubt(table, 200 * MS);
	assert_int_equal(wanted_scan(), 0);
	where(190 * MS, 10, BOOT(90), 1, 0x1800, SAMPLE_DOUBTFUL);
	fork_(205 * MS, 11, 11, 10);
	where(206 * MS, 11, BOOT(205), 1, 0x1800, SAMPLE_DOUBTFUL);
	/* begun before the loss: proves nothing */
	merge(195 * MS, 10, BOOT(90), "a", 2, scanned_a);
	where(210 * MS, 10, BOOT(90), 1, 0x1800, SAMPLE_DOUBTFUL);
	merge(220 * MS, 10, BOOT(90), "a", 2, scanned_a);
	where(215 * MS, 10, BOOT(90), 1, 0x1800, SAMPLE_DOUBTFUL);
	assert_string_equal(where(230 * MS, 10, BOOT(90), 1, 0x1800, 0), "/bin/a");
	assert_string_equal(where(230 * MS, 10, BOOT(90), 1, 0x8000, 0), "/lib/c");
	/* an exec says all there is to know */
	exec_(240 * MS, 11, "b");
	map(240 * MS, 11, 0x1000, 0x1000, 0, 20, "/bin/b");
	assert_string_equal(where(250 * MS, 11, BOOT(205), 2, 0x1800, 0), "/bin/b");
}

static void test_scan_and_events_in_any_order(void **state _unused_)
{
	uint16_t marks;
	struct image *image;

	/* the scan at start, events newer and older than it around */
	merge(100 * MS, 10, BOOT(90), "a", 2, scanned_a);
	map(99 * MS, 10, 0x1000, 0x2000, 0, 11, "/bin/a");
	assert_string_equal(where(50 * MS, 10, BOOT(90), 1, 0x1800, 0), "/bin/a");
	map(150 * MS, 10, 0x8000, 0x1000, 0, 30, "/lib/newer");
	merge(140 * MS, 10, BOOT(90), "a", 2, scanned_a);
	assert_string_equal(where(160 * MS, 10, BOOT(90), 1, 0x8800, 0), "/lib/newer");
	assert_string_equal(where(160 * MS, 10, BOOT(90), 1, 0x7800, 0), "/lib/c");
	/* a scan of what ran before the exec */
	exec_(200 * MS, 10, "b");
	map(201 * MS, 10, 0x1000, 0x1000, 0, 31, "/bin/b");
	merge(190 * MS, 10, BOOT(90), "a", 2, scanned_a);
	assert_string_equal(where(210 * MS, 10, BOOT(90), 2, 0x1800, 0), "/bin/b");
	/* what changes nothing keeps the generation, and with it resolved stacks */
	image = image_of(220 * MS, 10, BOOT(90), 2, &marks);
	{
		static const struct process_snapshot_mapping same[] = {
			{ 0x1000, 0x2000, 0, 8, 1, 31, (char *)(uintptr_t)"/bin/b" },
		};
		uint64_t generation = image->generation;

		merge(230 * MS, 10, BOOT(90), "b", 1, same);
		assert_int_equal(image->generation, generation);
		where(225 * MS, 10, BOOT(90), 2, 0x1800, 0);
	}
}

static void test_whole_scan_ends_what_is_gone(void **state _unused_)
{
	merge(100 * MS, 10, BOOT(90), "a", 2, scanned_a);
	merge(100 * MS, 11, BOOT(90), "a", 2, scanned_a);
	merge(100 * MS, 13, BOOT(90), "hangs", 2, scanned_a);
	process_table_doubt(table, 150 * MS);
	merge(210 * MS, 11, BOOT(90), "a", 2, scanned_a);
	exec_(205 * MS, 12, "newer");
	/* it is there all the same */
	process_table_unread(table, 13, 210 * MS);
	process_table_scanned_all(table, 200 * MS);
	process_table_expire(table, 100000 * MS);
	assert_int_equal(process_table_count(table), 3);
	process_table_scanned_all(table, 300 * MS);
	process_table_expire(table, 100000 * MS);
	assert_int_equal(process_table_count(table), 0);
}

static void test_threads(void **state _unused_)
{
	exec_(100 * MS, 10, "a");
	map(100 * MS, 10, 0x1000, 0x1000, 0, 1, "/bin/a");
	fork_(110 * MS, 10, 11, 10);
	exit_(120 * MS, 10, 11);
	process_table_expire(table, 100000 * MS);
	assert_int_equal(process_table_count(table), 1);
	assert_string_equal(where(130 * MS, 10, BOOT(90), 1, 0x1800, 0), "/bin/a");
	/* the leader ends before a thread does: the sample of the thread keeps the process */
	exit_(140 * MS, 10, 10);
	assert_string_equal(where(150 * MS, 10, BOOT(90), 1, 0x1800, 0), "/bin/a");
	process_table_expire(table, 100000 * MS);
	assert_string_equal(where(160 * MS, 10, BOOT(90), 1, 0x1800, 0), "/bin/a");
}

/* An inode number may be given to another file once nobody maps the first. */
static void test_file_identity(void **state _unused_)
{
	uint16_t marks;
	struct mapped_file *first, *second;

	exec_(100 * MS, 10, "a");
	map(100 * MS, 10, 0x1000, 0x1000, 0, 1, "/tmp/program");
	first = mapped_file_ref(image_find_mapping(image_of(110 * MS, 10, BOOT(90), 1, &marks),
						   0x1000)->file);
	exec_(120 * MS, 20, "a");
	map(120 * MS, 20, 0x1000, 0x1000, 0, 1, "/tmp/program");
	second = image_find_mapping(image_of(130 * MS, 20, BOOT(115), 1, &marks), 0x1000)->file;
	assert_ptr_equal(first, second);
	exit_(140 * MS, 10, 10);
	exit_(140 * MS, 20, 20);
	exec_(150 * MS, 30, "a");
	map(150 * MS, 30, 0x1000, 0x1000, 0, 1, "/tmp/program (deleted)");
	second = image_find_mapping(image_of(160 * MS, 30, BOOT(145), 1, &marks), 0x1000)->file;
	assert_ptr_not_equal(first, second);
	assert_string_equal(second->path, "/tmp/program");
	assert_int_equal(second->kind, OBJECT_FILE);
	mapped_file_unref(first);
}

static void test_anonymous_code_is_nobody_elses(void **state _unused_)
{
	uint16_t marks;
	const struct mapping *ours, *theirs;

	exec_(100 * MS, 10, "jit");
	map(100 * MS, 10, 0x1000, 0x1000, 0, 0, "//anon");
	map(101 * MS, 10, 0x5000, 0x1000, 0, 0, "//anon");
	map(102 * MS, 10, 0x9000, 0x1000, 0x77, 0, "[vdso]");
	map(103 * MS, 10, 0xb000, 0x1000, 0x3000, 5, "/memfd:doublemapper (deleted)");
	fork_(110 * MS, 11, 11, 10);
	ours = image_find_mapping(image_of(120 * MS, 10, BOOT(90), 1, &marks), 0x1800);
	theirs = image_find_mapping(image_of(120 * MS, 11, BOOT(110), 1, &marks), 0x1800);
	assert_int_equal(ours->file->kind, OBJECT_ANONYMOUS);
	assert_int_equal(ours->file_offset, 0x1000);
	assert_int_equal(image_find_mapping(image_of(120 * MS, 10, BOOT(90), 1, &marks), 0xb000)->file->kind,
			 OBJECT_ANONYMOUS);
	assert_ptr_not_equal(ours->file, theirs->file);
	assert_ptr_equal(ours->file,
			 image_find_mapping(image_of(120 * MS, 10, BOOT(90), 1, &marks),
					    0x5000)->file);
	ours = image_find_mapping(image_of(120 * MS, 10, BOOT(90), 1, &marks), 0x9800);
	theirs = image_find_mapping(image_of(120 * MS, 11, BOOT(110), 1, &marks), 0x9800);
	assert_int_equal(ours->file->kind, OBJECT_VDSO);
	assert_int_equal(ours->file_offset, 0);
	assert_ptr_equal(ours->file, theirs->file);
}

static void test_memory_is_bounded(void **state _unused_)
{
	const struct pool *pool = pool_get(POOL_PROCESSES);
	uint16_t marks;

	exec_(1 * MS, 1, "parent");
	for (uint64_t i = 0; i < 40; i++)
		map(1 * MS, 1, 0x1000 + i * 0x2000, 0x1000, 0, i + 1, "/lib/x");
	/* a fork bomb within the time that ended images are kept */
	for (uint32_t pid = 100; pid < 60000; pid++) {
		fork_(2 * MS + pid, pid, pid, 1);
		exit_(3 * MS + pid, pid, pid);
	}
	assert_true(pool->peak <= pool->limit);
	assert_true(process_table_count(table) < 60000);
	/* the parent, which is alive, has lost nothing */
	assert_string_equal(where(100 * MS, 1, BOOT(1), 1, 0x1800, 0), "/lib/x");
	/* a process that maps without end */
	for (uint64_t i = 0; i < 100000; i++)
		map(200 * MS + i, 1, 0x100000 + i * 0x2000, 0x1000, 0, i, "/lib/y");
	assert_true(image_of(900 * MS, 1, BOOT(1), 1, &marks)->mapping_count <= 16384);
	/* what it may not have at all, others are not evicted for */
	assert_true(process_table_count(table) > 1000);
	assert_true(pool->peak <= pool->limit);
	where(900 * MS, 1, BOOT(1), 1, 0x1800, SAMPLE_DOUBTFUL);
	/* all alive: what does not fit has no image rather than a wrong one */
	for (uint32_t pid = 100; pid < 60000; pid++)
		fork_(1000 * MS + pid, pid, pid, 1);
	assert_true(pool->peak <= pool->limit);
	process_table_expire(table, 100000 * MS);
}

/* There is room for a process, but not for a larger index of them: who has ended makes way. */
static void test_a_full_index_makes_way(void **state _unused_)
{
	enum { FULL = 192, LEFT = 2048, NEXT = 5000 };	/* three quarters of 256 slots */
	const struct pool *pool = pool_get(POOL_PROCESSES);
	size_t rest;

	for (uint32_t pid = 100; process_table_count(table) < FULL; pid++) {
		fork_(pid * MS, pid, pid, 1);
		exit_(pid * MS + 1, pid, pid);
	}
	rest = pool->limit - pool->used - LEFT;
	assert_true(pool_charge(POOL_PROCESSES, rest));
	fork_(400 * MS, NEXT, NEXT, 1);
	assert_non_null(process_find(table, NEXT));
	assert_int_equal(process_table_count(table), FULL);
	pool_uncharge(POOL_PROCESSES, rest);
	fork_(401 * MS, NEXT + 1, NEXT + 1, 1);
	assert_int_equal(process_table_count(table), FULL + 1);
}

static void test_follow(void **state _unused_)
{
	assert_true(process_table_follows(table, 10));
	assert_int_equal(process_table_follow(table, 10), 0);
	exec_(100 * MS, 10, "a");
	exec_(100 * MS, 20, "stranger");
	fork_(110 * MS, 11, 11, 10);
	fork_(111 * MS, 12, 12, 11);
	fork_(112 * MS, 21, 21, 20);
	assert_true(process_table_follows(table, 10));
	assert_true(process_table_follows(table, 11));
	assert_true(process_table_follows(table, 12));
	assert_false(process_table_follows(table, 20));
	assert_false(process_table_follows(table, 21));
	assert_false(process_table_follows(table, 99));
	assert_int_equal(images_seen, 1);
	/* the number goes to somebody else's child */
	exit_(120 * MS, 12, 12);
	fork_(130 * MS, 12, 12, 20);
	assert_false(process_table_follows(table, 12));
}

static void test_no_user_half(void **state _unused_)
{
	struct stacktap_sample sample = { .header.time = 5, .tgid = 0 };
	uint16_t marks = 1;

	assert_null(process_table_image(table, &sample, &marks));
	sample.tgid = 2;
	sample.header.flags = STACKTAP_SAMPLE_KERNEL_THREAD;
	assert_null(process_table_image(table, &sample, &marks));
	assert_int_equal(marks, 0);
	assert_int_equal(process_table_count(table), 0);
}

/* The address's file by an image that nothing proves to be the sample's; "?" when none. */
static const char *where_unseen(uint64_t time, uint32_t tgid, uint64_t start, uint64_t exec_id, uint64_t address)
{
	const struct stacktap_sample sample = sample_of(time, tgid, start, exec_id);
	const struct mapping *mapping;
	uint16_t marks;
	struct image *image = process_table_image_unseen(table, &sample, &marks);

	assert_non_null(image);
	assert_int_equal(marks, SAMPLE_DOUBTFUL);
	mapping = image_find_mapping(image, address);
	return mapping ? mapping->file->path : "?";
}

static void test_unseen_time_borrows_no_mapping(void **state _unused_)
{
	const struct process_snapshot_mapping mapping = { .start = 0x1000, .end = 0x2000, .major = 8, .minor = 1,
							  .inode = 7, .path = (char *)(uintptr_t)"/bin/second" };

	/* a scan sees what it became; what it was is not known */
	merge(1000 * MS, 10, BOOT(100), "second", 1, &mapping);
	assert_string_equal(where_unseen(500 * MS, 10, BOOT(100), 1, 0x1800), "?");
	/* that one is known from now on, and the other is still to be bound */
	assert_string_equal(where_unseen(510 * MS, 10, BOOT(100), 1, 0x1800), "?");
	assert_string_equal(where(1100 * MS, 10, BOOT(100), 2, 0x1800, 0), "/bin/second");
	assert_string_equal(where_unseen(700 * MS, 10, BOOT(100), 2, 0x1800), "/bin/second");
	/* came and went in that time, and its number is somebody else's now */
	assert_string_equal(where_unseen(600 * MS, 11, BOOT(550), 3, 0x1800), "?");
	exec_(1200 * MS, 11, "later");
	map(1200 * MS, 11, 0x1000, 0x1000, 0, 8, "/bin/later");
	assert_string_equal(where(1300 * MS, 11, BOOT(1150), 4, 0x1800, 0), "/bin/later");
	assert_string_equal(where_unseen(610 * MS, 11, BOOT(550), 3, 0x1800), "?");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Once there is room, and then no more. */
static void test_a_file_without_room_is_told_of_again(void **state _unused_)
{
	exec_(100, 10, "a");
	has_room = false;
	map(300, 10, 0x700000, 0x1000, 0, 77, "/usr/lib/libx.so");
	assert_int_equal(files_seen, 1);
	has_room = true;
	map(400, 10, 0x800000, 0x1000, 0, 77, "/usr/lib/libx.so");
	assert_int_equal(files_seen, 2);
	map(500, 10, 0x900000, 0x1000, 0, 77, "/usr/lib/libx.so");
	assert_int_equal(files_seen, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_exec_replaces_everything),
		TEST(test_sample_around_an_exec_is_marked),
		TEST(test_old_number_right_after_an_exec),
		TEST(test_fork_copies_and_shares_files),
		TEST(test_short_lived_needs_no_proc),
		TEST(test_pid_reuse),
		TEST(test_unseen_pid_reuse_is_doubted),
		TEST(test_lost_exec_is_doubted),
		TEST(test_unknown_process_is_scanned),
		TEST(test_overlap_cuts_and_splits),
		TEST(test_dlopen_marks_nothing),
		TEST(test_mremap_is_found_by_a_scan),
		TEST(test_loss_is_doubted_until_a_later_scan),
		TEST(test_scan_and_events_in_any_order),
		TEST(test_whole_scan_ends_what_is_gone),
		TEST(test_threads),
		TEST(test_file_identity),
		TEST(test_anonymous_code_is_nobody_elses),
		TEST(test_memory_is_bounded),
		TEST(test_a_full_index_makes_way),
		TEST(test_follow),
		TEST(test_a_file_without_room_is_told_of_again),
		TEST(test_no_user_half),
		TEST(test_unseen_time_borrows_no_mapping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
