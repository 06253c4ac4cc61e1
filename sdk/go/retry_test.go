package idp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRetry(t *testing.T) {
	t.Parallel()
	read := Request{Method: http.MethodGet, Path: "/v1/x"}
	post := Request{Method: http.MethodPost, Path: "/v1/x", ContentType: "application/json"}
	patch := Request{Method: http.MethodPatch, Path: "/v1/x"}
	refused := func(status int, code string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { refuse(w, status, code) }
	}
	bare := func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }
	inProgress := refused(http.StatusConflict, CodeRequestInProgress)
	later := func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "7")
		refuse(w, http.StatusServiceUnavailable, CodeUnavailable)
	}
	for name, c := range map[string]struct {
		request Request
		answers []func(http.ResponseWriter) // before one that is right
		sent    int
		code    string // of the end; "" if it is right
		lost    bool
		unknown bool // whether the change may be done
	}{
		"lost read":         {read, list(lose, lose), 3, "", false, false},
		"lost POST":         {post, list(lose), 2, "", false, false},
		"lost PATCH":        {patch, list(lose), 1, "", true, true},
		"lost for good":     {read, list(lose, lose, lose, lose), 4, "", true, false},
		"unavailable PATCH": {patch, list(later), 2, "", false, false},
		"too many":          {post, list(refused(429, CodeRateLimited)), 2, "", false, false},
		"outcome unknown":   {post, list(refused(502, CodeOutcomeUnknown)), 2, "", false, false},
		"unknown of PATCH":  {patch, list(refused(502, CodeOutcomeUnknown)), 1, CodeOutcomeUnknown, false, false},
		"a proxy's 503":     {patch, list(bare), 1, CodeUnavailable, false, false},
		"still running":     {post, list(lose, inProgress), 3, "", false, false},
		"running elsewhere": {post, list(inProgress), 1, CodeRequestInProgress, false, false},
		"refused":           {post, list(refused(400, CodeInvalidParameters)), 1, CodeInvalidParameters, false, false},
		"internal":          {read, list(refused(500, CodeInternal)), 1, CodeInternal, false, false},
		"never available":   {read, list(later, later, later, later, later), 5, CodeUnavailable, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, client := start(t, Config{}, func(w http.ResponseWriter, _ *http.Request, number int) {
				if number <= len(c.answers) {
					c.answers[number-1](w)
					return
				}
				answerJSON(w, `{}`)
			})
			if c.request.Method == http.MethodPost {
				c.request.Body = strings.NewReader(`{"a":1}`)
			}
			response, err := client.Do(t.Context(), c.request)
			lost, isLost := errors.AsType[*LostError](err)
			assert.Len(t, p.asked(), c.sent)
			assert.Equal(t, c.code, CodeOf(err))
			require.Equal(t, c.lost, isLost, "%v", err)
			if isLost {
				assert.Equal(t, c.unknown, lost.MayBeDone)
				assert.NotContains(t, err.Error(), "127.0.0.1")
			}
			if err == nil {
				require.NoError(t, response.Body.Close())
			}
			for _, one := range p.asked() {
				assert.Equal(t, p.asked()[0], one, "the same is sent again, with the same key")
				assert.Equal(t, c.request.Method == http.MethodPost, one.header.Get("Idempotency-Key") != "")
			}
			assert.Len(t, p.paused, c.sent-1)
		})
	}
}

func list(answers ...func(http.ResponseWriter)) []func(http.ResponseWriter) { return answers }

func TestRetryAfterIsBounded(t *testing.T) {
	t.Parallel()
	p, client := start(t, Config{MaxWait: 10 * time.Second}, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Retry-After", "7")
		refuse(w, http.StatusTooManyRequests, CodeRateLimited)
	})
	_, err := client.GetUser(t.Context(), "1")
	assert.Equal(t, CodeRateLimited, CodeOf(err))
	assert.Equal(t, []time.Duration{7 * time.Second}, p.paused, "twice would be longer than MaxWait")
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	client, err := New(Config{URL: "http://127.0.0.1:1", MaxWait: -1})
	require.NoError(t, err)
	err = client.AddAuthUnitNothing(t.Context())
	lost, ok := errors.AsType[*LostError](err)
	require.True(t, ok, "%v", err)
	assert.False(t, lost.MayBeDone, "no connection, so nothing was sent")
}

func TestUnreadableAnswerOfStream(t *testing.T) {
	t.Parallel()
	p, client := start(t, Config{}, func(w http.ResponseWriter, _ *http.Request, number int) {
		if number == 1 {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"id":`)
			return
		}
		answerJSON(w, `{"id":"1"}`)
	})
	user, err := client.GetUser(t.Context(), "1")
	require.NoError(t, err, "an answer that breaks off is lost, too")
	assert.Equal(t, "1", user.ID)
	assert.Len(t, p.asked(), 2)
}

func TestBodyThatCannotBeSentAgain(t *testing.T) {
	t.Parallel()
	p, client := start(t, Config{}, func(w http.ResponseWriter, _ *http.Request, _ int) { lose(w) })
	body := io.MultiReader(strings.NewReader("a"))
	_, err := client.ImportUsers(t.Context(), ImportUsersParams{}, body, "text/csv", IdempotencyKey("k"))
	lost, ok := errors.AsType[*LostError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, "k", lost.Key)
	assert.True(t, lost.MayBeDone)
	assert.Len(t, p.asked(), 1)
}

// TestSlow waits for an answer that does not begin, and for one that does not end.
func TestSlow(t *testing.T) {
	t.Parallel()
	for _, begun := range []string{"", `{"id":`} {
		synctest.Test(t, func(t *testing.T) {
			over := make(chan struct{})
			connections := make(pipes)
			asked := 0
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				asked++
				_, _ = io.WriteString(w, begun)
				w.(http.Flusher).Flush()
				<-over
			})}
			go func() { _ = server.Serve(connections) }()
			transport := &http.Transport{DialContext: connections.dial}
			client, err := New(Config{URL: "http://platform.test", Timeout: time.Minute,
				HTTP: &http.Client{Transport: transport}})
			require.NoError(t, err)
			_, err = client.GetUser(t.Context(), "1")
			require.ErrorContains(t, err, "it took longer than 1m0s")
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			_, err = client.CreateUser(t.Context(), NewUser{Username: "a"})
			lost, ok := errors.AsType[*LostError](err)
			require.True(t, ok, "%v", err)
			assert.True(t, lost.MayBeDone)
			assert.Equal(t, 2, asked, "what is slow is not asked again")
			close(over)
			transport.CloseIdleConnections()
			require.NoError(t, server.Close())
		})
	}
}

// pipes are connections in memory, on which testing/synctest can wait.
type pipes chan net.Conn

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	p <- there
	return here, nil
}

func (p pipes) Accept() (net.Conn, error) {
	if conn, open := <-p; open {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "pipe"} }

// TestNotThePlatform answers as things between a client and the platform do.
func TestNotThePlatform(t *testing.T) {
	t.Parallel()
	p, client := start(t, Config{}, func(w http.ResponseWriter, r *http.Request, number int) {
		switch {
		case r.URL.Path == "/v1/users" && r.Method == http.MethodPost:
			http.Redirect(w, r, "https://elsewhere.example/login?secret=1", http.StatusFound)
		case number == 1:
			_, _ = io.WriteString(w, "<html>Please sign in</html>")
		default:
			answerJSON(w, `{"id":"1"}`)
		}
	})
	user, err := client.GetUser(t.Context(), "1")
	require.NoError(t, err, "a page is no answer, so the request is repeated")
	assert.Equal(t, "1", user.ID)
	before := len(p.asked())
	_, err = client.CreateUser(t.Context(), NewUser{Username: "a"})
	problem, ok := errors.AsType[*Problem](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, http.StatusFound, problem.Status, "a change does not become a GET")
	assert.Equal(t, "the address has moved to https://elsewhere.example", problem.Detail)
	assert.Len(t, p.asked(), before+1)
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	p, client := start(t, Config{}, func(w http.ResponseWriter, _ *http.Request, _ int) {
		cancel()
		lose(w)
	})
	_, err := client.GetUser(ctx, "1")
	require.Error(t, err)
	assert.Len(t, p.asked(), 1)
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 3*time.Second, retryAfter(" 3 "))
	assert.Zero(t, retryAfter("soon"))
	assert.Zero(t, retryAfter("Wed, 21 Oct 2015 07:28:00 GMT"))
	assert.Positive(t, retryAfter("Wed, 21 Oct 2099 07:28:00 GMT"))
}

func TestPause(t *testing.T) {
	t.Parallel()
	for tries := 1; tries < 100; tries++ {
		got := pause(tries)
		assert.GreaterOrEqual(t, got, firstPause/2)
		assert.LessOrEqual(t, got, longestPause)
	}
}
