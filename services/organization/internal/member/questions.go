package member

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
	"github.com/idplatform/idplatform/services/questions"
)

// maxRecords is the largest number of memberships in one answer to another service.
const maxRecords = 2000

// Records returns a page of memberships of all nodes in the order of ids. The error is apperr.InvalidParameters.
func (s *Members) Records(ctx context.Context, q questions.MembershipsPage) (questions.MembershipPage, error) {
	if q.Limit < 1 || q.Limit > maxRecords {
		return questions.MembershipPage{}, apperr.Invalid("limit", "must lie in 1…%d", maxRecords)
	}
	query := docstore.Query{Limit: q.Limit, After: q.After}
	if q.After == "" {
		query.AfterID = q.AfterID
	}
	page, err := members.Page(ctx, s.Store, query)
	records := questions.MembershipPage{Memberships: []questions.Membership{}, Next: page.Next}
	for i := range page.Docs {
		m, err := page.Docs[i].Value()
		if err != nil {
			return records, err
		}
		records.Memberships = append(records.Memberships, questions.Membership{
			ID: m.ID, NodeID: m.NodeID, UserID: m.UserID, Sequence: docstore.FirstSequence(page.Docs[i].Revision()),
		})
	}
	return records, err
}

// Places are where the tenant's memberships divide. The error is apperr.InvalidParameters.
func (s *Members) Places(ctx context.Context, q questions.PartsOf) (questions.Places, error) {
	if err := q.Check(); err != nil {
		return questions.Places{}, err
	}
	ids, err := members.Divide(ctx, s.Store, q.Parts, maxRecords)
	return questions.Places{IDs: ids}, err
}

// Groups are the nodes of a user, all nodes above them, and the nodes that stand for one of them, as questions.Groups
// has them. A node that is disabled, or below one that is, is none of them, and leads to no others.
func (s *Members) Groups(ctx context.Context, q questions.GroupsQuestion) (questions.Groups, error) {
	docs, err := docsOfUser(ctx, s.Store, q.UserID)
	if err != nil {
		return questions.Groups{}, err
	}
	find := from(s.Store)
	directory, err := names(ctx, find, docs)
	if err != nil {
		return questions.Groups{}, err
	}
	var own []string
	for i := range docs {
		m, err := docs[i].Value()
		if err != nil {
			return questions.Groups{}, err
		}
		own = append(own, m.NodeID)
	}
	found := map[string]bool{}
	for len(own) > 0 {
		var fresh []string
		for _, id := range own {
			for _, n := range directory.openLine(id) {
				if !found[n.ID] {
					found[n.ID] = true
					fresh = append(fresh, n.ID)
				}
			}
		}
		pointers, err := tree.PointersTo(ctx, s.Store, fresh)
		if err != nil {
			return questions.Groups{}, err
		}
		own = nil
		for _, p := range pointers {
			directory.nodes[p.ID] = p
			own = append(own, p.ID)
		}
		if err := directory.addAbove(ctx, find); err != nil {
			return questions.Groups{}, err
		}
	}
	groups := make([]string, 0, len(found))
	for id := range found {
		n := directory.nodes[id]
		groups = append(groups, n.ObjectCode+"/"+n.Code)
	}
	slices.Sort(groups)
	return questions.Groups{Groups: groups}, nil
}
