"""The provider's own pages: sign in, and where one lands without the console having sent one."""

from allauth.idp.oidc.views import authorization
from django.conf import settings
from django.contrib.auth import authenticate, get_user_model, login, logout
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_safe

from console.idp import environment
from console.idp.people import PASSWORD, PEOPLE

BACKEND = "django.contrib.auth.backends.ModelBackend"


@csrf_exempt  # the provider's authorization view checks by itself where it must
def authorize(request: HttpRequest) -> HttpResponseBase:
    """A hint that names one of the demo's people signs that person in at once: the console's button is the one click.

    Any real provider asks for more; the rest of the flow (code, token, signature) is the same.
    """
    hint = request.GET.get("login_hint", "")
    if hint and request.user.get_username() != hint:
        person = get_user_model().objects.filter(username=hint, username__in=[known.username for known in PEOPLE]).first()
        if person is not None:
            logout(request)  # another person's session in this browser ends first
            login(request, person, backend=BACKEND)
    response: HttpResponseBase = authorization(request)
    return response


@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """By name and password, for whoever comes without a hint."""
    after = request.POST.get("next") or request.GET.get("next") or ""
    after = after if url_has_allowed_host_and_scheme(after, allowed_hosts=None) else settings.LOGIN_REDIRECT_URL
    username = request.POST.get("username", "")
    if request.method == "POST":
        user = authenticate(request, username=username, password=request.POST.get("password", ""))
        if user is not None:
            login(request, user)
            return HttpResponseRedirect(after)
    refused = request.method == "POST"
    found = {"people": PEOPLE, "password": PASSWORD, "next": after, "username": username, "refused": refused}
    return render(request, "idp/sign_in.html", found, status=400 if refused else 200)


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    return render(request, "idp/home.html", {"console": environment.CONSOLE_URL})
