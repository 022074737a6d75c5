"""The API in OpenAPI's words, for clients that are made from it, and for tests."""

from importlib import metadata
from typing import Any

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string", "example": "the old woman sleeps"}
_TEXTS: Schema = {"oneOf": [_TEXT, {"type": "array", "items": _TEXT}]}
_CODE: Schema = {"type": "string", "minLength": 1, "example": "en"}
_KEY: Schema = {"type": "string", "description": "Where the server was started with --api-key."}
_ERROR: Schema = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
_DETECTED: Schema = {
    "type": "object",
    "properties": {"language": _CODE, "confidence": {"type": "number", "minimum": 0, "maximum": 100}},
    "required": ["language", "confidence"],
}


def openapi(file_formats: list[str]) -> Schema:
    """The whole document."""
    return {
        "openapi": "3.0.3",
        "info": {"title": "tfm, with LibreTranslate's API", "version": metadata.version("tfm")},
        "paths": {
            "/translate": {"post": _post("Translate text or HTML.", _translate_body(), _translate_answer())},
            "/detect": {
                "post": _post(
                    "Which of the source languages a text is in.",
                    _body({"q": _TEXTS, "api_key": _KEY}, ["q"]),
                    {"type": "array", "items": _DETECTED},
                )
            },
            "/languages": {"get": _get("The languages, and what each is translated to.", _languages_answer())},
            "/translate_file": {
                "post": _post(
                    f"Translate a file ({' '.join(file_formats)}): what is empty in it is filled in.",
                    _file_body(),
                    {
                        "type": "object",
                        "properties": {"translatedFileUrl": {"type": "string"}},
                        "required": ["translatedFileUrl"],
                    },
                )
            },
            "/frontend/settings": {"get": _get("What the server offers.", {"type": "object"})},
            "/health": {"get": _get("Whether the server answers.", {"type": "object"})},
        },
    }


def _translate_body() -> Schema:
    fields = {
        "q": _TEXTS,
        "source": {**_CODE, "description": "Or auto."},
        "target": {**_CODE, "example": "de"},
        "format": {"type": "string", "enum": ["text", "html"], "default": "text"},
        "alternatives": {"type": "integer", "minimum": 0, "default": 0},
        "api_key": _KEY,
    }
    return _body(fields, ["q", "source", "target"])


def _translate_answer() -> Schema:
    alternatives = {"oneOf": [{"type": "array", "items": _TEXT}, {"type": "array", "items": {"type": "array"}}]}
    return {
        "type": "object",
        "properties": {
            "translatedText": _TEXTS,
            "alternatives": alternatives,
            "detectedLanguage": {"oneOf": [_DETECTED, {"type": "array", "items": _DETECTED}]},
        },
        "required": ["translatedText"],
    }


def _languages_answer() -> Schema:
    fields = {"code": _CODE, "name": {"type": "string"}, "targets": {"type": "array", "items": _CODE}}
    return {"type": "array", "items": {"type": "object", "properties": fields, "required": list(fields)}}


def _body(fields: Schema, required: list[str]) -> Schema:
    schema = {"type": "object", "properties": fields, "required": required}
    return {"application/json": {"schema": schema}, "application/x-www-form-urlencoded": {"schema": schema}}


def _file_body() -> Schema:
    fields = {"file": {"type": "string", "format": "binary"}, "source": _CODE, "target": _CODE, "api_key": _KEY}
    return {
        "multipart/form-data": {
            "schema": {"type": "object", "properties": fields, "required": ["file", "source", "target"]}
        }
    }


def _get(summary: str, answer: Schema) -> Schema:
    return {"summary": summary, "responses": {"200": _answer("OK", answer)}}


def _post(summary: str, body: Schema, answer: Schema) -> Schema:
    errors = {
        "400": "Invalid request",
        "403": "Invalid API key",
        "413": "The request is too long",
        "429": "The server is busy",
        "500": "Internal error",
        "504": "It took too long",
    }
    responses = {"200": _answer("OK", answer)} | {code: _answer(what, _ERROR) for code, what in errors.items()}
    return {"summary": summary, "requestBody": {"required": True, "content": body}, "responses": responses}


def _answer(what: str, schema: Schema) -> Schema:
    return {"description": what, "content": {"application/json": {"schema": schema}}}
