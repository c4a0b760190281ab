// SPDX-License-Identifier: GPL-2.0-only
#include <linux/capability.h>
#include <net/genetlink.h>

#include "compat/compat.h"
#include "control.h"
#include "netlink.h"
#include "report.h"
#include "request.h"

static const struct nla_policy id_policy[STACKTAP_A_SESSION_ID + 1] = {
	[STACKTAP_A_SESSION_ID] = NLA_POLICY_MIN(NLA_U64, 1),
};

static const struct nla_policy none_policy[STACKTAP_A_PAD + 1] = {
	[STACKTAP_A_PAD] = { .type = NLA_REJECT },
};

/* GENL_ADMIN_PERM would ask for CAP_NET_ADMIN, which a profiler has no business with. */
static int netlink_permit(struct sk_buff *skb, struct netlink_ext_ack *extack)
{
	if (netlink_capable(skb, CAP_PERFMON) || netlink_capable(skb, CAP_SYS_ADMIN))
		return 0;
	NL_SET_ERR_MSG(extack, "CAP_PERFMON or CAP_SYS_ADMIN is needed");
	return -EPERM;
}

static void netlink_release(struct stacktap_session *session)
{
	mutex_unlock(&session->lock);
	st_session_put(session);
}

/* The session that the message names, locked; undone by netlink_release(). */
static int netlink_acquire(struct sk_buff *skb, struct nlattr **attrs,
			   struct netlink_ext_ack *extack, struct stacktap_session **ret_session)
{
	struct stacktap_session *session;
	int err = netlink_permit(skb, extack);

	if (err)
		return err;
	if (!attrs[STACKTAP_A_SESSION_ID]) {
		NL_SET_ERR_MSG(extack, "the session id is missing");
		return -EINVAL;
	}
	session = st_session_get(nla_get_u64(attrs[STACKTAP_A_SESSION_ID]));
	if (session) {
		mutex_lock(&session->lock);
		if (!session->dead) {
			*ret_session = session;
			return 0;
		}
		netlink_release(session);
	}
	NL_SET_ERR_MSG_ATTR(extack, attrs[STACKTAP_A_SESSION_ID], "there is no such session");
	return -ESRCH;
}

static int netlink_get_module(struct sk_buff *skb, struct genl_info *info)
{
	struct sk_buff *reply;
	void *header;
	int err = netlink_permit(skb, info->extack);

	if (err)
		return err;
	reply = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!reply)
		return -ENOMEM;
	header = genlmsg_put_reply(reply, info, &st_netlink_family, 0, STACKTAP_CMD_GET_MODULE);
	if (!header || st_report_module(reply)) {
		nlmsg_free(reply);
		return -EMSGSIZE;
	}
	genlmsg_end(reply, header);
	return genlmsg_reply(reply, info);
}

static int netlink_get_session(struct sk_buff *skb, struct genl_info *info)
{
	struct stacktap_session *session;
	struct sk_buff *reply;
	bool partial = false;
	void *header;
	int err = netlink_acquire(skb, info->attrs, info->extack, &session);

	if (err)
		return err;
	err = -ENOMEM;
	reply = genlmsg_new(st_report_session_bytes(session), GFP_KERNEL | __GFP_NOWARN);
	if (!reply) {
		partial = true;
		reply = genlmsg_new(REPORT_MAX_BYTES, GFP_KERNEL);
	}
	if (!reply)
		goto out;
	header = genlmsg_put_reply(reply, info, &st_netlink_family, 0, STACKTAP_CMD_GET_SESSION);
	err = header ? st_report_session(reply, session, partial) : -EMSGSIZE;
	if (err) {
		nlmsg_free(reply);
		goto out;
	}
	genlmsg_end(reply, header);
	err = genlmsg_reply(reply, info);
out:
	netlink_release(session);
	return err;
}

static int netlink_begin_dump(struct netlink_callback *cb)
{
	cb->min_dump_alloc = REPORT_MAX_BYTES;
	return netlink_permit(cb->skb, cb->extack);
}

static void *netlink_put_header(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd)
{
	void *header = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
				   &st_netlink_family, NLM_F_MULTI, cmd);

	if (header)
		genl_dump_check_consistent(cb, header);
	return header;
}

static int netlink_put_session(struct sk_buff *skb, struct netlink_callback *cb,
			       struct stacktap_session *session)
{
	void *header = netlink_put_header(skb, cb, STACKTAP_CMD_GET_SESSION);
	/* in the next datagram there may be room for all of it, but not in one that has nothing else */
	bool is_first = header && nlmsg_hdr(skb) == header - GENL_HDRLEN - NLMSG_HDRLEN;
	int err = header ? st_report_session(skb, session, false) : -EMSGSIZE;

	if (err && is_first)
		err = st_report_session(skb, session, true);
	if (!err)
		genlmsg_end(skb, header);
	else if (header)
		genlmsg_cancel(skb, header);
	return err;
}

/* cb->args[0]: the lowest id that is still to come */
static int netlink_put_sessions(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct stacktap_session *session;
	int err = 0;

	cb->seq = st_session_list_generation();
	while (!err && (session = st_session_get_from(cb->args[0]))) {
		mutex_lock(&session->lock);
		if (!session->dead)
			err = netlink_put_session(skb, cb, session);
		if (!err)
			cb->args[0] = session->id + 1;
		netlink_release(session);
	}
	return skb->len ?: err;
}

/* cb->args: lowest id and, in that session, lowest CPU that are still to come */
static int netlink_put_cpus(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct nlattr *only = compat_genl_dump_attrs(cb)[STACKTAP_A_SESSION_ID];
	struct stacktap_session *session;
	unsigned int cpu;
	void *header;
	int err = 0;

	cb->seq = st_session_list_generation();
	if (only && !cb->args[0])
		cb->args[0] = nla_get_u64(only);
	while (!err && (session = st_session_get_from(cb->args[0]))) {
		if (only && session->id != nla_get_u64(only)) {
			st_session_put(session);
			break;
		}
		if (session->id != cb->args[0])
			cb->args[1] = 0;
		cb->args[0] = session->id;
		mutex_lock(&session->lock);
		for (cpu = cb->args[1]; !err && !session->dead && cpu < nr_cpu_ids; cpu++) {
			struct stacktap_cpu *pc = session_cpu(session, cpu);

			if (!pc)
				continue;
			header = netlink_put_header(skb, cb, STACKTAP_CMD_GET_CPU);
			err = header ? st_report_cpu(skb, session, pc) : -EMSGSIZE;
			if (!err) {
				genlmsg_end(skb, header);
				cb->args[1] = cpu + 1;
			} else if (header) {
				genlmsg_cancel(skb, header);
			}
		}
		if (!err) {
			cb->args[0] = session->id + 1;
			cb->args[1] = 0;
		}
		netlink_release(session);
	}
	return skb->len ?: err;
}

/* cb->args[0]: the lowest table id that is still to come */
static int netlink_put_tables(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct nlattr *only = compat_genl_dump_attrs(cb)[STACKTAP_A_SESSION_ID];
	struct stacktap_session *session = NULL;
	struct stacktap_table_info info;
	void *header;
	int err = 0;

	if (only) {
		session = st_session_get(nla_get_u64(only));
		if (!session)
			return skb->len;
	}
	while (!err && !st_table_next(session ? &session->tables : NULL, cb->args[0], &info)) {
		header = netlink_put_header(skb, cb, STACKTAP_CMD_GET_TABLE);
		err = header ? st_report_table(skb, &info) : -EMSGSIZE;
		if (!err) {
			genlmsg_end(skb, header);
			cb->args[0] = info.id + 1;
		} else if (header) {
			genlmsg_cancel(skb, header);
		}
	}
	if (session)
		st_session_put(session);
	return skb->len ?: err;
}

static int netlink_set_session(struct sk_buff *skb, struct genl_info *info)
{
	struct stacktap_session *session;
	int err = netlink_acquire(skb, info->attrs, info->extack, &session);

	if (err)
		return err;
	err = st_request_set(session, info->attrs, info->extack);
	netlink_release(session);
	return err;
}

static int netlink_start_session(struct sk_buff *skb, struct genl_info *info)
{
	struct stacktap_session *session;
	int err = netlink_acquire(skb, info->attrs, info->extack, &session);

	if (err)
		return err;
	err = st_control_start(session, info->extack);
	netlink_release(session);
	return err;
}

static int netlink_stop_session(struct sk_buff *skb, struct genl_info *info)
{
	struct stacktap_session *session;
	int err = netlink_acquire(skb, info->attrs, info->extack, &session);

	if (err)
		return err;
	if (session->state != STACKTAP_STATE_RUNNING) {
		NL_SET_ERR_MSG(info->extack, "the session is stopped");
		err = -EALREADY;
	} else {
		st_control_stop(session);
	}
	netlink_release(session);
	return err;
}

static const struct genl_ops netlink_ops[] = {
	{
		.cmd = STACKTAP_CMD_GET_MODULE,
		.doit = netlink_get_module,
		/* takes no attribute; a family without any policy would not be checked at all */
		.policy = none_policy,
		.maxattr = ARRAY_SIZE(none_policy) - 1,
	},
	{
		.cmd = STACKTAP_CMD_GET_SESSION,
		.doit = netlink_get_session,
		.start = netlink_begin_dump,
		.dumpit = netlink_put_sessions,
		.policy = id_policy,
		.maxattr = ARRAY_SIZE(id_policy) - 1,
	},
	{
		.cmd = STACKTAP_CMD_GET_CPU,
		.start = netlink_begin_dump,
		.dumpit = netlink_put_cpus,
		.policy = id_policy,
		.maxattr = ARRAY_SIZE(id_policy) - 1,
	},
	{
		.cmd = STACKTAP_CMD_GET_TABLE,
		.start = netlink_begin_dump,
		.dumpit = netlink_put_tables,
		.policy = id_policy,
		.maxattr = ARRAY_SIZE(id_policy) - 1,
	},
	{
		.cmd = STACKTAP_CMD_SET_SESSION,
		.doit = netlink_set_session,
		.policy = st_request_policy,
		.maxattr = ARRAY_SIZE(st_request_policy) - 1,
	},
	{
		.cmd = STACKTAP_CMD_START,
		.doit = netlink_start_session,
		.policy = id_policy,
		.maxattr = ARRAY_SIZE(id_policy) - 1,
	},
	{
		.cmd = STACKTAP_CMD_STOP,
		.doit = netlink_stop_session,
		.policy = id_policy,
		.maxattr = ARRAY_SIZE(id_policy) - 1,
	},
};

static const struct genl_multicast_group netlink_groups[] = {
	{ .name = STACKTAP_GENL_GROUP_EVENTS, COMPAT_MCAST_ADMIN },
};

struct genl_family st_netlink_family __ro_after_init = {
	.name = STACKTAP_GENL_NAME,
	.version = STACKTAP_GENL_VERSION,
	.module = THIS_MODULE,
	/* sessions have locks of their own; genl_mutex would serialize us with everybody else */
	.parallel_ops = true,
	.ops = netlink_ops,
	.n_ops = ARRAY_SIZE(netlink_ops),
	.mcgrps = netlink_groups,
	.n_mcgrps = COMPAT_MCAST_GROUPS,
};

int __init st_netlink_init(void)
{
	return genl_register_family(&st_netlink_family);
}

void st_netlink_exit(void)
{
	genl_unregister_family(&st_netlink_family);
}
