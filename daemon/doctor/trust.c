// SPDX-License-Identifier: Apache-2.0
/* Secure Boot, signatures and lockdown: what the kernel asks of modules. */
#include <string.h>

#include "doctor/check.h"
#include "doctor/look.h"

static const char lockdown_file[] = "sys/kernel/security/lockdown";
static const char enrol[] = "mokutil --import /var/lib/dkms/mok.pub, reboot and enrol it, then "
			    "`dkms build --force' and `dkms install --force'; see "
			    "docs/secure-boot.md";

void trust_look(struct doctor *doctor)
{
	_cleanup_free_ char *text = NULL;

	if (look_text(doctor->root, lockdown_file, &text) < 0)
		doctor->lockdown = LOCKDOWN_UNSEEN;
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
		say(doctor, DOCTOR_OK, "no EFI firmware, so none");
		return;
	}
	got = look_bytes(doctor->root, "sys/firmware/efi/efivars/"
			 "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", variable,
			 sizeof(variable));
	if (got == (ssize_t)sizeof(variable))
		say(doctor, DOCTOR_OK, "%s", variable[VALUE] ?
		    "on; what that asks of the module, `signature' tells" : "off");
	else if (got == -ENOENT && look_for(doctor->root, "sys/firmware/efi/efivars") == 0)
		say(doctor, DOCTOR_UNSEEN, "the firmware's variables are not there; `mokutil "
		    "--sb-state' as root may know");
	else
		say_unseen(doctor, "the firmware's variable SecureBoot",
			   got < 0 ? (int)got : -EINVAL);
}

static void check_enforced(struct doctor *doctor, const char *who)
{
	if (doctor->is_loaded) {
		say(doctor, DOCTOR_OK, "%s asks for one, and the module was accepted", who);
	} else if (!doctor->file[0]) {
		say(doctor, DOCTOR_WARNING, "%s asks for one: the module will have to be signed",
		    who);
		remedy(doctor, "%s", enrol);
	} else if (doctor->file_error) {
		say_unseen(doctor, "whether the module is signed", doctor->file_error);
	} else if (doctor->is_signed) {
		say(doctor, DOCTOR_OK, "%s asks for one; the module has that of `%s', whose key "
		    "must be enrolled", who, doctor->signer);
	} else {
		say(doctor, DOCTOR_PROBLEM, "%s asks for one, and the module has none", who);
		remedy(doctor, "%s", enrol);
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
		say_unseen(doctor, "module.sig_enforce", ret);
	else if (doctor->lockdown == LOCKDOWN_UNSEEN && !has_securityfs(doctor))
		say(doctor, DOCTOR_UNSEEN, "module.sig_enforce asks for none; what lockdown asks for is "
		    "not to be seen");
	else
		say(doctor, DOCTOR_OK, "none is asked for");
}

void check_lockdown(struct doctor *doctor)
{
	switch (doctor->lockdown) {
	case LOCKDOWN_UNSEEN:
		if (has_securityfs(doctor)) {
			say(doctor, DOCTOR_OK, "this kernel has none");
			break;
		}
		say(doctor, DOCTOR_UNSEEN, "cannot see it: /sys/kernel/security is not mounted");
		remedy(doctor, "mount -t securityfs securityfs /sys/kernel/security");
		break;
	case LOCKDOWN_NONE:
		say(doctor, DOCTOR_OK, "none");
		break;
	case LOCKDOWN_INTEGRITY:
		say(doctor, DOCTOR_OK, "integrity: it takes nothing from a module that is signed");
		break;
	case LOCKDOWN_CONFIDENTIALITY:
		say(doctor, DOCTOR_WARNING, "confidentiality: no stack slices, so that a program's "
		    "first samples have stacks by frame pointers");
		remedy(doctor, "boot with lockdown=integrity, if that is enough for you");
		break;
	}
}
