// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cgroup.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/netlink.h>

#include "filter.h"
#include "idset.h"
#include "request.h"
#include "session.h"

enum {
	REQUEST_MAX_CPU_BYTES = DIV_ROUND_UP(NR_CPUS, 64) * sizeof(u64),
	REQUEST_MAX_ID_BYTES = STACKTAP_MAX_TGIDS * sizeof(u32),
};

const struct nla_policy st_request_filter_policy[STACKTAP_FILTER_ATTR_MAX + 1] = {
	[STACKTAP_FILTER_CPUS] = { .type = NLA_BINARY, .len = REQUEST_MAX_CPU_BYTES },
	[STACKTAP_FILTER_TGIDS] = { .type = NLA_BINARY, .len = REQUEST_MAX_ID_BYTES },
	[STACKTAP_FILTER_FLAGS] = NLA_POLICY_MASK(NLA_U32, STACKTAP_FILTER_FLAGS_ALL),
	[STACKTAP_FILTER_TIDS] = { .type = NLA_BINARY, .len = REQUEST_MAX_ID_BYTES },
	[STACKTAP_FILTER_UIDS] = { .type = NLA_BINARY, .len = REQUEST_MAX_ID_BYTES },
	[STACKTAP_FILTER_COMMS] = { .type = NLA_BINARY,
				    .len = STACKTAP_MAX_COMMS * STACKTAP_COMM_LEN },
	[STACKTAP_FILTER_CGROUP_FDS] = { .type = NLA_BINARY,
					 .len = STACKTAP_MAX_CGROUPS * sizeof(s32) },
	[STACKTAP_FILTER_CGROUPS] = { .type = NLA_BINARY,
				      .len = STACKTAP_MAX_CGROUPS * sizeof(u64) },
	[STACKTAP_FILTER_BYTES] = { .type = NLA_REJECT },
};

#define REQUEST_REFUSE(err, attr, extack, why) \
({ \
	NL_SET_ERR_MSG_ATTR(extack, attr, why); \
	(err); \
})

/* How many values of @unit bytes; 0 when there is none or they are ragged. */
static unsigned int request_count(const struct nlattr *attr, size_t unit)
{
	return nla_len(attr) % unit ? 0 : nla_len(attr) / unit;
}

static bool request_cpus_possible(const u64 *words, unsigned int nr_words)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		if (cpu / 64 < nr_words && words[cpu / 64] >> cpu % 64 & 1)
			return true;
	return false;
}

static int request_cpus(struct stacktap_filter *filter, struct nlattr *attr,
			struct netlink_ext_ack *extack)
{
	unsigned int nr_words = request_count(attr, sizeof(u64));
	u64 *words;
	int err = 0;

	/* attribute payloads are aligned to 4 bytes only */
	words = kmemdup(nla_data(attr), nr_words * sizeof(*words), GFP_KERNEL);
	if (!words)
		return -ENOMEM;
	if (!nr_words || !request_cpus_possible(words, nr_words))
		err = REQUEST_REFUSE(-EINVAL, attr, extack,
				     "the CPU set is not in u64 words or names no possible CPU");
	else
		st_filter_set_cpus(filter, words, nr_words);
	kfree(words);
	return err;
}

/* @never: what is none of these ids, beside IDSET_NONE. */
static int request_ids(struct idset **set, const struct nlattr *attr, u32 never)
{
	unsigned int nr, i;
	const u32 *ids;

	if (!attr)
		return 0;
	nr = request_count(attr, sizeof(*ids));
	ids = nla_data(attr);
	for (i = 0; i < nr; i++)
		if (ids[i] == never || ids[i] == IDSET_NONE)
			return -EINVAL;
	return nr ? st_idset_create(ids, nr, set) : -EINVAL;
}

static int request_all_ids(struct stacktap_filter *filter, struct nlattr **tb,
			   struct netlink_ext_ack *extack)
{
	static const int sets[] = {
		STACKTAP_FILTER_TGIDS, STACKTAP_FILTER_TIDS, STACKTAP_FILTER_UIDS,
	};
	unsigned int bytes = 0, i;
	int err;

	for (i = 0; i < ARRAY_SIZE(sets); i++) {
		if (!tb[sets[i]])
			continue;
		bytes += nla_len(tb[sets[i]]);
		/* they have to fit the message that reports them */
		if (bytes > REQUEST_MAX_ID_BYTES)
			return REQUEST_REFUSE(-E2BIG, tb[sets[i]], extack,
					      "tgids, tids and uids are more than 12288 together");
	}
	err = request_ids(&filter->tgids, tb[STACKTAP_FILTER_TGIDS], 0);
	if (err == -EINVAL)
		return REQUEST_REFUSE(err, tb[STACKTAP_FILTER_TGIDS], extack,
				      "the tgid set is empty, ragged or holds a zero");
	if (!err)
		err = request_ids(&filter->tids, tb[STACKTAP_FILTER_TIDS], 0);
	if (err == -EINVAL)
		return REQUEST_REFUSE(err, tb[STACKTAP_FILTER_TIDS], extack,
				      "the tid set is empty, ragged or holds a zero");
	if (!err)
		err = request_ids(&filter->uids, tb[STACKTAP_FILTER_UIDS], IDSET_NONE);
	if (err == -EINVAL)
		return REQUEST_REFUSE(err, tb[STACKTAP_FILTER_UIDS], extack,
				      "the uid set is empty, ragged or holds what is no user id");
	if (err == -ENOSPC)
		NL_SET_ERR_MSG(extack, "these numbers cannot be laid out");
	return err;
}

static_assert(STACKTAP_MAX_TGIDS == 12288);

static int request_comms(struct stacktap_filter *filter, struct nlattr *attr,
			 struct netlink_ext_ack *extack)
{
	unsigned int nr = request_count(attr, STACKTAP_COMM_LEN), i;
	const char *comms = nla_data(attr);

	for (i = 0; i < nr; i++) {
		const char *comm = comms + i * STACKTAP_COMM_LEN;
		size_t len = strnlen(comm, STACKTAP_COMM_LEN);

		/* of 15 bytes at most, as no task has a longer name */
		if (!len || len == STACKTAP_COMM_LEN ||
		    memchr_inv(comm + len, 0, STACKTAP_COMM_LEN - len))
			break;
	}
	if (!nr || i < nr)
		return REQUEST_REFUSE(-EINVAL, attr, extack,
				      "the names are none, ragged, empty or not of 1 to 15 bytes");
	memcpy(filter->comms, comms, nr * STACKTAP_COMM_LEN);
	filter->nr_comms = nr;
	return 0;
}

/* Why cgroup_get_from_fd() does not want @fd. */
static int request_refuse_fd(int fd, int err, struct nlattr *attr, struct netlink_ext_ack *extack)
{
	struct file *file = fget_raw(fd);
	unsigned long magic;
	bool is_directory;

	if (!file)
		return REQUEST_REFUSE(-EBADF, attr, extack, "a file descriptor is not open");
	magic = file_inode(file)->i_sb->s_magic;
	is_directory = S_ISDIR(file_inode(file)->i_mode);
	fput(file);
	if (magic == CGROUP_SUPER_MAGIC)
		return REQUEST_REFUSE(-EOPNOTSUPP, attr, extack,
				      "that is cgroup v1: only cgroups of v2 can be filtered by");
	if (magic != CGROUP2_SUPER_MAGIC)
		return REQUEST_REFUSE(-EBADF, attr, extack,
				      "a file descriptor is not of a cgroup v2 directory");
	if (!is_directory)
		return REQUEST_REFUSE(-ENOTDIR, attr, extack,
				      "a file descriptor is of a cgroup's file, not of its directory");
	if (err == -ENOENT || err == -ENODEV)
		return REQUEST_REFUSE(-ENOENT, attr, extack, "that cgroup was removed");
	return REQUEST_REFUSE(err, attr, extack, "that cgroup cannot be taken");
}

static int request_cgroup_fds(struct stacktap_filter *filter, struct nlattr *attr,
			      struct netlink_ext_ack *extack)
{
	unsigned int nr = request_count(attr, sizeof(s32)), i;
	const s32 *fds = nla_data(attr);

	if (!nr)
		return REQUEST_REFUSE(-EINVAL, attr, extack,
				      "the set of cgroup descriptors is empty or ragged");
	for (i = 0; i < nr; i++) {
		struct cgroup *cgroup = cgroup_get_from_fd(fds[i]);

		if (IS_ERR(cgroup))
			return request_refuse_fd(fds[i], PTR_ERR(cgroup), attr, extack);
		/* some releases take those of v1 as well, where every task is in the root of v2 */
		if (cgroup->root != &cgrp_dfl_root) {
			cgroup_put(cgroup);
			return request_refuse_fd(fds[i], -EBADF, attr, extack);
		}
		st_filter_add_cgroup(filter, cgroup);
	}
	return 0;
}

static struct cgroup *request_find_cgroup(const struct stacktap_filter *filter, u64 id)
{
	unsigned int i;

	for (i = 0; filter && i < filter->nr_cgroups; i++)
		if (cgroup_id(filter->cgroups[i]) == id)
			return filter->cgroups[i];
	return NULL;
}

static int request_kept_cgroups(struct stacktap_filter *filter, struct stacktap_session *session,
				struct nlattr *attr, struct netlink_ext_ack *extack)
{
	unsigned int nr = request_count(attr, sizeof(u64)), i;
	struct cgroup *cgroup;
	u64 id;

	if (!nr)
		return REQUEST_REFUSE(-EINVAL, attr, extack,
				      "the set of cgroup ids is empty or ragged");
	for (i = 0; i < nr; i++) {
		memcpy(&id, nla_data(attr) + i * sizeof(id), sizeof(id));
		cgroup = request_find_cgroup(session_filter(session), id);
		if (!cgroup)
			return REQUEST_REFUSE(-ENOENT, attr, extack,
					      "the filter in force has no cgroup of that id");
		/* also a removed one, which nothing new is needed of */
		css_get(&cgroup->self);
		st_filter_add_cgroup(filter, cgroup);
	}
	return 0;
}

static int request_cgroups(struct stacktap_filter *filter, struct stacktap_session *session,
			   struct nlattr **tb, struct netlink_ext_ack *extack)
{
	struct nlattr *fds = tb[STACKTAP_FILTER_CGROUP_FDS], *ids = tb[STACKTAP_FILTER_CGROUPS];
	int err = 0;

	if (fds && ids && nla_len(fds) / sizeof(s32) + nla_len(ids) / sizeof(u64) >
			  STACKTAP_MAX_CGROUPS)
		return REQUEST_REFUSE(-E2BIG, fds, extack, "more than 64 cgroups");
	if (ids)
		err = request_kept_cgroups(filter, session, ids, extack);
	if (!err && fds)
		err = request_cgroup_fds(filter, fds, extack);
	return err;
}

static_assert(STACKTAP_MAX_CGROUPS == 64);

static int request_fill(struct stacktap_filter *filter, struct stacktap_session *session,
			struct nlattr **tb, struct netlink_ext_ack *extack)
{
	const u32 modes = STACKTAP_FILTER_USER_ONLY | STACKTAP_FILTER_KERNEL_ONLY;
	int err = 0;

	if (tb[STACKTAP_FILTER_FLAGS])
		filter->flags = nla_get_u32(tb[STACKTAP_FILTER_FLAGS]);
	if ((filter->flags & modes) == modes)
		return REQUEST_REFUSE(-EINVAL, tb[STACKTAP_FILTER_FLAGS], extack,
				      "user only and kernel only together let nothing pass");
	if (tb[STACKTAP_FILTER_CPUS])
		err = request_cpus(filter, tb[STACKTAP_FILTER_CPUS], extack);
	if (!err)
		err = request_all_ids(filter, tb, extack);
	if (!err && tb[STACKTAP_FILTER_COMMS])
		err = request_comms(filter, tb[STACKTAP_FILTER_COMMS], extack);
	if (!err)
		err = request_cgroups(filter, session, tb, extack);
	return err;
}

int st_request_filter(struct stacktap_session *session, struct nlattr *attr,
		      struct netlink_ext_ack *extack, struct stacktap_filter **ret_filter)
{
	struct nlattr *tb[STACKTAP_FILTER_ATTR_MAX + 1];
	struct stacktap_filter *filter;
	int err;

	lockdep_assert_held(&session->lock);
	err = nla_parse_nested(tb, STACKTAP_FILTER_ATTR_MAX, attr, st_request_filter_policy,
			       extack);
	if (err)
		return err;
	if (!nla_len(attr))
		return 0;
	err = st_filter_create(&filter);
	if (err)
		return err;
	err = request_fill(filter, session, tb, extack);
	if (err) {
		st_filter_destroy(filter);
		return err;
	}
	*ret_filter = filter;
	return 0;
}
