// SPDX-License-Identifier: Apache-2.0
/* Secure Boot, signatures and lockdown: what the kernel asks of modules. */
#include <ctype.h>
#include <string.h>

#include "client/kmodload.h"
#include "doctor/check.h"
#include "doctor/look.h"

static const char lockdown_file[] = "sys/kernel/security/lockdown";

void trust_look(struct doctor *doctor)
{
	_cleanup_free_ char *text = NULL;

	if (look_text(doctor->root, lockdown_file, &text) < 0)
		doctor->lockdown = LOCKDOWN_UNKNOWN;
	else if (strstr(text, "[confidentiality]"))
		doctor->lockdown = LOCKDOWN_CONFIDENTIALITY;
	else if (strstr(text, "[integrity]"))
		doctor->lockdown = LOCKDOWN_INTEGRITY;
	else
		doctor->lockdown = LOCKDOWN_NONE;
}

/* Any kernel with security modules has this file beside lockdown's. */
static bool has_securityfs(const struct doctor *doctor)
{
	return look_for(doctor->root, "sys/kernel/security/lsm") == 0;
}

void check_secure_boot(struct doctor *doctor)
{
	/* four bytes of attributes, then the variable */
	enum { VALUE = 4 };
	uint8_t variable[VALUE + 1];
	ssize_t got;

	if (look_for(doctor->root, "sys/firmware/efi") == -ENOENT) {
		say(doctor, DOCTOR_OK, "off: no EFI firmware");
		return;
	}
	got = look_bytes(doctor->root, "sys/firmware/efi/efivars/"
			 "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", variable,
			 sizeof(variable));
	if (got == (ssize_t)sizeof(variable))
		say(doctor, DOCTOR_OK, "%s", variable[VALUE] ?
		    "on; `signature' says what it requires of the module" : "off");
	else if (got == -ENOENT && look_for(doctor->root, "sys/firmware/efi/efivars") == 0)
		say(doctor, DOCTOR_UNKNOWN, "the firmware's variables are not available; try "
		    "`mokutil --sb-state' as root");
	else
		say_unknown(doctor, "the firmware's variable SecureBoot",
			   got < 0 ? (int)got : -EINVAL);
}

/* libkmod has a word for what it cannot read */
static bool is_signer_known(const char *signer)
{
	return *signer && strcmp(signer, "unknown") != 0;
}

enum known {
	KNOWN_NOT,
	KNOWN_BY_NAME,		/* which every key that dkms has made shares */
	KNOWN,
};

/* What of a certificate is in the kernel's name of its key: an identifier of 20 bytes, mostly. */
static bool has_identifier(const unsigned char *certificate, size_t size, const char *hex)
{
	unsigned char bytes[32];
	size_t count = 0;

	while (count < sizeof(bytes) && isxdigit((unsigned char)hex[0]) &&
	       isxdigit((unsigned char)hex[1]) && sscanf(hex, "%2hhx", &bytes[count]) == 1) {
		count++;
		hex += 2;
	}
	return count >= 8 && memmem(certificate, size, bytes, count);
}

/* @line of /proc/keys: "... asymmetri [ORGANISATION: ]NAME: ID: X509.rsa ID []"; its ID or NULL. */
static const char *find_name(const char *line, const char *signer)
{
	static const char type[] = " asymmetri ";	/* it is cut there */
	const char *key = strstr(line, type), *found;
	char name[192];
	size_t length;

	if (!key || !is_signer_known(signer))
		return NULL;
	key += strlen(type);
	length = (size_t)snprintf(name, sizeof(name), ": %s: ", signer);
	found = strstr(key, name);
	if (found)
		return found + length;
	return !strncmp(key, name + 2, length - 2) ? key + length - 2 : NULL;
}

/* Has the kernel the signer's key? -EACCES: it shows its keyrings to root alone. enum known. */
static int find_signer(const struct doctor *doctor, const char *certificate)
{
	_cleanup_free_ char *keys = NULL;
	unsigned char bytes[8192];
	enum known known = KNOWN_NOT;
	ssize_t size = 0;
	char *saved;
	int ret;

	ret = look_text(doctor->root, "proc/keys", &keys);
	if (ret < 0)
		return ret;
	if (!strstr(keys, " .builtin_trusted_keys"))
		return -EACCES;
	if (certificate)
		size = look_bytes(doctor->root, certificate + 1, bytes, sizeof(bytes));
	for (char *line = strtok_r(keys, "\n", &saved); line; line = strtok_r(NULL, "\n", &saved)) {
		const char *id = find_name(line, doctor->signer);

		if (id && size > 0 && has_identifier(bytes, (size_t)size, id))
			return KNOWN;
		if (id)
			known = KNOWN_BY_NAME;
	}
	return (int)known;
}

static void check_signer(struct doctor *doctor, const char *who)
{
	const char *signer = is_signer_known(doctor->signer) ? doctor->signer : "unknown";
	const char *certificate = kmodload_certificate(doctor->root);
	int ret = find_signer(doctor, certificate);
	enum doctor_state state = is_signer_known(doctor->signer) ? DOCTOR_PROBLEM : DOCTOR_WARNING;

	if (ret < 0) {
		say(doctor, DOCTOR_UNKNOWN, "%s requires one; the module is signed by `%s', and "
		    "only root can see whether the kernel has that key", who, signer);
		remedy(doctor, "sudo stacktap doctor");
	} else if (ret == KNOWN) {
		say(doctor, DOCTOR_OK, "%s requires one; the module is signed by `%s', whose key "
		    "the kernel has", who, signer);
	} else if (ret == KNOWN_BY_NAME) {
		say(doctor, DOCTOR_WARNING, "%s requires one; the module is signed by `%s', and "
		    "the kernel has a key of that name, maybe an older one", who, signer);
		if (certificate)
			remedy(doctor, "mokutil --test-key %s; if it is not enrolled: mokutil "
			       "--import %s, reboot and enrol it", certificate, certificate);
		else
			remedy(doctor, "mokutil --test-key CERTIFICATE; see docs/secure-boot.md");
	} else {
		say(doctor, state, "%s requires one; the module is signed by `%s', whose key the "
		    "kernel does not have", who, signer);
		remedy(doctor, "mokutil --import %s, reboot and enrol it; see docs/secure-boot.md",
		       certificate ?: "CERTIFICATE");
	}
}

static void check_enforced(struct doctor *doctor, const char *who)
{
	if (doctor->is_loaded) {
		say(doctor, DOCTOR_OK, "%s requires one, and the module was accepted", who);
	} else if (!doctor->file[0]) {
		say(doctor, DOCTOR_WARNING, "%s requires one: the module will have to be signed",
		    who);
		remedy(doctor, "once it is built, doctor names the key that is to be enrolled; see "
		       "docs/secure-boot.md");
	} else if (doctor->file_error) {
		say_unknown(doctor, "whether the module is signed", doctor->file_error);
	} else if (doctor->is_signed) {
		check_signer(doctor, who);
	} else {
		say(doctor, DOCTOR_PROBLEM, "%s requires one, and the module has none", who);
		/* dkms from 3 on makes its key while it builds, so that comes first */
		remedy(doctor, "dkms build --force stacktap/%s -k %s; dkms install --force "
		       "stacktap/%s -k %s; then doctor names the key that is to be enrolled; dkms "
		       "before 3 does not sign: docs/secure-boot.md",
		       doctor->file_version, doctor->release, doctor->file_version, doctor->release);
	}
}

void check_signature(struct doctor *doctor)
{
	_cleanup_free_ char *text = NULL;
	int ret;

	ret = look_text(doctor->root, "sys/module/module/parameters/sig_enforce", &text);
	if (!ret && (text[0] == 'Y' || text[0] == '1'))
		check_enforced(doctor, "the kernel (module.sig_enforce)");
	else if (doctor->lockdown == LOCKDOWN_INTEGRITY ||
		 doctor->lockdown == LOCKDOWN_CONFIDENTIALITY)
		check_enforced(doctor, "lockdown");
	else if (ret < 0 && ret != -ENOENT)
		say_unknown(doctor, "module.sig_enforce", ret);
	else if (doctor->lockdown == LOCKDOWN_UNKNOWN && !has_securityfs(doctor))
		say(doctor, DOCTOR_UNKNOWN, "module.sig_enforce requires none; whether lockdown "
		    "does is unknown");
	else
		say(doctor, DOCTOR_OK, "not required");
}

void check_lockdown(struct doctor *doctor)
{
	switch (doctor->lockdown) {
	case LOCKDOWN_UNKNOWN:
		if (has_securityfs(doctor)) {
			say(doctor, DOCTOR_OK, "this kernel has none");
			break;
		}
		say(doctor, DOCTOR_UNKNOWN, "unknown: /sys/kernel/security is not mounted");
		remedy(doctor, "mount -t securityfs securityfs /sys/kernel/security");
		break;
	case LOCKDOWN_NONE:
		say(doctor, DOCTOR_OK, "none");
		break;
	case LOCKDOWN_INTEGRITY:
		say(doctor, DOCTOR_OK, "integrity: does not restrict a signed module");
		break;
	case LOCKDOWN_CONFIDENTIALITY:
		say(doctor, DOCTOR_WARNING, "confidentiality: no unwind tables and no stack slices, so "
		    "that stacks are walked by frame pointers");
		remedy(doctor, "boot with lockdown=integrity, if that is enough for you");
		break;
	}
}
