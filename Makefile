# make demo and make test are all a reader needs; each sets up its own environment.
PYTHON ?= python3
BIN := .venv/bin
PEER := .venv-peer/bin
WORKERS ?= 2

.PHONY: demo test test-all lint types bench docs clean

demo: .venv/.stamp
	$(BIN)/jostle demo --out demo

test: lint types
	$(BIN)/python -m pytest -n $(WORKERS)

test-all: lint types .venv/.ray .venv/.browser .venv-peer/.stamp
	$(BIN)/python -m pytest -n $(WORKERS) -m "not peer"
	$(PEER)/python -m pytest tests/reference -m peer -p no:cacheprovider

lint: .venv/.stamp
	$(BIN)/ruff check src tests benchmarks docs examples experiments
	$(BIN)/ruff format --check src tests benchmarks docs examples experiments

types: .venv/.stamp
	$(BIN)/mypy

bench: .venv/.ray .venv-peer/.stamp
	$(PEER)/python -m benchmarks.corruptions
	$(PEER)/python -m benchmarks.video
	$(PEER)/python -m benchmarks.scoring
	$(BIN)/python -m benchmarks.detectors
	$(BIN)/python -m benchmarks.extraction
	$(BIN)/python -m benchmarks.puppets
	$(BIN)/python -m benchmarks.running
	$(BIN)/python -m benchmarks.run_memory

docs: .venv/.stamp
	$(BIN)/python -m sphinx -W -q -b html docs docs/_build/html

clean:
	rm -rf .venv .venv-peer demo docs/_build .mypy_cache .ruff_cache .pytest_cache

# uv is used where it can be had, as it installs in seconds; it is told where pip was told to look.
.venv/.stamp: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv \
	  && UV_FIND_LINKS="$${PIP_FIND_LINKS:-}" VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet -c constraints.txt -e ".[dev]" \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

# Pages are tested in a real browser; where none can be had, their tests say so and are skipped.
.venv/.browser: .venv/.stamp
	command -v chromium || command -v chromium-browser || $(BIN)/playwright install chromium || true
	touch $@

# Ray is large, and only tests and benchmarks of the cluster need it.
.venv/.ray: .venv/.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[ray]"
	touch $@

# imagecorruptions pulls another build of OpenCV and fails on current NumPy; it lives in an environment of its own,
# without its dependencies, and benchmarks/peer.py mends the three calls that broke.
.venv-peer/.stamp: pyproject.toml constraints.txt benchmarks/peer-requirements.txt
	test -x $(PEER)/python || $(PYTHON) -m venv .venv-peer
	$(PEER)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . pytest
	$(PEER)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r benchmarks/peer-requirements.txt
	$(PEER)/python -m pip install --quiet --disable-pip-version-check --no-deps imagecorruptions==1.1.2
	touch $@
