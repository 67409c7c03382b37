# The server and the demo data. Alone it serves from SQLite in /data; docker-compose.yml gives it a DynamoDB engine.
FROM python:3.13-slim AS build
WORKDIR /src
COPY . .
RUN python -m venv /opt/clade && /opt/clade/bin/pip install --no-cache-dir ".[demo]"

FROM python:3.13-slim
COPY --from=build /opt/clade /opt/clade
ENV PATH=/opt/clade/bin:$PATH PYTHONUNBUFFERED=1
RUN useradd --system --uid 10001 clade && install -d -o clade /data
WORKDIR /data
USER clade
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=120s CMD \
    ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
CMD ["sh", "-c", "clade table create && clade demo && exec clade serve --host 0.0.0.0"]
