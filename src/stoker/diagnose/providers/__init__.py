"""What brings a header, a library, a module or a program, as data: one YAML file for each field. docs/diagnose.md says
what a row is."""
