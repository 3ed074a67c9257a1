# Thin: meson builds, tools/ does the rest. `make help` lists what there is.
BUILD ?= build
PYTHON = /usr/bin/python3
export MT_BUILD = $(CURDIR)/$(BUILD)

.PHONY: all help setup build sdks demo serve test check soak bench test-guest install format clean images

all: build

help:
	@echo 'make demo        set up, build, make the slim image, run the main job, print the report'
	@echo 'make test        set up and run all tests (45 minutes at most); check: the quick part, 3 minutes'
	@echo 'make serve       a server from the build tree in the foreground, state in .state/'
	@echo 'make             build into $(BUILD)/'
	@echo 'make sdks        the packages of the SDKs into $(BUILD)/sdk/'
	@echo 'make images      the default image, with everything in it (several minutes, once)'
	@echo 'make soak        long runs; bench: ratios against peers; test-guest: on Debian'"'"'s own kernel'
	@echo 'make install     programs, units and a service user on this machine'
	@echo 'make format      clang-format on the sources; clean: removes $(BUILD)/'

setup:
	@tools/setup build run

# What meson says when it makes the build files again is of interest only when it fails.
build: setup
	@[ -f $(BUILD)/build.ninja ] || meson setup $(BUILD) >/dev/null
	@ninja -C $(BUILD) build.ninja >$(BUILD)/configure.log 2>&1 || { cat $(BUILD)/configure.log; exit 1; }
	@ninja -C $(BUILD) -n 2>/dev/null | grep -q 'no work to do' || { \
	    echo 'building into $(BUILD)/ (some 40 seconds from nothing)'; ninja -C $(BUILD) --quiet; }

demo: build
	@tools/with-server --image slim tools/demo

serve: build
	@tools/serve

sdks:
	@tools/setup sdk
	@tools/build-sdks

images: build
	@tools/setup sdk
	@tools/build-sdks --possible >/dev/null
	@$(BUILD)/src/image/mt-image build slim
	@$(BUILD)/src/image/mt-image build default

test: build
	@tools/setup test sdk guest
	@$(PYTHON) tools/run-parts all

check: build
	@tools/setup test sdk
	@$(PYTHON) tools/run-parts quick

soak: build
	@tools/setup test
	@$(PYTHON) tools/run-parts soak

bench: build
	@tools/setup bench
	@for bench in start exec events many files; do \
	    echo "== bench/$$bench"; tools/with-server --image slim $(PYTHON) bench/$$bench || exit 1; echo; \
	done
	@echo '== bench/vm'; $(PYTHON) bench/vm

test-guest: build
	@tools/setup guest
	@tests/guest/run

install: build
	@tools/setup sdk
	@tools/build-sdks --possible >/dev/null
	@tools/install

format:
	@tools/setup test
	@git ls-files 'src/*.[ch]' 'fuzz/*.c' | xargs clang-format -i

clean:
	rm -rf $(BUILD) $(BUILD)-*
