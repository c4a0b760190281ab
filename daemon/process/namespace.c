// SPDX-License-Identifier: Apache-2.0
#include "process/namespace.h"

#include <fcntl.h>

#include "base/clock.h"
#include "base/pool.h"

/* an entry is 64 bytes: more namespaces than this are a fork bomb, they get the guess */
enum { SPACES_MAX = 1024 };

struct mount_namespace_table {
	struct mount_namespace *spaces[SPACES_MAX];
	size_t count;
	struct mount_namespace *guess;
	uint64_t host_dev;	/* file system of the host's root */
};

struct mount_namespace *mount_namespace_ref(struct mount_namespace *space)
{
	atomic_fetch_add_explicit(&space->refs, 1, memory_order_relaxed);
	return space;
}

void mount_namespace_unref(struct mount_namespace *space)
{
	if (!space || atomic_fetch_sub_explicit(&space->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (space->root >= 0)
		close(space->root);
	pool_uncharge(POOL_PROCESSES, sizeof(*space));
	free(space);
}

static void close_root(struct mount_namespace *space)
{
	if (space->root >= 0)
		close(space->root);
	space->root = -1;
}

int mount_namespace_table_new(const char *sysroot, struct mount_namespace_table **ret_table)
{
	_cleanup_free_ struct mount_namespace_table *table = calloc(1, sizeof(*table));
	struct mount_namespace *guess;
	struct stat st;

	if (!table)
		return -ENOMEM;
	guess = calloc(1, sizeof(*guess));
	if (!guess)
		return -ENOMEM;
	pool_charge_always(POOL_PROCESSES, sizeof(*guess) + sizeof(*table));
	atomic_init(&guess->refs, 1);
	guess->is_guess = true;
	guess->root = open(sysroot[0] ? sysroot : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (guess->root < 0 || fstat(guess->root, &st) < 0) {
		int error = -errno;

		mount_namespace_unref(guess);
		pool_uncharge(POOL_PROCESSES, sizeof(*table));
		return error;
	}
	table->host_dev = st.st_dev;
	table->guess = guess;
	*ret_table = steal_ptr(table);
	return 0;
}

void mount_namespace_table_free(struct mount_namespace_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->count; i++)
		mount_namespace_unref(table->spaces[i]);
	mount_namespace_unref(table->guess);
	pool_uncharge(POOL_PROCESSES, sizeof(*table));
	free(table);
}

struct mount_namespace *mount_namespace_table_guess(struct mount_namespace_table *table)
{
	return mount_namespace_ref(table->guess);
}

size_t mount_namespace_table_open_count(const struct mount_namespace_table *table)
{
	size_t open_count = 0;

	for (size_t i = 0; i < table->count; i++)
		open_count += table->spaces[i]->root >= 0;
	return open_count;
}

/* Only the table still holds it: no other thread can get a reference, so the count stays 1. */
static bool is_unused(const struct mount_namespace *space)
{
	return atomic_load_explicit(&space->refs, memory_order_acquire) == 1;
}

void mount_namespace_table_trim(struct mount_namespace_table *table, uint64_t idle_ns)
{
	uint64_t now = clock_monotonic();

	for (size_t i = 0; i < table->count;) {
		struct mount_namespace *space = table->spaces[i];

		if (now - space->used >= idle_ns)
			close_root(space);
		if (space->root < 0 && is_unused(space)) {
			table->spaces[i] = table->spaces[--table->count];
			mount_namespace_unref(space);
			continue;
		}
		i++;
	}
}

static void close_oldest_root(struct mount_namespace_table *table)
{
	struct mount_namespace *oldest = NULL;

	for (size_t i = 0; i < table->count; i++) {
		struct mount_namespace *space = table->spaces[i];

		if (space->root >= 0 && (!oldest || space->used < oldest->used))
			oldest = space;
	}
	if (oldest)
		close_root(oldest);
}

static struct mount_namespace *find(struct mount_namespace_table *table,
				    const struct mount_namespace_id *id)
{
	for (size_t i = 0; i < table->count; i++) {
		struct mount_namespace *space = table->spaces[i];

		if (space->inode == id->inode && space->dev == id->dev &&
		    space->root_inode == id->root_inode && space->root_dev == id->root_dev)
			return space;
	}
	return NULL;
}

void mount_namespace_table_root(const struct mount_namespace_table *table,
				const struct mount_namespace_id *id, uint64_t *ret_dev, uint64_t *ret_inode)
{
	const struct mount_namespace *last = NULL;

	for (size_t i = 0; i < table->count; i++) {
		const struct mount_namespace *space = table->spaces[i];

		if (space->inode == id->inode && space->dev == id->dev && space->root >= 0 &&
		    (!last || space->used > last->used))
			last = space;
	}
	*ret_dev = last ? last->root_dev : 0;
	*ret_inode = last ? last->root_inode : 0;
}

static int add(struct mount_namespace_table *table, const struct mount_namespace_id *id,
	       struct mount_namespace **ret_space)
{
	struct mount_namespace *space;

	if (table->count == SPACES_MAX)
		mount_namespace_table_trim(table, 0);
	if (table->count == SPACES_MAX || !pool_charge(POOL_PROCESSES, sizeof(*space)))
		return -ENOBUFS;
	space = calloc(1, sizeof(*space));
	if (!space) {
		pool_uncharge(POOL_PROCESSES, sizeof(*space));
		return -ENOMEM;
	}
	atomic_init(&space->refs, 1);
	space->root = -1;
	space->dev = id->dev;
	space->inode = id->inode;
	space->root_dev = id->root_dev;
	space->root_inode = id->root_inode;
	table->spaces[table->count++] = space;
	*ret_space = space;
	return 0;
}

int mount_namespace_identify(uint32_t tgid, struct mount_namespace_id *ret_id)
{
	char path[40];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u/ns/mnt", tgid);
	if (stat(path, &st) < 0)
		return -errno;
	*ret_id = (struct mount_namespace_id){ .dev = st.st_dev, .inode = st.st_ino };
	return 0;
}

/*
 * The namespace may have changed between the look at it and the one at the root (unshare, pivot_root), which
 * at worst files a root under a namespace that it is not of; every file's inode is checked again anyway.
 */
int mount_namespace_table_take(struct mount_namespace_table *table,
			       const struct mount_namespace_id *id, int root,
			       struct mount_namespace **ret_space)
{
	_cleanup_close_ int owned = root;
	struct mount_namespace *space = find(table, id);

	if (root < 0 && (!space || space->root < 0))
		return -ESTALE;
	if (!space) {
		int r = add(table, id, &space);

		if (r < 0)
			return r;
	}
	if (space->root < 0) {
		if (mount_namespace_table_open_count(table) >= MOUNT_NAMESPACE_ROOTS_MAX)
			close_oldest_root(table);
		space->root = steal_fd(&owned);
	}
	space->used = clock_monotonic();
	*ret_space = mount_namespace_ref(space);
	return 0;
}

uint64_t mount_namespace_table_host(const struct mount_namespace_table *table)
{
	return table->host_dev;
}
