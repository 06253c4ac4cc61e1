package member

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

// count counts the query's users. more reports that there may be others, in memberships beyond MaxCounted.
func (l *listing) count(ctx context.Context) (total int64, more bool, err error) {
	if !l.Recursive || l.node.ChildCount == 0 {
		if l.Role == "" {
			return l.node.MemberCount, false, nil
		}
		page, err := members.Page(ctx, l.Store, docstore.Query{Filter: docstore.Prefix(byRole,
			l.node.ID+"/"+l.Role+"/"), Limit: 1, Count: true})
		return page.Total, page.More, err
	}
	ids, all, err := l.userIDs(ctx)
	return int64(len(ids)), !all, err
}

// userIDs returns the sorted ids of the query's users. all is false if they are only those of the first MaxCounted
// memberships.
func (l *listing) userIDs(ctx context.Context) (ids []string, all bool, err error) {
	ids, all = []string{}, true
	nodes := []docstore.Indexed{{ID: l.node.ID, Text: l.node.PathText()}}
	behind, ahead := l.node.PathText(), chunk
	for len(nodes) > 0 {
		texts, err := l.textsOf(ctx, nodes, MaxCounted+1-len(ids))
		if err != nil {
			return nil, false, err
		}
		for _, t := range texts {
			s, _ := l.entry(t)
			ids = append(ids, s.user)
		}
		if len(ids) > MaxCounted {
			ids, all = ids[:MaxCounted], false
			break
		}
		if !l.Recursive {
			break
		}
		if nodes, err = tree.Populated(ctx, l.Store, l.node.Path, behind, ahead); err != nil {
			return nil, false, err
		}
		if len(nodes) > 0 {
			behind = nodes[len(nodes)-1].Text
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), all, nil
}
