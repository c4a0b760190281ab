// SPDX-License-Identifier: Apache-2.0
/* Whose share work for a process is paid from: processes, cgroups and users of one's own making are one share. */
#include "fixture.h"

#include <signal.h>
#include <sys/wait.h>

#include "helper/opener.h"
#include "resolve/images.h"
#include "resolve/payer.h"

#define POD "kubepods-burstable-pod3f0c6a1e_52a4_4a7e_9d0b_5f2f8c1d7e90.slice"
#define OTHER_POD "kubepods-burstable-pod00000000_52a4_4a7e_9d0b_5f2f8c1d7e90.slice"
#define ID "6b1c0e2f4a5d7c8e9f00112233445566778899aabbccddeeff0123456789abcd"

struct owned {
	const char *cgroup;
	uint32_t user;
};

static uint32_t payer(const char *cgroup, uint32_t user)
{
	const struct image_details details = { .cgroup = (char *)(uintptr_t)cgroup, .user = user };

	return payer_of(&details);
}

static void what_one_makes_is_paid_by_one(void **state _unused_)
{
	static const struct {
		const char *what;
		struct owned a, b;
	} same[] = {
		{ "a user's own cgroups, and the users that a user namespace gives",
		  { "0::/user.slice/user-1000.slice/session-3.scope", 1000 },
		  { "0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" ID ".scope", 101000 } },
		{ "a service's own cgroups", { "0::/system.slice/shop.service", 33 },
		  { "0::/system.slice/shop.service/libpod-payload-" ID, 34 } },
		{ "users of a container's root", { "0::/system.slice/docker-" ID ".scope", 0 },
		  { "0::/system.slice/docker-" ID ".scope/a/b", 4711 } },
		{ "containers of a pod's", { "0::/kubepods.slice/kubepods-burstable.slice/" POD "/cri-containerd-a.scope", 0 },
		  { "0::/kubepods.slice/kubepods-burstable.slice/" POD "/cri-containerd-b.scope", 7 } },
		{ "services of a machine's", { "0::/lxc.payload.mail/system.slice/cron.service", 0 },
		  { "0::/lxc.payload.mail/system.slice/ssh.service", 0 } },
		{ "whichever hierarchy tells it", { "9:pids:/user.slice/user-1000.slice/x", 1000 },
		  { "1:name=systemd:/user.slice/user-1000.slice/user@1000.service/app.slice", 1000 } },
		{ "what a namespace shows", { "0::/../../user.slice/user-7.slice/a", 7 },
		  { "0::/user.slice/user-7.slice/b", 7 } },
		{ "processes of a user without cgroups", { NULL, 1000 }, { "", 1000 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		if (payer(same[i].a.cgroup, same[i].a.user) != payer(same[i].b.cgroup, same[i].b.user))
			fail_msg("%s: two shares", same[i].what);
}

static void strangers_do_not_share(void **state _unused_)
{
	static const struct owned strangers[] = {
		{ NULL, 0 }, { NULL, 1000 }, { NULL, DETAILS_NO_USER },
		{ "0::/user.slice/user-1000.slice/session-3.scope", 1000 },
		{ "0::/user.slice/user-1001.slice/session-4.scope", 1001 },
		{ "0::/system.slice/nginx.service", 33 },
		{ "0::/system.slice/cron.service", 0 },
		{ "0::/system.slice/docker-" ID ".scope", 0 },
		{ "0::/docker/" ID, 0 },
		{ "0::/kubepods.slice/kubepods-burstable.slice/" POD "/cri-containerd-a.scope", 0 },
		{ "0::/kubepods.slice/kubepods-burstable.slice/" OTHER_POD "/cri-containerd-a.scope", 0 },
		{ "0::/system.slice/containerd.service/" POD ":cri-containerd:a", 0 },
		{ "0::/system.slice/containerd.service/" OTHER_POD ":cri-containerd:a", 0 },
		{ "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/" POD "/a", 0 },
		{ "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/" OTHER_POD "/a", 0 },
		{ "0::/kubelet/kubepods/burstable/pod1/a", 0 },
		{ "0::/kubelet/kubepods/burstable/pod2/a", 0 },
		{ "0::/lxc.payload.mail/init.scope", 0 },
		{ "0::/lxc.payload.web/init.scope", 0 },
		{ "0::/../cri-containerd-a.scope", 0 },
		{ "0::/../cri-containerd-b.scope", 0 },
		{ "0::/init.scope", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(strangers); i++) {
		assert_int_not_equal(payer(strangers[i].cgroup, strangers[i].user), 0);
		for (size_t j = 0; j < i; j++)
			if (payer(strangers[i].cgroup, strangers[i].user) ==
			    payer(strangers[j].cgroup, strangers[j].user))
				fail_msg("%zu and %zu share", j, i);
	}
}

/* As one that wants all of the time would: each process maps a file of its own. */
static void forks_are_one_payer(void **state _unused_)
{
	enum { CHILDREN = 5 };
	struct mount_namespace_table *spaces;
	struct images *images;
	struct opener *opener;
	uint32_t all[CHILDREN];

	assert_int_equal(mount_namespace_table_new("", &spaces), 0);
	assert_int_equal(opener_new(&opener), 0);
	assert_int_equal(images_new(opener, spaces, false, &images), 0);
	for (int i = 0; i < CHILDREN; i++) {
		struct image *image;
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid)
			for (;;)
				pause();
		image = image_new(NULL, (uint32_t)pid, 0, "child");
		assert_non_null(image);
		assert_int_equal(image->payer, 0);
		images_see(images, image, NULL);
		all[i] = image->payer;
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		/* one that is gone before anybody has looked is its parent's matter */
		if (i == 0) {
			struct image *late = image_new(NULL, (uint32_t)pid, 0, "child");

			assert_non_null(late);
			images_see(images, late, image);
			assert_int_equal(late->payer, image->payer);
			image_unref(late);
		}
		image_unref(image);
	}
	for (int i = 0; i < CHILDREN; i++) {
		assert_int_not_equal(all[i], 0);
		assert_int_equal(all[i], all[0]);
	}
	images_free(images);
	opener_free(opener);
	mount_namespace_table_free(spaces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_one_makes_is_paid_by_one),
		cmocka_unit_test(strangers_do_not_share),
		cmocka_unit_test(forks_are_one_payer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
