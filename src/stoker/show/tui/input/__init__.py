"""User input: keys, the palette, and commands on their way to the build."""
