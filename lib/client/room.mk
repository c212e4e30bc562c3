$(eval $(call archive,client,$(addprefix lib/client/,claim.c cred.c http.c),munge libcurl libcrypto))
$(eval $(call unit,test_cred,tests/unit/test_cred.c,client base,munge libcrypto,))
