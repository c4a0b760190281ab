// SPDX-License-Identifier: Apache-2.0
/* Why the module cannot be loaded, in a sentence whose remedy fits the host. */
#include "fixture.h"

#include "client/kmodload.h"

#define LOCKED "sysctl kernel.modules_disabled"

static void put(const char *path, const char *text)
{
	char name[PATH_MAX];

	fixture_run("mkdir -p \"$(dirname 'root/%s')\"", path);
	snprintf(name, sizeof(name), "root/%s", path);
	fixture_write(name, text);
}

static int setup(void **state _unused_)
{
	fixture_run("rm -rf root && mkdir root");
	return 0;
}

/* The sentence for @error; it is whole. */
static const char *explain(int error)
{
	static char sentence[512];
	char whole[2048];

	kmodload_explain(fixture_path("root"), error, sentence, sizeof(sentence));
	kmodload_explain(fixture_path("root"), error, whole, sizeof(whole));
	assert_string_equal(sentence, whole);
	assert_null(strchr(sentence, '\n'));
	return sentence;
}

static void says(int error, const char *words)
{
	if (!strstr(explain(error), words))
		fail_msg("no \"%s\" in: %s", words, explain(error));
}

static void test_signature(void **state _unused_)
{
	says(-EKEYREJECTED, "no key to enrol yet");
	put("var/lib/dkms/mok.pub", "");
	says(-EKEYREJECTED, "mokutil --import /var/lib/dkms/mok.pub, reboot");
	says(-ENOKEY, "mokutil --import /var/lib/dkms/mok.pub, reboot");
	put("var/lib/shim-signed/mok/MOK.der", "");
	says(-EKEYREJECTED, "mokutil --import /var/lib/shim-signed/mok/MOK.der, reboot");
}

static void test_permission(void **state _unused_)
{
	says(-EPERM, LOCKED);
	assert_null(strstr(explain(-EPERM), "lockdown"));
	put("sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
	says(-EPERM, LOCKED);
	assert_null(strstr(explain(-EPERM), "lockdown"));
	/* Debian 11 under Secure Boot: module.sig_enforce is off, and an unsigned module is EPERM */
	put("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	says(-EPERM, "lockdown (Secure Boot)");
	says(-EPERM, "no key to enrol yet");
	put("var/lib/dkms/mok.pub", "");
	says(-EPERM, "mokutil --import /var/lib/dkms/mok.pub, reboot");
	says(-EPERM, "CAP_SYS_MODULE");
	says(-EPERM, LOCKED);
	put("var/lib/shim-signed/mok/MOK.der", "");
	says(-EPERM, "mokutil --import /var/lib/shim-signed/mok/MOK.der, reboot");
}

static void test_others(void **state _unused_)
{
	says(-ENOENT, "`dkms autoinstall'");
	says(-ENOEXEC, "another kernel");
	says(-EIO, "dmesg");
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_signature),
		TEST(test_permission),
		TEST(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
