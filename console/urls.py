"""Which room answers which address."""

from django.urls import include, path

urlpatterns = [
    path("", include("console.accounts.urls")),
    path("", include("console.api.urls")),
    path("", include("console.pages.urls")),
]

handler500 = "console.http.broken"
