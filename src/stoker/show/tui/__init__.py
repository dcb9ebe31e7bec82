"""The terminal interface, made with Textual. Unaware of sockets, journals and how a build runs."""
