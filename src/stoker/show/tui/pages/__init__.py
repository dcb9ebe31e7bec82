"""Pages as lines of inked text. Pure functions from values and a size to lines; they do not know Textual."""
