/* SPDX-License-Identifier: Apache-2.0 */
/* What pprof has and OTLP's messages have no field for, as attributes by OpenTelemetry's names. */
#ifndef STACKTAP_VIEW_PPROF_NAMES_H
#define STACKTAP_VIEW_PPROF_NAMES_H

#define PPROF_COMMENT "pprof.profile.comment"
#define PPROF_DROP_FRAMES "pprof.profile.drop_frames"
#define PPROF_KEEP_FRAMES "pprof.profile.keep_frames"
#define PPROF_DOC_URL "pprof.profile.doc_url"
#define PPROF_DEFAULT_TYPE "pprof.scope.default_sample_type"	/* of the scope */
#define PPROF_IS_FOLDED "pprof.location.is_folded"

enum { PPROF_COMMENTS_MAX = 256 };	/* each may be the same long string */

/* What is known of a mapping's code. */
enum pprof_mapping_flag {
	PPROF_HAS_FUNCTIONS,
	PPROF_HAS_FILENAMES,
	PPROF_HAS_LINE_NUMBERS,
	PPROF_HAS_INLINE_FRAMES,
	PPROF_MAPPING_FLAGS,
};

static const char *const pprof_mapping_flags[] = {
	[PPROF_HAS_FUNCTIONS] = "pprof.mapping.has_functions",
	[PPROF_HAS_FILENAMES] = "pprof.mapping.has_filenames",
	[PPROF_HAS_LINE_NUMBERS] = "pprof.mapping.has_line_numbers",
	[PPROF_HAS_INLINE_FRAMES] = "pprof.mapping.has_inline_frames",
};

#endif /* STACKTAP_VIEW_PPROF_NAMES_H */
