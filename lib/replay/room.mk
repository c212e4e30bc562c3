# Past jobs replayed under other policies.
$(eval $(call archive,replay,$(wildcard lib/replay/*.c),))
$(eval $(call unit,test_replay,tests/unit/test_replay.c,replay $(SCORE),libcrypto,-lm))
