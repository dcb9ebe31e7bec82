"""What was built, and where it will run: reads binaries and wheels and judges them. Unaware of builds and screens."""
