"""The terminal: its driver, cells, characters and colours. Knows no builds."""
