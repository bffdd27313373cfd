"""Takes the pictures in this folder of a running `make up`: `.venv/bin/python docs/pictures/take.py [ADDRESS]`.

Signs in as ada, asks for 64 GPUs, takes 16 back, and photographs every page in light, dark and at 375 px while two nodes drain.
The cells of a thousand nodes (`thousand-…`) are of the cluster that `tests/bench/page.py` makes, some set to other states.
Then two nodes are drilled, and their report is photographed (`drill-…`). At the end a machine dies and is taken back, so that its
drain times out: `take.py ADDRESS timed-out` takes that picture alone, and `take.py ADDRESS cluster` those of the cluster's page.
`take_states.py` takes what is shown when something is wrong. With HALFTIDE_SIM_DEMAND=off other tenants keep out of the pictures.
What is larger than 200 kB afterwards is made smaller: `pngquant --quality 90-100 --ext .png --force`.
Needs the test requirements and Debian's Chromium, and stands beside the `make up` (the same HALFTIDE_STATE).
"""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urljoin

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
ADDRESS = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
# No path of this machine in a picture.
NO_PATH = "line => { line.textContent = line.textContent.replace(/\\/\\S+kubeconfig /, '.halftide/kubeconfig '); }"
SIZES = {"light": (1440, 900), "dark": (1440, 900), "375": (375, 812)}


def shoot(page: Page, name: str, wait: int = 1500) -> None:
    for look, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if look == "dark" else "light", reduced_motion="reduce")
        page.evaluate("window.scrollTo(0, 0)")
        page.wait_for_timeout(wait)  # the chart redraws itself for the scheme
        page.screenshot(path=HERE / f"{name}-{look}.png")


def over(page: Page, key: str, name: str) -> None:
    """What opens over a page by a key."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.keyboard.press(key)
    page.locator("dialog[open]").wait_for()
    if name == "palette":
        page.keyboard.type("aurora")
        page.wait_for_timeout(1000)  # what is found follows the typing
    shoot(page, name)
    page.keyboard.press("Escape")


def sim(*words: str) -> None:
    subprocess.run([sys.executable, HERE.parent.parent / "manage.py", "sim", *words], check=True)  # noqa: S603  (our own)


def want(page: Page, gpus: int) -> None:
    box = page.locator("[data-gauge] input[name=gpus]")
    box.fill(str(gpus))
    box.press("Enter")
    page.locator(".figure", has_text=f"{gpus} allocated of {gpus} desired").wait_for(timeout=180_000)


def stage(page: Page) -> None:
    """A cluster with something going on: 64 asked for and there, 16 being taken back, and a first pod has ended."""
    page.get_by_role("link", name="aurora-train").first.click()
    for gpus in (40, 64):
        if int(page.locator("[data-gauge] input[name=gpus]").input_value()) < gpus:
            want(page, gpus)
            page.wait_for_timeout(60_000)  # a chart has something to show, and pods run everywhere
    sim("slow-boot", "120")  # until `sim clear`: what was taken is on its way back for as long as the pictures take
    page.get_by_text("Reclaim 8 GPUs now").click()
    page.get_by_label("GPUs", exact=True).fill("16")
    page.get_by_role("button", name="Reclaim now").click()
    page.locator(".live .verdicts tbody tr", has_text="Finished").first.wait_for(timeout=60_000)


def an_hour(page: Page, cluster: str) -> str:
    """The address of an earlier hour, by its bar: the one before this, where the demo has run that long, else this one."""
    page.goto(f"{cluster}/timeline")
    for hour in (page.locator("[data-hour]").nth(-2), page.locator("[data-hour]").last):
        if ": 0 entries" not in (hour.locator("title").text_content() or ""):
            break
    return urljoin(ADDRESS, hour.get_attribute("href") or "")


def drained(page: Page, cluster: str) -> str:
    """The address of a workload that the drains have met."""
    page.goto(f"{cluster}/workloads")
    return urljoin(ADDRESS, page.locator("[data-workloads] a.name", has_text="aurora-pretrain").first.get_attribute("href") or "")


def preview_of_two(page: Page, cluster: str) -> str:
    """The address of a preview of two nodes by name."""
    page.goto(f"{cluster}/nodes")
    links = page.get_by_role("link", name=re.compile("^Preview of"))
    names = [(links.nth(number).get_attribute("href") or "").rpartition("=")[2] for number in (0, 2)]
    return f"{cluster}/preview?nodes={','.join(names)}"


def drilled(page: Page, cluster: str) -> None:
    """The report of a drill of two named nodes, once both are replaced."""
    page.goto(preview_of_two(page, cluster))
    page.locator("summary", has_text="Start drill").click()
    page.get_by_role("button", name="Start drill").click()
    page.wait_for_url("**/drills/**")
    for _ in range(60):
        page.reload()
        if page.get_by_text("over at").count():
            break
        page.wait_for_timeout(10_000)
    shoot(page, "drill")


def timed_out(page: Page, cluster: str) -> None:
    """A machine dies without a word and is taken back: nobody can stop its pods, and at the deadline it goes all the same."""
    api, headers = f"{ADDRESS}/v1/compute/clusters/{cluster.rpartition('/')[2]}", {"Authorization": "Bearer ht_demo_operator_key"}
    page.wait_for_timeout(20_000)  # until pods run on it
    gpus = page.request.get(api, headers=headers).json()["allocated_preemptible_gpus"]
    nodes = page.request.get(f"{api}/drains/preview?num_gpus={gpus}", headers=headers).json()["nodes"]
    node = max(nodes, key=lambda one: len(one["pods"]))["node_name"]
    sim("lose", node)
    answer = page.request.post(f"{api}/reclaims", headers=headers, data={"nodes": [node]})
    assert answer.status == 202, answer.text()
    page.goto(f"{cluster}/timeline")
    page.get_by_text("timed out").first.wait_for(timeout=400_000)
    page.get_by_text(re.compile("never stopped|killed at the deadline", re.IGNORECASE)).first.wait_for(timeout=60_000)
    page.wait_for_timeout(3000)
    page.screenshot(path=HERE / "timed-out-light.png")


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGUMENTS)
        context = browser.new_context(base_url=ADDRESS)
        context.set_default_timeout(120_000)  # a machine that is busy elsewhere
        page = context.new_page()
        page.set_viewport_size({"width": 1440, "height": 900})
        context.add_cookies([{"name": "halftide_try", "value": "off", "url": ADDRESS}])
        page.goto("/")
        if sys.argv[2:] != ["timed-out"]:
            shoot(page, "sign-in")
        page.get_by_role("button", name="Ada, admin").click()
        page.wait_for_url(f"{ADDRESS}/")
        if sys.argv[2:] == ["timed-out"]:
            page.get_by_role("link", name="aurora-train").first.click()
            page.locator(".figure", has_text="8 allocated of 8 desired").wait_for()
            timed_out(page, page.url)
            return
        stage(page)
        cluster = page.url
        shoot(page, "cluster", wait=300)  # pods end within seconds
        sim("clear")
        if sys.argv[2:] == ["cluster"]:
            return
        over(page, "/", "palette")
        over(page, "?", "keys")
        for name, address in {
            "clusters": "/",
            "nodes": f"{cluster}/nodes",
            "workloads": f"{cluster}/workloads",
            "workload": drained(page, cluster),
            "planner": f"{cluster}/planner?size=3.5&unit=TB&bandwidth=159&slower=10.89",
            "planner-no": f"{cluster}/planner?size=3.5&unit=TB&bandwidth=14.6&step=90",
            "timeline": f"{cluster}/timeline",
            "timeline-hour": an_hour(page, cluster),
            "timeline-filtered": f"{cluster}/timeline?severity=warning&class=preemptible&last=24h",
            "timeline-empty": f"{cluster}/timeline?q=nothing+like+this",
            "timeline-error": f"{cluster}/timeline?from=tomorrow",
            "create": "/clusters/new",
            "search": "/search?q=aurora",
            "capacity": "/capacity",
            "preview": preview_of_two(page, cluster),
            "not-found": "/clusters/00000000-0000-4000-8000-000000000000",
        }.items():
            page.goto(address)
            shoot(page, name)
        context.clear_cookies(name="halftide_try")
        page.goto(cluster)
        page.locator("[data-try] code").evaluate(NO_PATH)
        shoot(page, "try")
        drilled(page, cluster)
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 1440, "height": 900})
        timed_out(page, cluster)
        browser.close()


if __name__ == "__main__":
    main()
