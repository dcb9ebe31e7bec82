/* A client of distcc that waits for one of a hundred hosts for ever: it writes its state file as distcc 3.4 does. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct task {
    size_t size;
    uint32_t magic;
    unsigned long pid;
    char file[128], host[128];
    int slot, phase;
    void *next;
};

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "--show-hosts")) {
        for (int n = 0; n < 100; n++) printf("h%d/4\n", n);
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "-j")) return puts("400") < 0;
    char path[4096];
    struct task task = {sizeof task, 0x44494800, (unsigned long)getpid(), "f.cpp", "", 0, 5, NULL};
    snprintf(task.host, sizeof task.host, "h%d", (int)(getpid() % 100));
    snprintf(path, sizeof path, "%s/state/binstate_%d", getenv("DISTCC_DIR"), (int)getpid());
    FILE *file = fopen(path, "w");
    if (!file || fwrite(&task, sizeof task, 1, file) != 1) return 1;
    fclose(file);
    sleep(atoi(argv[argc - 1]));
    unlink(path);
    return 0;
}
