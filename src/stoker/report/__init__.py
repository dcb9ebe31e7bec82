"""A recorded build given back: as one value, as a page, as other tools' formats, and beside other builds. Pure."""
