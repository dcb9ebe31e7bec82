"""Who may run now: decisions with their reasons from one snapshot. Pure."""
