# Two commands matter: `make demo` and `make test`. Each sets up what it needs in .venv.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test test-slow lint docs benchmark benchmark-check scoreboard clean
.DEFAULT_GOAL := demo

demo: $(VENV)/.installed-all
	$(BIN)/unseed demo

test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadscope -m "not slow" --cov --cov-report=term

test-slow: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m slow -s --no-header

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.installed-docs
	$(BIN)/mkdocs build --strict

benchmark: $(VENV)/.installed-all
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

# One stamp per set of extras: .installed-all, .installed-dev, .installed-docs
$(VENV)/.installed-%: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing unseed[$*] into $(VENV) …"
	$(PIP) install -c constraints.txt -e '.[$*]'
	touch $@
