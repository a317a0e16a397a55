# The command line and the page.  docker build -t symsmooth .
#   docker run --rm -v "$PWD:/pictures" -u "$(id -u)" symsmooth denoise noisy.png -o clean.png
#   docker run --rm -p 127.0.0.1:7860:7860 symsmooth
# The page is for one person and has no password: publish it on 127.0.0.1, or behind your own access control.
# It answers to numbers of addresses and localhost.  Behind a proxy give the name that you type:
#   docker run --rm -p 127.0.0.1:7860:7860 symsmooth serve --host 0.0.0.0 --no-browser --name images.example.org
# With symsmooth-repro (reproduce, benchmark, explain) beside it: docker build -t symsmooth-repro --target repro .
# napari-symsmooth needs a screen and is in no image.

FROM python:3.13-slim-bookworm AS build
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
# .git stays outside; a release gives its version, which is that of all packages.
ARG VERSION=0.3.0.dev0
ENV SETUPTOOLS_SCM_PRETEND_VERSION=${VERSION}
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
    && pip wheel --no-cache-dir --no-deps --wheel-dir /wheels/repro ./packages/symsmooth-repro

FROM python:3.13-slim-bookworm AS base
LABEL org.opencontainers.image.title="symsmooth" \
      org.opencontainers.image.description="Training-free image denoising" \
      org.opencontainers.image.licenses="BSD-3-Clause"
# The wheel is not copied into the image; its extras are those of the command line and the page.
# hadolint ignore=DL3013
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    wheel=$(echo /wheels/*.whl) \
    && pip install --no-cache-dir "${wheel}[web,fits,video,codecs]" \
    && useradd --create-home --uid 10001 symsmooth
WORKDIR /pictures
ENV PYTHONUNBUFFERED=1
ENTRYPOINT ["symsmooth"]

FROM base AS repro
# hadolint ignore=DL3013
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir /wheels/repro/*.whl
USER 10001
CMD ["reproduce", "--help"]

FROM base
USER 10001
EXPOSE 7860
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:7860/', timeout=4)"]
STOPSIGNAL SIGTERM
CMD ["serve", "--host", "0.0.0.0", "--no-browser"]
