# SPDX-License-Identifier: Apache-2.0
# A program's .gopclntab as Go 1.2 to 1.15 laid it out, with how far the stack pointer is from its place at entry, and code that
# moves it. With ARM64 it is that machine's code; with FLAGS the table is that of 1.17; with NAMELESS no function is Go's.
	.ifndef ARM64
	.set ARM64, 0
	.endif
	.ifndef FLAGS
	.set FLAGS, 0
	.endif
	.ifndef NAMELESS
	.set NAMELESS, 0
	.endif
	.ifndef ELSEWHERE
	.set ELSEWHERE, 0
	.endif

	.text
	.globl _start, plain, leaving, unnoted, compiled, grows, block, behind, last, hand
	.p2align 4
_start:	.skip 16
	.if ARM64
plain:	.long 0xf81e0ffe, 0xd503201f, 0xf84207fe, 0xd65f03c0	# str x30, [sp, #-32]!; nop; ldr x30, [sp], #32; ret
leaving:
	.if ELSEWHERE
	.long 0x9100001f				# mov sp, x0
	.else
	.long 0x91000001				# mov x1, x0
	.endif
	.long 0xd503201f, 0xd503201f, 0xd65f03c0
unnoted: .long 0xd10083ff, 0xd503201f, 0xd503201f, 0xd65f03c0	# sub sp, sp, #32
compiled: .long 0xd10083ff, 0xf90003fe, 0xd503201f, 0xd65f03c0	# sub sp, sp, #32; str x30, [sp]
grows:	.long 0xeb1fe3ff, 0x540000c9, 0xf81e0ffe, 0xd503201f	# b.ls block; str x30, [sp, #-32]!
	.long 0xd503201f, 0xf84207fe, 0xd65f03c0
block:	.long 0xaa1e03e3, 0x94000000, 0x17fffff7	# mov x3, x30; bl; b grows
behind:	.long 0xd503201f, 0xd503201f
	.else
	.set LEAVE, 2
	.set CLEAR, 3
plain:	.byte 0x48, 0x83, 0xec, 0x18, 0x90, 0x48, 0x83, 0xc4, 0x18, 0xc3	# sub $24, %rsp; nop; add $24, %rsp; ret
	.skip 6, 0x90
leaving:
	.if ELSEWHERE == LEAVE
	.byte 0x90, 0xc9, 0xc3				# leave; ret
	.elseif ELSEWHERE == CLEAR
	.byte 0x31, 0xc9, 0x90				# xor %ecx, %ecx
	.elseif ELSEWHERE
	.byte 0x48, 0x89, 0xdc				# mov %rbx, %rsp
	.else
	.byte 0x48, 0x89, 0xdd				# mov %rbx, %rbp
	.endif
	.skip 13, 0x90
unnoted: .byte 0x48, 0x83, 0xec, 0x18
	.skip 12, 0x90
compiled: .byte 0x48, 0x83, 0xec, 0x18, 0xb8, 0x48, 0x89, 0xdc, 0	# mov $0xdc8948, %eax
	.skip 7, 0x90
grows:	.byte 0x76, 0x1c - 2, 0x90, 0x90, 0x48, 0x83, 0xec, 0x18	# jbe block
	.skip 15, 0x90
	.byte 0x48, 0x83, 0xc4, 0x18, 0xc3
block:	.byte 0xe8, 0, 0, 0, 0, 0xeb, -0x23		# call; jmp grows
	.skip 5, 0x90
behind:	.skip 8, 0x90
	.endif
last:	.skip 16
hand:
	.if ARM64
	.long 0xd10083ff, 0xa9017bfd, 0xd503201f, 0xd65f03c0	# sub sp, sp, #32; stp x29, x30, [sp, #16]
	.else
	.skip 16, 0x90
	.endif

	.section .gopclntab, "aw", @progbits
	.p2align 5
table:
	.if FLAGS
	.long 0xfffffffa, 0x08010000 + ARM64 * 0x30000
	.quad 8, 1, 0, units - table, 0, 0, functions - table
	.set base, functions
	.else
	.long 0xfffffffb, 0x08010000 + ARM64 * 0x30000
	.quad 8
	.set base, table
	.endif
functions:
	.quad _start, d0 - base, plain, d1 - base, leaving, d2 - base, unnoted, d3 - base
	.quad compiled, d4 - base, grows, d5 - base, last, d6 - base
	.quad hand, d7 - base, hand + 16
	.long files - table

	.macro describe label, at, name, distances, file, flags
	.p2align 3
\label:	.quad \at
	.long \name - table, 0, 0, \distances - table, \file - table, \file - table, 0
	.if FLAGS
	.long 0
	.endif
	.long \flags
	.endm
	describe d0, _start, goexit, still, in_asm, 0x100*FLAGS
	describe d1, plain, other, frame, in_asm, 0
	describe d2, leaving, other, still, in_asm, 0
	describe d3, unnoted, other, still, in_asm, 0
	describe d4, compiled, other, made, in_go, 0
	describe d5, grows, other, forgot, in_go, 0
	describe d6, last, switch, still, in_asm, 0
	describe d7, hand, other, made, in_asm, 0

	# each a run: change by zigzag, instructions; the first value is -1
	.set U, 1 + 3 * ARM64
still:	.byte 2, 48 / U, 0
	.if ARM64
frame:	.byte 2, 1, 64, 2, 63, 1, 0
made:	.byte 2, 1, 64, 3, 0
forgot:	.byte 2, 3, 64, 3, 63, 1, 64, 5, 0
	.else
frame:	.byte 2, 4, 48, 5, 47, 7, 0
made:	.byte 2, 4, 48, 12, 0
forgot:	.byte 2, 8, 48, 19, 47, 1, 48, 20, 0
	.endif
in_asm:	.byte 4, 64 / U, 0
in_go:	.byte 6, 64 / U, 0
	.p2align 2
units:
files:	.long 3, a - table, b - table, 0
	.if NAMELESS
goexit:
	.else
goexit:	.asciz "runtime.goexit"
	.endif
other:	.asciz "main.work"
switch:	.asciz "runtime.systemstack"
a:	.asciz "/src/a.s"
b:	.asciz "/src/b.go"
	.skip 64
