// SPDX-License-Identifier: Apache-2.0
#include "export/cut_take.h"

#include <endian.h>
#include <string.h>

#include "base/pool.h"
#include "base/varint.h"
#include "export/cut_format.h"

uint64_t cut_take(struct cut_bytes *bytes)
{
	uint64_t value;

	if (varint_take(&bytes->at, bytes->end, &value))
		return value;
	bytes->is_bad = true;
	return 0;
}

int64_t cut_take_signed(struct cut_bytes *bytes)
{
	return cut_unzigzag(cut_take(bytes));
}

uint32_t cut_take_below(struct cut_bytes *bytes, uint64_t limit)
{
	const uint64_t value = cut_take(bytes);

	if (value >= limit)
		bytes->is_bad = true;
	return bytes->is_bad ? 0 : (uint32_t)value;
}

uint32_t cut_take_word(struct cut_bytes *bytes)
{
	return cut_take_below(bytes, (uint64_t)UINT32_MAX + 1);
}

static bool take_sized(struct cut_bytes *bytes, void *ret_value, size_t size)
{
	if (bytes->is_bad || (size_t)(bytes->end - bytes->at) < size) {
		bytes->is_bad = true;
		return false;
	}
	memcpy(ret_value, bytes->at, size);
	bytes->at += size;
	return true;
}

uint8_t cut_take8(struct cut_bytes *bytes)
{
	uint8_t value = 0;

	take_sized(bytes, &value, sizeof(value));
	return value;
}

uint16_t cut_take16(struct cut_bytes *bytes)
{
	uint16_t value = 0;

	take_sized(bytes, &value, sizeof(value));
	return le16toh(value);
}

uint32_t cut_take32(struct cut_bytes *bytes)
{
	uint32_t value = 0;

	take_sized(bytes, &value, sizeof(value));
	return le32toh(value);
}

const uint8_t *cut_take_bytes(struct cut_bytes *bytes, size_t most, size_t *ret_size)
{
	const uint64_t size = cut_take(bytes);
	const uint8_t *at = bytes->at;

	*ret_size = 0;
	if (bytes->is_bad || size > most || size > (uint64_t)(bytes->end - at)) {
		bytes->is_bad = true;
		return at;
	}
	bytes->at += size;
	*ret_size = (size_t)size;
	return at;
}

void cut_take_text(struct cut_bytes *bytes, char *ret_text, size_t room)
{
	size_t size;
	const uint8_t *at = cut_take_bytes(bytes, room - 1, &size);

	memcpy(ret_text, at, size);
	ret_text[size] = '\0';
}

int cut_table_add(struct cut_table *table, void *item)
{
	const uint32_t more = table->capacity ? table->capacity + table->capacity / 2 : 64;
	void **items;

	if (table->count == table->capacity) {
		if (!pool_charge(POOL_AGGREGATE, (more - table->capacity) * sizeof(*items)))
			return -ENOBUFS;
		items = reallocarray(table->items, more, sizeof(*items));
		if (!items) {
			pool_uncharge(POOL_AGGREGATE, (more - table->capacity) * sizeof(*items));
			return -ENOMEM;
		}
		table->items = items;
		table->capacity = more;
	}
	table->items[table->count++] = item;
	return 0;
}

void cut_table_free(struct cut_table *table)
{
	pool_uncharge(POOL_AGGREGATE, table->capacity * sizeof(*table->items));
	free(table->items);
	*table = (struct cut_table){ 0 };
}

void *cut_take_item(struct cut_bytes *bytes, const struct cut_table *table)
{
	const uint32_t index = cut_take_below(bytes, (uint64_t)table->count + 1);

	return index ? table->items[index - 1] : NULL;
}
