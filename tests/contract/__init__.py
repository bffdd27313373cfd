"""What we count on, asked of two servers: the simulator and a real Kubernetes. Where they differ, the real one is right.

Every test here runs twice, with the ids `simulator` and `real`. What a test makes has a name or a namespace of its own.
"""
