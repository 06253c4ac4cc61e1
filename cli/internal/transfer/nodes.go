package transfer

import (
	"cmp"
	"context"
	"encoding/json"
	"hash/maphash"
	"net/url"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
)

func nodes() *Kind {
	return &Kind{
		Noun: "nodes", Things: "nodes", Short: "Departments and other tree nodes",
		Conflicts: []string{fail, skip, update},
		Conflict:  "update changes the node with the same code, and moves it below parent_ref if that is given.",
		Filters:   []Filter{{"tree", "only nodes of the tree with this code"}},
		Notes: "tree is the code of a tree that exists. ref names a node in the file, and is its code, unless it\n" +
			"has a column code. parent_ref is the ref of its parent, which is in the file before it or in the same\n" +
			"thousand lines, or the code of a node that exists; empty: the root. pointer is the node for which it\n" +
			"stands, such as company/rd.",
		ImportExample: "  idp nodes import depts.csv --set tree=company --map No=ref --map Above=parent_ref\n" +
			"  idp nodes import nodes.jsonl --on-conflict skip",
		ExportExample: "  idp nodes export nodes.csv\n  idp nodes export --tree company -o jsonl",
		ImportScopes:  "organization:write, organization:read",
		ExportScopes:  "organization:read",
		columns: []column{
			{name: "tree"}, {name: "ref"}, {name: "parent_ref"}, {name: "code", writeOnly: true}, {name: "name"},
			{name: "description"},
			{name: "seq", form: number}, {name: "status"}, {name: "tag"}, {name: "pointer"}, {name: "is_dynamic"},
			{name: "condition"}, {name: "perm_namespace_arn"}, {name: "sys_ext_props", form: extra},
			{name: "free_ext_props", form: extra},
		},
		send: func(ctx context.Context, i *importer) error {
			return i.sendBatches(ctx, i.batched.(*nodeBatches))
		},
		begin: func(i *importer) {
			kind := &nodeBatches{codes: map[string]string{}, seed: maphash.MakeSeed()}
			if i.DryRun {
				kind.tried = map[uint64]bool{}
			}
			i.batched, i.see = kind, kind.see
		},
		read: readNodes,
	}
}

// nodeBatches makes requests for nodes.
type nodeBatches struct {
	codes map[string]string // of refs that are not the codes, by tree and ref
	tried map[uint64]bool   // codes that a dry run would have made; nil: it is none
	seed  maphash.Seed
}

// see remembers the code of a ref, if they are not the same: a child may come a million lines later.
func (k *nodeBatches) see(r *record) {
	if ref, code := r.text("ref"), r.text("code"); ref != "" && code != "" && ref != code {
		k.codes[r.text("tree")+"/"+ref] = code
	}
}

func (k *nodeBatches) group(records []*record) [][]int {
	groups := by(records, func(r *record) string {
		if r.text("pointer") != "" { // it may stand for one of the others
			return "pointer " + r.text("tree")
		}
		return "node " + r.text("tree")
	})
	slices.SortStableFunc(groups, func(a, b []int) int {
		return cmp.Compare(len(records[a[0]].text("pointer")), len(records[b[0]].text("pointer")))
	})
	return groups
}

// codeOf is the code of the node with a ref.
func (k *nodeBatches) codeOf(tree, ref string) string {
	if code, ok := k.codes[tree+"/"+ref]; ok {
		return code
	}
	return ref
}

// self is the name of a record's node; "" if the platform makes up its code.
func (k *nodeBatches) self(r *record) string {
	code := r.text("code")
	if code == "" {
		code = r.text("ref")
	}
	if code == "" {
		return ""
	}
	return r.text("tree") + "/" + code
}

func (k *nodeBatches) parent(r *record) string {
	if ref := r.text("parent_ref"); ref != "" {
		return r.text("tree") + "/" + k.codeOf(r.text("tree"), ref)
	}
	return ""
}

func (k *nodeBatches) names(records []*record) []name {
	here := k.here(records)
	var names []name
	for _, r := range records {
		names = append(names, name{aTree, r.text("tree")})
		wanted := []string{k.self(r), r.text("pointer")}
		if _, same := here[k.parent(r)]; !same {
			wanted = append(wanted, k.parent(r))
		}
		for _, n := range wanted {
			if n != "" {
				names = append(names, name{aNode, n})
			}
		}
	}
	return names
}

// here are the nodes of a request, by their names.
func (k *nodeBatches) here(records []*record) map[string]int {
	here := map[string]int{}
	for n, r := range records {
		if self := k.self(r); self != "" {
			here[self] = n
		}
	}
	return here
}

func (k *nodeBatches) request(records []*record, found ids) request {
	out := request{operation: "create-tree-nodes", faults: map[int]fault{}, about: aboutItems}
	here := k.here(records)
	items := make([]any, len(records))
	for n, r := range records {
		if _, reason := found.of(name{aTree, r.text("tree")}); reason != "" {
			out.faults[n] = fault{reason: "tree: " + reason}
			continue
		}
		item := without(r, "tree", "pointer", "parent_ref")
		item["parent_id"] = quoted("")
		if self := k.self(r); self != "" {
			_, code, _ := strings.Cut(self, "/")
			item["code"], item["ref"] = quoted(code), quoted(self)
			if _, reason := found.of(name{aNode, self}); reason == "" || k.wasTried(self) {
				out.faults[n] = fault{"code: is already there", true}
			}
		}
		if reason := k.place(item, r, here, found); reason != "" {
			out.faults[n] = fault{reason: reason}
		}
		items[n] = item
	}
	out.body = map[string]any{"object_code": records[0].text("tree"), "items": items}
	return out
}

// change makes the request that changes a node. Its parent stays if the file names none.
func (k *nodeBatches) change(
	_ context.Context, _ *importer, r *record, found ids,
) (calls []*session.Call, reason string, err error) {
	id, reason := found.of(name{aNode, k.self(r)})
	if k.wasTried(k.self(r)) {
		return nil, "", nil // a dry run has not made it
	}
	if reason != "" {
		return nil, "code: " + reason, nil
	}
	item := without(r, "tree", "ref", "code", "pointer", "parent_ref")
	if _, given := r.members["parent_ref"]; given {
		item["parent_id"] = quoted("")
	}
	reason = k.place(item, r, nil, found)
	return patched("update-tree-node", id, item, len(item)), reason, nil
}

// done remembers what a dry run would have made.
func (k *nodeBatches) done(records []*record) {
	if k.tried == nil {
		return
	}
	for self := range k.here(records) {
		k.tried[maphash.String(k.seed, self)] = true
	}
}

// place sets the parent and the pointer of a node.
func (k *nodeBatches) place(
	item map[string]json.RawMessage, r *record, here map[string]int, found ids,
) (reason string) {
	if parent := k.parent(r); parent != "" {
		id, fault := found.of(name{aNode, parent})
		_, same := here[parent]
		switch {
		case same:
			item["parent_ref"] = quoted(parent)
		case fault == "":
			item["parent_id"] = quoted(id)
		case !k.wasTried(parent): // of one that was, the root can be tried as well
			return "parent_ref: " + fault + " before it"
		}
	}
	if pointer := r.text("pointer"); pointer != "" {
		id, fault := found.of(name{aNode, pointer})
		switch {
		case fault == "":
			item["is_pointer"], item["pointer_id"] = quoted("1"), quoted(id)
		case !k.wasTried(pointer): // of one that was, the rest of the node can be tried
			return "pointer: " + fault + " before it"
		}
	}
	return ""
}

func (k *nodeBatches) wasTried(self string) bool { return k.tried[maphash.String(k.seed, self)] }

// readNodes exports trees: parents come before children, and pointers after all nodes, because they may stand for any.
func readNodes(ctx context.Context, s *session.Session, filters map[string]string, out *writer) error {
	trees, err := treesOf(ctx, s, filters["tree"])
	if err != nil {
		return err
	}
	for _, pointers := range []string{"0", "1"} {
		for _, tree := range trees {
			query := url.Values{"object_code": {tree.code}, "page_sort": {"depth"}}
			err := pages(ctx, s, "list-tree-nodes", nil, query, func(page []output.Object) error {
				return writeNodes(ctx, s, tree, pointers, page, out)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// treeName is a tree and its root.
type treeName struct{ code, root string }

// treesOf lists the trees, or one of them.
func treesOf(ctx context.Context, s *session.Session, code string) ([]treeName, error) {
	var trees []treeName
	err := eachTree(ctx, s, func(tree output.Object) error {
		if code == "" || tree.Text("code") == code {
			trees = append(trees, treeName{tree.Text("code"), tree.Text("root_node_id")})
		}
		return nil
	})
	if err == nil && code != "" && len(trees) == 0 {
		err = failure.NotFoundf("there is no tree %q", code)
	}
	return trees, err
}

func writeNodes(
	ctx context.Context, s *session.Session, tree treeName, pointers string, page []output.Object, out *writer,
) error {
	var wanted []string
	for _, node := range page {
		wanted = append(wanted, node.Text("parent_id"), node.Text("pointer_id"))
	}
	named, err := nodeNames(ctx, s, wanted)
	if err != nil {
		return err
	}
	for _, node := range page {
		if node.Text("depth") == "0" || node.Text("is_pointer") != pointers {
			continue
		}
		parent := named[node.Text("parent_id")]
		if node.Text("parent_id") == tree.root {
			parent.code = ""
		}
		line := output.Object{
			{Name: "tree", Value: tree.code}, {Name: "ref", Value: node.Text("code")},
			{Name: "parent_ref", Value: parent.code}, {Name: "pointer", Value: named[node.Text("pointer_id")].name()},
		}
		for _, m := range node {
			if isNodeDefault(m) || m.Name == "code" {
				continue
			}
			line = append(line, m)
		}
		if err := out.write(line); err != nil {
			return err
		}
	}
	return nil
}

// isNodeDefault reports whether a new node has the value anyway.
func isNodeDefault(m output.Member) bool {
	switch m.Name {
	case "seq", "is_dynamic":
		return output.Text(m.Value) == "0"
	case "status":
		return m.Value == "1"
	}
	return false
}

// nodeName is the tree and the code of a node.
type nodeName struct{ tree, code string }

func (n nodeName) name() string {
	if n.tree == "" {
		return ""
	}
	return n.tree + "/" + n.code
}

// nodeNames finds the names of nodes by their ids.
func nodeNames(ctx context.Context, s *session.Session, wanted []string) (map[string]nodeName, error) {
	return namesOf(ctx, s, wanted, "check-tree-nodes", func(part []string) any {
		return map[string]any{"type": "id", "ids": part}
	}, func(answer output.Object, found map[string]nodeName) {
		for _, m := range answer {
			if node, ok := m.Value.(output.Object); ok {
				found[m.Name] = nodeName{node.Text("object_code"), node.Text("code")}
			}
		}
	})
}
