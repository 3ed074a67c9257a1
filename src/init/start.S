// SPDX-License-Identifier: Apache-2.0
// Entry of mt-init, and clone(2) with a child on its own stack.

    .section .note.GNU-stack, "", @progbits
    .text

    .globl _start
    .type _start, @function
_start:
    xorl %ebp, %ebp
    andq $-16, %rsp
    call mt_init_main
    movl %eax, %edi
    movl $231, %eax // exit_group
    syscall
    hlt

// long sys_clone_call(flags: rdi, stack_top: rsi, fn: rdx, arg: rcx)
    .globl sys_clone_call
    .hidden sys_clone_call
    .type sys_clone_call, @function
sys_clone_call:
    andq $-16, %rsi
    subq $16, %rsi
    movq %rdx, 0(%rsi)
    movq %rcx, 8(%rsi)
    xorl %edx, %edx
    xorl %r10d, %r10d
    xorl %r8d, %r8d
    movl $56, %eax // clone
    syscall
    testq %rax, %rax
    jnz 1f
    xorl %ebp, %ebp
    popq %rax
    popq %rdi
    call *%rax
    movl %eax, %edi
    movl $231, %eax
    syscall
    hlt
1:  ret
