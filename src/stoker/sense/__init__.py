"""Everything that reads the world: processes, jobs, ninja's files, the build's output, the machine.

Unaware of decisions and screens. Nothing here raises because a process vanished, a kernel is odd or a file is
missing: such answers are None or empty, and each reader says so once in its `notes`.
"""
