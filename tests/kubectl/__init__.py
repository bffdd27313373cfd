"""The kubectl that tests run: a Go module of its own, built once."""
