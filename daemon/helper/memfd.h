/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that are too long for a packet: memory that its writer cannot change any more. */
#ifndef STACKTAP_HELPER_MEMFD_H
#define STACKTAP_HELPER_MEMFD_H

#include "base/macro.h"

/* The helper's end. */
int memfd_new(void);
/* The descriptor, which is taken out of *@fd, or -errno. */
int memfd_seal(int *fd);

/* The other end: is it sealed? Then its size is what it will stay. -1 is no such descriptor. */
bool memfd_is_sealed(int fd, uint64_t *ret_size);
int memfd_read(int fd, void *buffer, size_t size, size_t offset);
/* The same and a NUL; the caller frees it. NULL: no memory, or it is not there. */
char *memfd_text(int fd, size_t offset, size_t size);

#endif /* STACKTAP_HELPER_MEMFD_H */
