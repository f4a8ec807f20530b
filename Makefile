# Every target is one command. The first call creates .venv (about 2 GB on disk, some minutes).
# It is made with the first of these interpreters that the project runs on; another: make demo PYTHON=PATH

SUPPORTED := import sys; sys.exit(not (3, 11, 4) <= sys.version_info[:3] < (3, 14))
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
  if $$python -c '$(SUPPORTED)' 2>/dev/null; then echo $$python; break; fi; done)
BIN := .venv/bin
READY := .venv/.ready
LOWEST := runs/lowest_versions
LOCKING := runs/locking
LOCK := requirements/serve.lock

export TF_CPP_MIN_LOG_LEVEL ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo serve lock test test-lowest nightly lint format bench bench-peers converter language-model clean

help:  ## Show this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /\1|/' | awk -F '|' '{printf "make %-11s %s\n", $$1, $$2}'

demo: $(READY)  ## Synthesise a corpus, train and test both models, write a report page
	@$(BIN)/python demo.py

serve: $(READY)  ## Serve recognition on http://127.0.0.1:8000; PORT=9000: another port
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -r requirements/serve.txt
	@$(BIN)/python serve.py $(if $(PORT),--port $(PORT))

# uv takes versions that refuse Python 3.11 and newer: it ignores upper limits of the Python version.
lock: $(READY)  ## Write requirements/serve.lock: the newest versions and their hashes, for run and serve on any machine
	@$(BIN)/python -m venv $(LOCKING)
	@$(LOCKING)/bin/python -m pip install -qq --disable-pip-version-check 'uv>=0.13,<0.14'
	@echo 'backports-strenum<1.3' | $(LOCKING)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
	  --generate-hashes --custom-compile-command 'make lock' --constraints - requirements/serve.txt --output-file $(LOCK)

TESTS := test test-lowest nightly
# In the order of the folders, so that the processes end together: utils/ has many quick files.
BY_FILE := --dist loadfile --no-loadscope-reorder
# The tests start hundreds of processes: each takes the compiled modules that an earlier one has left.
$(TESTS): export PYTHONDONTWRITEBYTECODE :=
# One test process a core: the libraries in it need no threads of their own.
$(TESTS): export OMP_NUM_THREADS := 1
$(TESTS): export OPENBLAS_NUM_THREADS := 1
$(TESTS): export TF_NUM_INTRAOP_THREADS := 1
$(TESTS): export TF_NUM_INTEROP_THREADS := 1

test: $(READY)  ## Run the tests in parallel, with the line coverage of the packages (at least 95 %)
	@$(BIN)/python -m pytest -n auto $(BY_FILE) -p tests.support.line_coverage

test-lowest: $(READY)  ## Run the tests with the lowest versions that requirements/ allows
	@$(BIN)/python -m venv $(LOWEST)
	@$(LOWEST)/bin/python -m pip install -qq --disable-pip-version-check 'uv>=0.9,<1'
	@$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct -r requirements/dev.txt
	@$(LOWEST)/bin/python -m pytest -n auto $(BY_FILE)

nightly: $(READY)  ## Run all fuzzing, crash and export tests in full number: about an hour
	@$(BIN)/python -m pytest --nightly -n auto $(BY_FILE)

lint: $(READY)  ## Check style, formatting and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(READY)  ## Format the code and apply the fixes of ruff
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

# These need arguments.
BENCH_WITH_ARGUMENTS := keywords/keyword_stream model_language/punctuation recognition/adaptation recognition/phrases streaming/speech_streaming
NO_BENCH := peers/serve $(BENCH_WITH_ARGUMENTS)

bench: $(READY)  ## Run every benchmark that needs no arguments, one after another
	@failed=""; \
	for script in $$(grep -lE '^def main' benchmarks/*/*.py \
	  | grep -vF "$$(printf 'benchmarks/%s\n' $(NO_BENCH))"); do \
	  module=$$(echo "$${script%.py}" | tr / .); echo "== $$module"; \
	  $(BIN)/python -m "$$module" || failed="$$failed $$module"; done; \
	echo "not run, because they need arguments: $(BENCH_WITH_ARGUMENTS)"; \
	test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

bench-peers: $(READY)  ## Compare speed and results with other libraries, and human speech with Whisper base
	@$(BIN)/python -m benchmarks.peers.compare
	@$(BIN)/python -m benchmarks.peers.human_speech

# Trains the converter of pretrained/pinyin_to_hanzi on your own texts; an interrupted training is resumed. With
# other texts or lists the text is cleaned again, and a run that was trained on the old text is refused: choose another
# folder (CONVERTER=runs/mine).
#   make converter TEXT="a.txt.xz b.txt.xz" NAMES=titles.txt.xz KEEP_OUT="test.tsv" DEV=dev.tsv
CONVERTER := runs/pinyin_to_hanzi
CLEAN_TEXT := datasets/text/pinyin_to_hanzi.txt
CLEAN_NAMES := datasets/text/names.txt
DATA = 'data.train=[$(CLEAN_TEXT)]' 'data.dev=[$(DEV)]'
DATA_AND_NAMES = 'data.train=[$(CLEAN_TEXT),$(CLEAN_NAMES)]' 'data.dev=[$(DEV)]' model.names=$(CLEAN_NAMES)
RECIPE := configs/language/pinyin_to_hanzi

define CLEAN
	@test -n "$(TEXT)" || { echo 'error: TEXT names no text: make $@ TEXT="a.txt b.txt"' >&2; exit 2; }
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -r requirements/converter.txt
	@$(BIN)/python -m data.text.cleaning $(TEXT) $(if $(KEEP_OUT),--exclude $(KEEP_OUT)) --output $(CLEAN_TEXT)
	@$(if $(NAMES),$(BIN)/python -m data.text.cleaning $(NAMES) $(if $(KEEP_OUT),--exclude $(KEEP_OUT)) \
	  --output $(CLEAN_NAMES))
endef

converter: $(READY)  ## Train the converter on TEXT and NAMES without the sentences of KEEP_OUT; DEV: dev manifest
	$(CLEAN)
	@$(BIN)/python train.py language --config $(RECIPE)_network.yaml --run $(CONVERTER)/network $(DATA)
	@$(BIN)/python -m bundle.pack $(CONVERTER)/network $(CONVERTER)/packed_network
	@$(BIN)/python train.py language --config $(RECIPE).yaml --run $(CONVERTER)/combined $(if $(NAMES),$(DATA_AND_NAMES),$(DATA)) \
	  model.network_run=$(CONVERTER)/packed_network

# Trains the language model of pretrained/hanzi_language_model on the same texts and on IN_DOMAIN: text of the domain that
# is to be recognised.
#   make language-model TEXT="a.txt.xz b.txt.xz" NAMES=titles.txt.xz IN_DOMAIN=lines.txt KEEP_OUT="test.tsv" DEV=dev.tsv
LANGUAGE_MODEL := runs/hanzi_language_model
CLEAN_IN_DOMAIN := datasets/text/in_domain.txt
LM_RECIPE := configs/language/hanzi_language_model
LM_TEXTS = $(CLEAN_TEXT),$(CLEAN_NAMES)

language-model: $(READY)  ## Train the language model of hanzi on TEXT, NAMES and IN_DOMAIN (an hour and a half)
	@test -n "$(NAMES)" -a -n "$(IN_DOMAIN)" || { echo "error: make $@ needs TEXT, NAMES and IN_DOMAIN" >&2; exit 2; }
	$(CLEAN)
	@$(BIN)/python -m data.text.cleaning $(IN_DOMAIN) $(if $(KEEP_OUT),--exclude $(KEEP_OUT)) --output $(CLEAN_IN_DOMAIN)
	@$(BIN)/python train.py language --config $(LM_RECIPE).yaml --run $(LANGUAGE_MODEL)/general \
	  'data.train=[$(LM_TEXTS)]' 'data.dev=[$(DEV)]'
	@$(BIN)/python train.py language --config $(LM_RECIPE)_adapted.yaml --run $(LANGUAGE_MODEL)/adapted \
	  'data.train=[$(LM_TEXTS),$(CLEAN_IN_DOMAIN)]' 'data.dev=[$(DEV)]' initialise_from=$(LANGUAGE_MODEL)/general

clean:  ## Remove caches of tests and tools (datasets/, runs/ and .venv stay)
	@rm -rf .pytest_cache .ruff_cache .mypy_cache .hypothesis .coverage
	@find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +
	@echo "caches removed; datasets/, runs/ and .venv stay: to remove them too, delete them by hand"

# Installed again when a requirements file is newer than the last installation.
$(READY): requirements.txt requirements/run.txt requirements/demo.txt requirements/serve.txt requirements/dev.txt
	@python="$(PYTHON)"; $${python:-false} -c '$(SUPPORTED)' 2>/dev/null || { \
	  echo "error: $${python:-python3} is not Python 3.11.4 to 3.13, which this project needs" >&2; \
	  echo "hint: install one of them (for example: uv python install 3.13), then make PYTHON=/path/to/python3.13" >&2; \
	  exit 2; }
	@echo "installing into .venv (once; some minutes) ..."
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile -r requirements/dev.txt
	@touch $@
