"""The versions of startup scripts. What is kept is never changed: an edit, a restore and an emptying are each a new version."""

import uuid

from django.conf import settings
from django.db import models

from console.clusters.models import Cluster


class Version(models.Model):
    """One save. The newest of a cluster and kind is the script as it is. Empty text: nothing runs."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="script_versions")
    kind = models.CharField(max_length=32)  # a name in scripts.kinds
    number = models.PositiveIntegerField()  # from 1, without gaps
    text = models.TextField()
    size = models.PositiveIntegerField()  # bytes in UTF-8
    sha256 = models.CharField(max_length=64)
    message = models.CharField(max_length=200, blank=True)
    saved_at = models.DateTimeField()
    saved_by = models.CharField(max_length=200)  # as shown: a person's or a key's name
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    restored_from = models.PositiveIntegerField(null=True)
    added = models.PositiveIntegerField()  # lines, against the version before
    removed = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "kind", "number"], name="script_version_once")]
