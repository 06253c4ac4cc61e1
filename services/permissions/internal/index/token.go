package index

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/permissions/internal/grant"
)

// patience is how long a check waits for the write that its token names.
const patience = 5 * time.Second

// named is a record as a token names it.
type named struct {
	kind     int // an index of kinds
	id       int64
	sequence int64 // deletedSequence if it is deleted
}

// kinds are the entities in tokens. Numbers of kinds never change: replicas of different versions exchange tokens.
var kinds = []string{"resource", "resource_set", "resource_set_member", "auth_unit", "auth_unit_member", "auth_rule"}

// Limits of a token's content; a write names fewer.
const (
	maxNamed     = 20_000
	maxTokenSize = 1 << 20
	packFrom     = 128 // bytes; from here on a token is compressed: ids of one request often follow each other
)

// The first byte of a token says how the rest is written.
const (
	plain = iota
	packed
)

// Name sets the consistency token in the answer to a request that makes changes.
func Name(ctx context.Context, changes []grant.Change) {
	request.SetConsistencyToken(ctx, tokenOf(changes))
}

// tokenOf names all records that a write has changed. What was deleted together with its unit or resource is left out:
// without these it has no effect.
func tokenOf(changes []grant.Change) string {
	gone := map[string]bool{} // units and resources
	for _, c := range changes {
		gone[c.ID] = gone[c.ID] || c.Deleted && (c.Entity == "auth_unit" || c.Entity == "resource")
	}
	var list []named
	for _, c := range changes {
		kind := slices.Index(kinds, c.Entity)
		id, err := strconv.ParseInt(c.ID, 10, 64)
		if kind < 0 || err != nil || c.Deleted && dependent(c, gone) {
			continue
		}
		n := named{kind, id, c.Sequence}
		if c.Deleted {
			n.sequence = deletedSequence
		}
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b named) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id)) })
	return written(list)
}

// written is the text of a token, in which a deleted record has the sequence 0.
func written(list []named) string {
	raw := []byte{plain}
	last := named{}
	for _, n := range list {
		if n.kind != last.kind {
			last = named{kind: last.kind}
		}
		sequence := n.sequence
		if sequence == deletedSequence {
			sequence = 0
		}
		raw = binary.AppendVarint(raw, int64(n.kind-last.kind))
		raw = binary.AppendVarint(raw, n.id-last.id)
		raw = binary.AppendVarint(raw, sequence)
		last = n
	}
	if len(raw) >= packFrom {
		small := bytes.NewBuffer([]byte{packed})
		w, _ := flate.NewWriter(small, flate.BestSpeed) // the level exists
		_, _ = w.Write(raw[1:])                         // a buffer takes all
		_ = w.Close()
		raw = small.Bytes()
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// dependent reports whether a deleted record has no effect without a unit or resource that is gone too.
func dependent(c grant.Change, gone map[string]bool) bool {
	var of struct {
		Unit     string `json:"auth_unit_id"`
		Resource string `json:"resource_id"`
	}
	return json.Unmarshal(c.Record, &of) == nil && (gone[of.Unit] || gone[of.Resource])
}

var errToken = errors.New("not a token")

// readToken returns the records that a token names.
func readToken(text string) ([]named, error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) == 0 || raw[0] > packed {
		return nil, errToken
	}
	form, raw := raw[0], raw[1:]
	if form == packed {
		if raw, err = io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(raw)), maxTokenSize)); err != nil {
			return nil, err
		}
	}
	var list []named
	last := named{}
	for len(raw) > 0 {
		var numbers [3]int64
		for i := range numbers {
			value, n := binary.Varint(raw)
			if n <= 0 {
				return nil, errToken
			}
			numbers[i], raw = value, raw[n:]
		}
		if numbers[0] != 0 {
			last = named{kind: last.kind + int(numbers[0])}
		}
		last.id += numbers[1]
		if last.sequence = numbers[2]; last.sequence == 0 {
			last.sequence = deletedSequence
		}
		if last.kind < 0 || last.kind >= len(kinds) || last.id <= 0 || len(list) == maxNamed {
			return nil, errToken
		}
		list = append(list, last)
	}
	return list, nil
}

// Await waits until this replica knows the write that a token names; "" names none. apperr.InvalidParameters if the
// text is not a token, Unavailable if the write does not arrive within 5 s.
func (x *Index) Await(ctx context.Context, text string) error {
	if text == "" {
		return nil
	}
	list, err := readToken(text)
	if err != nil {
		return apperr.Invalid("header."+request.ConsistencyToken, "is not a consistency token")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		var more <-chan struct{}
		if list, more = x.unknown(request.Tenant(ctx), list); len(list) == 0 {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return apperr.New(apperr.Unavailable,
				"the write that the consistency token names has not arrived yet: try again").Because(ctx.Err())
		}
	}
}

// unknown returns the list from the first record on that this replica does not know as the list names it. If there is
// one, more is closed at the next change.
func (x *Index) unknown(tenant string, list []named) (_ []named, more <-chan struct{}) {
	s := &x.grants
	s.mu.Lock()
	defer s.mu.Unlock()
	state := x.engine.Tenant(tenant).State()
	for i, n := range list {
		r := record{tenant, kinds[n.kind], strconv.FormatInt(n.id, 10)}
		if s.recent.sequence(r) >= n.sequence {
			continue
		}
		present := state.Sequence(r.entity, r.id)
		if n.sequence == deletedSequence && present == 0 || n.sequence < deletedSequence && present >= n.sequence {
			continue
		}
		if s.heard == nil {
			s.heard = make(chan struct{})
		}
		return list[i:], s.heard
	}
	return nil, nil
}
