"""What a server offers, and the limits that it keeps to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from elmokit.elmo import BUILTIN
from elmokit.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class ServerLimits:
    """Limits that keep a server responsive, whatever its clients send."""

    body_bytes: int = 8 << 20
    """Size of a request body; a larger one is answered with 413."""
    texts: int = 2048
    """Texts per request of `/v1/embeddings`; more are answered with 422, as OpenAI's limit."""
    sentences: int = 256
    """Sentences per request of all else; more are answered with 422."""
    text_characters: int = 100_000
    """Characters per text of `/v1/embeddings` and of tasks; more are answered with 422."""
    sentence_characters: int = 20_000
    """Characters per sentence of all else; more are answered with 422."""
    sentence_words: int = 2000
    """Words per sentence that is given as a list of words; more are answered with 422."""
    words: int = 50_000
    """Words per request; more are answered with 422."""
    numbers: int = 5_000_000
    """Numbers in the answer of `/v1/words`; more are answered with 422."""
    queue: int = 1024
    """Requests that wait or are computed at one time; a further one is answered with 429."""
    batch_words: int = 8192
    """Words that are gathered into one batch."""
    batch_seconds: float = 0.002
    """How long the first request of a batch waits for others, if nothing is being computed."""
    request_seconds: float = 60.0
    """Time until a request is answered with 503."""
    header_seconds: float = 10.0
    """Time in which a client has to send the head of a request; then the connection is closed."""
    body_seconds: float = 30.0
    """Time in which a client has to send the body of a request; then it is answered with 408."""
    send_seconds: float = 30.0
    """Time for which a client may stop reading its answer; then the connection is closed."""
    keep_alive_seconds: float = 30.0
    """Time after which an idle connection is closed."""
    drain_seconds: float = 60.0
    """Time to finish accepted requests after SIGTERM."""
    connections: int = 2000
    """Connections at one time; further ones are closed."""

    def __post_init__(self) -> None:
        """Raise `ConfigError` unless all limits are positive."""
        for name, value in vars(self).items():
            if value < 0 or (value == 0 and name != "batch_seconds"):
                raise ConfigError(f"the limit {name} is {value}; expected a positive number")


@dataclass(frozen=True, kw_only=True)
class ServeConfig:
    """What a server offers: models, task models and indexes by name, who may use it, and limits."""

    models: Mapping[str, str | Path] = field(default_factory=lambda: {BUILTIN: BUILTIN})
    """Paths or names of models, by the name under which they are served."""
    tasks: Mapping[str, str | Path] = field(default_factory=dict)
    """Directories of trained task models, by the name under which they are served."""
    indexes: Mapping[str, str | Path] = field(default_factory=dict)
    """Directories of indexes for `/v1/neighbors`, by the name under which they are served."""
    dtype: str = "float32"
    """Arithmetic of the models: `"float32"`, `"bfloat16"` or `"int8"`."""
    state: str = "settled"
    """Initial state of every sentence: `"settled"` or `"zero"`."""
    threads: int | None = None
    """Threads per model; by default as many as the process may use."""
    preload: bool = False
    """Load everything at the start instead of at the first request."""
    max_memory: int | None = None
    """Bytes that loaded models may take; beyond it the least recently used are unloaded."""
    api_keys: Sequence[str] = ()
    """Keys of which a client has to send one; without any, every client is answered."""
    cors_origins: Sequence[str] = ()
    """Origins whose pages may call the server from a browser."""
    hosts: Sequence[str] = ()
    """Names in the `Host` header that are answered; by default all."""
    limits: ServerLimits = field(default_factory=ServerLimits)
    """Limits of sizes and times."""

    def __post_init__(self) -> None:
        """Raise `ConfigError` if there is nothing to serve, or an option is out of range."""
        if not self.models:
            raise ConfigError("there are no models; expected at least one, such as builtin")
        if self.state not in ("settled", "zero"):
            raise ConfigError(
                f"state is {self.state!r}; expected 'settled' or 'zero': with 'carry', an answer "
                "would depend on the requests before it"
            )
        if any(not key for key in self.api_keys):
            raise ConfigError("an API key is empty; expected at least one character")
        if self.max_memory is not None and self.max_memory <= 0:
            raise ConfigError(f"max_memory is {self.max_memory}; expected a positive number")
