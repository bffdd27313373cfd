"""What the live parts of a cluster page say and where they stand, from numbers alone."""
