"""Settings of the demo's identity provider. Its cookies have names of their own: cookies ignore ports."""

from urllib.parse import urlsplit, urlunsplit

from psycopg.conninfo import conninfo_to_dict

from console import env
from console.idp.environment import CONSOLE_URL

SECRET_KEY = env.secret("HALFTIDE_IDP_SECRET_KEY", f"idp-{env.secret('HALFTIDE_SECRET_KEY')}")
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "console.idp.urls"


def beside(url: str) -> str:
    """The same server, another database."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"{parts.path}_idp"))


SERVERS = ("postgresql", "postgres")
DATABASE_URL = (
    env.url("HALFTIDE_IDP_DATABASE_URL", schemes=SERVERS)
    if env.raw("HALFTIDE_IDP_DATABASE_URL")
    else beside(env.url("DATABASE_URL", schemes=SERVERS))
)
_PARTS = {key: str(value) for key, value in conninfo_to_dict(DATABASE_URL).items()}
_NAMES = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "CONN_HEALTH_CHECKS": True,
        **{django: _PARTS[libpq] for libpq, django in _NAMES.items() if libpq in _PARTS},
        "OPTIONS": {key: value for key, value in _PARTS.items() if key not in _NAMES},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.idp.oidc",
    "console.idp",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [env.ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

LOGIN_URL = "/sign-in/"
LOGIN_REDIRECT_URL = "/"
SESSION_COOKIE_NAME = "halftide_idp_session"
CSRF_COOKIE_NAME = "halftide_idp_csrf"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
# Public passwords and one long random client secret: a slow hash would protect nothing and cost half a second a sign-in.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

IDP_OIDC_ADAPTER = "console.idp.adapter.Adapter"
IDP_OIDC_ACCESS_TOKEN_FORMAT = "jwt"  # noqa: S105  (so that the API can verify it as it would any provider's)
IDP_OIDC_RP_INITIATED_LOGOUT_ASKS_FOR_OP_LOGOUT = False
IDP_OIDC_RATE_LIMITS = False
ACCOUNT_RATE_LIMITS = False
ACCOUNT_EMAIL_VERIFICATION = "none"

USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "/static/"
STATICFILES_DIRS = [env.ROOT / "static"]
SERVESTATIC_USE_FINDERS = True

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "base-uri": ["'none'"],
        # The form's answer is a redirect back to the console.
        "form-action": ["'self'", CONSOLE_URL],
        "frame-ancestors": ["'none'"],
    }
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "console.logs.JsonFormatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "loggers": {"httpx": {"level": "WARNING"}},  # it would write a line for every request
    "root": {"handlers": ["stderr"], "level": env.text("HALFTIDE_LOG_LEVEL", "INFO")},
}
