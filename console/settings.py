"""The one settings file. Each value from outside is read by a typed reader that refuses nonsense (`console.env`)."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from wsgiref.headers import Headers

import plotly
from kombu.entity import Queue
from psycopg.conninfo import conninfo_to_dict

from console import env
from console.accounts import environment
from console.pages.shipped import version_of
from console.webhooks import allowed

BASE_DIR = Path(__file__).resolve().parent.parent
STATE_DIR = env.state_dir()

DEMO = env.boolean("HALFTIDE_DEMO", False)
DEBUG = env.boolean("HALFTIDE_DEBUG", False)
SECRET_KEY = env.secret("HALFTIDE_SECRET_KEY")
# Kubeconfigs are encrypted with this; changing it makes them unreadable, so it has a name of its own.
ENCRYPTION_KEY = env.secret("HALFTIDE_ENCRYPTION_KEY", SECRET_KEY)

PORT = env.port("HALFTIDE_PORT", 8000)
SIM_PORT = env.port("HALFTIDE_SIM_PORT", 8001)
IDP_PORT = env.port("HALFTIDE_IDP_PORT", 8002)
PUBLIC_URL = env.url("HALFTIDE_PUBLIC_URL", f"http://127.0.0.1:{PORT}").rstrip("/")
if urlsplit(PUBLIC_URL).path:
    raise env.SettingError("HALFTIDE_PUBLIC_URL is a host of its own, without a path: a proxy cannot put Halftide below one.")
PUBLIC_HOST = urlsplit(PUBLIC_URL).netloc
HTTPS = PUBLIC_URL.startswith("https://")
# Behind a proxy that ends TLS a form comes over plain http and says that it is from https: it is ours all the same.
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
ALLOWED_HOSTS = list(env.words("HALFTIDE_ALLOWED_HOSTS", (urlsplit(PUBLIC_URL).hostname or "", "127.0.0.1", "localhost")))

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_ace",
    "django_htmx",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "console.accounts",
    "console.timeline",
    "console.clusters",
    "console.scripts",
    "console.webhooks",
    "console.capacity",
    "console.workloads",
    "console.sync",
    "console.feed",
    "console.pages",
    "console.api",
    "console.demo",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "console.pages.measures.TimingMiddleware",
    "console.http.RequestIdMiddleware",
    "django.middleware.gzip.GZipMiddleware",  # pads each answer by chance and masks each token, against guessing by length
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "console.http.ErrorMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "console.accounts.middleware.AccessMiddleware",
]

ROOT_URLCONF = "console.urls"
ASGI_APPLICATION = "console.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "console.pages.context.shell",
            ]
        },
    }
]


FROZEN_SECONDS = 10


def database(url: str) -> dict[str, object]:
    """A PostgreSQL address in TCP or socket form (`postgresql://user@/name?host=/folder`) as Django wants it."""
    parts = {key: str(value) for key, value in conninfo_to_dict(url).items()}
    known = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    found: dict[str, object] = {django: parts.pop(libpq) for libpq, django in known.items() if libpq in parts}
    # A process that is frozen in the middle of a transaction would keep its row locks for ever, and everybody else out.
    # None of ours waits for anything while one is open (DESIGN 4), so the server may end those that do.
    options: dict[str, object] = {"options": f"-c idle_in_transaction_session_timeout={FROZEN_SECONDS}s", **parts}
    pool = env.integer("HALFTIDE_DB_POOL", 0, 0, 64)  # connections kept by one process; 0 opens one per request
    if pool:
        options["pool"] = {"min_size": 1, "max_size": pool, "timeout": 10}
    return {"ENGINE": "console.database", "CONN_HEALTH_CHECKS": True, "OPTIONS": options, **found}


DATABASES = {"default": database(env.url("DATABASE_URL", schemes=("postgresql", "postgres")))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.url("REDIS_URL", schemes=("redis", "rediss", "unix"))


def broker(url: str) -> str:
    """Celery writes a socket address its own way: `redis+socket:///path?virtual_host=0`."""
    parts = urlsplit(url)
    if parts.scheme != "unix":
        return url
    return f"redis+socket://{parts.path}?virtual_host={parse_qs(parts.query).get('db', ['0'])[0]}"


CELERY_BROKER_URL = broker(REDIS_URL)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_TIME_LIMIT = 20  # seconds; long work is cut into steps that fit (DESIGN 4)
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 2  # seconds a stopping worker gives to running tasks; what is cut off is delivered again
CELERY_TASK_QUEUES = [Queue("drains"), Queue("urgent"), Queue("default"), Queue("bulk")]
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False  # workers log as everything else does
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 30,
    "unacked_restore_interval": 5,
    "unacked_restore_throttle": 1,
    "queue_order_strategy": "priority",  # a worker's queues in the order they are given to it, not in turns
    "socket_timeout": 5,
    "socket_connect_timeout": 0.5,
    "socket_keepalive": True,
    "health_check_interval": 10,
}
# A request that tries to wake a worker waits half a second at most: the row is the wake-up, the queue only a hint.
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TIMEZONE = "UTC"

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend", "allauth.account.auth_backends.AuthenticationBackend"]
LOGIN_URL = "/sign-in/"
LOGIN_REDIRECT_URL = "/"

# Sign-in. allauth keeps the accounts; what is checked is ours (`accounts.oidc`). Nobody signs up or in by password.
OIDC_APPS = environment.from_environment() + ([environment.demo(f"http://127.0.0.1:{IDP_PORT}")] if DEMO else [])
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {"APPS": OIDC_APPS, "provider_class": "console.accounts.oidc.provider.Provider"},
}
SOCIALACCOUNT_ONLY = True
SOCIALACCOUNT_ADAPTER = "console.accounts.adapters.SocialAdapter"
SOCIALACCOUNT_UID_MAX_LENGTH = 512  # issuer and subject together
SOCIALACCOUNT_EMAIL_REQUIRED = False
SOCIALACCOUNT_REQUESTS_TIMEOUT = 5  # seconds
ACCOUNT_ADAPTER = "console.accounts.adapters.AccountAdapter"
ACCOUNT_EMAIL_VERIFICATION = "none"
REVALIDATE_EVERY = env.integer("HALFTIDE_REVALIDATE_SECONDS", 900, 10, 43200)  # how often a provider is asked about a session

# Cookies ignore ports, so the demo's identity provider on the same host uses other names (`halftide_idp_*`).
SESSION_COOKIE_NAME = "halftide_session"
CSRF_COOKIE_NAME = "halftide_csrf"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_AGE = env.integer("HALFTIDE_SESSION_HOURS", 12, 1, 72) * 3600  # absolute
SESSION_COOKIE_SAMESITE = "Lax"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

PLOTLY_FILES = Path(plotly.__file__).parent / "package_data"
STATICFILES_DIRS = [BASE_DIR / "static"]
# What brings static files besides ours.
STATIC_PACKAGES = ("django-ace", "django-allauth", "django-htmx", "django-ninja", "plotly")
STATIC_VERSION = version_of(BASE_DIR / "static", STATIC_PACKAGES)
STATIC_URL = f"/static/{STATIC_VERSION}/"
STATICFILES_FINDERS = [
    "console.pages.pressed.PressedFinder",
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "console.pages.plotly.PlotlyFinder",
]


def keep_for_ever(headers: Headers, _path: str, _url: str) -> None:
    """What stands under a version never changes."""
    headers["Cache-Control"] = "public, max-age=31536000, immutable"


SERVESTATIC_USE_FINDERS = True  # found once, at the start
SERVESTATIC_ALLOW_ALL_ORIGINS = False
SERVESTATIC_ADD_HEADERS_FUNCTION = keep_for_ever

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:", "blob:"],
        "connect-src": ["'self'"],
        "font-src": ["'self'"],
        "base-uri": ["'none'"],
        # Chromium checks redirects after a form too, so the providers' origins must be here.
        "form-action": ["'self'", *environment.origins(OIDC_APPS)],
        "frame-ancestors": ["'none'"],
    }
}

# The engine's own figures (DESIGN 6), shortened by tests.
DRAIN_WINDOW = env.integer("HALFTIDE_DRAIN_WINDOW", 300, 5, 300)  # seconds from notice to removal
GIVE_UP_AFTER = env.integer("HALFTIDE_GIVE_UP_AFTER", 900, 10, 7200)  # seconds from launch to a Ready node
RETENTION_DAYS = env.integer("HALFTIDE_RETENTION_DAYS", 90, 1, 3650)  # how long the timeline keeps an entry
WATCH_POD_EVENTS = env.text("HALFTIDE_POD_EVENTS", "warnings")  # none | warnings | all
KUBECONFIG_COMMANDS = frozenset(env.words("HALFTIDE_KUBECONFIG_COMMANDS"))  # exec plugins that may be run
SIM_URL = env.url("HALFTIDE_SIM_URL", f"http://127.0.0.1:{SIM_PORT}")
WEBHOOK_ALLOW = allowed.parse(env.words("HALFTIDE_WEBHOOK_ALLOW"))  # reached beside public addresses
QUOTA_GPUS = env.integer("HALFTIDE_QUOTA_GPUS", 512, 8, 1_000_000)  # preemptible GPUs a project may ask for in all

# Who may read /metrics from elsewhere; without it, this machine only.
METRICS_TOKEN = env.secret("HALFTIDE_METRICS_TOKEN", "")

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "console.logs.JsonFormatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    # Each would write a line for every request or for every sweep, which comes each second.
    "loggers": {
        name: {"level": "WARNING"}
        for name in ("httpx", "httpx2", "celery.worker.strategy", "celery.app.trace", "celery.beat", "celery.worker.state")
    },
    "root": {"handlers": ["stderr"], "level": env.text("HALFTIDE_LOG_LEVEL", "INFO")},
}
