# Two commands matter: `make demo` and `make test`. Each sets up what it needs in .venv.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo chromium test test-slow same-numbers lint docs benchmark benchmark-check scoreboard clean
.DEFAULT_GOAL := demo

demo: $(VENV)/.installed-all
	$(BIN)/unseed demo

# The linters take one core for as long as the tests leave one over; each fails the whole.
test: $(VENV)/.installed-dev
	@$(MAKE) --no-print-directory --jobs=2 lint pytest

pytest: $(VENV)/.installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadscope --no-loadscope-reorder -m "not slow" --cov --cov-report=term

test-slow: $(VENV)/.installed-slow
	$(BIN)/python -m pytest -m slow -s --no-header

# Every number that a user can see, with the commit before and now.
same-numbers: $(VENV)/.installed-dev
	$(BIN)/python tests/same_numbers/compare.py

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

benchmark: $(VENV)/.installed-benchmark
	$(BIN)/unseed benchmark

benchmark-check: $(VENV)/.installed-all
	$(BIN)/python benchmarks/check.py

scoreboard: $(VENV)/.installed-all
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/coverage/run.py --repetitions 1
	$(BIN)/python benchmarks/coverage/report.py

clean:
	rm -rf $(VENV) site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage* htmlcov src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV) || python3 -m venv $(VENV)

# One stamp per set of extras: .installed-all, .installed-dev, .installed-slow, .installed-docs
$(VENV)/.installed-%: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing unseed[$*] into $(VENV) …"
	$(PIP) install -c constraints.txt -e '.[$*]'
	@test -z '$(filter dev slow,$*)' || $(MAKE) --no-print-directory chromium
	touch $@

# Other methods to compare with. Best effort: `unseed benchmark` names those that it leaves out. laplace-torch asks for torchvision
# and does not need it; beside a torch for CPUs alone, PyPI's torchvision cannot be imported, and laplace-torch with it neither.
$(VENV)/.installed-benchmark: $(VENV)/.installed-all
	@echo "Installing unseed[benchmark] into $(VENV) …"
	@if $(PIP) install -c constraints.txt -e '.[benchmark]'; then touch $@; \
	else echo "Not all of it could be installed: some methods will be left out."; $(PIP) install -c constraints.txt mapie || true; fi
	@$(BIN)/python -c 'import torchvision' 2>/dev/null || $(PIP) uninstall --yes torchvision 2>/dev/null || true

# The report is tested in a real browser. Best effort: without one those tests are skipped, and nothing fails here.
chromium:
	@for name in chromium chromium-browser google-chrome google-chrome-stable chrome; do \
	  if command -v $$name >/dev/null; then exit 0; fi; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing Chromium for the tests of the report …"; \
	  (apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium) \
	    >/dev/null 2>&1 || echo "Chromium could not be installed: tests in a browser will be skipped."; \
	else echo "No Chromium here: tests in a browser will be skipped."; fi
