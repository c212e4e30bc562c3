$(eval $(call program,topiary-agent,$(addprefix node_agent/,topiary-agent.c discover.c deliver.c),client $(TOPOLOGY),\
hwloc libzstd libcurl jansson munge inih libcrypto,))
$(eval $(call unit,test_deliver,tests/unit/test_deliver.c node_agent/deliver.c,client $(TOPOLOGY),\
libzstd libcurl jansson munge libcrypto,))
