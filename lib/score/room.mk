# Requests, scores and verdicts: all that the select plugin links, without Slurm, hwloc or XML.
$(eval $(call archive,score,$(wildcard lib/score/*.c),))
$(foreach t,chooser device_choice device_share fit fit_cache numa_memory request verdict,\
$(eval $(call unit,test_$t,tests/unit/test_$t.c,$(SCORE),libcrypto,)))
