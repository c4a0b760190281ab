// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <net/netlink.h>

#include "ceiling.h"
#include "compat/compat.h"
#include "control.h"
#include "degrade.h"
#include "rate.h"
#include "request.h"

static struct netlink_range_validation walk_limit_range = {
	.min = 1000,
	.max = SESSION_WALK_LIMIT_NS,
};

static struct netlink_range_validation slice_range = {
	.max = STACKTAP_MAX_SLICE_BYTES,
};

static const struct nla_policy source_policy[STACKTAP_SRC_ATTR_MAX + 1] = {
	[STACKTAP_SRC_ID] = NLA_POLICY_MAX(NLA_U32, STACKTAP_MAX_SOURCES - 1),
	[STACKTAP_SRC_NAME] = { .type = NLA_NUL_STRING, .len = STACKTAP_NAME_LEN - 1 },
	[STACKTAP_SRC_TYPE] = { .type = NLA_U32 },
	[STACKTAP_SRC_CONFIG] = { .type = NLA_U64 },
	[STACKTAP_SRC_CONFIG1] = { .type = NLA_U64 },
	[STACKTAP_SRC_CONFIG2] = { .type = NLA_U64 },
	[STACKTAP_SRC_MODE] = NLA_POLICY_RANGE(NLA_U8, STACKTAP_MODE_PERIOD, STACKTAP_MODE_FREQ),
	[STACKTAP_SRC_PERIOD] = NLA_POLICY_MIN(NLA_U64, 1),
	[STACKTAP_SRC_RATE_HZ] = NLA_POLICY_RANGE(NLA_U32, 1, STACKTAP_MAX_RATE_HZ),
	[STACKTAP_SRC_NOMINAL_HZ] = NLA_POLICY_MIN(NLA_U64, 1),
	[STACKTAP_SRC_FLAGS] = NLA_POLICY_MASK(NLA_U32, STACKTAP_SRC_FLAGS_ALL),
};

static const struct nla_policy sources_policy[STACKTAP_A_SOURCE + 1] = {
	[STACKTAP_A_SOURCE] = NLA_POLICY_NESTED(source_policy),
};

const struct nla_policy st_request_policy[STACKTAP_A_MAX + 1] = {
	[STACKTAP_A_SESSION_ID] = NLA_POLICY_MIN(NLA_U64, 1),
	[STACKTAP_A_USER_FRAMES] = NLA_POLICY_RANGE(NLA_U32, 1, STACKTAP_MAX_USER_FRAMES),
	[STACKTAP_A_WALK_LIMIT_NS] = NLA_POLICY_FULL_RANGE(NLA_U32, &walk_limit_range),
	[STACKTAP_A_SOURCES] = NLA_POLICY_NESTED(sources_policy),
	[STACKTAP_A_FILTER] = NLA_POLICY_NESTED(st_request_filter_policy),
	[STACKTAP_A_TWO_PHASE] = { .type = NLA_FLAG },
	[STACKTAP_A_SLICE_BYTES] = NLA_POLICY_FULL_RANGE(NLA_U32, &slice_range),
	[STACKTAP_A_SLICE_EVERY] = { .type = NLA_U32 },
	[STACKTAP_A_SLICE_MAX_BYTES] = NLA_POLICY_FULL_RANGE(NLA_U32, &slice_range),
	[STACKTAP_A_BUDGET_NS] = { .type = NLA_U32 },
	[STACKTAP_A_CEILING] = NLA_POLICY_MAX(NLA_U32, CEILING_WHOLE_CPU),
};

struct request {
	struct stacktap_source sources[STACKTAP_MAX_SOURCES];
	unsigned int nr_sources;
	unsigned long changed;		/* bits of sources, in a running session */
	struct stacktap_source old[STACKTAP_MAX_SOURCES]; /* what these were */
	struct stacktap_filter *filter;
};

/* A source of a stopped session: all of it. */
static int request_source(struct request *request, struct nlattr *attr, struct nlattr **tb,
			  struct netlink_ext_ack *extack)
{
	struct stacktap_source *source = &request->sources[request->nr_sources];

	if (tb[STACKTAP_SRC_ID] && nla_get_u32(tb[STACKTAP_SRC_ID]) != request->nr_sources) {
		NL_SET_ERR_MSG_ATTR(extack, tb[STACKTAP_SRC_ID],
				    "source ids count up from 0 in the order of the list");
		return -EINVAL;
	}
	if (!tb[STACKTAP_SRC_NAME] || !tb[STACKTAP_SRC_TYPE] || !tb[STACKTAP_SRC_CONFIG]) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "a source needs a name, a type and a config");
		return -EINVAL;
	}
	nla_strscpy(source->name, tb[STACKTAP_SRC_NAME], sizeof(source->name));
	source->type = nla_get_u32(tb[STACKTAP_SRC_TYPE]);
	source->config = nla_get_u64(tb[STACKTAP_SRC_CONFIG]);
	if (tb[STACKTAP_SRC_CONFIG1])
		source->config1 = nla_get_u64(tb[STACKTAP_SRC_CONFIG1]);
	if (tb[STACKTAP_SRC_CONFIG2])
		source->config2 = nla_get_u64(tb[STACKTAP_SRC_CONFIG2]);
	source->mode = tb[STACKTAP_SRC_MODE] ? nla_get_u8(tb[STACKTAP_SRC_MODE]) :
		       STACKTAP_MODE_PERIOD;
	if (tb[STACKTAP_SRC_PERIOD])
		source->period = nla_get_u64(tb[STACKTAP_SRC_PERIOD]);
	if (tb[STACKTAP_SRC_RATE_HZ])
		source->rate_hz = nla_get_u32(tb[STACKTAP_SRC_RATE_HZ]);
	if (tb[STACKTAP_SRC_NOMINAL_HZ])
		source->nominal_hz = nla_get_u64(tb[STACKTAP_SRC_NOMINAL_HZ]);
	if (tb[STACKTAP_SRC_FLAGS])
		source->flags = nla_get_u32(tb[STACKTAP_SRC_FLAGS]);
	request->nr_sources++;
	return st_source_check(source, extack);
}

/* A source of a running session: its id and a new rate or period. */
static int request_rate(struct request *request, struct stacktap_session *session,
			struct nlattr *attr, struct nlattr **tb, struct netlink_ext_ack *extack)
{
	struct stacktap_source *source;
	unsigned int i, index;

	for (i = 0; i <= STACKTAP_SRC_ATTR_MAX; i++) {
		if (!tb[i] || i == STACKTAP_SRC_ID || i == STACKTAP_SRC_RATE_HZ ||
		    i == STACKTAP_SRC_PERIOD)
			continue;
		NL_SET_ERR_MSG_ATTR(extack, tb[i],
				    "while the session runs only rate and period can change");
		return -EBUSY;
	}
	if (!tb[STACKTAP_SRC_ID] || nla_get_u32(tb[STACKTAP_SRC_ID]) >= session->nr_sources) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "the session has no source of that id");
		return -EINVAL;
	}
	if (!tb[STACKTAP_SRC_RATE_HZ] && !tb[STACKTAP_SRC_PERIOD]) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "neither a rate nor a period is given");
		return -EINVAL;
	}
	index = array_index_nospec(nla_get_u32(tb[STACKTAP_SRC_ID]), session->nr_sources);
	source = &request->sources[index];
	*source = session->sources[index];
	source->rate_hz = tb[STACKTAP_SRC_RATE_HZ] ? nla_get_u32(tb[STACKTAP_SRC_RATE_HZ]) : 0;
	source->period = tb[STACKTAP_SRC_PERIOD] ? nla_get_u64(tb[STACKTAP_SRC_PERIOD]) : 0;
	request->changed |= BIT(index);
	return st_source_check(source, extack);
}

static int request_sources(struct request *request, struct stacktap_session *session,
			   struct nlattr *list, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[STACKTAP_SRC_ATTR_MAX + 1];
	struct nlattr *attr;
	int err, rest;

	nla_for_each_nested(attr, list, rest) {
		err = nla_parse_nested(tb, STACKTAP_SRC_ATTR_MAX, attr, source_policy, extack);
		if (err)
			return err;
		if (session->state == STACKTAP_STATE_RUNNING) {
			err = request_rate(request, session, attr, tb, extack);
		} else if (request->nr_sources == STACKTAP_MAX_SOURCES) {
			NL_SET_ERR_MSG_ATTR(extack, attr, "a session has at most 8 sources");
			err = -E2BIG;
		} else {
			err = request_source(request, attr, tb, extack);
		}
		if (err)
			return err;
	}
	return 0;
}

/* Take back the first @nr; the values were good before. */
static void request_undo_rates(struct request *request, struct stacktap_session *session,
			       unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (request->changed & BIT(i))
			st_rate_set(session, i, &request->old[i], NULL);
}

static int request_apply_rates(struct request *request, struct stacktap_session *session,
			       struct netlink_ext_ack *extack)
{
	unsigned int i;
	int err;

	memcpy(request->old, session->sources, sizeof(request->old));
	for (i = 0; i < session->nr_sources; i++) {
		if (!(request->changed & BIT(i)))
			continue;
		err = st_rate_set(session, i, &request->sources[i], extack);
		if (err) {
			request_undo_rates(request, session, i);
			return err;
		}
	}
	return 0;
}

/* What can fail comes first. */
static int request_apply(struct request *request, struct stacktap_session *session,
			 struct nlattr **attrs, struct netlink_ext_ack *extack)
{
	int err;

	err = request_apply_rates(request, session, extack);
	if (err)
		return err;
	if (attrs[STACKTAP_A_FILTER]) {
		struct stacktap_filter *filter = request->filter;

		request->filter = NULL;
		err = st_control_set_filter(session, filter, extack);
		if (err) {
			request_undo_rates(request, session, session->nr_sources);
			return err;
		}
	}
	if (attrs[STACKTAP_A_USER_FRAMES])
		session->user_frames = nla_get_u32(attrs[STACKTAP_A_USER_FRAMES]);
	if (attrs[STACKTAP_A_WALK_LIMIT_NS])
		session->walk_limit_ns = nla_get_u32(attrs[STACKTAP_A_WALK_LIMIT_NS]);
	if (attrs[STACKTAP_A_TWO_PHASE])
		session->two_phase = true;
	if (attrs[STACKTAP_A_SLICE_BYTES])
		session->slice_bytes = nla_get_u32(attrs[STACKTAP_A_SLICE_BYTES]);
	if (attrs[STACKTAP_A_SLICE_EVERY])
		session->slice_every = nla_get_u32(attrs[STACKTAP_A_SLICE_EVERY]);
	if (attrs[STACKTAP_A_SLICE_MAX_BYTES])
		session->slice_max_bytes = nla_get_u32(attrs[STACKTAP_A_SLICE_MAX_BYTES]);
	if (attrs[STACKTAP_A_SOURCES] && session->state != STACKTAP_STATE_RUNNING)
		st_control_set_sources(session, request->sources, request->nr_sources);
	if (attrs[STACKTAP_A_BUDGET_NS])
		st_degrade_set_budget(session, nla_get_u32(attrs[STACKTAP_A_BUDGET_NS]));
	if (attrs[STACKTAP_A_CEILING])
		st_ceiling_set(session, nla_get_u32(attrs[STACKTAP_A_CEILING]));
	return 0;
}

/* What is asked for, or else what there is. */
static u32 request_u32(const struct nlattr *attr, u32 current_value)
{
	return attr ? nla_get_u32(attr) : current_value;
}

static bool request_is_slice(u32 bytes)
{
	return bytes >= STACKTAP_MIN_SLICE_BYTES && !(bytes % sizeof(u64));
}

static int request_slices(const struct stacktap_session *session, struct nlattr **attrs,
			  struct netlink_ext_ack *extack)
{
	u32 bytes = request_u32(attrs[STACKTAP_A_SLICE_BYTES], session->slice_bytes);
	u32 most = request_u32(attrs[STACKTAP_A_SLICE_MAX_BYTES], session->slice_max_bytes);
	u32 every = request_u32(attrs[STACKTAP_A_SLICE_EVERY], session->slice_every);
	int err;

	if (!bytes) {
		if (!every && !most)
			return 0;
		NL_SET_ERR_MSG(extack, "SLICE_EVERY and SLICE_MAX_BYTES need SLICE_BYTES");
		return -EINVAL;
	}
	if (!request_is_slice(bytes) || (most && !request_is_slice(most))) {
		NL_SET_ERR_MSG_ATTR(extack, attrs[request_is_slice(bytes) ?
						  STACKTAP_A_SLICE_MAX_BYTES :
						  STACKTAP_A_SLICE_BYTES],
				    "stack slices have 1024 to 65536 bytes, a multiple of 8");
		return -ERANGE;
	}
	/* what perf asks before it lets registers out */
	err = security_locked_down(LOCKDOWN_PERF);
	if (err)
		NL_SET_ERR_MSG(extack,
			       "the kernel is locked down: no registers and stack slices of processes");
	return err;
}

int st_request_set(struct stacktap_session *session, struct nlattr **attrs,
		   struct netlink_ext_ack *extack)
{
	struct request *request;
	int err = 0;

	lockdep_assert_held(&session->lock);
	if (session->state == STACKTAP_STATE_RUNNING &&
	    (attrs[STACKTAP_A_USER_FRAMES] || attrs[STACKTAP_A_WALK_LIMIT_NS] ||
	     attrs[STACKTAP_A_TWO_PHASE] || attrs[STACKTAP_A_SLICE_BYTES] ||
	     attrs[STACKTAP_A_SLICE_EVERY] || attrs[STACKTAP_A_SLICE_MAX_BYTES])) {
		NL_SET_ERR_MSG(extack,
			       "depth, time limit, phases and slices can only change while stopped");
		return -EBUSY;
	}
	if (attrs[STACKTAP_A_SLICE_BYTES] || attrs[STACKTAP_A_SLICE_EVERY] ||
	    attrs[STACKTAP_A_SLICE_MAX_BYTES]) {
		err = request_slices(session, attrs, extack);
		if (err)
			return err;
	}

	request = kzalloc(sizeof(*request), GFP_KERNEL);
	if (!request)
		return -ENOMEM;
	if (attrs[STACKTAP_A_SOURCES])
		err = request_sources(request, session, attrs[STACKTAP_A_SOURCES], extack);
	if (!err && attrs[STACKTAP_A_FILTER])
		err = st_request_filter(session, attrs[STACKTAP_A_FILTER], extack,
					&request->filter);
	if (!err)
		err = request_apply(request, session, attrs, extack);
	st_filter_destroy(request->filter);
	kfree(request);
	return err;
}
