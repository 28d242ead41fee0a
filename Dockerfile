# Two images: `docker build -t jostle .` for CPUs, `docker build --target cuda -t jostle:cuda .` for NVIDIA GPUs.
# docs/how-to/install.md says how they are run.
FROM python:3.12-slim-bookworm AS wheel
WORKDIR /source
RUN pip install --no-cache-dir hatchling==1.33.0
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY puppets puppets
RUN python -m hatchling build -t wheel -d /dist && cd puppets && python -m hatchling build -t wheel -d /dist

FROM python:3.12-slim-bookworm AS base
# A user of its own: nothing in here needs to be root, and files in mounted folders should belong to a person.
RUN useradd --uid 1000 --create-home jostle && mkdir /data && chown jostle:jostle /data
ENV PYTHONUNBUFFERED=1 \
    JOSTLE_CACHE=/home/jostle/.cache/jostle \
    NUMBA_CACHE_DIR=/home/jostle/.cache/numba
COPY constraints.txt /opt/constraints.txt
COPY --from=wheel /dist /opt/dist

# torch from PyPI brings CUDA along; the driver is the host's (`docker run --gpus all`).
FROM base AS cuda
RUN pip install --no-cache-dir -c /opt/constraints.txt "$(echo /opt/dist/jostle-*.whl)[torch,report,view]" /opt/dist/jostle_puppets-*.whl
USER jostle
WORKDIR /data
ENTRYPOINT ["jostle"]
CMD ["demo", "--out", "demo"]

# The last one is what `docker build` makes when no target is named.
FROM base AS cpu
RUN pip install --no-cache-dir --index-url https://download.pytorch.org/whl/cpu torch==2.13.0 \
    && pip install --no-cache-dir -c /opt/constraints.txt "$(echo /opt/dist/jostle-*.whl)[torch,report,view]" /opt/dist/jostle_puppets-*.whl
USER jostle
WORKDIR /data
ENTRYPOINT ["jostle"]
CMD ["demo", "--out", "demo"]
