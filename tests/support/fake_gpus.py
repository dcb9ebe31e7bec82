"""Stand-ins for NVIDIA's libraries, in C: what they answer is told by the environment."""

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
int nvmlSystemGetCudaDriverVersion_v2(int *v) { *v = 12080; return fails("cuda", -1); }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = getenv("FAKE_NONE") ? 0 : 2; return fails("count", -1); }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) {
  if (fails("hang", i)) pause();
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
