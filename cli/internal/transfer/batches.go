package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

const (
	maxBatch      = 1000      // records that are read together, and of a request
	maxBatchBytes = 512 << 10 // of the records; a request may have 1 MiB
)

// batched is a kind of records that are sent by requests that do all or nothing.
type batched interface {
	// group splits records into those of each request.
	group(records []*record) [][]int
	// names are the names of the records of a request for which ids are needed.
	names(records []*record) []name
	// request makes the request. It has faults for the records that cannot be sent, and is not sent then.
	request(records []*record, ids ids) request
	// done is told that a request is done.
	done(records []*record)
}

// request is a request for some records.
type request struct {
	operation string
	path      []string
	body      any
	faults    map[int]fault

	// about returns the records that a fault's location names, and the member.
	about func(location string) (records []int, member string)
}

// fault is why a record is not sent.
type fault struct {
	reason string
	exists bool // because it is there already
}

// sendBatches imports records in batches. Each request has a key of its own. If the platform refuses records of a
// request, which does nothing then, they are set aside, and the rest is sent again with another key.
func (i *importer) sendBatches(ctx context.Context, kind batched) error {
	records := i.source.from(i.progress.Place, i.line)
	for {
		list, end, err := i.readBatch(records)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return nil
		}
		if i.progress.Current == nil {
			i.beginBatch(list, kind)
		}
		for len(i.progress.Current.Queue) > 0 {
			if err := i.sendNext(ctx, list, kind); err != nil {
				return err
			}
		}
		if err := i.updateExisting(ctx, list, kind); err != nil {
			return err
		}
		if err := i.endBatch(list, end); err != nil {
			return err
		}
	}
}

// readBatch reads the records of a batch: as many as it had before, if it goes on.
func (i *importer) readBatch(records reader) (list []*record, end place, err error) {
	most, size := maxBatch, 0
	if b := i.progress.Current; b != nil {
		most, size = b.Records, -maxBatch*maxRecord // however large they are
	}
	for len(list) < most && size < maxBatchBytes {
		r, err := records.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, end, err
		}
		list, end, size = append(list, r), r.end, size+r.size()
	}
	return list, end, nil
}

// beginBatch queues the requests of a batch. Records that cannot be read are set aside.
func (i *importer) beginBatch(list []*record, kind batched) {
	b := &batch{Records: len(list), Aside: map[int]string{}, Exists: map[int]bool{}}
	i.progress.Current = b
	var good []int
	for n, r := range list {
		if r.fault != "" {
			b.Aside[n] = r.fault
			continue
		}
		good = append(good, n)
	}
	if len(good) == 0 {
		return
	}
	for _, group := range kind.group(pick(list, good)) {
		b.Queue = append(b.Queue, pick(good, group))
	}
}

func pick[T any](all []T, at []int) []T {
	out := make([]T, len(at))
	for i, n := range at {
		out[i] = all[n]
	}
	return out
}

// sendNext sends the first request of the queue, or sets records of it aside.
func (i *importer) sendNext(ctx context.Context, list []*record, kind batched) error {
	b := i.progress.Current
	records := pick(list, b.Queue[0])
	if b.Sent == nil {
		found, err := i.find(ctx, kind.names(records))
		if err != nil {
			return err
		}
		if faults := kind.request(records, found).faults; len(faults) > 0 {
			i.setAside(faults)
			return nil
		}
		b.Number++
		b.Sent = &sent{Key: i.progress.key(i.progress.Batch, "/", b.Number), Time: time.Now().UTC(), Names: found}
		if err := i.progress.save(); err != nil {
			return err
		}
	}
	r := kind.request(records, b.Sent.Names)
	err := i.post(ctx, r, b.Sent.Key)
	problem, refused := isAboutRecords(err)
	switch {
	case err == nil:
		b.Made[0] += int64(len(records))
		b.Queue = b.Queue[1:]
		kind.done(records)
		i.meter.done.Add(int64(len(records)))
	case refused:
		i.refused(r, problem)
	default:
		return err
	}
	b.Sent = nil
	return i.progress.save()
}

func (i *importer) post(ctx context.Context, r request, key string) error {
	return i.patiently(ctx, func() error {
		response, err := i.Send(ctx, &session.Call{
			Operation: session.Operation(r.operation), Path: r.path, Body: encoded(r.body),
			Header: http.Header{"Idempotency-Key": {key}},
		})
		if err != nil {
			return err
		}
		return response.Body.Close()
	}, func() bool { return false })
}

// refused sets aside the records that a refusal names. If it names none, each half of the request is tried alone.
func (i *importer) refused(r request, problem *idp.Problem) {
	b := i.progress.Current
	faults := map[int]fault{}
	for _, f := range problem.Errors {
		records, member := r.about(f.Location)
		for _, n := range records {
			reason := strings.TrimPrefix(member+": "+f.Message, ": ")
			if before, has := faults[n]; has {
				reason = before.reason + "; " + reason
			}
			faults[n] = fault{reason, problem.Code == idp.CodeAlreadyExists}
		}
	}
	first := b.Queue[0]
	switch {
	case len(faults) > 0:
		i.setAside(faults)
	case len(first) == 1:
		i.setAside(map[int]fault{0: {reason: problem.Error()}})
	default:
		half := len(first) / 2
		b.Queue = append([][]int{first[:half], first[half:]}, b.Queue[1:]...)
	}
}

// setAside takes records out of the first request of the queue.
func (i *importer) setAside(faults map[int]fault) {
	b := i.progress.Current
	var rest []int
	for at, n := range b.Queue[0] {
		f, bad := faults[at]
		switch {
		case !bad:
			rest = append(rest, n)
		case f.exists && i.options.OnConflict != fail:
			b.Exists[n] = true
		default:
			b.Aside[n] = f.reason
		}
	}
	i.meter.done.Add(int64(len(b.Queue[0]) - len(rest)))
	if b.Queue[0] = rest; len(rest) == 0 {
		b.Queue = b.Queue[1:]
	}
}

// endBatch writes the failures of a batch, and goes on behind it.
func (i *importer) endBatch(list []*record, end place) error {
	b := i.progress.Current
	for _, n := range slices.Sorted(maps.Keys(b.Aside)) {
		if err := i.failed(list[n], b.Aside[n]); err != nil {
			return err
		}
	}
	if err := i.failures.sync(); err != nil {
		return err
	}
	i.report.Lines += int64(b.Records)
	i.report.Created += b.Made[0]
	i.report.Updated += b.Made[1]
	i.report.Skipped += b.Made[2] + int64(len(b.Exists))
	i.progress.FailedSize = i.failures.size
	i.progress.Current, i.progress.Batch, i.progress.Place = nil, i.progress.Batch+1, end
	i.meter.done.Store(end.Number)
	return i.progress.save()
}

// both joins two reasons, of which each may be "".
func both(one, other string) string {
	if one == "" || other == "" {
		return one + other
	}
	return one + "; " + other
}

// aboutItems is the about of a request whose items are the records.
func aboutItems(location string) (records []int, member string) {
	list, n, member := inList(location)
	if list != "items" {
		return nil, ""
	}
	return []int{n}, member
}

// inList reads a location such as body.items[3].user_id.
func inList(location string) (list string, n int, member string) {
	head, rest, ok := strings.Cut(strings.TrimPrefix(location, "body."), "[")
	index, member, closed := strings.Cut(rest, "]")
	if _, err := fmt.Sscan(index, &n); !ok || !closed || err != nil {
		return "", 0, ""
	}
	return head, n, strings.TrimPrefix(member, ".")
}

// all is the group of all records.
func all(records []*record) []int {
	group := make([]int, len(records))
	for i := range group {
		group[i] = i
	}
	return group
}

// by groups records by a text, in the order of the first of each group.
func by(records []*record, of func(*record) string) [][]int {
	at := map[string]int{}
	var groups [][]int
	for n, r := range records {
		key := of(r)
		if _, known := at[key]; !known {
			at[key] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[key]] = append(groups[at[key]], n)
	}
	return groups
}

// without copies the members of a record that the platform knows by the same names.
func without(r *record, names ...string) map[string]json.RawMessage {
	item := maps.Clone(r.members)
	for _, name := range names {
		delete(item, name)
	}
	return item
}
