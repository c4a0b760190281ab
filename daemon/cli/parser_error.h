/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STACKTAP_CLI_PARSER_ERROR_H
#define STACKTAP_CLI_PARSER_ERROR_H

/* What a negative errno of the parser, or of the opener of what it was to read, says of a file: of "it". */
const char *parser_error(int error);

#endif /* STACKTAP_CLI_PARSER_ERROR_H */
