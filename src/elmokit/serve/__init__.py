"""One HTTP server and one page over the public API.

    from elmokit.serve import ServeConfig, run_server

    run_server(ServeConfig(models={"english": "builtin"}), port=8000)

The command `elmo serve` does this. Needs `pip install 'elmokit[serve]'`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from elmokit._exports import lazy_exports

if TYPE_CHECKING:
    from elmokit.serve.app import create_app
    from elmokit.serve.server import run_server
    from elmokit.serve.settings import ServeConfig, ServerLimits
    from elmokit.serve.static_page import build_static_page

__all__ = ["ServeConfig", "ServerLimits", "build_static_page", "create_app", "run_server"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "ServeConfig": "elmokit.serve.settings",
        "ServerLimits": "elmokit.serve.settings",
        "build_static_page": "elmokit.serve.static_page",
        "create_app": "elmokit.serve.app",
        "run_server": "elmokit.serve.server",
    },
)
