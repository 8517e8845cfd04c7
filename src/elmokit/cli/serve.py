"""`elmo serve`: vectors over HTTP, and a page to play with."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import click

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)I?B?", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


class _Size(click.ParamType[int]):
    """A number of bytes, such as 2GB."""

    name = "size"

    def convert(
        self, value: str | int, param: click.Parameter | None, context: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        match = _SIZE.fullmatch(value.strip())
        if match is None or not float(match[1]):
            self.fail(f"{value!r} is not a size; expected one such as 500MB or 2GB", param, context)
        return int(float(match[1]) * 1024 ** _POWERS[match[2].upper()])


SIZE = _Size()


@click.command("serve", short_help="Serve vectors over HTTP, and a page to play with.")
@click.option(
    "-m",
    "--model",
    "models",
    multiple=True,
    metavar="[NAME=]MODEL",
    show_default="builtin",
    help="Path or name of a model, and the name to serve it under; may be repeated.",
)
@click.option(
    "--task",
    "tasks",
    multiple=True,
    metavar="[NAME=]DIR",
    help="Directory of a trained task model; may be repeated.",
)
@click.option(
    "--index",
    "indexes",
    multiple=True,
    metavar="[NAME=]DIR",
    help="Directory of an index that `elmo neighbors` made; may be repeated.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port to listen on; 0 for a free one.",
)
@click.option(
    "--allow-remote",
    is_flag=True,
    help="Let other machines connect; needs --host and an API key.",
)
@click.option(
    "--api-key",
    "keys",
    multiple=True,
    metavar="KEY",
    help="Key that clients have to send; may be repeated. Other users of this machine can see it "
    "on the command line: better set the environment variable ELMO_API_KEY, or use --api-key-file.",
)
@click.option(
    "--api-key-file",
    "key_files",
    multiple=True,
    metavar="FILE",
    help="File of API keys, one per line.",
)
@click.option(
    "--cors-origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="Origin whose pages may call the server, such as https://example.org; may be repeated.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Further name under which the server is reached, such as that of a proxy.",
)
@click.option("--preload", is_flag=True, help="Load everything at the start, not at first use.")
@click.option(
    "--max-memory",
    type=SIZE,
    metavar="SIZE",
    show_default="no bound",
    help="Memory that models may take, such as 2GB; the least recently used are unloaded.",
)
@click.option(
    "--dtype",
    type=click.Choice(["float32", "bfloat16", "int8"]),
    default="float32",
    show_default=True,
    help="Arithmetic of the network; bfloat16 and int8 are faster and less exact.",
)
@click.option(
    "--threads", type=click.IntRange(min=1), show_default="all cores", help="Number of threads."
)
@click.option(
    "--max-body",
    type=SIZE,
    default="8MB",
    show_default=True,
    metavar="SIZE",
    help="Largest request body.",
)
@click.option(
    "--max-queue",
    type=click.IntRange(min=1),
    default=1024,
    show_default=True,
    help="Requests that may be under way at one time; further ones are told to try again.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time after which a request is given up.",
)
@click.option(
    "--log",
    type=click.Choice(["json", "text", "none"]),
    show_default="text on a terminal, else json",
    help="How to log to stderr. Texts are never logged.",
)
@click.option(
    "--static",
    metavar="DIR",
    help="Write the page with its model to DIR, for any static host, instead of serving.",
)
@click.option(
    "--runtime",
    metavar="DIR",
    show_default="node_modules/onnxruntime-web",
    help="Directory of the npm package onnxruntime-web, for --static.",
)
def command(
    models: tuple[str, ...],
    tasks: tuple[str, ...],
    indexes: tuple[str, ...],
    host: str,
    port: int,
    allow_remote: bool,
    keys: tuple[str, ...],
    key_files: tuple[str, ...],
    origins: tuple[str, ...],
    hosts: tuple[str, ...],
    preload: bool,
    max_memory: int | None,
    dtype: str,
    threads: int | None,
    max_body: int,
    max_queue: int,
    timeout: float,
    log: str | None,
    static: str | None,
    runtime: str | None,
) -> None:
    """Serve vectors over HTTP, as OpenAI's clients ask for them, and a page to play with.

    POST /v1/embeddings returns one vector per text, POST /v1/words one per word; there are also
    /v1/substitutes, /v1/neighbors and /v1/tasks/NAME. GET /openapi.json describes them all. The
    requests of many clients are computed together; the vectors are those of `elmo embed`.

    Only this machine can connect, unless --host and --allow-remote say otherwise. Ctrl-C or SIGTERM
    stop the server after the requests that it has accepted.

    \b
    elmo serve
    elmo serve --model builtin --model news=path/to/model --task ner=path/to/ner
    ELMO_API_KEY=… elmo serve --host 0.0.0.0 --allow-remote
    elmo serve --static site/play

    In Python: `elmokit.serve.run_server` and, for --static, `elmokit.serve.build_static_page`.
    """
    from elmokit.extras import require

    for package in ("starlette", "uvicorn", "httptools", "orjson"):
        require(package, "Servers")

    if static is not None:
        _write_static_page(static, models, runtime)
        return
    if runtime is not None:
        raise click.UsageError("--runtime is for --static")

    from elmokit.serve.server import is_loopback, run_server
    from elmokit.serve.settings import ServeConfig, ServerLimits

    config = ServeConfig(
        models=_by_name(models or ("builtin",), "--model"),
        tasks=_by_name(tasks, "--task"),
        indexes=_by_name(indexes, "--index"),
        dtype=dtype,
        threads=threads,
        preload=preload,
        max_memory=max_memory,
        api_keys=_collect_keys(keys, key_files),
        cors_origins=origins,
        hosts=hosts,
        limits=ServerLimits(body_bytes=max_body, queue=max_queue, request_seconds=timeout),
    )
    if allow_remote and config.api_keys and not is_loopback(host):
        click.echo(
            f"elmo: warning: {host} can be reached from other machines. Whoever has the API key "
            "can use the server, and what is sent is not encrypted: put a proxy with TLS before it",
            err=True,
        )

    def tell(address: str) -> None:
        click.echo(f"elmokit serves {', '.join(config.models)} at {address} (Ctrl-C stops it)")
        sys.stdout.flush()

    run_server(
        config,
        host=host,
        port=port,
        allow_remote=allow_remote,
        log=log or ("text" if sys.stderr.isatty() else "json"),  # type: ignore[arg-type]
        on_start=tell,
    )


def _write_static_page(directory: str, models: tuple[str, ...], runtime: str | None) -> None:
    from elmokit.serve.static_page import build_static_page

    if len(models) > 1:
        raise click.UsageError("--static writes a page with one model; give --model once")
    (model,) = _by_name(models or ("builtin",), "--model").values()
    files = build_static_page(directory, model=model, runtime=runtime)
    size = sum(file.stat().st_size for file in files) / 1e6
    click.echo(
        f"{directory}: {len(files)} files, {size:.0f} MB. Put them on any static host, or try them "
        f"with: python -m http.server -d {directory}"
    )


def _by_name(values: tuple[str, ...], option: str) -> dict[str, str]:
    """Return the values of `NAME=VALUE` by name; without a name, it is the last part of a path."""
    named: dict[str, str] = {}
    for value in values:
        name, separator, target = value.partition("=")
        if not separator or Path(value).exists():
            target = value
            name = Path(value).resolve().name if Path(value).exists() else value
        if not name or not target:
            raise click.UsageError(f"{option} is {value!r}; expected NAME=PATH")
        if not re.fullmatch(r"[\w.:/@-]{1,100}", name):
            raise click.UsageError(
                f"{option} has the name {name!r}; expected letters, digits and . : / @ _ -"
            )
        if name in named:
            raise click.UsageError(
                f"{option} has the name {name!r} twice; give other names with {option} NAME=PATH"
            )
        named[name] = target
    return named


def _collect_keys(keys: tuple[str, ...], files: tuple[str, ...]) -> list[str]:
    """Return the API keys of the options, the environment and the files."""
    from elmokit.errors import InputError

    found = [*keys, *filter(None, [os.environ.get("ELMO_API_KEY", "").strip()])]
    for file in files:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
        listed = [line.strip() for line in lines if line.strip()]
        if not listed:
            raise InputError(f"{file} has no API key; expected one per line")
        found += listed
    return found
