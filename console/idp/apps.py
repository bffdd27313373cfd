from django.apps import AppConfig


class Config(AppConfig):
    name = "console.idp"
    label = "demo_idp"
