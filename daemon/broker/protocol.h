/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process without rights and its broker say to each other, over a SOCK_SEQPACKET pair: a request, then its
 * answer, one at a time. Both ends are the same executable, so structs go as they are in memory. The broker takes
 * nothing of a request on trust: it says which of a few things is to be done, not how.
 */
#ifndef STACKTAP_BROKER_PROTOCOL_H
#define STACKTAP_BROKER_PROTOCOL_H

#include <limits.h>
#include <linux/stacktap.h>
#include <stdint.h>

#include "broker/record.h"

enum {
	BROKER_SOCKET = 3,		/* the broker's end of the pair */
	BROKER_MAPPINGS = 4,		/* memory for struct stacktap_mapping[STACKTAP_MAX_MAPPINGS] */
	BROKER_FDS_MAX = 2,		/* in a request; one in an answer */
};

enum broker_op {
	BROKER_HELLO,			/* from the broker, unasked: it is ready */
	BROKER_OPEN_DEVICE,
	BROKER_OPEN_SIDEBAND,
	BROKER_TRY_EVENT,
	BROKER_OPEN_KERNEL,
	BROKER_OPEN_CONFIG,
	BROKER_READ_SECRET,
	BROKER_LOOK,
	BROKER_SET_MAPPINGS,		/* with the session */
	BROKER_START_HELPER,		/* with its end of a socket pair */
	BROKER_START_RECORD,		/* with its standard output and error */
	BROKER_KILL,
	BROKER_WAIT,
	BROKER_OPS,
};

struct broker_header {
	uint32_t op;			/* enum broker_op, the same in an answer */
	int32_t result;			/* of an answer: 0 or -errno */
};

struct broker_hello {
	uint8_t is_confined;		/* system calls are filtered */
};

/* Answers BROKER_OPEN_DEVICE, with the session. */
struct broker_device {
	int32_t info_error;		/* of STACKTAP_IOC_INFO, which tells what those who open it may */
	struct stacktap_info info;
};

struct broker_sideband {
	uint32_t cpu;
	uint64_t read_format;
};

/* Of struct perf_event_attr. */
struct broker_event {
	uint64_t config, config1, config2;
	uint32_t type, cpu;
	uint8_t exclude_user, exclude_kernel;
};

struct broker_kernel {
	uint32_t file;			/* enum broker_kernel_file */
};

struct broker_path {
	char path[PATH_MAX];
	uint8_t is_link;		/* BROKER_LOOK: at a link itself */
};

/* Answers BROKER_LOOK. */
struct broker_look {
	uint64_t dev, inode, size;
	int64_t mtime_s, mtime_ns, ctime_s, ctime_ns;
};

struct broker_helper {
	uint32_t kind;			/* enum helper_kind */
};

/* Answers what starts a process; what BROKER_KILL and BROKER_WAIT are asked. */
struct broker_process {
	int32_t pid;
};

struct broker_status {
	uint8_t has_ended;
	int32_t status;			/* as of waitpid() */
};

union broker_request {
	struct broker_sideband sideband;
	struct broker_event event;
	struct broker_kernel kernel;
	struct broker_path path;
	struct stacktap_mappings_set mappings;
	struct broker_helper helper;
	struct record_request record;
	struct broker_process process;
};

union broker_answer {
	struct broker_hello hello;
	struct broker_device device;
	struct broker_look look;
	struct broker_process process;
	struct broker_status status;
};

#endif /* STACKTAP_BROKER_PROTOCOL_H */
