package tree

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
)

// maxRecords is the largest number of records in one answer to another service. With more, long names could exceed the
// size of a NATS message.
const maxRecords = 500

// NextTenant returns the tenant that follows another among the tenants with core objects; "" after the last.
func (s *Trees) NextTenant(ctx context.Context, after string) (string, error) {
	return objects.NextTenant(ctx, s.Store, after)
}

// ObjectRecords returns a page of core objects in the order of ids. The error is apperr.InvalidParameters.
func (s *Trees) ObjectRecords(ctx context.Context, q questions.RecordsPage) (questions.CoreObjects, error) {
	page, err := recordsPage(ctx, s.Store, &objects.Collection, q)
	records := questions.CoreObjects{CoreObjects: []questions.CoreObject{}, Next: page.Next}
	for i := range page.Docs {
		o, err := page.Docs[i].Value()
		if err != nil {
			return records, err
		}
		records.CoreObjects = append(records.CoreObjects, questions.CoreObject{
			ID: o.ID, Code: o.Code, Name: o.Name, Sequence: docstore.FirstSequence(page.Docs[i].Revision()),
		})
	}
	return records, err
}

// NodeRecords returns a page of nodes of all trees in the order of ids. The error is apperr.InvalidParameters.
func (s *Trees) NodeRecords(ctx context.Context, q questions.RecordsPage) (questions.Nodes, error) {
	page, err := recordsPage(ctx, s.Store, nodes, q)
	records := questions.Nodes{Nodes: []questions.Node{}, Next: page.Next}
	for i := range page.Docs {
		n, err := page.Docs[i].Value()
		if err != nil {
			return records, err
		}
		records.Nodes = append(records.Nodes, questions.Node{
			ID: n.ID, Name: n.Name, ParentID: n.ParentID, ObjectCode: n.ObjectCode,
			Sequence: docstore.FirstSequence(page.Docs[i].Revision()),
			Code:     n.Code, Status: n.Status, IsPointer: n.IsPointer, PointerID: n.PointerID, IsDynamic: n.IsDynamic,
			Version:     n.Version,
			TimeCreated: n.TimeCreated.String(),
		})
	}
	return records, err
}

func recordsPage[T any](
	ctx context.Context, store *docstore.Store, c *docstore.Collection[T], q questions.RecordsPage,
) (docstore.Page[T], error) {
	if q.Limit < 1 || q.Limit > maxRecords {
		return docstore.Page[T]{}, apperr.Invalid("limit", "must lie in 1…%d", maxRecords)
	}
	return c.Page(ctx, store, docstore.Query{Limit: q.Limit, After: q.After})
}
