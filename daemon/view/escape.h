/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign text between what is ours. All of it is UTF-8 without control characters, see texts.h. */
#ifndef STACKTAP_VIEW_ESCAPE_H
#define STACKTAP_VIEW_ESCAPE_H

#include "base/macro.h"

/*
 * A JSON string, also inside <script>: nothing in it can end the element or begin a comment, and it is one
 * line for JavaScript.
 */
void escape_json(FILE *file, const char *text);
/* Text of HTML and XML, and of their attributes in quotes. */
void escape_xml(FILE *file, const char *text);

#endif /* STACKTAP_VIEW_ESCAPE_H */
