package index

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/permissions/internal/grant"
)

// TokenHeader is the header in which the answer to a write names the write, and a check names a write to wait for.
const TokenHeader = "X-Consistency-Token"

// patience is how long a check waits for the write that its token names.
const patience = 5 * time.Second

// token names a write by the last record that it has changed.
type token struct {
	Entity   string `json:"e"`
	ID       string `json:"i"`
	Sequence int64  `json:"s"` // deletedSequence if it has deleted the record
}

func tokenOf(c grant.Change) string {
	t := token{c.Entity, c.ID, c.Sequence}
	if c.Deleted {
		t.Sequence = deletedSequence
	}
	text, _ := json.Marshal(t) // texts and numbers always marshal
	return base64.RawURLEncoding.EncodeToString(text)
}

// Await waits until this replica knows the write that a token names; "" names none. apperr.InvalidParameters if the
// text is not a token, Unavailable if the write does not arrive within 5 s.
func (x *Index) Await(ctx context.Context, text string) error {
	if text == "" {
		return nil
	}
	var t token
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &t)
	}
	if err != nil || t.Entity == "" || t.ID == "" {
		return apperr.Invalid("header."+TokenHeader, "is not a consistency token")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		known, more := x.knows(request.Tenant(ctx), t)
		if known {
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

// knows reports whether this replica knows a write. If not, more is closed at the next change.
func (x *Index) knows(tenant string, t token) (known bool, more <-chan struct{}) {
	s := &x.grants
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recent.sequence(record{tenant, t.Entity, t.ID}) >= t.Sequence {
		return true, nil
	}
	present := x.engine.Tenant(tenant).State().Sequence(t.Entity, t.ID)
	if t.Sequence == deletedSequence && present == 0 || t.Sequence < deletedSequence && present >= t.Sequence {
		return true, nil
	}
	if s.heard == nil {
		s.heard = make(chan struct{})
	}
	return false, s.heard
}

// recent remembers the sequences of the records that changed last, for tokens that name records deleted since.
type recent struct {
	sequences map[record]int64
	order     []record // a ring, in the order of first changes
	next      int      // the place of the next record in a full ring
}

// remembered is how many records recent has at most.
const remembered = 10_000

func (r *recent) sequence(of record) int64 { return r.sequences[of] }

func (r *recent) note(of record, sequence int64) {
	if _, ok := r.sequences[of]; !ok {
		if r.sequences == nil {
			r.sequences = map[record]int64{}
		}
		if len(r.order) < remembered {
			r.order = append(r.order, of)
		} else {
			delete(r.sequences, r.order[r.next])
			r.order[r.next] = of
			r.next = (r.next + 1) % remembered
		}
	}
	r.sequences[of] = max(sequence, r.sequences[of])
}

// headerKey is the key of the answer's header in the context of a request that may write.
type headerKey struct{}

// TellTokens lets Apply set the consistency token in the answers to writes.
func TellTokens(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), headerKey{}, w.Header())))
	})
}

// tell sets the token in the answer to the request that made a change.
func tell(ctx context.Context, c grant.Change) {
	if header, ok := ctx.Value(headerKey{}).(http.Header); ok {
		header.Set(TokenHeader, tokenOf(c))
	}
}
