"""The failure rules, as data: one YAML file per kind of failure. docs/diagnose.md describes what a rule is."""
