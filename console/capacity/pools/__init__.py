"""One pool made to match what is wanted: the pure plan, and the shells that read for it and carry it out."""
