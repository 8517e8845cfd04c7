# elmo serve in a container: not as root, and with a file system that may be read-only.
#
#   docker build -t elmokit .
#   docker run --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges \
#     -p 127.0.0.1:8000:8000 -e ELMO_API_KEY=… elmokit
#
# Models, task models and indexes are mounted (-v …:/models:ro) and named after the image:
#   … elmokit --model builtin --model news=/models/news
FROM python:3.12-slim-bookworm AS build

RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++=4:12.2.0-3 \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY CMakeLists.txt LICENSE LICENSE-MODEL README.md pyproject.toml ./
COPY src ./src
RUN python -m venv /opt/elmokit \
    && /opt/elmokit/bin/pip install --no-cache-dir '.[serve,parquet]'

FROM python:3.12-slim-bookworm

COPY --from=build /opt/elmokit /opt/elmokit
RUN useradd --system --uid 10001 --no-create-home --home-dir /nonexistent elmo
ENV PATH=/opt/elmokit/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    ELMOKIT_CACHE=/tmp/elmokit
USER 10001:10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD \
    ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/readyz', timeout=2)"]
# Without ELMO_API_KEY it does not start: other machines can connect.
ENTRYPOINT ["elmo", "serve", "--host", "0.0.0.0", "--port", "8000", "--allow-remote", "--log", "json"]
