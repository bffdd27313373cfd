"""The one exception of the runner: what stops it, as a sentence a person can act on."""


class RunnerError(Exception):
    """Why the runner does not go on. Its text is one sentence that names what to change."""
