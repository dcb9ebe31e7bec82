"""From a wheel as it was built to one that installs elsewhere."""
