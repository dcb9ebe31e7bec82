"""The machine as a whole: memory, CPUs, disks, GPUs, and the limits around the build."""
