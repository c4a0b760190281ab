// SPDX-License-Identifier: Apache-2.0
#include "client/netlink.h"

#include <linux/netlink.h>
#include <netlink/errno.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "client/attribute.h"
#include "client/kmodload.h"
#include "client/nlerror.h"

enum {
	RECEIVE_BYTES = 1 << 20,
	DUMP_TRIES = 5,
};

struct control {
	struct nl_sock *socket;
	struct nl_sock *events;	/* its own socket: no event between a request and its answer */
	int family;
	char error[384];
	/* the newest event, see control_next_event() */
	struct control_event event;
	bool has_event;
};

struct request {
	struct control *control;
	int error;	/* the kernel's own, or of @parse */
	bool is_done;
	int (*parse)(struct request *request, struct nlmsghdr *message);
	void *ctx;
};

/* The extended acknowledgement behind an error message. */
static void keep_sentence(struct control *control, struct nlmsgerr *error)
{
	struct nlmsghdr *header = (struct nlmsghdr *)((char *)error - NLMSG_HDRLEN);
	size_t offset = sizeof(*error);
	struct nlattr *attr;

	if (!(header->nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	if (!(header->nlmsg_flags & NLM_F_CAPPED))
		offset += NLMSG_ALIGN(error->msg.nlmsg_len) - NLMSG_HDRLEN;
	if (offset >= (size_t)nlmsg_datalen(header))
		return;
	attr = nla_find((struct nlattr *)((char *)error + offset),
			nlmsg_datalen(header) - (int)offset, NLMSGERR_ATTR_MSG);
	if (attr)
		nla_strlcpy(control->error, attr, sizeof(control->error));
}

static int on_error(struct sockaddr_nl *from _unused_, struct nlmsgerr *error, void *ctx)
{
	struct request *request = ctx;

	keep_sentence(request->control, error);
	request->error = error->error;
	request->is_done = true;
	return NL_STOP;
}

static int on_ack(struct nl_msg *message _unused_, void *ctx)
{
	struct request *request = ctx;

	request->is_done = true;
	return NL_STOP;
}

/* End of a dump; a dump that failed midway says so here. */
static int on_finish(struct nl_msg *message, void *ctx)
{
	struct request *request = ctx;
	struct nlmsghdr *header = nlmsg_hdr(message);
	int error = 0;

	if (nlmsg_datalen(header) >= (int)sizeof(error))
		memcpy(&error, nlmsg_data(header), sizeof(error));
	if (error < 0 && !request->error)
		request->error = error;
	request->is_done = true;
	return NL_STOP;
}

static int on_valid(struct nl_msg *message, void *ctx)
{
	struct request *request = ctx;
	int ret;

	/* after a failure the rest of the answer is read and dropped */
	if (request->parse && !request->error) {
		ret = request->parse(request, nlmsg_hdr(message));
		if (ret < 0)
			request->error = ret;
	}
	return NL_OK;
}

static void free_cb(struct nl_cb **cb)
{
	if (*cb)
		nl_cb_put(*cb);
}

static void free_message(struct nl_msg **message)
{
	nlmsg_free(*message);
}

#define _cleanup_message_ _cleanup_(free_message)

static struct nl_msg *new_message(struct control *control, uint8_t command, int flags, size_t size)
{
	struct nl_msg *message = nlmsg_alloc_size(size + 4096);

	if (message && !genlmsg_put(message, NL_AUTO_PORT, NL_AUTO_SEQ, control->family, 0, flags,
				    command, STACKTAP_GENL_VERSION))
		nlmsg_free(steal_ptr(message));
	return message;
}

static int transact(struct control *control, struct nl_msg *message, struct request *request)
{
	_cleanup_(free_cb) struct nl_cb *cb = nl_cb_alloc(NL_CB_DEFAULT);
	int ret;

	if (!cb)
		return -ENOMEM;
	control->error[0] = '\0';
	request->control = control;
	nl_cb_err(cb, NL_CB_CUSTOM, on_error, request);
	nl_cb_set(cb, NL_CB_ACK, NL_CB_CUSTOM, on_ack, request);
	nl_cb_set(cb, NL_CB_FINISH, NL_CB_CUSTOM, on_finish, request);
	nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, on_valid, request);
	ret = nl_send_auto(control->socket, message);
	if (ret < 0)
		return nlerror_to_errno(ret);
	while (!request->is_done) {
		ret = nl_recvmsgs(control->socket, cb);
		if (request->error)
			continue;
		if (ret < 0 && ret != -NLE_INTR)
			return nlerror_to_errno(ret);
	}
	return request->error;
}

static int open_socket(struct nl_sock **ret_socket)
{
	struct nl_sock *socket = nl_socket_alloc();
	int on = 1, ret;

	if (!socket)
		return -ENOMEM;
	ret = genl_connect(socket);
	if (ret < 0) {
		nl_socket_free(socket);
		return nlerror_to_errno(ret);
	}
	/* a kernel that cannot do one of these still answers, with less detail */
	setsockopt(nl_socket_get_fd(socket), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	setsockopt(nl_socket_get_fd(socket), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
	nl_socket_set_buffer_size(socket, RECEIVE_BYTES, 0);
	*ret_socket = socket;
	return 0;
}

int control_open(struct control **ret_control)
{
	struct control *control = calloc(1, sizeof(*control));
	int ret;

	if (!control)
		return -ENOMEM;
	ret = open_socket(&control->socket);
	if (ret < 0)
		goto err_control;
	ret = genl_ctrl_resolve(control->socket, STACKTAP_GENL_NAME);
	if (ret < 0) {
		ret = ret == -NLE_OBJ_NOTFOUND ? -ENODEV : nlerror_to_errno(ret);
		goto err_control;
	}
	control->family = ret;
	*ret_control = control;
	return 0;

err_control:
	control_close(control);
	return ret;
}

void control_close(struct control *control)
{
	if (!control)
		return;
	nl_socket_free(control->events);
	nl_socket_free(control->socket);
	free(control);
}

const char *control_error(const struct control *control)
{
	return control->error;
}

static int parse_module(struct request *request, struct nlmsghdr *message)
{
	return attribute_parse_module(message, request->ctx);
}

int control_get_module(struct control *control, struct control_module *ret_module)
{
	_cleanup_message_ struct nl_msg *message = NULL;
	struct control_module module = { 0 };
	struct request request = { .parse = parse_module, .ctx = &module };
	int ret;

	message = new_message(control, STACKTAP_CMD_GET_MODULE, 0, 0);
	if (!message)
		return -ENOMEM;
	ret = transact(control, message, &request);
	if (ret < 0)
		return ret;
	*ret_module = module;
	return 0;
}

/* Answers of a dump, complete before the caller sees the first: a dump may have to begin again. */
struct list {
	char *items;
	size_t size, count, capacity;
	int (*parse)(struct nlmsghdr *message, void *ret_item);
};

static int parse_list_item(struct request *request, struct nlmsghdr *message)
{
	struct list *list = request->ctx;
	int ret;

	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? 2 * list->capacity : 4;
		char *items = reallocarray(list->items, capacity, list->size);

		if (!items)
			return -ENOMEM;
		list->items = items;
		list->capacity = capacity;
	}
	ret = list->parse(message, list->items + list->count * list->size);
	if (ret < 0)
		return ret;
	list->count++;
	return 0;
}

static int fill_list(struct control *control, uint8_t command, int flags, uint64_t session_id,
		     struct list *list)
{
	_cleanup_message_ struct nl_msg *message = NULL;
	struct request request = { .parse = parse_list_item, .ctx = list };

	message = new_message(control, command, flags, 0);
	if (!message)
		return -ENOMEM;
	if (session_id && nla_put_u64(message, STACKTAP_A_SESSION_ID, session_id))
		return -EMSGSIZE;
	return transact(control, message, &request);
}

static int parse_session(struct nlmsghdr *message, void *ret_item)
{
	return attribute_parse_session(message, ret_item);
}

static int parse_cpu(struct nlmsghdr *message, void *ret_item)
{
	return attribute_parse_cpu(message, ret_item);
}

static int parse_table(struct nlmsghdr *message, void *ret_item)
{
	return attribute_parse_table(message, ret_item);
}

static void sessions_done(struct list *list)
{
	struct control_session *sessions = (void *)list->items;

	for (size_t i = 0; i < list->count; i++)
		control_filter_done(&sessions[i].filter);
	free(list->items);
	list->items = NULL;
	list->count = list->capacity = 0;
}

int control_get_session(struct control *control, uint64_t id, struct control_session *ret_session)
{
	struct list list = { .size = sizeof(*ret_session), .parse = parse_session };
	int ret;

	/* no id would ask for all */
	if (!id)
		return -EINVAL;
	ret = fill_list(control, STACKTAP_CMD_GET_SESSION, 0, id, &list);
	if (!ret && list.count != 1)
		ret = -EBADMSG;
	if (!ret) {
		memcpy(ret_session, list.items, sizeof(*ret_session));
		list.count = 0; /* the filter went with it */
	}
	sessions_done(&list);
	return ret;
}

/*
 * A dump leaves out sets of ids that do not fit. Asked for by its id a session has them; one that has
 * ended meanwhile, or for which there is no memory, stays as it is.
 */
static void complete_sessions(struct control *control, struct list *list)
{
	struct control_session *sessions = (void *)list->items, whole;

	for (size_t i = 0; i < list->count; i++) {
		if (!sessions[i].filter.is_partial ||
		    control_get_session(control, sessions[i].id, &whole) < 0)
			continue;
		control_filter_done(&sessions[i].filter);
		sessions[i] = whole;
	}
}

int control_each_session(struct control *control,
			 int (*each)(void *ctx, const struct control_session *session), void *ctx)
{
	struct list list = { .size = sizeof(struct control_session), .parse = parse_session };
	const struct control_session *sessions;
	int ret = -EAGAIN;

	for (int i = 0; i < DUMP_TRIES && ret == -EAGAIN; i++) {
		sessions_done(&list);
		ret = fill_list(control, STACKTAP_CMD_GET_SESSION, NLM_F_DUMP, 0, &list);
	}
	if (!ret)
		complete_sessions(control, &list);
	sessions = (const void *)list.items;
	for (size_t i = 0; !ret && i < list.count; i++)
		ret = each(ctx, &sessions[i]);
	sessions_done(&list);
	return ret;
}

int control_each_cpu(struct control *control, uint64_t session_id,
		     int (*each)(void *ctx, const struct control_cpu *cpu), void *ctx)
{
	struct list list = { .size = sizeof(struct control_cpu), .parse = parse_cpu };
	const struct control_cpu *cpus;
	int ret = -EAGAIN;

	for (int i = 0; i < DUMP_TRIES && ret == -EAGAIN; i++) {
		list.count = 0;
		ret = fill_list(control, STACKTAP_CMD_GET_CPU, NLM_F_DUMP, session_id, &list);
	}
	cpus = (const void *)list.items;
	for (size_t i = 0; !ret && i < list.count; i++)
		ret = each(ctx, &cpus[i]);
	free(list.items);
	return ret;
}

int control_each_table(struct control *control, uint64_t session_id,
		       int (*each)(void *ctx, const struct control_table *table), void *ctx)
{
	struct list list = { .size = sizeof(struct control_table), .parse = parse_table };
	const struct control_table *tables;
	int ret = -EAGAIN;

	for (int i = 0; i < DUMP_TRIES && ret == -EAGAIN; i++) {
		list.count = 0;
		ret = fill_list(control, STACKTAP_CMD_GET_TABLE, NLM_F_DUMP, session_id, &list);
	}
	tables = (const void *)list.items;
	for (size_t i = 0; !ret && i < list.count; i++)
		ret = each(ctx, &tables[i]);
	free(list.items);
	return ret;
}

/* An older module would say that it does not know an attribute, which helps nobody. */
static int check_task_filters(struct control *control)
{
	struct control_module module;
	int ret;

	ret = control_get_module(control, &module);
	if (ret < 0 || module.features & STACKTAP_FEATURE_TASK_FILTERS)
		return ret;
	snprintf(control->error, sizeof(control->error),
		 "the loaded module (version %s, ABI %u.%u) cannot filter by thread, user, name "
		 "and cgroup, which needs ABI 1.7: install the module of this program (ABI %u.%u) "
		 "and reload it (%s)", module.version, module.abi_major, module.abi_minor,
		 STACKTAP_ABI_MAJOR, STACKTAP_ABI_MINOR, KMODLOAD_RELOAD);
	return -EPROTONOSUPPORT;
}

int control_set_session(struct control *control, uint64_t id, const struct control_change *change)
{
	_cleanup_message_ struct nl_msg *message = NULL;
	struct request request = { 0 };
	int ret = 0;

	if (change->filter && control_filter_is_by_task(change->filter))
		ret = check_task_filters(control);
	if (ret < 0)
		return ret;
	message = new_message(control, STACKTAP_CMD_SET_SESSION, 0, attribute_change_size(change));
	if (!message)
		return -ENOMEM;
	if (nla_put_u64(message, STACKTAP_A_SESSION_ID, id))
		return -EMSGSIZE;
	ret = attribute_put_change(message, change);
	if (ret < 0)
		return ret;
	return transact(control, message, &request);
}

/* While it runs, only what changes is sent. */
static int set_rate_live(struct control *control, uint64_t id, uint32_t source_id,
			 uint32_t rate_hz, uint64_t period)
{
	_cleanup_message_ struct nl_msg *message = NULL;
	struct request request = { 0 };
	int ret;

	message = new_message(control, STACKTAP_CMD_SET_SESSION, 0, 0);
	if (!message)
		return -ENOMEM;
	if (nla_put_u64(message, STACKTAP_A_SESSION_ID, id))
		return -EMSGSIZE;
	ret = attribute_put_rate(message, source_id, rate_hz, period);
	if (ret < 0)
		return ret;
	return transact(control, message, &request);
}

/* The sources of a stopped session are a list that is replaced as a whole. */
static int set_rate_stopped(struct control *control, struct control_session *session,
			    uint32_t source_id, uint32_t rate_hz, uint64_t period)
{
	struct control_change change = { .sources = session->sources,
					 .source_count = session->source_count };
	bool has_source = false;

	for (size_t i = 0; i < session->source_count; i++) {
		struct control_source *source = &session->sources[i];

		/* a period that the module made of the rate would win over it */
		if (source->rate_hz)
			source->period = 0;
		if (source->id != source_id)
			continue;
		has_source = true;
		source->rate_hz = rate_hz;
		source->period = period;
	}
	return has_source ? control_set_session(control, session->id, &change) : -ENOENT;
}

int control_set_rate(struct control *control, uint64_t id, uint32_t source_id, uint32_t rate_hz,
		     uint64_t period)
{
	struct control_session session;
	int ret;

	ret = control_get_session(control, id, &session);
	if (ret < 0)
		return ret;
	if (period)
		rate_hz = 0;
	if (session.state == STACKTAP_STATE_STOPPED)
		ret = set_rate_stopped(control, &session, source_id, rate_hz, period);
	else
		ret = set_rate_live(control, id, source_id, rate_hz, period);
	control_filter_done(&session.filter);
	return ret;
}

static int command_session(struct control *control, uint8_t command, uint64_t id)
{
	_cleanup_message_ struct nl_msg *message = NULL;
	struct request request = { 0 };

	message = new_message(control, command, 0, 0);
	if (!message)
		return -ENOMEM;
	if (nla_put_u64(message, STACKTAP_A_SESSION_ID, id))
		return -EMSGSIZE;
	return transact(control, message, &request);
}

int control_start(struct control *control, uint64_t id)
{
	return command_session(control, STACKTAP_CMD_START, id);
}

int control_stop(struct control *control, uint64_t id)
{
	return command_session(control, STACKTAP_CMD_STOP, id);
}

static int on_event(struct nl_msg *message, void *ctx)
{
	struct control *control = ctx;
	struct genlmsghdr *header = nlmsg_data(nlmsg_hdr(message));

	if (header->cmd != STACKTAP_CMD_EVENT ||
	    attribute_parse_event(nlmsg_hdr(message), &control->event) < 0)
		return NL_SKIP;
	control->has_event = true;
	/* one event a datagram: the kernel never packs several into one */
	return NL_STOP;
}

int control_subscribe(struct control *control)
{
	int group, ret;

	control->error[0] = '\0';
	if (control->events)
		return -EALREADY;
	group = genl_ctrl_resolve_grp(control->socket, STACKTAP_GENL_NAME,
				      STACKTAP_GENL_GROUP_EVENTS);
	if (group < 0)
		return nlerror_to_errno(group);
	ret = open_socket(&control->events);
	if (ret < 0)
		return ret;
	nl_socket_disable_seq_check(control->events);
	nl_socket_modify_cb(control->events, NL_CB_VALID, NL_CB_CUSTOM, on_event, control);
	ret = nl_socket_add_membership(control->events, group);
	if (ret < 0) {
		nl_socket_free(control->events);
		control->events = NULL;
		return nlerror_to_errno(ret);
	}
	return 0;
}

int control_next_event(struct control *control, int timeout_ms, struct control_event *ret_event)
{
	struct pollfd pollfd = { .events = POLLIN };
	int ret;

	if (!control->events)
		return -ENOTCONN;
	pollfd.fd = nl_socket_get_fd(control->events);
	ret = poll(&pollfd, 1, timeout_ms);
	if (ret < 0)
		return -errno;
	if (!ret)
		return 0;
	control->has_event = false;
	errno = 0;
	ret = nl_recvmsgs_default(control->events);
	if (control->has_event) {
		*ret_event = control->event;
		return 1;
	}
	return ret < 0 ? nlerror_to_errno(ret) : 0;
}
