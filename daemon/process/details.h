/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What /proc says of an image: executable, container, unit, service name, command line.
 */
#ifndef STACKTAP_PROCESS_DETAILS_H
#define STACKTAP_PROCESS_DETAILS_H

#include "process/image.h"

enum { DETAILS_MAX_ATTRIBUTES = 16 };	/* of details_attributes() */

/*
 * Read through @proc, a descriptor of the process' /proc/PID. What a process says of itself is
 * taken for text, never for truth: cut, and made valid UTF-8.
 */
int details_read(int proc, uint32_t tgid, bool with_command_line,
		 struct image_details **ret_details);
/* *ret_pid: in its own namespace, 0: the same. *ret_user: DETAILS_NO_USER if that is not told. */
int details_identity(int proc, uint32_t tgid, uint32_t *ret_pid, uint32_t *ret_user);
/* What a child that is gone had of its parent: container, unit and service, not the executable. */
int details_inherit(const struct image_details *parent, struct image_details **ret_details);
/* Put in the executable; takes a copy of @path. */
int details_set_executable(struct image_details *details, const char *path);

/* Of a process' environment: OTEL_SERVICE_NAME, else service.name of OTEL_RESOURCE_ATTRIBUTES. */
char *details_service_name(const char *environment, size_t size);
/*
 * Of its OTEL_RESOURCE_ATTRIBUTES those that it may say of itself (deployment.*, service.* but for the name,
 * k8s.*), in the same form, or NULL.
 */
char *details_attributes(const char *environment, size_t size);
/* May a process say that of itself? All else is known better from outside. @key may be followed by "=". */
bool details_may_be_told(const char *key);
/* Put in what /proc/PID/exe says. */
int details_read_executable(int proc, struct image_details *details);

#endif /* STACKTAP_PROCESS_DETAILS_H */
