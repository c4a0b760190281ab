// SPDX-License-Identifier: Apache-2.0
#include "client/nlerror.h"

#include <errno.h>
#include <netlink/errno.h>

int nlerror_to_errno(int nle)
{
	switch (nle < 0 ? -nle : nle) {
	case NLE_SUCCESS:
		return 0;
	case NLE_INTR:
		return -EINTR;
	case NLE_BAD_SOCK:
		return -ENOTSOCK;
	case NLE_AGAIN:
	case NLE_DUMP_INTR:
		return -EAGAIN;
	case NLE_NOMEM:
		/* libnl reports ENOBUFS, the overrun of a socket, with the same number */
		return errno == ENOBUFS ? -ENOBUFS : -ENOMEM;
	case NLE_EXIST:
		return -EEXIST;
	case NLE_RANGE:
		return -ERANGE;
	case NLE_MSGSIZE:
	case NLE_MSG_OVERFLOW:
	case NLE_ATTRSIZE:
		return -EMSGSIZE;
	case NLE_OPNOTSUPP:
	case NLE_SRCRT_NOSUPPORT:
	case NLE_PROTO_MISMATCH:
		return -EOPNOTSUPP;
	case NLE_AF_NOSUPPORT:
		return -EAFNOSUPPORT;
	case NLE_OBJ_NOTFOUND:
	case NLE_NOADDR:
		return -ENOENT;
	case NLE_NODEV:
		return -ENODEV;
	case NLE_BUSY:
		return -EBUSY;
	case NLE_NOACCESS:
		return -EACCES;
	case NLE_PERM:
		return -EPERM;
	case NLE_SEQ_MISMATCH:
	case NLE_MSG_TRUNC:
	case NLE_MSG_TOOSHORT:
	case NLE_MSGTYPE_NOSUPPORT:
	case NLE_PARSE_ERR:
		return -EBADMSG;
	case NLE_INVAL:
		return -EINVAL;
	default:
		return -EIO;
	}
}
