"""What a person asks for: keys, the palette, and commands on their way to the build."""
