SELECT_SLURM := $(addprefix select_plugin/,hooks.c steer.c job_request.c candidates.c device.c plan.c comment.c \
	observe.c occupancy.c submitted.c)
SELECT_PURE := select_plugin/snapshot_watch.c
SELECT_MAP := select_plugin/exports.map

$(eval $(call plugin,select_cons_tres,$(SELECT_SLURM) $(SELECT_PURE),$(SCORE),libcrypto,\
-z lazy -Wl$(comma)--version-script=$(SELECT_MAP)))
$(eval $(call plugin,job_submit_topiary,select_plugin/job_submit.c,base,,-z lazy))

$(BUILD)/slurm/select_cons_tres.so: $(SELECT_MAP)
$(call objects,$(SELECT_SLURM) select_plugin/job_submit.c): ROOM_CFLAGS = -DNDEBUG -isystem \
	$(checked_slurm_src)
