$(eval $(call program,topiary-agent,$(addprefix node_agent/,topiary-agent.c discover.c deliver.c),client topo base,\
hwloc libzstd libcurl jansson munge inih libcrypto,))
$(eval $(call unit,test_deliver,tests/unit/test_deliver.c node_agent/deliver.c,client topo base,\
libzstd libcurl jansson munge libcrypto,))
