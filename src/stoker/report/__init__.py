"""A recorded build in other forms: as one value, as a page, for other tools, and compared with other builds. Pure."""
