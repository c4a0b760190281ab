/* SPDX-License-Identifier: Apache-2.0 */
/* A stack as the module walked it, as libdwfl does from registers and a slice, and the verdict. */
#ifndef SHADOW_FRAMES_H
#define SHADOW_FRAMES_H

#include <elfutils/libdwfl.h>

#include "capture/capture.h"

struct frames {
	uint64_t pcs[STACKTAP_MAX_USER_FRAMES];
	uint16_t exact[STACKTAP_MAX_USER_FRAMES];	/* indices of frames that were interrupted */
	uint32_t count, exact_count;
	int end;					/* enum stacktap_end */
	bool is_blind;			/* libdwfl's: it knows nothing of the last one's code */
};

/* what libdwfl's callbacks see */
struct slice {
	uint32_t tid;
	const struct sample_sections *sections;
	uint64_t missed;	/* highest address that was asked for and is not in the slice; 0: none */
	bool is_caller;		/* begin with the caller, which the link register holds */
};

/* Let @dwfl, which knows the mappings, unwind from whatever *@slice is at the time. */
bool frames_attach(Dwfl *dwfl, uint32_t pid, struct slice *slice);

void frames_of_sample(const struct stacktap_sample *sample, const struct sample_sections *sections,
		      struct frames *ret_frames);
void frames_by_dwfl(Dwfl *dwfl, struct slice *slice, struct frames *ret_frames);

enum verdict {
	VERDICT_EQUAL,
	VERDICT_CUT,		/* the same as far as the slice, or our walk, got in its time */
	VERDICT_BLIND,		/* the same up to code of which libdwfl knows nothing */
	VERDICT_WE_ENDED,	/* the same as far as we went; we said that it was cut */
	VERDICT_THEY_ENDED,	/* the same as far as libdwfl went, which said so */
	VERDICT_WRONG,
	VERDICT_WRONG_ROOT,	/* said to be whole, and the outermost frame is another one */
	VERDICTS
};
enum verdict frames_compare(const struct frames *ours, const struct frames *theirs);

void frames_print(const char *who, const struct frames *frames);

#endif /* SHADOW_FRAMES_H */
