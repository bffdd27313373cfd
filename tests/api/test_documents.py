"""OpenAPI and its page: open to everybody, and the page shows itself under the strict CSP without another site."""

import json
import shutil
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles import finders
from django.test import Client
from playwright.sync_api import Route, sync_playwright

CHROMIUM = shutil.which("chromium")
HERE = "http://halftide.test"


def test_the_document_names_every_route_its_key_and_its_refusals(client: Client) -> None:
    found = client.get("/api/openapi.json").json()
    assert set(found["paths"]) == {
        "/v1/compute/clusters",
        "/v1/compute/clusters/{cluster_id}",
        "/v1/compute/clusters/{cluster_id}/node_lifecycle_events",
        "/v1/compute/clusters/{cluster_id}/reclaims",
        "/v1/compute/clusters/{cluster_id}/reclaims/{reclaim_id}",
        "/v1/compute/clusters/{cluster_id}/reclaims/{reclaim_id}/report",
        "/v1/compute/clusters/{cluster_id}/drains",
        "/v1/compute/clusters/{cluster_id}/drains/preview",
        "/v1/compute/clusters/{cluster_id}/drains/{drain_id}",
        "/v1/compute/clusters/{cluster_id}/startup_scripts",
        "/v1/compute/clusters/{cluster_id}/startup_scripts/{kind}",
        "/v1/compute/clusters/{cluster_id}/startup_scripts/{kind}/versions",
        "/v1/compute/clusters/{cluster_id}/startup_scripts/{kind}/versions/{version}",
        "/v1/compute/clusters/{cluster_id}/workloads",
        "/v1/compute/regions",
        "/v1/projects",
        "/v3/whoami",
    }
    assert found["security"] == [{"bearer": []}]
    assert found["components"]["securitySchemes"] == {"bearer": {"type": "http", "scheme": "bearer"}}
    for methods in found["paths"].values():
        for operation in methods.values():
            refusal = operation["responses"]["401"]["content"]["application/json"]["schema"]
            assert refusal == {"$ref": "#/components/schemas/ErrorEnvelope"}


def test_the_page_shows_every_route_without_a_violation_and_without_another_site(client: Client, db: None) -> None:
    """Real Chromium, with this process's answers and the static files as they are shipped."""
    assert CHROMIUM, "Chromium is not installed."
    paths = ("/api/docs", "/api/openapi.json")
    answers = {path: client.get(path) for path in paths}
    assert "script-src 'self'" in answers["/api/docs"]["Content-Security-Policy"]
    asked: list[str] = []

    def serve(route: Route) -> None:
        url = route.request.url
        asked.append(url)
        path = url.removeprefix(HERE)
        if path in answers:
            answer = answers[path]
            route.fulfill(status=answer.status_code, headers=dict(answer.headers), body=answer.content)
        elif path.startswith(settings.STATIC_URL):
            route.fulfill(path=Path(finders.find(path.removeprefix(settings.STATIC_URL))))
        else:
            route.abort()

    said: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda fault: said.append(str(fault)))
        page.route("**/*", serve)
        page.goto(f"{HERE}/api/docs")
        page.get_by_text("Set a cluster's targets").click()
        page.get_by_text("Names the two targets, for If-Match.").first.wait_for()
        shown = page.locator(".opblock-summary-path").all_inner_texts()
        browser.close()
    assert [line for line in said if "Content Security Policy" in line or "rror" in line] == []
    assert [url for url in asked if not url.startswith(HERE)] == []
    assert len(shown) == len(_operations(answers["/api/openapi.json"].content))


def _operations(document: bytes) -> list[str]:
    paths: dict[str, dict[str, Any]] = json.loads(document)["paths"]
    return [f"{method} {path}" for path, methods in paths.items() for method in methods]
