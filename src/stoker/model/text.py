"""The one sanitiser: bytes of a build's output become text that no terminal and no widget can be harmed by."""
