"""The command line: parses words, starts things, picks a screen. Sub-commands import what they need when they run."""
