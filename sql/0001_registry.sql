-- SPDX-License-Identifier: GPL-2.0-or-later
-- The registry: what every node exported, at which boot, stored small. Applied by topiaryd, once; never edited afterwards.

CREATE TABLE shape (
	name      text PRIMARY KEY,
	synthetic text NOT NULL,
	cores     integer NOT NULL CHECK (cores > 0),
	pus       integer NOT NULL CHECK (pus >= cores)
);
COMMENT ON TABLE shape IS 'What the hardware of a node is, apart from serial numbers and addresses';
COMMENT ON COLUMN shape.name IS 's and the first 8 hexadecimal digits of the SHA-256 of synthetic';
COMMENT ON COLUMN shape.synthetic IS 'hwloc''s synthetic notation, with braces where siblings differ';

CREATE TABLE document (
	id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	sha256    text NOT NULL UNIQUE CHECK (sha256 ~ '^[0-9a-f]{64}$'),
	shape     text NOT NULL REFERENCES shape,
	kind      text NOT NULL CHECK (kind IN ('base', 'lines', 'patch')),
	base      bigint REFERENCES document,
	bytes     bytea NOT NULL,
	xml_bytes integer NOT NULL CHECK (xml_bytes > 0),
	CHECK ((kind = 'base') = (base IS NULL))
);
CREATE INDEX document_bases ON document (shape, id) WHERE kind = 'base';
ALTER TABLE document ALTER COLUMN bytes SET STORAGE EXTERNAL;
COMMENT ON TABLE document IS 'A topology in canonical XML: whole (base), or its difference from a base of the same shape';
COMMENT ON COLUMN document.sha256 IS 'of the canonical XML';
COMMENT ON COLUMN document.bytes IS 'packed; compressed already, hence storage EXTERNAL';

CREATE TABLE node (
	name    text PRIMARY KEY,
	current bigint
);
COMMENT ON TABLE node IS 'A node and what it exported last';

CREATE TABLE export (
	id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	node           text NOT NULL REFERENCES node,
	sha256         text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
	document       bigint NOT NULL REFERENCES document,
	original_kind  text CHECK (original_kind IN ('base', 'lines', 'patch')),
	original_bytes bytea,
	original_base  bigint REFERENCES export,
	xml_bytes      integer NOT NULL CHECK (xml_bytes > 0),
	host           text,
	received       timestamptz NOT NULL DEFAULT now(),
	UNIQUE (node, sha256),
	CHECK ((original_kind IS NULL) = (original_bytes IS NULL))
);
CREATE INDEX export_document ON export (document);
ALTER TABLE export ALTER COLUMN original_bytes SET STORAGE EXTERNAL;
ALTER TABLE node ADD FOREIGN KEY (current) REFERENCES export;
COMMENT ON TABLE export IS 'Each different topology that a node exported: its history';
COMMENT ON COLUMN export.sha256 IS 'of the XML to the byte as the node exported it';
COMMENT ON COLUMN export.original_bytes IS 'that XML packed against original_base''s, else against the canonical one; NULL when it is the canonical one';
COMMENT ON COLUMN export.original_base IS 'an export of the same kind of machine: hwloc numbered its objects alike';
COMMENT ON COLUMN export.host IS 'the HostName that the XML carries, which need not be the node''s name';

CREATE TABLE boot (
	id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	node     text NOT NULL REFERENCES node,
	boot_id  text NOT NULL,
	seq      bigint NOT NULL,
	export   bigint NOT NULL REFERENCES export,
	received timestamptz NOT NULL DEFAULT now(),
	UNIQUE (node, boot_id, seq)
);
CREATE INDEX boot_by_node ON boot (node, id);
COMMENT ON TABLE boot IS 'Each acknowledged export: which boot of which node, in which order';

CREATE VIEW topiary_nodes AS
SELECT n.name AS node, d.shape, s.synthetic, s.cores, s.pus, d.kind AS stored,
       (SELECT e2.node FROM export e2 WHERE e2.document = d.base ORDER BY e2.id LIMIT 1) AS base,
       octet_length(d.bytes) + coalesce(octet_length(e.original_bytes), 0) AS stored_bytes,
       e.xml_bytes, e.sha256, e.received AS topology_since,
       (SELECT b.received FROM boot b WHERE b.node = n.name ORDER BY b.id DESC LIMIT 1) AS last_boot
FROM node n
JOIN export e ON e.id = n.current
JOIN document d ON d.id = e.document
JOIN shape s ON s.name = d.shape;
COMMENT ON VIEW topiary_nodes IS 'A line a node, for people';
