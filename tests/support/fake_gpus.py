"""Stand-ins for NVIDIA's libraries, in C: the environment says what they answer."""

from __future__ import annotations

FAILS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* FAKE="name=code,name:gpu=code": what this question, or this question about this GPU, is answered with. */
static int fails(const char *name, int gpu) {
  const char *all = getenv("FAKE"), *at;
  char key[80];
  if (!all) return 0;
  snprintf(key, sizeof key, "%s=", name);
  if (!(at = strstr(all, key))) {
    snprintf(key, sizeof key, "%s:%d=", name, gpu);
    at = strstr(all, key);
  }
  return at ? atoi(at + strlen(key)) : 0;
}
"""

_NVML = r"""
typedef struct { unsigned long long total, free, used; } Memory;
#define GPU (int)((long)h - 1)
static const char *names[] = {"NVIDIA H100", "RTX 5090"};
int nvmlInitWithFlags(unsigned f) { if (getenv("FAKE_HANGS")) pause(); return fails("init", -1); }
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return fails("shutdown", -1); }
const char *nvmlErrorString(int s) { return getenv("FAKE_WORDS") ? "\xff" : "it is broken"; }
int nvmlSystemGetDriverVersion(char *t, unsigned n) { strncpy(t, "570.86.15", n); return fails("driver", -1); }
int nvmlSystemGetCudaDriverVersion_v2(int *v) {
  const char *told = getenv("FAKE_CUDA");
  *v = told ? atoi(told) : 12080;
  return fails("cuda", -1);
}
int nvmlDeviceGetCount_v2(unsigned *n) { *n = getenv("FAKE_NONE") ? 0 : 2; return fails("count", -1); }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) {
  if (fails("hang", i)) pause();
  if (fails("crash", i)) abort();
  *h = (void *)(long)(i + 1);
  return fails("handle", i);
}
int nvmlDeviceGetCudaComputeCapability(void *h, int *a, int *b) {
  *a = GPU || getenv("FAKE_EQUAL") ? 12 : 9;
  *b = 0;
  return fails("capability", GPU);
}
int nvmlDeviceGetMemoryInfo(void *h, Memory *m) {
  m->total = 80ULL << 30;
  m->free = m->used = 0;
  return fails("memory", GPU);
}
int nvmlDeviceGetName(void *h, char *t, unsigned n) {
  strncpy(t, fails("junk", GPU) ? "Bad\xff\xfename" : names[getenv("FAKE_EQUAL") ? 1 : GPU], n);
  return fails("name", GPU);
}
int nvmlDeviceGetUUID(void *h, char *t, unsigned n) {
  strncpy(t, GPU ? "GPU-5090aaaa-0000" : "GPU-1000bbbb-0000", n);
  return fails("uuid", GPU);
}
"""

NVML = FAILS + _NVML
"""NVML with an H100 and an RTX 5090 (two of these by FAKE_EQUAL)."""

_CUDA = r"""
#include <signal.h>
typedef unsigned long long ptr;
static int now = -1; /* the device whose context is current */
static int count(void) { const char *n = getenv("FAKE_GPUS"); return n ? atoi(n) : 1; }
static int answer(const char *name, int device) {
  int code = fails(name, device);
  if (code == -1) pause();
  if (code == -2) raise(SIGSEGV);
  return code;
}
int cuInit(unsigned f) { return count() ? answer("cuInit", -1) : 100; }
int cuDriverGetVersion(int *v) { *v = 13000; return answer("cuDriverGetVersion", -1); }
int cuDeviceGetCount(int *n) { *n = count(); return 0; }
int cuDeviceGet(int *d, int i) { *d = 7 + i; return i < count() ? answer("cuDeviceGet", i) : 101; }
int cuDeviceGetName(char *t, int n, int d) { strncpy(t, "Stand-in", n); return answer("cuDeviceGetName", d - 7); }
int cuDeviceGetAttribute(int *v, int a, int d) {
  *v = a == 75 ? 8 : a == 76 ? 9 : a == 20 ? fails("mode", d - 7) : -1;
  return answer("cuDeviceGetAttribute", d - 7);
}
int cuDeviceTotalMem_v2(size_t *n, int d) { *n = 16ull << 30; return answer("cuDeviceTotalMem", d - 7); }
int cuDevicePrimaryCtxRetain(void **c, int d) {
  *c = (void *)(long)(d - 6);
  return answer("cuDevicePrimaryCtxRetain", d - 7);
}
int cuDevicePrimaryCtxRelease_v2(int d) { return 0; }
int cuCtxSetCurrent(void *c) { now = (int)(long)c - 1; return now < 0 ? 201 : 0; }
int cuModuleLoadData(void **m, const char *ptx) {
  *m = (void *)2;
  return strstr(ptx, ".entry product") ? answer("cuModuleLoadData", now) : 200;
}
int cuModuleGetFunction(void **f, void *m, const char *name) {
  *f = (void *)3;
  return strcmp(name, "product") ? 500 : 0;
}
int cuMemAlloc_v2(ptr *p, size_t n) { *p = (ptr)malloc(n); return answer("cuMemAlloc", now); }
int cuMemcpyHtoD_v2(ptr to, const void *from, size_t n) { memcpy((void *)to, from, n); return 0; }
int cuMemcpyDtoH_v2(void *to, ptr from, size_t n) { memcpy(to, (void *)from, n); return 0; }
int cuCtxSynchronize(void) { return answer("cuCtxSynchronize", now); }
int cuGetErrorString(int e, const char **t) {
  *t = e == 209 ? "no kernel image is available for execution on the device"
     : e == 100 ? "no CUDA-capable device" : e == 2 ? "out of memory"
     : e == 46 ? "CUDA-capable device(s) is/are busy or unavailable" : e == 101 ? "invalid device ordinal" : "bad";
  return 0;
}
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned s,
                   void *q, void **a, void **extra) {
  float *x = (float *)*(ptr *)a[0], *y = (float *)*(ptr *)a[1], *z = (float *)*(ptr *)a[2];
  unsigned n = *(unsigned *)a[3];
  if (gx != n || bx != n) return 1;
  for (unsigned i = 0; i < n; i++)
    for (unsigned j = 0; j < n; j++) {
      z[i * n + j] = 0;
      for (unsigned k = 0; k < n; k++) z[i * n + j] += x[i * n + k] * y[k * n + j];
    }
  if (fails("wrong", now)) z[7] += 1;
  if (fails("half", now)) z[7] += 0.5f;
  if (fails("nan", now)) z[7] = 0.0f / 0.0f;
  return 0;
}
"""

CUDA = FAILS + _CUDA
"""The CUDA driver with FAKE_GPUS devices (one if not set), 8.9. A question that FAKE answers with -1 hangs, with -2 it
crashes; `wrong`, `half` and `nan` spoil the result."""
