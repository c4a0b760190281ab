// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "helper/opener.h"
#include "process/cgroup.h"
#include "process/image.h"
#include "process/namespace.h"

static struct mount_namespace_table *spaces;
static struct opener *opener;

static int set_up(void **state)
{
	(void)state;
	return mount_namespace_table_new("", &spaces) ?: opener_new(&opener);
}

static int tear_down(void **state)
{
	(void)state;
	opener_free(opener);
	mount_namespace_table_free(spaces);
	return 0;
}

/* A child that runs @prepare and waits to be killed; returns once it is prepared. */
static pid_t start_child(void (*prepare)(void))
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prepare();
		byte = 1;
		if (write(ready[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void stop_child(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static struct mount_namespace *space_of(pid_t pid)
{
	struct mount_namespace *space;
	struct image_details *details;

	opener_image(opener, spaces, (uint32_t)pid, false, &space, &details);
	image_details_free(details);
	assert_non_null(space);
	return space;
}

static int open_path(struct mount_namespace *space, const char *path, int *ret_fd,
		     struct stat *ret_stat)
{
	return opener_open(opener, spaces, space, 0, &(struct opener_wanted){ .path = path },
			   ret_fd, ret_stat);
}

static void expect_text(struct mount_namespace *space, const char *path, const char *text)
{
	char buffer[64] = "";
	struct stat st;
	int fd;

	assert_int_equal(open_path(space, path, &fd, &st), 0);
	assert_true(read(fd, buffer, sizeof(buffer) - 1) >= 0);
	assert_string_equal(buffer, text);
	close(fd);
}

static void must(bool condition)
{
	if (!condition)
		_exit(1);
}

static void hide_behind_mount(void)
{
	FILE *file;

	must(unshare(CLONE_NEWNS) == 0);
	must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	must(mount("none", fixture_path("mount"), "tmpfs", 0, NULL) == 0);
	file = fopen(fixture_path("mount/program"), "we");
	must(file && fputs("inner", file) >= 0 && fclose(file) == 0);
}

static void files_are_the_ones_the_process_sees(void **state)
{
	struct mount_namespace *inner, *outer;
	pid_t pid;

	(void)state;
	if (geteuid() != 0) {
		print_message("needs root for a mount namespace\n");
		skip();
	}
	fixture_run("mkdir mount && printf outer > mount/program");
	pid = start_child(hide_behind_mount);
	inner = space_of(pid);
	outer = space_of(getpid());
	assert_ptr_not_equal(inner, outer);
	expect_text(inner, fixture_path("mount/program"), "inner");
	expect_text(outer, fixture_path("mount/program"), "outer");
	mount_namespace_unref(outer);
	mount_namespace_unref(inner);
	stop_child(pid);
}

static void chdir_root(void)
{
	must(chroot(fixture_path("jail")) == 0);
}

static void a_root_outlives_its_processes(void **state)
{
	struct mount_namespace *jail, *same;
	struct stat st;
	pid_t pid;
	int fd;

	(void)state;
	if (geteuid() != 0) {
		print_message("needs root for chroot\n");
		skip();
	}
	fixture_run("mkdir -p jail/bin && printf jailed > jail/bin/program && "
		    "ln -s /bin/program jail/link && "
		    "ln -s ../../../../../etc/passwd jail/escape && "
		    "ln -s /proc/self/exe jail/magic && mkfifo jail/fifo");
	pid = start_child(chdir_root);
	jail = space_of(pid);
	same = space_of(pid);
	assert_ptr_equal(jail, same);
	mount_namespace_unref(same);
	stop_child(pid);
	expect_text(jail, "/bin/program", "jailed");
	/* absolute links start at its root, dots do not leave it */
	expect_text(jail, "/link", "jailed");
	expect_text(jail, "/../../bin/program", "jailed");
	assert_int_equal(open_path(jail, "/escape", &fd, &st), -ENOENT);
	assert_true(open_path(jail, "/magic", &fd, &st) < 0);
	assert_int_equal(open_path(jail, "/bin", &fd, &st), -ENXIO);
	/* would wait for a writer for ever */
	assert_int_equal(open_path(jail, "/fifo", &fd, &st), -ENXIO);
	assert_int_equal(open_path(jail, "bin/program", &fd, &st), -EINVAL);
	/* an idle root is given back: it pins the mount */
	mount_namespace_table_trim(spaces, NSEC_PER_SEC * 3600);
	assert_true(jail->root >= 0);
	mount_namespace_table_trim(spaces, 0);
	assert_true(jail->root < 0);
	assert_int_equal(open_path(jail, "/bin/program", &fd, &st), -ESTALE);
	mount_namespace_unref(jail);
}

static void open_roots_are_bounded(void **state)
{
	enum { COUNT = MOUNT_NAMESPACE_ROOTS_MAX + 10 };
	struct mount_namespace *held[COUNT];
	char path[32];

	(void)state;
	if (geteuid() != 0) {
		print_message("needs root for chroot\n");
		skip();
	}
	for (int i = 0; i < COUNT; i++) {
		pid_t pid;

		snprintf(path, sizeof(path), "root%d", i);
		fixture_run("rm -rf jail && mkdir jail");
		pid = start_child(chdir_root);
		held[i] = space_of(pid);
		stop_child(pid);
		/* kept apart from the next one, whose inode number must differ */
		fixture_run("mv jail %s", path);
	}
	assert_int_equal(mount_namespace_table_open_count(spaces), MOUNT_NAMESPACE_ROOTS_MAX);
	/* the oldest went */
	assert_true(held[0]->root < 0);
	assert_true(held[COUNT - 1]->root >= 0);
	for (int i = 0; i < COUNT; i++)
		mount_namespace_unref(held[i]);
	mount_namespace_table_trim(spaces, 0);
	assert_int_equal(mount_namespace_table_open_count(spaces), 0);
}

static struct opener_wanted wanted_of(const char *path)
{
	static char kept[PATH_MAX];
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	snprintf(kept, sizeof(kept), "%s", path);
	return (struct opener_wanted){ .major = major(st.st_dev), .minor = minor(st.st_dev),
				       .inode = st.st_ino, .path = kept };
}

static void another_file_is_never_taken(void **state)
{
	struct mount_namespace *host = mount_namespace_table_guess(spaces);
	struct opener_wanted wanted;
	struct stat st;
	int fd;

	(void)state;
	fixture_write("victim", "old");
	fixture_write("other", "new");
	wanted = wanted_of(fixture_path("victim"));
	assert_int_equal(opener_open(opener, spaces, host, 0, &wanted, &fd, &st), 0);
	close(fd);
	fixture_run("mv other victim");
	assert_int_equal(opener_open(opener, spaces, host, 0, &wanted, &fd, &st), -ESTALE);
	fixture_run("rm victim");
	assert_int_equal(opener_open(opener, spaces, host, 0, &wanted, &fd, &st), -ENOENT);
	/* a guessed root needs an inode number to compare */
	fixture_write("victim", "third");
	wanted.inode = 0;
	assert_int_equal(opener_open(opener, spaces, host, 0, &wanted, &fd, &st), -ESTALE);
	/* btrfs and overlayfs map with numbers that stat() does not show: anonymous devices */
	wanted = wanted_of(fixture_path("victim"));
	wanted.major = 0;
	wanted.minor = 99;
	assert_int_equal(opener_open(opener, spaces, host, 0, &wanted, &fd, &st), 0);
	close(fd);
	/* two real devices are two */
	if (major(st.st_dev)) {
		wanted.major = major(st.st_dev) + 1;
		assert_int_equal(opener_open(opener, spaces, host, 0, &wanted, &fd, &st), -ESTALE);
	}
	/* tmpfs has an anonymous device as well */
	if (stat("/dev/shm", &st) == 0 && !major(st.st_dev)) {
		char path[] = "/dev/shm/stacktap-test-XXXXXX";

		close(mkstemp(path));
		wanted = wanted_of(path);
		wanted.major = 8;
		assert_int_equal(opener_open(opener, spaces, host, 0, &wanted, &fd, &st), 0);
		close(fd);
		unlink(path);
	}
	mount_namespace_unref(host);
}

static void write_layer(const char *name, const char *text)
{
	FILE *file = fopen(fixture_path(name), "we");

	must(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Maps a program whose mode has changed since it came from the lower layer. */
static void copy_up(void)
{
	static const char *const directories[] = { "lower", "upper", "work", "merged" };
	char options[PATH_MAX * 3];
	int fd;

	must(unshare(CLONE_NEWNS) == 0);
	must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	must(mount("none", fixture_path("layers"), "tmpfs", 0, NULL) == 0);
	must(chdir(fixture_path("layers")) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		must(mkdir(directories[i], 0755) == 0);
	write_layer("layers/lower/program", "text");
	write_layer("layers/lower/other", "text");
	snprintf(options, sizeof(options), "lowerdir=%s,upperdir=%s,workdir=%s",
		 fixture_path("layers/lower"), fixture_path("layers/upper"),
		 fixture_path("layers/work"));
	must(mount("none", "merged", "overlay", 0, options) == 0);
	must(chmod("merged/program", 0700) == 0 && chmod("merged/other", 0700) == 0);
	fd = open("merged/program", O_RDONLY | O_CLOEXEC);
	must(mmap(NULL, 4, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED);
	must(close(fd) == 0);
}

/* As the side band tells it of the file that @pid has mapped. */
static struct opener_wanted mapped_by(pid_t pid, const char *path)
{
	struct opener_wanted wanted = { .path = path };
	char line[PATH_MAX * 2];
	bool is_found = false;
	FILE *maps;

	snprintf(line, sizeof(line), "/proc/%d/maps", pid);
	maps = fopen(line, "re");
	assert_non_null(maps);
	while (!is_found && fgets(line, sizeof(line), maps))
		is_found = strstr(line, "/program") &&
			   sscanf(line, "%*s %*s %*s %x:%x %lu", &wanted.major, &wanted.minor,
				  &wanted.inode) == 3;
	fclose(maps);
	assert_true(is_found);
	return wanted;
}

static void a_copied_up_file_is_the_one_it_is_mapped_as(void **state)
{
	struct mount_namespace *space;
	struct opener_wanted wanted;
	struct stat st, other;
	pid_t pid;
	int fd;

	(void)state;
	if (geteuid() != 0 || system("grep -qw overlay /proc/filesystems")) {
		print_message("needs root and overlayfs\n");
		skip();
	}
	fixture_run("mkdir layers");
	pid = start_child(copy_up);
	space = space_of(pid);
	wanted = mapped_by(pid, fixture_path("layers/merged/program"));
	assert_int_equal(opener_open(opener, spaces, space, 0, &wanted, &fd, &st), 0);
	close(fd);
	/* by what the process has mapped: nobody else sees the path */
	assert_int_equal(opener_open(opener, spaces, NULL, (uint32_t)pid, &wanted, &fd, &st), 0);
	close(fd);
	/* the same in all but its inode, or the device */
	wanted.path = fixture_path("layers/merged/other");
	assert_int_equal(opener_open(opener, spaces, space, 0, &wanted, &fd, &other), -ESTALE);
	wanted.path = fixture_path("layers/merged/program");
	if (wanted.inode != st.st_ino) {
		wanted.minor++;
		assert_int_equal(opener_open(opener, spaces, space, 0, &wanted, &fd, &other), -ESTALE);
		wanted.minor--;
	}
	wanted.inode += 1000;
	assert_int_equal(opener_open(opener, spaces, space, (uint32_t)pid, &wanted, &fd, &other), -ESTALE);
	mount_namespace_unref(space);
	stop_child(pid);
}

/* One that does not answer is replaced, and what it was asked about is left alone, and nothing else. */
static void what_hangs_is_left_alone(void **state)
{
	struct mount_namespace *host = mount_namespace_table_guess(spaces);
	struct opener_wanted wanted, other;
	struct opener_stats stats;
	struct stat st;
	int fd;

	(void)state;
	fixture_write("hanging", "text");
	wanted = wanted_of(fixture_path("hanging"));
	other = wanted;
	wanted.major = 0;
	wanted.minor = 77;
	assert_int_equal(opener_open(opener, spaces, host, 0, &wanted, &fd, &st), 0);
	close(fd);
	opener_stats(opener, &stats);
	assert_int_equal(kill(stats.helper.pid, SIGSTOP), 0);
	assert_int_equal(opener_open(opener, spaces, host, 0, &wanted, &fd, &st), -EHOSTDOWN);
	opener_stats(opener, &stats);
	assert_int_equal(stats.helper.timeouts, 1);
	assert_int_equal(stats.quarantined, 1);
	assert_int_equal(stats.left_alone, 0);
	assert_non_null(strstr(stats.last_quarantined, "/hanging"));
	assert_int_equal(opener_open(opener, spaces, host, 0, &wanted, &fd, &st), -EHOSTDOWN);
	opener_stats(opener, &stats);
	assert_int_equal(stats.left_alone, 1);
	assert_int_equal(opener_open(opener, spaces, host, 0, &other, &fd, &st), 0);
	close(fd);
	mount_namespace_unref(host);
}

/* Stop the opener, and have it go on after half a second. */
static void slow_down(pid_t pid)
{
	fixture_run("kill -STOP %d; { sleep 0.5; kill -CONT %d; } >/dev/null 2>&1 &", (int)pid, (int)pid);
}

/* Answers that come late are waited for, but not for ever; then the place is left alone, and no other. */
static void what_is_slow_is_left_alone_in_the_end(void **state)
{
	struct mount_namespace *host = mount_namespace_table_guess(spaces);
	struct opener_wanted wanted, other;
	struct opener_stats before, stats;
	struct stat st;
	int fd, slow = 0, r = 0;

	(void)state;
	fixture_write("slow", "text");
	wanted = wanted_of(fixture_path("slow"));
	other = wanted;
	wanted.major = 0;
	wanted.minor = 78;
	opener_stats(opener, &before);
	for (; r != -EHOSTDOWN && slow < 60; slow++) {
		opener_stats(opener, &stats);
		slow_down(stats.helper.pid);
		r = opener_open(opener, spaces, host, 0, &wanted, &fd, &st);
		if (!r)
			close(fd);
	}
	assert_int_equal(r, -EHOSTDOWN);
	opener_stats(opener, &stats);
	/* each took half a second at least, and the first ones were worth it; on a busy host one may have taken too long */
	if (stats.helper.timeouts == before.helper.timeouts)
		assert_in_range(slow, 3, 20);
	assert_int_equal(stats.quarantined, before.quarantined + 1);
	assert_non_null(strstr(stats.last_quarantined, "/slow"));
	/* the last one, that was not asked, was stopped for it */
	usleep(600000);
	assert_int_equal(opener_open(opener, spaces, host, 0, &other, &fd, &st), 0);
	close(fd);
	mount_namespace_unref(host);
}

#define ID "6b1c0e2f4a5d7c8e9f00112233445566778899aabbccddeeff0123456789abcd"
#define OUTER "f1e2d3c4b5a6978877665544332211000123456789abcdeffedcba9876543210"
#define UID "3f0c6a1e-52a4-4a7e-9d0b-5f2f8c1d7e90"
#define UID_IN_SLICE "3f0c6a1e_52a4_4a7e_9d0b_5f2f8c1d7e90"
#define STATIC_UID "8a3f5c7b9d1e2f40617283940a1b2c3d"
#define PODS "0::/kubepods.slice/kubepods-burstable.slice/"
#define ROOTLESS "0::/user.slice/user-1000.slice/user@1000.service/user.slice/"

static void what_runtimes_call_cgroups(void **state)
{
	/* empty: none */
	static const struct {
		const char *text, *id, *pod, *qos, *unit, *service;
	} cases[] = {
		/* docker: systemd's driver and its own, v2 and v1, rootless, the daemon itself */
		{ "0::/system.slice/docker-" ID ".scope\n", ID, "", "", "", "" },
		{ "0::/docker/" ID "\n", ID, "", "", "", "" },
		{ "13:pids:/docker/" ID "\n12:cpu,cpuacct:/docker/" ID "\n1:name=systemd:/docker/" ID
		  "\n0::/system.slice/containerd.service\n", ID, "", "", "", "" },
		{ ROOTLESS "docker-" ID ".scope\n", ID, "", "", "", "" },
		{ "0::/system.slice/docker.service\n", "", "", "", "docker.service", "docker" },
		/* containerd: both drivers, v1 and v2, without a scope, nerdctl, a static pod */
		{ PODS "kubepods-burstable-pod" UID_IN_SLICE ".slice/cri-containerd-" ID ".scope\n", ID,
		  UID, "Burstable", "", "" },
		{ "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_IN_SLICE
		  ".slice/cri-containerd-" ID ".scope\n", ID, UID, "BestEffort", "", "" },
		{ "0::/kubepods.slice/kubepods-pod" UID_IN_SLICE ".slice/cri-containerd-" ID
		  ".scope\n", ID, UID, "Guaranteed", "", "" },
		{ "0::/kubepods/burstable/pod" UID "/" ID "\n", ID, UID, "Burstable", "", "" },
		{ "11:memory:/kubepods/besteffort/pod" UID "/" ID
		  "\n4:devices:/kubepods/besteffort/pod" UID "/" ID "\n", ID, UID, "BestEffort", "",
		  "" },
		{ "3:cpu:/kubepods/pod" UID "/" ID "\n", ID, UID, "Guaranteed", "", "" },
		{ "0::/system.slice/containerd.service/kubepods-burstable-pod" UID_IN_SLICE
		  ".slice:cri-containerd:" ID "\n", ID, UID, "Burstable", "", "" },
		{ "0::/system.slice/nerdctl-" ID ".scope\n", ID, "", "", "", "" },
		{ "0::/default/" ID "\n", ID, "", "", "", "" },
		{ PODS "kubepods-burstable-pod" STATIC_UID ".slice/cri-containerd-" ID ".scope\n", ID,
		  STATIC_UID, "Burstable", "", "" },
		/* CRI-O, with crun's cgroup below, and its watcher */
		{ PODS "kubepods-burstable-pod" UID_IN_SLICE ".slice/crio-" ID ".scope\n", ID, UID,
		  "Burstable", "", "" },
		{ PODS "kubepods-burstable-pod" UID_IN_SLICE ".slice/crio-" ID ".scope/container\n",
		  ID, UID, "Burstable", "", "" },
		{ PODS "kubepods-burstable-pod" UID_IN_SLICE ".slice/crio-conmon-" ID ".scope\n", "",
		  UID, "Burstable", "crio-conmon-" ID ".scope", "" },
		/* podman: root's, a user's, without systemd, a unit's own, its watcher, in a pod */
		{ "0::/machine.slice/libpod-" ID ".scope/container\n", ID, "", "", "", "" },
		{ ROOTLESS "libpod-" ID ".scope/container\n", ID, "", "", "", "" },
		{ "0::/libpod_parent/libpod-" ID "\n", ID, "", "", "", "" },
		{ "0::/system.slice/shop.service/libpod-payload-" ID "\n", ID, "", "", "shop.service",
		  "shop" },
		{ "0::/machine.slice/libpod-conmon-" ID ".scope\n", "", "", "",
		  "libpod-conmon-" ID ".scope", "" },
		{ "0::/machine.slice/machine-libpod_pod_" OUTER ".slice/libpod-" ID ".scope\n", ID, "",
		  "", "", "" },
		/* kind: a node is a container, and pods are in it; both drivers */
		{ "0::/docker/" OUTER "/kubelet.slice/kubelet-kubepods.slice/"
		  "kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod" UID_IN_SLICE
		  ".slice/cri-containerd-" ID ".scope\n", ID, UID, "Burstable", "", "" },
		{ "0::/system.slice/docker-" OUTER ".scope/kubelet/kubepods/besteffort/pod" UID "/" ID
		  "\n", ID, UID, "BestEffort", "", "" },
		{ "0::/system.slice/docker-" OUTER ".scope/system.slice/kubelet.service\n", OUTER, "",
		  "", "kubelet.service", "kubelet" },
		/* machines: what runs in them, their own init, their names as systemd writes them */
		{ "0::/machine.slice/systemd-nspawn@db.service/payload/system.slice/cron.service\n",
		  "db", "", "", "cron.service", "cron" },
		{ "0::/machine.slice/systemd-nspawn@db.service/payload/init.scope\n", "db", "", "",
		  "init.scope", "" },
		{ "0::/machine.slice/machine-web\\x2dfront.scope/payload\n", "web-front", "", "", "",
		  "" },
		{ "0::/lxc.payload.mail/system.slice/cron.service\n", "mail", "", "", "cron.service",
		  "cron" },
		{ "4:memory:/lxc/mail/init.scope\n", "mail", "", "", "init.scope", "" },
		{ "0::/lxc.monitor.mail\n", "", "", "", "", "" },
		{ "0::/machine.slice/machine-qemu\\x2d1\\x2dvm.scope\n", "", "", "",
		  "machine-qemu\\x2d1\\x2dvm.scope", "" },
		{ "0::/ecs/0123456789abcdef0123456789abcdef/0123456789abcdef0123456789abcdef-1234567890\n",
		  "0123456789abcdef0123456789abcdef-1234567890", "", "", "", "" },
		/* units without containers: v2, v1 with its many lines, a template, users and sessions */
		{ "0::/system.slice/nginx.service\n", "", "", "", "nginx.service", "nginx" },
		{ "12:cpu:/\n9:pids:/system.slice/cron.service\n5:memory:/system.slice\n"
		  "1:name=systemd:/system.slice/cron.service\n0::/system.slice/cron.service\n", "", "",
		  "", "cron.service", "cron" },
		{ "9:pids:/user.slice/user-1000.slice/user@1000.service\n1:name=systemd:/user.slice/"
		  "user-1000.slice/user@1000.service/app.slice/syncthing.service\n", "", "", "",
		  "syncthing.service", "syncthing" },
		{ "0::/system.slice/system-postgresql.slice/postgresql@15-main.service\n", "", "", "",
		  "postgresql@15-main.service", "postgresql@15-main" },
		{ "0::/user.slice/user-0.slice/session-3.scope\n", "", "", "", "session-3.scope", "" },
		{ "0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", "", "", "",
		  "init.scope", "" },
		{ "0::/user.slice/user-1000.slice/user@1000.service\n", "", "", "",
		  "user@1000.service", "" },
		/* what only looks like one of them */
		{ "0::/\n", "", "", "", "", "" },
		{ "", "", "", "", "", "" },
		{ "\n\n", "", "", "", "", "" },
		{ "garbage", "", "", "", "", "" },
		{ ":", "", "", "", "", "" },
		{ "::", "", "", "", "", "" },
		{ "0::", "", "", "", "", "" },
		{ "0::-.scope", "", "", "", "", "" },
		{ "0::/.scope\n", "", "", "", "", "" },
		{ "0::/.service\n", "", "", "", "", "" },
		{ "0::/docker/0123456789abcdef\n", "", "", "", "", "" },
		{ "0::/x/" ID "00\n", "", "", "", "", "" },
		{ "0::/lxc\n", "", "", "", "", "" },
		{ "0::/lxc/\n", "", "", "", "", "" },
		{ "0::/machine-.scope\n", "", "", "", "machine-.scope", "" },
		{ "0::/pod" UID "/" ID "\n", ID, "", "", "", "" },
		{ "0::/kubepods/pod" UID "0/" ID "\n", ID, "", "", "", "" },
		{ "0::/kubepods/pod3f0c6a1e-52a4/" ID "\n", ID, "", "", "", "" },
		{ "0::/kubepods/pod/" ID "\n", ID, "", "", "", "" },
	};
	struct cgroup_facts facts;
	char service[CGROUP_UNIT_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *qos;

		cgroup_read(cases[i].text, &facts);
		qos = facts.pod_qos ? facts.pod_qos : "";
		if (!cgroup_unit_service(facts.unit, service, sizeof(service)))
			service[0] = '\0';
		if (strcmp(facts.container_id, cases[i].id) || strcmp(facts.pod_uid, cases[i].pod) ||
		    strcmp(qos, cases[i].qos) || strcmp(facts.unit, cases[i].unit) ||
		    strcmp(service, cases[i].service))
			fail_msg("container `%s', pod `%s' `%s', unit `%s', service `%s' in %s",
				 facts.container_id, facts.pod_uid, qos, facts.unit, service,
				 cases[i].text);
	}
}

static void only_machines_have_names(void **state)
{
	static char unit[8192] = "0::/";
	struct cgroup_facts facts;

	(void)state;
	cgroup_read("0::/lxc.payload.mail\n", &facts);
	assert_string_equal(facts.container_name, "mail");
	cgroup_read("0::/lxc.payload.mail/docker/" ID "\n", &facts);
	assert_string_equal(facts.container_id, ID);
	assert_string_equal(facts.container_name, "");
	/* what is no name takes none away: a container may call cgroups inside as it likes */
	cgroup_read("0::/lxc/mail/lxc//x\n", &facts);
	assert_string_equal(facts.container_name, "mail");
	cgroup_read("0::/lxc/mail/lxc/0123456789012345678901234567890123456789012345678901234567890123456789\n",
		    &facts);
	assert_string_equal(facts.container_name, "mail");
	/* longer than any that systemd or a runtime makes */
	cgroup_read("0::/lxc.payload.0123456789012345678901234567890123456789012345678901234567890123"
		    "456789\n", &facts);
	assert_string_equal(facts.container_id, "");
	memset(unit + 4, 'u', 4096);
	strcat(unit, ".service\n");
	cgroup_read(unit, &facts);
	assert_string_equal(facts.unit, "");
}

static void the_line_that_says_it_is_kept(void **state)
{
	static char longest[1024];
	struct cgroup_facts facts;

	(void)state;
	cgroup_read("12:cpu,cpuacct:/a/longer/path/than/the/other\n0::/docker/" ID "\n", &facts);
	assert_string_equal(facts.line, "0::/docker/" ID);
	cgroup_read("4:memory:/user.slice\n1:name=systemd:/user.slice/user-1.slice\n", &facts);
	assert_string_equal(facts.line, "1:name=systemd:/user.slice/user-1.slice");
	cgroup_read("0::/\n", &facts);
	assert_string_equal(facts.line, "");
	memset(longest, 'x', CGROUP_LINE_BYTES - 1);
	memcpy(longest, "0::/", 4);
	cgroup_read(longest, &facts);
	assert_string_equal(facts.line, longest);
	longest[CGROUP_LINE_BYTES - 1] = 'x';
	cgroup_read(longest, &facts);
	assert_string_equal(facts.line, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files_are_the_ones_the_process_sees, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_root_outlives_its_processes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(open_roots_are_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(another_file_is_never_taken, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_copied_up_file_is_the_one_it_is_mapped_as, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_hangs_is_left_alone, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_slow_is_left_alone_in_the_end, set_up,
						tear_down),
		cmocka_unit_test(what_runtimes_call_cgroups),
		cmocka_unit_test(only_machines_have_names),
		cmocka_unit_test(the_line_that_says_it_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
