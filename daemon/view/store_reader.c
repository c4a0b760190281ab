// SPDX-License-Identifier: Apache-2.0
#include "view/store_reader.h"

#include <endian.h>
#include <string.h>
#include <sys/stat.h>

#include "export/record.h"

#define READ_STEP ((size_t)1 << 20)

/*
 * A bare message starts with the tag of its field 1 or 2. As the first byte of a length either would
 * mean more than RECORD_MESSAGE_MAX, so the two formats cannot be taken for each other.
 */
#define TAG_RESOURCE_PROFILES 0x0a
#define TAG_DICTIONARY 0x12

struct store_reader {
	int fd;
	struct store_copy *copy;
	uint8_t *data;
	size_t capacity;
	bool is_first, is_done;
	bool has_damage;	/* a message was passed over, of which the caller does not know */
};

int store_reader_open(int fd, struct store_reader **ret_reader)
{
	struct store_reader *reader;
	struct stat st;

	/* rather than a failing read later */
	if (fstat(fd, &st))
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	reader = calloc(1, sizeof(*reader));
	if (!reader)
		return -ENOMEM;
	reader->is_first = true;
	reader->fd = fd;
	*ret_reader = reader;
	return 0;
}

void store_reader_keep(struct store_reader *reader, struct store_copy *copy)
{
	reader->copy = copy;
}

static void write_copy(struct store_copy *copy, const uint8_t *data, size_t size)
{
	if (!copy || !copy->file)
		return;
	errno = 0;
	if (size > copy->limit - copy->size)
		copy->err = -EFBIG;
	else if (fwrite(data, 1, size, copy->file) != size)
		copy->err = errno ? -errno : -EIO;
	copy->size += size;
	if (!copy->err)
		return;
	/* it has no name: its room is free now */
	fclose(copy->file);
	copy->file = NULL;
}

static ssize_t read_fully(int fd, uint8_t *data, size_t size)
{
	size_t done = 0;
	ssize_t got;

	while (done < size) {
		got = read(fd, data + done, size - done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

/*
 * Up to @size bytes behind the first @filled. Memory grows with what is really there, so that a
 * length alone cannot make us take much.
 */
static ssize_t read_growing(struct store_reader *reader, size_t filled, size_t size)
{
	size_t capacity, step;
	uint8_t *data;
	ssize_t got;

	while (filled < size) {
		step = min_of(size - filled, READ_STEP);
		if (filled + step > reader->capacity) {
			capacity = max_of(filled + step, 2 * reader->capacity);
			capacity = min_of(capacity, (size_t)RECORD_MESSAGE_MAX + 1);
			data = realloc(reader->data, capacity);
			if (!data)
				return -ENOMEM;
			reader->data = data;
			reader->capacity = capacity;
		}
		got = read_fully(reader->fd, reader->data + filled, step);
		if (got < 0)
			return got;
		write_copy(reader->copy, reader->data + filled, (size_t)got);
		filled += (size_t)got;
		if ((size_t)got < step)
			break;
	}
	return (ssize_t)filled;
}

static int read_next(struct store_reader *reader, const uint8_t **ret_data, size_t *ret_size)
{
	bool is_first = reader->is_first;
	struct record record;
	uint32_t length;
	ssize_t got;

	reader->is_first = false;
	if (reader->is_done)
		return 0;
	got = read_growing(reader, 0, sizeof(length));
	if (got < 0)
		return (int)got;
	if (!got) {
		reader->is_done = true;
		return 0;
	}
	if (is_first &&
	    (reader->data[0] == TAG_RESOURCE_PROFILES || reader->data[0] == TAG_DICTIONARY)) {
		got = read_growing(reader, (size_t)got, (size_t)RECORD_MESSAGE_MAX + 1);
		if (got < 0)
			return (int)got;
		reader->is_done = true;
		if (got > RECORD_MESSAGE_MAX)
			return -EBADMSG;
		*ret_data = reader->data;
		*ret_size = (size_t)got;
		return 1;
	}
	if ((size_t)got < sizeof(length))
		return -ENODATA;
	memcpy(&length, reader->data, sizeof(length));
	length = be32toh(length);
	if (!length || length > RECORD_MESSAGE_MAX)
		return -EBADMSG;
	got = read_growing(reader, 0, length);
	if (got < 0)
		return (int)got;
	if ((size_t)got < length)
		return -ENODATA;
	if (record_check(reader->data, length, &record))
		return -EUCLEAN;
	*ret_data = reader->data;
	*ret_size = record.size;
	return 1;
}

int store_reader_next(struct store_reader *reader, const uint8_t **ret_data, size_t *ret_size)
{
	int ret;

	while ((ret = read_next(reader, ret_data, ret_size)) == -EUCLEAN)
		reader->has_damage = true;
	if (ret || !reader->has_damage)
		return ret;
	reader->has_damage = false;
	return -ENODATA;
}

void store_reader_close(struct store_reader *reader)
{
	free(reader->data);
	free(reader);
}
