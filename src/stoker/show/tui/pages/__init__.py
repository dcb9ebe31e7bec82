"""Pages as lines of inked text. Pure: values and a size in, lines out."""
