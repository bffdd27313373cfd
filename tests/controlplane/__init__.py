"""The real Kubernetes that tests run against: the Go module that names its programs, and the fixtures that start it."""
