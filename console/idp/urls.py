"""allauth's provider, with one view before it that takes the hint."""

from django.urls import include, path

from console.idp import views

urlpatterns = [
    path("", views.home, name="home"),
    path("sign-in/", views.sign_in, name="account_login"),
    path("identity/o/authorize", views.authorize),
    path("", include("allauth.idp.urls")),
]
