package user

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/jsonobject"
	"github.com/idplatform/idplatform/services/questions"
)

// Limits of one answer to another service.
const (
	maxRecords     = 500
	maxRecordBytes = 512 << 10 // of encoded records, without what surrounds them; NATS accepts messages of 1 MiB
	maxMembers     = 64
	maxMatches     = 1000
	maxKeyword     = 256 // characters
)

// Existing returns those of the ids that are users who have not resigned.
func (s *Users) Existing(ctx context.Context, ids []string) ([]string, error) {
	docs, err := users.FindMany(ctx, s.Store, ids)
	if err != nil {
		return nil, err
	}
	existing := make([]string, 0, len(docs))
	for i := range docs {
		u, err := docs[i].Value()
		if err != nil {
			return nil, err
		}
		if u.Status != Resigned {
			existing = append(existing, u.ID)
		}
	}
	return existing, nil
}

// NextTenant returns the tenant that follows another among the tenants with users; "" after the last.
func (s *Users) NextTenant(ctx context.Context, after string) (string, error) {
	return users.NextTenant(ctx, s.Store, after)
}

// Records returns the tenant's users, in any state, in the order of ids: the first ones or, with After, those that
// follow an earlier answer whose Next it is. They may be fewer than Limit. Next is "" after the last user. The error is
// apperr.InvalidParameters.
func (s *Users) Records(ctx context.Context, q questions.UsersPage) (questions.Records, error) {
	var faults apperr.Faults
	faults.Check(q.Limit >= 1 && q.Limit <= maxRecords, "limit", "must lie in 1…%d", maxRecords)
	faults.Check(len(q.Members) <= maxMembers, "members", "must have at most %d names", maxMembers)
	if err := faults.Err(); err != nil {
		return questions.Records{}, err
	}
	records := questions.Records{Users: []json.RawMessage{}, Sequences: []int64{}, Next: q.After}
	for size, step := 0, 50; len(records.Users) < q.Limit; {
		step = min(step, q.Limit-len(records.Users))
		query := docstore.Query{Limit: step, After: records.Next}
		if query.After == "" {
			query.AfterID = q.AfterID
		}
		page, err := users.Page(ctx, s.Store, query)
		if err != nil {
			return questions.Records{}, err
		}
		fit, grown, err := fitting(page.Docs, q.Members, size, len(records.Users) == 0)
		switch {
		case err != nil:
			return questions.Records{}, err
		case len(fit) < len(page.Docs) && len(fit) == 0:
			return records, nil
		case len(fit) < len(page.Docs):
			step = len(fit) // repeat, so that the page ends where the answer does
			continue
		}
		for i := range page.Docs {
			records.Sequences = append(records.Sequences, docstore.FirstSequence(page.Docs[i].Revision()))
		}
		records.Users, size, records.Next = append(records.Users, fit...), grown, page.Next
		step = max(step, (maxRecordBytes-size)/(1+size/max(1, len(records.Users)))) // as many as will probably fit
		if records.Next == "" {
			break
		}
	}
	return records, nil
}

// Places are where the tenant's users divide. The error is apperr.InvalidParameters.
func (s *Users) Places(ctx context.Context, q questions.PartsOf) (questions.Places, error) {
	if err := q.Check(); err != nil {
		return questions.Places{}, err
	}
	ids, err := users.Divide(ctx, s.Store, q.Parts, maxRecords)
	return questions.Places{IDs: ids}, err
}

// fitting returns as many of the encoded records as fit beside size bytes, at least one if it is the first, and the new
// size.
func fitting(docs []Doc, wanted []string, size int, first bool) ([]json.RawMessage, int, error) {
	var fit []json.RawMessage
	for i := range docs {
		body, err := docs[i].JSON()
		if err == nil && len(wanted) > 0 {
			body, err = only(wanted, body)
		}
		if err != nil {
			return nil, 0, err
		}
		var escaped bytes.Buffer // an answer is encoded with HTML escapes, which take up to six times as many bytes
		json.HTMLEscape(&escaped, body)
		if size+escaped.Len() > maxRecordBytes && !(first && i == 0) {
			break
		}
		size += escaped.Len()
		fit = append(fit, escaped.Bytes())
	}
	return fit, size, nil
}

// only returns a record with those of its members that are wanted.
func only(wanted []string, record []byte) ([]byte, error) {
	b := []byte{'{'}
	err := jsonobject.Each(record, func(name string, value []byte) {
		if !slices.Contains(wanted, name) {
			return
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b, _ = jsontext.AppendQuote(b, name) // its error is of invalid UTF-8, which no wanted name has
		b = append(append(b, ':'), value...)
	})
	return append(b, '}'), err
}

// Matching returns, in order, the ids of the users that the full-text search finds among ids, or among all users if ids
// is nil, and whether there are more than limit. The error is apperr.InvalidParameters.
func (s *Users) Matching(ctx context.Context, keyword string, ids []string, limit int) (found []string, more bool,
	_ error) {
	var faults apperr.Faults
	faults.Check(utf8.RuneCountInString(keyword) <= maxKeyword, "keyword", "must have at most %d characters",
		maxKeyword)
	faults.Check(len(ids) <= maxMatches, "ids", "must have at most %d ids", maxMatches)
	faults.Check(limit >= 1 && limit <= maxMatches, "limit", "must lie in 1…%d", maxMatches)
	if err := faults.Err(); err != nil {
		return nil, false, err
	}
	where, err := s.where(Filter{Keyword: strings.TrimSpace(keyword), FullText: true})
	if err != nil {
		return nil, false, err
	}
	if ids != nil {
		where = docstore.And(docstore.ID(ids...), where)
	}
	page, err := users.Page(ctx, s.Store, docstore.Query{Filter: where, Limit: limit})
	if err != nil {
		return nil, false, err
	}
	found = make([]string, len(page.Docs))
	for i := range page.Docs {
		found[i] = page.Docs[i].ID
	}
	return found, page.Next != "", nil
}
