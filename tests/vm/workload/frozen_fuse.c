// SPDX-License-Identifier: Apache-2.0
/*
 * A file system of one program, from a server that one day does not answer any more: from SIGUSR1 on it
 * takes requests and keeps them, so that whoever asked cannot even be killed. It ends with the server.
 *
 * usage: frozen_fuse MOUNTPOINT FILE	FILE's bytes are MOUNTPOINT/program; says "ready" when it is mounted
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define NAME "program"

enum { REQUEST_BYTES = 1 << 20, PROGRAM = 2 };

static int device;
static char *content;
static size_t size;
static volatile sig_atomic_t is_frozen;

static void freeze(int number)
{
	(void)number;
	is_frozen = 1;
}

static void answer(const struct fuse_in_header *in, int error, const void *data, size_t bytes)
{
	struct fuse_out_header out = {
		.len = (unsigned int)(sizeof(out) + (error ? 0 : bytes)), .error = error, .unique = in->unique,
	};
	struct iovec parts[] = {
		{ &out, sizeof(out) }, { (void *)(unsigned long)data, error ? 0 : bytes },
	};

	if (writev(device, parts, 2) < 0 && errno != ENOENT)
		perror("frozen_fuse: answer");
}

/* Nothing is remembered by the kernel: each path is asked for anew. */
static struct fuse_attr attributes(unsigned long node)
{
	struct fuse_attr attr = { .ino = node, .nlink = 1, .blksize = 4096 };

	attr.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0755;
	if (node == PROGRAM)
		attr.size = size;
	return attr;
}

static void serve(const struct fuse_in_header *in, const void *body)
{
	const struct fuse_read_in *read_in = body;
	struct fuse_attr_out attr = { .attr = attributes(in->nodeid) };
	struct fuse_entry_out entry = { .nodeid = PROGRAM, .attr = attributes(PROGRAM) };
	struct fuse_open_out open_out = { .open_flags = in->opcode == FUSE_OPEN ? FOPEN_KEEP_CACHE : 0 };
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = 31, .max_readahead = 1 << 17, .max_write = 4096,
		.max_background = 16, .congestion_threshold = 12, .time_gran = 1,
	};
	struct fuse_statfs_out statfs = { .st = { .bsize = 4096, .namelen = 255 } };
	size_t bytes;

	switch (in->opcode) {
	case FUSE_INIT:
		answer(in, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		answer(in, strcmp(body, NAME) ? -ENOENT : 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		answer(in, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		answer(in, 0, &open_out, sizeof(open_out));
		break;
	case FUSE_READ:
		bytes = read_in->offset < size ? size - read_in->offset : 0;
		answer(in, 0, content + read_in->offset, bytes < read_in->size ? bytes : read_in->size);
		break;
	case FUSE_STATFS:
		answer(in, 0, &statfs, sizeof(statfs));
		break;
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		answer(in, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(in, -ENOSYS, NULL, 0);
	}
}

static void load(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0) {
		perror(path);
		exit(1);
	}
	size = (size_t)st.st_size;
	content = malloc(size);
	if (!content || read(fd, content, size) != (ssize_t)size) {
		perror(path);
		exit(1);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = freeze, .sa_flags = SA_RESTART };
	char options[100], *request;
	ssize_t n;

	if (argc != 3)
		return 2;
	load(argv[2]);
	sigaction(SIGUSR1, &action, NULL);
	device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
	if (device < 0 || mount("frozen", argv[1], "fuse", 0, options) < 0) {
		perror("frozen_fuse: mount");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	request = malloc(REQUEST_BYTES);
	while (request && ((n = read(device, request, REQUEST_BYTES)) > 0 || errno == EINTR))
		if (n > 0 && !is_frozen)
			serve((const void *)request, request + sizeof(struct fuse_in_header));
	return 0;
}
