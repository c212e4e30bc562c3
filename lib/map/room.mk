$(eval $(call archive,map,$(wildcard lib/map/*/*.c),))
$(call objects,lib/map/engine/scotch.c): ROOM_CFLAGS := -I/usr/include/scotch
$(call objects,lib/map/engine/anneal.c): ROOM_CFLAGS := -O3
$(eval $(call unit,test_map,tests/unit/test_map.c,map fabric $(TOPOLOGY),libcrypto,-lscotch -lscotcherr -lm))
$(eval $(call unit,test_bisect,tests/unit/test_bisect.c,map fabric $(TOPOLOGY),libcrypto,-lscotch -lscotcherr -lm))
$(eval $(call unit,test_places,tests/unit/test_places.c,map fabric $(TOPOLOGY),libxml-2.0 libzstd hwloc libcrypto,-lscotch -lscotcherr -lm))
$(eval $(call unit,test_matrix,tests/unit/test_matrix.c cli/place/matrix_rule.c,map $(TOPOLOGY),libcrypto,-lscotch -lscotcherr -lm))
$(eval $(call unit,test_pattern,tests/unit/test_pattern.c,map fabric $(TOPOLOGY),libcrypto,-lscotch -lscotcherr -lm))
$(eval $(call unit,test_rankfile,tests/unit/test_rankfile.c,map fabric $(TOPOLOGY),libcrypto,-lscotch -lscotcherr -lm))
