// SPDX-License-Identifier: Apache-2.0
#include "cli/parser_error.h"

#include <errno.h>
#include <string.h>

const char *parser_error(int error)
{
	switch (error) {
	case -EPIPE:
		return "the parser crashed in it, or ran out of memory";
	case -ENOTRECOVERABLE:
		return "the parser crashed in it twice";
	case -ETIMEDOUT:
	case -ETIME:
		return "it takes too long to read";
	case -EAGAIN:
		return "the parser cannot be started, or got no CPU on this busy host: try again";
	case -ENOMEM:
		return "it needs more memory than the parser may take";
	case -EFBIG:
		return "it is too large to read";
	case -EBADMSG:
		return "it is damaged or truncated";
	case -EHOSTDOWN:
		return "its file system does not answer";
	case -EREMOTE:
		return "it is on a FUSE file system, whose server could block the reader, and is not opened; "
		       "`stacktap annotate --binary' reads a copy";
	default:
		return strerror(-error);
	}
}
