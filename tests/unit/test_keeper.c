// SPDX-License-Identifier: Apache-2.0
/* The service manager's store of descriptors, played by a socket; and the ledger that is kept in it. */
#include "unit.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "capture/ledger.h"
#include "service/keeper.h"

static int manager = -1;
static int stored = -1;		/* the descriptor that came with the last message */

static int setup(void **state _unused_)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/test-keeper-%d", (int)getpid());
	unlink(address.sun_path);
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (manager < 0 || bind(manager, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	return setenv("NOTIFY_SOCKET", address.sun_path, 1);
}

static int teardown(void **state _unused_)
{
	unlink(getenv("NOTIFY_SOCKET"));
	unsetenv("NOTIFY_SOCKET");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDNAMES");
	if (stored >= 0)
		close(stored);
	stored = -1;
	return close(manager);
}

/* The next message; "" when there is none. */
static const char *told(void)
{
	static char text[512];
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control;
	struct iovec part = { .iov_base = text, .iov_len = sizeof(text) - 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	ssize_t size = recvmsg(manager, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (stored >= 0)
		close(stored);
	stored = -1;
	if (size > 0 && message.msg_controllen)
		memcpy(&stored, CMSG_DATA(&control.header), sizeof(stored));
	text[max_of(size, (ssize_t)0)] = '\0';
	return text;
}

static bool is_same_file(int a, int b)
{
	struct stat one, other;

	return !fstat(a, &one) && !fstat(b, &other) && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

static void test_keeps_in_place_of_what_was(void **state _unused_)
{
	int session = open("/dev/null", O_RDWR | O_CLOEXEC), fd;
	struct ledger *ledger;

	assert_int_equal(ledger_new(2, &fd, &ledger), 0);
	keeper_keep(session, fd);
	assert_string_equal(told(), "FDSTOREREMOVE=1\nFDNAME=stacktap-session");
	assert_string_equal(told(), "FDSTOREREMOVE=1\nFDNAME=stacktap-ledger");
	assert_string_equal(told(), "FDSTORE=1\nFDNAME=stacktap-ledger\nFDPOLL=0");
	assert_true(is_same_file(stored, fd));
	assert_string_equal(told(), "FDSTORE=1\nFDNAME=stacktap-session\nFDPOLL=0");
	assert_true(is_same_file(stored, session));
	assert_string_equal(told(), "");
	ledger_free(ledger, 2);
	close(fd);
	close(session);
}

/* As the service manager does it: from 3 on. */
static void hand_over(const char *names, const int *fds, int count)
{
	char text[32];

	for (int i = 0; i < count; i++)
		assert_int_equal(dup2(fds[i], 3 + i), 3 + i);
	snprintf(text, sizeof(text), "%d", count);
	setenv("LISTEN_FDS", text, 1);
	setenv("LISTEN_FDNAMES", names, 1);
	snprintf(text, sizeof(text), "%d", (int)getpid());
	setenv("LISTEN_PID", text, 1);
}

static void close_kept(struct kept_fds *kept)
{
	close(kept->session);
	close(kept->ledger);
}

static void test_takes_a_pair_three_times(void **state _unused_)
{
	int fds[3] = { fcntl(manager, F_DUPFD_CLOEXEC, 20), -1, -1 }, fd;
	struct ledger *ledger;
	struct kept_fds kept;

	assert_int_equal(ledger_new(2, &fd, &ledger), 0);
	fds[1] = fcntl(fd, F_DUPFD_CLOEXEC, 20);
	fds[2] = fcntl(fd, F_DUPFD_CLOEXEC, 20);
	close(fd);
	manager = fcntl(manager, F_DUPFD_CLOEXEC, 20);
	for (int i = 0; i < 3; i++) {
		hand_over("stacktap-session:other:stacktap-ledger", fds, 3);
		keeper_take(&kept);
		keeper_check(&kept);
		assert_true(is_same_file(kept.session, fds[0]));
		assert_true(is_same_file(kept.ledger, fds[2]));
		assert_int_equal(fcntl(kept.session, F_GETFD), FD_CLOEXEC);
		assert_null(getenv("LISTEN_FDS"));
		close_kept(&kept);
		assert_string_equal(told(), "");
	}
	/* who dies each time before it takes it over is not helped by a fourth */
	hand_over("stacktap-session:other:stacktap-ledger", fds, 3);
	keeper_take(&kept);
	keeper_check(&kept);
	assert_int_equal(kept.session, -1);
	assert_int_equal(kept.ledger, -1);
	assert_string_equal(told(), "FDSTOREREMOVE=1\nFDNAME=stacktap-session");
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	ledger_free(ledger, 2);
}

static void test_takes_no_half(void **state _unused_)
{
	int fd = fcntl(manager, F_DUPFD_CLOEXEC, 20);
	struct kept_fds kept;

	manager = fcntl(manager, F_DUPFD_CLOEXEC, 20);
	hand_over("stacktap-session", &fd, 1);
	keeper_take(&kept);
	keeper_check(&kept);
	assert_int_equal(kept.session, -1);
	assert_int_equal(fcntl(3, F_GETFD), -1);
	assert_string_equal(told(), "FDSTOREREMOVE=1\nFDNAME=stacktap-session");
	close(fd);
}

static void test_nothing_is_there(void **state _unused_)
{
	struct kept_fds kept;

	keeper_take(&kept);
	keeper_check(&kept);
	assert_int_equal(kept.session, -1);
	assert_int_equal(kept.ledger, -1);
	assert_string_equal(told(), "");
}

static void test_ledger_knows_what_was_told(void **state _unused_)
{
	struct stacktap_config config = { .header = { .size = sizeof(config), .type = STACKTAP_RECORD_CONFIG },
					  .source = 3, .period = 5 };
	struct stacktap_throttle stall = { .header = { .size = sizeof(stall), .type = STACKTAP_RECORD_STALL },
					   .source = 2, .count = 7 };
	struct ledger *ledger, *other;
	uint32_t limit;
	int fd;

	assert_int_equal(ledger_new(2, &fd, &ledger), 0);
	ledger_note(ledger, 2, 1, &config.header);
	ledger_note(ledger, 2, 1, &stall.header);
	/* what no daemon of ours would write */
	ledger_note(ledger, 2, 2, &config.header);
	config.source = STACKTAP_MAX_SOURCES;
	ledger_note(ledger, 2, 1, &config.header);
	assert_int_equal(ledger_open(fd, &other, &limit), 0);
	assert_int_equal(limit, 2);
	/* somebody may write to it still */
	ledger->limit = 1 << 20;
	assert_int_equal(other->cpus[1].configs[3].period, 5);
	assert_int_equal(ledger_count(&other->cpus[1].counts, &stall.header)->count, 7);
	stall.header.type = STACKTAP_RECORD_MISSED;
	assert_int_equal(ledger_count(&other->cpus[1].counts, &stall.header)->count, 0);
	assert_null(ledger_count(&other->cpus[1].counts, &config.header));
	ledger_free(other, limit);
	assert_int_equal(ledger_open(fd, &other, &limit), -EBADMSG);
	ledger->limit = 2;
	/* another version's, or cut */
	ledger->magic++;
	assert_int_equal(ledger_open(fd, &other, &limit), -EBADMSG);
	ledger->magic--;
	ledger->bytes--;
	assert_int_equal(ledger_open(fd, &other, &limit), -EBADMSG);
	ledger->bytes++;
	assert_true(ftruncate(fd, 64) < 0);
	ledger_free(ledger, 2);
	close(fd);
	fd = memfd_create("unsealed", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(ledger_open(fd, &other, &limit), -EBADMSG);
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_keeps_in_place_of_what_was),
		TEST(test_takes_a_pair_three_times),
		TEST(test_takes_no_half),
		TEST(test_nothing_is_there),
		TEST(test_ledger_knows_what_was_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
