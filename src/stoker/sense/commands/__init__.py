"""What command lines say. Pure: no process is read here."""
