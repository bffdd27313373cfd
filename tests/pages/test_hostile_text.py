"""Text from clusters, people and pods is text, on first load and on the live path alike (dkron-io/dkron#921)."""

from django.test import Client
from django.utils import timezone

from console.accounts.models import Role
from console.capacity import panels, picture
from console.capacity.drawing.nodes import render_cell, render_node
from console.capacity.drawing.verdict_table import render_drain
from console.capacity.models import Pool
from console.timeline.rows import render_entry
from tests.pages import world
from tests.pages.world import HOSTILE

MARKUP = ("<img", "<svg onload", "alert(2)></script>")


def clean(html: str) -> None:
    assert HOSTILE not in html
    for tag in MARKUP:
        assert tag not in html.lower(), tag


def test_hostile_text_is_shown_as_text_on_every_page(pool: Pool, ada: Client) -> None:
    cluster = world.a_cluster(
        pool, HOSTILE[:63], target_set_by=HOSTILE, unreachable_since=timezone.now(), unreachable_why=HOSTILE
    )
    node = world.a_node(cluster, HOSTILE, ready=False, not_ready_why=HOSTILE, kubelet_version=HOSTILE[:32])
    drain = world.a_drain(world.a_node(cluster, f"{HOSTILE}2"), name=HOSTILE)
    world.an_entry(
        cluster,
        f"about {HOSTILE} here",
        reason=HOSTILE,
        subject_name=HOSTILE,
        actor_name=HOSTILE,
        drain_id=drain.pk,
        severity="critical",
    )
    assert node.pk is not None
    for tab in ("", "/nodes", "/timeline", "/timeline/rows?before=9999-01-01T00:00:00%2B00:00~1"):
        page = ada.get(f"/clusters/{cluster.pk}{tab}").content.decode()
        clean(page)
        assert "&lt;img src=x onerror=alert(1)&gt;" in page
    clean(ada.get("/").content.decode())
    clean(ada.get("/", {"q": HOSTILE}).content.decode())


def test_hostile_names_of_people_are_text_too(pool: Pool) -> None:
    client = world.browser(world.a_person(HOSTILE, Role.VIEWER))
    clean(client.get("/").content.decode())


def test_the_pushed_html_is_as_clean_as_the_page(pool: Pool) -> None:
    cluster = world.a_cluster(pool, HOSTILE[:63], target_set_by=HOSTILE)
    node = world.a_node(cluster, HOSTILE, ready=False, not_ready_why=HOSTILE)
    drain = world.a_drain(world.a_node(cluster, f"{HOSTILE}2"), name=HOSTILE)
    entry = world.an_entry(cluster, HOSTILE, reason=HOSTILE, subject_name=HOSTILE, actor_name=HOSTILE)
    drawn = picture.read(cluster, timezone.now())
    assert node.pk is not None
    clean(render_entry(entry))
    clean(render_drain(drain, drain.verdicts.all(), timezone.now()))
    clean(panels.render_panel(drawn))
    for line in drawn.lines:
        clean(render_node(line, cluster.pk))
        clean(render_cell(line, True, cluster.pk))
        clean(render_cell(line, False, cluster.pk))


def test_a_live_row_is_the_row_of_the_page(pool: Pool, vic: Client) -> None:
    """datalust/seq-tickets#561: the same instant and text, live or loaded again."""
    cluster = world.a_cluster(pool)
    entry = world.an_entry(cluster, "gpu-dp-1 boots", subject_name="gpu-dp-1")
    assert render_entry(entry) in vic.get(f"/clusters/{cluster.pk}").content.decode()
    assert f'title="{entry.at:%Y-%m-%d %H:%M:%S} UTC"' in render_entry(entry)
