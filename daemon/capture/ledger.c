// SPDX-License-Identifier: Apache-2.0
#include "capture/ledger.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* with the size of a CPU's part: another layout is another version */
#define LEDGER_MAGIC (0x53544c4400000000ULL | sizeof(struct ledger_cpu))

enum { LEDGER_MAX_CPUS = 65536, LEDGER_SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static uint64_t ledger_bytes(uint32_t limit)
{
	return sizeof(struct ledger) + (uint64_t)limit * sizeof(struct ledger_cpu);
}

int ledger_new(uint32_t limit, int *ret_fd, struct ledger **ret_ledger)
{
	const uint64_t bytes = ledger_bytes(limit);
	int fd = memfd_create("stacktap-ledger", MFD_CLOEXEC | MFD_ALLOW_SEALING), r;
	struct ledger *ledger;

	if (fd < 0)
		return -errno;
	/* who maps it must not lose its end */
	if (ftruncate(fd, (off_t)bytes) < 0 || fcntl(fd, F_ADD_SEALS, LEDGER_SEALS) < 0)
		goto fail;
	ledger = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ledger == MAP_FAILED)
		goto fail;
	ledger->limit = limit;
	ledger->bytes = bytes;
	ledger->magic = LEDGER_MAGIC;
	*ret_fd = fd;
	*ret_ledger = ledger;
	return 0;
fail:
	r = -errno;
	close(fd);
	return r;
}

int ledger_open(int fd, struct ledger **ret_ledger, uint32_t *ret_limit)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct ledger *ledger;
	struct stat st;
	uint64_t bytes;

	if (seals < 0 || (seals & LEDGER_SEALS) != LEDGER_SEALS || fstat(fd, &st) < 0 ||
	    st.st_size < (off_t)sizeof(*ledger))
		return -EBADMSG;
	bytes = (uint64_t)st.st_size;
	ledger = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ledger == MAP_FAILED)
		return -errno;
	*ret_limit = __atomic_load_n(&ledger->limit, __ATOMIC_RELAXED);
	if (ledger->magic != LEDGER_MAGIC || ledger->bytes != bytes || *ret_limit > LEDGER_MAX_CPUS ||
	    ledger_bytes(*ret_limit) != bytes) {
		munmap(ledger, bytes);
		return -EBADMSG;
	}
	*ret_ledger = ledger;
	return 0;
}

void ledger_free(struct ledger *ledger, uint32_t limit)
{
	if (ledger)
		munmap(ledger, ledger_bytes(limit));
}

struct stacktap_throttle *ledger_count(struct ledger_counts *counts, const struct stacktap_record *record)
{
	static const uint16_t types[] = { STACKTAP_RECORD_THROTTLE, STACKTAP_RECORD_STALL, STACKTAP_RECORD_MISSED };
	const struct stacktap_throttle *count = (const void *)record;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (record->type == types[i] && count->source < STACKTAP_MAX_SOURCES)
			return &counts->of[count->source][i];
	return NULL;
}

void ledger_note(struct ledger *ledger, uint32_t limit, uint32_t cpu, const struct stacktap_record *record)
{
	const struct stacktap_config *config = (const void *)record;
	struct stacktap_throttle *count = cpu < limit ? ledger_count(&ledger->cpus[cpu].counts, record) : NULL;

	if (count)
		*count = *(const struct stacktap_throttle *)(const void *)record;
	else if (record->type == STACKTAP_RECORD_CONFIG && cpu < limit &&
		 config->source < STACKTAP_MAX_SOURCES)
		ledger->cpus[cpu].configs[config->source] = *config;
}
