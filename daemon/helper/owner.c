// SPDX-License-Identifier: Apache-2.0
#include "helper/owner.h"

#include <elf.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/macro.h"
#include "helper/protocol.h"

static bool has_our_rights;

/* The kernel notes who makes a socket pair; with a broker the owner does, as the user that it has become. */
void owner_note(void)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	has_our_rights = getsockopt(HELPER_FD, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

bool owner_is_kernels(const struct statfs *fs)
{
	static const unsigned long magics[] = { PROC_SUPER_MAGIC, SYSFS_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC, SECURITYFS_MAGIC,
						SELINUX_MAGIC, SMACK_MAGIC, PSTOREFS_MAGIC, EFIVARFS_MAGIC, BPF_FS_MAGIC };

	for (size_t i = 0; i < ARRAY_SIZE(magics); i++)
		if ((unsigned long)fs->f_type == magics[i])
			return true;
	return false;
}

/* A program, a library or debug file, a jitdump of either byte order, a program of Windows; no core file. */
static bool is_code(int fd)
{
	unsigned char start[offsetof(Elf64_Ehdr, e_type) + sizeof(Elf64_Half)] = { 0 };
	const unsigned char *type = start + offsetof(Elf64_Ehdr, e_type);

	if (pread(fd, start, sizeof(start), 0) < 0)
		return false;
	if (!memcmp(start, ELFMAG, SELFMAG))
		return (type[0] | type[1]) != ET_CORE;
	return !memcmp(start, "JiTD", 4) || !memcmp(start, "DTiJ", 4) || !memcmp(start, "MZ", 2);
}

bool owner_may_read(int fd, const struct stat *st)
{
	return has_our_rights || st->st_mode & S_IROTH || is_code(fd);
}
