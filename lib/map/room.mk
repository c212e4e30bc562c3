$(eval $(call archive,map,$(wildcard lib/map/*.c),))
$(call objects,lib/map/scotch.c): ROOM_CFLAGS := -I/usr/include/scotch
$(eval $(call unit,test_map,tests/unit/test_map.c,map topo base,libcrypto inih,-lscotch -lscotcherr -lm))
