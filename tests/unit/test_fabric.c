/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/buf.h"
#include "fabric/write/export.h"
#include "fabric/model/fabric.h"
#include "fabric/read/json.h"
#include "fabric/model/names.h"
#include "table.h"

OWNS(struct fabric *, fabric_free)
OWNS(json_t *, json_decref)

static struct fabric *fabric_with(const char *text, const struct fabric_names *names)
{
	struct fabric *f = fabric_parse(&(struct fabric_text){ text, "test", strlen(text) }, 1, names, &err);

	if (!f)
		fail_msg("%s\n%s", err.text, text);
	return f;
}

static struct fabric *fabric_of(const char *text)
{
	return fabric_with(text, NULL);
}

static const struct fabric_node *node_of(const struct fabric *f, const char *name)
{
	for (unsigned i = 0; i < f->nnodes; i++)
		if (!strcmp(f->nodes[i].name, name))
			return &f->nodes[i];
	fail_msg("no node %s", name);
	return NULL;
}

static unsigned distance(const struct hierarchy *h, const char *a, const char *b)
{
	const struct hierarchy_host *x = hierarchy_find(h, a), *y = hierarchy_find(h, b);

	assert_non_null(x);
	assert_non_null(y);
	assert_int_equal(hierarchy_distance(h, x, y), hierarchy_distance(h, y, x));
	return hierarchy_distance(h, x, y);
}

TEST(derives_names_from_descriptions)
{
	static const struct {
		const char *description, *host, *as_switch;
	} rows[] = {
		{ "miriel066 qib0", "miriel066", "miriel066-qib0" },
		{ "cn001 HCA-1", "cn001", "cn001-HCA-1" },
		{ "cn001 mlx5_0", "cn001", "cn001-mlx5_0" },
		{ "cn001.example mlx5_bond_0", "cn001.example", "cn001.example-mlx5_bond_0" },
		{ "cn001", "cn001", "cn001" },
		{ "localhost HCA-1", NULL, "localhost-HCA-1" },
		{ "localhost.localdomain mlx5_0", NULL, "localhost.localdomain-mlx5_0" },
		{ "ubuntu mlx5_0", NULL, "ubuntu-mlx5_0" },
		{ "ubuntu7 mlx5_0", "ubuntu7", "ubuntu7-mlx5_0" },
		{ "rocky", NULL, "rocky" },
		{ "ConnectX-6", NULL, "ConnectX-6" },
		{ "mlx5_0", NULL, "mlx5_0" },
		{ "MT4123", NULL, "MT4123" },
		{ "MT4123x", "MT4123x", "MT4123x" },
		{ "localhost1 HCA-1", "localhost1", "localhost1-HCA-1" },
		{ "MT25408 ConnectX Mellanox Technologies", NULL, "MT25408-ConnectX-Mellanox-Technologies" },
		{ "Mellanox Technologies Aggregation Node", NULL, "Mellanox-Technologies-Aggregation-Node" },
		{ "MT25408 ConnectX", NULL, "MT25408-ConnectX" },
		{ "MF0;leaf7:MSX6036/U1", NULL, "leaf7-MSX6036-U1" },
		{ "QLogic 12800-180 GUID=0x00066a00e8001310 L108", NULL, "QLogic-12800-180-L108" },
		{ "\xc3\xa9t\xc3\xa9 mlx5_0", NULL, "t-mlx5_0" },
		{ " ;!", NULL, NULL },
		{ "", NULL, NULL },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf host = {0}, name = {0};

		assert_int_equal(names_host(rows[i].description, &host) != NULL, rows[i].host != NULL);
		if (rows[i].host)
			assert_string_equal(host.data, rows[i].host);
		assert_int_equal(names_switch(rows[i].description, &name), rows[i].as_switch != NULL);
		if (rows[i].as_switch)
			assert_string_equal(name.data, rows[i].as_switch);
	}
}

/* One leaf switch of two hosts and a spine, two cables between them, in every form that can say so. */
static const char ports[] =
	"DR path slid 0; dlid 0; 0 -> new Channel Adapter {0000000000000010} portnum 1 lid 0-0 \"\"\n"
	"CA     2  1 0x0000000000000011 4x QDR - SW     1  1 0x00000000000000a1 ( 'cn1 mlx4_0' - 'leaf' )\n"
	"SW     1  1 0x00000000000000a1 4x QDR - CA     2  1 0x0000000000000011 ( 'leaf' - 'cn1 mlx4_0' )\n"
	"SW     1  2 0x00000000000000a1 4x QDR - CA     3  1 0x0000000000000021 ( 'leaf' - 'cn2 mlx4_0' )\n"
	"SW     1  3 0x00000000000000a1 4x QDR - SW     4  1 0x00000000000000a2 ( 'leaf' - 'spine' )\n"
	"SW     1  4 0x00000000000000a1 4x QDR - SW     4  2 0x00000000000000a2 ( 'leaf' - 'spine' )\n"
	"SW     4  2 0x00000000000000a2 4x QDR - SW     1  4 0x00000000000000a1 ( 'spine' - 'leaf' )\n"
	"SW     4  3 0x00000000000000a2 4x ???                                    'spine'\n";

static const char discovered[] =
	"#\n# Topology file: generated on Tue Jun  5 14:15:10 2007\n#\n\nvendid=0x8f1\ndevid=0x5a06\nsysimgguid=0x1\n"
	"switchguid=0xa1(a1)\nSwitch\t36 \"S-00000000000000a1\"\t\t# \"leaf\" enhanced port 0 lid 1 lmc 0\n"
	"[1]\t\"H-0000000000000010\"[1](11) \t\t# \"cn1 mlx4_0\" lid 2 4xQDR\n"
	"[2][ext 2]\t\"H-0000000000000020\"[1](21) \t\t# \"cn2 mlx4_0\" lid 3 4xQDR\n"
	"[3]\t\"S-00000000000000a2\"[1]\t\t# \"spine\" lid 4 4xQDR\n"
	"[4]\t\"S-00000000000000a2\"[2]\t\t# \"spine\" lid 4 4xQDR\n\n"
	"caguid=0x10\r\nCa\t2 \"H-0000000000000010\"\t\t# \"cn1 mlx4_0\"\r\n"
	"[1](11) \t\"S-00000000000000a1\"[1]\t\t# lid 2 lmc 0 \"leaf\" lid 1 4xQDR";

TEST(reads_every_format_of_infiniband)
{
	static const char *const rows[] = { ports, discovered };

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(fabric_free) struct fabric *f = fabric_of(rows[i]);

		assert_int_equal(f->nnodes, 4);
		assert_int_equal(f->nswitches, 2);
		assert_int_equal(f->nadapters, 2);
		assert_int_equal(f->nlinks, 3);
		assert_int_equal(f->nplanes, 1);
		assert_int_equal(f->planes[0].cables, 4);
		assert_int_equal(f->planes[0].kind, FABRIC_ONE_SWITCH);
		assert_int_equal(node_of(f, "leaf")->guid, 0xa1);
		assert_int_equal(node_of(f, "leaf")->rank, 0);
		assert_int_equal(node_of(f, "spine")->rank, 1);
		assert_true(node_of(f, "cn1")->named && !node_of(f, "cn1")->is_switch);
		assert_int_equal(f->adapters[0].port, 0x11);
		for (unsigned l = 0; l < f->nlinks; l++) {
			bool trunk = f->links[l].b < f->nswitches;

			assert_int_equal(f->links[l].count, trunk ? 2 : 1);
			assert_int_equal(f->links[l].mbps, trunk ? 64000 : 32000);
		}
	}
}

#define TAG(tag, text) "    <" tag ">" text "</" tag ">\n"
#define PORT(guid, port, type, name) "  <Port id=\"" guid ":" port "\">\n" TAG("NodeGUID", guid) TAG("PortNum", port) \
	TAG("NodeType", type) TAG("NodeType_Int", "1") TAG("NodeDesc", name) "  </Port>\n"
#define LINK(a, b) " <Link id=\"0x1:1\">\n" TAG("Rate", "100g") TAG("Rate_Int", "16") a b " </Link>\n"
#define HEAD "<?xml version=\"1.0\" encoding=\"utf-8\" ?>\n<Report date=\"\">\n<LinkSummary>\n"
#define LEAF(port) PORT("0x00000000000000a1", port, "SW", "leaf L1")

/* Two hosts at a leaf switch, which has two cables to a spine; as text, with details and without, and as XML. */
TEST(reads_links_of_omni_path)
{
	static const char *const texts[] = {
		"Link Summary\n\n4 Links in Fabric:\nRate NodeGUID          Port Type Name\n"
		"    Cable: CableLabel           CableLen\n"
		"100g 0x0000000000000010   1 FI   cn1 hfi1_0\n"
		"<->  0x00000000000000a1   3 SW   leaf L1\n"
		"    Cable: S4510       1m\n"
		"100g 0x0000000000000020   1 FI   cn2 hfi1_0\n<->  0x00000000000000a1   4 SW   leaf L1\n"
		"100g 0x00000000000000a1  47 SW   leaf L1\n<->  0x00000000000000a2   1 SW   spine\n"
		"100g 0x00000000000000a1  48 SW   leaf L1\n<->  0x00000000000000a2   2 SW   spine\n"
		"---------------------------------------\n",
		HEAD TAG("LinkCount", "4") LINK(PORT("0x0000000000000010", "1", "FI", "cn1 hfi1_0"), LEAF("3"))
		LINK(PORT("0x0000000000000020", "1", "FI", "cn2 hfi1_0"), LEAF("4"))
		LINK(LEAF("47"), PORT("0x00000000000000a2", "1", "SW", "spine"))
		LINK(LEAF("48"), PORT("0x00000000000000a2", "2", "SW", "spine"))
		"</LinkSummary>\n<Nodes>\n" PORT("0x0000000000000030", "1", "FI", "cn3 hfi1_0") "</Nodes>\n</Report>\n",
	};

	for (size_t i = 0; i < ROWS(texts); i++) {
		OWNED(fabric_free) struct fabric *f = fabric_of(texts[i]);

		assert_int_equal(f->nnodes, 4);
		assert_int_equal(f->nadapters, 2);
		assert_int_equal(f->planes[0].cables, 4);
		assert_int_equal(node_of(f, "leaf-L1")->guid, 0xa1);
		assert_int_equal(node_of(f, "spine")->rank, 1);
		assert_true(node_of(f, "cn2")->named && node_of(f, "cn2")->guid == 0x20);
		for (unsigned l = 0; l < f->nlinks; l++)
			assert_int_equal(f->links[l].mbps, f->links[l].count * 100000);
	}
}

TEST(a_guid_names_an_adapter)
{
	static const struct {
		const char *text;
		uint64_t guid;
	} rows[] = {
		{ "CA 2 1 0x0000000000000011 4x QDR - SW 1 1 0x00000000000000a1 ( 'MT25408 ConnectX Mellanox"
		  " Technologies' - 'a' )\n", 0x11 },
		{ "Ca\t1 \"H-0000000000000010\"\t# \"MT25408 ConnectX Mellanox Technologies\"\n[1](11)\t\"S-a1\"[1]\n",
		  0x10 },
		{ "Ca\t1 \"H-0000000000000010\"\t# \"MT25408 ConnectX Mellanox Technologies\"\n[1](11)\t\"S-a1\"[1]\n",
		  0x11 },
		{ "Ca\t1 \"H-0000000000000010\"\t# \"old mlx5_0\"\n[1](11)\t\"S-a1\"[1]\n", 0x10 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct fabric_names *names = fabric_names_new();
		struct fabric *f;

		assert_int_equal(fabric_names_add(names, rows[i].guid, "cn7", NULL), 0);
		assert_int_equal(fabric_names_add(names, 5, "cn8", NULL), 0);
		f = fabric_with(rows[i].text, names);
		assert_true(node_of(f, "cn7")->named);
		fabric_free(f);
		f = fabric_of(rows[i].text);
		assert_int_equal(f->nodes[1].named, i == 3);
		fabric_free(f);
		fabric_names_free(names);
	}
}

TEST(a_guid_is_of_one_host)
{
	struct fabric_names *names = fabric_names_new();
	struct err e = {""};

	assert_int_equal(fabric_names_add(names, 16, "cn1", &e), 0);
	assert_int_equal(fabric_names_add(names, 16, "cn1", &e), 0);
	assert_int_equal(fabric_names_add(names, 16, "cn2", &e), -1);
	assert_string_equal(e.text, "GUID 0000000000000010 belongs to both cn1 and cn2");
	assert_int_equal(fabric_names_add(names, 17, "a b", &e), -1);
	fabric_names_free(names);
}

static const char paper[] =
	"torus 3 4 1600 4 1600 4 1600 2 32 52\n"
	"tree 1 4 800 1 0\n"
	"node n129 tree 4 2 80 2 40 4 20 2 10 -1\n"
	"tree 1 4 800 2 0 1\n"
	"node n208 tree 4 2 80 2 40 4 20 2 10 -1\n"
	"node n210 tree 4 2 80 2 40 4 20 2 10 -1\n";

TEST(reads_and_writes_the_papers_example)
{
	OWNED(fabric_free) struct fabric *f = fabric_of(paper);
	const struct hierarchy *h = f->planes[0].levels;
	FREED(buf_free) struct buf out = {0};

	assert_int_equal(f->planes[0].kind, FABRIC_TORUS);
	assert_int_equal(h->nlevels, 2);
	assert_int_equal(h->nhosts, 3);
	assert_int_equal(h->hosts[0].inner.levels, 4);
	assert_int_equal(h->hosts[0].inner.size[2], 4);
	assert_int_equal(h->hosts[0].inner.cost[1], 40);
	assert_int_equal(distance(h, "n208", "n210"), 800);
	/* 32 is (0, 0, 2), 52 is (0, 1, 3): two hops */
	assert_int_equal(distance(h, "n129", "n210"), 3200);
	assert_int_equal(distance(h, "n129", "n129"), 0);
	assert_int_equal(hierarchy_write(h, &out, NULL), 0);
	assert_string_equal(out.data, paper);
}

TEST(writes_what_it_read)
{
	static const struct {
		const char *text, *written;
	} rows[] = {
		{ "# two leaves\ntree 1 2 300 -1 # all\ntree 1 2 100 1 1\nnode a tree 1 4 5 2 0 3\ntree 1 2 100 -1\n"
		  "node b tree 1 1 1 -1\nnode c tree 1 1 1 -1",
		  "tree 1 2 300 -1\ntree 1 2 100 1 1\nnode a tree 1 4 5 2 0 3\ntree 1 2 100 -1\nnode b tree 1 1 1 -1\n"
		  "node c tree 1 1 1 -1\n" },
		/* several dimensions are several levels */
		{ "tree 3 2 900 2 500 2 100 3 1 2 7\nnode a tree 1 1 1 -1\nnode b tree 1 1 1 -1\n"
		  "node c tree 1 1 1 -1\n", "tree 1 2 900 -1\ntree 1 2 500 -1\ntree 1 2 100 1 1\nnode a tree 1 1 1 -1\n"
					    "tree 1 2 100 1 0\nnode b tree 1 1 1 -1\n"
		  "tree 1 2 500 1 1\ntree 1 2 100 1 1\nnode c tree 1 1 1 -1\n" },
		/* branches of several sizes: the widest */
		{ "tree 1 2 300 -1\ntree 1 1 100 -1\nnode a tree 1 1 1 -1\ntree 1 2 100 -1\nnode b tree 1 1 1 -1\n"
		  "node c tree 1 1 1 -1\n",
		  "tree 1 2 300 -1\ntree 1 2 100 1 0\nnode a tree 1 1 1 -1\ntree 1 2 100 -1\nnode b tree 1 1 1 -1\n"
		  "node c tree 1 1 1 -1\n" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(fabric_free) struct fabric *f = fabric_of(rows[i].text);
		FREED(buf_free) struct buf out = {0};

		assert_int_equal(hierarchy_write(f->planes[0].levels, &out, NULL), 0);
		assert_string_equal(out.data, rows[i].written);
	}
}

static const struct {
	const char *text, *slurm;
} slurm_rows[] = {
	{ "# a comment\nSwitchName=s0 Nodes=dev[0-5]\nswitchname=s1 nodes=dev[6-11] LinkSpeed=100 # more\n"
	  "SwitchName=s2 Nodes=dev12,dev13\nSwitchName=s4 Nodes=io[1-2]\nSwitchName=s3 Switches=s[0-2]\n"
	  "SwitchName=s5 \\\nSwitches=s[3,4]\n",
	  "SwitchName=s0 Nodes=dev[0-5]\nSwitchName=s1 Nodes=dev[6-11]\nSwitchName=s2 Nodes=dev[12-13]\n"
	  "SwitchName=s4 Nodes=io[1-2]\nSwitchName=s3 Switches=s[0-2]\nSwitchName=s5 Switches=s[3-4]\n" },
	{ "SwitchName=a Nodes=n[1-2],\\\nn4\nSwitchName=b \\\n  Nodes=n3\nSwitchName=top\\\n Switches=a,b\n",
	  "SwitchName=a Nodes=n[1-2,4]\nSwitchName=b Nodes=n3\nSwitchName=top Switches=a,b\n" },
	{ "SwitchName = top Switches =a,b\nSwitchName=a  Nodes= \"n[1-2]\"\nSwitchName \\\n= b Nodes=n3\n",
	  "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n3\nSwitchName=top Switches=a,b\n" },
	{ "\xef\xbb\xbf# from Windows\r\nSwitchName=a Nodes=n[1-2],\\\r\nn4\r\nSwitchName=b Nodes=n3\r\n",
	  "SwitchName=a Nodes=n[1-2,4]\nSwitchName=b Nodes=n3\n" },
	{ "SwitchName=a Nodes=n[1-3]\nSwitchName=b Nodes=m[1-2]\n", "SwitchName=a Nodes=n[1-3]\n"
	  "SwitchName=b Nodes=m[1-2]\n" },
	{ "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockName=b3 Nodes=n[5-6]\nBlockName=b4 Nodes=n[7-8]\n"
	  "BlockSizes=2,4\n",
	  "SwitchName=b1 Nodes=n[1-2]\nSwitchName=b2 Nodes=n[3-4]\nSwitchName=b3 Nodes=n[5-6]\n"
	  "SwitchName=b4 Nodes=n[7-8]\nSwitchName=blocks4-0 Switches=b[1-2]\nSwitchName=blocks4-1 Switches=b[3-4]\n"
	  "SwitchName=blocks Switches=blocks4-[0-1]\n" },
};

TEST(reads_and_writes_slurm)
{
	for (size_t i = 0; i < ROWS(slurm_rows); i++) {
		const char *text = slurm_rows[i].text;

		for (unsigned again = 0; again < 2; again++, text = slurm_rows[i].slurm) {
			OWNED(fabric_free) struct fabric *f = fabric_of(text);
			FREED(buf_free) struct buf out = {0};

			assert_int_equal(fabric_write_slurm(f, NULL, &out, NULL), 0);
			assert_string_equal(out.data, slurm_rows[i].slurm);
		}
	}
}

TEST(writes_topology_yaml)
{
	struct fabric *f = fabric_of("SwitchName=top Switches=a,b\nSwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n3\n");
	FREED(buf_free) struct buf out = {0};

	assert_int_equal(fabric_write_slurm_yaml(f, NULL, &out, NULL), 0);
	assert_string_equal(out.data, "---\n- topology: fabric\n  cluster_default: true\n"
	  "  tree:\n    switches:\n"
			    "      - switch: a\n        nodes: n[1-2]\n      - switch: b\n        nodes: n3\n"
			    "      - switch: top\n        children: a,b\n");
	fabric_free(f);
}

/* What topology.yaml says, and what is made of it. */
static const struct {
	const char *text, *slurm;
	enum fabric_kind kind;
} yaml_rows[] = {
	{ "# a comment\n---\n- topology: one\n  ring:\n    rings: []\n- topology: two\n  cluster_default: true\n"
	  "  tree:\n    switches:\n"
	  "      - switch: top\n        children: s[1-2]\n      - switch: s1\n        nodes: \"n[01-02]\"\n"
	  "      - {switch: s2, nodes: 'n[03-04]'}\n",
	  "SwitchName=s1 Nodes=n[01-02]\nSwitchName=s2 Nodes=n[03-04]\nSwitchName=top Switches=s[1-2]\n",
	  FABRIC_FAT_TREE },
	{ "- topology: b\n  block:\n    block_sizes:\n      - 2\n      - 4\n    blocks:\n      - block: b1\n"
	  "        nodes: n[1-2]\n      - block: b2\n        nodes: n[3-4]\n      - block: b3\n        nodes: n[5-6]\n"
	  "      - block: b4\n        nodes: n[7-8]\n",
	  "SwitchName=b1 Nodes=n[1-2]\nSwitchName=b2 Nodes=n[3-4]\nSwitchName=b3 Nodes=n[5-6]\n"
	  "SwitchName=b4 Nodes=n[7-8]\nSwitchName=blocks4-0 Switches=b[1-2]\nSwitchName=blocks4-1 Switches=b[3-4]\n"
	  "SwitchName=blocks Switches=blocks4-[0-1]\n", FABRIC_FAT_TREE },
	{ "---\n- topology: t\n  torus3d:\n    toruses:\n      - name: pod\n        dims: {x: 3, y: 3, z: 3}\n"
	  "        nodes: n[1-27]\n        placements:\n          - dims: {x: 1, y: 1, z: 1}\n", NULL, FABRIC_GRAPH },
	{ "---\n- topology: t\n  torus3d:\n    toruses:\n      - name: pod\n        dims: {x: 3, y: 3, z: 3}\n"
	  "        regions:\n          - anchor: {x: 1, y: 0, z: 0}\n            dims: {x: 2, y: 2, z: 1}\n"
	  "            nodes: n[1-4]\n", NULL, FABRIC_GRAPH },
	{ "RingName=r0 Nodes=n[1-8]\n", NULL, FABRIC_GRAPH },
	{ "---\n- topology: r\n  ring:\n    rings:\n      - ring: r0\n        nodes: n[1-8]\n", NULL, FABRIC_GRAPH },
	/* JSON is YAML. */
	{ "\xef\xbb\xbf[\r\n\t{\"topology\": \"t\", \"cluster_default\": true,\r\n\t\t\"tree\": {\"switches\": [\r\n"
	  "\t\t\t{\"switch\": \"top\", \"children\": \"s[1-2]\", \"nodes\": null},\r\n"
	  "\t\t\t{\"switch\": \"s1\", \"children\": null, \"nodes\": [\"n1\", \"n2\"]},\r\n"
	  "\t\t\t{\"switch\": \"s2\", \"nodes\": \"n3\"}]},\r\n\t\"block\": {}}\r\n]\r\n",
	  "SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n3\nSwitchName=top Switches=s[1-2]\n", FABRIC_FAT_TREE },
	/* Names as lists, or folded; the default one says so first, without a line of its own before. */
	{ "- cluster_default: true\n  topology: t\n  tree:\n    switches:\n    - switch: s1\n      nodes:\n      - n1\n"
	  "      - n[2-3]\n    - switch: s2\n      nodes: >-\n        n4,\n        n[5-6]\n    - switch: top\n"
	  "      children: [s1, s2]\n",
	  "SwitchName=s1 Nodes=n[1-3]\nSwitchName=s2 Nodes=n[4-6]\nSwitchName=top Switches=s[1-2]\n", FABRIC_FAT_TREE },
	/* As scontrol tells what slurmctld runs with. */
	{ "%YAML 1.1\n---\n- topology: two\n  cluster_default: true\n  block: {}\n  flat: {}\n  ring: {}\n"
	  "  torus3d: {}\n  tree:\n    switches:\n    - switch: top\n      children: s[1-2]\n      nodes:\n"
	  "    - switch: s1\n      children:\n      nodes: n[1-9]\n    - switch: s2\n      children:\n"
	  "      nodes: n[10-27]\n...\n", "SwitchName=s1 Nodes=n[1-9]\nSwitchName=s2 Nodes=n[10-27]\n"
					  "SwitchName=top Switches=s[1-2]\n", FABRIC_FAT_TREE },
	{ "---\n- topology: t\n  torus3d:\n    toruses:\n    - name: pod\n      nodes: n[1-27]\n"
	  "      dims: {x: 3, y: 3, z: 3}\n      placements: []\n      regions: []\n  tree: {}\n", NULL, FABRIC_GRAPH },
};

TEST(reads_topology_yaml)
{
	for (size_t i = 0; i < ROWS(yaml_rows); i++) {
		OWNED(fabric_free) struct fabric *f = fabric_of(yaml_rows[i].text);
		FREED(buf_free) struct buf out = {0};

		assert_int_equal(f->planes[0].kind, yaml_rows[i].kind);
		assert_int_equal(fabric_write_slurm(f, NULL, &out, NULL), 0);
		if (yaml_rows[i].slurm)
			assert_string_equal(out.data, yaml_rows[i].slurm);
	}
}

/* x counts fastest, and each ring closes. */
TEST(a_torus_of_yaml_is_where_it_says)
{
	OWNED(fabric_free) struct fabric *whole = fabric_of(yaml_rows[2].text), *part = fabric_of(yaml_rows[3].text),
		*ring = fabric_of(yaml_rows[5].text);
	const struct hierarchy *h = whole->planes[0].levels;

	assert_int_equal(distance(h, "n1", "n2"), 200);
	assert_int_equal(distance(h, "n1", "n3"), 200);
	assert_int_equal(distance(h, "n1", "n4"), 200);
	assert_int_equal(distance(h, "n1", "n10"), 200);
	assert_int_equal(distance(h, "n1", "n14"), 600);
	assert_int_equal(part->planes[0].switches, 27);
	assert_int_equal(part->planes[0].hosts, 4);
	assert_int_equal(distance(part->planes[0].levels, "n1", "n4"), 400);
	assert_int_equal(distance(ring->planes[0].levels, "n1", "n8"), 200);
	assert_int_equal(distance(ring->planes[0].levels, "n1", "n5"), 800);
}

/* What topology.yaml is written, is read, and as topology.conf the same. */
TEST(writes_the_yaml_that_it_reads)
{
	for (size_t i = 0; i < ROWS(slurm_rows); i++) {
		OWNED(fabric_free) struct fabric *f = fabric_of(slurm_rows[i].text), *again;
		FREED(buf_free) struct buf yaml = {0}, out = {0};

		assert_int_equal(fabric_write_slurm_yaml(f, NULL, &yaml, NULL), 0);
		again = fabric_of(yaml.data);
		assert_int_equal(fabric_write_slurm(again, NULL, &out, NULL), 0);
		assert_string_equal(out.data, slurm_rows[i].slurm);
	}
}

/* A card with an adapter for each port, in the form that has its SystemImageGUID. */
#define CARD(system, guid, leaf) "sysimgguid=0x" system "\ncaguid=0x" guid "\nCa\t1 \"H-" guid "\"\t# \"web\"\n" \
	"[1](" guid ")\t\"S-" leaf "\"[1" guid "]\t# lid 1 lmc 0 \"" leaf "\" lid 2 4xEDR\n"
static const char one_host[] = CARD("1", "10", "a") CARD("1", "11", "b");
static const char two_hosts[] = CARD("1", "10", "a") CARD("1", "11", "b") CARD("2", "20", "a") CARD("2", "21", "b");

TEST(a_fabric_of_json_is_the_same)
{
	static const char *const rows[] = {
		ports, discovered, one_host, two_hosts,
		"CA 2 1 0x11 4x EDR - SW 1 1 0xa1 ( 'leaf mlx5_0' - 'leaf' )\nCA 2 1 0x12 4x EDR - SW 1 1 0xa2 ( 'a b"
		" c' - 'leaf' )\nSW 1 2 0xa1 4x EDR - SW 1 3 0xa2 ( 'leaf' - 'leaf' )\nSW 1 4 0xa1 4x HDR - SW 1 5 0xa2"
		" ( 'leaf' - 'leaf' )\n", "SwitchName=a Nodes=n[1-3]\nSwitchName=b Nodes=m[1-2]\n",
		"torus 2 4 7 3 5 2 0 5\nnode a tree 2 2 5 4 2 -1\nnode b tree 2 2 5 4 2 3 0 1 5\n",
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(fabric_free) struct fabric *f = fabric_of(rows[i]), *again;
		OWNED(json_decref) json_t *j = fabric_json(f), *parts = fabric_json_parts(f), *same;

		if (!(again = fabric_of_json(parts, "test", &err)))
			fail_msg("%s\n%s", err.text, rows[i]);
		same = fabric_json(again);
		assert_true(json_equal(j, same));
	}
}

/* A graph has levels as text, too. */
TEST(writes_a_graph_and_reads_it)
{
	struct fabric *f = fabric_of("SwitchName=a Nodes=n1 Switches=b,c\nSwitchName=b Nodes=n2 Switches=c\n"
				     "SwitchName=c Nodes=n3 Switches=d\nSwitchName=d Nodes=n4\n"), *again;
	FREED(buf_free) struct buf out = {0}, twice = {0};

	assert_int_equal(f->planes[0].kind, FABRIC_GRAPH);
	assert_int_equal(hierarchy_write(f->planes[0].levels, &out, NULL), 0);
	again = fabric_of(out.data);
	assert_int_equal(again->planes[0].kind, FABRIC_GRAPH);
	assert_int_equal(hierarchy_write(again->planes[0].levels, &twice, NULL), 0);
	assert_string_equal(out.data, twice.data);
	assert_int_equal(distance(again->planes[0].levels, "n1", "n4"), 400);
	assert_int_equal(distance(again->planes[0].levels, "n1", "n3"), 200);
	fabric_free(f);
	fabric_free(again);
}

static bool is_dev(const char *host, void *user)
{
	return !strncmp(host, user, strlen(user));
}

TEST(writes_the_chosen_alone)
{
	char prefix[] = "io";
	const struct fabric_hosts c = { is_dev, prefix };
	OWNED(fabric_free) struct fabric *f = fabric_of(slurm_rows[0].text);
	FREED(buf_free) struct buf out = {0};
	struct err e = {""};

	assert_int_equal(fabric_write_slurm(f, &c, &out, NULL), 0);
	assert_string_equal(out.data, "SwitchName=s4 Nodes=io[1-2]\n");
	strcpy(prefix, "x");
	assert_int_equal(fabric_write_slurm(f, &c, &out, &e), -1);
	assert_string_equal(e.text, "no switch has a host with a known name");
}

static void fabric_refused(const char *text, const char *error)
{
	struct err e = {""};

	if (fabric_parse(&(struct fabric_text){ text, "test", strlen(text) }, 1, NULL, &e))
		fail_msg("taken: %s", text);
	assert_string_equal(e.text, error);
}

TEST(refuses_what_is_malformed)
{
	static const char *const rows[][2] = {
		{ HEAD TAG("LinkCount", "2") LINK(LEAF("1"), PORT("0xa2", "1", "FI", "cn1")),
		  "test:22: 1 of 2 links: the report is cut off" },
		{ HEAD LINK(LEAF("1"), PORT("0xa2", "x", "FI", "")),
		  "test:20: expected GUID, port, FI or SW, and a name" },
		{ HEAD LINK(LEAF("1"), ""), "test:14: no links: expected opareport's XML of a fabric" },
	};

	for (size_t i = 0; i < ROWS(rows); i++)
		fabric_refused(rows[i][0], rows[i][1]);
	cases_each("refused/fabric.txt", fabric_refused);
}

/* The output of ibnetdiscover -p for links between switches, with some hosts on each: hosts are "h<switch>-<n>". */
static void put_cable(struct buf *b, unsigned s, unsigned t)
{
	buf_printf(b, "SW 1 %u 0x%x 4x EDR - SW 1 %u 0x%x ( 's%u' - 's%u' )\n", 1 + t % 200, 0x1000 + s, 1 + s % 200,
		   0x1000 + t, s, t);
}

static void put_hosts(struct buf *b, unsigned s, unsigned hosts)
{
	for (unsigned i = 0; i < hosts; i++)
		buf_printf(b, "CA 1 1 0x%x 4x EDR - SW 1 %u 0x%x ( 'h%u-%u mlx5_0' - 's%u' )\n", 0x100000 + s * 256 + i,
			   201 + i, 0x1000 + s, s, i, s);
}

static unsigned ring(unsigned a, unsigned b, unsigned size)
{
	unsigned hops = a < b ? b - a : a - b;

	return hops < size - hops ? hops : size - hops;
}

/* Switch numbers are shuffled, so that the coordinates cannot be read from the order. */
static unsigned shuffled(unsigned i, unsigned n)
{
	unsigned step = 7;

	while (n % step == 0)
		step += 2;
	for (unsigned d = 2; d <= step; d++)
		if (n % d == 0 && step % d == 0) {
			step++;
			d = 1;
		}
	return (i * step + 3) % n;
}

/* Written as text and read again it is the same to every two hosts. */
static void check_text(const struct hierarchy *h)
{
	FREED(buf_free) struct buf out = {0};
	struct hierarchy *again;

	assert_int_equal(hierarchy_write(h, &out, NULL), 0);
	again = hierarchy_parse(out.data, out.len, "test", NULL);
	assert_non_null(again);
	for (unsigned i = 0; i < h->nhosts; i++)
		assert_int_equal(distance(again, h->hosts[0].name, h->hosts[i].name),
				 hierarchy_distance(h, &h->hosts[0], &h->hosts[i]));
	hierarchy_free(again);
}

TEST(a_torus_has_the_hops_of_its_rings)
{
	static const unsigned rows[][3] = {
		{ 4, 4, 4 }, { 5, 3, 1 }, { 6, 1, 1 }, { 2, 3, 4 }, { 3, 3, 3 }, { 8, 5, 2 }, { 4, 1, 1 }, { 2, 2, 2 },
	};

	for (size_t r = 0; r < ROWS(rows); r++) {
		const unsigned *dim = rows[r], n = dim[0] * dim[1] * dim[2];
		const struct hierarchy *h;
		FREED(buf_free) struct buf text = {0};
		OWNED(fabric_free) struct fabric *f;

		for (unsigned i = 0; i < n; i++) {
			unsigned x = i % dim[0], y = i / dim[0] % dim[1], z = i / dim[0] / dim[1];
			const unsigned next[3] = { (x + 1) % dim[0] + dim[0] * (y + dim[1] * z),
						   x + dim[0] * ((y + 1) % dim[1] + dim[1] * z),
						   x + dim[0] * (y + dim[1] * ((z + 1) % dim[2])) };

			for (unsigned d = 0; d < 3; d++)
				if (dim[d] > 2 || (dim[d] == 2 && next[d] > i))
					put_cable(&text, shuffled(i, n), shuffled(next[d], n));
			put_hosts(&text, shuffled(i, n), 2);
		}
		f = fabric_of(text.data);
		assert_int_equal(f->planes[0].kind, FABRIC_GRAPH);
		h = f->planes[0].levels;
		assert_int_equal(h->level[0].size, n);
		for (unsigned i = 0; i < n; i++)
			for (unsigned j = 0; j < n; j++) {
				unsigned hops = ring(i % dim[0], j % dim[0], dim[0]) +
						ring(i / dim[0] % dim[1], j / dim[0] % dim[1], dim[1]) +
						ring(i / dim[0] / dim[1], j / dim[0] / dim[1], dim[2]);
				char a[32], b[32];

				snprintf(a, sizeof(a), "h%u-0", shuffled(i, n));
				snprintf(b, sizeof(b), "h%u-1", shuffled(j, n));
				assert_int_equal(distance(h, a, b), hops ? hops * 200 : 100);
			}
		check_text(h);
	}
}

TEST(a_torus_that_lacks_a_link_is_a_graph)
{
	FREED(buf_free) struct buf text = {0};
	OWNED(fabric_free) struct fabric *f;

	/* a ring of six, one link missing, with a chord */
	for (unsigned i = 0; i < 5; i++)
		put_cable(&text, i, i + 1);
	put_cable(&text, 1, 4);
	for (unsigned i = 0; i < 6; i++)
		put_hosts(&text, i, 2);
	f = fabric_of(text.data);
	assert_int_equal(f->planes[0].kind, FABRIC_GRAPH);
	assert_int_equal(distance(f->planes[0].levels, "h0-0", "h0-1"), 100);
	assert_int_equal(distance(f->planes[0].levels, "h0-0", "h1-1"), 200);
	assert_int_equal(distance(f->planes[0].levels, "h0-0", "h5-0"), 600);
}

/* Three tiers: pods of edge and aggregation switches below cores; a storage node on a core is a host of a spine. */
TEST(recognises_a_fat_tree)
{
	enum { PODS = 3, EDGES = 2, AGGS = 2, CORES = 2, HOSTS = 8 };
	FREED(buf_free) struct buf text = {0}, odd = {0}, scotch = {0};
	const struct hierarchy *h;
	OWNED(fabric_free) struct fabric *f;

	for (unsigned p = 0; p < PODS; p++)
		for (unsigned a = 0; a < AGGS; a++) {
			for (unsigned i = 0; i < EDGES; i++)
				put_cable(&text, 10 * p + i, 100 + 10 * p + a);
			for (unsigned c = 0; c < CORES; c++)
				put_cable(&text, 100 + 10 * p + a, 500 + c);
		}
	for (unsigned p = 0; p < PODS; p++)
		for (unsigned i = 0; i < EDGES; i++)
			put_hosts(&text, 10 * p + i, HOSTS);
	put_hosts(&text, 500, 1);
	f = fabric_of(text.data);
	h = f->planes[0].levels;
	assert_int_equal(f->planes[0].kind, FABRIC_FAT_TREE);
	assert_int_equal(h->nlevels, 3);
	assert_int_equal(node_of(f, "s500")->rank, 2);
	assert_int_equal(distance(h, "h0-0", "h0-7"), 100);
	/* 8 hosts on 2 cables: 4:1; 16 hosts of a pod on 4 cables */
	assert_int_equal(h->level[1].pruned, 400);
	assert_int_equal(distance(h, "h0-0", "h1-0"), 500);
	assert_int_equal(distance(h, "h0-0", "h10-0"), 900);
	assert_int_equal(distance(h, "h0-0", "h500-0"), 900);
	check_text(h);
	fabric_list_anomalies(f, &odd);
	assert_string_equal(odd.data, "hosts on a spine: h500-0\n");
	assert_int_equal(fabric_write_scotch(h, &scotch, NULL), 0);
	assert_non_null(strstr(scotch.data, "sub\n49 0 1 2 "));
	assert_non_null(strstr(scotch.data, "\ntleaf\n3 4 400 2 400 8 100\n"));
}

TEST(lists_anomalies)
{
	static const struct {
		const char *text, *odd;
	} rows[] = {
		{ ports, NULL },
		{ "CA 2 1 0x11 4x QDR - SW 1 1 0xa1 ( 'MT25408 ConnectX Mellanox Technologies' - 'leaf' )\n",
		  "adapters of unknown hosts: H-0000000000000011\n" },
		/* descriptions that are no host's, and one that imitates the name that such an adapter gets */
		{ "CA 2 1 0x11 4x QDR - SW 1 1 0xa1 ( 'a b c' - 'H-0000000000000011' )\n"
		  "CA 3 1 0x11 4x QDR - SW 1 2 0xa1 ( 'a b c' - 'leaf' )\n"
		  "CA 4 1 0x12 4x QDR - SW 1 3 0xa1 ( 'H-0000000000000011' - 'leaf' )\n",
		  "adapters of unknown hosts: H-0000000000000011\n" },
		{ one_host, "hosts in several planes: web\n" },
		{ two_hosts, "adapters of unknown hosts: H-0000000000000010 H-0000000000000020\n"
			     "hosts named by GUID, for adapters of several have one description: "
			     "H-0000000000000010 (web) H-0000000000000020 (web)\n"
			     "hosts in several planes: H-0000000000000010 H-0000000000000020\n" },
		{ "CA 2 1 0x11 4x QDR 'cn1 mlx5_0'\nSW 1 1 0xa1 4x QDR 'leaf'\n",
		  "hosts without a switch: cn1\nswitches in a plane without hosts: leaf\n" },
		/* two adapters on two switches of one plane, then of two */
		{ "SwitchName=a Nodes=n[1-3]\nSwitchName=b Nodes=n[3-5]\nSwitchName=c Switches=a,b\n",
		  "hosts on several switches of a plane: n3\n" },
		{ "CA 2 1 0x11 4x EDR - SW 1 1 0xa1 ( 'cn1 mlx5_0' - 'a' )\nCA 2 1 0x12 4x EDR - SW 1 1 0xa2 ( 'cn1"
		  " mlx5_1' - 'b' )\n", "hosts in several planes: cn1\n" },
		{ "CA 2 1 0x11 4x EDR - SW 1 1 0xa1 ( 'cn1 mlx5_0' - 'a' )\nCA 2 1 0x12 4x EDR - SW 1 2 0xa1 ( 'cn2"
		  " mlx5_0' - 'a' )\nCA 2 1 0x13 1x EDR - SW 1 3 0xa1 ( 'cn3 mlx5_0' - 'a' )\n",
		  "hosts with a slower link than most: cn3\n" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(fabric_free) struct fabric *f = fabric_of(rows[i].text);
		FREED(buf_free) struct buf odd = {0};

		fabric_list_anomalies(f, &odd);
		if (rows[i].odd)
			assert_string_equal(odd.data, rows[i].odd);
		else
			assert_int_equal(odd.len, 0);
	}
}

/* Of each: hosts by the adapters' descriptions, on switches a, b, c ... below a spine: "HOST DEVICE@SWITCHES". */
TEST(hosts_are_told_apart)
{
	static const struct {
		const char *adapters[12], *slurm, *odd;
	} rows[] = {
		/* an image that gives every host its name; the default one */
		{ { "n1 mlx5_0@a", "web mlx5_0@a", "web mlx5_0@b", "n2 mlx5_0@b" },
		  "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\nSwitchName=spine Switches=a,b\n",
		  "adapters of unknown hosts: H-0000000000001001 H-0000000000001002\n"
		  "hosts named by GUID, for adapters of several have one description: "
		  "H-0000000000001001 (web) H-0000000000001002 (web)\n" },
		/* where most of those beside it are */
		{ { "n1@a", "n1@b", "n2@b" }, "SwitchName=b Nodes=n[1-2]\n",
		  "hosts on several switches of a plane: n1\n" },
		{ { "x@a", "x@a", "x@a", "x@a", "x@a", "x@a", "x@b", "x@b", "x@b", "n1@b" },
		  "SwitchName=b Nodes=n1\n", "" },
		/* no family of names and no rails: an image's name, unless others are on the same two switches */
		{ { "n1@a", "web@a", "web@b", "n2@b" },
		  "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\nSwitchName=spine Switches=a,b\n",
		  "adapters of unknown hosts: H-0000000000001001 H-0000000000001002\n"
		  "hosts named by GUID, for adapters of several have one description: "
		  "H-0000000000001001 (web) H-0000000000001002 (web)\n" },
		{ { "hera@a", "hera@b", "web@a", "web@b", "zeus@a", "zeus@b" },
		  "SwitchName=a Nodes=hera,web,zeus\n", "hosts on several switches of a plane: hera web zeus\n" },
		/* the domain is cut, unless it distinguishes */
		{ { "n1.lan mlx5_0@a", "n1.lan mlx5_1@a", "n2.lan mlx5_0@b", "n3.ib mlx5_0@b", "n3.lan mlx5_0@b" },
		  "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2,n3.ib,n3.lan\nSwitchName=spine Switches=a,b\n", "" },
		/* what sums in a switch is no host */
		{ { "n1 mlx5_0@a", "n2 mlx5_0@b", "Mellanox Technologies Aggregation Node@a" },
		  "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\nSwitchName=spine Switches=a,b\n", "" },
		/* rails: n2 has lost its first link */
		{ { "n1 mlx5_0@a", "n1 mlx5_1@b", "n2 mlx5_1@b", "n3 mlx5_0@a", "n3 mlx5_1@b", "n4 mlx5_0@c",
		    "n4 mlx5_1@d", "n5 mlx5_0@c", "n5 mlx5_1@d" },
		  "SwitchName=a Nodes=n[1-3]\nSwitchName=c Nodes=n[4-5]\nSwitchName=spine Switches=a,c\n",
		  "hosts on several switches of a plane: n1 n3 n4 n5\n" },
		/* two hosts have lost one each */
		{ { "n1 mlx5_1@b", "n1 mlx5_2@c", "n2 mlx5_0@a", "n2 mlx5_2@c", "n3 mlx5_0@a", "n3 mlx5_1@b",
		    "n3 mlx5_2@c", "n4 mlx5_0@d" },
		  "SwitchName=a Nodes=n[1-3]\nSwitchName=d Nodes=n4\nSwitchName=spine Switches=a,d\n", NULL },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf text = {0}, slurm = {0}, odd = {0};
		OWNED(fabric_free) struct fabric *f;

		for (unsigned k = 0; k < 12 && rows[i].adapters[k]; k++) {
			int len = strcspn(rows[i].adapters[k], "@"), s = rows[i].adapters[k][len + 1];

			buf_printf(&text, "SW 1 1 0x%x 4x EDR - SW 2 %u 0xf ( '%c' - 'spine' )\n"
				   "CA 3 1 0x%x 4x EDR - SW 1 %u 0x%x ( '%.*s' - '%c' )\n", s, s - 'a' + 1, s,
				   0x1000 + k, 20 + k, s, len, rows[i].adapters[k], s);
		}
		f = fabric_of(text.data);
		assert_int_equal(fabric_write_slurm(f, NULL, &slurm, NULL), 0);
		assert_string_equal(slurm.data, rows[i].slurm);
		fabric_list_anomalies(f, &odd);
		if (rows[i].odd && *rows[i].odd)
			assert_string_equal(odd.data, rows[i].odd);
	}
}

TEST(switches_of_one_name_stay_apart)
{
	struct fabric *f = fabric_of("SW 1 1 0xa1 4x EDR - SW 1 1 0xa2 ( 'SwitchX - Mellanox' - 'SwitchX - Mellanox'"
				     " )\nSW 1 2 0xa3 4x EDR - SW 1 2 0xa2 ( '' - 'SwitchX - Mellanox' )\n");

	assert_int_equal(f->nswitches, 3);
	assert_string_equal(f->nodes[0].name, "S-00000000000000a3");
	assert_string_equal(f->nodes[1].name, "SwitchX---Mellanox-a1");
	assert_string_equal(f->nodes[2].name, "SwitchX---Mellanox-a2");
	fabric_free(f);
	/* Slurm's limit. */
	f = fabric_of("SW 1 1 0x1111111111111111 4x EDR - SW 1 1 0x1111111111111112 ( "
		      "'a-description-as-long-as-a-node-may-have-it-which-is-of-64-bytes' - "
		      "'a-description-as-long-as-a-node-may-have-it-which-is-of-64-bytes' )\n");
	assert_int_equal(f->nswitches, 2);
	assert_string_not_equal(f->nodes[0].name, f->nodes[1].name);
	assert_true(strlen(f->nodes[0].name) < 64);
	fabric_free(f);
}

TESTS_MAIN(NULL, NULL)
