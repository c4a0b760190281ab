// SPDX-License-Identifier: Apache-2.0
#include "export/chain.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/log.h"
#include "export/otlp.h"
#include "export/record.h"

#define FILE_MODE 0600		/* what ran on a host is nobody else's business */
#define PARTIAL "journal.partial"
#define LEN 2

struct chain {
	int from, to;
	uint64_t written;			/* bytes of @to */
	struct buffer record;			/* as it was read */
	struct buffer resources, dictionary;	/* of the open chain */
	bool is_open;
	uint64_t samples;
	size_t left_out;
};

static bool take_varint(const uint8_t **at, const uint8_t *end, uint64_t *ret_value)
{
	*ret_value = 0;
	for (unsigned int shift = 0; *at < end && shift < 63; shift += 7) {
		const uint8_t byte = *(*at)++;

		*ret_value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

/* Its ResourceProfiles and its dictionary's entries to those of the chain. */
static int add_message(struct chain *chain, const uint8_t *data, size_t size)
{
	const uint8_t *at = data, *end = data + size;
	uint64_t tag, length;
	int err = 0;

	while (!err && at < end) {
		const uint8_t *field = at;

		if (!take_varint(&at, end, &tag) || !take_varint(&at, end, &length) ||
		    length > (uint64_t)(end - at))
			return -EBADMSG;
		at += length;
		if (tag == (OTLP_DATA_RESOURCE_PROFILES << 3 | LEN))
			err = buffer_append(&chain->resources, field, (size_t)(at - field));
		else if (tag == (OTLP_DATA_DICTIONARY << 3 | LEN))
			err = buffer_append(&chain->dictionary, at - length, (size_t)length);
		else
			return -EBADMSG;
	}
	return err;
}

static int write_chain(struct chain *chain)
{
	struct buffer *message = &chain->resources;
	uint8_t seal[RECORD_SEAL];
	int err;

	if (!chain->is_open)
		return 0;
	chain->is_open = false;
	err = buffer_field(message, OTLP_DATA_DICTIONARY, chain->dictionary.size) ?:
	      buffer_append(message, chain->dictionary.data, chain->dictionary.size);
	if (err)
		return err;
	record_seal(message->data, message->size, chain->samples, false, seal);
	err = record_write(chain->to, &chain->written, message->data, message->size, seal);
	chain->samples = 0;
	message->size = chain->dictionary.size = 0;
	return err;
}

static int write_bytes(struct chain *chain, const void *data, size_t size)
{
	const uint8_t *at = data;
	ssize_t written;

	while (size) {
		written = write(chain->to, at, size);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written < 0 ? -errno : -EIO;
		at += written;
		size -= (size_t)written;
		chain->written += (uint64_t)written;
	}
	return 0;
}

/* @chain->record, with its length before it. */
static int join_record(struct chain *chain)
{
	const uint8_t *data = chain->record.data + RECORD_LENGTH;
	const size_t size = chain->record.size - RECORD_LENGTH;
	struct record record;
	int err = record_check(data, size, &record), damage = err;

	if (!record.continues || damage) {
		err = write_chain(chain);
		if (err)
			return err;
	}
	if (!damage && record.is_sealed && !record.is_taken && record.continues == chain->is_open) {
		const size_t resources = chain->resources.size, entries = chain->dictionary.size;

		err = add_message(chain, data, record.size);
		if (!err) {
			chain->is_open = true;
			chain->samples += record.samples;
			return 0;
		}
		if (err != -EBADMSG)
			return err;
		chain->resources.size = resources;
		chain->dictionary.size = entries;
		err = write_chain(chain);
		if (err)
			return err;
	}
	if (record.continues) {
		chain->left_out++;
		return 0;
	}
	return write_bytes(chain, chain->record.data, chain->record.size);
}

static int read_record(struct chain *chain, uint64_t offset, size_t size)
{
	chain->record.size = 0;
	if (!buffer_reserve(&chain->record, size))
		return -ENOBUFS;
	chain->record.size = size;
	return record_read(chain->from, chain->record.data, size, offset);
}

static int join_all(struct chain *chain, uint64_t end)
{
	struct record record;
	uint64_t offset = 0;
	size_t size;
	int err = 0;

	while (!err && offset < end) {
		err = record_read_head(chain->from, offset, end, &size, &record);
		if (err)
			break;
		err = read_record(chain, offset, RECORD_LENGTH + size) ?: join_record(chain);
		offset += RECORD_LENGTH + size;
	}
	if (err && err != -ENODATA)
		return err;
	err = write_chain(chain);
	/* what is cut off counts as damaged where the file is read */
	for (; !err && offset < end; offset += size) {
		size = (size_t)min_of(end - offset, (uint64_t)64 << 10);
		err = read_record(chain, offset, size) ?:
		      write_bytes(chain, chain->record.data, size);
	}
	return err;
}

static bool has_chains(int fd, uint64_t end)
{
	struct record record;
	uint64_t offset = 0;
	size_t size;

	while (offset < end && !record_read_head(fd, offset, end, &size, &record)) {
		if (record.continues)
			return true;
		offset += RECORD_LENGTH + size;
	}
	return false;
}

static int join(int directory, const char *name, int from, uint64_t end)
{
	_cleanup_close_ int to = openat(directory, PARTIAL,
					O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
	struct chain chain = { .from = from, .to = to };
	int err;

	if (to < 0)
		return -errno;
	buffer_init(&chain.record, POOL_ENCODE);
	buffer_init(&chain.resources, POOL_ENCODE);
	buffer_init(&chain.dictionary, POOL_ENCODE);
	err = join_all(&chain, end);
	buffer_free(&chain.record);
	buffer_free(&chain.resources);
	buffer_free(&chain.dictionary);
	/* as whole as what it replaces, after a power cut too */
	if (!err && (fdatasync(to) || renameat(directory, PARTIAL, directory, name)))
		err = -errno;
	if (err)
		unlinkat(directory, PARTIAL, 0);
	else if (chain.left_out)
		log_warning("%zu parts in %s continue what is damaged: they are lost", chain.left_out, name);
	return err;
}

int chain_join(int directory, const char *name)
{
	_cleanup_close_ int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	return has_chains(fd, (uint64_t)st.st_size) ? join(directory, name, fd, (uint64_t)st.st_size) : 0;
}
