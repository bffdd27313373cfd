"""The form of a webhook: what was typed stays typed, and each fault stands beside its field."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from django.http import QueryDict

from console.accounts.models import Project
from console.http import BadInput, DomainError
from console.webhooks.groups import GROUPS, Group
from console.webhooks.models import Webhook
from console.webhooks.queries import clusters_of
from console.webhooks.services import Wish

FIELDS = ("name", "kind", "address", "cluster", "groups")
FIRST = ("preemptions", "timeouts", "kubernetes", "automation")  # chosen in a new form: what wakes people
KINDS = (
    (
        Webhook.Kind.SLACK,
        "Slack-compatible",
        "A text with blocks, for Slack, Mattermost, Rocket.Chat and others that take the same.",
    ),
    (Webhook.Kind.JSON, "JSON", "Every entry with its fields, for a program. Version 1 of a documented shape."),
)


@dataclass
class WebhookForm:
    """`groups` are the ticked ones; `errors` by field, under "" what belongs to none."""

    name: str = ""
    kind: str = Webhook.Kind.SLACK
    address: str = ""
    cluster: str = ""
    groups: tuple[str, ...] = FIRST
    errors: dict[str, str] = field(default_factory=dict)

    @classmethod
    def posted(cls, data: QueryDict) -> "WebhookForm":
        name, kind, address, cluster = (data.get(name, "") for name in ("name", "kind", "address", "cluster"))
        return cls(name, kind, address, cluster, tuple(dict.fromkeys(data.getlist("groups"))))

    @classmethod
    def of(cls, webhook: Webhook) -> "WebhookForm":
        """The address stays away: nobody reads it again, not even who typed it."""
        cluster = str(webhook.cluster_id) if webhook.cluster_id else ""
        return cls(webhook.name, webhook.kind, "", cluster, tuple(webhook.groups))

    def wish(self) -> Wish:
        """Raises BadInput for a cluster that is no id."""
        try:
            cluster = UUID(self.cluster) if self.cluster else None
        except ValueError:
            raise BadInput("Choose a cluster of the list.", param="cluster") from None
        return Wish(self.name, self.address, self.groups, cluster)

    def refuse(self, error: DomainError) -> None:
        self.errors[error.param if error.param in FIELDS else ""] = error.message

    def choices(self) -> list[tuple[Group, bool]]:
        return [(group, group.key in self.groups) for group in GROUPS]


def cluster_options(project: Project) -> Iterable[tuple[str, str]]:
    return [("", f"All clusters of {project.name}"), *((str(one.pk), one.name) for one in clusters_of(project))]
