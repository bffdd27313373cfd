"""What the provider is told from outside. Read apart from its settings, which only Django reads."""

from console import env

if not env.boolean("HALFTIDE_DEMO", False):
    raise env.SettingError("The demo's identity provider has public passwords: it runs only with HALFTIDE_DEMO=1.")

PORT = env.port("HALFTIDE_IDP_PORT", 8002)
ISSUER = f"http://127.0.0.1:{PORT}"
CONSOLE_URL = env.url("HALFTIDE_PUBLIC_URL", f"http://127.0.0.1:{env.port('HALFTIDE_PORT', 8000)}").rstrip("/")
CLIENT_SECRET = env.secret("HALFTIDE_OIDC_CLIENT_SECRET", "halftide-demo")
KEY_FILE = env.state_dir() / "idp-key.pem"  # what its tokens are signed with; only its owner may read it
