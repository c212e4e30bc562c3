# libtopiary, for programs that want their topology: of our own parts it holds what reads an image, and needs hwloc alone.
# Whoever loads it waits for it: code and constants share a mapping.
LIBTOPIARY = $(BUILD)/libtopiary.so.0
$(eval $(call linked,app,$(LIBTOPIARY),lib/app/load.c,$(TOPOLOGY),hwloc,\
	-Xlinker --version-script=lib/app/exports.map -Xlinker -soname=libtopiary.so.0 -Xlinker -z -Xlinker noseparate-code \
	-Xlinker -Map=$(LIBTOPIARY).map,-shared))
$(LIBTOPIARY): lib/app/exports.map
$(BUILD)/libtopiary.so: $(LIBTOPIARY)
	@ln -sf $(<F) $@
all: $(BUILD)/libtopiary.so
$(eval $(call unit,test_image,tests/unit/test_image.c lib/app/load.c,$(TOPOLOGY),hwloc libxml-2.0 libzstd libcrypto,))
