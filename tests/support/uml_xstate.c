/* Lets a user-mode Linux 6.1 run on processors whose extended register state is larger than that kernel knows (AMX).

   It saves and restores the registers of its processes by ptrace, in a buffer of 2,696 bytes: all of x87, SSE, AVX,
   AVX-512 and PKRU. The host accepts nothing but the whole state ("xstateregs_set" in arch/x86/kernel/fpu/regset.c:
   EFAULT), so what is beyond, which no program in there uses, is filled in with what the process has. */
#define _GNU_SOURCE
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static char whole[1 << 16];

static long ask(long request, pid_t pid, void *address, void *data) {
  return syscall(SYS_ptrace, request, pid, address, data);
}

long ptrace(enum __ptrace_request request, ...) {
  va_list rest;
  va_start(rest, request);
  pid_t pid = va_arg(rest, pid_t);
  void *address = va_arg(rest, void *);
  void *data = va_arg(rest, void *);
  va_end(rest);
  if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER) {
    long word = 0;
    long result = ask(request, pid, address, &word);
    return result < 0 ? result : word;
  }
  if (request == PTRACE_SETREGSET && (long)address == NT_X86_XSTATE) {
    const struct iovec *given = data;
    struct iovec full = {whole, sizeof whole};
    if (ask(PTRACE_GETREGSET, pid, address, &full) == 0 && given->iov_len < full.iov_len) {
      memcpy(whole, given->iov_base, given->iov_len);
      return ask(request, pid, address, &full);
    }
  }
  return ask(request, pid, address, data);
}
