"""A Kubernetes API and machines to try things on.

Nobody has eight spare GPU nodes beside the laptop. So this room is a small Kubernetes API server (`kubernetes/`), machines
and controllers that are only clients of it (`machines/`), and a provider with pools and other tenants (`provider/`). What
it answers was asked of a real Kubernetes 1.36 first; where the two differ, the real one is right.
"""
