# make demo and make test are all a reader needs; each sets up its own environment.
PYTHON ?= python3
BIN := .venv/bin
PARTS := .venv-parts/bin
PEER := .venv-peer/bin
# One more than the two cores of a small machine, as tests also wait.
WORKERS ?= 3
# Each worker has a stretch of the tests and takes from the others' when done: few files are on two of them, so what the
# tests of a file share is made once.
SPREAD = -n $(WORKERS) --dist worksteal
EXTRAS ?= test
DEMO_EXTRAS := torch,report
# What an environment is made from: jostle, and the weights of its example networks.
PACKAGES := pyproject.toml puppets/pyproject.toml constraints.txt
OWN = $(shell $(PYTHON) -c "import sys; print('%d.%d' % sys.version_info[:2])")
OTHERS = $(filter-out $(OWN),3.11 3.12 3.13)
PYTHONS ?= $(foreach version,$(OTHERS),$(shell python$(version) -c "print('$(version)')" 2>/dev/null))

# Bytecode of what is imported is kept, in the environments set up here, as importing torch without it takes twice as
# long in every process.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-processes test-parts test-cluster test-extras test-hub test-pythons test-wheel test-all lint types bench docs reference clean

demo: .venv-demo/.stamp
	.venv-demo/bin/jostle demo --out demo

test: lint types
	$(BIN)/python -m pytest $(SPREAD)

# Further combinations of what runs in several processes, which take seconds to start.
test-processes: .venv/.stamp
	$(BIN)/python -m pytest $(SPREAD) -m processes

# What skips for want of a part: Ray, which mostly waits for its processes; transformers, ONNX, TensorBoard, a browser, a
# notebook; and torchvision and timm, on their own.
test-parts: test-cluster test-extras test-hub

test-cluster: .venv-parts/.stamp
	$(PARTS)/python -m pytest -rs -m "not peer" tests/parallel/cluster tests/api/test_running.py::test_a_cluster_gives_the_same

test-extras: .venv-parts/.stamp
	$(PARTS)/python -m pytest $(SPREAD) -rs -m "not peer" -k "browser or tracker or onnx or transformers or videomae or notebook or showing or hub" \
	  tests/browser tests/reporting/trackers tests/models tests/notebook tests/core/test_notebook.py

test-hub: .venv-parts/.stamp
	PYTHONPATH=.venv-parts/torchvision $(PARTS)/python -m pytest -rs -k "torchvision or timm" tests/models

# The quick tests on every other Python that is found. torch comes along with EXTRAS=dev; it is left out as its ordinary
# build takes gigabytes, and what needs it is skipped.
test-pythons: $(PYTHONS:%=.venv-%/.stamp)
	set -e; for python in $(PYTHONS); do \
	  echo "Python $$python"; .venv-$$python/bin/python -m pytest $(SPREAD) -p no:cacheprovider; done

# The wheel without the checkout: the demo, from an environment that holds nothing else, and whether docs/start.md has its
# numbers.
test-wheel: .venv/.stamp
	rm -rf dist .venv-wheel
	$(BIN)/python -m hatchling build -t wheel -d dist
	cd puppets && ../$(BIN)/python -m hatchling build -t wheel -d ../dist
	$(PYTHON) -m venv .venv-wheel
	$(call install,.venv-wheel,"$$(echo dist/jostle-*.whl)[$(DEMO_EXTRAS)]" dist/jostle_puppets-*.whl)
	cd "$$(mktemp -d)" && $(CURDIR)/.venv-wheel/bin/jostle demo --out demo >demo.txt && \
	  $(CURDIR)/.venv-wheel/bin/jostle diff demo/clean demo/robust >diff.txt && \
	  $(CURDIR)/.venv-wheel/bin/python $(CURDIR)/docs/compare_start.py demo.txt diff.txt

test-all: lint types .venv-parts/.stamp .venv-peer/.stamp
	$(PARTS)/python -m pytest $(SPREAD) -m "not peer"
	PYTHONPATH=.venv-parts/torchvision $(PARTS)/python -m pytest -m "not peer" -k "torchvision or timm" tests/models
	$(PEER)/python -m pytest tests/reference -m peer -p no:cacheprovider

lint: .venv/.stamp
	$(BIN)/ruff check src tests bench docs examples studies
	$(BIN)/ruff format --check src tests bench docs examples studies

types: .venv/.stamp
	$(BIN)/mypy --num-workers 2

bench: .venv/.stamp .venv-parts/.stamp .venv-peer/.stamp
	$(PEER)/python -m bench.corruptions
	$(PEER)/python -m bench.video
	$(BIN)/python -m bench.frames
	$(PEER)/python -m bench.scoring
	$(BIN)/python -m bench.detectors
	$(BIN)/python -m bench.recognisers
	$(BIN)/python -m bench.operators
	$(BIN)/python -m bench.frame_detectors
	$(BIN)/python -m bench.extraction
	$(BIN)/python -m bench.corrupted_clips
	$(BIN)/python -m bench.puppets
	$(PARTS)/python -m bench.running
	$(BIN)/python -m bench.own_model
	$(BIN)/python -m bench.watching
	$(BIN)/python -m bench.probing
	if nvidia-smi >/dev/null 2>&1; then PYTHONPATH=.venv-parts/torchvision $(PARTS)/python -m bench.language_models; fi
	$(BIN)/python -m bench.run_memory
	$(BIN)/python -m bench.growth
	$(BIN)/python -m bench.whole_benchmark
	$(PARTS)/python -m bench.nodes

reference: .venv/.stamp
	$(BIN)/python docs/generate_reference.py

docs: .venv/.stamp
	$(BIN)/python -m sphinx -W -q -b html docs docs/_build/html

clean:
	rm -rf .venv .venv-* demo dist docs/_build .mypy_cache .ruff_cache .pytest_cache

# $(call install,environment,what): with uv where it can be had, as it installs in seconds; it is told where pip was told
# to look. Python compiles what is imported on the first import; compiling all of torch takes longer than the rest of the
# installation.
install = $(PYTHON) -m pip --python $(1)/bin/python install --quiet --disable-pip-version-check uv \
	  && UV_FIND_LINKS="$${PIP_FIND_LINKS:-}" VIRTUAL_ENV=$(1) $(1)/bin/uv pip install --quiet -c constraints.txt $(2) \
	  || { $(1)/bin/python -m ensurepip >/dev/null \
	  && $(1)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $(2); }

.venv/.stamp: $(PACKAGES)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(call install,.venv,-e ".[dev]" -e ./puppets)
	touch $@

# The demo needs neither linters nor test tools, nor pip of its own, which takes seconds to set up.
.venv-demo/.stamp: $(PACKAGES)
	test -x .venv-demo/bin/python || $(PYTHON) -m venv --without-pip .venv-demo
	$(call install,.venv-demo,-e ".[$(DEMO_EXTRAS)]" -e ./puppets)
	touch $@

# torchvision asks for a CUDA build of torch, and where it does not load transformers does not either: it lies aside, and
# timm, which needs it, with it.
.venv-parts/.stamp: $(PACKAGES)
	test -x $(PARTS)/python || $(PYTHON) -m venv .venv-parts
	$(call install,.venv-parts,-e ".[parts]" -e ./puppets)
	$(PARTS)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps --upgrade \
	  --target .venv-parts/torchvision torchvision timm || true
	command -v chromium || command -v chromium-browser || timeout 300 $(PARTS)/playwright install chromium || true
	touch $@

.venv-3.%/.stamp: $(PACKAGES)
	test -x .venv-3.$*/bin/python || python3.$* -m venv .venv-3.$*
	$(call install,.venv-3.$*,-e ".[$(EXTRAS)]" -e ./puppets)
	touch $@

# imagecorruptions pulls another build of OpenCV and fails on current NumPy; it lives in an environment of its own,
# without its dependencies, and bench/peer.py mends the three calls that broke.
.venv-peer/.stamp: $(PACKAGES) bench/peer-requirements.txt
	test -x $(PEER)/python || $(PYTHON) -m venv .venv-peer
	$(PEER)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . -e ./puppets pytest hypothesis
	$(PEER)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r bench/peer-requirements.txt
	$(PEER)/python -m pip install --quiet --disable-pip-version-check --no-deps imagecorruptions==1.1.2
	touch $@
