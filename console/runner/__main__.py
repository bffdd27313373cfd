"""The door: `python3 -m console.runner up | reset | test | …` (all of them: `commands.py`).

Written so that an older Python can still read it far enough to say which one is needed.
"""

import sys

NEEDED = (3, 11)


def main(arguments: list) -> int:  # type: ignore[type-arg]
    """Run one command; a refusal is one sentence and exit code 1."""
    if sys.version_info < NEEDED:
        sys.exit("halftide: Python 3.11 or newer is needed, and this is {}.{}.".format(*sys.version_info))
    # Only now: the other modules use what an older Python cannot parse.
    from console.env import SettingError
    from console.runner import commands, interrupts
    from console.runner.errors import RunnerError

    interrupts.listen()
    try:
        return commands.run(arguments)
    except (RunnerError, SettingError) as problem:
        sys.exit(f"halftide: {problem}")
    except KeyboardInterrupt:
        return 0 if arguments == ["up"] else 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
