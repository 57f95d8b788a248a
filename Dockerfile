# Image of the service. Build it in a checkout: docker build -t ripplevec .
FROM python:3.12-slim AS build
WORKDIR /source
COPY requirements/serve.txt requirements/
RUN python -m venv /opt/ripplevec && /opt/ripplevec/bin/pip install --no-cache-dir --require-hashes -r requirements/serve.txt
COPY . .
RUN /opt/ripplevec/bin/pip install --no-cache-dir --no-deps --no-build-isolation '.[serve]'

FROM python:3.12-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/ripplevec --create-home ripplevec
COPY --from=build /opt/ripplevec /opt/ripplevec
ENV PATH=/opt/ripplevec/bin:$PATH \
    NUMBA_CACHE_DIR=/opt/ripplevec/numba \
    RIPPLEVEC_STATE=/var/lib/ripplevec/state \
    RIPPLEVEC_HOST=0.0.0.0 \
    RIPPLEVEC_PORT=8080
# Kernels are compiled once, here, and not at the first start of every container.
RUN ripplevec warmup && chown -R ripplevec /opt/ripplevec/numba
# By number, so that Kubernetes can check that it is not root (runAsNonRoot).
USER 10001
VOLUME /var/lib/ripplevec
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=10m \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"RIPPLEVEC_PORT\"]}/readyz', timeout=4)"]
CMD ["ripplevec", "serve"]
