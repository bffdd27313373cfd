"""The chart's series, and Plotly's files for a page that allows nothing inline."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.templatetags.static import static
from django.test import Client
from django.utils import timezone

from console.capacity.models import Pool
from console.clusters.models import Level
from console.pages import plotly
from tests.pages import world

BUNDLE = settings.PLOTLY_FILES / plotly.BUNDLE


def test_the_series_begins_at_the_left_edge_and_ends_now(pool: Pool, vic: Client) -> None:
    cluster = world.a_cluster(pool)
    now = timezone.now()
    for minutes, desired, allocated in ((300, 8, 8), (30, 64, 8), (20, 64, 64)):
        Level.objects.create(cluster=cluster, at=now - timedelta(minutes=minutes), desired=desired, allocated=allocated)
    world.an_entry(cluster, at=now - timedelta(minutes=5), reason="TogetherPreempted", subject_name="gpu-1")
    world.an_entry(cluster, at=now - timedelta(minutes=500), reason="TogetherPreempted", subject_name="gpu-2")
    data = vic.get(f"/clusters/{cluster.pk}/chart.json").json()
    assert data["desired"] == [8, 64, 64, 64]
    assert data["allocated"] == [8, 8, 64, 64]
    assert data["at"][0] == data["from"]
    assert data["at"][-1] == data["to"]
    assert [mark["what"] for mark in data["marks"]] == ["gpu-1"]


def test_a_cluster_without_levels_is_drawn_as_it_stands(pool: Pool, vic: Client) -> None:
    data = vic.get(f"/clusters/{world.a_cluster(pool).pk}/chart.json?range=7d").json()
    assert data["desired"] == [16, 16]
    assert data["marks"] == []


def test_plotlys_global_style_is_taken_out_of_the_shipped_bundle() -> None:
    style = plotly.style_of(BUNDLE.read_text(encoding="utf-8"))
    assert ".js-plotly-plot .plotly .main-svg{position:absolute;top:0;left:0;pointer-events:none;}" in style
    assert "\n.plotly-notifier .notifier-close{" in style
    assert style.count("{") == style.count("}") > 40


def test_a_bundle_that_keeps_its_style_elsewhere_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown place"):
        plotly.style_of("var x={}")


def test_the_ids_that_keep_plotly_from_injecting_styles_are_those_of_the_bundle() -> None:
    bundle = BUNDLE.read_text(encoding="utf-8")
    module = (settings.BASE_DIR / "static/js/chart.js").read_text()
    assert '"plotly.js-style-"' in bundle
    assert ".no-inline-styles" in bundle
    assert 'getElementById("9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53")' in bundle
    for name in (
        "plotly.js-style-global",
        "9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53",
        "no-inline-styles",
    ):
        assert name in module


def test_the_made_files_are_whole_and_compressed(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / plotly.BUNDLE).write_text('x={"X,X div":"margin:0;","Y a":\'color:"red";\'};for(a in b)')
    plotly.make(source, tmp_path / "made")
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == [
        "plotly.css",
        "plotly.css.gz",
        "plotly.min.js",
        "plotly.min.js.gz",
    ]
    assert (tmp_path / "made" / "plotly.css").read_text() == (
        '.js-plotly-plot .plotly,.js-plotly-plot .plotly div{margin:0;}\n.plotly-notifier a{color:"red";}\n'
    )


def test_plotly_is_served_among_the_static_files(client: Client) -> None:
    answer = client.get(static("vendor/plotly/plotly.css"))
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/css")
    assert Path(finders.find("vendor/plotly/plotly.css")).read_text().startswith(".js-plotly-plot")
