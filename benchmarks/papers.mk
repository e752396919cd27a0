# One target for each of the papers' tables. All but table1 run a plan of benchmarks/plans, without Moses.
#
# Each target prints its table. To continue a stopped target, run it again. If you change variables, use another WORK.
# The defaults take minutes on two cores and show that everything works, not what the papers show.

# The folder for all outputs; and a folder with train, dev and test: tokenised texts NAME.$(SRC) and NAME.$(TRG),
# plain or .gz. If no text is named, this is the example corpus
WORK ?= work
ifeq ($(CORPUS)$(TRAIN)$(DEV)$(TEST)$(PHRASE_TABLE),)
CORPUS := examples/corpus
endif
ifneq ($(CORPUS),)
TRAIN ?= $(CORPUS)/train
DEV ?= $(CORPUS)/dev
TEST ?= $(CORPUS)/test
endif
# Training time of each network
MINUTES ?= 1
# Options of moses-rnn nmt train; the example corpus is for small networks
NMT_FLAGS ?= $(if $(filter examples/corpus/train,$(TRAIN)),--hidden-size 64 --embedding-size 32)
# For bengio and mikolov: an n-gram model of the target language
LM ?= examples/lm.arpa.gz
# For jean and luong: how many words the small shortlists have, and word alignments of TRAIN (by default sil-thot's)
WORDS ?= 250
LINKS ?= $(WORK)/train.links
# For table1: defaults of pipeline variables; values on the command line win
TABLE1_FLAGS ?= TOKENISED=yes TUNER=mira DECODER_FLAGS='-search-algorithm 1 -cube-pruning-pop-limit 100 -s 100'

text_file = $(firstword $(wildcard $(1) $(1).gz) $(1))
TRAIN_SOURCE = $(call text_file,$(TRAIN).$(SRC))
TEST_SOURCE = $(call text_file,$(firstword $(TEST)).$(SRC))
TEST_TARGET = $(call text_file,$(firstword $(TEST)).$(TRG))
PLANS := bahdanau sutskever bengio mikolov jean luong cells gradients
PLAN_SEEDS = $(if $(filter file,$(origin SEEDS)),1,$(SEEDS))
PLAN_VALUES = seeds='$(PLAN_SEEDS)' minutes=$(MINUTES) train=$(TRAIN) dev=$(DEV) source=$(SRC) target=$(TRG) \
	train_source=$(TRAIN_SOURCE) train_target=$(call text_file,$(TRAIN).$(TRG)) dev_target=$(call text_file,$(DEV).$(TRG)) \
	test_source=$(TEST_SOURCE) test_target=$(TEST_TARGET) \
	lm=$(LM) table=$(TABLE) links=$(LINKS) words=$(WORDS) options='$(NMT_FLAGS)' \
	$(if $(findstring seq2seq,$(NMT_FLAGS)),base_copied=no base_replaced=no)

.PHONY: table1 $(PLANS)
table1: $(INSTALLED) ## Cho et al.: Baseline, +RNN, +CSLM+RNN, +CSLM+RNN+WP; needs MOSES_ROOT
	SYSTEMS='baseline rnn cslm-rnn cslm-rnn-wp' TRAIN_FLAGS='--max-minutes $(MINUTES)' \
	CSLM_FLAGS='--self-normalise 0.1 --max-minutes $(MINUTES)' $(TABLE1_FLAGS) \
	$(MAKE) --no-print-directory -f moses_configs/pipeline.mk results BIN=$(abspath $(BIN)) WORK=$(WORK)/table1 \
		SEEDS='$(PLAN_SEEDS)' TRAIN=$(TRAIN) DEV=$(DEV) TEST='$(TEST)' LM_FLAGS='$(LM_FLAGS)'
bahdanau: ## Bahdanau et al.: RNNenc against RNNsearch, by sentence length
sutskever: ## Sutskever et al.: source forward or reversed, beams of 1, 2 and 12, ensembles
bengio: ## Bengio et al.: perplexities of n-gram networks
mikolov: ## Mikolov et al.: perplexities of recurrent networks
jean: ## Jean et al.: large shortlists, candidate words
luong: ## Luong et al.: rare words as pointers, by rarity
cells: ## Cho et al., equations 5-8: gated units against other cells
gradients: ## Bengio et al. (1994): how far back gradients reach in decoders with different cells

# Deep LSTMs learn slowly
sutskever: MINUTES := $(if $(filter file,$(origin MINUTES)),3,$(MINUTES))
jean luong: $(LINKS)
$(PLANS): $(INSTALLED)
	$(foreach name,TRAIN DEV TEST,$(if $($(name)),,$(error $(name): expected the prefix of a corpus (or name CORPUS))))
	$(if $(filter sutskever,$@),$(if $(filter-out 1 2 3 4 5,$(PLAN_SEEDS)),\
		$(error SEEDS=$(SEEDS): expected seeds from 1 to 5, those of the five reversed LSTMs)))
	$(BIN)/python benchmarks/trials.py benchmarks/plans/$@.toml $(WORK)/$@ $(PLAN_VALUES)
	$(if $(AFTER_$@),@echo && $(BIN)/moses-rnn analyse $(AFTER_$@) --format markdown)

# Further tables, of the first seed
FIRST = $(firstword $(PLAN_SEEDS))
TESTED = $(TEST_SOURCE) $(TEST_TARGET)
AFTER_bahdanau = lengths $(TESTED) \
	$(foreach trial,RNNenc-30 RNNsearch-30 RNNenc-50 RNNsearch-50,$(WORK)/bahdanau/$(trial).$(FIRST)/$(trial))
AFTER_luong = lengths $(TESTED) --by-rarity $(TRAIN_SOURCE) \
	$(foreach output,base.$(FIRST)/left base.$(FIRST)/replaced PosUnk.$(FIRST)/replaced,$(WORK)/luong/$(output))
AFTER_gradients = gradients $(TESTED) \
	$(foreach trial,tanh relu leaky lstm gru,$(WORK)/gradients/$(trial).$(FIRST)/$(trial))

$(WORK)/train.links: | $(INSTALLED)
	mkdir -p $(WORK)
	gzip -cdf $(call text_file,$(TRAIN).$(SRC)) > $(WORK)/train.$(SRC)
	gzip -cdf $(call text_file,$(TRAIN).$(TRG)) > $(WORK)/train.$(TRG)
	$(BIN)/python moses_configs/align.py $(WORK)/train.$(SRC) $(WORK)/train.$(TRG) > $@.part
	mv $@.part $@
