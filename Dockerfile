# The service, as a user without rights. compose.yaml starts it with a database, a proxy and metrics.
FROM python:3.11-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY deploy/install.sh deploy/requirements.txt deploy/build-requirements.txt deploy/
COPY tools/record_commit.py tools/
COPY src src
RUN deploy/install.sh /opt/multiplay

FROM python:3.11-slim
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/multiplay multiplay
COPY --from=build /opt/multiplay /opt/multiplay
ENV PATH=/opt/multiplay/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    NUMBA_CACHE_DIR=/var/lib/multiplay/kernels \
    MULTIPLAY_STORE=sqlite:////var/lib/multiplay/studies.db
USER 10001
WORKDIR /var/lib/multiplay
VOLUME /var/lib/multiplay
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
ENTRYPOINT ["multiplay"]
CMD ["serve", "--host", "0.0.0.0", "--workers", "2", "--https", "--drain", "3"]
