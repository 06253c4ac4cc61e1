package member

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
)

// maxRecords is the largest number of memberships in one answer to another service.
const maxRecords = 2000

// Records returns a page of memberships of all nodes in the order of ids. The error is apperr.InvalidParameters.
func (s *Members) Records(ctx context.Context, q questions.RecordsPage) (questions.MembershipPage, error) {
	if q.Limit < 1 || q.Limit > maxRecords {
		return questions.MembershipPage{}, apperr.Invalid("limit", "must lie in 1…%d", maxRecords)
	}
	page, err := members.Page(ctx, s.Store, docstore.Query{Limit: q.Limit, After: q.After})
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

// Groups are the nodes of a user and all nodes above them, as questions.Groups has them.
func (s *Members) Groups(ctx context.Context, q questions.GroupsQuestion) (questions.Groups, error) {
	docs, err := docsOfUser(ctx, s.Store, q.UserID)
	if err != nil {
		return questions.Groups{}, err
	}
	directory, err := names(ctx, from(s.Store), docs)
	groups := make([]string, 0, len(directory.nodes))
	for _, n := range directory.nodes {
		groups = append(groups, n.ObjectCode+"/"+n.Code)
	}
	slices.Sort(groups)
	return questions.Groups{Groups: groups}, err
}
