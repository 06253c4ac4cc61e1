package idp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	firstPause   = 200 * time.Millisecond
	longestPause = 5 * time.Second
	maxAnswer    = 64 << 20 // bytes of an answer that is read whole
)

var (
	errTooLong = errors.New("the answer is longer than 64 MiB")
	errNotJSON = errors.New("the answer is not JSON: something between here and the platform may have made it")
)

// slowError tells how long an answer was waited for. It is a DeadlineExceeded, so the request is not sent again.
type slowError time.Duration

func (e slowError) Error() string        { return fmt.Sprintf("it took longer than %v", time.Duration(e)) }
func (e slowError) Is(target error) bool { return target == context.DeadlineExceeded }

// Do sends a request, and again where that is safe: after a refusal with 429 or 503, which changed nothing; after a
// lost connection or 502, if it only reads or has an Idempotency-Key; after 401 with a fresh token. It returns the
// answer, whose status is 2xx or 304, or an error: *Problem, *LostError, or that of the token source or the context.
func (c *Client) Do(ctx context.Context, r Request, options ...Option) (*http.Response, error) {
	r.Header = r.Header.Clone()
	for _, option := range options {
		option(&r)
	}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	if r.Method == http.MethodPost && !r.Momentary && r.Header.Get("Idempotency-Key") == "" {
		r.Header.Set("Idempotency-Key", rand.Text())
	}
	s := sending{client: c, request: r, left: max(0, c.config.MaxWait)}
	s.content, s.length = rereadable(r.Body)
	for s.tries = 1; ; s.tries++ {
		response, err := s.once(ctx)
		if err == nil {
			if r.answerHeader != nil {
				*r.answerHeader = response.Header
			}
			return response, nil
		}
		if pause, again := s.again(err); !again || c.sleep(ctx, pause) != nil {
			return nil, err
		}
	}
}

// sending is a request that is sent until it is answered.
type sending struct {
	client  *Client
	request Request
	content io.ReaderAt // the body, if it can be read again
	length  int64       // of content
	tries   int
	left    time.Duration // that it may still wait
	fresh   bool          // the token has been replaced
	after   time.Duration // what the last answer asked to wait
}

// once sends the request one time.
func (s *sending) once(ctx context.Context) (*http.Response, error) {
	r := s.request
	target, err := url.Parse(s.client.base.String() + r.Path)
	if err != nil {
		return nil, err
	}
	target.RawQuery = r.Query.Encode()
	var sent atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	})
	var body io.Reader
	switch {
	case s.content != nil: // a reader for each try: net/http may still read that of the one before
		body = io.NewSectionReader(s.content, 0, s.length)
	case r.Body != nil:
		body = io.NopCloser(r.Body) // so that net/http does not close it
	}
	request, err := http.NewRequestWithContext(traced, r.Method, target.String(), body)
	if err != nil {
		return nil, err
	}
	request.Header = r.Header.Clone()
	s.after = 0
	s.setLength(request)
	if err := s.setHeader(ctx, request); err != nil {
		return nil, err
	}
	response, err := s.exchange(request)
	key := request.Header.Get("Idempotency-Key")
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err // without the URL, whose query may be private
		}
		return nil, &LostError{r.Method, r.Path, sent.Load() && !s.reads(), key, err}
	}
	if response.StatusCode < 300 || response.StatusCode == http.StatusNotModified {
		return response, nil
	}
	defer response.Body.Close()
	s.after = retryAfter(response.Header.Get("Retry-After"))
	return nil, readProblem(response, key)
}

// exchange sends the request and reads the answer: its header, if the caller streams it, else all of it. The time limit
// is for that; a streamed change, such as an import, has none.
func (s *sending) exchange(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	if limit := s.client.config.Timeout; limit > 0 && (!s.request.stream || s.reads()) {
		slow := time.AfterFunc(limit, func() { cancel(slowError(limit)) })
		defer slow.Stop()
	}
	response, err := s.client.config.HTTP.Do(request.WithContext(ctx))
	if err != nil {
		defer cancel(nil)
	} else {
		response.Body = &ending{response.Body, cancel}
	}
	if err == nil && response.StatusCode < 300 && !s.request.stream {
		err = readWhole(response)
	}
	if slow, ok := errors.AsType[slowError](context.Cause(ctx)); ok && err != nil {
		err = slow
	}
	return response, err
}

// ending is a body whose end frees the context of its request.
type ending struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (e *ending) Close() error {
	defer e.cancel(nil)
	return e.ReadCloser.Close()
}

// setLength tells net/http the length of a body of whose type it knows none.
func (s *sending) setLength(request *http.Request) {
	if s.content == nil {
		return
	}
	if request.ContentLength = s.length; s.length == 0 {
		request.Body = http.NoBody
	}
}

func (s *sending) setHeader(ctx context.Context, request *http.Request) error {
	config, r, h := s.client.config, s.request, request.Header
	if r.ContentType != "" {
		h.Set("Content-Type", r.ContentType)
	}
	if config.Tenant != "" && h.Get("X-Tenant-Id") == "" {
		h.Set("X-Tenant-Id", config.Tenant)
	}
	if h.Get("User-Agent") == "" {
		h.Set("User-Agent", config.UserAgent)
	}
	if r.Open || config.Tokens == nil || h.Get("Authorization") != "" {
		return nil
	}
	token, err := config.Tokens.Token(ctx)
	if err != nil {
		return err
	}
	h.Set("Authorization", "Bearer "+token)
	return nil
}

// readWhole replaces the body by what comes of it.
func readWhole(response *http.Response) error {
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return err
	}
	if len(body) > maxAnswer {
		return errTooLong
	}
	if response.Request.Method != http.MethodHead && !json.Valid(body) {
		return errNotJSON
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// reads reports whether the request changes nothing.
func (s *sending) reads() bool {
	return s.request.Method == http.MethodGet || s.request.Method == http.MethodHead || s.request.Momentary
}

// repeatable reports whether a request that may have been done can be sent again without doing it twice.
func (s *sending) repeatable() bool {
	return s.reads() || s.request.Header.Get("Idempotency-Key") != ""
}

// again decides whether the request is sent again after an error, and how long to wait before.
func (s *sending) again(err error) (time.Duration, bool) {
	attempts := s.client.config.Attempts
	last := s.tries >= attempts && (s.after == 0 || attempts == 1)
	if last || s.request.Body != nil && s.content == nil {
		return 0, false
	}
	wanted := pause(s.tries)
	if lost, ok := errors.AsType[*LostError](err); ok {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errTooLong) ||
			lost.MayBeDone && !s.repeatable() {
			return 0, false
		}
		return s.take(wanted)
	}
	problem, ok := errors.AsType[*Problem](err)
	if !ok {
		return 0, false // of the token source
	}
	switch code := problem.Code; {
	case problem.Status == http.StatusUnauthorized:
		return 0, s.replaceToken()
	case code == CodeRateLimited, code == CodeUnavailable && (problem.Body != nil || s.repeatable()):
		return s.take(max(wanted, s.after))
	case code == CodeOutcomeUnknown && s.repeatable(), code == CodeRequestInProgress && s.tries > 1:
		return s.take(max(wanted, s.after))
	}
	return 0, false
}

// take reports whether there is that much time left to wait.
func (s *sending) take(wait time.Duration) (time.Duration, bool) {
	if wait > s.left {
		return 0, false
	}
	s.left -= wait
	return wait, true
}

// replaceToken makes the next try ask for another token, once.
func (s *sending) replaceToken() bool {
	source, ok := s.client.config.Tokens.(interface{ Forget() })
	if s.fresh || !ok || s.request.Open {
		return false
	}
	source.Forget()
	s.fresh = true
	return true
}

// rereadable returns a body that can be read again from its start, and its length. It is nil for others, such as pipes.
func rereadable(body io.Reader) (io.ReaderAt, int64) {
	content, ok := body.(io.ReaderAt)
	seeker, seeks := body.(io.Seeker)
	if !ok || !seeks {
		return nil, 0
	}
	length, err := seeker.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, 0
	}
	return content, length
}

// pause is how long to wait after that many tries: longer each time, and not the same for all clients.
func pause(tries int) time.Duration {
	longest := min(firstPause<<min(tries-1, bits.Len64(uint64(longestPause/firstPause))), longestPause)
	return longest/2 + mathrand.N(longest/2)
}

// retryAfter reads the header Retry-After: seconds, or a date.
func retryAfter(header string) time.Duration {
	header = strings.TrimSpace(header)
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
