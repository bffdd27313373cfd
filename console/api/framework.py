"""django-ninja, set to our rules: bodies that are objects, our sentences for every refusal, documents that name the key.

The client's addresses are at the root and carry their version each, so the API is mounted there, without the library's root view.
"""

import json
from typing import Any, NoReturn

from django.conf import settings
from django.http import HttpRequest
from ninja import NinjaAPI
from ninja.errors import ValidationError, ValidationErrorContext
from ninja.openapi.docs import Swagger
from ninja.openapi.schema import OpenAPISchema
from ninja.parser import Parser

from console.api.errors import HANDLERS
from console.http import BadInput


class ObjectParser(Parser):
    """A body is one JSON object in UTF-8; an empty one never comes here and counts as {}."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        try:
            found = json.loads(request.body.decode(), parse_constant=_no_number)
        except (ValueError, RecursionError):
            raise BadInput("The body is not JSON in UTF-8.", code="not_json") from None
        if not isinstance(found, dict):
            raise BadInput('The body is a JSON object, such as {"num_preemptible_gpus": 64}.', code="not_an_object")
        return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)  # NaN and Infinity are no JSON


class Documents(Swagger):
    """The library's page with a language, a title and our icon. Its script and styles are static files of ours."""

    # What it shows where the library is no installed application.
    template_cdn = str(settings.BASE_DIR / "templates" / "api" / "docs.html")


class HalftideAPI(NinjaAPI):
    def get_root_path(self, path_params: dict[str, Any]) -> str:  # noqa: ARG002  (the library's shape)
        return "/"

    def validation_error_from_error_contexts(self, error_contexts: list[ValidationErrorContext[Any]]) -> ValidationError:
        """Keeps what was sent and the names that would do, which the sentence needs and the library drops."""
        return ValidationError(
            [
                {**error, "known": _fields(context.model)}
                for context in error_contexts
                for error in context.pydantic_validation_error.errors(include_url=False)
            ]
        )

    def get_openapi_schema(self, **how: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**how)
        schema["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
        return schema


def _fields(model: Any) -> list[str]:
    """The fields of the body's model, which stands alone inside the library's own."""
    inner = getattr(model, "__read_from_single_attr__", None)
    return list(model.model_fields[inner].annotation.model_fields) if inner else []


api = HalftideAPI(
    title="Halftide",
    version="1",
    description=(
        "Preemptible GPU targets for Kubernetes clusters, in the shapes that the published `together` client speaks. "
        "Send an API key of a project, or a token of your identity provider, as `Authorization: Bearer …`."
    ),
    urls_namespace="api",
    openapi_url="/api/openapi.json",
    docs_url="/api/docs",
    # The validator's badge would be fetched from another site.
    docs=Documents({"validatorUrl": None, "defaultModelsExpandDepth": 0}),
    parser=ObjectParser(),
    openapi_extra={"security": [{"bearer": []}]},
)

for kind, handler in HANDLERS.items():
    api.add_exception_handler(kind, handler)
