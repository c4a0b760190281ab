// SPDX-License-Identifier: Apache-2.0
/* Numbers, pointers, sizes and callers that the ioctls refuse, each with its error. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "module.h"
#include "tap.h"

static const struct {
	const char *name;
	unsigned long command;
	uint32_t size;
	bool answers;		/* writes to its struct */
} calls[] = {
	{ "INFO", STACKTAP_IOC_INFO, sizeof(struct stacktap_info), true },
	{ "RING_CREATE", STACKTAP_IOC_RING_CREATE, sizeof(struct stacktap_ring_create), true },
	{ "FLUSH", STACKTAP_IOC_FLUSH, sizeof(struct stacktap_flush), false },
	{ "TABLE_LOAD", STACKTAP_IOC_TABLE_LOAD, sizeof(struct stacktap_table_load), true },
	{ "TABLE_DROP", STACKTAP_IOC_TABLE_DROP, sizeof(struct stacktap_table_drop), false },
	{ "MAPPINGS_SET", STACKTAP_IOC_MAPPINGS_SET, sizeof(struct stacktap_mappings_set), false },
	{ "IMAGE", STACKTAP_IOC_IMAGE, sizeof(struct stacktap_image), true },
};

enum {
	RING_BYTES = 65536,	/* a page of any size is in it */
};

#define NR_CALLS (sizeof(calls) / sizeof(calls[0]))

static int call(int fd, unsigned long command, const void *arg)
{
	return ioctl(fd, command, arg) ? -errno : 0;
}

/* Every number of ours and of others. */
static void check_numbers(int fd)
{
	char zeros[4096] = "";
	unsigned int type, nr, i, wrong = 0;

	for (type = 0; type < 256; type++) {
		for (nr = 0; nr < 256; nr++) {
			bool known = false;

			/* the file system's own are not ours to refuse */
			if (type == 'T' || type == 'X' || type == 'f' || type == 0)
				continue;
			for (i = 0; i < NR_CALLS; i++)
				known |= type == STACKTAP_IOC_MAGIC && nr == _IOC_NR(calls[i].command);
			wrong += call(fd, _IOC(_IOC_READ | _IOC_WRITE, type, nr, 64), zeros) !=
				 (known ? -EINVAL : -ENOTTY);
		}
	}
	tap(!wrong, "ENOTTY for every unknown number, EINVAL for no struct at all: %u others", wrong);
}

/* Where no struct is, where only its beginning is, and where it cannot be written. */
static void check_pointers(int fd, uint32_t page)
{
	char *room = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const void *const nowhere[] = {
		NULL, (void *)8, room + page, (void *)~0ul, (void *)~7ul, (void *)(~0ul << 20),
		(void *)(1ul << 63), (void *)0xffff800000000000ul, (void *)0x00007ffffffff000ul,
	};
	unsigned int i, j, wrong = 0;
	struct stacktap_info info = { .size = sizeof(info) };

	mprotect(room + page, page, PROT_NONE);
	for (i = 0; i < NR_CALLS; i++) {
		for (j = 0; j < sizeof(nowhere) / sizeof(nowhere[0]); j++)
			wrong += call(fd, calls[i].command, nowhere[j]) != -EFAULT;
		/* up to each byte but the last */
		for (j = 1; j < calls[i].size; j++) {
			char *at = room + page - j;

			memset(at, 0, j);
			memcpy(at, &calls[i].size, j < 4 ? j : 4);
			wrong += call(fd, calls[i].command, at) != -EFAULT;
		}
	}
	tap(!wrong, "EFAULT for every bad pointer, %u others", wrong);

	memcpy(room, &info, sizeof(info));
	mprotect(room, page, PROT_READ);
	tap(call(fd, STACKTAP_IOC_INFO, room) == -EFAULT, "EFAULT where the answer cannot be written");
	munmap(room, 2 * page);
}

static void check_sizes(int fd, uint32_t page)
{
	char *room = calloc(1, 2 * page);
	unsigned int i, wrong = 0;
	uint64_t large;
	uint32_t size;

	for (i = 0; i < NR_CALLS; i++) {
		memset(room, 0, 2 * page);
		for (size = 0; size < calls[i].size; size++) {
			memcpy(room, &size, 4);
			wrong += call(fd, calls[i].command, room) != -EINVAL;
		}
		/* what a later version may have appended, at each byte */
		for (size = calls[i].size + 1; size <= calls[i].size + 64; size++) {
			memcpy(room, &size, 4);
			room[size - 1] = 1;
			wrong += call(fd, calls[i].command, room) != -E2BIG;
			room[size - 1] = 0;
		}
		for (large = page + 1ull; large <= UINT32_MAX; large *= 2) {
			size = (uint32_t)large;
			memcpy(room, &size, 4);
			wrong += call(fd, calls[i].command, room) != -E2BIG;
		}
	}
	tap(!wrong, "EINVAL for what is too short, E2BIG for what is too long: %u others", wrong);
	free(room);
}

static bool in_one_of(int err, int a, int b)
{
	return err == a || err == b;
}

static void check_rings(const struct client *client)
{
	const uint32_t least = client_least_ring(client);
	struct stacktap_ring_create create;
	int fd = open(STACKTAP_DEVICE, O_RDWR | O_CLOEXEC), i;
	unsigned int bit, wrong = 0;

	for (bit = 0; bit < 32; bit++) {
		for (i = -1; i <= 1; i++) {
			uint32_t bytes = (1u << bit) + i;
			bool good = !i && bytes >= least && bytes <= STACKTAP_RING_MAX_BYTES;
			int err;

			create = (struct stacktap_ring_create) {
				.size = sizeof(create), .data_bytes = bytes,
			};
			/* where 2^n is followed or preceded by another power of two */
			if (bit < 2)
				continue;
			err = call(fd, STACKTAP_IOC_RING_CREATE, &create);
			wrong += good ? err && !in_one_of(err, -EDQUOT, -ENOMEM) : err != -EINVAL;
			if (err)
				continue;
			close(fd);
			fd = open(STACKTAP_DEVICE, O_RDWR | O_CLOEXEC);
		}
	}
	close(fd);
	tap(!wrong, "rings: powers of two within the limits, %u others", wrong);

	fd = open(STACKTAP_DEVICE, O_RDWR | O_CLOEXEC);
#define TRY(...) call(fd, STACKTAP_IOC_RING_CREATE, &(struct stacktap_ring_create) { \
	.size = sizeof(create), .data_bytes = least, __VA_ARGS__ })
	tap(TRY(.cpu = client->info.nr_cpu_ids) == -ENODEV && TRY(.cpu = UINT32_MAX) == -ENODEV &&
	    TRY(.cpu = 1u << 31) == -ENODEV, "ENODEV for no CPU");
	tap(TRY(.watermark = least + 1) == -EINVAL &&
	    TRY(.watermark = UINT32_MAX) == -EINVAL, "EINVAL for a watermark beyond the ring");
	tap(TRY(.consumer_offset = 1) == -EINVAL && TRY(.producer_offset = 1ull << 39) == -EINVAL,
	    "EINVAL for an answer in the question");
#undef TRY
	close(fd);
}

static void check_others(int fd)
{
	struct stacktap_image image = { .size = sizeof(image) };
	unsigned int i;
	int wrong = 0;
	static const uint32_t nobody[] = { 0, UINT32_MAX, 1u << 31, 4194305 };

	for (i = 0; i < sizeof(nobody) / sizeof(nobody[0]); i++) {
		image.tgid = nobody[i];
		wrong += call(fd, STACKTAP_IOC_IMAGE, &image) != -ESRCH;
	}
	image.tgid = 2;	/* kthreadd */
	wrong += call(fd, STACKTAP_IOC_IMAGE, &image) != -ESRCH;
	tap(!wrong, "IMAGE: ESRCH for no process and for a thread of the kernel");
	image = (struct stacktap_image) { .size = sizeof(image), .tgid = getpid(), .exec_id = 1 };
	tap(call(fd, STACKTAP_IOC_IMAGE, &image) == -EINVAL, "EINVAL for an answer in the question");
	tap(call(fd, STACKTAP_IOC_FLUSH, &(struct stacktap_flush) { .size = 8, .flags = 1 }) ==
	    -EINVAL, "FLUSH: EINVAL for a flag");
	tap(call(fd, STACKTAP_IOC_TABLE_DROP, &(struct stacktap_table_drop) { .size = 16,
		 .reserved = 1 }) == -EINVAL && call(fd, STACKTAP_IOC_TABLE_DROP,
		 &(struct stacktap_table_drop) { .size = 16, .table_id = 1ull << 40 }) == -ENOENT,
	    "TABLE_DROP: EINVAL for a reserved word, ENOENT for nobody's table");
}

/* Several at once for the same CPU: exactly one gets the ring. */
static void check_rivals(void)
{
	struct stacktap_ring_create create = {
		.size = sizeof(create), .data_bytes = RING_BYTES,
	};
	unsigned int round, i, wins, wrong = 0;
	int fd, status;

	for (round = 0; round < 16; round++) {
		fd = open(STACKTAP_DEVICE, O_RDWR | O_CLOEXEC);
		for (i = 0; i < 4; i++) {
			if (fork())
				continue;
			status = call(fd, STACKTAP_IOC_RING_CREATE, &create);
			_exit(!status ? 0 : status == -EEXIST ? 1 : 2);
		}
		for (i = 0, wins = 0; i < 4; i++) {
			if (wait(&status) < 0 || WEXITSTATUS(status) > 1)
				wrong++;
			wins += !WEXITSTATUS(status);
		}
		wrong += wins != 1;
		close(fd);
	}
	tap(!wrong, "of four that want one CPU's ring one gets it, %u times not", wrong);
}

struct turncoat {
	struct stacktap_ring_create create;
	atomic_bool done;
};

static void *turncoat_turn(void *arg)
{
	struct turncoat *turncoat = arg;
	volatile struct stacktap_ring_create *create = &turncoat->create;
	volatile unsigned int wait;

	while (!atomic_load(&turncoat->done)) {
		create->size = sizeof(*create);
		create->data_bytes = RING_BYTES;
		/* the answer to what was taken */
		create->consumer_offset = 0;
		create->producer_offset = 0;
		create->cpu = 0;
		for (wait = 0; wait < 1000; wait++)
			;
		create->size = 4096;
		create->data_bytes = 3 * RING_BYTES;
		create->cpu = UINT32_MAX;
		for (wait = 0; wait < 1000; wait++)
			;
		create->size = 0;
	}
	return NULL;
}

/* A struct that changes while it is read: what the module made of it, it read once. */
static void check_turncoat(void)
{
	struct turncoat turncoat = { .create.size = 0 };
	unsigned int i, made = 0, refused = 0, wrong = 0;
	pthread_t thread;
	int fd, err;

	if (pthread_create(&thread, NULL, turncoat_turn, &turncoat))
		return;
	fd = open(STACKTAP_DEVICE, O_RDWR | O_CLOEXEC);
	for (i = 0; i < 10000 || (i < 1000000 && made < 10); i++) {
		err = call(fd, STACKTAP_IOC_RING_CREATE, &turncoat.create);
		refused += err && err != -EEXIST;
		wrong += err && err != -EINVAL && err != -ENODEV && err != -E2BIG && err != -EEXIST;
		/* what has its ring says no more but that */
		if (err && err != -EEXIST)
			continue;
		made++;
		close(fd);
		fd = open(STACKTAP_DEVICE, O_RDWR | O_CLOEXEC);
	}
	close(fd);
	atomic_store(&turncoat.done, true);
	pthread_join(thread, NULL);
	tap(made > 1 && refused && !wrong, "a struct that changes under way: %u taken, %u refused, "
	    "%u otherwise", made, refused, wrong);
}

/* What open() says to a child that @change was applied to. */
static int child_opens(void (*change)(void))
{
	int status = -1;
	pid_t child = fork();

	if (!child) {
		int fd;

		change();
		fd = open(STACKTAP_DEVICE, O_RDWR | O_CLOEXEC);
		_exit(fd < 0 ? errno : 0);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

static void lose_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	if (syscall(SYS_capset, &header, data))
		_exit(99);
}

static void enter_network(void)
{
	if (unshare(CLONE_NEWNET))
		_exit(99);
}

/* Capabilities in a namespace of one's own are none here. */
static void enter_users(void)
{
	if (unshare(CLONE_NEWUSER))
		_exit(99);
}

static void enter_pids(void)
{
	int status = 0;
	pid_t child;

	if (unshare(CLONE_NEWPID))
		_exit(99);
	child = fork();
	if (!child)
		return;
	waitpid(child, &status, 0);
	_exit(WEXITSTATUS(status));
}

static void check_callers(void)
{
	tap(child_opens(lose_capabilities) == -EPERM, "open: EPERM without capabilities");
	tap(child_opens(enter_users) == -EPERM, "EPERM in a user namespace");
	tap(child_opens(enter_network) == -EOPNOTSUPP, "EOPNOTSUPP in a network namespace");
	tap(child_opens(enter_pids) == -EOPNOTSUPP, "EOPNOTSUPP in a pid namespace");
}

void case_ioctls(void)
{
	struct client client;

	if (!tap(!client_open(&client), "open"))
		return;
	check_numbers(client.fd);
	check_pointers(client.fd, client.info.page_size);
	check_sizes(client.fd, client.info.page_size);
	check_rings(&client);
	check_others(client.fd);
	check_rivals();
	check_turncoat();
	check_callers();
	client_close(&client);
	tap(module_is_empty(), "nothing is left of it");
}
