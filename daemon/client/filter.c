// SPDX-License-Identifier: Apache-2.0
#include "client/filter.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/fail.h"

static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };

static int no_memory(char *error, size_t size)
{
	return fail_with(-ENOMEM, error, size, "out of memory");
}

void control_filter_done(struct control_filter *filter)
{
	for (size_t i = 0; i < filter->cgroup_fd_count; i++)
		close(filter->cgroup_fds[i]);
	free(filter->cpus);
	free(filter->tgids);
	free(filter->tids);
	free(filter->uids);
	free(filter->comms);
	free(filter->cgroup_fds);
	free(filter->cgroups);
	*filter = (struct control_filter){ 0 };
}

bool control_filter_is_by_task(const struct control_filter *filter)
{
	return filter->tid_count || filter->uid_count || filter->comm_count ||
	       filter->cgroup_fd_count || filter->cgroup_count;
}

bool control_filter_is_empty(const struct control_filter *filter)
{
	return !filter->cpu_words && !filter->tgid_count && !filter->flags && !filter->is_partial &&
	       !control_filter_is_by_task(filter);
}

/* Room for one more item of @size bytes behind @count of them. */
static int grow(void *ret_array, size_t count, size_t size)
{
	void *array;

	memcpy(&array, ret_array, sizeof(array));
	array = reallocarray(array, count + 1, size);
	if (!array)
		return -ENOMEM;
	memcpy(ret_array, &array, sizeof(array));
	return 0;
}

struct addition {
	struct control_filter *filter;
	const char *what;
	char *error;
	size_t error_size;
};

/* Without the blanks around it, which people put behind commas. */
static char *trim(char *word)
{
	size_t length;

	word += strspn(word, " \t");
	length = strlen(word);
	while (length && strchr(" \t", word[length - 1]))
		length--;
	word[length] = '\0';
	return word;
}

static int each_word(const struct addition *addition, const char *text,
		     int (*add)(const struct addition *addition, const char *word))
{
	_cleanup_free_ char *copy = strdup(text);
	char *saved = NULL;
	bool has_any = false;

	if (!copy)
		return no_memory(addition->error, addition->error_size);
	for (char *word = strtok_r(copy, ",", &saved); word; word = strtok_r(NULL, ",", &saved)) {
		int ret;

		word = trim(word);
		if (!*word)
			continue;
		ret = add(addition, word);
		if (ret < 0)
			return ret;
		has_any = true;
	}
	return has_any ? 0 : fail_invalid(addition->error, addition->error_size,
					  "`%s' names no %s", text, addition->what);
}

static int add_user(const struct addition *addition, const char *word)
{
	struct control_filter *filter = addition->filter;
	const struct passwd *user;
	unsigned long long uid;
	char *end;

	errno = 0;
	uid = strtoull(word, &end, 10);
	if (*word < '0' || *word > '9' || *end) {
		user = getpwnam(word);
		if (!user)
			return fail_with(-ENOENT, addition->error, addition->error_size,
					 "there is no user `%s'", word);
		uid = user->pw_uid;
	} else if (errno || uid >= UINT32_MAX) {
		return fail_invalid(addition->error, addition->error_size,
				    "`%s' is not a user id", word);
	}
	if (grow(&filter->uids, filter->uid_count, sizeof(*filter->uids)) < 0)
		return no_memory(addition->error, addition->error_size);
	filter->uids[filter->uid_count++] = (uint32_t)uid;
	return 0;
}

int control_filter_add_users(struct control_filter *filter, const char *text, char *error,
			     size_t error_size)
{
	const struct addition addition = { filter, "user", error, error_size };

	return each_word(&addition, text, add_user);
}

static int add_comm(const struct addition *addition, const char *word)
{
	struct control_filter *filter = addition->filter;

	if (strlen(word) >= STACKTAP_COMM_LEN)
		return fail_invalid(addition->error, addition->error_size,
				    "thread names have at most %d bytes: use `%.*s' for `%s'",
				    STACKTAP_COMM_LEN - 1, STACKTAP_COMM_LEN - 1, word, word);
	if (filter->comm_count == STACKTAP_MAX_COMMS)
		return fail_with(-E2BIG, addition->error, addition->error_size,
				 "more than %d names", STACKTAP_MAX_COMMS);
	if (grow(&filter->comms, filter->comm_count, sizeof(*filter->comms)) < 0)
		return no_memory(addition->error, addition->error_size);
	strncpy(filter->comms[filter->comm_count++], word, STACKTAP_COMM_LEN);
	return 0;
}

int control_filter_add_comms(struct control_filter *filter, const char *text, char *error,
			     size_t error_size)
{
	const struct addition addition = { filter, "program", error, error_size };

	return each_word(&addition, text, add_comm);
}

static unsigned long magic_of(int fd)
{
	struct statfs statfs;

	return fstatfs(fd, &statfs) < 0 ? 0 : (unsigned long)statfs.f_type;
}

/* cgroup v2's mount, -ENOENT if there is none. */
static int open_mount(const char **ret_path)
{
	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
		int fd = open(mounts[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0 && magic_of(fd) == CGROUP2_SUPER_MAGIC) {
			if (ret_path)
				*ret_path = mounts[i];
			return fd;
		}
		if (fd >= 0)
			close(fd);
	}
	return -ENOENT;
}

static int open_cgroup(const struct addition *addition, const char *path)
{
	_cleanup_close_ int mount = -1, fd = -1;
	unsigned long magic = 0;

	if (*path == '/')
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		magic = magic_of(fd);
	if (magic == CGROUP_SUPER_MAGIC)
		return fail_with(-EOPNOTSUPP, addition->error, addition->error_size,
				 "%s is in cgroup v1; only cgroup v2 is supported", path);
	if (magic == CGROUP2_SUPER_MAGIC)
		return steal_fd(&fd);
	mount = open_mount(NULL);
	if (mount < 0)
		return fail_with(-ENOENT, addition->error, addition->error_size,
				 "cgroup v2 is not mounted here; only its cgroups are supported");
	if (fd >= 0)
		close(fd);
	path += strspn(path, "/");
	fd = openat(mount, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fail_with(-errno, addition->error, addition->error_size,
				 "cannot open cgroup `%s': %s", path, strerror(errno));
	return steal_fd(&fd);
}

static int add_cgroup(const struct addition *addition, const char *word)
{
	struct control_filter *filter = addition->filter;
	int fd;

	if (filter->cgroup_fd_count == STACKTAP_MAX_CGROUPS)
		return fail_with(-E2BIG, addition->error, addition->error_size,
				 "more than %d cgroups", STACKTAP_MAX_CGROUPS);
	if (grow(&filter->cgroup_fds, filter->cgroup_fd_count, sizeof(*filter->cgroup_fds)) < 0)
		return no_memory(addition->error, addition->error_size);
	fd = open_cgroup(addition, word);
	if (fd < 0)
		return fd;
	filter->cgroup_fds[filter->cgroup_fd_count++] = fd;
	return 0;
}

int control_filter_add_cgroups(struct control_filter *filter, const char *text, char *error,
			       size_t error_size)
{
	const struct addition addition = { filter, "cgroup", error, error_size };

	return each_word(&addition, text, add_cgroup);
}

int control_cgroup_path(uint64_t id, char *ret_path, size_t size)
{
	enum { FILEID_KERNFS = 0xfe };	/* of kernfs, since Linux 5.5 */
	union {
		struct file_handle handle;
		char bytes[sizeof(struct file_handle) + sizeof(uint64_t)];
	} cgroup = { .handle = { .handle_bytes = sizeof(id), .handle_type = FILEID_KERNFS } };
	_cleanup_close_ int mount = -1, fd = -1;
	char link[64], path[PATH_MAX];
	struct stat held, named;
	const char *root, *below;
	ssize_t length;

	mount = open_mount(&root);
	if (mount < 0)
		return mount;
	memcpy(cgroup.handle.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(mount, &cgroup.handle, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	if (length < 0)
		return -errno;
	path[length] = '\0';
	below = path + strlen(root);
	if (strncmp(path, root, strlen(root)) || (*below && *below != '/'))
		return -EXDEV;
	/* who holds a removed one keeps its handle alive, and another may have its name */
	if (fstat(fd, &held) < 0 || stat(path, &named) < 0 || held.st_dev != named.st_dev ||
	    held.st_ino != named.st_ino)
		return -ENOENT;
	if ((size_t)snprintf(ret_path, size, "%s", *below ? below : "/") >= size)
		return -ENAMETOOLONG;
	return 0;
}
