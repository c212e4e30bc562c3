$(eval $(call program,topiary-agent,$(addprefix node_agent/,topiary-agent.c deliver.c),client $(TOPOLOGY),\
hwloc libxml-2.0 libzstd libcurl jansson munge libcrypto,))
$(eval $(call program,topiary-monitor,$(addprefix node_agent/,topiary-monitor.c monitor_steps.c monitor_trace.c monitor_metrics.c),monitor trace hwview base,\
hwloc libzstd jansson libcrypto,-lm))
$(eval $(call unit,test_deliver,tests/unit/test_deliver.c node_agent/deliver.c,client $(TOPOLOGY),\
libzstd libcurl jansson munge libcrypto,))
$(eval $(call unit,test_metrics,tests/unit/test_metrics.c node_agent/monitor_metrics.c,monitor trace base,\
hwloc libzstd jansson libcrypto,-lm))
$(eval $(call unit,test_monitor_trace,tests/unit/test_monitor_trace.c node_agent/monitor_trace.c,monitor trace base,\
hwloc libzstd jansson libcrypto,-lm -Wl$(comma)--wrap=clock_nanoseconds))
