"""Signing in and out. Of allauth's addresses only the two of a sign-in are mounted."""

from django.urls import path

from console.accounts import views
from console.accounts.oidc import views as oidc

urlpatterns = [
    path("sign-in/", views.sign_in, name="sign_in"),
    path("sign-out/", views.sign_out, name="sign_out"),
    path("signed-out/", views.signed_out, name="signed_out"),
    # The names are those allauth's provider looks up.
    path("oidc/<str:provider_id>/login/", oidc.begin, name="openid_connect_login"),
    path("oidc/<str:provider_id>/login/callback/", oidc.finish, name="openid_connect_callback"),
]
