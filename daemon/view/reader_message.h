/* SPDX-License-Identifier: Apache-2.0 */
/* The message that a reader is at, for the files that it is made of: what a Sample is of, before its stack. */
#ifndef STACKTAP_VIEW_READER_MESSAGE_H
#define STACKTAP_VIEW_READER_MESSAGE_H

#include "export/otlp.h"
#include "export/unpack.h"
#include "view/sample.h"

#define UNPACK_MAX ((size_t)512 << 20)

struct location_state {
	const struct view_frame *frames;	/* innermost first */
	uint32_t count;				/* 0: not looked at */
};

struct reader {
	struct texts *texts;
	struct selection selection;
	struct time_span span;
	struct reader_sink sink;
	struct reader_totals totals;
	bool with_addresses;

	/* the message being read */
	const OtlpDictionary *dictionary;
	const char *default_type;		/* of the scope at hand, see struct view_profile */
	const char **strings;			/* interned, NULL: not yet */
	struct location_state *locations;
	const struct view_mapping **mappings;	/* NULL: not yet */
	uint32_t *stacks;			/* by the sink's number + 1, 0: not yet */
	struct arena arena;			/* frames and mappings */
	struct buffer stack, times, weights;	/* of the Sample at hand */
	struct buffer labels;			/* of it: struct view_label */
	struct buffer comments;			/* of the Profile at hand: const char * */
	uint32_t losses, resource_losses;	/* view_loss, of the Sample and the resource at hand */
	uint64_t work_left;			/* frames that may still be visited */
};

/* NULL: *ret_err is -EBADMSG for an index out of range, -E2BIG */
const char *reader_string(struct reader *reader, int32_t index, int *ret_err);
/* Each: 0, -EBADMSG, -E2BIG. */
int reader_text(struct reader *reader, const OtlpAnyValue *value, const char **ret_text);
/* The value of attribute @index and its key. */
int reader_attribute(struct reader *reader, int32_t index, const char **ret_key,
		     const OtlpAnyValue **ret_value);
int reader_process(struct reader *reader, const OtlpResource *resource,
		   struct view_process *ret_process);
int reader_scope(struct reader *reader, const OtlpScope *scope);
int reader_profile(struct reader *reader, const OtlpProfile *message, struct view_profile *profile);
int reader_thread(struct reader *reader, const OtlpSample *message, struct view_sample *sample);
/* What @key says of a Profile or a Sample as pprof has it, with_remarks. */
int reader_remark(struct reader *reader, const char *key, const OtlpAnyValue *value, struct view_remarks *remarks);
int reader_label(struct reader *reader, int32_t index, const char *key, const OtlpAnyValue *value);
uint64_t reader_count(const OtlpAnyValue *value);
/* Is the attribute a number of the Profile's samples, which a part of them does not have? */
bool reader_is_count(const char *key);

#endif /* STACKTAP_VIEW_READER_MESSAGE_H */
