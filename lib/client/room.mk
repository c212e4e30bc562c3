$(eval $(call archive,client,$(addprefix lib/client/,cred.c http.c),munge libcurl libcrypto))
