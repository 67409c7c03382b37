# The server, unprivileged and with production settings. CLADE_STORE names the store; without it that is an SQLite file in
# /data, which `clade table create` or `clade import` makes. Nothing is made or filled at the start, unless CLADE_DEMO=1
# asks for the demo data. Hierarchies of your own are mounted at /hierarchies: CLADE_HIERARCHIES=/hierarchies/shop.py.
# The root file system may be read-only: docker run --read-only --tmpfs /tmp.
FROM python:3.13.12-slim-trixie AS build
WORKDIR /src
RUN python -m venv /opt/clade
COPY constraints-build.txt constraints-image.txt ./
RUN python -m pip install --no-cache-dir --require-hashes -r constraints-build.txt \
    && /opt/clade/bin/pip install --no-cache-dir --require-hashes -r constraints-image.txt
COPY . .
RUN python -m build --no-isolation --wheel && /opt/clade/bin/pip install --no-cache-dir --no-deps dist/*.whl

FROM python:3.13.12-slim-trixie
COPY --from=build /opt/clade /opt/clade
RUN python -c "import sysconfig; options = sysconfig.get_config_var('CONFIG_ARGS'); print(options); \
assert '--enable-optimizations' in options, 'This Python is built without profile-guided optimization.'"
ENV PATH=/opt/clade/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 CLADE_PRODUCTION=1
RUN useradd --system --uid 10001 clade && install -d /hierarchies && install -d -o clade /data
WORKDIR /data
# By number, since Kubernetes' runAsNonRoot cannot tell what a name stands for.
USER 10001
VOLUME /data
EXPOSE 8000
# Only bash, so that no check starts an interpreter.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD \
    ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8000 && printf 'GET /healthz HTTP/1.0\\r\\nHost: 127.0.0.1\\r\\n\\r\\n' >&3 && read -r -t 2 _ status _ <&3 && [ \"$status\" = 200 ]"]
CMD ["clade", "serve", "--host", "0.0.0.0"]
