# SPDX-License-Identifier: Apache-2.0
# A program's .gopclntab as Go lays it out, by what the runtime's sources of each version say of it. GO is the version, 104 to
# 120; with HIDDEN it is among other constants, with CYCLE what is inlined is inlined in itself, and with NOWHERE the list of
# what is inlined is not in the file.
#
# main.work has 32 bytes: 8 of its own, 8 of main.outer, 8 of main.inner inside of that, 8 of its own.
	.ifndef HIDDEN
	.set HIDDEN, 0
	.endif
	.ifndef CYCLE
	.set CYCLE, 0
	.endif
	.ifndef NOWHERE
	.set NOWHERE, 0
	.endif

	.text
	.globl _start, work, end, behind
_start:	.skip 16, 0x90
work:	.skip 32, 0x90
end:	.skip 16, 0x90
behind:	.skip 64, 0x90

	.if HIDDEN
	.section .note.go.buildid, "a", @note
	.long 4, 4, 4, 0x6f47, 0
	.section .data.rel.ro, "aw", @progbits
	.p2align 5
	.quad 0, 8				# two that only begin like it
	.long 0xfffffffb, 0x08010000
	.quad 3, 0, 0
	.long 0xfffffffa, 0x08010000
	.quad 1, 1, 88, 88, 88, 88, 88
	.else
	.section .gopclntab, "aw", @progbits
	.endif
	.p2align 5
table:
	.if GO < 116
	.long 0xfffffffb, 0x08010000
	.quad 3
	.set names, table
	.set units, table
	.set files, table
	.set values, table
	.set descriptions, table
	.elseif GO < 118
	.long 0xfffffffa, 0x08010000
	.quad 3, 2, names - table, units - table, files - table, values - table, functions - table
	.set descriptions, functions
	.else
	.long 0xfffffff1, 0x08010000
	.quad 3, 2, _start, names - table, units - table, files - table, values - table, functions - table
	.set descriptions, functions
	.endif

	.p2align 3
functions:
	.if GO < 118
	.quad _start, d0 - descriptions, work, d1 - descriptions, end, d2 - descriptions, behind
	.if GO < 116
	.long list - table
	.endif
	.else
	.long 0, d0 - descriptions, work - _start, d1 - descriptions, end - _start, d2 - descriptions, behind - _start
	.endif

	.macro describe label, at, name, file, line, start, values, data
	.p2align 3
\label:
	.if GO < 118
	.quad \at
	.else
	.long \at - _start
	.endif
	.long \name - names, 0, 0, 0, \file - values, \line - values, \values
	.if GO >= 116
	.long 0
	.endif
	.if GO >= 120
	.long \start
	.endif
	.if GO >= 112
	.long 9 | \data << 24
	.else
	.long \data
	.endif
	.endm

	# which of a function's values and data are the index and the list
	.set INDEX, 2
	.set LIST, 3
	.set DATA, 5
	.if GO < 116
	.set LIST, 4
	.endif
	.if GO < 113
	.set INDEX, 1
	.set LIST, 2
	.endif
	.if GO < 112
	.set DATA, 3
	.endif

	.macro more index, list
	.set at, 0
	.rept 3
	.if at == INDEX
	.long \index - values
	.else
	.long some - values
	.endif
	.set at, at + 1
	.endr
	.if GO < 118
	.p2align 3
	.endif
	.set at, 0
	.rept DATA
	.if GO >= 118
	.if at == LIST
	.long \list - lists
	.else
	.long bitmap - lists
	.endif
	.elseif at == LIST && GO >= 109
	.quad \list + (NOWHERE << 40)
	.else
	.quad bitmap
	.endif
	.set at, at + 1
	.endr
	.endm

	describe d0, _start, n0, fb, l0, 5, 0, 0
	describe d1, work, n1, f1, l1, 9, 3, DATA
	more indices, inlined
	describe d2, end, n2, fb, l0, 5, 3, DATA
	more none, another

	# each a run: change by zigzag, bytes; the first value is -1
	.if GO >= 116
values:	.byte 0
f1:	.byte 2, 8, 2, 16, 1, 8, 0
fb:	.byte 2, 32, 0
	.else
f1:	.byte 4, 8, 2, 16, 1, 8, 0
fb:	.byte 4, 32, 0
	.endif
l0:	.byte 14, 16, 0				# 6
l1:	.byte 22, 8, 80, 8, 20, 8, 95, 8, 0	# 10, 50, 60, 12
indices: .byte 0, 8, 2, 8, 2, 8, 3, 8, 0	# -1, 0, 1, -1
some:	.byte 2, 32, 0				# 0
none:	.byte 0, 32, 0				# -1

	# the first of all names is that of an inlined function
	.if GO >= 116
names:
	.endif
outer:	.asciz "main.outer"
n0:	.asciz "runtime.rt0_go"
n1:	.asciz "main.work"
n2:	.asciz "main.(*T).End"
inner:	.asciz "main.inner"
	.if GO >= 116
files:
	.endif
a:	.asciz "a.go"
b:	.asciz "b.go"
	.p2align 2
	.if GO >= 116
units:	.long a - files, b - files
	.else
list:	.long 3, a - table, b - table
	.endif
	.skip 64

	.section .rodata
	.p2align 3
	.quad 0
lists:
bitmap:	.long 1, 8, 0, 0, 0
	.macro element parent, file, line, name, call, start
	.if GO < 112
	.long \parent, \file, \line, \name - names
	.elseif GO < 120
	.short \parent, 0
	.long \file, \line, \name - names, \call
	.else
	.long 0, \name - names, \call, \start
	.endif
	.endm
inlined:
	element -1, 1, 11, outer, 4, 30
	element CYCLE, 2, 55, inner, 12+8*CYCLE, 40
another:
	element -1, 1, 70, inner, 2, 40

	.if GO >= 118
	.section .noptrdata, "aw", @progbits
	.p2align 5
	.quad 0, 0
	.quad table
	.skip 8 * 35, 0
	.quad bitmap, lists, 7
	.skip 8 * 40
	.endif
