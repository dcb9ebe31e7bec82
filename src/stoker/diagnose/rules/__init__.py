"""The failure rules, as data: one YAML file for each kind of failure. docs/diagnose.md says what a rule is."""
