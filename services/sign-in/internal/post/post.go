// Package post tells applications something from server to server, by forms or by SOAP. What is to be told is stored in
// the transaction in which it happens, so that none is lost, and sent until the application answers: five times within
// an hour. A tenant whose applications are slow to answer does not delay the others.
package post

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/outbound"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/service"
)

// pauses are how long to wait after each try without an answer. After the last one the notice is given up.
var pauses = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 39 * time.Minute}

const (
	patience = 5 * time.Second // with an application that does not answer
	atEnd    = 2 * time.Second // for requests that are on their way at the end
	atOnce   = 32              // notices on their way from one replica
	share    = 8               // of these those of one tenant
	others   = 16              // tenants that are looked at beside those whose notices have been due for longest
	maxBody  = 32 << 10        // bytes of an answer that are read
)

// Stored is what every stored notice embeds.
type Stored struct {
	docstore.Meta
	Tries int        `json:"tries"`
	Next  clock.Time `json:"next"` // when it is sent, or sent again
}

// New is of a notice that is sent at once.
func New(now clock.Time) Stored {
	return Stored{Meta: docstore.Meta{ID: secret.Token(16)}, Next: now}
}

func (s *Stored) stored() *Stored { return s }

// notice is a pointer to a stored notice.
type notice[T any] interface {
	*T
	stored() *Stored
}

const byNext = "next"

// Define defines a collection of notices.
func Define[T any, N notice[T]](name string) *docstore.Collection[T] {
	next := func(n *T) clock.Time { return N(n).stored().Next }
	return docstore.Define(docstore.Schema[T]{
		Name: name, Noun: "notice of a logout", Due: next,
		Indexes: []docstore.Index[T]{
			docstore.ByNumber(byNext, func(n *T) docstore.Value { return docstore.Moment(next(n)) }),
		},
	})
}

// ErrNobody says that nobody has to hear of it, or not any more.
var ErrNobody = errors.New("nobody has to hear of it")

// Config is how notices of a kind are sent. All is required.
type Config[T any] struct {
	Store   *docstore.Store
	HTTP    *http.Client // for requests that leave the platform
	Log     *slog.Logger
	Name    string // of the work, such as "send logout tokens"
	Notices *docstore.Collection[T]
	AppID   func(*T) string
	// Message is where a notice goes, and what it says. After ErrNobody it is not sent; after other errors it is tried
	// again.
	Message func(ctx context.Context, n *T) (Message, error)
}

// Message is what an application is sent.
type Message struct {
	To   string
	Form url.Values
	SOAP []byte // an envelope that is sent instead of a form; nil for none
	// Check reads the body of a good answer; nil: it says nothing. An error is logged.
	Check func(body []byte) error
}

func (m Message) request(ctx context.Context) (*http.Request, error) {
	body, contentType := m.Form.Encode(), "application/x-www-form-urlencoded"
	if m.SOAP != nil {
		body, contentType = string(m.SOAP), "text/xml; charset=utf-8"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.To, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", contentType)
	if m.SOAP != nil {
		r.Header.Set("SOAPAction", soapAction)
	}
	return r, nil
}

// soapAction is the header of SAML's SOAP binding (SAML bindings §3.2.3).
const soapAction = "http://www.oasis-open.org/committees/security"

// Sender sends the notices of a kind, for one replica.
type Sender[T any, N notice[T]] struct {
	Config[T]
	turns   fair.RoundRobin[T]
	calls   *fair.InFlight
	sending sync.WaitGroup
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
}

// NewSender makes a sender.
func NewSender[T any, N notice[T]](c Config[T]) *Sender[T, N] {
	places := fair.Limits{Most: atOnce, OfTenant: share}
	s := &Sender[T, N]{Config: c, calls: fair.NewInFlight(places, places)}
	s.turns = fair.RoundRobin[T]{Of: c.Notices, By: byNext, Group: 1, Others: others, InFlight: s.calls}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close waits a moment for the requests that are on their way, and then ends them: their notices are sent again later.
func (s *Sender[T, N]) Close() {
	late := time.AfterFunc(atEnd, s.cancel)
	s.sending.Wait()
	late.Stop()
	s.cancel()
}

// Work sends the notices that are due.
func (s *Sender[T, N]) Work() service.DueWork {
	return service.DueWork{Name: s.Name, Every: time.Second, Due: s.due, Page: atOnce, Do: s.begin}
}

// due lists notices that are due, as many as there are places for. If there are only others, it waits a moment for one.
func (s *Sender[T, N]) due(ctx context.Context, store *docstore.Store, limit int) ([]docstore.Ref, error) {
	late := time.NewTimer(time.Second)
	defer late.Stop()
	for {
		groups, err := s.turns.List(ctx, store, limit)
		if err != nil || len(groups) == 0 {
			return nil, err
		}
		if next := s.withPlace(slices.Concat(groups...)); len(next) > 0 {
			return next, nil
		}
		select {
		case <-s.calls.Ended:
		case <-late.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *Sender[T, N]) withPlace(refs []docstore.Ref) (some []docstore.Ref) {
	taken := map[string]int{}
	for _, ref := range refs {
		if s.calls.Count()+len(some) < atOnce && s.calls.CountOf(ref.Tenant)+taken[ref.Tenant] < share &&
			!s.calls.Has(ref) {
			some = append(some, ref)
			taken[ref.Tenant]++
		}
	}
	return some
}

// begin takes a notice, so that no other replica sends it, and sends it beside the others.
func (s *Sender[T, N]) begin(ctx context.Context, id string) error {
	n, err := docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (N, error) {
		n, err := s.Notices.Load(ctx, tx, id)
		if err != nil || N(n).stored().Next.After(tx.Now) {
			return nil, err
		}
		stored := N(n).stored()
		if stored.Tries > len(pauses) {
			_, err := s.Notices.Delete(ctx, tx, n)
			return nil, err
		}
		stored.Next = tx.Now.Add(pauses[min(stored.Tries, len(pauses)-1)])
		stored.Tries++
		_, err = s.Notices.Touch(ctx, tx, n)
		return n, err
	})
	if err != nil || n == nil {
		return err
	}
	sendCtx, cancel := context.WithCancel(request.System(s.ctx, n.stored().TenantID))
	ref := docstore.Ref{Tenant: n.stored().TenantID, ID: id}
	if !s.calls.Add(ref, cancel) {
		cancel()
		return nil // it is due again later
	}
	s.sending.Go(func() {
		defer s.calls.End(ref)
		s.send(sendCtx, n)
	})
	return nil
}

// send sends a notice, and deletes it once it is answered or given up.
func (s *Sender[T, N]) send(ctx context.Context, n N) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	answered, err := s.try(ctx, n)
	app, stored := s.AppID(n), n.stored()
	if err != nil {
		s.Log.WarnContext(ctx, "an application does not take a notice", "work", s.Name, "app_id", app, "try",
			stored.Tries, "error", outbound.Cause(err))
	}
	if !answered && stored.Tries <= len(pauses) {
		return
	}
	err = docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		n, err := s.Notices.Load(ctx, tx, stored.ID)
		if err == nil {
			_, err = s.Notices.Delete(ctx, tx, n)
		}
		return err
	})
	if err != nil && !apperr.IsNotFound(err) {
		s.Log.WarnContext(ctx, "a notice may be sent once more", "work", s.Name, "app_id", app, "error", err)
	}
}

// try sends a notice once. answered is true if the application has answered, or has nothing to hear.
func (s *Sender[T, N]) try(ctx context.Context, n N) (answered bool, err error) {
	m, err := s.Message(ctx, n)
	if errors.Is(err, ErrNobody) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := m.request(ctx)
	if err != nil {
		return true, err
	}
	answer, err := s.HTTP.Do(r)
	if err != nil {
		return errors.Is(err, outbound.ErrRefused), err // no later try may go there either
	}
	defer func() { _ = answer.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(answer.Body, maxBody)) // what is cut off is not well-formed
	switch status := answer.StatusCode; {
	case status < http.StatusMultipleChoices && m.Check != nil:
		return true, m.Check(body)
	case status < http.StatusBadRequest: // applications lead on to a page of theirs after a logout
		return true, nil
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		return false, errors.New("status " + answer.Status)
	default:
		return true, errors.New("status " + answer.Status)
	}
}
