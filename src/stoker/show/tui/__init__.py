"""The terminal interface, built with Textual. Knows no sockets and no journals, and not how a build runs."""
