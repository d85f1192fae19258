# The image of extender: a virtual environment with the versions of the lock file, on a slim Python image, for user 65532.
#
#   docker build --tag kube-scheduler-extender .
#
# BASE may be any image with Python 3.11 or newer and its venv module.
ARG BASE=docker.io/library/python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b

FROM ${BASE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_COMPILE=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /source
# Dependencies first: they change less often than the source.
COPY requirements.lock requirements-image.lock ./
RUN python3 -m venv /opt/extender && python3 -m venv /opt/tools \
    && /opt/tools/bin/python -m pip install --require-hashes --requirement requirements-image.lock \
    && /opt/extender/bin/python -m pip install --require-hashes --requirement requirements.lock
COPY pyproject.toml README.md LICENSE CHANGELOG.md ./
COPY extender extender
# The build is reproducible: the bytecode has no timestamps, the software bill of materials no random serial number.
RUN /opt/tools/bin/hatchling build --target wheel --directory /opt/wheel \
    && /opt/extender/bin/python -m pip install --no-deps --no-index /opt/wheel/*.whl \
    && /opt/extender/bin/python -m pip uninstall --yes pip setuptools \
    && find /opt/extender/lib -depth -type d \( -name tests -o -name test \) -path '*/numpy/*' -exec rm -r {} + \
    && rm -f /opt/extender/bin/activate* /opt/extender/bin/Activate.ps1 \
    && python3 -m compileall -q -f --invalidation-mode unchecked-hash -s /opt/extender -p /opt/extender /opt/extender/lib \
    && /opt/tools/bin/cyclonedx-py environment --output-reproducible --output-format JSON \
        --output-file /opt/extender/sbom.cdx.json /opt/extender/bin/python

FROM ${BASE}
LABEL org.opencontainers.image.title="kube-scheduler-extender" \
      org.opencontainers.image.description="The Kubernetes scheduler in Python: an HTTP extender and a standalone scheduler." \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/extender /opt/extender
ENV PATH=/opt/extender/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 8888 10259 10260
ENTRYPOINT ["/opt/extender/bin/extender"]
CMD ["--help"]
