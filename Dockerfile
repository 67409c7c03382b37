# The server, as somebody without rights, in production's settings. What it serves it is told by CLADE_STORE; without that
# it is an SQLite file in /data, which `clade table create` or `clade import` makes. Nothing is made or filled at its start.
FROM python:3.13.12-slim-trixie AS build
WORKDIR /src
RUN python -m venv /opt/clade
COPY constraints.txt .
RUN /opt/clade/bin/pip install --no-cache-dir --require-hashes -r constraints.txt
COPY . .
RUN /opt/clade/bin/pip install --no-cache-dir --no-deps .

FROM python:3.13.12-slim-trixie
COPY --from=build /opt/clade /opt/clade
ENV PATH=/opt/clade/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 CLADE_PRODUCTION=1
RUN useradd --system --uid 10001 clade && install -d -o clade /data
WORKDIR /data
USER clade
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD \
    ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
CMD ["clade", "serve", "--host", "0.0.0.0"]
