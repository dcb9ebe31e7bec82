"""Which packages bring a header, a library, a module or a program, as data: one YAML file per field. docs/diagnose.md
describes the rows."""
