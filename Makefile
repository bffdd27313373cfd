# Python 3.11 or newer and make are all a machine needs; the runner does the rest (console/runner).
PYTHON ?= python3
RUN = exec $(PYTHON) -m console.runner

.PHONY: up reset install clients test test-contract controlplane pins bench kills

up:       ; @$(RUN) up        # everything on one machine, until Ctrl-C
reset:    ; @$(RUN) reset     # forget the state in .halftide
install:  ; @$(RUN) install   # .venv with what the tests need too
clients:  ; @$(RUN) clients   # .venv-clients with the published API client, as a user would have it
test:     ; @$(RUN) test      # lint, types, import rules and every test; HALFTIDE_CONTROLPLANE=off leaves out what needs a real Kubernetes
test-contract: ; @$(RUN) test-contract   # only what holds the simulator to a real Kubernetes, on both
controlplane:  ; @$(RUN) controlplane    # a real Kubernetes alone, until Ctrl-C; prints its kubeconfig
bench:    ; @$(RUN) bench     # the figures of docs/operations.md, measured on an installation of its own
pins:     ; @.venv/bin/python -m console.runner.pins   # write the requirements files from what .venv holds
kills:    ; @$(RUN) kills     # every process killed at every moment of a preemption; minutes, and alone on the machine
