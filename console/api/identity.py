"""Who asks, and the projects they have a role in."""

from console.accounts.access import Actor
from console.accounts.models import Project
from console.api.shapes import Id, Named, Projects, WhoamiKey, WhoamiPerson, WhoamiProject
from console.api.shapes import Project as Shape
from console.timeline.models import INSTALLATION

# The client wants an organization above projects; Halftide has none, so the installation stands for it.
ORGANIZATION = Named(id=str(INSTALLATION), name="Halftide")


def whoami(actor: Actor) -> WhoamiKey | WhoamiPerson:
    """A key with its project, or the person of a token or session."""
    assert actor.user is not None
    if actor.key is None:
        return WhoamiPerson(user=Id(id=str(actor.user.pk)))
    project = Project.objects.get(pk=actor.key.project_id)
    return WhoamiKey(
        api_key=Id(id=str(actor.key.pk)),
        organization=ORGANIZATION,
        project=WhoamiProject(id=str(project.pk), name=project.name, slug=project.slug),
    )


def projects(actor: Actor, limit: int, after: str | None) -> Projects:
    """By slug, which is unique and so the cursor too."""
    rows = Project.objects.order_by("slug")
    if actor.everywhere is None:
        rows = rows.filter(pk__in=list(actor.roles))
    if after is not None:
        rows = rows.filter(slug__gt=after)
    found = list(rows[: limit + 1])
    data = [
        Shape(id=str(one.pk), name=one.name, slug=one.slug, organization_id=ORGANIZATION.id, organization_name=ORGANIZATION.name)
        for one in found[:limit]
    ]
    return Projects(data=data, next_cursor=data[-1].slug if len(found) > limit else None)
