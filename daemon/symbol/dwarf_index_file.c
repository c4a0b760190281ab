// SPDX-License-Identifier: Apache-2.0
#include "symbol/dwarf_index_file.h"

#include <zlib.h>

static const char magic[8] = "dwarfidx";

struct index_header {
	char magic[8];
	uint32_t version, crc;		/* crc: of all that is behind it */
	/* which file it is of */
	uint64_t file_size, info_size;
	char build_id[48];		/* hexadecimal, filled up with NULs */
	uint32_t unit_count, range_count, silent_count, unused;
};

enum { CRC_FROM = offsetof(struct index_header, file_size) };

static void describe(const struct dwarf_index *index, const struct elf *elf, struct index_header *header)
{
	char build_id[41];

	memset(header, 0, sizeof(*header));
	memcpy(header->magic, magic, sizeof(magic));
	header->version = DWARF_INDEX_VERSION;
	header->file_size = elf->size;
	header->info_size = dwarf_size(index->units->file, DWARF_INFO);
	elf_build_id(elf, build_id);
	memcpy(header->build_id, build_id, strlen(build_id));
}

static uint64_t bytes_of(const struct index_header *header)
{
	return sizeof(*header) + ((uint64_t)header->unit_count + header->silent_count) * sizeof(uint64_t) +
	       (uint64_t)header->range_count * sizeof(struct dwarf_range);
}

static uint32_t crc_of(const void *bytes, size_t size)
{
	return (uint32_t)crc32(0, (const uint8_t *)bytes + CRC_FROM, (uInt)(size - CRC_FROM));
}

int dwarf_index_pack(const struct dwarf_index *index, const struct elf *elf, void **ret_bytes, size_t *ret_size)
{
	struct index_header header;
	uint8_t *bytes, *at;
	uint64_t size;

	describe(index, elf, &header);
	header.unit_count = index->units->count;
	header.range_count = index->count;
	header.silent_count = index->silent_count;
	size = bytes_of(&header);
	if (!header.unit_count)
		return -ENODATA;
	if (size > DWARF_INDEX_BYTES_MAX)
		return -EFBIG;
	bytes = at = malloc(size);
	if (!bytes)
		return -ENOMEM;
	at = mempcpy(at, &header, sizeof(header));
	at = mempcpy(at, index->units->starts, header.unit_count * sizeof(*index->units->starts));
	if (index->count)
		at = mempcpy(at, index->ranges, index->count * sizeof(*index->ranges));
	if (index->silent_count)
		memcpy(at, index->silent, index->silent_count * sizeof(*index->silent));
	header.crc = crc_of(bytes, size);
	memcpy(bytes, &header, sizeof(header));
	*ret_bytes = bytes;
	*ret_size = size;
	return 0;
}

/* Each behind the one before, and inside. */
static bool are_places(const uint64_t *places, uint32_t count, uint64_t end)
{
	for (uint32_t i = 0; i < count; i++)
		if (places[i] >= end || (i && places[i] <= places[i - 1]))
			return false;
	return true;
}

static bool are_ranges(const struct dwarf_range *ranges, uint32_t count, uint64_t end)
{
	for (uint32_t i = 0; i < count; i++)
		if (ranges[i].low >= ranges[i].high || ranges[i].unit >= end ||
		    (i && ranges[i].low < ranges[i - 1].high))
			return false;
	return true;
}

static bool is_header(const struct index_header *header, const struct index_header *wanted)
{
	return !memcmp(header->magic, wanted->magic, sizeof(magic)) && header->version == wanted->version &&
	       header->file_size == wanted->file_size && header->info_size == wanted->info_size &&
	       !memcmp(header->build_id, wanted->build_id, sizeof(wanted->build_id)) &&
	       header->unit_count && header->unit_count <= DWARF_UNITS_MAX &&
	       header->range_count <= DWARF_INDEX_RANGES_MAX && header->silent_count <= DWARF_UNITS_MAX;
}

static void *copy(const uint8_t **at, size_t size)
{
	void *bytes = malloc(size + 1);

	if (bytes)
		memcpy(bytes, *at, size);
	*at += size;
	return bytes;
}

int dwarf_index_unpack(struct dwarf_index *index, const struct elf *elf, const void *bytes, size_t size)
{
	_cleanup_free_ struct dwarf_range *ranges = NULL;
	_cleanup_free_ uint64_t *starts = NULL, *silent = NULL;
	struct index_header header, wanted;
	struct dwarf_units *units = index->units;
	const uint8_t *at = bytes;

	if (size < sizeof(header) || size > DWARF_INDEX_BYTES_MAX)
		return -EBADMSG;
	memcpy(&header, bytes, sizeof(header));
	describe(index, elf, &wanted);
	if (!is_header(&header, &wanted) || bytes_of(&header) != size || crc_of(bytes, size) != header.crc)
		return -EBADMSG;
	at += sizeof(header);
	starts = copy(&at, header.unit_count * sizeof(*starts));
	ranges = copy(&at, header.range_count * sizeof(*ranges));
	silent = copy(&at, header.silent_count * sizeof(*silent));
	if (!starts || !ranges || !silent)
		return -ENOMEM;
	if (!are_places(starts, header.unit_count, header.info_size) ||
	    !are_places(silent, header.silent_count, header.info_size) ||
	    !are_ranges(ranges, header.range_count, header.info_size))
		return -EBADMSG;
	free(units->starts);
	free(index->ranges);
	free(index->silent);
	units->starts = steal_ptr(starts);
	units->count = units->room = header.unit_count;
	units->is_all = true;
	units->next = header.info_size;
	index->ranges = steal_ptr(ranges);
	index->count = index->room = header.range_count;
	index->silent = steal_ptr(silent);
	index->silent_count = index->silent_room = header.silent_count;
	index->is_whole = true;
	return 0;
}
