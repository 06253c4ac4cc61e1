// Package post tells applications something from server to server, by forms or by SOAP. What is to be told is stored in
// the transaction in which it happens (package work), so that none is lost, and sent until the application answers:
// five times within an hour. A tenant whose applications are slow to answer does not delay the others.
package post

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/outbound"
	"github.com/idplatform/idplatform/pkg/work"
)

// pauses are how long to wait after each attempt without an answer. After the last one the notice is given up.
var pauses = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 39 * time.Minute}

const (
	patience = 5 * time.Second // with an application that does not answer
	atEnd    = 2 * time.Second // for requests that are on their way when the process ends
	maxBody  = 32 << 10        // bytes of an answer that are read
)

// places are for the notices that are on their way from one replica.
var places = fair.Limits{Most: 32, OfTenant: 8}

// Noun names a notice in errors.
const Noun = "notice of a logout"

// ErrNobody says that nobody has to hear of it, or not any more.
var ErrNobody = errors.New("nobody has to hear of it")

// Config is how notices of a kind are sent. All is required.
type Config[T any] struct {
	Store   *docstore.Store
	HTTP    *http.Client // for requests that leave the platform
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Name    string // of the work, such as "send logout tokens"
	Notices *docstore.Collection[T]
	AppID   func(*T) string
	// Message is where a notice goes, and what it says. After ErrNobody it is not sent; after other errors there is
	// another attempt.
	Message func(ctx context.Context, n *T) (Message, error)
}

// Work is the configuration of a queue that sends the notices.
func (c Config[T]) Work() work.Config[T] {
	return work.Config[T]{
		Name: c.Name, Items: c.Notices, Store: c.Store, Log: c.Log, Metrics: c.Metrics, Places: places,
		Time: 2 * patience, Grace: atEnd,
		Attempts: int64(len(pauses)) + 1, Pause: func(attempt int64) time.Duration { return pauses[attempt-1] },
		Do: func(ctx context.Context, n *T) work.Outcome {
			answered, err := c.send(ctx, n)
			if err != nil {
				err = fmt.Errorf("the application %s: %w", c.AppID(n), outbound.Cause(err))
			}
			switch {
			case err == nil:
				return work.Done()
			case answered:
				return work.GiveUp(err)
			default:
				return work.Retry(err)
			}
		},
	}
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

// send sends a notice once. answered is true if the application has answered, or has nothing to hear.
func (c Config[T]) send(ctx context.Context, n *T) (answered bool, err error) {
	m, err := c.Message(ctx, n)
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
	answer, err := c.HTTP.Do(r)
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
