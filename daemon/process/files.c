// SPDX-License-Identifier: Apache-2.0
#include "process/files.h"

#include <string.h>

#include "base/hash.h"

static const char deleted[] = " (deleted)";

static bool has_prefix(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* Memory files that a runtime writes its code to, which is mapped a second time to be executed. */
static bool is_code_of_runtime(const char *path)
{
	return has_prefix(path, "/memfd:doublemapper") || has_prefix(path, "/memfd:jit") ||
	       has_prefix(path, "/memfd:JIT");
}

enum object_kind files_kind(const struct file_key *key)
{
	if (!strcmp(key->path, "[vdso]"))
		return OBJECT_VDSO;
	/* "//anon" and the like; shared anonymous memory has a file, but one without a name */
	if (key->path[0] != '/' || key->path[1] == '/' || has_prefix(key->path, "/SYSV") ||
	    has_prefix(key->path, "/dev/zero") || is_code_of_runtime(key->path))
		return OBJECT_ANONYMOUS;
	return OBJECT_FILE;
}

static size_t path_length(const char *path)
{
	size_t length = strlen(path), suffix = sizeof(deleted) - 1;

	if (length > suffix && !strcmp(path + length - suffix, deleted))
		length -= suffix;
	return length;
}

static uint64_t file_hash(enum object_kind kind, const struct file_key *key, size_t length)
{
	const uint64_t words[] = { kind, (uint64_t)key->major << 32 | key->minor, key->inode,
				   hash_bytes(key->path, length) };

	return hash_words(words, ARRAY_SIZE(words));
}

/* /proc does not tell generations: 0 stands for any. */
static bool file_is(const struct mapped_file *file, enum object_kind kind,
		    const struct file_key *key, size_t length)
{
	return file->kind == kind && file->inode == key->inode && file->major == key->major &&
	       file->minor == key->minor &&
	       (!file->inode_generation || !key->inode_generation ||
		file->inode_generation == key->inode_generation) &&
	       strlen(file->path) == length && !memcmp(file->path, key->path, length);
}

static struct mapped_file *files_find(struct hash_table *files, enum object_kind kind,
				      const struct file_key *key, size_t length)
{
	struct index_probe probe = hash_table_first(files, file_hash(kind, key, length));
	struct hash_link *link;

	while ((link = hash_table_next(files, &probe))) {
		struct mapped_file *file = container_of(link, struct mapped_file, link);

		if (file_is(file, kind, key, length))
			return file;
	}
	return NULL;
}

struct mapped_file *files_get(struct hash_table *files, const struct file_key *key)
{
	enum object_kind kind = files_kind(key);
	size_t length = path_length(key->path);
	_cleanup_free_ char *path = NULL;
	struct mapped_file *file;

	if (kind != OBJECT_ANONYMOUS) {
		file = files_find(files, kind, key, length);
		if (file)
			return mapped_file_ref(file);
	}
	path = strndup(key->path, length);
	if (!path)
		return NULL;
	file = mapped_file_new(kind, path);
	if (!file)
		return NULL;
	file->major = key->major;
	file->minor = key->minor;
	file->inode = key->inode;
	file->inode_generation = key->inode_generation;
	return file;
}

void files_use(struct hash_table *files, struct mapped_file *file)
{
	const struct file_key key = {
		.major = file->major,
		.minor = file->minor,
		.inode = file->inode,
		.inode_generation = file->inode_generation,
		.path = file->path,
	};
	size_t length = strlen(file->path);

	/* code made at run time differs from process to process */
	if (file->live++ || file->kind == OBJECT_ANONYMOUS ||
	    files_find(files, file->kind, &key, length))
		return;
	/* on failure the file is merely not shared */
	file->is_interned =
		!hash_table_add(files, &file->link, file_hash(file->kind, &key, length));
}

void files_unuse(struct hash_table *files, struct mapped_file *file)
{
	if (--file->live || !file->is_interned)
		return;
	hash_table_remove(files, &file->link);
	file->is_interned = false;
}
