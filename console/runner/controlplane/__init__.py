"""A real Kubernetes 1.36 on loopback: etcd, API server, scheduler and controller manager, built here and started here.

What tests hold the simulator and the engine to, and what `make up KUBERNETES=real` stands on. The programs come as ordinary Go
modules (`tests/controlplane/go.mod`) and are built once into a cache outside the tree; a start keeps everything else, keys
included, in one folder that may be thrown away.
"""
