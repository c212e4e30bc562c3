-- SPDX-License-Identifier: GPL-2.0-or-later
-- The registry's tables. Applied by topiaryd once; a file that was applied is never edited. Views for people: 0002_views.sql.
--
-- A document is stored as a layout and a few bytes: the layout names a base, which is a whole document, and how the bytes turn it into the
-- node's (lib/delta/field_layout.h, pack.h). A hundred thousand nodes share a few layouts; a node is one row.

CREATE TABLE shape (
	name       text PRIMARY KEY,
	allocation text NOT NULL,
	hierarchy  text NOT NULL,
	cores_only text NOT NULL,
	cores      integer NOT NULL CHECK (cores > 0),
	pus        integer NOT NULL CHECK (pus >= cores)
);
COMMENT ON TABLE shape IS 'Shapes: the hardware of nodes without serial numbers and addresses';
COMMENT ON COLUMN shape.name IS 's and the first 8 hexadecimal digits of the SHA-256 of allocation';
COMMENT ON COLUMN shape.allocation IS 'shape string for slurmctld: the hierarchy with memory and devices';
COMMENT ON COLUMN shape.hierarchy IS 'hwloc''s synthetic notation, with braces where siblings differ';

CREATE TABLE class (
	id              integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	baseline        integer,
	accepted_from   integer REFERENCES class,
	recompare_since timestamptz,
	created         timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE class IS 'Classes: nodes that are expected to be identical but for serial numbers and addresses; drift is the difference from the baseline';
COMMENT ON COLUMN class.baseline IS 'the base that the nodes of the class are compared with';
COMMENT ON COLUMN class.accepted_from IS 'the class that its baseline drifted from until an administrator accepted it';
COMMENT ON COLUMN class.recompare_since IS 'the baseline changed: drift of documents since this time is determined anew; -infinity: of all; NULL: done';

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
	created   timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE base ALTER COLUMN bytes SET STORAGE EXTERNAL;
ALTER TABLE class ADD FOREIGN KEY (baseline) REFERENCES base;
CREATE INDEX base_class ON base (class);
COMMENT ON TABLE base IS 'Bases: whole documents, against which others are stored';
COMMENT ON COLUMN base.sha256 IS 'of the XML as a node exported it';
COMMENT ON COLUMN base.bytes IS 'the XML, compressed with zstd';
COMMENT ON COLUMN base.detail IS 'synthetic string with memory and cache sizes and OS indexes';
COMMENT ON COLUMN base.drift IS 'changes from the baseline of its class as JSON; NULL without drift';
COMMENT ON COLUMN base.node IS 'the node that exported it';

CREATE TABLE fact (
	base   integer NOT NULL REFERENCES base ON DELETE CASCADE,
	line   integer NOT NULL,
	object text NOT NULL,
	name   text NOT NULL,
	value  text NOT NULL,
	PRIMARY KEY (base, line)
);
COMMENT ON TABLE fact IS 'Facts of a base: values that may differ between nodes of a class, and others of interest';
COMMENT ON COLUMN fact.line IS 'line of the XML, from 0';

CREATE TABLE layout (
	id      integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	base    integer NOT NULL REFERENCES base ON DELETE CASCADE,
	kind    text NOT NULL CHECK (kind IN ('base', 'fields', 'patch')),
	shape   text NOT NULL REFERENCES shape,
	created timestamptz NOT NULL DEFAULT now(),
	mark    uuid NOT NULL DEFAULT gen_random_uuid()
);
CREATE INDEX layout_base ON layout (base, kind);
COMMENT ON TABLE layout IS 'Layouts: how documents are stored against a base: as the base itself, as values of its fields, or as a zstd patch';
COMMENT ON COLUMN layout.shape IS 'shape of all documents in this layout; with a patch it may differ from the base''s';
COMMENT ON COLUMN layout.mark IS 'random identifier, unique in this database and all copies of it';

CREATE TABLE field (
	layout     integer NOT NULL REFERENCES layout ON DELETE CASCADE,
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
	pattern    text GENERATED ALWAYS AS (
		CASE WHEN digits > 0 THEN regexp_replace(replace(middle, '%', '%%'), '[0-9a-f]', '%s', 'g') END) STORED,
	PRIMARY KEY (layout, n)
);
CREATE INDEX field_line ON field (layout, line);
COMMENT ON TABLE field IS 'Fields of a layout: places of the base''s text where documents differ (lib/delta/field_layout.h)';
COMMENT ON COLUMN field.pages IS 'a count of pages, computed from a memory size';
COMMENT ON COLUMN field.at IS 'position of the middle of the value in node.diff (field_layout_position)';
COMMENT ON COLUMN field.before IS 'common beginning of the values of all nodes';
COMMENT ON COLUMN field.middle IS 'the part that differs, as in the base';
COMMENT ON COLUMN field.after IS 'common end of the values of all nodes';
COMMENT ON COLUMN field.pattern IS 'of a value of hexadecimal digits, the text between them, for format()';

-- The widest columns first, and few that may be NULL: with a hundred thousand rows every byte counts.
CREATE TABLE node (
	since     timestamptz NOT NULL DEFAULT now(),
	seq       bigint NOT NULL,
	boot      uuid NOT NULL,
	seen      integer NOT NULL DEFAULT 0,
	layout    integer NOT NULL REFERENCES layout,
	xml_bytes integer NOT NULL CHECK (xml_bytes > 0),
	sha256    bytea NOT NULL CHECK (octet_length(sha256) = 32),
	name      text PRIMARY KEY,
	diff      bytea NOT NULL,
	peer      inet
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX node_peer ON node (peer) WHERE peer IS NOT NULL;
COMMENT ON TABLE node IS 'Nodes: the present export of each, and when it was last seen';
COMMENT ON COLUMN node.since IS 'when this document was first stored';
COMMENT ON COLUMN node.seq IS 'sequence number of the last acknowledged export of that boot; lower ones are refused';
COMMENT ON COLUMN node.seen IS 'last acknowledged export, changed or not: seconds after since';
COMMENT ON COLUMN node.layout IS 'the layout of diff';
COMMENT ON COLUMN node.sha256 IS 'of the XML as the node exported it';
COMMENT ON COLUMN node.diff IS 'what the layout stores of the document';
COMMENT ON COLUMN node.peer IS 'address that sent the last export; NULL: not known, or shared by many';

CREATE TABLE past (
	since     timestamptz NOT NULL,
	until     timestamptz NOT NULL,
	layout    integer NOT NULL REFERENCES layout,
	xml_bytes integer NOT NULL,
	sha256    bytea NOT NULL,
	node      text NOT NULL,
	diff      bytea NOT NULL,
	PRIMARY KEY (node, since)
);
CREATE INDEX past_until ON past (until);
CREATE INDEX past_layout ON past (layout);
COMMENT ON TABLE past IS 'Former exports of nodes';

CREATE TABLE node_fact (
	node   text NOT NULL REFERENCES node ON DELETE CASCADE ON UPDATE CASCADE,
	line   integer NOT NULL,
	object text NOT NULL,
	name   text NOT NULL,
	value  text NOT NULL,
	PRIMARY KEY (node, line)
);
COMMENT ON TABLE node_fact IS 'Facts of a node stored as a patch that differ from its base''s';
COMMENT ON COLUMN node_fact.line IS 'line of the XML, from 0; below 0: a fact of the base that the node lacks';

CREATE TABLE drift (
	node     text PRIMARY KEY REFERENCES node ON DELETE CASCADE ON UPDATE CASCADE,
	severity text NOT NULL CHECK (severity IN ('cosmetic', 'wiring', 'capacity')),
	since    timestamptz NOT NULL DEFAULT now(),
	reported boolean NOT NULL DEFAULT false,
	tries    smallint NOT NULL DEFAULT 0,
	changes  jsonb NOT NULL
);
CREATE INDEX drift_unreported ON drift (node) WHERE NOT reported;
COMMENT ON TABLE drift IS 'Nodes that have drifted from their class';
COMMENT ON COLUMN drift.reported IS 'the drift hook was run for it, or given up';
COMMENT ON COLUMN drift.tries IS 'failed runs of the drift hook';
COMMENT ON COLUMN drift.changes IS 'list of changes as JSON, most severe first';

CREATE TABLE cost_list (
	name     text PRIMARY KEY,
	quantity text[] NOT NULL
);
COMMENT ON TABLE cost_list IS 'What was measured: one row shared by all nodes of a shape';
COMMENT ON COLUMN cost_list.name IS 'the first 16 hexadecimal digits of the SHA-256 of quantity, a line each';
COMMENT ON COLUMN cost_list.quantity IS 'lib/hwbench/result.h: "memory bandwidth, ..." in bytes a second, others in seconds';

CREATE TABLE node_costs (
	measured timestamptz NOT NULL DEFAULT now(),
	uid      bigint NOT NULL,
	node     text PRIMARY KEY REFERENCES node ON DELETE CASCADE ON UPDATE CASCADE,
	shape    text NOT NULL,
	list     text NOT NULL REFERENCES cost_list,
	value    real[] NOT NULL
);
COMMENT ON TABLE node_costs IS 'The last measurement of each node';
COMMENT ON COLUMN node_costs.uid IS 'who signed it: root of the node, or an administrator';
COMMENT ON COLUMN node_costs.shape IS 'of the node at that time; with another shape now the measurement does not count';

CREATE TABLE class_costs (
	class  integer NOT NULL,
	shape  text NOT NULL,
	list   text NOT NULL REFERENCES cost_list,
	nodes  integer NOT NULL,
	mark   numeric NOT NULL,
	median real[] NOT NULL,
	spread real[] NOT NULL,
	worst  real[] NOT NULL,
	PRIMARY KEY (class, shape, list)
);
COMMENT ON TABLE class_costs IS 'What the measured nodes of one class and shape have in common';
COMMENT ON COLUMN class_costs.mark IS 'of the measurements that it is computed from';
COMMENT ON COLUMN class_costs.spread IS 'median absolute deviation from the median, at least that of half of the quantities of its kind';
COMMENT ON COLUMN class_costs.worst IS 'costs_limit';

-- With the columns of drift, so that the drift hook handles both alike. drift itself is rewritten by each export of a node.
CREATE TABLE slow_node (
	node     text PRIMARY KEY REFERENCES node ON DELETE CASCADE ON UPDATE CASCADE,
	severity text NOT NULL DEFAULT 'slow' CHECK (severity = 'slow'),
	since    timestamptz NOT NULL DEFAULT now(),
	reported boolean NOT NULL DEFAULT false,
	tries    smallint NOT NULL DEFAULT 0,
	class    integer NOT NULL,
	shape    text NOT NULL,
	list     text NOT NULL,
	changes  jsonb NOT NULL
);
COMMENT ON TABLE slow_node IS 'Nodes that are slower than their class by measurement';

-- One machine under two names: Slurm counts its cores twice, or root of one node exports another's topology.
CREATE TABLE same_hardware (
	node    text PRIMARY KEY REFERENCES node ON DELETE CASCADE ON UPDATE CASCADE,
	since   timestamptz NOT NULL DEFAULT now(),
	others  text[] NOT NULL,
	changes jsonb NOT NULL
);
COMMENT ON TABLE same_hardware IS 'nodes that exported the hardware of others, as found by upkeep; the drift hook is not run for them';
COMMENT ON COLUMN same_hardware.others IS 'the first four';
COMMENT ON COLUMN same_hardware.changes IS 'as in drift';

CREATE TABLE unreadable (
	node   text NOT NULL,
	since  timestamptz NOT NULL,
	found  timestamptz NOT NULL DEFAULT now(),
	reason text NOT NULL,
	PRIMARY KEY (node, since)
);
COMMENT ON TABLE unreadable IS 'Documents in node and past that cannot be rebuilt; nodes are asked to send their present ones again';
COMMENT ON COLUMN unreadable.since IS 'that of the document: node.since or past.since';

-- One row. What topiaryd remembers of a database must be of this database as it is: one restored from a dump, or promoted without its last
-- commits, assigns the same numbers to other rows. Hence identity, and the mark of each layout: rows are stored against number and mark.
CREATE TABLE registry (
	one           boolean PRIMARY KEY DEFAULT true CHECK (one),
	identity      uuid NOT NULL DEFAULT gen_random_uuid(),
	verify_cursor text NOT NULL DEFAULT '',
	verified      timestamptz,
	matched       timestamptz NOT NULL DEFAULT '-infinity',
	compared      timestamptz NOT NULL DEFAULT '-infinity',
	removed       bigint NOT NULL DEFAULT 0
);
INSERT INTO registry DEFAULT VALUES;
COMMENT ON TABLE registry IS 'This registry: one row';
COMMENT ON COLUMN registry.identity IS 'random; compared by topiaryd at each connect, together with the server''s own identifiers';
COMMENT ON COLUMN registry.verify_cursor IS 'cursor of the present check of all stored documents';
COMMENT ON COLUMN registry.verified IS 'when the last complete check ended';
COMMENT ON COLUMN registry.matched IS 'fabric_adapter.node covers all topologies that were stored before';
COMMENT ON COLUMN registry.compared IS 'same_hardware covers all topologies that were stored before';
COMMENT ON COLUMN registry.removed IS 'how many nodes topiary forget has removed; written into each snapshot';

CREATE FUNCTION node_name_canonical(name text, domain boolean) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT lower(CASE WHEN domain THEN rtrim(name, '.') ELSE split_part(name, '.', 1) END)
$$;

-- Renames nodes with other spellings. Of several spellings of one name the row that was exported last stays, with the history of all.
CREATE FUNCTION node_names_canonical(domain boolean) RETURNS TABLE (former text, name text, renamed boolean) LANGUAGE plpgsql AS $$
BEGIN
	FOR former, name IN
		SELECT n.name, node_name_canonical(n.name, domain) FROM node n WHERE n.name <> node_name_canonical(n.name, domain)
		ORDER BY n.since + make_interval(secs => n.seen) DESC, n.name
	LOOP
		renamed := NOT EXISTS (SELECT FROM node n WHERE n.name = node_names_canonical.name);
		IF renamed THEN
			UPDATE node n SET name = node_names_canonical.name WHERE n.name = former;
		ELSE
			DELETE FROM node n WHERE n.name = former;
		END IF;
		UPDATE past p SET node = node_names_canonical.name WHERE p.node = former
		       AND NOT EXISTS (SELECT FROM past o WHERE o.node = node_names_canonical.name AND o.since = p.since);
		UPDATE base b SET node = node_names_canonical.name WHERE b.node = former;
		DELETE FROM unreadable u WHERE u.node = former;
		UPDATE fabric_adapter a SET node = node_names_canonical.name WHERE a.node = former;
		RETURN NEXT;
	END LOOP;
END
$$;
