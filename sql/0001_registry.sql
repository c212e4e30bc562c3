-- SPDX-License-Identifier: GPL-2.0-or-later
-- The registry: what every node exported, stored small. Applied by topiaryd, once; never edited afterwards. Views for people: 0002_views.sql.
--
-- A document is told by a form and the few bytes of its own: the form names a base, a whole document, and how the bytes make
-- the node's document of it (lib/topo/fields.h, lib/topo/pack.h). A hundred thousand nodes share some forms; a node is one row.

CREATE TABLE shape (
	name       text PRIMARY KEY,
	allocation text NOT NULL,
	hierarchy  text NOT NULL,
	cores_only text NOT NULL,
	cores      integer NOT NULL CHECK (cores > 0),
	pus        integer NOT NULL CHECK (pus >= cores)
);
COMMENT ON TABLE shape IS 'What the hardware of a node is, apart from serial numbers and addresses';
COMMENT ON COLUMN shape.name IS 's and the first 8 hexadecimal digits of the SHA-256 of allocation';
COMMENT ON COLUMN shape.allocation IS 'what slurmctld is told: the hierarchy with its memory and its devices';
COMMENT ON COLUMN shape.hierarchy IS 'hwloc''s synthetic notation, with braces where siblings differ';

CREATE TABLE class (
	id     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	golden integer,
	accepted_from integer REFERENCES class,
	retell timestamptz,
	made   timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE class IS 'Nodes that are expected to be alike; each is compared with the golden base';
COMMENT ON COLUMN class.accepted_from IS 'the class from which its golden base drifted until somebody accepted it';
COMMENT ON COLUMN class.retell IS 'documents that came since may be told to drift from an earlier golden base; NULL: none';

CREATE TABLE base (
	id        integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	class     integer NOT NULL REFERENCES class,
	shape     text NOT NULL REFERENCES shape,
	sha256    bytea NOT NULL UNIQUE CHECK (octet_length(sha256) = 32),
	bytes     bytea NOT NULL,
	xml_bytes integer NOT NULL CHECK (xml_bytes > 0),
	detail    text NOT NULL,
	drift     jsonb,
	node      text NOT NULL,
	made      timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE base ALTER COLUMN bytes SET STORAGE EXTERNAL;
ALTER TABLE class ADD FOREIGN KEY (golden) REFERENCES base;
CREATE INDEX base_class ON base (class);
COMMENT ON TABLE base IS 'A whole document, from which others differ little';
COMMENT ON COLUMN base.sha256 IS 'of the XML as a node exported it';
COMMENT ON COLUMN base.bytes IS 'zstd; compressed already, hence storage EXTERNAL';
COMMENT ON COLUMN base.detail IS 'the synthetic string with memory and cache sizes and OS indexes';
COMMENT ON COLUMN base.drift IS 'how it differs from its class''s golden base; NULL when it does not';
COMMENT ON COLUMN base.node IS 'the node it came from';

CREATE TABLE fact (
	base   integer NOT NULL REFERENCES base ON DELETE CASCADE,
	line   integer NOT NULL,
	object text NOT NULL,
	name   text NOT NULL,
	value  text NOT NULL,
	PRIMARY KEY (base, line)
);
COMMENT ON TABLE fact IS 'What a base says in each place where nodes may differ';
COMMENT ON COLUMN fact.line IS 'of the XML, from 0';

CREATE TABLE form (
	id     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	base   integer NOT NULL REFERENCES base ON DELETE CASCADE,
	kind   text NOT NULL CHECK (kind IN ('base', 'fields', 'patch')),
	shape  text NOT NULL REFERENCES shape,
	made   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX form_base ON form (base, kind);
COMMENT ON TABLE form IS 'How documents are made of a base: it is the base itself, or has values in its fields, or is a zstd patch';
COMMENT ON COLUMN form.shape IS 'of all nodes of this form; that of a patch may differ from the base''s';

CREATE TABLE field (
	form       integer NOT NULL REFERENCES form ON DELETE CASCADE,
	n          integer NOT NULL,
	line       integer NOT NULL,
	start      integer NOT NULL,
	len        integer NOT NULL,
	keep_start integer NOT NULL,
	keep_end   integer NOT NULL,
	alias      integer NOT NULL,
	fixed      boolean NOT NULL,
	digits     integer NOT NULL,
	pages      boolean NOT NULL,
	at         integer NOT NULL,
	width      integer NOT NULL,
	ordinal    integer NOT NULL,
	before     text NOT NULL,
	middle     text NOT NULL,
	after      text NOT NULL,
	PRIMARY KEY (form, n)
);
CREATE INDEX field_line ON field (form, line);
COMMENT ON TABLE field IS 'The fields of a form (lib/topo/fields.h)';
COMMENT ON COLUMN field.at IS 'where its middle stands in node.diff: form_place';
COMMENT ON COLUMN field.pages IS 'a count of pages that a memory tells';
COMMENT ON COLUMN field.before IS 'what every node has before the middle';
COMMENT ON COLUMN field.middle IS 'what the base has there';

-- The columns stand widest first, and few may be NULL: a row of 100,000 counts every byte.
CREATE TABLE node (
	since     timestamptz NOT NULL DEFAULT now(),
	seq       bigint NOT NULL,
	boot      uuid NOT NULL,
	seen      integer NOT NULL DEFAULT 0,
	form      integer NOT NULL REFERENCES form,
	xml_bytes integer NOT NULL CHECK (xml_bytes > 0),
	sha256    bytea NOT NULL CHECK (octet_length(sha256) = 32),
	name      text PRIMARY KEY,
	diff      bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE node IS 'A node: what it exported last, and when it was seen';
COMMENT ON COLUMN node.since IS 'when this document first came';
COMMENT ON COLUMN node.seen IS 'the last acknowledged export, be it unchanged: seconds after since';
COMMENT ON COLUMN node.seq IS 'of the last acknowledged export of that boot; a smaller one is refused';
COMMENT ON COLUMN node.sha256 IS 'of the XML to the byte as the node exported it';
COMMENT ON COLUMN node.diff IS 'what the form makes the document of';

CREATE TABLE past (
	since     timestamptz NOT NULL,
	until     timestamptz NOT NULL,
	form      integer NOT NULL REFERENCES form,
	xml_bytes integer NOT NULL,
	sha256    bytea NOT NULL,
	node      text NOT NULL,
	diff      bytea NOT NULL,
	PRIMARY KEY (node, since)
);
CREATE INDEX past_until ON past (until);
CREATE INDEX past_form ON past (form);
COMMENT ON TABLE past IS 'What nodes exported before: their history';

CREATE TABLE node_fact (
	node   text NOT NULL REFERENCES node ON DELETE CASCADE,
	line   integer NOT NULL,
	object text NOT NULL,
	name   text NOT NULL,
	value  text NOT NULL,
	PRIMARY KEY (node, line)
);
COMMENT ON TABLE node_fact IS 'The facts of a node stored as a patch that are not its base''s';
COMMENT ON COLUMN node_fact.line IS 'of the XML, from 0; below 0: a fact of the base that this node has not';

CREATE TABLE drift (
	node     text PRIMARY KEY REFERENCES node ON DELETE CASCADE,
	severity text NOT NULL CHECK (severity IN ('cosmetic', 'wiring', 'capacity')),
	since    timestamptz NOT NULL DEFAULT now(),
	told     boolean NOT NULL DEFAULT false,
	tries    smallint NOT NULL DEFAULT 0,
	changes  jsonb NOT NULL
);
CREATE INDEX drift_untold ON drift (node) WHERE NOT told;
COMMENT ON TABLE drift IS 'Nodes that are not what their class is';
COMMENT ON COLUMN drift.told IS 'the hook program was run for it';
COMMENT ON COLUMN drift.tries IS 'how often the hook program failed for it';
