"""People, what they may, their keys, and the audit trail."""

import uuid

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db import models


class User(AbstractUser):
    """A person. Who they are is issuer + subject (allauth's SocialAccount); e-mail links nothing by itself."""

    fleet_operator = models.BooleanField(default=False)  # may see pools and prices, reclaim and drill, across projects


class Role(models.IntegerChoices):
    """In one project. Higher includes lower."""

    VIEWER = 1, "viewer"
    OPERATOR = 2, "operator"
    ADMIN = 3, "admin"


class Project(models.Model):
    """Who owns clusters, keys and costs. Every query is scoped by it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    name = models.CharField(max_length=80)
    slug = models.SlugField(unique=True, max_length=63)


class GroupRule(models.Model):
    """A group of one identity provider gives a role in a project, or fleet operator. Exact match."""

    provider_id = models.CharField(max_length=200)  # allauth's SocialApp.provider_id
    group = models.CharField(max_length=200)
    project = models.ForeignKey(Project, null=True, on_delete=models.CASCADE)  # None: every project
    role = models.PositiveSmallIntegerField(choices=Role, null=True)
    fleet_operator = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["provider_id", "group", "project", "role"], name="group_rule_once", nulls_distinct=False
            )
        ]


class Grant(models.Model):
    """A role in a project, or fleet operator, and where it came from: a group (removed with it) or a person (stays)."""

    class Source(models.TextChoices):
        GROUP = "group"
        PERSON = "person"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="grants")
    project = models.ForeignKey(Project, null=True, on_delete=models.CASCADE, related_name="grants")  # None: every project
    role = models.PositiveSmallIntegerField(choices=Role, null=True)  # None: only fleet operator
    fleet_operator = models.BooleanField(default=False)
    source = models.CharField(max_length=8, choices=Source)
    provider_id = models.CharField(max_length=200, blank=True)
    origin = models.CharField(max_length=200, blank=True)  # the group's name, or who granted it
    granted_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "project", "role", "fleet_operator", "source", "provider_id", "origin"],
                name="grant_once",
                nulls_distinct=False,
            )
        ]


class SignIn(models.Model):
    """One browser session that an identity provider vouches for. The provider is asked again at `due_at` (DESIGN 8).

    The tokens are encrypted: the refresh token acts for the person, the ID token is only the hint of the sign-out.
    """

    session_key = models.CharField(max_length=40, unique=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sign_ins")
    provider_id = models.CharField(max_length=200)
    subject = models.CharField(max_length=255)
    refresh_token = models.TextField(blank=True)
    id_token = models.TextField(blank=True)
    started_at = models.DateTimeField()
    checked_at = models.DateTimeField()  # when the provider last vouched for it
    due_at = models.DateTimeField(null=True)  # None: the provider gave no refresh token, so it ends at its absolute limit
    unreachable_since = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["due_at"], name="sign_in_due")]


class ApiKey(models.Model):
    """Shown once, stored hashed, scoped to a project, never more than its owner may now."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="keys")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="keys")
    name = models.CharField(max_length=80)
    role = models.PositiveSmallIntegerField(choices=Role)  # at most
    fingerprint = models.CharField(
        max_length=64, unique=True
    )  # SHA-256 of the key: keys are long and random, so no salt is needed
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)  # written at most once a minute
    revoked_at = models.DateTimeField(null=True)


class AuditRow(models.Model):
    """Who changed what, from where, with the values before and after. Never updated."""

    at = models.DateTimeField()
    actor = models.CharField(max_length=200)  # as shown: user name, key name, or "Halftide"
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    key = models.ForeignKey(ApiKey, null=True, on_delete=models.SET_NULL)
    address = models.GenericIPAddressField(null=True)
    action = models.CharField(max_length=64)  # "cluster.target.set"
    subject = models.CharField(max_length=200)
    project = models.ForeignKey(Project, null=True, on_delete=models.SET_NULL)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)

    class Meta:
        indexes = [models.Index(fields=["-at"], name="audit_at")]
