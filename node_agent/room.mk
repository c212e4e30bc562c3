$(eval $(call program,topiary-agent,$(addprefix node_agent/,topiary-agent.c discover.c deliver.c),client topo base,\
hwloc libzstd libcurl jansson munge inih libcrypto,))
