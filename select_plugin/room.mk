comma := ,
SELECT_SLURM := $(addprefix select_plugin/,hooks.c steer.c slurm_glue.c inner.c snapshot_watch.c)
SELECT_MAP := select_plugin/exports.map

$(eval $(call plugin,select_cons_tres,$(SELECT_SLURM) select_plugin/score.c,topo base,libcrypto inih,\
-z lazy -Wl$(comma)--version-script=$(SELECT_MAP)))
$(eval $(call unit,test_score,tests/unit/test_score.c select_plugin/score.c,topo base,libcrypto inih,))

$(BUILD)/slurm/select_cons_tres.so: $(SELECT_MAP)
$(call objects,$(SELECT_SLURM)): ROOM_CFLAGS = -DNDEBUG -isystem \
	$(or $(SLURM_SRC),$(error Slurm's own source is not here: run packaging/setup first))
