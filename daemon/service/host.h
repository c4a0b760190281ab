/* SPDX-License-Identifier: Apache-2.0 */
/* The resource attributes of this host: host.*, os.*, and those that the user gave. */
#ifndef STACKTAP_SERVICE_HOST_H
#define STACKTAP_SERVICE_HOST_H

#include "export/environment.h"

struct host_resource {
	struct encode_attribute *attributes;
	size_t count, capacity;
};

/*
 * OTEL_RESOURCE_ATTRIBUTES (@environment) win over @text (k=v,k=v, or NULL), which wins over what is
 * found out about the host. A key occurs once. -E2BIG: these are more than ENCODE_MAX_RESOURCE.
 * On failure *ret_error has a sentence.
 */
int host_resource_load(const struct environment *environment, const char *text,
		       struct host_resource *ret_resource, char *ret_error, size_t error_size);
/* What a text in the form of os-release(5) gives @name, without quotes; empty: nothing. */
void host_release_value(const char *text, const char *name, char *ret_value, size_t size);
void host_resource_done(struct host_resource *resource);

#endif /* STACKTAP_SERVICE_HOST_H */
