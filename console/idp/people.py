"""Who is known at the demo's provider. Their subject is their user name, so that every run of the demo means the same people."""

from dataclasses import dataclass

PASSWORD = "demo"  # noqa: S105  (public on purpose; the provider listens on loopback only)
CLIENT_ID = "halftide"


@dataclass(frozen=True)
class Person:
    username: str
    name: str
    groups: tuple[str, ...]
    about: str

    @property
    def email(self) -> str:
        return f"{self.username}@demo.example"


PEOPLE = (
    Person("ada", "Ada Lovelace", ("halftide-admins",), "administrator"),
    Person("olu", "Olu Adeyemi", ("halftide-operators",), "operator"),
    Person("vic", "Vic Moreau", ("aurora-viewers",), "sees one project"),
    Person("fay", "Fay Lin", (), "in no group"),
)
