"""A world, and a receiver on loopback that the setting allows.

Loaded before Django stands, so what needs it is asked for by name.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.utils.module_loading import import_string

from tests.webhooks.receiver import Receiver, receiving


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.WEBHOOK_ALLOW = import_string("console.webhooks.allowed.parse")(["127.0.0.0/8"])
    with receiving() as here:
        yield here


@pytest.fixture
def cluster(db: None) -> Any:
    import_string("tests.pages.world.an_installation")()
    return import_string("tests.webhooks.world.a_cluster")()
