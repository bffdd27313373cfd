"""What the API takes and answers about startup scripts."""

from datetime import datetime

from pydantic import BaseModel, Field

from console.api.requests import Body


class ScriptUpdate(Body):
    script: str | None = Field(
        default=None, description="The whole text, needed; CRLF becomes LF, everything else is kept. At most 64 KiB in UTF-8."
    )
    message: str | None = Field(default=None, max_length=200, description="What changed, for the others; one line.")


class ScriptVersion(BaseModel):
    kind: str
    version: int
    bytes: int = Field(description="Of the text in UTF-8.")
    sha256: str = Field(description="Of the same bytes.")
    message: str
    saved_at: datetime
    saved_by: str
    restored_from: int | None
    lines_added: int = Field(description="Against the version before.")
    lines_removed: int


class ScriptVersionText(ScriptVersion):
    script: str


class StartupScript(BaseModel):
    kind: str
    runs_on: str = Field(description="What it is for. Nothing runs it on nodes yet.")
    current: ScriptVersion | None = Field(description="Null where none was ever saved.")


class StartupScripts(BaseModel):
    startup_scripts: list[StartupScript]


class SavedScript(ScriptVersionText):
    changed: bool = Field(description="False where the text was the newest already: then there is no new version.")
    note: str | None = Field(description="What was changed in the text on its way in.")


class ScriptVersions(BaseModel):
    versions: list[ScriptVersion]
    next_cursor: str | None = Field(description="Hand it in as `after` for what is older; null at the end.")
