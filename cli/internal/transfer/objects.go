package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// objects are those of buckets: idp kv.
func objects() *Kind {
	return &Kind{
		Noun: "kv", Things: "objects", Short: "Objects of buckets", Conflicts: []string{fail, skip, update},
		Filters: []Filter{
			{"bucket", "only objects of this bucket"}, {"prefix", "only objects whose keys begin with it"},
		},
		Notes: "value is JSON: a text has quotation marks. time_expires is when the object expires; ttl_seconds\n" +
			"says how long after it is written.",
		Conflict: "update replaces the object with the same key; all that are written count as updated then.",
		ImportExample: "  idp kv import settings.jsonl --on-conflict update\n" +
			"  idp kv import rows.csv --set bucket=settings",
		ExportExample: "  idp kv export settings.jsonl --bucket settings\n  idp kv export -o csv",
		ImportScopes:  "kv:write, kv:read",
		ExportScopes:  "kv:read",
		columns: []column{
			{name: "bucket"}, {name: "key"}, {name: "value", form: anyJSON}, {name: "content_type"},
			{name: "ttl_seconds", form: number, writeOnly: true}, {name: "time_expires"},
		},
		send: sendObjects, read: readObjects,
	}
}

const writtenTogether = 4 // objects at a time

// sendObjects writes each object. Writing one a second time changes nothing, so the progress is kept by the batch: what
// an import that was killed had begun is written again.
func sendObjects(ctx context.Context, i *importer) error {
	records := i.source.from(i.progress.Place, i.line)
	for {
		again := i.progress.Current != nil
		list, end, err := i.readBatch(records)
		if err != nil || len(list) == 0 {
			return err
		}
		if !again {
			i.progress.Current = &batch{Records: len(list)}
			if err := i.progress.save(); err != nil {
				return err
			}
		}
		b := &batch{Records: len(list), Aside: map[int]string{}}
		i.progress.Current = b
		if err := i.writeObjects(ctx, list, b, again); err != nil {
			return err
		}
		if err := i.endBatch(list, end); err != nil {
			return err
		}
	}
}

// writeObjects writes the objects of a batch, a few at a time, those of one key in their order.
func (i *importer) writeObjects(ctx context.Context, list []*record, b *batch, again bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var lanes [writtenTogether][]int
	for n, r := range list {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(r.text("bucket") + "/" + r.text("key")))
		lane := hash.Sum32() % writtenTogether
		lanes[lane] = append(lanes[lane], n)
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	var failed [writtenTogether]error
	for lane, numbers := range lanes {
		all.Go(func() {
			for _, n := range numbers {
				result, err := i.writeObject(ctx, list[n], again)
				if err != nil {
					failed[lane] = err
					cancel()
					return
				}
				mu.Lock()
				if result.reason != "" {
					b.Aside[n] = result.reason
				} else {
					b.Made[result.made]++
				}
				mu.Unlock()
				i.meter.done.Add(1)
			}
		})
	}
	all.Wait()
	for _, err := range failed {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return errors.Join(failed[:]...)
}

// written is what became of an object: it failed, or was made as batch.Made says.
type written struct {
	reason string
	made   int
}

const (
	created = iota
	updated
	skipped
)

func (i *importer) writeObject(ctx context.Context, r *record, again bool) (written, error) {
	if r.fault != "" {
		return written{reason: r.fault}, nil
	}
	for _, member := range []string{"bucket", "key"} {
		if r.text(member) == "" {
			return written{reason: member + ": is missing"}, nil
		}
	}
	body := without(r, "bucket", "key", "time_expires")
	if expires := r.text("time_expires"); expires != "" {
		at, err := time.Parse(time.RFC3339, expires)
		left := time.Until(at)
		if err != nil || left <= 0 {
			return written{reason: "time_expires: has passed, or is not a time such as 2026-01-31T09:30:00Z"}, nil
		}
		body["ttl_seconds"] = encoded(int64((left + time.Second - 1) / time.Second))
	}
	call := &session.Call{
		Operation: session.Operation("put-kv-object"), Path: []string{r.text("bucket"), r.text("key")},
		Body: encoded(body), Header: http.Header{},
	}
	if i.options.OnConflict != update {
		call.Header.Set("If-None-Match", "*")
	}
	sent := *i.Session // each goroutine has its own
	tries := 0
	err := i.patiently(ctx, func() error {
		tries++
		response, err := sent.Send(ctx, call)
		if err != nil {
			return err
		}
		return response.Body.Close()
	}, func() bool { return false })
	if idp.CodeOf(err) == idp.CodeVersionMismatch {
		return i.existing(ctx, call, r, again || tries > 1)
	}
	if problem, refused := isAboutRecords(err); refused {
		reason := faultsOf(problem.Errors)
		if len(problem.Errors) == 0 {
			reason = problem.Error()
		}
		return written{reason: reason}, nil
	}
	if err == nil && i.options.OnConflict == update {
		return written{made: updated}, nil
	}
	return written{made: created}, err
}

// existing says what becomes of an object that is there already. If this import may have made it before it was killed,
// or before a connection broke, the same value is no conflict.
func (i *importer) existing(ctx context.Context, call *session.Call, r *record, maybeOurs bool) (written, error) {
	if maybeOurs {
		var there struct {
			Value json.RawMessage `json:"value"`
		}
		err := i.patiently(ctx, func() error {
			response, err := reading(i.Session).Send(ctx, &session.Call{
				Operation: session.Operation("get-kv-object"), Path: call.Path,
			})
			if err != nil {
				return err
			}
			return answer(response, &there)
		}, func() bool { return false })
		if err != nil {
			return written{}, err
		}
		if sameJSON(there.Value, r.members["value"]) {
			return written{made: created}, nil
		}
	}
	if i.options.OnConflict == skip {
		return written{made: skipped}, nil
	}
	return written{reason: "key: is already there"}, nil
}

// sameJSON compares values by what they say, without regard to the order of members.
func sameJSON(a, b []byte) bool {
	normal := func(text []byte) []byte {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		var value any
		if decoder.Decode(&value) != nil {
			return text
		}
		return encoded(value)
	}
	return bytes.Equal(normal(a), normal(b))
}

// readObjects exports the objects of all buckets, or of one.
func readObjects(ctx context.Context, s *session.Session, filters map[string]string, out *writer) error {
	buckets := []string{filters["bucket"]}
	if buckets[0] == "" {
		buckets = nil
		err := pages(ctx, s, "list-kv-buckets", nil, nil, func(page []output.Object) error {
			for _, bucket := range page {
				buckets = append(buckets, bucket.Text("name"))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, bucket := range buckets {
		query := url.Values{"include_values": {"true"}}
		if prefix := filters["prefix"]; prefix != "" {
			query.Set("prefix", prefix)
		}
		err := pages(ctx, s, "list-kv-objects", []string{bucket}, query, func(page []output.Object) error {
			for _, object := range page {
				if err := out.write(object); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", bucket, err)
		}
	}
	return nil
}
