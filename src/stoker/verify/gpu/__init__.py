"""GPUs: which there are, what they are called, and a kernel run on each."""
