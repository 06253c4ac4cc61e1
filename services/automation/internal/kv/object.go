package kv

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
)

// Object is an object record. Its JSON form is the API's, the events' and the store's, without the value if that is
// large.
type Object struct {
	docstore.Meta
	Bucket      string     `json:"bucket" readOnly:"true" doc:"The name of its bucket" example:"settings"`
	Key         string     `json:"key" doc:"Its name in the bucket" example:"console/theme"`
	ContentType string     `json:"content_type" doc:"Of the value, for its readers; up to 128 characters; application/json if absent" example:"application/json"`
	Size        int64      `json:"size" readOnly:"true" doc:"Of the value as compact JSON, in bytes" example:"13"`
	TimeExpires clock.Time `json:"time_expires" readOnly:"true" nullable:"true" doc:"When it is deleted by itself; null: never"`
	Kept        int64      `json:"kept_versions" readOnly:"true" doc:"How many former states are kept"`

	// Value is here if it has at most inline bytes, so that one read gets it. A larger one is in the collection values,
	// so that lists of keys do not read it. It must be the last member: see recordOf and valueMember.
	Value jsontext.Value `json:"value,omitempty" doc:"Any JSON; absent from lists without include_values" example:"{\"dark\":true}"`
}

const (
	inline     = 16 << 10 // bytes
	maxKey     = 1024     // bytes
	maxContent = 128      // characters of a content type
)

// value is a value of more than inline bytes: of an object, or of a former state.
type value struct {
	docstore.Meta                // with the id of the object or version
	Of            int64          `json:"of"` // the object's version
	Value         jsontext.Value `json:"value"`
}

const (
	byKey    = "key"
	byExpiry = "time_expires"
)

var objects = docstore.Define(docstore.Schema[Object]{
	Name: "kv_objects", Noun: "object",
	Sortable: []string{byKey},
	Indexes: []docstore.Index[Object]{
		docstore.Unique(docstore.ByText(byKey, func(o *Object) string { return place(o.Bucket, o.Key) }), "key"),
		docstore.ByNumber(byExpiry, func(o *Object) docstore.Value { return docstore.Moment(o.TimeExpires) }),
	},
	Due: func(o *Object) clock.Time { return o.TimeExpires },
})

var values = docstore.Define(docstore.Schema[value]{Name: "kv_values", Noun: "value", NoIfMatch: true})

// place is the unique key of an object among all of the tenant. Names of buckets have no slash.
func place(bucket, key string) string { return bucket + "/" + key }

// within selects a bucket's objects whose keys begin with prefix.
func within(bucket, prefix string) docstore.Filter {
	return docstore.Prefix(byKey, place(bucket, prefix))
}

// alive selects those objects of f that have not expired. It is an Outside, which costs engines nothing while no object
// has expired.
func alive(f docstore.Filter, now clock.Time) docstore.Filter {
	others := docstore.Outside(byExpiry, docstore.Number(0), docstore.Number(now.Millis()+1))
	return docstore.And(f, docstore.TimeBound(others))
}

func (o *Object) expired(now clock.Time) bool {
	return !o.TimeExpires.IsZero() && !o.TimeExpires.After(now)
}

// Draft has the members of an object that clients set.
type Draft struct {
	Value       jsontext.Value `json:"value"`
	ContentType string         `json:"content_type"`
	TTLSeconds  *int64         `json:"ttl_seconds"` // nil means the bucket's, 0 forever
}

// check sets defaults and reports every fault.
func (d *Draft) check(key string) error {
	var faults apperr.Faults
	checkKey(&faults, key)
	var compact bytes.Buffer
	if err := json.Compact(&compact, d.Value); err != nil {
		faults.Add("value", "must be JSON")
	}
	d.Value = compact.Bytes()
	if d.ContentType == "" {
		d.ContentType = "application/json"
	}
	faults.Text("content_type", d.ContentType, maxContent)
	faults.Check(d.TTLSeconds == nil || *d.TTLSeconds >= 0 && *d.TTLSeconds <= maxTTL, "ttl_seconds",
		"must lie in 0…%d", maxTTL)
	return faults.Err()
}

// historyTail is the end of the path of an object's history. So keys cannot end with it.
const historyTail = "/history"

// checkKey accepts keys that stay the same as the end of a URL's path, even if a proxy normalizes that.
func checkKey(faults *apperr.Faults, key string) {
	faults.Check(key != "" && len(key) <= maxKey, "key", "must have 1…%d bytes", maxKey)
	faults.Check(utf8.ValidString(key) && !strings.ContainsFunc(key, unicode.IsControl), "key",
		"must be UTF-8 without control characters")
	segments := strings.Split(key, "/")
	faults.Check(key == "" || !slices.ContainsFunc(segments, func(s string) bool {
		return s == "" || s == "." || s == ".."
	}), "key", "must not have segments between slashes that are empty, . or ..")
	faults.Check(!strings.Contains(key, `\`), "key", `must not have \`)
	faults.Check(!strings.HasSuffix(key, historyTail), "key", "must not end with %s", historyTail)
}

// set sets the members of an object by a draft and the bucket's settings. The error is apperr.InvalidParameters.
func (o *Object) set(d Draft, now clock.Time, in Settings) error {
	if size := int64(len(d.Value)); size > in.MaxObjectBytes {
		return apperr.Invalid("value", "must have at most %d bytes in this bucket", in.MaxObjectBytes)
	}
	ttl := in.TTLSeconds
	if d.TTLSeconds != nil {
		ttl = *d.TTLSeconds
	}
	o.Value, o.Size, o.ContentType, o.TimeExpires = d.Value, int64(len(d.Value)), d.ContentType, clock.Time{}
	if ttl > 0 {
		o.TimeExpires = now.Add(time.Duration(ttl) * time.Second)
	}
	return nil
}

// Record is an object with its value: its JSON form and its ETag.
type Record struct {
	JSON []byte
	Tag  string
}

// Stored returns the JSON and the ETag, so that pkg/rest can answer with it.
func (r Record) Stored() (body []byte, tag string, err error) { return r.JSON, r.Tag, nil }

// recordOf makes the Record of a document. large is its value if that is stored in values, otherwise nil.
func recordOf(doc *docstore.Doc[Object], large jsontext.Value) (Record, error) {
	body, err := doc.JSON()
	if err != nil || large == nil {
		return Record{body, doc.Tag()}, err
	}
	whole := slices.Concat(bytes.TrimSuffix(body, []byte("}")), []byte(`,"value":`), large, []byte("}"))
	return Record{whole, doc.Tag()}, nil
}

// valueMember precedes the value in an object's JSON form. It cannot occur earlier: the members before are numbers and
// strings, and quotes in strings are escaped.
var valueMember = []byte(`,"value":`)

// isPlain reports whether an object in its JSON form has its value and never expires, without decoding it.
func isPlain(body []byte) bool {
	head, _, whole := bytes.Cut(body, valueMember)
	return whole && bytes.Contains(head, []byte(`,"time_expires":null`))
}

// bare returns the JSON form of an object without its value.
func bare(doc *docstore.Doc[Object]) ([]byte, error) {
	body, err := doc.JSON()
	if head, _, found := bytes.Cut(body, valueMember); found {
		body = append(slices.Clip(head), '}')
	}
	return body, err
}

// encode makes JSON without HTML escapes, as the store does, so that values stay as they were sent.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// emitObject emits an event about an object. It leaves out the value, which can be large and confidential.
func emitObject(ctx context.Context, tx *docstore.Tx, action string, doc *docstore.Doc[Object]) error {
	record, err := bare(doc)
	if err != nil {
		return err
	}
	previous := doc.Previous()
	delete(previous, "value")
	return outbox.Append(ctx, tx, outbox.Event{
		Entity: "kv_object", Action: action, Source: "/kv/buckets/objects", Subject: doc.ID, Revision: doc.Revision(),
		Record: record, Previous: previous,
	})
}
