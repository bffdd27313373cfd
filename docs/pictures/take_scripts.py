"""Takes the pictures of the startup-script page of a running `make up`: `.venv/bin/python docs/pictures/take_scripts.py`.

The address may be given, as in `take.py`.
Two people write one script: first findings in the margin, then a conflict, then a session that ends and a draft that comes back.
"""

import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

HERE = Path(__file__).parent
ADDRESS = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
SIZES = {"light": (1440, 1100), "dark": (1440, 1100), "375": (375, 812)}
FIRST = """#!/bin/bash
# Runs on each new node before pods may: exit 0 lets them in.
set -euo pipefail

CACHE=/mnt/nvme/models
MIRROR="http://mirror.internal.example/models"

nvidia-smi -pm 1
nvidia-smi --query-gpu=index,ecc.errors.uncorrected.volatile.total \\
\t--format=csv,noheader | tee /var/log/halftide-gpus.csv

# Striped scratch over the local disks
disks="/dev/nvme0n1 /dev/nvme1n1"
mdadm --create /dev/md0 --level=0 --raid-devices=2 $disks
mkfs.xfs -f /dev/md0
mount --mkdir /dev/md0 /mnt/nvme

mkdir -p "$CACHE"
for model in base-7b tokenizer; do
\tcurl --fail --silent --retry 5 "$MIRROR/$model.tar" | tar -x -C "$CACHE"
done
echo "scratch ready on $(hostname)"
"""
SECOND = FIRST.replace("http://mirror.internal.example", "https://mirror.internal.example")
THIRD = SECOND.replace('disks="/dev/nvme0n1 /dev/nvme1n1"', "disks=$(ls /dev/nvme*n1)").replace(
    "=2 $disks", "=$(echo $disks | wc -w) $disks"
)


def shoot(page: Page, name: str, looks: tuple[str, ...] = ("light", "dark", "375")) -> None:
    for look in looks:
        width, height = SIZES[look]
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if look == "dark" else "light", reduced_motion="reduce")
        page.evaluate("window.scrollTo(0, 0)")
        page.wait_for_timeout(800)
        page.screenshot(path=HERE / f"{name}-{look}.png")


def person(browser: Browser, name: str) -> Page:
    context = browser.new_context(base_url=ADDRESS, viewport={"width": 1440, "height": 1100})
    context.set_default_timeout(60_000)
    page = context.new_page()
    sign_in(page, name)
    page.get_by_role("link", name="aurora-train").first.click()
    page.get_by_role("link", name="Startup scripts").click()
    return page


def sign_in(page: Page, name: str) -> None:
    page.goto("/")
    page.get_by_role("button", name=name).click()
    page.wait_for_url(f"{ADDRESS}/")


def write(page: Page, text: str) -> None:
    page.locator(".ace_text-input").wait_for(state="attached")
    page.evaluate("text => ace.edit(document.querySelector('.ace_editor')).setValue(text, -1)", text)


def save(page: Page, text: str, message: str) -> None:
    write(page, text)
    page.fill("#script-message", message)
    page.keyboard.press("Control+s")
    page.get_by_text("Saved as v").wait_for()


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGUMENTS)
        ada, olu = person(browser, "Ada, admin"), person(browser, "Olu, operator")
        shoot(ada, "script-empty", ("light",))
        save(ada, FIRST, "Scratch and models")
        olu.reload()
        save(olu, SECOND, "Mirror moved")
        ada.reload()
        write(ada, THIRD)
        ada.locator(".ace_gutter-cell.ace_warning").first.wait_for()
        ada.wait_for_timeout(1500)
        shoot(ada, "script")
        write(olu, SECOND.replace("-pm 1", "--persistence-mode=1").replace("--raid-devices=2", "--raid-devices=4"))
        ada.set_viewport_size({"width": 1440, "height": 1100})
        ada.fill("#script-message", "Use every local disk")
        ada.keyboard.press("Control+s")
        ada.get_by_text("Saved as v").wait_for()
        olu.keyboard.press("Control+s")
        olu.locator("#clash").wait_for()
        shoot(olu, "script-conflict")
        olu.context.clear_cookies()
        olu.keyboard.press("Control+s")
        olu.get_by_text("You are signed out").wait_for()
        shoot(olu, "script-signed-out", ("light",))
        script = olu.url
        sign_in(olu, "Olu, operator")
        olu.goto(script)
        olu.get_by_text("Restored: what you wrote").wait_for()
        olu.wait_for_timeout(1500)
        shoot(olu, "script-restored")
        browser.close()


if __name__ == "__main__":
    main()
