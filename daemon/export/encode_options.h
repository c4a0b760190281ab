/* SPDX-License-Identifier: Apache-2.0 */
/* What windows are encoded by: limits, and what Resources say beside what is known of an image. */
#ifndef STACKTAP_EXPORT_ENCODE_OPTIONS_H
#define STACKTAP_EXPORT_ENCODE_OPTIONS_H

#include "base/macro.h"

struct buffer;
struct image;
struct relabel;

struct encode_attribute {
	const char *key;
	const char *value;
};

/* What the environment, the configuration and the host give together; none is ever left out. */
enum { ENCODE_MAX_RESOURCE = 128 };

enum { ENCODE_MAX_SUFFIX = 32 };

/* What receivers want differently. */
struct encode_form {
	/* a Function for frames without one: their function's range, else their file */
	bool names_ranges;
	/* each Function twice, one after the other: for receivers that take the one before that which is meant */
	bool repeats_functions;
	const char *kernel_suffix;	/* of names of functions of the kernel; NULL: none */
	size_t max_bytes;		/* of a payload, 0: as of all others */
};

struct encode_options {
	size_t max_bytes;		/* of one payload before compression; a quarter of POOL_ENCODE at most */
	const char *service_name;	/* of all images, whatever they call themselves; or NULL */
	const struct encode_attribute *resource; /* OTEL_RESOURCE_ATTRIBUTES, host.name, ... */
	size_t resource_count;		/* ENCODE_MAX_RESOURCE at most */
	bool with_cpu;			/* cpu.logical_number on samples */
	bool rounds_times;		/* down, to a part of the time between samples: random digits do not compress */
	struct encode_form form;
	struct relabel *relabel;	/* rules for Resources; NULL: none */
	uint32_t number;		/* of all that Resources are made by here, for images to keep them under; 0: they keep none */
	bool is_draft;			/* encoded once more later: rules count nothing */
	bool is_again;			/* encoded before, in another form: rules count nothing */
	bool wants_all;			/* a sample that is left out for want of memory is an error */
	/*
	 * Of windows out of the journal, whose Resources are there as bytes, with what rules said; NULL: they are made of the
	 * images. *ret_one_in: samples that are sent
	 */
	int (*resource_of)(const void *ctx, const struct image *image, struct buffer *buffer, uint32_t *ret_one_in);
	const void *resource_ctx;
	bool had_rules;			/* of such windows: there were rules when they were written */
};

#endif /* STACKTAP_EXPORT_ENCODE_OPTIONS_H */
