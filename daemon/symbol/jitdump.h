/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A jitdump, jit-PID.dump, in the format of the kernel's tools/perf/Documentation/jitdump-specification.txt: which
 * functions a runtime has compiled (JIT_CODE_LOAD) and moved (JIT_CODE_MOVE), with their code and much else that is
 * passed over here.
 */
#ifndef STACKTAP_SYMBOL_JITDUMP_H
#define STACKTAP_SYMBOL_JITDUMP_H

#include "symbol/code.h"

/*
 * As perf_map_read(), of whole records; @offset 0 begins with the header. -EBADMSG: it is no jitdump of this host's
 * byte order and version 1. What follows a broken record is never read.
 */
int jitdump_read(int fd, uint64_t offset, uint64_t size, uint64_t deadline,
		 struct code_read *ret_read);

#endif /* STACKTAP_SYMBOL_JITDUMP_H */
