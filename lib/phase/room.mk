# libtopiary_phase, for programs that name their phases: it needs libc alone.
LIBPHASE = $(BUILD)/libtopiary_phase.so.0
$(eval $(call linked,phase,$(LIBPHASE),lib/phase/phase.c,,,-pthread,-Xlinker -soname=libtopiary_phase.so.0 -shared))
$(BUILD)/libtopiary_phase.so: $(LIBPHASE)
	@ln -sf $(<F) $@
all: $(BUILD)/libtopiary_phase.so
# A program with phases, for tests.
UNITS += $(BUILD)/tests/phases
$(eval $(call linked,phases,$(BUILD)/tests/phases,tests/rig/phases.c,,,-L$(BUILD) -ltopiary_phase -pthread,-Xlinker -rpath='$$$$ORIGIN/..'))
$(BUILD)/tests/phases: $(BUILD)/libtopiary_phase.so
$(call objects,tests/rig/phases.c): ROOM_CFLAGS := -Ilib/phase
