package tree

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// MaxNested is how many nodes a nested answer can have.
const MaxNested = 10_000

// maxNestedBytes bounds the nodes of a nested answer together: it is in memory as a whole, twice.
const maxNestedBytes = 16 << 20

// Nested returns a node with all nodes below it, at most depth levels deep if depth is not 0, each with its children
// sorted by seq. The error is apperr.NotFound or InvalidParameters (MaxNested).
func (s *Trees) Nested(ctx context.Context, id string, depth int) (json.RawMessage, error) {
	n, err := s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	filter := docstore.Prefix(byPath, n.PathText())
	if depth > 0 {
		filter = docstore.And(filter, docstore.Until(byDepth, docstore.Number(int64(n.Depth+depth)+1)))
	}
	branches, size := map[string]*branch{}, 0
	var stride docstore.Stride
	for after := ""; ; {
		page, err := nodes.Page(ctx, s.Store, docstore.Query{Filter: filter, Sort: []docstore.Order{{Index: byPath}},
			Limit: stride.Next(), After: after})
		if err != nil {
			return nil, err
		}
		took, err := grow(branches, page.Docs, id)
		if err != nil {
			return nil, err
		}
		stride.Took(len(page.Docs), took)
		after, size = page.Next, size+took
		const ask = "; ask for fewer levels with depth, or for descendants"
		switch {
		case len(branches) > MaxNested || len(branches) == MaxNested && after != "":
			return nil, apperr.Invalid("id", "has more than %d nodes below it"+ask, MaxNested-1)
		case size > maxNestedBytes:
			return nil, apperr.Invalid("id", "has more than %d MiB of nodes below it"+ask, maxNestedBytes>>20)
		}
		if after == "" {
			break
		}
	}
	if branches[id] == nil { // it was moved or deleted meanwhile
		return nil, apperr.Missing("tree node")
	}
	return branches[id].appendTo(nil), nil
}

// grow adds nodes to branches below the node of an id, and returns how many bytes they have. Parents come before their
// children.
func grow(branches map[string]*branch, docs []Doc, id string) (size int, err error) {
	for i := range docs {
		n, err := docs[i].Value()
		if err != nil {
			return 0, err
		}
		body, err := docs[i].JSON()
		if err != nil {
			return 0, err
		}
		if size += len(body); branches[n.ID] != nil { // it was moved between two pages
			continue
		}
		b := &branch{json: body, seq: n.Seq, id: n.ID}
		branches[n.ID] = b
		if parent := branches[n.ParentID]; parent != nil && n.ID != id {
			parent.children = append(parent.children, b)
		}
	}
	return size, nil
}

// branch is a node of a nested answer.
type branch struct {
	json     []byte
	seq      int64
	id       string
	children []*branch
}

// appendTo appends the node's JSON with its sorted children.
func (b *branch) appendTo(out []byte) []byte {
	slices.SortFunc(b.children, func(a, b *branch) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), strings.Compare(a.id, b.id))
	})
	out = append(append(out, b.json[:len(b.json)-1]...), `,"children":[`...)
	for i, child := range b.children {
		if i > 0 {
			out = append(out, ',')
		}
		out = child.appendTo(out)
	}
	return append(out, "]}"...)
}
