// SPDX-License-Identifier: Apache-2.0
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

int client_open(struct client *client)
{
	int err;

	memset(client, 0, sizeof(*client));
	client->fd = open(STACKTAP_DEVICE, O_RDWR | O_CLOEXEC);
	if (client->fd < 0)
		return -errno;
	client->info.size = sizeof(client->info);
	if (ioctl(client->fd, STACKTAP_IOC_INFO, &client->info))
		return -errno;
	err = wire_open(&client->wire);
	if (err)
		close(client->fd);
	return err;
}

void client_close(struct client *client)
{
	unsigned int cpu;

	for (cpu = 0; cpu < CLIENT_MAX_CPUS; cpu++) {
		struct ring *ring = &client->rings[cpu];

		if (!ring->data)
			continue;
		munmap(ring->consumer, client->info.page_size);
		munmap(ring->producer, client->info.page_size + 2 * ring->data_bytes);
	}
	wire_close(&client->wire);
	close(client->fd);
}

uint32_t client_least_ring(const struct client *client)
{
	return client->info.page_size > STACKTAP_RING_MIN_BYTES ? client->info.page_size :
								  STACKTAP_RING_MIN_BYTES;
}

int client_add_ring(struct client *client, unsigned int cpu, uint32_t data_bytes)
{
	uint32_t least = client_least_ring(client);
	struct ring *ring = &client->rings[cpu];
	uint32_t page = client->info.page_size;
	struct stacktap_ring_create create = {
		.size = sizeof(create), .cpu = cpu,
		.data_bytes = data_bytes < least ? least : data_bytes,
	};

	if (ioctl(client->fd, STACKTAP_IOC_RING_CREATE, &create))
		return -errno;
	ring->consumer_offset = create.consumer_offset;
	ring->producer_offset = create.producer_offset;
	ring->consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, client->fd,
			      create.consumer_offset);
	ring->producer = mmap(NULL, page + 2ul * create.data_bytes, PROT_READ, MAP_SHARED, client->fd,
			      create.producer_offset);
	if (ring->consumer == MAP_FAILED || ring->producer == MAP_FAILED)
		return -errno;
	ring->data = (const uint8_t *)ring->producer + page;
	ring->data_bytes = create.data_bytes;
	return 0;
}

int client_add_rings(struct client *client, uint32_t data_bytes)
{
	unsigned int cpu, nr = sysconf(_SC_NPROCESSORS_ONLN);
	int err = 0;

	for (cpu = 0; cpu < nr && cpu < CLIENT_MAX_CPUS && !err; cpu++)
		err = client_add_ring(client, cpu, data_bytes);
	return err;
}

static void client_malformed(struct client *client, const char *why)
{
	if (!client->malformed++)
		client->malformed_why = why;
}

static void client_take_slice(struct client *client, const struct stacktap_section *section,
			      struct sample_view *view)
{
	const uint32_t most = client->slice_bytes > client->slice_max_bytes ?
				      client->slice_bytes : client->slice_max_bytes;
	const uint64_t *address = (const void *)(section + 1);

	if (section->len < sizeof(*address) || section->len % 8 || !view->regs || *address % 8 ||
	    section->len - sizeof(*address) > most ||
	    section->flags >= STACKTAP_END_REASONS) {
		client_malformed(client, "STACK_SLICE");
		return;
	}
	view->slice_address = *address;
	view->slice = (const void *)(address + 1);
	view->slice_bytes = section->len - sizeof(*address);
	view->slice_end = section->flags;
	client->slices++;
}

static void client_take_sample(struct client *client, unsigned int cpu,
			       const struct stacktap_sample *sample)
{
	struct sample_view view = { .sample = sample };
	uint32_t at = sizeof(*sample), size = sample->header.size;
	unsigned int i;

	if (size < sizeof(*sample) || sample->source >= STACKTAP_MAX_SOURCES ||
	    sample->cpu != cpu || sample->kernel_end >= STACKTAP_END_REASONS ||
	    sample->user_end >= STACKTAP_END_REASONS || !sample->period) {
		client_malformed(client, "sample's fixed part");
		return;
	}
	client->ledgers[cpu][sample->source].samples++;
	if (!client->ledgers[cpu][sample->source].configured)
		client_malformed(client, "a sample without its CONFIG");
	while (at < size) {
		const struct stacktap_section *section = (const void *)((const char *)sample + at);
		uint32_t end = at + sizeof(*section) + (section->len + 7u) / 8 * 8;

		if (end > size) {
			client_malformed(client, "section beyond its record");
			return;
		}
		if (section->kind == STACKTAP_SECTION_KERNEL_IPS) {
			view.kernel_ips = (const void *)(section + 1);
			view.nr_kernel = section->len / 8;
		} else if (section->kind == STACKTAP_SECTION_USER_IPS) {
			view.user_ips = (const void *)(section + 1);
			view.nr_user = section->len / 8;
		} else if (section->kind == STACKTAP_SECTION_EXACT_PC) {
			view.exact = (const void *)(section + 1);
			view.nr_exact = section->len / 2;
		} else if (section->kind == STACKTAP_SECTION_REGS) {
			view.regs = (const void *)(section + 1);
			client->rings[cpu].slice_bytes += end - at;
			if (section->len != sizeof(*view.regs) + view.regs->count * 8)
				client_malformed(client, "REGS");
		} else if (section->kind == STACKTAP_SECTION_STACK_SLICE) {
			client->rings[cpu].slice_bytes += end - at;
			client_take_slice(client, section, &view);
		}
		at = end;
	}
	if (!view.regs != !view.slice)
		client_malformed(client, "registers without slice, or a slice without registers");
	if (view.slice && !sample->generation && sample->user_end != STACKTAP_END_NO_MAPPINGS)
		client_malformed(client, "a slice of a sample that has no use for it");
	if (client->slice_bytes && !view.slice && sample->user_end == STACKTAP_END_NO_MAPPINGS)
		client->sliceless++;
	if ((sample->kernel_end == STACKTAP_END_NONE) != !view.nr_kernel)
		client_malformed(client, "kernel half and its end disagree");
	for (i = 0; i < view.nr_exact; i++)
		if (view.exact[i] >= view.nr_user || view.exact[i] <= (i ? view.exact[i - 1] : 0))
			client_malformed(client, "EXACT_PC");
	if (sample->user_end == STACKTAP_END_COMPLETE && !view.nr_user)
		client_malformed(client, "complete but empty user stack");
	if (client->visit)
		client->visit(&view, client->visit_arg);
}

static void client_take(struct client *client, unsigned int cpu,
			const struct stacktap_record *record)
{
	const struct stacktap_cpu_record *state = (const void *)record;
	const struct stacktap_throttle *throttle = (const void *)record;
	const struct stacktap_lost_record *lost = (const void *)record;
	const struct stacktap_config *config = (const void *)record;
	struct ledger *ledgers = client->ledgers[cpu];
	unsigned int i;

	for (i = 0; i < STACKTAP_MAX_SOURCES; i++)
		ledgers[i].final = false;
	switch (record->type) {
	case STACKTAP_RECORD_SAMPLE:
		client_take_sample(client, cpu, (const void *)record);
		break;
	case STACKTAP_RECORD_CONFIG:
		ledgers[config->source].config = *config;
		ledgers[config->source].configs++;
		ledgers[config->source].configured = true;
		if (!client->rings[cpu].anchors)
			client_malformed(client, "CONFIG before CLOCK_ANCHOR");
		break;
	case STACKTAP_RECORD_LOST:
		for (i = 0; i < (record->size - sizeof(*lost)) / sizeof(lost->entries[0]); i++) {
			if (lost->entries[i].reason >= STACKTAP_LOST_REASONS ||
			    !lost->entries[i].count)
				client_malformed(client, "LOST entry");
			else
				ledgers[lost->entries[i].source].lost[lost->entries[i].reason] +=
					lost->entries[i].count;
		}
		break;
	case STACKTAP_RECORD_THROTTLE:
		ledgers[throttle->source].throttles = throttle->count;
		break;
	case STACKTAP_RECORD_STALL:
		ledgers[throttle->source].stalls = throttle->count;
		break;
	case STACKTAP_RECORD_MISSED:
		ledgers[throttle->source].missed = throttle->count;
		break;
	case STACKTAP_RECORD_CPU:
		client->rings[cpu].refusals += state->state == STACKTAP_CPU_NO_COUNTER;
		if (state->state == STACKTAP_CPU_NO_COUNTER && !client->rings[cpu].anchors)
			client_malformed(client, "NO_COUNTER before CLOCK_ANCHOR");
		if (state->state != STACKTAP_CPU_STOPPED &&
		    state->state != STACKTAP_CPU_NO_COUNTER &&
		    (state->state == STACKTAP_CPU_ONLINE) ==
		    (client->rings[cpu].state == STACKTAP_CPU_ONLINE))
			client_malformed(client, "a CPU that begins twice or ends twice");
		client->rings[cpu].state = state->state;
		for (i = 0; i < state->sources; i++) {
			ledgers[i].configured = false;
			ledgers[i].counts = state->counts[i];
			ledgers[i].lost_budget =
				((const struct stacktap_cpu_more *)&state->counts[state->sources])[i]
					.lost_budget;
			ledgers[i].final = state->state == STACKTAP_CPU_STOPPED;
		}
		break;
	case STACKTAP_RECORD_CLOCK_ANCHOR:
		client->rings[cpu].anchors++;
		break;
	default:
		client_malformed(client, "unknown type");
	}
}

void client_drain(struct client *client)
{
	unsigned int cpu;

	for (cpu = 0; cpu < CLIENT_MAX_CPUS; cpu++) {
		struct ring *ring = &client->rings[cpu];
		uint64_t head;

		if (!ring->data)
			continue;
		head = __atomic_load_n(&ring->producer->head, __ATOMIC_ACQUIRE);
		if (head - ring->tail > ring->data_bytes) {
			client_malformed(client, "head beyond the ring");
			return;
		}
		ring->slice_bytes = 0;
		while (ring->tail != head) {
			const struct stacktap_record *record =
				(const void *)(ring->data + (ring->tail & (ring->data_bytes - 1)));

			if (record->size < sizeof(*record) || record->size % 8 ||
			    record->size > head - ring->tail) {
				client_malformed(client, "record's size");
				return;
			}
			if (!ring->records++)
				ring->first_type = record->type;
			client_take(client, cpu, record);
			ring->tail += record->size;
		}
		if (ring->slice_bytes > ring->data_bytes / 4)
			client_malformed(client, "slices take more than a quarter of a ring");
		__atomic_store_n(&ring->consumer->tail, ring->tail, __ATOMIC_RELEASE);
	}
}

int client_flush(struct client *client)
{
	struct stacktap_flush flush = { .size = sizeof(flush) };

	return ioctl(client->fd, STACKTAP_IOC_FLUSH, &flush) ? -errno : 0;
}

void client_begin(struct client *client, struct message *message, uint8_t command)
{
	message_begin(&client->wire, message, command, 0);
	message_put_u64(message, STACKTAP_A_SESSION_ID, client->info.session_id);
}

int client_send(struct client *client, struct message *message)
{
	return wire_call(&client->wire, message, NULL, NULL);
}

int client_start(struct client *client)
{
	struct message message;

	client_begin(client, &message, STACKTAP_CMD_START);
	return client_send(client, &message);
}

int client_stop(struct client *client)
{
	struct message message;

	client_begin(client, &message, STACKTAP_CMD_STOP);
	return client_send(client, &message);
}

int client_set_sources(struct client *client, const struct source *sources, unsigned int nr)
{
	struct message message;
	size_t list, nest;
	unsigned int i;

	client_begin(client, &message, STACKTAP_CMD_SET_SESSION);
	list = message_nest_begin(&message, STACKTAP_A_SOURCES);
	for (i = 0; i < nr; i++) {
		nest = message_nest_begin(&message, STACKTAP_A_SOURCE);
		message_put_u32(&message, STACKTAP_SRC_ID, i);
		message_put(&message, STACKTAP_SRC_NAME, sources[i].name,
			    strlen(sources[i].name) + 1);
		message_put_u32(&message, STACKTAP_SRC_TYPE, sources[i].type);
		message_put_u64(&message, STACKTAP_SRC_CONFIG, sources[i].config);
		if (sources[i].config1)
			message_put_u64(&message, STACKTAP_SRC_CONFIG1, sources[i].config1);
		if (sources[i].rate_hz)
			message_put_u32(&message, STACKTAP_SRC_RATE_HZ, sources[i].rate_hz);
		if (sources[i].period)
			message_put_u64(&message, STACKTAP_SRC_PERIOD, sources[i].period);
		if (sources[i].nominal_hz)
			message_put_u64(&message, STACKTAP_SRC_NOMINAL_HZ, sources[i].nominal_hz);
		if (sources[i].flags)
			message_put_u32(&message, STACKTAP_SRC_FLAGS, sources[i].flags);
		if (sources[i].mode)
			message_put_u8(&message, STACKTAP_SRC_MODE, sources[i].mode);
		message_nest_end(&message, nest);
	}
	message_nest_end(&message, list);
	return client_send(client, &message);
}

int client_set_slices(struct client *client, uint32_t bytes, uint32_t every)
{
	struct message message;
	int err;

	client_begin(client, &message, STACKTAP_CMD_SET_SESSION);
	message_put_u32(&message, STACKTAP_A_SLICE_BYTES, bytes);
	if (every)
		message_put_u32(&message, STACKTAP_A_SLICE_EVERY, every);
	err = client_send(client, &message);
	if (!err)
		client->slice_bytes = bytes;
	return err;
}

int client_set_slice_max(struct client *client, uint32_t bytes)
{
	struct message message;
	int err;

	client_begin(client, &message, STACKTAP_CMD_SET_SESSION);
	message_put_u32(&message, STACKTAP_A_SLICE_MAX_BYTES, bytes);
	err = client_send(client, &message);
	if (!err)
		client->slice_max_bytes = bytes;
	return err;
}

int client_set_rate(struct client *client, unsigned int id, uint32_t rate_hz)
{
	struct message message;
	size_t list, nest;

	client_begin(client, &message, STACKTAP_CMD_SET_SESSION);
	list = message_nest_begin(&message, STACKTAP_A_SOURCES);
	nest = message_nest_begin(&message, STACKTAP_A_SOURCE);
	message_put_u32(&message, STACKTAP_SRC_ID, id);
	message_put_u32(&message, STACKTAP_SRC_RATE_HZ, rate_hz);
	message_nest_end(&message, nest);
	message_nest_end(&message, list);
	return client_send(client, &message);
}

int client_set_filter(struct client *client, uint64_t cpus, const uint32_t *tgids,
		      unsigned int nr_tgids, uint32_t flags)
{
	struct message message;
	size_t nest;

	client_begin(client, &message, STACKTAP_CMD_SET_SESSION);
	nest = message_nest_begin(&message, STACKTAP_A_FILTER);
	if (cpus)
		message_put_u64(&message, STACKTAP_FILTER_CPUS, cpus);
	if (nr_tgids)
		message_put(&message, STACKTAP_FILTER_TGIDS, tgids, nr_tgids * sizeof(*tgids));
	if (flags)
		message_put_u32(&message, STACKTAP_FILTER_FLAGS, flags);
	message_nest_end(&message, nest);
	return client_send(client, &message);
}

struct count {
	unsigned int source;
	uint16_t type;
	uint64_t sum;
};

static void client_visit_cpu(const void *attrs, size_t size, void *arg)
{
	struct count *count = arg;
	const void *counts = NULL, *cpu;
	size_t counts_size, cpu_size;

	cpu = attr_find(attrs, size, STACKTAP_A_CPU, &cpu_size);
	while (cpu && (counts = attr_next(cpu, cpu_size, STACKTAP_A_COUNTS, counts, &counts_size)))
		if (attr_u32(counts, counts_size, STACKTAP_CNT_SRC_ID) == count->source)
			count->sum += attr_u64(counts, counts_size, count->type);
}

struct time_visit {
	uint16_t ns_type;
	uint16_t times_type;
	struct times times;
};

static void client_visit_times(const void *attrs, size_t size, void *arg)
{
	struct time_visit *visit = arg;
	struct times *times = &visit->times;
	const void *cpu, *nest;
	size_t cpu_size, nest_size;
	unsigned int i;

	cpu = attr_find(attrs, size, STACKTAP_A_CPU, &cpu_size);
	nest = cpu ? attr_find(cpu, cpu_size, visit->times_type, &nest_size) : NULL;
	if (!nest)
		return;
	times->ns += attr_u64(cpu, cpu_size, visit->ns_type);
	for (i = 0; i < STACKTAP_TIME_BUCKETS; i++) {
		uint64_t count = attr_u64(nest, nest_size, (uint16_t)(i + 1));

		times->buckets[i] += count;
		times->count += count;
	}
}

struct times client_times(struct client *client, uint16_t ns_type, uint16_t times_type)
{
	struct time_visit visit = { .ns_type = ns_type, .times_type = times_type };
	struct message message;

	message_begin(&client->wire, &message, STACKTAP_CMD_GET_CPU, NLM_F_DUMP);
	message_put_u64(&message, STACKTAP_A_SESSION_ID, client->info.session_id);
	wire_call(&client->wire, &message, client_visit_times, &visit);
	return visit.times;
}

uint64_t client_count(struct client *client, unsigned int source, uint16_t type)
{
	struct count count = { .source = source, .type = type };
	struct message message;

	message_begin(&client->wire, &message, STACKTAP_CMD_GET_CPU, NLM_F_DUMP);
	message_put_u64(&message, STACKTAP_A_SESSION_ID, client->info.session_id);
	if (wire_call(&client->wire, &message, client_visit_cpu, &count))
		return UINT64_MAX;
	return count.sum;
}

uint64_t client_unrecorded(struct client *client)
{
	/* first, so that what comes in between makes the difference no less than nothing */
	uint64_t recorded = client_count(client, 0, STACKTAP_CNT_RECORDED);

	return client_count(client, 0, STACKTAP_CNT_CALLS) - recorded;
}

struct cpu_query {
	unsigned int cpu;
	unsigned int state;
	unsigned int error;
};

static void client_visit_state(const void *attrs, size_t size, void *arg)
{
	struct cpu_query *query = arg;
	size_t cpu_size;
	const void *cpu = attr_find(attrs, size, STACKTAP_A_CPU, &cpu_size);

	if (!cpu || attr_u32(cpu, cpu_size, STACKTAP_A_CPU_ID) != query->cpu)
		return;
	query->state = attr_u8(cpu, cpu_size, STACKTAP_A_CPU_STATE);
	query->error = attr_u32(cpu, cpu_size, STACKTAP_A_ERRNO);
}

static struct cpu_query client_ask_cpu(struct client *client, unsigned int cpu)
{
	struct cpu_query query = { .cpu = cpu };
	struct message message;

	message_begin(&client->wire, &message, STACKTAP_CMD_GET_CPU, NLM_F_DUMP);
	message_put_u64(&message, STACKTAP_A_SESSION_ID, client->info.session_id);
	wire_call(&client->wire, &message, client_visit_state, &query);
	return query;
}

unsigned int client_cpu_state(struct client *client, unsigned int cpu)
{
	return client_ask_cpu(client, cpu).state;
}

unsigned int client_cpu_error(struct client *client, unsigned int cpu)
{
	return client_ask_cpu(client, cpu).error;
}

bool client_balanced(struct client *client)
{
	unsigned int cpu, i, reason;
	bool good = !client->malformed;

	if (client->malformed)
		printf("# %u malformed records: %s\n", client->malformed, client->malformed_why);
	for (cpu = 0; cpu < CLIENT_MAX_CPUS; cpu++) {
		for (i = 0; client->rings[cpu].data && i < STACKTAP_MAX_SOURCES; i++) {
			const struct ledger *ledger = &client->ledgers[cpu][i];
			uint64_t sum = ledger->samples + ledger->counts.filtered;
			bool lost = true;

			if (!ledger->configs)
				continue;
			for (reason = 0; reason < STACKTAP_LOST_REASONS; reason++) {
				sum += ledger->lost[reason];
				lost &= ledger->lost[reason] == (reason == STACKTAP_LOST_BUDGET ?
					ledger->lost_budget : ledger->counts.lost[reason]);
			}
			if (ledger->final && sum == ledger->counts.calls && lost &&
			    ledger->samples == ledger->counts.recorded &&
			    ledger->throttles == ledger->counts.throttled)
				continue;
			good = false;
			printf("# cpu %u source %u: final %d, calls %llu, parsed+lost+filtered %llu, recorded %llu, parsed %llu, lost agree %d, throttled %llu, told %llu\n",
			       cpu, i, ledger->final, ledger->counts.calls,
			       (unsigned long long)sum, ledger->counts.recorded,
			       (unsigned long long)ledger->samples, lost, ledger->counts.throttled,
			       (unsigned long long)ledger->throttles);
		}
	}
	return good;
}

uint64_t client_samples(const struct client *client, unsigned int source)
{
	uint64_t sum = 0;
	unsigned int cpu;

	for (cpu = 0; cpu < CLIENT_MAX_CPUS; cpu++)
		sum += client->ledgers[cpu][source].samples;
	return sum;
}

uint64_t client_lost(const struct client *client, enum stacktap_lost reason)
{
	uint64_t sum = 0;
	unsigned int cpu, i;

	for (cpu = 0; cpu < CLIENT_MAX_CPUS; cpu++)
		for (i = 0; i < STACKTAP_MAX_SOURCES; i++)
			sum += client->ledgers[cpu][i].lost[reason];
	return sum;
}

uint64_t client_calls(const struct client *client, unsigned int source)
{
	uint64_t sum = 0;
	unsigned int cpu;

	for (cpu = 0; cpu < CLIENT_MAX_CPUS; cpu++)
		sum += client->ledgers[cpu][source].counts.calls;
	return sum;
}
