"""The create form: what was typed stays typed, and each fault stands beside its field."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from console.http import BadInput, DomainError
from console.pages.asking import line_of_text, whole_number

FIELDS = ("project", "name", "region", "gpu_type", "standard", "preemptible")
API_NAMES = {"num_gpus": "standard", "num_preemptible_gpus": "preemptible"}
LONGEST_NAME = 63


@dataclass
class CreateForm:
    """`typed` are strings as they came; `errors` by field, under "" what belongs to none."""

    typed: Mapping[str, str]
    errors: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Mapping[str, str], defaults: Mapping[str, str]) -> "CreateForm":
        return cls({name: data.get(name, defaults.get(name, "")) for name in FIELDS})

    def name(self) -> str:
        try:
            name = line_of_text(self.typed["name"], "name", "The name", LONGEST_NAME)
        except BadInput as error:
            self.refuse(error)
            return ""
        if not name:
            self.errors["name"] = "A cluster needs a name: lower case letters, digits and dashes."
        return name

    def gpus(self, param: str, what: str) -> int:
        try:
            return whole_number(self.typed[param], param, what)
        except BadInput as error:
            self.refuse(error)
            return 0

    def refuse(self, error: DomainError) -> None:
        """Beside the field the error names (services name fields as the API does), or above the form."""
        param = API_NAMES.get(error.param or "", error.param)
        self.errors.setdefault(param if param in FIELDS else "", error.message)
