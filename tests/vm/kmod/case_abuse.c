// SPDX-License-Identifier: Apache-2.0
/* What no reader does to the mappings of a ring: it is refused, or harms nobody else. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "load.h"
#include "module.h"
#include "tap.h"

enum {
	RING_BYTES = 65536,	/* a page, where they are large */
};

/* one of the two mappings of a ring */
struct area {
	const char *name;
	int fd;
	uint64_t offset;
	size_t size, page;
	int prot;		/* the most that it allows */
	char *at;		/* where the client has it */
};

static bool area_takes(const struct area *area, size_t size, int prot, int flags, uint64_t offset)
{
	void *p = mmap(NULL, size, prot, flags, area->fd, offset);

	if (p == MAP_FAILED)
		return false;
	munmap(p, size);
	return true;
}

/* Each kind of mapping with each protection: only what the area is for. */
static void check_protections(const struct area *area)
{
	static const struct {
		int flags;
		bool good;
	} kinds[] = {
		{ MAP_SHARED, true }, { MAP_SHARED_VALIDATE, true }, { MAP_SHARED | MAP_POPULATE, true },
		{ MAP_PRIVATE, false }, { MAP_PRIVATE | MAP_POPULATE, false },
		{ MAP_SHARED_VALIDATE | MAP_SYNC, false }, { MAP_SHARED | MAP_HUGETLB, false },
		{ 0, false },
	};
	unsigned int i, taken = 0, wrong = 0;
	int prot;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		for (prot = 0; prot < 8; prot++) {
			bool took = area_takes(area, area->size, prot, kinds[i].flags, area->offset);

			taken += took;
			wrong += took != (kinds[i].good && !(prot & ~area->prot));
		}
	}
	tap(!wrong && taken, "%s: flags and protections: %u taken, %u wrongly or not", area->name,
	    taken, wrong);
}

/* From each protection that it may begin with to each there is. */
static void check_upgrades(const struct area *area)
{
	unsigned int wrong = 0, tried = 0;
	int from, to;
	void *p;

	for (from = 0; from < 8; from++) {
		if (from & ~area->prot)
			continue;
		for (to = 0; to < 8; to++, tried++) {
			p = mmap(NULL, area->size, from, MAP_SHARED, area->fd, area->offset);
			errno = 0;
			if (!mprotect(p, area->size, to) != !(to & ~area->prot) ||
			    (to & ~area->prot && errno != EACCES))
				wrong++;
			munmap(p, area->size);
		}
	}
	tap(!wrong && tried > 8, "%s: mprotect goes no further than it may, %u of %u do",
	    area->name, wrong, tried);
}

static void check_places(const struct area *area)
{
	size_t pages = area->size / area->page, nr;
	unsigned int wrong = 0, bit;
	int64_t step;

	for (nr = 0; nr < 2 * pages + 4; nr++)
		wrong += area_takes(area, nr * area->page, PROT_READ, MAP_SHARED, area->offset) !=
			 (nr == pages);
	for (bit = 12; bit < 47; bit++)
		wrong += area_takes(area, area->size + (1ull << bit), PROT_READ, MAP_SHARED,
				    area->offset);
	tap(!wrong, "%s: no length but its own, %u others", area->name, wrong);

	for (wrong = 0, bit = 0; bit < 64; bit++)
		wrong += area_takes(area, area->size, PROT_READ, MAP_SHARED,
				    area->offset ^ 1ull << bit);
	for (step = -16; step <= 16; step++)
		if (step)
			wrong += area_takes(area, area->size, PROT_READ, MAP_SHARED,
					    area->offset + step * (int64_t)area->page);
	tap(!wrong, "%s: no offset but its own, %u others", area->name, wrong);
}

/* Everything that would leave a part of it, or two of it, or it elsewhere. */
static void check_pieces(const struct area *area)
{
	const size_t page = area->page, size = area->size;
	const size_t room_size = 2 * size + 4 * page;
	char *room = mmap(NULL, room_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *elsewhere = room + size + 4 * page;
	char *p = mmap(room + 2 * page, size, PROT_READ, MAP_SHARED | MAP_FIXED, area->fd,
		       area->offset);
	bool splits = size > page;
	unsigned int taken = 0;

#define REFUSED(what) do { if (!(what)) { taken++; tap_note("taken: %s", #what); } } while (0)
	if (splits) {
		REFUSED(munmap(p, page));
		REFUSED(munmap(p + page, page));
		REFUSED(munmap(p + size - page, page));
		REFUSED(munmap(room + page, 2 * page));
		REFUSED(munmap(p + size - page, 2 * page));
		REFUSED(mprotect(p, page, PROT_NONE));
		REFUSED(mprotect(p + page, size - page, PROT_NONE));
		REFUSED(madvise(p, page, MADV_SEQUENTIAL));
		REFUSED(madvise(p + page, page, MADV_DOFORK));
		REFUSED(mmap(p, page, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
			MAP_FAILED);
		REFUSED(mremap(p, size, size - page, 0) == MAP_FAILED);
		REFUSED(mremap(p, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, room) == MAP_FAILED);
		REFUSED(mremap(p + page, page, 2 * page, MREMAP_MAYMOVE) == MAP_FAILED);
	}
	REFUSED(mremap(p, size, size + page, 0) == MAP_FAILED);
	REFUSED(mremap(p, size, 2 * size, MREMAP_MAYMOVE) == MAP_FAILED);
	REFUSED(mremap(p, 0, size, MREMAP_MAYMOVE) == MAP_FAILED);
	REFUSED(mremap(p, size, size, MREMAP_MAYMOVE | MREMAP_DONTUNMAP) == MAP_FAILED);
	REFUSED(mremap(p, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere) == MAP_FAILED);
	REFUSED(madvise(p, size, MADV_REMOVE));
	REFUSED(madvise(p, size, MADV_FREE));
#undef REFUSED
	tap(!taken, "%s: no part of it, no other size or place, %u taken", area->name, taken);
	tap(!memcmp(p, area->at, page), "%s: it is still whole", area->name);
	/* last, because the kernel unmaps before it asks */
	tap(remap_file_pages(p, size, 0, 1, 0), "%s: none of it from elsewhere in the file",
	    area->name);
	munmap(room, room_size);
}

/* What FOLL_FORCE does to private mappings of a debuggee. */
static void check_forced(const struct area *area)
{
	static char junk[64] = "somebody else's words";
	struct iovec local = { junk, sizeof(junk) }, remote = { area->at + 64, sizeof(junk) };
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	ssize_t wrote, copied;

	wrote = pwrite(mem, junk, sizeof(junk), (off_t)(uintptr_t)area->at + 64);
	copied = process_vm_writev(getpid(), &local, 1, &remote, 1, 0);
	close(mem);
	tap(mem >= 0 && wrote < 0 && copied < 0 && memcmp(area->at + 64, junk, sizeof(junk)),
	    "%s: not written by way of /proc/self/mem (%zd) or a debugger (%zd)", area->name, wrote,
	    copied);
}

/* How a child ends that touches @at: 0 or the signal. */
static int child_touches(volatile const char *at)
{
	pid_t child = fork();
	int status = -1;

	if (!child)
		_exit(*at & 1);
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* A second mapping of the same is as good as the first; a fork has none unless told to. */
static void check_copies(struct client *client, const struct area *area)
{
	char *again = mmap(NULL, area->size, area->prot, MAP_SHARED, area->fd, area->offset);
	struct stacktap_consumer_page *consumer = client->rings[0].consumer;

	consumer->tail = 8;
	tap(again != MAP_FAILED && !memcmp(again, area->at, area->size), "%s: mapped twice",
	    area->name);
	consumer->tail = 0;
	tap(child_touches(again) == SIGSEGV, "%s: a fork has no such mapping", area->name);
	/* nothing says that it has to be refused; the child is one more holder then */
	if (!madvise(again, area->size, MADV_DOFORK))
		tap(!child_touches(again), "%s: a fork has what MADV_DOFORK gave it", area->name);
	munmap(again, area->size);
	/* no fault handler brings pages back */
	again = mmap(NULL, area->size, PROT_READ, MAP_SHARED, area->fd, area->offset);
	madvise(again, area->size, MADV_DOFORK);
	if (!madvise(again, area->size, MADV_DONTNEED))
		tap(child_touches(again) == SIGBUS, "%s: who drops its pages does without",
		    area->name);
	munmap(again, area->size);
}

/* A reader writes its position: who may not do both cannot map anything. */
static void check_modes(void)
{
	static const int modes[] = { O_RDONLY, O_WRONLY };
	struct stacktap_ring_create create;
	unsigned int i, taken = 0, nr = 0;
	int prot;

	for (i = 0; i < 2; i++) {
		struct area consumer = { .name = "consumer" };

		create = (struct stacktap_ring_create) {
			.size = sizeof(create), .data_bytes = RING_BYTES,
		};
		consumer.fd = open(STACKTAP_DEVICE, modes[i] | O_CLOEXEC);
		consumer.size = sysconf(_SC_PAGESIZE);
		nr += !ioctl(consumer.fd, STACKTAP_IOC_RING_CREATE, &create);
		for (prot = 0; prot < 8; prot++)
			taken += area_takes(&consumer, consumer.size, prot, MAP_SHARED,
					    create.consumer_offset);
		close(consumer.fd);
	}
	tap(nr == 2 && !taken, "opened to read or to write alone there is no mapping, %u taken", taken);
}

static void check_calls(int fd)
{
	char buffer[64] = "";
	int pipes[2];

	if (pipe(pipes))
		return;
	tap(read(fd, buffer, 64) < 0 && write(fd, buffer, 64) < 0 && pread(fd, buffer, 64, 0) < 0 &&
	    pwrite(fd, buffer, 64, 0) < 0 && ftruncate(fd, 0) < 0 && fallocate(fd, 0, 0, 64) < 0 &&
	    splice(fd, NULL, pipes[1], NULL, 64, 0) < 0 &&
	    splice(pipes[0], NULL, fd, NULL, 64, SPLICE_F_NONBLOCK) < 0,
	    "neither read nor written as a file");
	close(pipes[0]);
	close(pipes[1]);
}

/* The fd is gone, the mappings hold on; with the last of them the session is gone as well. */
static void check_closed(struct client *client)
{
	static const struct source clock = {
		.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK, .rate_hz = 997,
	};
	struct ring *ring = &client->rings[0];
	struct stacktap_info info = { .size = sizeof(info) };
	uint64_t head;
	unsigned int i;

	tap(!client_set_sources(client, &clock, 1) && !client_start(client), "START");
	tap(!close(client->fd) && ioctl(client->fd, STACKTAP_IOC_INFO, &info) && errno == EBADF &&
	    mmap(NULL, client->info.page_size, PROT_READ, MAP_SHARED, client->fd,
		 ring->consumer_offset) == MAP_FAILED, "a closed fd is nothing any more");
	head = __atomic_load_n(&ring->producer->head, __ATOMIC_ACQUIRE);
	for (i = 0; i < 600; i++) {
		load_burn(20);
		if (__atomic_load_n(&ring->producer->head, __ATOMIC_ACQUIRE) != head)
			break;
	}
	tap(i < 600, "the ring fills all the same");
	munmap(ring->consumer, client->info.page_size);
	tap(module_sessions() == 1, "one of its mappings holds the session");
	munmap(ring->producer, client->info.page_size + 2 * ring->data_bytes);
	tap(module_wait_idle(), "with the last one it ends");
	wire_close(&client->wire);
}

void case_abuse(void)
{
	struct area areas[2] = { { .name = "consumer", .prot = PROT_READ | PROT_WRITE },
				 { .name = "producer", .prot = PROT_READ } };
	struct client client;
	unsigned int i;

	if (!tap(!client_open(&client) && !client_add_ring(&client, 0, RING_BYTES), "open, a ring"))
		return;
	areas[0].offset = client.rings[0].consumer_offset;
	areas[0].size = client.info.page_size;
	areas[0].at = (char *)client.rings[0].consumer;
	areas[1].offset = client.rings[0].producer_offset;
	areas[1].size = client.info.page_size + 2 * client.rings[0].data_bytes;
	areas[1].at = (char *)client.rings[0].producer;
	for (i = 0; i < 2; i++) {
		areas[i].fd = client.fd;
		areas[i].page = client.info.page_size;
		check_protections(&areas[i]);
		check_upgrades(&areas[i]);
		check_places(&areas[i]);
		check_pieces(&areas[i]);
		check_copies(&client, &areas[i]);
	}
	check_forced(&areas[1]);
	check_modes();
	check_calls(client.fd);
	check_closed(&client);
}
