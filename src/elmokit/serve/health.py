"""`/healthz`, `/readyz` and `/metrics`: for those who watch the server."""

from __future__ import annotations

from elmokit.serve.errors import ApiError
from elmokit.serve.metrics import CONTENT_TYPE
from elmokit.serve.models import Models
from elmokit.serve.operation import STRING, Answer, Call, Operation, json_answer, object_of


def health_operations(models: Models) -> list[Operation]:
    """Return the operations that tell how the server is."""
    status = object_of({"status": STRING}, ("status",))

    async def be_healthy(call: Call) -> Answer:
        return json_answer({"status": "ok"})

    async def be_ready(call: Call) -> Answer:
        if models.draining or not models.ready:
            state = "stopping" if models.draining else "loading models"
            raise ApiError(503, f"the server is {state}", code="not_ready")
        return json_answer({"status": "ready"})

    async def show_metrics(call: Call) -> Answer:
        return Answer(models.metrics.render().encode(), CONTENT_TYPE)

    return [
        Operation(
            method="GET",
            path="/healthz",
            name="health",
            summary="Tell that the server runs.",
            handler=be_healthy,
            response=status,
            open=True,
        ),
        Operation(
            method="GET",
            path="/readyz",
            name="readiness",
            summary="Tell whether the server takes requests.",
            handler=be_ready,
            response=status,
            errors=(503,),
            open=True,
        ),
        Operation(
            method="GET",
            path="/metrics",
            name="metrics",
            summary="Return counters and times in Prometheus' text format.",
            handler=show_metrics,
            content={"text/plain": {"type": "string"}},
        ),
    ]
