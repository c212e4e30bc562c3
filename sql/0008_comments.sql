-- SPDX-License-Identifier: GPL-2.0-or-later
-- Works with: 0006
-- What tables, views and columns hold, in the terms of docs/sql.md. Names do not change.

COMMENT ON TABLE shape IS 'Shapes: the hardware of nodes without serial numbers and addresses';
COMMENT ON COLUMN shape.name IS 's and the first 8 hexadecimal digits of the SHA-256 of allocation';
COMMENT ON COLUMN shape.allocation IS 'shape string for slurmctld: the hierarchy with memory and devices';
COMMENT ON COLUMN shape.hierarchy IS 'hwloc''s synthetic notation, with braces where siblings differ';

COMMENT ON TABLE class IS 'Classes: nodes that are expected to be identical but for serial numbers and addresses; drift is the difference from the golden base';
COMMENT ON COLUMN class.golden IS 'the base that is the baseline of the class';
COMMENT ON COLUMN class.accepted_from IS 'the class that its golden base drifted from until an administrator accepted it';
COMMENT ON COLUMN class.retell IS 'the baseline changed: drift of documents since this time is determined anew; -infinity: of all; NULL: done';

COMMENT ON TABLE base IS 'Bases: whole documents, against which others are stored';
COMMENT ON COLUMN base.sha256 IS 'of the XML as a node exported it';
COMMENT ON COLUMN base.bytes IS 'the XML, compressed with zstd';
COMMENT ON COLUMN base.detail IS 'synthetic string with memory and cache sizes and OS indexes';
COMMENT ON COLUMN base.drift IS 'changes from its class''s golden base as JSON; NULL without drift';
COMMENT ON COLUMN base.node IS 'the node that exported it';

COMMENT ON TABLE fact IS 'Facts of a base: values that may differ between nodes of a class, and others of interest';
COMMENT ON COLUMN fact.line IS 'line of the XML, from 0';

COMMENT ON TABLE form IS 'Layouts: how documents are stored against a base: as the base itself, as values of its fields, or as a zstd patch';
COMMENT ON COLUMN form.shape IS 'shape of all documents in this layout; with a patch it may differ from the base''s';
COMMENT ON COLUMN form.mark IS 'random identifier, unique in this database and all copies of it';

COMMENT ON TABLE field IS 'Fields of a layout: places of the base''s text where documents differ (lib/delta/field_layout.h)';
COMMENT ON COLUMN field.at IS 'position of the middle of the value in node.diff (field_layout_position)';
COMMENT ON COLUMN field.pages IS 'a count of pages, computed from a memory size';
COMMENT ON COLUMN field.before IS 'common beginning of the values of all nodes';
COMMENT ON COLUMN field.middle IS 'the part that differs, as in the base';
COMMENT ON COLUMN field.after IS 'common end of the values of all nodes';

COMMENT ON TABLE node IS 'Nodes: the present export of each, and when it was last seen';
COMMENT ON COLUMN node.since IS 'when this document was first stored';
COMMENT ON COLUMN node.seen IS 'last acknowledged export, changed or not: seconds after since';
COMMENT ON COLUMN node.seq IS 'sequence number of the last acknowledged export of that boot; lower ones are refused';
COMMENT ON COLUMN node.form IS 'the layout of diff';
COMMENT ON COLUMN node.sha256 IS 'of the XML as the node exported it';
COMMENT ON COLUMN node.diff IS 'what the layout stores of the document';

COMMENT ON TABLE past IS 'Former exports of nodes';

COMMENT ON TABLE node_fact IS 'Facts of a node stored as a patch that differ from its base''s';
COMMENT ON COLUMN node_fact.line IS 'line of the XML, from 0; below 0: a fact of the base that the node lacks';

COMMENT ON TABLE drift IS 'Nodes that have drifted from their class';
COMMENT ON COLUMN drift.told IS 'the drift hook was run for it, or given up';
COMMENT ON COLUMN drift.tries IS 'failed runs of the drift hook';
COMMENT ON COLUMN drift.changes IS 'list of changes as JSON, most severe first';

COMMENT ON COLUMN registry.checked IS 'cursor of the present check of all stored documents';
COMMENT ON COLUMN registry.whole IS 'when the last complete check ended';
COMMENT ON TABLE unreadable IS 'Documents in node and past that cannot be rebuilt; nodes are asked to send their present ones again';

COMMENT ON VIEW topiary_nodes IS 'One row per node';
COMMENT ON COLUMN topiary_nodes.base IS 'the node whose document is the base of this one''s; NULL when it is its own base';
COMMENT ON COLUMN topiary_nodes.stored_bytes IS 'of this document alone';
COMMENT ON COLUMN topiary_nodes.drift IS 'highest severity of its drift: cosmetic, wiring or capacity; NULL without drift';
COMMENT ON VIEW topiary_shapes IS 'One row per shape';
COMMENT ON VIEW topiary_classes IS 'One row per class, with its golden (baseline) node';
COMMENT ON VIEW topiary_facts IS 'Serial numbers, addresses, memory, BIOS, kernel: one row per value and node';
COMMENT ON COLUMN topiary_facts.fact IS 'name of the info in hwloc; memory: bytes of a NUMA node; pages 4096: number of such pages';
COMMENT ON COLUMN topiary_facts.line IS 'line of the document, to sort by';
COMMENT ON VIEW topiary_history IS 'One row per topology that a node exported, with its period; until is NULL for the present one';
COMMENT ON VIEW topiary_drift IS 'One row per change of each node that has drifted from its class';
COMMENT ON COLUMN topiary_drift.severity IS 'of the node: its highest';
COMMENT ON VIEW topiary_fabric IS 'One row per version of the fabric, with its period; until is NULL for the present one';
COMMENT ON COLUMN topiary_fabric.came IS 'switches, hosts and links added or changed';
COMMENT ON COLUMN topiary_fabric.went IS 'switches, hosts and links removed or changed';
COMMENT ON VIEW topiary_fabric_planes IS 'Sets of switches without links between them, the one with most hosts first';
COMMENT ON VIEW topiary_fabric_switches IS 'One row per switch';
COMMENT ON COLUMN topiary_fabric_switches.told IS 'its description in the subnet, where that is not its name here';
COMMENT ON COLUMN topiary_fabric_switches.rank IS 'hops to the nearest leaf switch; 0: it is one';
COMMENT ON VIEW topiary_fabric_links IS 'One row per pair of connected switches or hosts, with all cables between them';
COMMENT ON COLUMN topiary_fabric_links.mbps IS 'of all cables together; NULL: unknown';
COMMENT ON VIEW topiary_fabric_adapters IS 'One row per adapter of a host';
COMMENT ON COLUMN topiary_fabric_adapters.node IS 'the node whose topology has the GUID of the adapter or of its port; NULL: none';
COMMENT ON COLUMN topiary_fabric_adapters.device IS 'its name in that topology';
COMMENT ON VIEW topiary_fabric_hosts IS 'One row per host';
COMMENT ON COLUMN topiary_fabric_hosts.node IS 'the node, by a GUID of its adapters, else by its name; NULL: not in the registry';
COMMENT ON COLUMN topiary_fabric_hosts.known IS 'the fabric has its name; otherwise it is named by its GUID';
COMMENT ON COLUMN topiary_fabric_hosts.plane IS 'plane of its first link; NULL: not connected to a switch';
COMMENT ON VIEW topiary_fabric_changes IS 'One row per switch, host or link added, removed or changed with a version';
