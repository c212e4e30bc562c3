$(eval $(call archive,base,$(addprefix lib/base/,err.c buf.c child.c clock.c cmd_line.c file.c settings.c settings_here.c log.c hash.c printable.c string_map.c),libcrypto))
$(eval $(call unit,test_base,tests/unit/test_base.c,base,libcrypto))
