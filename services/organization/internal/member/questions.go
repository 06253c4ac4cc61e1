package member

import (
	"context"

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
