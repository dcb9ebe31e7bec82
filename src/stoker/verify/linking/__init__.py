"""What the dynamic linker will find."""
