"""`make reset`: forget all state of this checkout, and nothing else. Packages stay."""

import os
import shutil
from pathlib import Path

from console.env import state_dir
from console.runner.errors import RunnerError
from console.runner.postgres import system_folder
from console.runner.state import take_lock


def reset() -> None:
    """Remove the state folder and the database that lives elsewhere for it; refused while it is in use."""
    state = state_dir()
    if not state.exists():
        print(f"There is no state in {state}.")
        return
    lock = take_lock(state)
    try:
        for folder in (system_folder(state), state):
            if folder.exists():
                _remove(folder)
                print(f"Removed {folder}.")
    finally:
        os.close(lock)


def _remove(folder: Path) -> None:
    # A folder that HALFTIDE_STATE pointed to by mistake holds other things, and is not ours to empty.
    if folder == state_dir() and not (folder / "version").exists():
        raise RunnerError(f"{folder} does not look like Halftide's state (no version file in it): nothing was removed.")
    try:
        shutil.rmtree(folder)
    except PermissionError as error:
        raise RunnerError(f"No right to remove {error.filename}: run as the user who ran `make up`.") from error
