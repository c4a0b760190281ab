// SPDX-License-Identifier: Apache-2.0
/* What the daemon's service begins with, up to where it wants the module. */
#include "unit.h"

#include <string.h>

#include "base/draw.h"
#include "service/service.h"

static uint32_t limits[8];
static size_t draws;

/* In place of the library's. */
uint32_t draw_below(uint32_t limit)
{
	assert_in_range(draws, 0, ARRAY_SIZE(limits) - 1);
	limits[draws++] = limit;
	return 0;
}

/* Hosts that were started together send at times of their own: by how much the first window is shorter is drawn. */
static void the_first_windows_end_is_drawn(void **state _unused_)
{
	static const char text[] = "[profile]\nwindow_seconds = 7\nwindow_max_seconds = 40\n"
				   "[daemon]\nload_module = no\n[store]\ndirectory =\n[spool]\ndirectory =\n"
				   "[export]\nendpoint = http://127.0.0.1:9\n";
	char path[] = "/tmp/stacktap-service-XXXXXX", error[256] = "";
	struct kept_fds kept = { .session = -1, .ledger = -1 };
	const int fd = mkstemp(path);
	struct service *service = NULL;
	struct config config;

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(config_load(path, &config, error, sizeof(error)), 0);
	unlink(path);
	/* where there is a module, and we may use it, this begins indeed */
	if (!service_start(&config, &kept, &service, error, sizeof(error)))
		service_free(service);
	assert_int_equal(draws, 1);
	assert_int_equal(limits[0], 40 * 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_windows_end_is_drawn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
