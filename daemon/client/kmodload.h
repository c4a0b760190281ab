/* SPDX-License-Identifier: Apache-2.0 */
/* Loading stacktap.ko. */
#ifndef STACKTAP_CLIENT_KMODLOAD_H
#define STACKTAP_CLIENT_KMODLOAD_H

#include "base/macro.h"

/* modprobe -r is refused while stacktapd has the module mapped. */
#define KMODLOAD_RELOAD                                                                            \
	"systemctl stop stacktapd; modprobe -r stacktap; modprobe stacktap; and, if it ran, "      \
	"systemctl start stacktapd"

/* Is the module in the kernel (loaded or built in)? */
bool kmodload_is_loaded(void);
/*
 * Load it as modprobe does, blacklists included; 0 when it is there already. On failure @error gets
 * a sentence with cause and remedy.
 */
int kmodload_load(char *error, size_t error_size);
/* That sentence for @error (-errno), of the host below @root. */
void kmodload_explain(const char *root, int error, char *sentence, size_t size);
/*
 * The certificate of the key that DKMS signs with on the host below @root, NULL if there is none yet.
 * Static storage.
 */
const char *kmodload_certificate(const char *root);

#endif /* STACKTAP_CLIENT_KMODLOAD_H */
