/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_HWXML_XML_ERROR_H
#define TOPIARY_HWXML_XML_ERROR_H

#include <libxml/xmlerror.h>

/* The type that libxml2 passes to error handlers: const since its release 2.12. */
#if LIBXML_VERSION >= 21200
typedef const xmlError xml_error;
#else
typedef xmlError xml_error;
#endif

#endif
