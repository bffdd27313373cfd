"""The engine against a real Kubernetes: its API server, scheduler and controllers, with machines that are only its clients."""
