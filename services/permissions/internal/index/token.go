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

// TokenHeader is the header by which an answer names its write and a check asks for one to be taken into account.
const TokenHeader = "X-Consistency-Token"

// patience is how long a check waits for the write of its token.
const patience = 5 * time.Second

// token names the last record that a write has changed.
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

// Await waits until this replica has a write. apperr.InvalidParameters if the text is not a token, Unavailable if the
// write does not arrive in time.
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
		return apperr.Invalid("header."+TokenHeader, "is no consistency token")
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
				"the write of the consistency token has not arrived here yet").Because(ctx.Err())
		}
	}
}

// knows tells whether a write is taken into account; if not, more is closed when something has changed.
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

// recent remembers the last records that changed, for tokens of records that are deleted since.
type recent struct {
	sequences map[record]int64
	order     []record
	next      int
}

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

type sinkKey struct{}

// TellTokens sets the consistency token in the answers of writes.
func TellTokens(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			next.ServeHTTP(w, r)
			return
		}
		// Apply sets the header before the operation answers.
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), sinkKey{}, w.Header())))
	})
}

// tell puts a token into the answer of the request that made a change.
func tell(ctx context.Context, c grant.Change) {
	if header, ok := ctx.Value(sinkKey{}).(http.Header); ok {
		header.Set(TokenHeader, tokenOf(c))
	}
}
