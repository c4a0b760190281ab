// SPDX-License-Identifier: Apache-2.0
/* The registry of tables and the mapping lists: what is accepted, shared, limited and freed. */
#include <errno.h>
#include <linux/stacktap.h>
#include <signal.h>
#include <stacktap/unwind_table.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "frameless.h"
#include "load.h"
#include "tables.h"
#include "tap.h"

static bool refuses(struct client *client, const void *data, size_t size, int expected)
{
	uint64_t id = 0;
	int err = tables_load(client, data, size, &id);

	if (err != expected)
		tap_note("%zu bytes: %d instead of %d", size, err, expected);
	return err == expected;
}

static void check_hostile(struct client *client)
{
	unsigned char *data, *good;
	struct unwind_table_header *header;
	unsigned int i, accepted = 0, refused = 0;
	bool all = true;
	uint64_t id;
	size_t size, cut;

	good = malloc(4096);
	memcpy(good, frameless_table(&size), 512);
	data = malloc(4096);
	header = (void *)data;

	for (cut = 0; cut < size; cut++)
		all &= refuses(client, good, cut, -EINVAL);
	tap(all, "no table shorter than itself");
	memcpy(data, good, size);
	memset(data + size, 0, 64);
	tap(refuses(client, data, size + 8, -EINVAL), "none with more behind it");
	for (all = true, i = 0; i < size * 8; i++) {
		memcpy(data, good, size);
		data[i / 8] ^= 1 << i % 8;
		all &= refuses(client, data, size, -EINVAL);
	}
	tap(all, "no bit may flip under a checksum");

	/* with a good checksum a flip may well be another good table; it is loaded then and dropped */
	srand(1);
	for (i = 0; i < 4000; i++) {
		unsigned int flips = rand() % 4 + 1;

		memcpy(data, good, size);
		while (flips--)
			data[rand() % size] = rand();
		frameless_checksum(data, size);
		if (tables_load(client, data, size, &id)) {
			refused++;
		} else {
			accepted++;
			all &= !tables_drop(client, id);
		}
	}
	tap(all && refused > 500, "of 4000 forged ones %u are refused, %u are harmless", refused, accepted);
	for (all = true, i = 0; i < 64; i++) {
		memcpy(data, good, size);
		header->blocks = i & 1 ? UINT32_MAX : 1u << i % 32;
		header->indexed = i & 16 ? header->blocks : 1;
		header->rows = i & 2 ? UINT32_MAX : 1u << i % 31;
		header->wides = i & 4 ? UINT32_MAX : 0;
		header->rules = i & 8 ? UINT32_MAX : 0xffffu >> i % 16;
		frameless_checksum(data, size);
		all &= refuses(client, data, size, -EINVAL);
	}
	tap(all, "no huge counts");
	memcpy(data, good, size);
	header->machine = header->machine == 62 ? 183 : 62;
	frameless_checksum(data, size);
	tap(refuses(client, data, size, -EINVAL), "no table of another machine");
	tap(refuses(client, good, STACKTAP_MAX_TABLE_BYTES + 8ul, -E2BIG), "none beyond the limit");
	tap(refuses(client, (void *)16, 4096, -EFAULT) && refuses(client, (void *)-4096ul, 512, -EFAULT),
	    "none from nowhere");
	free(data);
	free(good);
}

static void check_structs(struct client *client)
{
	struct stacktap_table_load load = { .size = sizeof(load), .flags = 1 };
	struct stacktap_table_drop drop = { .size = sizeof(drop), .reserved = 1 };
	struct stacktap_image image = { .size = sizeof(image), .tgid = getpid(), .exec_id = 1 };
	struct stacktap_mappings_set set = { .size = sizeof(set), .generation = 1, .flags = 1 };

	tap(ioctl(client->fd, STACKTAP_IOC_TABLE_LOAD, &load) && errno == EINVAL &&
	    ioctl(client->fd, STACKTAP_IOC_TABLE_DROP, &drop) && errno == EINVAL &&
	    ioctl(client->fd, STACKTAP_IOC_IMAGE, &image) && errno == EINVAL &&
	    ioctl(client->fd, STACKTAP_IOC_MAPPINGS_SET, &set) && errno == EINVAL,
	    "flags, reserved and out fields must be zero");
	load.flags = 0;
	load.hash[31] = 1;
	tap(ioctl(client->fd, STACKTAP_IOC_TABLE_LOAD, &load) && errno == EINVAL, "so must the hash");
}

void case_tables(void)
{
	struct client one, two;
	struct table_sums sums;
	uint64_t id = 0, again = 0, other = 0, third = 0, bytes;
	const void *data;
	void *filler;
	size_t size, filler_size;

	if (!tap(!client_open(&one) && !client_open(&two), "two sessions"))
		return;
	tap(one.info.features & STACKTAP_FEATURE_TABLES, "FEATURE_TABLES");
	sums = tables_of_module(&one);
	tap(!sums.tables && !sums.lists && !sums.table_bytes && sums.table_limit, "nothing is loaded");
	check_structs(&one);
	check_hostile(&one);
	sums = tables_of_module(&one);
	tap(!sums.tables && !sums.table_bytes, "nothing of it stays");

	data = frameless_table(&size);
	tap(!tables_load(&one, data, size, &id) && id, "a table");
	tap(!tables_load(&one, data, size, &again) && again == id, "the same again");
	bytes = tables_of_module(&one).table_bytes;
	tap(!tables_load(&two, data, size, &other) && other == id, "the same in the other session");
	sums = tables_of_module(&one);
	tap(sums.tables == 1 && sums.table_bytes == bytes && bytes > size, "is there once");
	tap(tables_of_session(&one).tables == 1 && tables_of_session(&two).tables == 1 &&
	    tables_of_session(&two).table_bytes > size, "and charged to both");
	filler = frameless_filler(1, 3, &filler_size);
	tap(!tables_load(&two, filler, filler_size, &third) && third > id, "another one");
	free(filler);
	tap(tables_listed(&one, true, NULL) == 2 && tables_listed(&one, false, NULL) == 1 &&
	    tables_listed(&two, false, NULL) == 2, "GET_TABLE lists them");
	tap(tables_drop(&one, third) == -ENOENT && tables_drop(&one, third + 1) == -ENOENT &&
	    tables_drop(&one, 0) == -ENOENT, "nobody drops what is not his");
	tap(!tables_drop(&one, id) && tables_drop(&one, id) == -ENOENT, "TABLE_DROP, once");
	tap(tables_of_module(&one).tables == 2, "the other session still has it");
	client_close(&two);
	sums = tables_of_module(&one);
	tap(!sums.tables && !sums.table_bytes, "its end takes everything with it");
	tap(!tables_load(&one, data, size, &again) && again > third, "ids are not used again");
	client_close(&one);
}

/* Load different tables until it is refused: how, and how many. */
static int load_many(struct client *client, uint32_t *number, unsigned int *ret_count)
{
	uint64_t id;
	size_t size;
	void *data;
	int err = 0;

	for (*ret_count = 0; !err && *ret_count < 4096; *ret_count += !err) {
		data = frameless_filler(++*number, 2000, &size);
		err = tables_load(client, data, size, &id);
		free(data);
	}
	return err;
}

void case_table_limits(void)
{
	struct client one, two, three;
	unsigned int first, second, third;
	struct table_sums sums;
	uint32_t number = 0;
	uint64_t id;
	size_t size;
	void *data;
	int err;

	if (!tap(!client_open(&one) && !client_open(&two) && !client_open(&three), "three sessions"))
		return;
	err = load_many(&one, &number, &first);
	tap(err == -EDQUOT && first, "%u tables are half", first);
	sums = tables_of_module(&one);
	tap(sums.table_bytes <= sums.table_limit / 2 + first * 256 &&
	    sums.table_bytes > sums.table_limit / 2 - 2 * (sums.table_bytes / first), "of the limit");
	tap(tables_of_session(&one).table_bytes <= tables_of_session(&one).table_limit,
	    "and of the session's");
	load_many(&two, &number, &second);
	err = load_many(&three, &number, &third);
	tap(err == -ENOSPC, "%u more, %u more: full", second, third);
	sums = tables_of_module(&one);
	tap(sums.table_bytes + sums.list_bytes <= sums.table_limit, "%llu of %llu bytes",
	    (unsigned long long)sums.table_bytes, (unsigned long long)sums.table_limit);
	client_close(&one);
	data = frameless_filler(number + 1, 2000, &size);
	tap(!tables_load(&three, data, size, &id), "there is room again when a session has ended");
	free(data);
	client_close(&two);
	sums = tables_of_module(&three);
	tap(sums.tables == third + 1, "%u tables are left", sums.tables);
	client_close(&three);
}

static void check_lists(struct client *client, const struct stacktap_image *image, uint64_t id)
{
	struct stacktap_mapping two[2] = {
		{ .start = 0x10000, .end = 0x20000, .table_id = id },
		{ .start = 0x20000, .end = 0x30000 },
	}, wrong[2];
	struct stacktap_mapping *many;
	struct stacktap_image other;
	uint32_t i;

	tap(!tables_set(client, image, 7, two, 2), "a list");
	tap(tables_of_session(client).lists == 1 && tables_of_session(client).list_bytes > 64,
	    "is counted");
	tap(!tables_set(client, image, 6, two, 1) && tables_of_session(client).lists == 1,
	    "the next one replaces it");
	tap(tables_set(client, image, 0, two, 2) == -EINVAL, "generation 0 is none");

	memcpy(wrong, two, sizeof(two));
	wrong[1].start--;
	tap(tables_set(client, image, 8, wrong, 2) == -EINVAL, "overlap");
	wrong[0] = two[1];
	wrong[1] = two[0];
	tap(tables_set(client, image, 8, wrong, 2) == -EINVAL, "descending");
	memcpy(wrong, two, sizeof(two));
	wrong[1].end = wrong[1].start;
	tap(tables_set(client, image, 8, wrong, 2) == -EINVAL, "empty");
	wrong[1].end = 1ull << 63;
	tap(tables_set(client, image, 8, wrong, 2) == -EINVAL, "into the kernel");
	wrong[1].start = -4096ull;
	wrong[1].end = -1ull;
	tap(tables_set(client, image, 8, wrong, 2) == -EINVAL, "in the kernel");
	memcpy(wrong, two, sizeof(two));
	wrong[1].table_id = id + 1000;
	tap(tables_set(client, image, 8, wrong, 2) == -ENOENT, "a table that is not there");
	tap(tables_set(client, image, 8, (void *)16, 2) == -EFAULT &&
	    tables_set(client, image, 8, (void *)-64ul, 2) == -EFAULT, "from nowhere");
	tap(tables_set(client, image, 8, two, STACKTAP_MAX_MAPPINGS + 1) == -E2BIG &&
	    tables_set(client, image, 8, two, UINT32_MAX) == -E2BIG, "too many");
	many = calloc(STACKTAP_MAX_MAPPINGS, sizeof(*many));
	for (i = 0; i < STACKTAP_MAX_MAPPINGS; i++)
		many[i] = (struct stacktap_mapping) {
			.start = 0x10000ull * (i + 1), .end = 0x10000ull * (i + 2), .table_id = id,
		};
	tap(!tables_set(client, image, 8, many, STACKTAP_MAX_MAPPINGS), "as many as there may be");
	many[STACKTAP_MAX_MAPPINGS - 1].start--;
	tap(tables_set(client, image, 9, many, STACKTAP_MAX_MAPPINGS) == -EINVAL &&
	    tables_of_session(client).list_bytes > STACKTAP_MAX_MAPPINGS * 32u,
	    "the list before stays when one is refused");
	free(many);

	other = *image;
	other.exec_id++;
	tap(tables_set(client, &other, 8, two, 2) == -ESTALE, "another exec");
	other = *image;
	other.start_time--;
	tap(tables_set(client, &other, 8, two, 2) == -ESTALE, "another start");
	other.tgid = 2;
	tap(tables_image(client, 2, &other) == -ESRCH && tables_set(client, &other, 8, two, 2) == -ESRCH,
	    "a kernel thread");
	tap(tables_image(client, 4194304, &other) == -ESRCH && tables_image(client, 0, &other) == -ESRCH &&
	    tables_image(client, -1, &other) == -ESRCH, "nobody");
}

/* A child that waits; killed by the caller. */
static pid_t fork_waiting(void)
{
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	return pid;
}

void case_lists(void)
{
	struct stacktap_mapping mapping = { .start = 0x10000, .end = 0x20000 };
	struct stacktap_image image, child;
	struct client one, two;
	struct table_sums sums;
	pid_t pids[100];
	unsigned int i, lists;
	const void *data;
	uint64_t id, bytes;
	size_t size;

	if (!tap(!client_open(&one) && !client_open(&two), "two sessions"))
		return;
	data = frameless_table(&size);
	tap(!tables_load(&one, data, size, &id), "a table");
	tap(!tables_image(&one, getpid(), &image) && image.start_time, "IMAGE of ourselves");
	check_lists(&one, &image, id);
	tap(!tables_drop(&one, id) && tables_of_session(&one).tables == 1,
	    "a table that a list names stays when it is dropped");
	mapping.table_id = id;
	tap(tables_set(&one, &image, 9, &mapping, 1) == -ENOENT, "but cannot be named again");
	mapping.table_id = 0;
	tap(!tables_set(&one, &image, 9, &mapping, 1), "the last list is replaced");
	for (i = 0; i < 600 && tables_of_session(&one).tables; i++)
		usleep(50000);
	tap(!tables_of_module(&one).tables, "then it goes");

	tap(!tables_set(&two, &image, 5, &mapping, 1) && tables_of_module(&one).lists == 2,
	    "another session has its own list");
	tap(!tables_set(&two, &image, 5, NULL, 0) && tables_of_module(&one).lists == 1,
	    "no mappings, no list");
	tap(!tables_set(&two, &image, 5, NULL, 0), "nor is it needed");

	bytes = tables_of_session(&one).list_bytes;
	for (i = 0; i < 100; i++) {
		pids[i] = fork_waiting();
		usleep(1000);
	}
	sums = tables_of_session(&one);
	tap(sums.lists + sums.lists_refused == 101 && sums.lists_refused < 50,
	    "100 forks have it, too, but for %llu", (unsigned long long)sums.lists_refused);
	tap(sums.list_bytes - bytes < 100 * 256, "for %llu bytes", (unsigned long long)sums.list_bytes);
	lists = sums.lists;
	tap(!tables_image(&one, pids[0], &child) && child.exec_id == image.exec_id &&
	    child.start_time > image.start_time, "IMAGE of a child");
	tap(!tables_set(&one, &child, 10, &mapping, 1) && tables_of_session(&one).lists == lists,
	    "a child's list is replaced");
	for (i = 0; i < 100; i++)
		load_kill(pids[i]);
	tap(tables_image(&one, pids[0], &child) == -ESRCH, "they are gone");
	tap(tables_wait(&one, 1), "and so are their lists");

	pids[0] = fork();
	if (!pids[0]) {
		execl("/bin/sleep", "sleep", "1000", NULL);
		_exit(1);
	}
	tap(tables_wait(&one, 1), "exec drops it");
	load_kill(pids[0]);

	client_close(&one);
	sums = tables_of_module(&two);
	tap(!sums.lists && !sums.list_bytes && !sums.tables, "the end of the session frees everything");
	client_close(&two);
}
