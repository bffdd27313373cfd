"""`make up`, `make reset`, `make test`: one machine runs everything, from nothing, and leaves nothing behind.

Plain Python and only the standard library, because the runner is there before anything is installed; the few modules
that need a package (`databases`, `pins`) run inside the virtual environment that the runner made. Linux only: that
nothing outlives a killed runner rests on the kernel's parent-death signal.
"""
