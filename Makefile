# moses_rnn: `make help` lists the targets.
PYTHON ?= python3
VENV ?= .venv
# Extra options of pip. On Linux, pip installs torch with CUDA (gigabytes); for the CPU build:
# PIP_FLAGS="--index-url https://download.pytorch.org/whl/cpu --extra-index-url https://pypi.org/simple"
PIP_FLAGS ?=
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEMO ?= demo

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9%-]+:.*## / { sub("%", "SYSTEM", $$1); printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(INSTALLED): pyproject.toml constraints.txt $(wildcard native/*)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "moses_rnn needs Python 3.11 or later; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet $(PIP_FLAGS) --constraint constraints.txt --editable '.[dev]'
	$(BIN)/pip install --quiet $(PIP_FLAGS) --constraint constraints.txt kenlm || \
		echo 'kenlm could not be installed (it needs a C++ compiler): the tests that use it will be skipped' >&2
	touch $@

.PHONY: setup
setup: $(INSTALLED) ## create .venv with the tested versions (constraints.txt)

.PHONY: demo
demo: demo-table $(if $(MOSES_ROOT),demo-moses) ## train on the example table, score it, write a report; with MOSES_ROOT, also run demo-moses
	@$(if $(MOSES_ROOT),:,echo 'skipped: make demo-moses, which shows what the score does to BLEU. It needs MOSES_ROOT, the folder of a built Moses' >&2)

.PHONY: demo-table
demo-table: $(INSTALLED)
	mkdir -p $(DEMO)
	$(BIN)/moses-rnn-train examples/phrase-table.gz --model $(DEMO)/model --preset small --hidden-size 128 --max-epochs 8
	$(BIN)/moses-rnn-score examples/phrase-table.gz --model $(DEMO)/model --output $(DEMO)/phrase-table.rnn.gz \
		--moses-ini examples/moses.ini --force
	@echo
	@$(BIN)/moses-rnn analyse targets $(DEMO)/phrase-table.rnn.gz --source 'far from the' --source 'in front of this' \
		--source 'not buy the'
	$(BIN)/moses-rnn analyse report $(DEMO)/phrase-table.rnn.gz --model $(DEMO)/model -o $(DEMO)/report.html --force
	@echo "The new table, its signature and the new moses.ini are in $(DEMO)/. Open $(DEMO)/report.html in a browser."

# The last step: on a corpus whose frequencies mislead, the pipeline builds and tunes a baseline and +RNN
DEMO_SEED ?= 1
DEMO_SENTENCES ?= 2000
DEMO_HELD_OUT ?= 300
DEMO_NETWORK ?= --preset small --hidden-size 64 --embedding-size 32 --max-epochs 3 --dropout 0.3
DEMO_ROUNDS ?= 5
DEMO_MOSES := $(DEMO)/moses-$(DEMO_SEED)
DEMO_CORPUS := $(DEMO_MOSES)/corpus

$(DEMO_CORPUS)/train.en: examples/make_hard_corpus.py examples/make_corpus.py examples/words.py $(INSTALLED)
	$(BIN)/python examples/make_hard_corpus.py $(DEMO_CORPUS) --seed $(DEMO_SEED) --sentences $(DEMO_SENTENCES) \
		--held-out $(DEMO_HELD_OUT)

.PHONY: demo-moses
demo-moses: $(DEMO_CORPUS)/train.en ## BLEU of a tuned baseline and +RNN on a generated corpus (minutes); needs MOSES_ROOT
	@test -n "$$MOSES_ROOT" || { echo 'demo-moses: set MOSES_ROOT to the folder of a built Moses (it has bin/moses)' >&2; exit 2; }
	@echo "Word alignment, phrase table, network, two tunings, two tests; logs are in $(DEMO_MOSES)/work/log"
	@$(MAKE) --silent --no-print-directory -f moses_configs/pipeline.mk results BIN=$(abspath $(BIN)) \
		WORK=$(DEMO_MOSES)/work SRC=en TRG=fr TOKENISED=yes SYSTEMS='baseline rnn' SEEDS=$(DEMO_SEED) \
		TRAIN=$(DEMO_CORPUS)/train DEV=$(DEMO_CORPUS)/dev TEST=$(DEMO_CORPUS)/test \
		ORDER=3 LM_FLAGS=--discount_fallback MAX_PHRASE=5 REORDERING=distance TRAIN_FLAGS='$(DEMO_NETWORK) --quiet' \
		SCORE_FLAGS=--quiet TUNER=mira DECODER_FLAGS='-search-algorithm 1' MERT_FLAGS='--maximum-iterations $(DEMO_ROUNDS)'

.PHONY: lint
lint: $(INSTALLED) ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

QUICK := not moses and not gpu and not slow and not release

.PHONY: test
test: lint ## set-up, lint, types and all tests except those for Moses, GPUs, long runs and releases
	$(BIN)/pytest -n auto --maxprocesses 4 --dist worksteal -m '$(QUICK)'

.PHONY: golden
golden: $(INSTALLED) | tests/golden/models ## record in tests/golden what whole commands do; review the git diff
	MOSES_RNN_GOLDEN=rewrite $(BIN)/pytest -n auto --maxprocesses 4 tests/golden

tests/golden/models: | $(INSTALLED)
	rm -rf $@.part && mkdir $@.part
	cd $@.part && PATH="$(abspath $(BIN)):$$PATH" EXAMPLES=$(abspath examples) OMP_NUM_THREADS=1 bash $(abspath tests/golden/models.sh)
	mv $@.part $@

.PHONY: test-python
test-python: $(INSTALLED) ## the same tests without the native core, as on machines without a C++ compiler
	MOSES_RNN_NATIVE=0 $(BIN)/pytest -n auto --maxprocesses 4 --dist worksteal -m '$(QUICK)' $(TESTS)

.PHONY: test-release
test-release: $(INSTALLED) docs ## before a release: commands in docs/, benchmarks, links, lowest versions (an hour)
	$(BIN)/pytest -n auto --maxprocesses 4 -m release
	$(MAKE) test-oldest

# The lowest Python, and what to run; golden files hold what the versions in constraints.txt print
OLDEST := build/oldest
OLDEST_PYTHON ?= python3.11
OLDEST_TESTS ?= tests

.PHONY: test-oldest
test-oldest: ## the tests with Python 3.11 and the lowest versions that pyproject.toml allows, in build/oldest
	$(OLDEST_PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python tests/oldest.py > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/pip install --quiet $(PIP_FLAGS) --constraint $(OLDEST)/constraints.txt --editable '.[dev]'
	$(OLDEST)/bin/pip install --quiet $(PIP_FLAGS) --constraint $(OLDEST)/constraints.txt kenlm || \
		echo 'kenlm could not be installed (it needs a C++ compiler): the tests that use it will be skipped' >&2
	$(OLDEST)/bin/pytest -m '$(QUICK)' --ignore tests/golden $(OLDEST_TESTS)

.PHONY: test-moses
test-moses: $(INSTALLED) ## tests with the real decoder and MERT; needs MOSES_ROOT
	@test -n "$$MOSES_ROOT" || { echo 'test-moses: set MOSES_ROOT to the folder of a built Moses (it has bin/moses)' >&2; exit 2; }
	$(BIN)/pytest -m moses -s

.PHONY: test-gpu
test-gpu: $(INSTALLED) ## tests on a CUDA device
	@$(BIN)/python -c 'import sys, torch; sys.exit(None if torch.cuda.is_available() else "test-gpu: torch finds no CUDA device here")'
	$(BIN)/pytest -m gpu

# Where packages cannot be installed, run benchmarks/gpu.py with the Python that has torch
DEVICE ?= cuda

.PHONY: gpu
gpu: $(INSTALLED) ## tables of speed, scores, memory and tests on a GPU (eight minutes); TABLE=…; DEVICE=cpu tries it
	$(BIN)/python benchmarks/gpu.py --device $(DEVICE) --table $(TABLE) --texts $(SENTENCES) $(if $(filter cpu,$(DEVICE)),--small)

.PHONY: test-slow
test-slow: $(INSTALLED) ## tests on the real Multi30k table (minutes)
	$(BIN)/pytest -m slow -s

.PHONY: test-faults
test-faults: $(INSTALLED) ## hundreds of kills, truncations, flipped bits, full disks, 10⁷ lines (an hour; `make test` runs a few)
	MOSES_RNN_FAULTS=full $(BIN)/pytest tests/faults -s

# A first user's steps with a package: $(call first_use,file of dist/,what stands before a command)
define first_use
$(PYTHON) -m venv --clear build/fresh
$(2) build/fresh/bin/pip install --quiet $(PIP_FLAGS) --constraint constraints.txt dist/$(1)
$(2) sh tests/first_use.sh build/fresh/bin examples/phrase-table.gz
endef
# What they need of the system: no compiler
TOOLS := cat cp date grep gzip mktemp realpath rm sh wc
NO_COMPILER := PATH=$(abspath build/tools)

.PHONY: dist
dist: $(INSTALLED) ## wheel and sdist in dist/, checked, and tried in fresh environments, also without a compiler
	$(BIN)/pip install --quiet $(PIP_FLAGS) --constraint constraints.txt --editable '.[publish]'
	rm -rf dist build/tools && mkdir -p build/tools
	for tool in $(TOOLS); do ln -s "$$(command -v $$tool)" build/tools || exit 1; done
	$(BIN)/python -m build --outdir dist
	! ls dist/*-linux_*.whl || PATH="$(abspath $(BIN)):$$PATH" auditwheel repair --wheel-dir dist dist/*-linux_*.whl
	rm -f dist/*-linux_*.whl
	$(BIN)/twine check --strict dist/*
	$(call first_use,*.whl,$(NO_COMPILER))
	ls dist/*-any.whl 2> /dev/null || build/fresh/bin/moses-rnn --version | grep 'native core,'
	$(call first_use,*.tar.gz,$(NO_COMPILER))
	$(call first_use,*.tar.gz)

.PHONY: docs
docs: $(INSTALLED) ## docs/ as a site in build/site; broken links are errors
	$(BIN)/pip install --quiet $(PIP_FLAGS) --constraint constraints.txt --editable '.[docs]'
	$(BIN)/mkdocs build --strict --quiet

# Seconds for each target of `make fuzz`
FUZZ_SECONDS ?= 600
FUZZ_DIR ?= fuzz-corpus
FUZZ_TARGETS ?= table ini nbest arpa config stream

.PHONY: fuzz
fuzz: $(INSTALLED) ## fuzz the readers of untrusted data: table, ini, n-best list, ARPA file, model folder, compressed stream
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[fuzz]'
	for target in $(FUZZ_TARGETS); do \
		$(BIN)/python tests/fuzz/fuzz.py $$target $(FUZZ_DIR)/$$target -max_total_time=$(FUZZ_SECONDS) \
			-timeout=20 -rss_limit_mb=4096 -artifact_prefix=$(FUZZ_DIR)/$$target- -print_final_stats=1 || exit 1; \
	done

# For `make bench`: a phrase table, and two texts for sentence networks
TABLE ?= examples/phrase-table.gz
SENTENCES ?= examples/corpus/train --source en --target fr

.PHONY: bench
bench: $(INSTALLED) ## speed against naive loops, memory to 10⁶ lines (half an hour); TABLE=… MODEL=… for your own
	$(BIN)/python benchmarks/score.py $(TABLE) --rounds 1 $(if $(MODEL),--model $(MODEL))
	for name in table train scaling; do $(BIN)/python benchmarks/$$name.py $(TABLE) || exit 1; done
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/sentences.py $(SENTENCES)

# A grammar wrote the example corpus, so lmplz cannot estimate its discounts
ifeq ($(TRAIN)$(CORPUS),)
LM_FLAGS ?= --discount_fallback
endif

include benchmarks/papers.mk
include moses_configs/pipeline.mk

.PHONY: clean
clean: ## remove what the demo made
	rm -rf $(DEMO)
