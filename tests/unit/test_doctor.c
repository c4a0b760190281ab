// SPDX-License-Identifier: Apache-2.0
/* Every finding of doctor on a tree of real files: the problem shown, its remedy, then the fix. */
#include "fixture.h"

#include <endian.h>

#include "base/utf8.h"
#include "client/kmodload.h"
#include "doctor/doctor.h"
#include "service/status.h"

#define RELEASE "6.1.0-56-amd64"
#define MODULES "lib/modules/" RELEASE "/"
#define DKMS "var/lib/dkms/stacktap/"
#define SECURE_BOOT "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
#define PARANOID "proc/sys/kernel/perf_event_paranoid"
#define KEY(type, description) \
	"0ec3d6ea I------     1 perm 1f030000     0     0 " type " " description "\n"
#define TRUSTED KEY("keyring  ", ".builtin_trusted_keys: 1")
#define NOBODY "CapEff:\t0000000000000000\n"
#define PERFMON "CapEff:\t0000004000000000\n"
#define PERFMON_PTRACE "CapEff:\t0000004000080000\n"
#define ROOT "CapEff:\t000001ffffffffff\n"

static struct control_module module;
static struct doctor_input input;
static struct doctor_report report;

static void remove_file(const char *path)
{
	fixture_run("rm -rf 'root/%s'", path);
}

static void put(const char *path, const char *text)
{
	char name[PATH_MAX];

	fixture_run("mkdir -p \"$(dirname 'root/%s')\"", path);
	snprintf(name, sizeof(name), "root/%s", path);
	fixture_write(name, text);
}

static void make_directory(const char *path)
{
	fixture_run("mkdir -p 'root/%s'", path);
}

/* A module as the kernel's build leaves it, as far as its description goes. */
static void put_module(const char *release, const char *version)
{
	char source[512];

	snprintf(source, sizeof(source),
		 "__attribute__((section(\".modinfo\"), used)) static const char info[] =\n"
		 "\"license=GPL\\0version=%s\\0name=stacktap\\0vermagic=%s SMP\";\n", version,
		 release);
	fixture_build("stacktap.o", "-c", source);
	fixture_run("mkdir -p root/" MODULES "updates/dkms && "
		    "mv stacktap.o root/" MODULES "updates/dkms/stacktap.ko");
	put(MODULES "modules.dep", "kernel/fs/ext4/ext4.ko: kernel/lib/crc16.ko\nextra/stacktap_x.ko:\n"
	    "updates/dkms/stacktap.ko:\nkernel/net/stacktap/other.ko:\n");
}

/* What sign-file puts behind a module, with a signer in the clear. */
static void sign_module(const char *signer)
{
	static const char key[] = "key", signature[] = "signature", magic[] =
		"~Module signature appended~\n";
	struct {
		uint8_t algorithm, hash, type, signer_bytes, key_bytes, pad[3];
		uint32_t signature_bytes;
	} tail = {
		.algorithm = 1, .hash = 4, .type = 1,
		.signer_bytes = (uint8_t)strlen(signer), .key_bytes = sizeof(key) - 1,
		.signature_bytes = htobe32(sizeof(signature) - 1),
	};
	FILE *file = fopen(fixture_path("root/" MODULES "updates/dkms/stacktap.ko"), "ae");

	assert_non_null(file);
	fprintf(file, "%s%s%s", signer, key, signature);
	assert_int_equal(fwrite(&tail, sizeof(tail), 1, file), 1);
	fputs(magic, file);
	assert_int_equal(fclose(file), 0);
}

static void put_secure_boot(char value)
{
	char variable[] = { 6, 0, 0, 0, value };
	FILE *file;

	make_directory("sys/firmware/efi/efivars");
	file = fopen(fixture_path("root/" SECURE_BOOT), "we");
	assert_non_null(file);
	assert_int_equal(fwrite(variable, sizeof(variable), 1, file), 1);
	assert_int_equal(fclose(file), 0);
}

/* A host on which nothing is wrong, the module loaded. */
static int setup(void **state _unused_)
{
	static char root[PATH_MAX];

	fixture_run("rm -rf root");
	snprintf(root, sizeof(root), "%s", fixture_path("root"));
	put("proc/sys/kernel/osrelease", RELEASE "\n");
	put("proc/sys/kernel/kptr_restrict", "0\n");
	put("proc/sys/kernel/nmi_watchdog", "0\n");
	put("proc/sys/kernel/modules_disabled", "0\n");
	put(PARANOID, "3\n");
	put("proc/self/status", "Name:\tstacktap\n" ROOT);
	put("proc/self/uid_map", "         0          0 4294967295\n");
	put("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu ibtx sse2\n");
	put("proc/cmdline", "quiet\n");
	put("proc/meminfo", "MemTotal:        8388608 kB\n");
	put("etc/os-release", "NAME=\"Some\"\nID=some\nID_LIKE=\"ubuntu debian\"\n");
	put(MODULES "build/Makefile", "");
	put_module(RELEASE, "0.1.0");
	put(DKMS "0.1.0/" RELEASE "/x86_64/module/stacktap.ko", "");
	put(DKMS "kernel-" RELEASE "-x86_64", "");
	put("sys/module/stacktap/version", "0.1.0\n");
	put("sys/module/stacktap/parameters/ring_limit_mib", "0\n");
	put("sys/module/module/parameters/sig_enforce", "N\n");
	put("sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
	make_directory("sys/bus/event_source/devices/cpu");
	make_directory("sys/bus/event_source/devices/software");
	put("sys/fs/cgroup/cgroup.controllers", "cpu io memory\n");
	module = (struct control_module){
		.abi_major = STACKTAP_ABI_MAJOR, .abi_minor = STACKTAP_ABI_MINOR,
		.version = "0.1.0", .sessions = 1, .table_limit = 1 << 20,
	};
	input = (struct doctor_input){ .root = root, .module = &module };
	return 0;
}

static int teardown(void **state _unused_)
{
	doctor_report_done(&report);
	report = (struct doctor_report){ 0 };
	return 0;
}

static const struct doctor_finding *examine(const char *name)
{
	doctor_report_done(&report);
	doctor_look(&input, &report);
	for (size_t i = 0; i < DOCTOR_CHECKS; i++)
		if (!strcmp(report.findings[i].name, name))
			return &report.findings[i];
	fail_msg("there is no check %s", name);
	return NULL;
}

/* @remedy: words of it, NULL: there is none. */
static void expect(const char *name, enum doctor_state state, const char *text, const char *remedy)
{
	const struct doctor_finding *finding = examine(name);

	if (finding->state != state || !strstr(finding->text, text) ||
	    (remedy ? !strstr(finding->remedy, remedy) : finding->remedy[0]))
		fail_msg("%s: not \"%s\" but %s: %s -> %s", name, text, doctor_state_name(finding->state),
			 finding->text, finding->remedy);
	/* whatever is wrong has a remedy, and one line is enough for each */
	for (size_t i = 0; i < DOCTOR_CHECKS; i++) {
		finding = &report.findings[i];
		if (finding->state >= DOCTOR_WARNING && !finding->remedy[0])
			fail_msg("%s has no remedy: %s", finding->name, finding->text);
		assert_true(strlen(finding->text) < sizeof(finding->text) - 1);
		assert_true(strlen(finding->remedy) < sizeof(finding->remedy) - 1);
		assert_null(strchr(finding->text, '\n'));
		assert_null(strchr(finding->remedy, '\n'));
	}
}

static void unload(void)
{
	remove_file("sys/module/stacktap");
	input.module = NULL;
	input.module_error = -ENODEV;
}

static void test_healthy(void **state _unused_)
{
	examine("kernel");
	for (size_t i = 0; i < DOCTOR_CHECKS; i++)
		if (report.findings[i].state != DOCTOR_OK)
			fail_msg("%s: %s", report.findings[i].name, report.findings[i].text);
	assert_int_equal(report.problems + report.warnings + report.unknown, 0);
}

/* Not a file of what it asks for is there: it says what it missed, and no more. */
static void test_nothing_to_see(void **state _unused_)
{
	fixture_run("rm -rf root && mkdir root");
	unload();
	expect("kernel", DOCTOR_UNKNOWN, "cannot see", NULL);
	expect("lockdown", DOCTOR_UNKNOWN, "not mounted", "mount -t securityfs");
	expect("signature", DOCTOR_UNKNOWN, "lockdown", NULL);
	expect("cgroup", DOCTOR_UNKNOWN, "not mounted", NULL);
	expect("limits", DOCTOR_UNKNOWN, "needs privilege and the loaded module", NULL);
	expect("privilege", DOCTOR_UNKNOWN, "capabilities", NULL);
	expect("kernel-symbols", DOCTOR_UNKNOWN, "kptr_restrict", NULL);
	expect("pmu", DOCTOR_PROBLEM, "no perf events", "CONFIG_PERF_EVENTS");
	expect("fallback", DOCTOR_UNKNOWN, "needs privilege and the loaded module", NULL);
	assert_int_equal(report.unknown, 8);
}

static void test_kernel(void **state _unused_)
{
	put("proc/sys/kernel/osrelease", "4.19.0-27-amd64\n");
	expect("kernel", DOCTOR_PROBLEM, "4.19.0-27-amd64 is older than", "newer kernel");
	put("proc/sys/kernel/osrelease", "5.9.16\n");
	expect("kernel", DOCTOR_PROBLEM, "older", "newer kernel");
	put("proc/sys/kernel/osrelease", "99.1.0-rc1\n");
	expect("kernel", DOCTOR_WARNING, "newer than", "newer version of stacktap");
	put("proc/sys/kernel/osrelease", "5.10.0\n");
	expect("kernel", DOCTOR_OK, "5.10.0, tested are 5.10 to", NULL);
	put("proc/sys/kernel/osrelease", "6.1.9-1.el9.elrepo.x86_64\n");
	expect("kernel", DOCTOR_OK, "tested are 5.10 to", NULL);
	put("proc/sys/kernel/osrelease", "5.14.0-427.13.1.el9_4.x86_64\n");
	expect("kernel", DOCTOR_OK, "only Debian's kernels are tested", NULL);
	unload();
	expect("kernel", DOCTOR_WARNING, "the module may not compile", "make.log");
	assert_null(strstr(examine("kernel")->text, "tested are 5.10"));
	put("proc/sys/kernel/osrelease", "4.18.0-553.el8_10.x86_64\n");
	expect("kernel", DOCTOR_PROBLEM, "is older than", "newer kernel");
}

static void test_headers(void **state _unused_)
{
	remove_file(MODULES "build");
	expect("headers", DOCTOR_WARNING, "its next version", "apt install linux-headers-" RELEASE);
	unload();
	expect("headers", DOCTOR_WARNING, "its next version", "apt install");
	remove_file(MODULES "updates");
	put(MODULES "modules.dep", "kernel/net/stacktap/other.ko: kernel/a/mystacktap.ko\n");
	expect("headers", DOCTOR_PROBLEM, "cannot be built", "apt install linux-headers-" RELEASE);
	put("etc/os-release", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n");
	expect("headers", DOCTOR_PROBLEM, "cannot be built", "dnf install kernel-devel-" RELEASE);
	put("etc/os-release", "ID=arch\n");
	expect("headers", DOCTOR_PROBLEM, "cannot be built", "/lib/modules/" RELEASE "/build");
	put(MODULES "build/Makefile", "");
	expect("headers", DOCTOR_OK, "there for " RELEASE, NULL);
}

static void test_dkms(void **state _unused_)
{
	const struct doctor_finding *finding;

	remove_file(DKMS);
	expect("dkms", DOCTOR_OK, "does not manage", NULL);
	unload();
	remove_file(MODULES "modules.dep");
	expect("dkms", DOCTOR_PROBLEM, "does not know stacktap", "stacktap-dkms");
	make_directory(DKMS "0.1.0");
	expect("dkms", DOCTOR_PROBLEM, "0.1.0 is added, but not built",
	       "dkms install stacktap/0.1.0 -k " RELEASE);
	/* a log of another kernel's build is not this one's, whatever it names */
	put(DKMS "0.1.0/build/make.log", "DKMS make.log for stacktap-0.1.0 for kernel 6.0.1 (x86_64)\n");
	expect("dkms", DOCTOR_PROBLEM, "is added, but not built", "dkms install");
	put(DKMS "0.1.0/build/make.log",
	    "DKMS make.log for stacktap-0.1.0 for kernel " RELEASE "2 (x86_64)\n");
	expect("dkms", DOCTOR_PROBLEM, "is added, but not built", "dkms install");
	put(DKMS "0.1.0/build/make.log",
	    "DKMS make.log for stacktap-0.1.0 for kernel 6.0.1 (x86_64)\nnot for kernel " RELEASE " (x\n");
	expect("dkms", DOCTOR_PROBLEM, "is added, but not built", "dkms install");
	/* since dkms 3.1.5 */
	put(DKMS "0.1.0/build/make.log",
	    "DKMS (dkms-3.2.2) make.log for stacktap/0.1.0 for kernel " RELEASE " (x86_64)\n");
	expect("dkms", DOCTOR_PROBLEM, "failed", "mend what the log says");
	put(DKMS "0.1.0/build/make.log",
	    "DKMS make.log for stacktap-0.1.0 for kernel " RELEASE " (x86_64)\n"
	    "1\nmain.c:1: error: what\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n");
	expect("dkms", DOCTOR_PROBLEM, "failed", "mend what the log says");
	finding = examine("dkms");
	assert_non_null(finding->log);
	assert_string_equal(finding->log, "main.c:1: error: what\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n");
	/* no compiler's: the last lines */
	put(DKMS "0.1.0/build/make.log",
	    "DKMS make.log for stacktap-0.1.0 for kernel " RELEASE " (x86_64)\n"
	    "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\nNo rule\n");
	finding = examine("dkms");
	assert_string_equal(finding->log, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\nNo rule\n");
	remove_file(MODULES "build");
	expect("dkms", DOCTOR_PROBLEM, "failed", "install the headers");
	put(DKMS "0.2.0/" RELEASE "/x86_64/module/stacktap.ko", "");
	expect("dkms", DOCTOR_PROBLEM, "0.2.0 is built", "dkms install stacktap/0.2.0 -k " RELEASE);
	/* installed for another kernel only */
	put(DKMS "kernel-6.1.0-5-amd64-x86_64", "");
	expect("dkms", DOCTOR_PROBLEM, "0.2.0 is built", "dkms install");
	put(DKMS "kernel-" RELEASE "-x86_64", "");
	expect("dkms", DOCTOR_OK, "installed for " RELEASE, NULL);
	assert_null(examine("dkms")->log);
	remove_file(DKMS);
	put("var/lib/dkms/stacktap", "no directory");
	expect("dkms", DOCTOR_UNKNOWN, "/var/lib/dkms/stacktap", NULL);
}

static void test_module_that_is_not_loaded(void **state _unused_)
{
	unload();
	expect("module", DOCTOR_WARNING, "updates/dkms/stacktap.ko, version 0.1.0", "modprobe stacktap");
	assert_int_equal(report.problems, 0);
	put("etc/modprobe.d/local.conf", "blacklist stacktap\n");
	expect("module", DOCTOR_PROBLEM, "blacklisted", "/etc/modprobe.d");
	put("etc/modprobe.d/local.conf", "blacklist stacktapx\n");
	expect("module", DOCTOR_WARNING, "is installed", "modprobe stacktap");
	put("proc/sys/kernel/modules_disabled", "1\n");
	expect("module", DOCTOR_PROBLEM, "modules_disabled", "reboot");
	put("proc/sys/kernel/modules_disabled", "0\n");
	put_module("6.1.0-55-amd64", "0.1.0");
	expect("module", DOCTOR_PROBLEM, "built for kernel 6.1.0-55-amd64", "dkms autoinstall");
	put(MODULES "updates/dkms/stacktap.ko", "no ELF file");
	expect("module", DOCTOR_UNKNOWN, "updates/dkms/stacktap.ko", NULL);
	put(MODULES "modules.dep", "");
	expect("module", DOCTOR_PROBLEM, "none for this kernel", "`dkms autoinstall'");
	remove_file(MODULES "build");
	expect("module", DOCTOR_PROBLEM, "none for this kernel", "first the headers");
	put(MODULES "build/Makefile", "");
	put_module(RELEASE, "0.1.0");
	expect("module", DOCTOR_WARNING, "is installed", "modprobe stacktap");
}

static void test_module_that_is_loaded(void **state _unused_)
{
	char versions[64];

	module.abi_major++;
	module.abi_minor = 7;
	snprintf(versions, sizeof(versions), "speaks ABI %u.7, this program speaks %u.%u",
		 STACKTAP_ABI_MAJOR + 1, STACKTAP_ABI_MAJOR, STACKTAP_ABI_MINOR);
	expect("module", DOCTOR_PROBLEM, versions, "from one version, then " KMODLOAD_RELOAD);
	module.abi_major--;
	put("sys/module/stacktap/version", "0.0.9\n");
	expect("module", DOCTOR_WARNING, "version 0.0.9, but the one on disk is 0.1.0",
	       KMODLOAD_RELOAD);
	put("sys/module/stacktap/version", "0.1.0\n");
	input.module = NULL;
	input.module_error = -ENODEV;
	expect("module", DOCTOR_PROBLEM, "network namespace", "host itself");
	input.module_error = -EPERM;
	expect("module", DOCTOR_UNKNOWN, "version 0.1.0", "sudo");
	input.module_error = -EIO;
	expect("module", DOCTOR_PROBLEM, "does not answer", KMODLOAD_RELOAD);
	input.module = &module;
	expect("module", DOCTOR_OK, "loaded, version 0.1.0, ABI 1.7", NULL);
}

static void test_limits(void **state _unused_)
{
	module.sessions = STACKTAP_MAX_SESSIONS;
	expect("limits", DOCTOR_PROBLEM, "all 64 sessions", "stacktap status");
	module.sessions = 2;
	module.table_bytes = module.list_bytes = module.table_limit / 2 - 1024;
	expect("limits", DOCTOR_WARNING, "99 % of the memory for unwind tables", "table_limit_mib");
	module.table_bytes = 0;
	/* an eighth of 8 GiB */
	input.ring_bytes = (1ULL << 30) / 100 * 95;
	expect("limits", DOCTOR_WARNING, "94 % of the memory for rings", "ring_limit_mib");
	put("sys/module/stacktap/parameters/ring_limit_mib", "4096\n");
	expect("limits", DOCTOR_OK, "2 of 64 sessions, 23 % of the memory for rings, 49 %", NULL);
	module.has_ceiling = true;
	module.ceiling_permille = 15;
	expect("limits", DOCTOR_OK, "at most 1.5 % of each CPU", NULL);
	module.ceiling_permille = 0;
	expect("limits", DOCTOR_WARNING, "no ceiling", "ceiling_permille");
}

static void test_secure_boot(void **state _unused_)
{
	expect("secure-boot", DOCTOR_OK, "no EFI", NULL);
	put_secure_boot(1);
	expect("secure-boot", DOCTOR_OK, "on;", NULL);
	put_secure_boot(0);
	expect("secure-boot", DOCTOR_OK, "off", NULL);
	put(SECURE_BOOT, "abc");
	expect("secure-boot", DOCTOR_UNKNOWN, "SecureBoot", NULL);
	remove_file(SECURE_BOOT);
	expect("secure-boot", DOCTOR_UNKNOWN, "mokutil --sb-state", NULL);
}

static void test_signature(void **state _unused_)
{
	put("sys/module/module/parameters/sig_enforce", "Y\n");
	expect("signature", DOCTOR_OK, "was accepted", NULL);
	unload();
	expect("signature", DOCTOR_PROBLEM, "sig_enforce) requires one, and the module has none",
	       "dkms build --force stacktap/0.1.0 -k " RELEASE "; dkms install --force stacktap/0.1.0 -k "
	       RELEASE "; then doctor names the key");
	assert_int_equal(report.problems, 1);
	put("sys/module/module/parameters/sig_enforce", "N\n");
	expect("signature", DOCTOR_OK, "not required", NULL);
	put("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	expect("signature", DOCTOR_PROBLEM, "lockdown requires one", "dkms build --force");
	sign_module("A Tester");
	expect("signature", DOCTOR_UNKNOWN, "`A Tester', and only root can see", "sudo stacktap doctor");
	/* of one who is not root */
	put("proc/keys", KEY("keyring  ", "_ses: 1"));
	expect("signature", DOCTOR_UNKNOWN, "only root can see", "sudo stacktap doctor");
	assert_int_equal(report.problems, 0);
	/* not the same name, not the same type */
	put("proc/keys", TRUSTED KEY("asymmetri", "Not A Tester: 1f2e: X509.rsa 1f2e []")
	    KEY("asymmetri", "A Tester II: 1f2e: X509.rsa 1f2e []") KEY("user     ", "A Tester: 4"));
	expect("signature", DOCTOR_PROBLEM, "`A Tester', whose key the kernel does not have",
	       "mokutil --import CERTIFICATE, reboot");
	assert_int_equal(report.problems, 1);
	put("var/lib/dkms/mok.pub", "0\x82\x12\x34\x56\x78\x9a\xbc\xde\xf0\xff");
	expect("signature", DOCTOR_PROBLEM, "does not have", "mokutil --import /var/lib/dkms/mok.pub");
	/* the name of an older key, for they all have that of dkms */
	put("proc/keys", TRUSTED KEY("asymmetri", "A Tester: 123456789abcdef1: X509.rsa 9abcdef1 []"));
	expect("signature", DOCTOR_WARNING, "a key of that name, maybe an older one",
	       "mokutil --test-key /var/lib/dkms/mok.pub; if");
	put("proc/keys", TRUSTED KEY("asymmetri", "A Tester: 123456789abcdef0: X509.rsa 9abcdef0 []"));
	expect("signature", DOCTOR_OK, "`A Tester', whose key the kernel has", NULL);
	put("proc/keys",
	    TRUSTED KEY("asymmetri", "Testers: A Tester: 123456789abcdef0: X509.rsa 9abcdef0 []"));
	expect("signature", DOCTOR_OK, "`A Tester'", NULL);
	put("var/lib/shim-signed/mok/MOK.der", "another");
	expect("signature", DOCTOR_WARNING, "maybe an older one",
	       "mokutil --test-key /var/lib/shim-signed/mok/MOK.der");
	put_module(RELEASE, "0.1.0");
	sign_module("");
	expect("signature", DOCTOR_WARNING, "`unknown', whose key the kernel does not have", "mokutil");
	put(MODULES "modules.dep", "");
	put_secure_boot(1);
	expect("signature", DOCTOR_WARNING, "will have to be signed", "docs/secure-boot.md");
	remove_file("sys/kernel/security/lockdown");
	expect("signature", DOCTOR_UNKNOWN, "lockdown", NULL);
	put("sys/kernel/security/lsm", "capability,apparmor");
	remove_file("sys/module/module/parameters/sig_enforce");
	expect("signature", DOCTOR_OK, "not required", NULL);
}

static void test_lockdown(void **state _unused_)
{
	put("sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	expect("lockdown", DOCTOR_WARNING, "no unwind tables and no stack slices", "lockdown=integrity");
	assert_int_equal(report.problems, 0);
	put("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	expect("lockdown", DOCTOR_OK, "integrity", NULL);
	remove_file("sys/kernel/security/lockdown");
	expect("lockdown", DOCTOR_UNKNOWN, "not mounted", "mount -t securityfs");
	put("sys/kernel/security/lsm", "capability,apparmor");
	expect("lockdown", DOCTOR_OK, "this kernel has none", NULL);
}

static void test_pmu(void **state _unused_)
{
	remove_file("sys/bus/event_source/devices/cpu");
	make_directory("sys/bus/event_source/devices/cpufreq_of_something_else");
	expect("pmu", DOCTOR_WARNING, "cpu-clock", "firmware");
	expect("machine", DOCTOR_OK, "no hypervisor", NULL);
	put("proc/cpuinfo", "flags\t\t: fpu hypervisor sse2\n");
	expect("pmu", DOCTOR_WARNING, "cpu-clock", "give the virtual machine a PMU");
	expect("machine", DOCTOR_OK, "without a virtual PMU", NULL);
	put("sys/class/dmi/id/sys_vendor", "QEMU\n");
	expect("machine", DOCTOR_OK, "virtual (QEMU), without", NULL);
	make_directory("sys/bus/event_source/devices/armv8_pmuv3_0");
	expect("pmu", DOCTOR_OK, "armv8_pmuv3_0", NULL);
	expect("machine", DOCTOR_OK, "with a virtual PMU", NULL);
	remove_file("sys/bus/event_source/devices/armv8_pmuv3_0");
	make_directory("sys/bus/event_source/devices/apple_icestorm_pmu");
	expect("pmu", DOCTOR_OK, "apple_icestorm_pmu", NULL);
	remove_file("sys/bus");
	expect("pmu", DOCTOR_PROBLEM, "no perf events", "CONFIG_PERF_EVENTS");
}

static void test_fallback(void **state _unused_)
{
	input.fallback = (struct doctor_fallback){
		.session_id = 7, .owner = "stacktapd", .source = "cycles", .cpus = 2, .error = EBUSY,
	};
	expect("fallback", DOCTOR_OK, "no session uses the fallback", NULL);
	input.fallbacks = 1;
	expect("fallback", DOCTOR_WARNING, "session 7 (stacktapd): using cpu-clock for cycles on 2 CPUs (fallback): "
	       "Device or resource busy (EBUSY)", "at once by stacktap stop and start 7");
	assert_int_equal(report.problems, 0);
	input.fallbacks = 3;
	input.fallback.cpus = 1;
	input.fallback.error = EOPNOTSUPP;
	expect("fallback", DOCTOR_WARNING, "on 1 CPU (fallback): ", "an event that these CPUs can sample");
	expect("fallback", DOCTOR_WARNING, "; there are 3 such sources", "perf list");
	input.fallback.error = ENOENT;
	remove_file("sys/bus/event_source/devices/cpu");
	expect("fallback", DOCTOR_WARNING, "(ENOENT)", "see the line pmu");
}

static void test_nmi_watchdog(void **state _unused_)
{
	put("proc/sys/kernel/nmi_watchdog", "1\n");
	expect("nmi-watchdog", DOCTOR_WARNING, "one counter", "sysctl kernel.nmi_watchdog=0");
	assert_int_equal(report.problems, 0);
	put("proc/sys/kernel/nmi_watchdog", "0\n");
	expect("nmi-watchdog", DOCTOR_OK, "holds no counter", NULL);
	remove_file("proc/sys/kernel/nmi_watchdog");
	expect("nmi-watchdog", DOCTOR_OK, "has none", NULL);
	put("proc/sys/kernel/nmi_watchdog", "1\n");
	remove_file("sys/bus/event_source/devices/cpu");
	expect("nmi-watchdog", DOCTOR_OK, "holds no counter", NULL);
}

static void test_ibt(void **state _unused_)
{
	expect("ibt", DOCTOR_OK, "does not check", NULL);
	put("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu ibt\n");
	expect("ibt", DOCTOR_OK, "CPU checks branch targets", NULL);
	put("proc/cmdline", "quiet ibt=off\n");
	expect("ibt", DOCTOR_OK, "ibt=off", NULL);
	put("proc/cmdline", "quiet\n");
	put("proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd bti\n");
	expect("ibt", DOCTOR_OK, "CPU checks branch targets", NULL);
}

static void test_privilege(void **state _unused_)
{
	put("proc/self/status", NOBODY);
	expect("privilege", DOCTOR_PROBLEM, "neither", "sudo");
	put("proc/self/status", PERFMON);
	expect("privilege", DOCTOR_PROBLEM, "is 3, which requires CAP_SYS_ADMIN",
	       "kernel.perf_event_paranoid=2");
	put(PARANOID, "2\n");
	expect("privilege", DOCTOR_WARNING, "no CAP_SYS_PTRACE: no unwind tables", "sudo");
	put("proc/self/status", PERFMON_PTRACE);
	expect("privilege", DOCTOR_OK, "is below 3 (2)", NULL);
	put("proc/self/status", ROOT);
	put("proc/self/uid_map", "0 1000 1\n");
	expect("privilege", DOCTOR_PROBLEM, "user namespace", "host itself");
	put("proc/self/uid_map", "0 0 4294967295\n");
	expect("privilege", DOCTOR_OK, "CAP_SYS_ADMIN, enough to sample, whatever "
	       "kernel.perf_event_paranoid says (2)", NULL);
	remove_file(PARANOID);
	expect("privilege", DOCTOR_PROBLEM, "CONFIG_PERF_EVENTS", "boot a kernel");
}

static void test_kernel_symbols(void **state _unused_)
{
	put("proc/sys/kernel/kptr_restrict", "2\n");
	expect("kernel-symbols", DOCTOR_WARNING, "kptr_restrict is 2", "kernel.kptr_restrict=1");
	put("proc/sys/kernel/kptr_restrict", "1\n");
	expect("kernel-symbols", DOCTOR_OK, "readable", NULL);
	put("proc/self/status", NOBODY);
	expect("kernel-symbols", DOCTOR_WARNING, "CAP_SYSLOG", "sudo");
	put("proc/sys/kernel/kptr_restrict", "0\n");
	expect("kernel-symbols", DOCTOR_WARNING, "CAP_SYSLOG", "sudo");
	put(PARANOID, "1\n");
	expect("kernel-symbols", DOCTOR_OK, "readable", NULL);
	put("proc/sys/kernel/kptr_restrict", "many\n");
	expect("kernel-symbols", DOCTOR_UNKNOWN, "kptr_restrict", NULL);
}

static void test_cgroup(void **state _unused_)
{
	remove_file("sys/fs/cgroup");
	make_directory("sys/fs/cgroup/memory");
	expect("cgroup", DOCTOR_WARNING, "version 1", "unified_cgroup_hierarchy=1");
	put("sys/fs/cgroup/unified/cgroup.controllers", "");
	expect("cgroup", DOCTOR_OK, "version 1 with", NULL);
	put("sys/fs/cgroup/cgroup.controllers", "");
	expect("cgroup", DOCTOR_OK, "version 2", NULL);
}

/* In the words of a daemon that runs. */
static void test_unwind_tables(void **state _unused_)
{
	struct pipeline_stats pipeline = { .has_tables = true };
	struct tables_stats *tables = &pipeline.loader.tables;
	struct snapshot snapshot = { .pipeline = &pipeline, .exporter = &(struct exporter_stats){ .destination_count = 0 } };
	static const char *const reasons[] = { "the table is too large",
					       "the module has no room for its 700000 bytes" };
	char *text;
	size_t size;

	expect("unwind-tables", DOCTOR_OK, "no daemon", NULL);
	for (size_t i = 0; i < 3; i++) {
		FILE *stream = open_memstream(&text, &size);

		tables->refused_files = i;
		if (i)
			sprintf(tables->last_refused, "/opt/%0150d: %s", 0, reasons[i - 1]);
		status_print_daemon_text(stream, &snapshot);
		fclose(stream);
		input.status = text;
		if (i)
			expect("unwind-tables", DOCTOR_WARNING, tables->last_refused,
			       i == 1 ? "unwind-info" : "table_limit_mib");
		else
			expect("unwind-tables", DOCTOR_OK, "too large", NULL);
		free(text);
	}
	input.status = NULL;
	input.status_error = -EACCES;
	expect("unwind-tables", DOCTOR_UNKNOWN, "status", "sudo");
}

/* In the words of a daemon that runs, and of its exporter. */
static void test_delivery(void **state _unused_)
{
	static const struct {
		const char *error, *remedy;
	} errors[] = {
		{ "HTTP 401", "headers_file" },
		{ "HTTP 404: page not found", "endpoint" },
		{ "HTTP 503: no room", "receiver's log" },
		{ "HTTP 200 with a page", "a proxy" },
		{ "gRPC 0 OK with a message", "a proxy" },
		{ "gRPC 14 UNAVAILABLE", "receiver's log" },
		{ "gRPC 16 UNAUTHENTICATED: no token", "headers_file" },
		{ "The local store: No space left on device", "[store]" },
		{ "The local store: No space left on device; HTTP 401: no", "let stacktapd write it; set the credentials" },
		{ "Failed to connect to 127.0.0.1 port 9", "start the receiver" },
		{ "Could not resolve host: nowhere.example", "resolver" },
		{ "SSL certificate problem: self-signed certificate", "troubleshooting" },
	};
	struct exporter_stats exporter = { .destination_count = 0 };
	struct pipeline_stats pipeline = { .has_tables = true };
	struct snapshot snapshot = { .pipeline = &pipeline, .exporter = &exporter };
	char *text;
	size_t size;

	expect("delivery", DOCTOR_OK, "no daemon", NULL);
	for (size_t i = 0; i <= ARRAY_SIZE(errors); i++) {
		FILE *stream = open_memstream(&text, &size);

		if (i)
			sprintf(exporter.sum.last_error, "%s", errors[i - 1].error);
		status_print_daemon_text(stream, &snapshot);
		fclose(stream);
		input.status = text;
		if (i)
			expect("delivery", DOCTOR_WARNING, errors[i - 1].error, errors[i - 1].remedy);
		else
			expect("delivery", DOCTOR_OK, "without errors", NULL);
		free(text);
	}
	input.status = NULL;
	input.status_error = -EACCES;
	expect("delivery", DOCTOR_UNKNOWN, "status", "sudo");
}

/* It was cut off, at the end of a character, and says so. */
static void assert_whole(const char *text)
{
	assert_non_null(strstr(text, "\u2026;"));
	for (; *text; text += utf8_length(text))
		assert_true(utf8_length(text) > 0);
}

/* Of several each that fails is named, and what helps against each of their errors is there once. */
static void test_delivery_to_several(void **state _unused_)
{
	static const struct destination_options destinations[] = {
		{ .name = "near" }, { .name = "idle" }, { .name = "far" }, { .name = "third" },
	};
	struct exporter_stats exporter = { .destination_count = ARRAY_SIZE(destinations) };
	struct pipeline_stats pipeline = { .has_tables = true };
	struct snapshot snapshot = { .pipeline = &pipeline, .exporter = &exporter, .destinations = destinations,
				     .destination_count = ARRAY_SIZE(destinations) };
	char many[200] = "", *text;
	FILE *stream;
	size_t size;

	/* of two bytes each, so that some end is within one */
	while (strlen(many) < sizeof(many) - 3)
		strcat(many, "\u00e9");
	sprintf(snapshot.push.last_error, "%s", "no receiver of metrics");
	snapshot.push.endpoint = "http://metrics";
	for (int i = 0; i < 4; i++) {
		stream = open_memstream(&text, &size);
		if (i)
			sprintf(exporter.destinations[0].last_error, "HTTP 503: 000%s", many);
		if (i)
			sprintf(exporter.destinations[2].last_error, "HTTP 401");
		if (i == 2)
			sprintf(exporter.destinations[3].last_error, "HTTP 403: 000%s", many);
		sprintf(exporter.sum.last_error, "%s%s", i == 3 ? "The local store: Read-only file system; " : "",
			i ? "HTTP 401" : "");
		status_print_daemon_text(stream, &snapshot);
		fclose(stream);
		input.status = text;
		if (!i) {
			expect("delivery", DOCTOR_OK, "without errors", NULL);
		} else {
			expect("delivery", DOCTOR_WARNING, " to near: HTTP 503: 000", "receiver's log: it answered with this error; set");
			expect("delivery", DOCTOR_WARNING, "; far: HTTP 401", "headers_file of [export]");
			assert_null(strstr(examine("delivery")->text, "idle"));
			assert_null(strstr(examine("delivery")->text, "metrics"));
		}
		if (i)
			assert_whole(examine("delivery")->text);
		if (i >= 2)
			expect("delivery", DOCTOR_WARNING, "; third: HTTP 403: 000", "headers_file of [export]");
		/* no receiver's error takes its place, nor its remedy */
		if (i == 3)
			expect("delivery", DOCTOR_WARNING, "; The local store: Read-only file system", "let stacktapd write it");
		free(text);
	}
	input.status = NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_healthy),
		TEST(test_nothing_to_see),
		TEST(test_kernel),
		TEST(test_headers),
		TEST(test_dkms),
		TEST(test_module_that_is_not_loaded),
		TEST(test_module_that_is_loaded),
		TEST(test_limits),
		TEST(test_secure_boot),
		TEST(test_signature),
		TEST(test_lockdown),
		TEST(test_pmu),
		TEST(test_fallback),
		TEST(test_nmi_watchdog),
		TEST(test_ibt),
		TEST(test_privilege),
		TEST(test_kernel_symbols),
		TEST(test_cgroup),
		TEST(test_unwind_tables),
		TEST(test_delivery),
		TEST(test_delivery_to_several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
