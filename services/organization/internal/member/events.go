package member

import (
	"context"
	"strconv"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
)

// emit sends an event for each written membership.
func emit(ctx context.Context, tx *docstore.Tx, action string, docs ...Doc) error {
	named, err := names(ctx, from(tx.Peek()), docs)
	if err != nil {
		return err
	}
	for i := range docs {
		if err := emitOne(ctx, tx, named, action, &docs[i], nil); err != nil {
			return err
		}
	}
	return nil
}

// emitEnded sends events for deleted memberships, one for each batch. They have only this form: record is the first of
// the batch, and memberships lists all of it. A consumer uses only that list, with the sequence of each membership,
// which is greater than that of every earlier event about it. So a late event cannot restore an ended membership.
func emitEnded(ctx context.Context, tx *docstore.Tx, batches ...[]Doc) error {
	firsts := make([]Doc, len(batches))
	for i := range batches {
		firsts[i] = batches[i][0]
	}
	named, err := names(ctx, from(tx.Peek()), firsts)
	if err != nil {
		return err
	}
	for i, docs := range batches {
		list := make([]ended, len(docs))
		for j := range docs {
			m, err := docs[j].Value()
			if err != nil {
				return err
			}
			sequence := strconv.FormatInt(docstore.FirstSequence(docs[j].Revision()), 10)
			list[j] = ended{m.ID, m.ObjectCode, m.NodeID, m.UserID, sequence}
		}
		if err := emitOne(ctx, tx, named, "deleted", &firsts[i], map[string]any{"memberships": list}); err != nil {
			return err
		}
	}
	return nil
}

// ended is one membership in the list of a deleted event.
type ended struct {
	ID         string `json:"id"`
	ObjectCode string `json:"object_code"`
	NodeID     string `json:"node_id"`
	UserID     string `json:"user_id"`
	Sequence   string `json:"sequence"`
}

// emitOne sends the event of a membership with the names of its node, which may be deleted.
func emitOne(
	ctx context.Context, tx *docstore.Tx, named directory, action string, doc *Doc, extra map[string]any,
) error {
	m, err := doc.Value()
	if err != nil {
		return err
	}
	record, err := named.shown(doc, named.nodes[m.NodeID])
	if err != nil {
		return err
	}
	return outbox.TellAs(ctx, tx, outbox.Kind{Entity: "membership", Source: "/tree-users"}, action, doc, record, extra)
}
