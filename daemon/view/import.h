/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles of others as one message of OTLP. Their readers say sample by sample what they found; samples of one
 * stack become one Sample. Input is foreign: memory is POOL_REPORT's and, for the dictionary, POOL_ENCODE's.
 */
#ifndef STACKTAP_VIEW_IMPORT_H
#define STACKTAP_VIEW_IMPORT_H

#include "base/sha256.h"
#include "export/dictionary.h"
#include "view/rows.h"

enum { IMPORT_ATTRIBUTES = 4 };

struct import {
	struct dictionary dictionary;
	struct rows resources, events, sets;	/* of bytes in `kept` */
	struct buffer kept;
	struct buffer entries;		/* struct import_sample */
	struct buffer out;		/* the message */
	const char *format;		/* what it was, by OTLP's word for such a payload */
	uint64_t start, duration;	/* Unix ns; if start is 0: those of the samples */
	uint64_t samples;
	uint64_t passed;		/* lines or samples that were not understood */
	int32_t attributes[IMPORT_ATTRIBUTES];	/* of every Profile */
	size_t attribute_count;
	const char *loss;		/* what the format has and OTLP has not; NULL: nothing */
	char default_type[DICTIONARY_STRING_MAX];	/* of values, that which is looked at first; "": none */
	uint64_t changed;		/* texts that are cut, or had characters that no text may have */
	uint8_t content[SHA256_BYTES];	/* of all that its Profiles share */
	uint64_t ordinal;		/* of the Profile */
};

/* All texts may be NULL or "": unknown. */
struct import_process {
	const char *name, *container, *service, *cgroup;
	uint32_t pid;
};

struct import_event {
	const char *type, *unit;		/* of values */
	const char *period_type, *period_unit;	/* of the period */
	int64_t period;				/* 0: none */
};

struct import_sample {
	uint32_t resource, event, stack, set;	/* as they were interned */
	uint64_t time;				/* Unix ns; 0: unknown */
	int64_t value;
};

int import_init(struct import *import);		/* -E2BIG */
void import_done(struct import *import);

/* These return an index, or -E2BIG. */
int import_process(struct import *import, const struct import_process *process);
int import_event(struct import *import, const struct import_event *event);
int import_function(struct import *import, const char *name, const char *system_name,
		    const char *file, int64_t start_line);
int import_set(struct import *import, const int32_t *attributes, size_t count);

int import_add(struct import *import, const struct import_sample *sample);	/* -E2BIG */
/* Makes the message. -E2BIG; -EMSGSIZE: it is longer than OTLP's limit; -ENODATA: there are no samples. */
int import_finish(struct import *import);

/* Into an import that is new. -EBADMSG, -E2BIG, -ENODATA. */
int import_pprof(struct import *import, const uint8_t *data, size_t size);
/* What `perf script' prints. */
int import_perf_script(struct import *import, FILE *file);

#endif /* STACKTAP_VIEW_IMPORT_H */
