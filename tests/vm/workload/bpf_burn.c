// SPDX-License-Identifier: Apache-2.0
/* Loads a BPF program called NAME and runs it for so many seconds; prints "runs" once it does. usage: bpf_burn NAME SECONDS */
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 3000, REPEAT = 2000 };

static int load(const char *name)
{
	static struct bpf_insn code[STEPS + 2] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K } };
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SOCKET_FILTER, .insn_cnt = STEPS + 2,
		.insns = (uintptr_t)code, .license = (uintptr_t)"GPL",
	};

	for (int i = 1; i <= STEPS; i++)
		code[i] = (struct bpf_insn) { .code = BPF_ALU64 | BPF_ADD | BPF_K, .imm = i };
	code[STEPS + 1].code = BPF_JMP | BPF_EXIT;
	strncpy(attr.prog_name, name, sizeof(attr.prog_name) - 1);
	return syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

int main(int argc, char **argv)
{
	static char packet[64], out[64];
	int fd = argc == 3 ? load(argv[1]) : -1;
	union bpf_attr attr = { .test = {
		.prog_fd = fd, .data_in = (uintptr_t)packet, .data_size_in = sizeof(packet),
		.data_out = (uintptr_t)out, .data_size_out = sizeof(out), .repeat = REPEAT,
	} };
	time_t end;

	if (fd < 0) {
		perror("bpf_burn");
		return 1;
	}
	puts("runs");
	fflush(stdout);
	for (end = time(NULL) + atoi(argv[2]); time(NULL) < end; )
		if (syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attr, sizeof(attr)) < 0) {
			perror("bpf_burn");
			return 1;
		}
	return 0;
}
