"""Taking a node back: the pure step, and the shells that carry it out, row by row, whatever dies when."""
