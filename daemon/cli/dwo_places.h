/* SPDX-License-Identifier: Apache-2.0 */
/* Where .dwo files are looked for among the files of whoever asks. */
#ifndef STACKTAP_CLI_DWO_PLACES_H
#define STACKTAP_CLI_DWO_PLACES_H

#include "cli/debugfile.h"
#include "helper/dwo_files.h"
#include "helper/suspects.h"

/* Stays where it is from dwo_places_init() on. */
struct dwo_places {
	const struct debugfile_finder *finder;
	const struct debugfile *file;	/* whose units are split */
	uint64_t absent[DWO_ABSENT_SLOTS];
	struct stand_in suspect;
	struct dwo_files files;
};

/* @file has been found, and stays. */
void dwo_places_init(struct dwo_places *dwos, struct parser *parser, const struct debugfile_finder *finder,
		     const struct debugfile *file);
/* What is missing, in words; of no bytes: nothing is. */
void dwo_places_note(const struct dwo_places *dwos, size_t size, char *ret_note);

#endif /* STACKTAP_CLI_DWO_PLACES_H */
