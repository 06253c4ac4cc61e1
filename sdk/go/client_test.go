package idp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oapi-codegen/nullable"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// platform is a server of a test that notes what it is asked.
type platform struct {
	mu     sync.Mutex
	list   []asked
	paused []time.Duration // what the client waited, without waiting
	url    string
}

type asked struct {
	method, target, body string
	header               http.Header
}

// start starts a server, and returns a client of it. number, from 1, counts the requests.
func start(
	t *testing.T, config Config, answer func(w http.ResponseWriter, r *http.Request, number int),
) (*platform, *Client) {
	t.Helper()
	p := &platform{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		p.list = append(p.list, asked{r.Method, r.URL.RequestURI(), string(body), r.Header.Clone()})
		number := len(p.list)
		p.mu.Unlock()
		answer(w, r, number)
	}))
	t.Cleanup(server.Close)
	p.url = server.URL
	config.URL, config.HTTP = server.URL, server.Client()
	client, err := New(config)
	require.NoError(t, err)
	client.sleep = func(ctx context.Context, d time.Duration) error {
		p.paused = append(p.paused, d)
		return ctx.Err()
	}
	return p, client
}

// asked returns what the server was asked so far.
func (p *platform) asked() []asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.list)
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "code": code, "detail": "because"})
}

// lose ends the connection without an answer.
func lose(http.ResponseWriter) { panic(http.ErrAbortHandler) }

func answerJSON(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, body)
}

func TestCall(t *testing.T) {
	t.Parallel()
	p, client := start(t, Config{Tokens: StaticToken("t0"), Tenant: "acme"},
		func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Etag", `"3"`)
			answerJSON(w, `{"id":"1048577","free_ext_props":{"big":12345678901234567890},"locked_until":null}`)
		})
	var header http.Header
	user, err := client.UpdateUser(t.Context(), "a/b", UserPatch{
		Email: nullable.NewNullNullable[string](), DisplayName: nullable.NewNullableWithValue("李伟"),
	}, IfVersion(2), DryRun(), AnswerHeader(&header))
	require.NoError(t, err)
	assert.Equal(t, "1048577", user.ID)
	assert.JSONEq(t, `{"big":12345678901234567890}`, string(user.FreeExtProps), "large integers survive")
	assert.Contains(t, string(user.FreeExtProps), "12345678901234567890")
	assert.Nil(t, user.LockedUntil)
	assert.Equal(t, `"3"`, header.Get("Etag"))

	got := p.asked()[0]
	assert.Equal(t, "PATCH /v1/users/a%2Fb?dry_run=true", got.method+" "+got.target)
	assert.JSONEq(t, `{"email":null,"display_name":"李伟"}`, got.body, "absent members are not sent")
	assert.Equal(t, `"2"`, got.header.Get("If-Match"))
	assert.Equal(t, "Bearer t0", got.header.Get("Authorization"))
	assert.Equal(t, "acme", got.header.Get("X-Tenant-Id"))
	assert.Empty(t, got.header.Get("Idempotency-Key"), "a PATCH has no key")
}

func TestQuery(t *testing.T) {
	t.Parallel()
	p, client := start(t, Config{}, func(w http.ResponseWriter, _ *http.Request, _ int) { answerJSON(w, `{}`) })
	_, err := client.ListUsers(t.Context(), ListUsersParams{Keyword: "李 &", PageSize: 50, Locked: new(false)})
	require.NoError(t, err)
	assert.Equal(t, "/v1/users?keyword=%E6%9D%8E+%26&locked=false&page_size=50", p.asked()[0].target)
	_, err = client.RefreshSecrets(t.Context(), "7", RefreshSecretsParams{GraceSeconds: new(int64(0))})
	require.NoError(t, err)
	assert.Equal(t, "/v1/applications/7/secrets?grace_seconds=0", p.asked()[1].target, "0 is not absent")
}

func TestProblem(t *testing.T) {
	t.Parallel()
	_, client := start(t, Config{}, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"type":"urn:idp:problem:in_use","title":"In use","status":409,"code":"in_use",
			"detail":"it is in use","errors":[{"location":"rules","message":"2 rules","count":2}],"request_id":"r1"}`)
	})
	err := client.AddAuthUnitNothing(t.Context())
	var problem *Problem
	require.ErrorAs(t, err, &problem)
	assert.Equal(t, Fault{"rules", "2 rules", 2}, problem.Errors[0])
	assert.Equal(t, "r1", problem.RequestID)
	assert.NotEmpty(t, problem.Key)
	assert.Equal(t, "409 in_use: it is in use; rules 2 rules", err.Error())
	assert.Equal(t, CodeInUse, CodeOf(err))
	assert.Empty(t, CodeOf(errors.New("another")))
}

// AddAuthUnitNothing is any POST without a body.
func (c *Client) AddAuthUnitNothing(ctx context.Context) error {
	return c.do(ctx, Request{Method: http.MethodPost, Path: "/v1/x"}, nil)
}

func TestProblemOfSomebodyElse(t *testing.T) {
	t.Parallel()
	_, client := start(t, Config{}, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<html>")
	})
	_, err := client.GetUser(t.Context(), "1")
	assert.Equal(t, CodeNotFound, CodeOf(err))
	assert.NotContains(t, err.Error(), "html")
}

func TestNotModified(t *testing.T) {
	t.Parallel()
	_, client := start(t, Config{}, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.WriteHeader(http.StatusNotModified)
	})
	_, err := client.GetUser(t.Context(), "1", IfNoneMatch(`"3"`))
	require.ErrorIs(t, err, ErrNotModified)
	_, err = client.GetAvatar(t.Context(), "1", GetAvatarParams{}, IfNoneMatch(`"3"`))
	require.ErrorIs(t, err, ErrNotModified)
}

func TestDownloadAndUpload(t *testing.T) {
	t.Parallel()
	p, client := start(t, Config{}, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		_, _ = io.WriteString(w, `{"username":"li.wei"}`+"\n"+`{"username":"wang.fang"}`+"\n")
	})
	answer, err := client.ImportUsers(t.Context(), ImportUsersParams{OnConflict: "update"},
		strings.NewReader("username\nli.wei\n"), "text/csv")
	require.NoError(t, err)
	defer answer.Close()
	assert.Equal(t, "application/x-ndjson", answer.ContentType)
	var names []string
	for user, err := range Lines[User](answer) {
		require.NoError(t, err)
		names = append(names, user.Username)
	}
	assert.Equal(t, []string{"li.wei", "wang.fang"}, names)
	assert.Equal(t, "username\nli.wei\n", p.asked()[0].body)
	assert.Equal(t, "text/csv", p.asked()[0].header.Get("Content-Type"))
	assert.NotEmpty(t, p.asked()[0].header.Get("Idempotency-Key"))
}

func TestPages(t *testing.T) {
	t.Parallel()
	p, client := start(t, Config{}, func(w http.ResponseWriter, _ *http.Request, number int) {
		switch number {
		case 1:
			answerJSON(w, `{"items":[{"id":"1"},{"id":"2"}],"next_page_token":"p2"}`)
		case 2:
			answerJSON(w, `{"items":[{"id":"3"}],"next_page_token":"p3"}`)
		default:
			refuse(w, http.StatusForbidden, CodeForbidden)
		}
	})
	var ids []string
	var failed error
	for user, err := range client.ListAllUsers(t.Context(), ListUsersParams{Status: "1"}) {
		if failed = err; err == nil {
			ids = append(ids, user.ID)
		}
	}
	assert.Equal(t, []string{"1", "2", "3"}, ids)
	assert.Equal(t, CodeForbidden, CodeOf(failed), "an error ends the walk")
	assert.Equal(t, "/v1/users?count=false&page_size=200&status=1", p.asked()[0].target)
	assert.Equal(t, "/v1/users?count=false&page_size=200&page_token=p2&status=1", p.asked()[1].target)

	for range client.ListAllUsers(t.Context(), ListUsersParams{PageToken: "p9", PageSize: 5, Count: new(true)}) {
		break
	}
	assert.Equal(t, "/v1/users?count=true&page_size=5&page_token=p9", p.asked()[3].target)
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "idp.example", "ftp://idp.example", "https://u:p@idp.example", "http://a?b", ":"} {
		_, err := New(Config{URL: bad})
		assert.Error(t, err, bad)
	}
	client, err := New(Config{URL: "https://idp.example/base/"})
	require.NoError(t, err)
	assert.Equal(t, "https://idp.example/base", client.base.String())
}

// TestEnumerations: the values of a record are texts, which bodies of requests take as they are.
func TestEnumerations(t *testing.T) {
	t.Parallel()
	job := SubJob{State: SubJobStateTimedOut}
	assert.Equal(t, "timed_out", job.State)
	body, err := json.Marshal(ReplaceAuthUnitRuleBody{Type: AuthRuleTypeResSet, ResourceMatchAllActions: new(On)})
	require.NoError(t, err)
	assert.Contains(t, string(body), `"resource_match_all_actions":"1","type":"res_set"`)
}
