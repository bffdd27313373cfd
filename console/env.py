"""What the environment tells us, read through typed readers that refuse nonsense with one sentence.

A setting that is silently misread is found at 3 a.m.; one that is refused at the start is found by the person who
wrote it. `make up` writes what it decided (addresses, demo secrets) to `runtime.env` in the state folder, so that a
`manage.py` command beside it sees the same world; a variable of the real environment always wins over that file.
Plain Python, because the runner reads settings before anything is installed.
"""

import math
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent

TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"0", "false", "no", "off"})


class SettingError(ValueError):
    """A setting is missing or makes no sense; its text is one sentence that names the variable."""


def state_dir() -> Path:
    """The folder of everything this installation keeps on disk (`HALFTIDE_STATE`, else `.halftide` of the checkout)."""
    return Path(os.environ.get("HALFTIDE_STATE") or ROOT / ".halftide").absolute()


def read_env_file(path: Path) -> dict[str, str]:
    """The `NAME=value` lines of a file we wrote ourselves; a missing file is an empty one. No quoting, no comments."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except PermissionError as error:
        raise SettingError(f"{path} is for the user who ran `make up`: run this command as that user.") from error
    return dict(line.split("=", 1) for line in lines if "=" in line)


@lru_cache(maxsize=4)
def _runtime(path: Path) -> Mapping[str, str]:
    return read_env_file(path)


def raw(name: str) -> str | None:
    """The value as written, or None when it is unset or empty: `NAME=` in a unit file means "I did not choose"."""
    if name in os.environ:
        return os.environ[name] or None
    return _runtime(state_dir() / "runtime.env").get(name) or None


def text(name: str, default: str | None = None) -> str:
    """A string. Without a default the setting is required."""
    value = raw(name)
    if value is None:
        if default is None:
            raise SettingError(f"{name} is not set, and there is no default for it.")
        return default
    return value.strip()


def words(name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    """A comma-separated list; blanks around an item and empty items are dropped."""
    value = raw(name)
    if value is None:
        return default
    return tuple(item.strip() for item in value.split(",") if item.strip())


def boolean(name: str, default: bool = False) -> bool:
    """Yes or no: 1/true/yes/on and 0/false/no/off."""
    value = raw(name)
    if value is None:
        return default
    word = value.strip().lower()
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise SettingError(f"{name} must be yes or no (1/0, true/false, on/off), not {value!r}.")


def integer(name: str, default: int, low: int, high: int) -> int:
    """A whole number from `low` to `high`, both allowed."""
    value = raw(name)
    if value is None:
        return default
    try:
        number = int(value)
    except ValueError:
        raise SettingError(f"{name} must be a whole number from {low} to {high}, not {value!r}.") from None
    if not low <= number <= high:
        raise SettingError(f"{name} must be from {low} to {high}, not {number}.")
    return number


def seconds(name: str, default: float, low: float, high: float) -> float:
    """A length of time in seconds from `low` to `high`, fractions allowed."""
    value = raw(name)
    if value is None:
        return default
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not low <= number <= high:
        raise SettingError(f"{name} must be a number of seconds from {low:g} to {high:g}, not {value!r}.")
    return number


def port(name: str, default: int) -> int:
    """A TCP port a process may listen on."""
    return integer(name, default, 1, 65535)


def url(name: str, default: str | None = None, schemes: tuple[str, ...] = ("http", "https")) -> str:
    """An address with one of the given schemes, and with a host or, for `unix:` and socket forms, a path or query."""
    value = text(name, default)
    try:
        parts = urlsplit(value)
    except ValueError:
        raise SettingError(f"{name} is not an address that can be read.") from None
    # The value itself is not repeated: an address of a database carries its password.
    if parts.scheme not in schemes:
        raise SettingError(f"{name} must be an address that starts with {' or '.join(f'{s}://' for s in schemes)}.")
    if not (parts.netloc or parts.path.strip("/") or parts.query):
        raise SettingError(f"{name} must be an address with a host in it.")
    return value


def secret(name: str, default: str | None = None) -> str:
    """A secret, from `NAME` or from the file that `NAME_FILE` points to (how container platforms hand them over)."""
    value = raw(name)
    path = raw(f"{name}_FILE")
    # A secret file wins over runtime.env, which is only there for the demo; two real choices are a contradiction.
    if path is not None and os.environ.get(name):
        raise SettingError(f"Both {name} and {name}_FILE are set: keep one.")
    if path is not None:
        try:
            value = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingError(f"{name}_FILE points to {path}, which cannot be read.") from error
    if value is None:
        value = default
    if not value and default == "":
        return ""  # one may do without it
    if not value:
        raise SettingError(f"{name} (or {name}_FILE) is not set, and a secret has no default.")
    return value
