// SPDX-License-Identifier: Apache-2.0
#include "tables.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "frameless.h"

int tables_load(struct client *client, const void *data, size_t size, uint64_t *ret_id)
{
	struct stacktap_table_load load = {
		.size = sizeof(load), .data = (uintptr_t)data, .data_bytes = size,
	};

	if (ioctl(client->fd, STACKTAP_IOC_TABLE_LOAD, &load))
		return -errno;
	*ret_id = load.table_id;
	return 0;
}

int tables_drop(struct client *client, uint64_t id)
{
	struct stacktap_table_drop drop = { .size = sizeof(drop), .table_id = id };

	return ioctl(client->fd, STACKTAP_IOC_TABLE_DROP, &drop) ? -errno : 0;
}

int tables_image(struct client *client, pid_t pid, struct stacktap_image *ret_image)
{
	memset(ret_image, 0, sizeof(*ret_image));
	ret_image->size = sizeof(*ret_image);
	ret_image->tgid = pid;
	return ioctl(client->fd, STACKTAP_IOC_IMAGE, ret_image) ? -errno : 0;
}

int tables_set(struct client *client, const struct stacktap_image *image, uint64_t generation,
	       const struct stacktap_mapping *mappings, uint32_t count)
{
	struct stacktap_mappings_set set = {
		.size = sizeof(set), .tgid = image->tgid, .start_time = image->start_time,
		.exec_id = image->exec_id, .generation = generation,
		.mappings = (uintptr_t)mappings, .count = count,
	};

	return ioctl(client->fd, STACKTAP_IOC_MAPPINGS_SET, &set) ? -errno : 0;
}

int tables_set_frameless(struct client *client, pid_t pid, uint64_t generation)
{
	struct stacktap_mapping mappings[3] = { 0 };
	uint64_t text[2], range[2], id = 0;
	struct stacktap_image image;
	const void *data;
	size_t size;
	int err;

	frameless_text(&text[0], &text[1]);
	frameless_range(&range[0], &range[1]);
	mappings[0].start = text[0];
	mappings[0].end = range[0];
	mappings[1].start = range[0];
	mappings[1].end = range[1];
	mappings[2].start = range[1];
	mappings[2].end = text[1];
	data = frameless_table(&size);
	err = tables_load(client, data, size, &id);
	mappings[1].table_id = id;
	if (!err)
		err = tables_image(client, pid, &image);
	if (!err)
		err = tables_set(client, &image, generation, mappings, 3);
	return err;
}

static void read_sums(const void *attrs, size_t size, struct table_sums *sums)
{
	sums->tables = attr_u32(attrs, size, STACKTAP_A_TABLES);
	sums->lists = attr_u32(attrs, size, STACKTAP_A_LISTS);
	sums->table_bytes = attr_u64(attrs, size, STACKTAP_A_TABLE_BYTES);
	sums->table_limit = attr_u64(attrs, size, STACKTAP_A_TABLE_LIMIT);
	sums->list_bytes = attr_u64(attrs, size, STACKTAP_A_LIST_BYTES);
	sums->lists_refused = attr_u64(attrs, size, STACKTAP_A_LISTS_REFUSED);
}

static void visit_module(const void *attrs, size_t size, void *arg)
{
	read_sums(attrs, size, arg);
}

struct table_sums tables_of_module(struct client *client)
{
	/* nothing matches an answer that did not come */
	struct table_sums sums = { .tables = UINT32_MAX, .lists = UINT32_MAX };
	struct message message;

	message_begin(&client->wire, &message, STACKTAP_CMD_GET_MODULE, 0);
	wire_call(&client->wire, &message, visit_module, &sums);
	return sums;
}

static void visit_session(const void *attrs, size_t size, void *arg)
{
	const void *session = attr_find(attrs, size, STACKTAP_A_SESSION, &size);

	if (session)
		read_sums(session, size, arg);
}

struct table_sums tables_of_session(struct client *client)
{
	struct table_sums sums = { .tables = UINT32_MAX, .lists = UINT32_MAX };
	struct message message;

	client_begin(client, &message, STACKTAP_CMD_GET_SESSION);
	wire_call(&client->wire, &message, visit_session, &sums);
	return sums;
}

struct listed {
	unsigned int count;
	uint64_t id, hit;
};

static void visit_table(const void *attrs, size_t size, void *arg)
{
	const void *table = attr_find(attrs, size, STACKTAP_A_TABLE, &size);
	struct listed *listed = arg;
	uint64_t id = table ? attr_u64(table, size, STACKTAP_A_TABLE_ID) : 0;

	if (!table || id <= listed->id || !attr_u64(table, size, STACKTAP_A_TABLE_BYTES) ||
	    !attr_u32(table, size, STACKTAP_A_TABLE_USERS))
		return;
	listed->count++;
	listed->id = id;
	listed->hit = attr_u64(table, size, STACKTAP_A_TABLE_HIT);
}

unsigned int tables_listed(struct client *client, bool all, uint64_t *ret_hit)
{
	struct listed listed = { 0 };
	struct message message;

	message_begin(&client->wire, &message, STACKTAP_CMD_GET_TABLE, NLM_F_DUMP);
	if (!all)
		message_put_u64(&message, STACKTAP_A_SESSION_ID, client->info.session_id);
	if (wire_call(&client->wire, &message, visit_table, &listed))
		return UINT32_MAX;
	if (ret_hit)
		*ret_hit = listed.hit;
	return listed.count;
}

struct cpu_sum {
	uint16_t type;
	uint64_t sum;
};

static void visit_cpu(const void *attrs, size_t size, void *arg)
{
	const void *cpu = attr_find(attrs, size, STACKTAP_A_CPU, &size);
	struct cpu_sum *sum = arg;

	if (cpu)
		sum->sum += attr_u64(cpu, size, sum->type);
}

uint64_t tables_count(struct client *client, uint16_t type)
{
	struct cpu_sum sum = { .type = type };
	struct message message;

	message_begin(&client->wire, &message, STACKTAP_CMD_GET_CPU, NLM_F_DUMP);
	message_put_u64(&message, STACKTAP_A_SESSION_ID, client->info.session_id);
	wire_call(&client->wire, &message, visit_cpu, &sum);
	return sum.sum;
}

bool tables_wait(struct client *client, uint32_t lists)
{
	unsigned int i;

	for (i = 0; i < 600; i++) {
		if (tables_of_module(client).lists <= lists)
			return true;
		usleep(50000);
	}
	return false;
}
