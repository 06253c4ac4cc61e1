package rest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/change"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/problem"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
)

// keepAnswers is how long an answer is kept. The record of a request that has not ended by spare after its operation's
// time-out is deleted; its key is free much earlier: see hold.
const (
	keepAnswers = 24 * time.Hour
	spare       = 5 * time.Second
)

// savedAnswer is the record of the first request with a key. Its id is a hash of caller and key. The answer is sealed,
// because it may hold a secret that is shown only once.
type savedAnswer struct {
	docstore.Meta
	Print  string     `json:"print"`          // fingerprint of the request, while it runs; see sealedAnswer
	Run    string     `json:"run"`            // identifies the run that holds the lease
	Sealed string     `json:"sealed"`         // the answer; "" while the request runs
	Until  clock.Time `json:"expires"`        // end of keeping the record, then the answer
	Lease  clock.Time `json:"lease,omitzero"` // until when it holds the key at first

	// Change is what the request asks another service for, if its outcome may be unknown: see change.Key.
	Change string `json:"change,omitempty"`
}

// sealedAnswer is what is sealed. The request's fingerprint is with it, because a password in the request could be
// guessed by it.
type sealedAnswer struct {
	answer
	Print string `json:"print"`
}

var savedAnswers = docstore.Define(docstore.Schema[savedAnswer]{
	Name: "idempotency", Noun: "answer", NoIfMatch: true,
	Due: func(a *savedAnswer) clock.Time { return a.Until },
})

// readRequest reads the body and the Idempotency-Key, and computes the request's fingerprint if there is a key. The
// fingerprint does not include a body that the operation does not read.
func (s *Server) readRequest(
	ctx context.Context, op *Op, call *call, w http.ResponseWriter, r *http.Request,
) error {
	var body []byte
	switch {
	case op.jsonBody != absent:
		var err error
		if body, err = s.readBody(ctx, op, call, w, r); err != nil {
			return err
		}
		if !call.plain {
			s.validate(op, call, body)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	case op.form != nil:
		if err := readForm(op, call, w, r); err != nil {
			return err
		}
	case len(op.Consumes) > 0 && !op.Streams:
		r.Body = newSteadyBody(w, r.Body, op.Timeout)
	}
	keys := r.Header.Values("Idempotency-Key")
	byTicket := !op.needsCredential(r)
	if !op.hasKey() || byTicket && op.CallbackTenant == nil || op.Streams || len(keys) == 0 {
		return nil
	}
	if err := CheckIdempotencyKey(keys); err != nil {
		return err
	}
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s %s\n", r.Method, r.URL.RequestURI())
	_, _ = h.Write(body)
	call.key = keys[0]
	if byTicket {
		call.ticket = r.Header.Get(op.CallbackToken)
	}
	h.Sum(call.print[:0])
	return nil
}

// hasKey reports whether the operation honours an Idempotency-Key. Open operations do not: their callers cannot be told
// apart.
func (op *Op) hasKey() bool { return op.Method == http.MethodPost && !op.open() && !op.NoReplay }

// CheckIdempotencyKey refuses all values but one key of 1…255 printable ASCII characters.
func CheckIdempotencyKey(keys []string) error {
	ok := len(keys) == 1 && keys[0] != "" && len(keys[0]) <= 255
	for i := 0; ok && i < len(keys[0]); i++ {
		ok = keys[0][i] >= ' ' && keys[0][i] <= '~'
	}
	if !ok {
		return apperr.Invalid("header.Idempotency-Key", "must be one key of 1…255 printable ASCII characters")
	}
	return nil
}

// KeyOf combines an Idempotency-Key with its caller: the same key of another caller gives another text. The issuer is
// part of it, because two issuers may use the same subject for different people; so are the scopes, because an answer
// may have more in it than a token with fewer scopes may see.
func KeyOf(ctx context.Context, key string) string {
	caller := auth.PrincipalFrom(ctx)
	return hashOf(request.Tenant(ctx), caller.Issuer, caller.Subject, caller.Scopes.String(), key)
}

func hashOf(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// withIdempotency runs a request at most once for each key. The first answer is stored in the transaction that makes
// the change. A repeated request, to any replica and even after a crash, gets that answer and changes nothing.
func (s *Server) withIdempotency(ctx context.Context, op *Op, call *call, h http.Header,
	run func(context.Context) (answer, error)) (answer, error) {
	info := request.From(ctx)
	claim := savedAnswer{Print: hex.EncodeToString(call.print[:]), Run: request.NewID()}
	if call.ticket == "" {
		claim.ID = KeyOf(ctx, call.key)
	} else {
		claim.ID = hashOf(request.Tenant(ctx), "ticket", call.ticket, call.key)
	}

	held, err := s.claim(ctx, claim, op.Timeout+spare)
	if err != nil {
		return answer{}, err
	}
	if held.Sealed != "" {
		first, err := s.unseal(claim.ID, held.Sealed)
		if err != nil {
			return answer{}, err
		}
		if first.Print != "" && first.Print != claim.Print {
			return answer{}, errKeyReused
		}
		h.Set("Idempotent-Replayed", "true")
		return first.answer, nil
	}

	defer s.renewLease(ctx, claim)()
	ended := false
	defer func() {
		if !ended { // run panicked
			_ = s.finishFailed(ctx, op, claim, info.ID, errPanic)
		}
	}()
	ctx = change.WithKey(ctx, held.Change, func(ctx context.Context, tx *docstore.Tx, change string) error {
		return s.storeChange(ctx, tx, claim, change)
	})
	var kept *answer
	a, err := run(docstore.OnCommit(ctx, func(ctx context.Context, tx *docstore.Tx, result any) error {
		early, err := answerOf(jsonForm(result))
		if err != nil {
			return err
		}
		early.Token = call.token
		kept = &early
		return s.storeAnswer(ctx, tx, claim, early)
	}))
	ended = true
	a.Token = call.token
	switch {
	case err != nil:
		return a, errors.Join(err, s.finishFailed(ctx, op, claim, info.ID, err))
	case kept != nil && bytes.Equal(bytes.TrimSpace(kept.Body), bytes.TrimSpace(a.Body)) && kept.ETag == a.ETag:
		return a, nil
	case kept != nil && s.cfg.Strict:
		panic(fmt.Sprintf("%s: the transaction's result is not the answer: %s, %s", op.ID, kept.Body, a.Body))
	}
	return a, s.finish(ctx, func(ctx context.Context, tx *docstore.Tx) error {
		return s.storeAnswer(ctx, tx, claim,
			a)
	})
}

// finish records the outcome of a run, even if the request's time is up.
func (s *Server) finish(ctx context.Context, write func(context.Context, *docstore.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), spare)
	defer cancel()
	return docstore.Do(ctx, s.cfg.Store, func(tx *docstore.Tx) error { return write(ctx, tx) })
}

// finishFailed ends a run that failed. Its error is kept as the answer or, if a repeated request may succeed, the key
// becomes free again. What was committed before the failure stays, and so does the answer that was stored with it.
func (s *Server) finishFailed(ctx context.Context, op *Op, claim savedAnswer, requestID string, failure error) error {
	return s.finish(ctx, func(ctx context.Context, tx *docstore.Tx) error {
		held, err := savedAnswers.Load(ctx, tx, claim.ID)
		if apperr.IsNotFound(err) {
			return nil
		}
		if err != nil || held.Run != claim.Run || held.Sealed != "" {
			return err
		}
		if temporary(failure) {
			return forgetAnswer(ctx, tx, held)
		}
		refusal := newRefusal(failure, requestID)
		contentType, document := problem.ContentType, any(refusal.Document)
		if op.SCIM != nil {
			contentType, document = SCIMType, op.SCIM(refusal.Status, failure)
		}
		body, err := json.Marshal(document)
		if err != nil {
			return err
		}
		return s.storeAnswer(ctx, tx, claim, answer{Status: refusal.Status, ContentType: contentType, Body: body})
	})
}

// jsonForm encodes a result; a stored document is its own JSON form.
func jsonForm(result any) any {
	if doc, ok := result.(interface {
		Stored() (json []byte, tag string, err error)
	}); ok {
		if body, tag, err := doc.Stored(); err == nil {
			return Record[struct{}]{body, tag}
		}
	}
	return result
}

// temporary reports failures that do not depend on the request: repeated, it may succeed.
func temporary(err error) bool {
	switch apperr.KindOf(err) {
	case apperr.Internal, apperr.OutcomeUnknown, apperr.Unavailable, apperr.RateLimited, apperr.Forbidden,
		apperr.Unauthenticated:
		return true
	}
	return false
}

var errKeyReused = apperr.New(apperr.IdempotencyKeyReused, "the key was used with another request")

// forgetAnswer ends a run whose key others may take. It deletes the record, unless the next run must know its change.
func forgetAnswer(ctx context.Context, tx *docstore.Tx, held *savedAnswer) (err error) {
	if held.Change == "" {
		_, err = savedAnswers.Delete(ctx, tx, held)
		return err
	}
	held.Run, held.Lease = "", clock.Time{}
	_, err = savedAnswers.Replace(ctx, tx, held)
	return err
}

// claim takes the key for this run and returns its record, or that of the answer that is already stored.
func (s *Server) claim(ctx context.Context, claim savedAnswer, atMost time.Duration) (savedAnswer, error) {
	record, err := docstore.Write(ctx, s.cfg.Store, func(tx *docstore.Tx) (none savedAnswer, _ error) {
		claim := claim
		claim.Until, claim.Lease = tx.Now.Add(atMost), tx.Now.Add(lease)
		old, err := savedAnswers.Load(ctx, tx, claim.ID)
		if apperr.IsNotFound(err) {
			_, err = savedAnswers.Insert(ctx, tx, &claim)
			return claim, err
		}
		if err != nil {
			return none, err
		}
		free, err := isFree(ctx, tx, old)
		if err != nil {
			return none, err
		}
		if free {
			if claim.Meta = old.Meta; old.Print == claim.Print {
				claim.Change = old.Change
			}
			_, err = savedAnswers.Replace(ctx, tx, &claim)
			return claim, err
		}
		if old.Print != "" && old.Print != claim.Print {
			return none, errKeyReused
		}
		if old.Sealed == "" {
			return none, apperr.New(apperr.RequestInProgress, "the first request with this key is still running")
		}
		return *old, nil
	})
	if _, ok := errors.AsType[*docstore.DuplicateError](err); ok { // another replica inserted it after the load
		return s.claim(ctx, claim, atMost)
	}
	return record, err
}

// storeAnswer stores the answer in the transaction that it reports. If another run has taken over the lease, the
// transaction fails and changes nothing.
func (s *Server) storeAnswer(ctx context.Context, tx *docstore.Tx, claim savedAnswer, a answer) error {
	held, err := heldBy(ctx, tx, claim)
	if err != nil {
		return err
	}
	plain, err := json.Marshal(sealedAnswer{a, claim.Print})
	if err != nil {
		return err
	}
	held.Sealed, held.Print = s.cfg.Keys.Seal(plain, []byte(claim.ID)), ""
	held.Change, held.Until = "", tx.Now.Add(keepAnswers)
	_, err = savedAnswers.Replace(ctx, tx, held)
	return err
}

// storeChange stores the change that a run is about to ask another service for. As in keep, the run must hold the key.
func (s *Server) storeChange(ctx context.Context, tx *docstore.Tx, claim savedAnswer, change string) error {
	held, err := heldBy(ctx, tx, claim)
	if err != nil {
		return err
	}
	held.Change, held.Until = change, tx.Now.Add(keepAnswers)
	_, err = savedAnswers.Replace(ctx, tx, held)
	return err
}

// heldBy loads the record of a key that a run still holds.
func heldBy(ctx context.Context, tx *docstore.Tx, claim savedAnswer) (*savedAnswer, error) {
	held, err := savedAnswers.Load(ctx, tx, claim.ID)
	if err != nil && !apperr.IsNotFound(err) {
		return nil, err
	}
	if held == nil || held.Run != claim.Run {
		return nil, apperr.New(apperr.RequestInProgress, "another request with this key has taken over")
	}
	return held, nil
}

func (s *Server) unseal(id, sealed string) (sealedAnswer, error) {
	var a sealedAnswer
	plain, err := s.cfg.Keys.Open(sealed, []byte(id))
	if err == nil {
		err = json.Unmarshal(plain, &a)
	}
	return a, err
}

// DueAnswers lists at most limit answers whose 24 hours, or whose request's lease, are over; those of all tenants.
func DueAnswers(ctx context.Context, store *docstore.Store, limit int) ([]docstore.Ref, error) {
	return savedAnswers.Due(ctx, store, limit)
}

// ForgetAnswer deletes an answer that DueAnswers listed. The error is apperr.NotFound if there is none.
func ForgetAnswer(ctx context.Context, store *docstore.Store, id string) error {
	return docstore.Do(ctx, store, func(tx *docstore.Tx) error {
		a, err := savedAnswers.Load(ctx, tx, id)
		if err != nil || a.Until.After(tx.Now) {
			return err
		}
		_, err = savedAnswers.Delete(ctx, tx, a)
		return err
	})
}

// ResealAnswers seals all stored answers again that are not sealed under the first key, and returns their number.
// Answers whose key is not configured any more cannot be opened; they are deleted when their time is over.
func ResealAnswers(ctx context.Context, store *docstore.Store, keys *secret.Keyring) (n int, err error) {
	err = savedAnswers.EachTenant(ctx, store, func(ctx context.Context) error {
		return savedAnswers.Each(ctx, store, docstore.Filter{}, func(doc docstore.Doc[savedAnswer]) error {
			sealed, err := resealAnswer(ctx, store, keys, doc.ID)
			if sealed {
				n++
			}
			if apperr.IsNotFound(err) || errors.Is(err, secret.ErrOpen) {
				return nil
			}
			return err
		})
	})
	return n, err
}

func resealAnswer(ctx context.Context, store *docstore.Store, keys *secret.Keyring, id string) (sealed bool, _ error) {
	return docstore.Write(ctx, store, func(tx *docstore.Tx) (bool, error) {
		a, err := savedAnswers.Load(ctx, tx, id)
		if err != nil || a.Sealed == "" || !keys.NeedsReseal(a.Sealed) {
			return false, err
		}
		plain, err := keys.Open(a.Sealed, []byte(id))
		if err != nil {
			return false, err
		}
		a.Sealed = keys.Seal(plain, []byte(id))
		_, err = savedAnswers.Replace(ctx, tx, a)
		return true, err
	})
}
