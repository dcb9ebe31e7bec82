"""Everything that reads the outside world: processes, jobs, ninja's files, the build's output, the machine.

Unaware of decisions and screens. Nothing here raises because a process vanished, a kernel is odd or a file is missing:
the answer is then None or empty, and each reader reports it once in its `notes`.
"""
