// Package outbox publishes events about changes. An event is written in the transaction of its change (Append). A Relay
// publishes it to JetStream afterwards, and keeps it until JetStream cannot lose it. So there is no event without its
// change and no change without its event, even while NATS is away.
//
// Delivery is at least once, in order for each record. Messages carry their id as Nats-Msg-Id, so JetStream drops what
// is sent twice within two minutes. For later repetitions consumers must be idempotent.
package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/propagation"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// MaxSize is the size of the largest envelope, in bytes. NATS would always refuse a larger one, so it is refused before
// it is written.
const MaxSize = 4 << 20

// Event is a change of one record.
type Event struct {
	Entity  string // such as user
	Action  string // such as created
	Source  string // the path of the records, without /v1 and ids: /users, /applications/accounts
	Subject string // the record's id
	// the record's revision after the change: that of docstore.Stamp, made by this transaction
	Revision int64
	// the record after the change, or the last state of a deleted record, without secrets
	Record   json.RawMessage
	Previous map[string]json.RawMessage // the former values of the changed members; nil for none
	Extra    map[string]any             // further members of data
}

// envelope is a CloudEvent 1.0 in structured JSON. Extension attributes have lower-case names (CloudEvents §3.1); empty
// ones are left out.
type envelope struct {
	SpecVersion     string     `json:"specversion"`
	ID              string     `json:"id"`
	Source          string     `json:"source"`
	Type            string     `json:"type"`
	Subject         string     `json:"subject"`
	Time            clock.Time `json:"time"`
	DataContentType string     `json:"datacontenttype"`
	Tenant          string     `json:"tenantid"`
	Actor           string     `json:"actor,omitempty"`
	RequestID       string     `json:"requestid,omitempty"`
	TraceParent     string     `json:"traceparent,omitempty"`
	PayloadOrigin   string     `json:"payloadorigin,omitempty"`
	Sequence        string     `json:"sequence"`
}

// Kind is what all events about the records of one collection have in common.
type Kind struct{ Entity, Source string }

// Tell is Append for the record doc that this transaction has written or deleted. extra are further members of data.
func Tell[T any](ctx context.Context, tx *docstore.Tx, k Kind, action string, doc *docstore.Doc[T],
	extra map[string]any) error {
	record, err := doc.JSON()
	if err != nil {
		return err
	}
	return TellAs(ctx, tx, k, action, doc, record, extra)
}

// TellAs is Tell for a record that clients see in another form than the stored one. It refuses a document that this
// transaction has not written, because its events would have no sequence of their own. For events about an unchanged
// record use docstore.Collection's Revise.
func TellAs[T any](
	ctx context.Context, tx *docstore.Tx, k Kind, action string, doc *docstore.Doc[T],
	record json.RawMessage, extra map[string]any,
) error {
	if !doc.Written() {
		return fmt.Errorf("event %s.%s of %s/%s: the transaction has not written the record",
			k.Entity, action, k.Source, doc.ID)
	}
	return Append(ctx, tx, Event{
		Entity: k.Entity, Action: action, Source: k.Source, Subject: doc.ID, Revision: doc.Revision(),
		Record: record, Previous: doc.Previous(), Extra: extra,
	})
}

// Append writes e into tx as a CloudEvent on idp.events.<tenant>.<entity>.<action>. Tenant, actor, request id and
// payload origin are those of the context (package request), traceparent is that of its span. sequence grows with each
// event of one record. Append fails for an invalid event, and after 10 events about one revision; the caller's
// transaction then fails, too.
func Append(ctx context.Context, tx *docstore.Tx, e Event) error {
	message, err := compose(ctx, tx, e)
	if err != nil {
		return fmt.Errorf("event %s.%s of %s/%s: %w", e.Entity, e.Action, e.Source, e.Subject, err)
	}
	return tx.Append(ctx, message)
}

// isWord reports whether s is a lower-case word that can be a token of a NATS subject: a letter (or a digit, if digits
// may lead), then up to 62 letters, digits, _ and -.
func isWord(s string, digitsLead bool) bool {
	for i := range len(s) {
		c := s[i]
		letter, digit := c >= 'a' && c <= 'z', c >= '0' && c <= '9'
		if !letter && (!digit || i == 0 && !digitsLead) && (c != '_' && c != '-' || i == 0) {
			return false
		}
	}
	return s != "" && len(s) <= 63
}

// isPath reports whether s consists of words with a slash before each.
func isPath(s string) bool {
	words, ok := strings.CutPrefix(s, "/")
	for word := range strings.SplitSeq(words, "/") {
		ok = ok && isWord(word, false)
	}
	return ok
}

func compose(ctx context.Context, tx *docstore.Tx, e Event) (docstore.Message, error) {
	info := request.From(ctx)
	switch {
	case !isWord(info.Tenant, true):
		return docstore.Message{}, fmt.Errorf("the tenant cannot be part of a NATS subject")
	case !isWord(e.Entity, false) || !isWord(e.Action, false):
		return docstore.Message{}, fmt.Errorf("entity and action must be lower-case words")
	case !isPath(e.Source):
		return docstore.Message{}, fmt.Errorf("the source must be a path")
	case e.Subject == "" || e.Revision < 1 || len(e.Record) == 0:
		return docstore.Message{}, fmt.Errorf("no record, record id or revision")
	}
	record := info.Tenant + e.Source + "/" + e.Subject
	sequence, err := tx.Sequence(record, e.Revision)
	if err != nil {
		return docstore.Message{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return docstore.Message{}, err
	}
	trace := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, trace)
	head, err := encode(envelope{
		SpecVersion:     "1.0",
		ID:              id.String(),
		Source:          e.Source,
		Type:            "idp." + e.Entity + "." + e.Action,
		Subject:         e.Subject,
		Time:            tx.Now,
		DataContentType: "application/json",
		Tenant:          info.Tenant,
		Actor:           info.Actor,
		RequestID:       info.ID,
		TraceParent:     trace["traceparent"],
		PayloadOrigin:   info.PayloadOrigin,
		Sequence:        strconv.FormatInt(sequence, 10),
	})
	if err != nil {
		return docstore.Message{}, err
	}
	// The record is JSON already, and most of an event: it is inserted without being encoded again.
	payload := make([]byte, 0, len(head)+len(e.Record)+roomForRest)
	payload = append(append(payload, bytes.TrimSuffix(head, []byte("}"))...), `,"data":`...)
	if payload, err = e.appendData(payload); err != nil {
		return docstore.Message{}, err
	}
	payload = append(payload, '}')
	if len(payload) > MaxSize {
		return docstore.Message{}, fmt.Errorf("%d bytes are more than an event may have", len(payload))
	}
	return docstore.Message{
		ID:       id.String(),
		Subject:  "idp.events." + info.Tenant + "." + e.Entity + "." + e.Action,
		Record:   record,
		Sequence: sequence,
		Payload:  payload,
	}, nil
}

// roomForRest is what is usually enough for the members of data beside the record.
const roomForRest = 256

// appendData appends data: record first, previous second and the others by name, so that equal events have equal bytes.
func (e Event) appendData(to []byte) ([]byte, error) {
	if !json.Valid(e.Record) {
		return nil, errors.New("the record is not JSON")
	}
	to = append(append(to, `{"record":`...), e.Record...)
	member := func(name string, v any) error {
		value, err := encode(v)
		to = append(append(to, `,"`+name+`":`...), value...)
		return err
	}
	if len(e.Previous) > 0 {
		if err := member("previous", e.Previous); err != nil {
			return nil, fmt.Errorf("a previous member is not JSON: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Extra)) {
		if name == "record" || name == "previous" || !isWord(name, false) {
			return nil, fmt.Errorf("%q cannot be a further member of data", name)
		}
		if err := member(name, e.Extra[name]); err != nil {
			return nil, fmt.Errorf("the further member %s is not JSON: %w", name, err)
		}
	}
	return append(to, '}'), nil
}

// encode does not escape <, > and &, as in the stored record.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
