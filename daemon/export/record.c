// SPDX-License-Identifier: Apache-2.0
#include "export/record.h"

#include <endian.h>
#include <string.h>
#include <sys/uio.h>
#include <zlib.h>

#include "base/file.h"
#include "base/log.h"

#define VERSION 1

/* Tag of field 2^29 - 1 of wire type LEN, and the length of what follows. */
static const uint8_t head[] = { 0xfa, 0xff, 0xff, 0xff, 0x0f, 0x10 };

enum {
	TAG_RESOURCE_PROFILES = 0x0a,
	TAG_DICTIONARY = 0x12,
	AT_VERSION = sizeof(head),
	AT_SAMPLES = sizeof(head) + 4,
	AT_CHECKSUM = sizeof(head) + 12,
};

int record_write(int fd, uint64_t *size, const uint8_t *data, size_t data_size,
		 const uint8_t *seal)
{
	const size_t seal_size = seal ? RECORD_SEAL : 0;
	uint32_t length = htobe32((uint32_t)(data_size + seal_size));
	struct iovec parts[] = {
		{ .iov_base = &length, .iov_len = sizeof(length) },
		{ .iov_base = (void *)(uintptr_t)data, .iov_len = data_size },
		{ .iov_base = (void *)(uintptr_t)seal, .iov_len = seal_size },
	};
	size_t left = sizeof(length) + data_size + seal_size;
	ssize_t written;
	int err;

	if (!data_size || data_size > RECORD_MESSAGE_MAX - seal_size)
		return -EMSGSIZE;
	while (left) {
		written = writev(fd, parts, ARRAY_SIZE(parts));
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0) {
			err = written < 0 ? -errno : -EIO;
			/* best effort: readers also stop at a message that is cut off */
			if (ftruncate(fd, (off_t)*size) || lseek(fd, (off_t)*size, SEEK_SET) < 0)
				log_debug("a cut message stays at the end of a file: %m");
			return err;
		}
		left -= (size_t)written;
		for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
			size_t step = min_of((size_t)written, parts[i].iov_len);

			parts[i].iov_base = (char *)parts[i].iov_base + step;
			parts[i].iov_len -= step;
			written -= (ssize_t)step;
		}
	}
	*size += sizeof(length) + data_size + seal_size;
	return 0;
}

static uint32_t checksum(const uint8_t *data, size_t size, const uint8_t seal[RECORD_SEAL])
{
	uint32_t length = htobe32((uint32_t)(size + RECORD_SEAL));
	uint8_t bare[RECORD_SEAL];
	uLong sum;

	memcpy(bare, seal, sizeof(bare));
	bare[RECORD_STATE] = 0;
	memset(bare + AT_CHECKSUM, 0, sizeof(uint32_t));
	sum = crc32(crc32(0, NULL, 0), (const Bytef *)&length, sizeof(length));
	sum = crc32_z(sum, data, size);
	return (uint32_t)crc32(sum, bare, sizeof(bare));
}

void record_seal(const uint8_t *data, size_t size, uint64_t samples, uint8_t ret_seal[RECORD_SEAL])
{
	uint32_t sum;

	memset(ret_seal, 0, RECORD_SEAL);
	memcpy(ret_seal, head, sizeof(head));
	ret_seal[AT_VERSION] = VERSION;
	samples = htobe64(samples);
	memcpy(ret_seal + AT_SAMPLES, &samples, sizeof(samples));
	sum = htobe32(checksum(data, size, ret_seal));
	memcpy(ret_seal + AT_CHECKSUM, &sum, sizeof(sum));
	ret_seal[RECORD_STATE] = RECORD_WAITS;
}

struct record record_peek(const uint8_t last[RECORD_SEAL], size_t size)
{
	struct record record = { .size = size };

	if (size <= RECORD_SEAL || memcmp(last, head, sizeof(head)) || last[AT_VERSION] != VERSION)
		return record;
	record.size = size - RECORD_SEAL;
	record.is_sealed = true;
	record.is_taken = last[RECORD_STATE] == RECORD_TAKEN;
	memcpy(&record.samples, last + AT_SAMPLES, sizeof(record.samples));
	/* unchecked: each takes a byte at least, which keeps a damaged number out of all sums */
	record.samples = min_of(be64toh(record.samples), (uint64_t)record.size);
	return record;
}

int record_check(const uint8_t *data, size_t size, struct record *ret_record)
{
	const uint8_t *seal = data + (size > RECORD_SEAL ? size - RECORD_SEAL : 0);
	uint32_t sum;

	if (size <= RECORD_SEAL) {
		*ret_record = (struct record){ .size = size };
		return 0;
	}
	*ret_record = record_peek(seal, size);
	if (!ret_record->is_sealed)
		return 0;
	memcpy(&sum, seal + AT_CHECKSUM, sizeof(sum));
	return be32toh(sum) == checksum(data, ret_record->size, seal) ? 0 : -EBADMSG;
}

int record_read_head(int fd, uint64_t offset, uint64_t end, size_t *ret_size,
		     struct record *ret_record)
{
	uint8_t seal[RECORD_SEAL] = { 0 };
	uint32_t length;
	int err;

	if (end - offset < RECORD_LENGTH)
		return -ENODATA;
	err = file_pread(fd, &length, sizeof(length), offset);
	if (err)
		return err;
	length = be32toh(length);
	if (!length || length > RECORD_MESSAGE_MAX || length > end - offset - RECORD_LENGTH)
		return -ENODATA;
	if (length > RECORD_SEAL)
		err = file_pread(fd, seal, sizeof(seal), offset + RECORD_LENGTH + length - RECORD_SEAL);
	if (err)
		return err;
	*ret_size = length;
	*ret_record = record_peek(seal, length);
	return 0;
}

bool record_is_bare(const uint8_t *data, size_t size)
{
	size_t at = 0;

	while (at < size) {
		uint64_t length = 0;
		unsigned int shift = 0;
		uint8_t byte;

		if (data[at] != TAG_RESOURCE_PROFILES && data[at] != TAG_DICTIONARY)
			return false;
		do {
			if (++at == size || shift > 28)
				return false;
			byte = data[at];
			length |= (uint64_t)(byte & 0x7f) << shift;
			shift += 7;
		} while (byte & 0x80);
		at++;
		if (length > size - at)
			return false;
		at += length;
	}
	return size;
}
