# Apptainer's images, each built where it is missing, older than its definition, the code or archive that it is built from,
# or built from another image than its setting names now. `make sif` runs this with the settings: SIF_DIR, PYTHON_IMAGE ...
ARCHIVES := docker-archive oci-archive docker-daemon localimage
CODE := $(shell find constraints.txt verifier client cli services/rules -type f \( -name '*.py' -o -name '*.toml' -o \
	-name '*.txt' -o -name '*.json' -o -name '*.html' \) ! -path '*/build/*' ! -path '*/dist/*')

# An image's setting is a name in a registry, or an archive in Apptainer's words: docker-archive:/path/image.tar.
agent = $(or $(filter $(ARCHIVES),$(firstword $(subst :, ,$(1)))),docker)
from = $(if $(filter docker,$(call agent,$(1))),$(1),$(patsubst $(call agent,$(1)):%,%,$(1)))
# Of an image that was copied here nothing is known.
built_from = $(shell cat $(SIF_DIR)/$(1).from 2>/dev/null)

# image NAME,DEFINITION,SETTING
define image
IMAGES += $(SIF_DIR)/$(1).sif
$(SIF_DIR)/$(1).sif: DEFINITION := apptainer/$(2).def
$(SIF_DIR)/$(1).sif: SOURCE := $(3)
$(SIF_DIR)/$(1).sif: apptainer/$(2).def $(wildcard $(call from,$(3))) $(if $(filter-out $(3),$(call built_from,$(1))),changed)
endef
$(eval $(call image,rules,rules,$(PYTHON_IMAGE)))
$(eval $(call image,redis,redis,$(REDIS_IMAGE)))
$(eval $(call image,gateway,gateway,$(GATEWAY_IMAGE)))
$(eval $(call image,judge,judge,$(VLLM_IMAGE)))
$(eval $(call image,embedding,embedding,$(TEI_CUDA_IMAGE)))
$(eval $(call image,judge-cpu,judge,$(VLLM_CPU_IMAGE)))
$(eval $(call image,embedding-cpu,embedding,$(TEI_CPU_IMAGE)))
$(SIF_DIR)/rules.sif: $(CODE)
$(SIF_DIR)/rules.sif: ARGUMENTS := --build-arg ROOT=$(CURDIR)

# Under another name until it is complete: nodes share the folder, and stacks run out of the image that it replaces. That
# one stays as NAME.before. What killed builds left is removed after a day.
$(IMAGES): $(SIF_DIR)/%.sif:
	@mkdir -p $(SIF_DIR) && find $(SIF_DIR) -name '.$*-*.sif' -mmin +1440 -exec rm -f {} +
	@echo "==> building $@ from $(SOURCE)"
	@new=$(SIF_DIR)/.$*-$$(uname -n)-$$$$.sif; trap 'rm -f "$$new"' EXIT; trap 'exit 130' INT TERM; \
	apptainer build --disable-cache --force --build-arg BOOTSTRAP=$(call agent,$(SOURCE)) \
		--build-arg FROM=$(call from,$(SOURCE)) $(ARGUMENTS) "$$new" $(DEFINITION) && \
	{ [ ! -e $@ ] || ln -f $@ $(@:.sif=.before); } && mv "$$new" $@ && echo "$(SOURCE)" >$(@:.sif=.from)

.PHONY: changed
