# Past jobs replayed under other policies.
$(eval $(call archive,replay,$(wildcard lib/replay/*.c),jansson))
$(eval $(call unit,test_replay,tests/unit/test_replay.c,replay $(SCORE),libcrypto jansson,-lm))
