"""Errors in OpenAI's structure."""

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

__all__ = ["BadRequest", "answer_bad_request", "answer_crash", "answer_http_error", "answer_invalid_body"]


class BadRequest(Exception):
    """A request that is refused. `field` is the field of the body that has to change."""

    def __init__(self, message: str, field: str, *, status: int = 400, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.field, self.code = status, field, code


def answer_bad_request(_: Request, error: BadRequest) -> JSONResponse:
    return _build(error.status, str(error), param=error.field, code=error.code)


def answer_invalid_body(_: Request, error: RequestValidationError) -> JSONResponse:
    """Answer 400 with the first problem, as OpenAI does; FastAPI would answer 422."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"][1:]) or "body"
    return _build(400, f"{field}: {first['msg']}", param=field)


def answer_http_error(_: Request, error: HTTPException) -> JSONResponse:
    """Answer unknown paths and methods."""
    return _build(error.status_code, str(error.detail))


def answer_crash(_: Request, error: Exception) -> JSONResponse:
    """Answer 500. The text of the error stays in the log: it can hold what the client sent."""
    return _build(500, f"the model failed: {type(error).__name__}", kind="server_error")


def _build(
    status: int, message: str, *, kind: str = "invalid_request_error", param: str | None = None, code: str | None = None
) -> JSONResponse:
    body = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return JSONResponse(body, status_code=status)
