/* SPDX-License-Identifier: Apache-2.0 */
/* The parser's answers about source lines. What PARSE_DWARF opens stays open for the questions that go on with it. */
#ifndef STACKTAP_HELPER_PARSE_LINES_H
#define STACKTAP_HELPER_PARSE_LINES_H

#include "base/clock.h"
#include "helper/request.h"

void parse_lines_close(void);

int parse_lines_facts(struct serve_request *request, struct serve_answer *answer);
int parse_lines_link(struct serve_request *request, struct serve_answer *answer);
int parse_lines_dwarf(struct serve_request *request, struct serve_answer *answer);
int parse_lines_load_index(struct serve_request *request, struct serve_answer *answer);
int parse_lines_save_index(struct serve_request *request, struct serve_answer *answer);
int parse_lines_find(struct serve_request *request, struct serve_answer *answer);
int parse_lines_dwos(struct serve_request *request, struct serve_answer *answer);
int parse_lines_dwo_names(struct serve_request *request, struct serve_answer *answer);

/* Where a file that may be compressed is, what it unpacks to, of *ret_size bytes, takes its place; else it has its own size. */
int parse_unpack(struct serve_request *request, const struct parse_file *file, uint64_t *ret_size);

static inline uint64_t parse_deadline(const struct parse_file *file)
{
	return clock_monotonic() + file->limit_ms * NSEC_PER_MSEC;
}

#endif /* STACKTAP_HELPER_PARSE_LINES_H */
