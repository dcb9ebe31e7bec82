"""The command line: parses arguments, starts things, picks a screen. Sub-commands import what they need when they
run."""
