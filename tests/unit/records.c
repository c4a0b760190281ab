// SPDX-License-Identifier: Apache-2.0
#include "records.h"

#include <string.h>
#include <sys/mman.h>

void records_free(struct records *records)
{
	free(records->data);
	*records = (struct records){ 0 };
}

void *records_add(struct records *records, size_t bytes)
{
	void *added;

	if (records->bytes + bytes > records->capacity) {
		records->capacity = 2 * (records->bytes + bytes);
		records->data = realloc(records->data, records->capacity);
		if (!records->data)
			abort();
	}
	added = records->data + records->bytes;
	memset(added, 0, bytes);
	records->bytes += bytes;
	return added;
}

static uint8_t *put_section(uint8_t **position, uint16_t kind, size_t bytes)
{
	struct stacktap_section *section = (void *)*position;

	section->kind = kind;
	section->len = (uint32_t)bytes;
	*position += sizeof(*section) + (bytes + 7) / 8 * 8;
	return (uint8_t *)(section + 1);
}

static size_t section_bytes(size_t bytes)
{
	return bytes ? sizeof(struct stacktap_section) + (bytes + 7) / 8 * 8 : 0;
}

static void put_bytes(uint8_t **position, uint16_t kind, const void *data, size_t bytes)
{
	if (bytes)
		memcpy(put_section(position, kind, bytes), data, bytes);
}

static void put_slice(uint8_t **position, const struct sample_spec *spec)
{
	uint8_t *at = put_section(position, STACKTAP_SECTION_STACK_SLICE,
				  sizeof(uint64_t) + spec->slice_bytes);

	((struct stacktap_section *)(void *)at - 1)->flags = spec->slice_end;
	memcpy(at, &spec->slice_address, sizeof(uint64_t));
	if (spec->slice_bytes)
		memcpy(at + sizeof(uint64_t), spec->slice, spec->slice_bytes);
}

size_t records_sample(struct records *records, const struct sample_spec *spec)
{
	size_t offset = records->bytes;
	size_t regs_bytes = spec->regs ? sizeof(*spec->regs) + spec->regs->count * 8 : 0;
	size_t size = sizeof(struct stacktap_sample) + section_bytes(spec->kernel_count * 8) +
		      section_bytes(spec->user_count * 8) + section_bytes(spec->exact_count * 2) +
		      section_bytes(regs_bytes) +
		      (spec->regs ? section_bytes(8 + spec->slice_bytes) : 0);
	struct stacktap_sample *sample = records_add(records, size);
	uint8_t *position = (uint8_t *)(sample + 1);

	sample->header.size = (uint32_t)size;
	sample->header.type = STACKTAP_RECORD_SAMPLE;
	sample->header.flags = spec->flags;
	sample->header.time = spec->time;
	sample->source = spec->source;
	sample->context = STACKTAP_CONTEXT_IRQ;
	sample->kernel_end = spec->kernel_count ? STACKTAP_END_COMPLETE : STACKTAP_END_NONE;
	sample->user_end = spec->user_end ? spec->user_end :
			   spec->user_count ? STACKTAP_END_COMPLETE : STACKTAP_END_NONE;
	sample->cpu = spec->cpu;
	sample->tgid = spec->tgid;
	sample->tid = spec->tid ? spec->tid : spec->tgid;
	sample->start_time = spec->start_time;
	sample->exec_id = spec->exec_id;
	sample->period = spec->period;
	if (spec->comm)
		snprintf(sample->comm, sizeof(sample->comm), "%.15s", spec->comm);
	put_bytes(&position, STACKTAP_SECTION_KERNEL_IPS, spec->kernel_ips, spec->kernel_count * 8);
	put_bytes(&position, STACKTAP_SECTION_USER_IPS, spec->user_ips, spec->user_count * 8);
	put_bytes(&position, STACKTAP_SECTION_EXACT_PC, spec->exact, spec->exact_count * 2);
	put_bytes(&position, STACKTAP_SECTION_REGS, spec->regs, regs_bytes);
	if (spec->regs)
		put_slice(&position, spec);
	return offset;
}

void records_config(struct records *records, uint16_t source, uint16_t mode, uint32_t rate_hz,
		    uint64_t period, uint32_t perf_type, uint64_t perf_config, const char *name)
{
	struct stacktap_config *config = records_add(records, sizeof(*config));

	config->header.size = sizeof(*config);
	config->header.type = STACKTAP_RECORD_CONFIG;
	config->source = source;
	config->mode = mode;
	config->rate_hz = rate_hz;
	config->period = period;
	config->perf_type = perf_type;
	config->perf_config = perf_config;
	snprintf(config->name, sizeof(config->name), "%s", name);
}

void records_lost(struct records *records, uint16_t source, uint16_t reason, uint64_t count)
{
	struct stacktap_lost_record *lost =
		records_add(records, sizeof(*lost) + sizeof(lost->entries[0]));

	lost->header.size = sizeof(*lost) + sizeof(lost->entries[0]);
	lost->header.type = STACKTAP_RECORD_LOST;
	lost->entries[0].source = source;
	lost->entries[0].reason = reason;
	lost->entries[0].count = count;
}

static void add_count(struct records *records, uint16_t type, uint16_t source, uint64_t count)
{
	struct stacktap_throttle *throttle = records_add(records, sizeof(*throttle));

	throttle->header.size = sizeof(*throttle);
	throttle->header.type = type;
	throttle->source = source;
	throttle->count = count;
}

void records_throttle(struct records *records, uint16_t source, uint64_t count)
{
	add_count(records, STACKTAP_RECORD_THROTTLE, source, count);
}

void records_stall(struct records *records, uint16_t source, uint64_t count)
{
	add_count(records, STACKTAP_RECORD_STALL, source, count);
}

void records_missed(struct records *records, uint16_t source, uint64_t count)
{
	add_count(records, STACKTAP_RECORD_MISSED, source, count);
}

void records_cpu(struct records *records, uint16_t state)
{
	struct stacktap_cpu_record *cpu = records_add(records, sizeof(*cpu));

	cpu->header.size = sizeof(*cpu);
	cpu->header.type = STACKTAP_RECORD_CPU;
	cpu->state = state;
}

struct sideband *fake_sideband_new(uint32_t cpu, size_t data_bytes)
{
	struct sideband *sideband = calloc(1, sizeof(*sideband));

	sideband->cpu = cpu;
	sideband->fd = -1;
	sideband->page = calloc(1, sizeof(*sideband->page));
	sideband->data = calloc(1, data_bytes);
	sideband->data_bytes = data_bytes;
	return sideband;
}

void fake_sideband_free(struct sideband *sideband)
{
	free((void *)(uintptr_t)sideband->data);
	free(sideband->page);
	free(sideband);
}

static void put(struct sideband *sideband, const void *bytes, size_t size)
{
	uint8_t *data = (uint8_t *)(uintptr_t)sideband->data;

	for (size_t i = 0; i < size; i++)
		data[sideband->page->data_head++ % sideband->data_bytes] =
			((const uint8_t *)bytes)[i];
}

void fake_raw(struct sideband *sideband, uint16_t type, uint16_t claimed, const void *body,
	      size_t bytes)
{
	const struct perf_event_header header = { .type = type, .size = claimed };

	put(sideband, &header, sizeof(header));
	put(sideband, body, bytes);
}

/* A fixed part, a string (or none) padded to 8 bytes, and the trailer of sample_id_all. */
static void put_record(struct sideband *sideband, uint32_t type, uint16_t misc, uint64_t time,
		       const void *fixed, size_t fixed_bytes, const char *text)
{
	size_t text_bytes = text ? (strlen(text) + 1 + 7) / 8 * 8 : 0;
	const struct perf_event_header header = {
		.type = type,
		.misc = misc,
		.size = (uint16_t)(sizeof(header) + fixed_bytes + text_bytes + SIDEBAND_TRAILER),
	};
	const uint64_t trailer[4] = { 0x1111111122222222, time, sideband->cpu, 77 };
	char padded[4096] = { 0 };

	if (text)
		memcpy(padded, text, strlen(text));
	put(sideband, &header, sizeof(header));
	put(sideband, fixed, fixed_bytes);
	put(sideband, padded, text_bytes);
	put(sideband, trailer, sizeof(trailer));
}

void fake_mmap(struct sideband *sideband, uint64_t time, uint32_t pid, uint64_t address,
	       uint64_t length, uint64_t file_offset, uint64_t inode, const char *path)
{
	const struct {
		uint32_t pid, tid;
		uint64_t address, length, offset;
		uint32_t major, minor;
		uint64_t inode, generation;
		uint32_t protection, flags;
	} body = { pid, pid, address, length, file_offset, 8, 1, inode, 5,
		   PROT_READ | PROT_EXEC, MAP_PRIVATE };

	put_record(sideband, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, time, &body, sizeof(body),
		   path);
}

void fake_comm(struct sideband *sideband, uint64_t time, uint32_t pid, const char *comm,
	       bool is_exec)
{
	const uint32_t body[2] = { pid, pid };

	put_record(sideband, PERF_RECORD_COMM, is_exec ? PERF_RECORD_MISC_COMM_EXEC : 0, time, body,
		   sizeof(body), comm);
}

void fake_task(struct sideband *sideband, uint32_t type, uint64_t time, uint32_t pid, uint32_t tid,
	       uint32_t parent_pid)
{
	const struct {
		uint32_t pid, parent_pid, tid, parent_tid;
		uint64_t time;
	} body = { pid, parent_pid, tid, parent_pid, time };

	put_record(sideband, type, 0, time, &body, sizeof(body), NULL);
}

void fake_lost(struct sideband *sideband, uint64_t time, uint64_t count)
{
	const uint64_t body[2] = { 77, count };

	put_record(sideband, PERF_RECORD_LOST, 0, time, body, sizeof(body), NULL);
}
