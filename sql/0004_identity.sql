-- SPDX-License-Identifier: GPL-2.0-or-later
-- What topiaryd remembers of a database must be of this database as it is: one restored from a dump, or promoted without its last
-- commits, gives the same numbers to other rows.

-- A form is named by its number and its mark: rows are stored against both. Its base, fields and shape never change, so that the mark
-- stands for all of them. A dump keeps it; a form that is made after the dump was restored has another one.
ALTER TABLE form ADD COLUMN mark uuid NOT NULL DEFAULT gen_random_uuid();
COMMENT ON COLUMN form.mark IS 'random: no other form has it, in this database or in a copy of it';

-- One row.
CREATE TABLE registry (
	one      boolean PRIMARY KEY DEFAULT true CHECK (one),
	identity uuid NOT NULL DEFAULT gen_random_uuid(),
	checked  text NOT NULL DEFAULT '',
	whole    timestamptz
);
INSERT INTO registry DEFAULT VALUES;
COMMENT ON TABLE registry IS 'This registry: one row';
COMMENT ON COLUMN registry.identity IS 'random; compared by topiaryd at each connect, together with the server''s own identifiers';
COMMENT ON COLUMN registry.checked IS 'how far upkeep came in its present round of rebuilding all stored documents';
COMMENT ON COLUMN registry.whole IS 'when the last such round ended';

CREATE TABLE unreadable (
	node   text NOT NULL,
	since  timestamptz NOT NULL,
	found  timestamptz NOT NULL DEFAULT now(),
	reason text NOT NULL,
	PRIMARY KEY (node, since)
);
COMMENT ON TABLE unreadable IS 'Documents in node and past that cannot be rebuilt as their nodes sent them; a node''s present one is asked for anew';
COMMENT ON COLUMN unreadable.since IS 'that of the document: node.since or past.since';
