"""The application of test_serve_tls.py: it answers chats, as a model server does."""

from ray import serve
from starlette.requests import Request
from starlette.responses import JSONResponse


@serve.deployment(ray_actor_options={"num_cpus": 0})
class Echo:
    def __init__(self) -> None:
        self.requests = 0

    async def __call__(self, request: Request) -> JSONResponse:
        if request.method == "GET":
            return JSONResponse({"requests": self.requests})
        self.requests += 1
        return JSONResponse({"endpoint": "ray", "scheme": request.url.scheme, "body": await request.json()})


app = Echo.bind()
