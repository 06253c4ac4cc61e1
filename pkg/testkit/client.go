package testkit

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/problem"
)

// Client calls a service with one credential.
type Client struct {
	t       testing.TB
	handler http.Handler
	header  http.Header
}

// As returns a client of a tenant with the scopes.
func (s *Service) As(tenant string, scopes ...auth.Scope) *Client {
	return &Client{s.t, s.Handler, http.Header{"Authorization": {"Bearer " + s.Token(tenant, scopes...)}}}
}

// Stranger returns a client without a credential.
func (s *Service) Stranger() *Client { return &Client{s.t, s.Handler, http.Header{}} }

// With returns a client that also sends a header; an empty value removes one.
func (c *Client) With(name, value string) *Client {
	header := maps.Clone(c.header)
	if value == "" {
		delete(header, http.CanonicalHeaderKey(name))
	} else {
		header[http.CanonicalHeaderKey(name)] = []string{value}
	}
	return &Client{c.t, c.handler, header}
}

// Answer is a response.
type Answer struct {
	t      testing.TB
	Status int
	Header http.Header
	Body   []byte
}

// Do sends a request. A body that is an io.Reader, a string or bytes is sent as it is, any other as JSON. A JSON body
// has its content type unless the client sets one.
func (c *Client) Do(method, path string, body any) *Answer {
	c.t.Helper()
	var reader io.Reader
	contentType := "application/json"
	switch b := body.(type) {
	case nil:
		contentType = ""
	case io.Reader:
		reader, contentType = b, ""
	case string:
		reader = strings.NewReader(b)
	case []byte:
		reader = bytes.NewReader(b)
	default:
		encoded, err := json.Marshal(b)
		require.NoError(c.t, err)
		reader = bytes.NewReader(encoded)
	}
	r := httptest.NewRequest(method, path, reader)
	maps.Copy(r.Header, c.header)
	if contentType != "" && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", contentType)
	}
	return send(c.t, c.handler, r)
}

// Send sends a request unchanged, without a credential of its own.
func (s *Service) Send(r *http.Request) *Answer { return send(s.t, s.Handler, r) }

func send(t testing.TB, handler http.Handler, r *http.Request) *Answer {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return &Answer{t, w.Code, w.Header(), w.Body.Bytes()}
}

// Get sends a GET.
func (c *Client) Get(path string) *Answer { c.t.Helper(); return c.Do(http.MethodGet, path, nil) }

// Post sends a POST; see Do.
func (c *Client) Post(path string, body any) *Answer {
	c.t.Helper()
	return c.Do(http.MethodPost, path, body)
}

// Patch sends a PATCH; see Do.
func (c *Client) Patch(path string, body any) *Answer {
	c.t.Helper()
	return c.Do(http.MethodPatch, path, body)
}

// Delete sends a DELETE; see Do.
func (c *Client) Delete(path string, body any) *Answer {
	c.t.Helper()
	return c.Do(http.MethodDelete, path, body)
}

// OK fails the test unless the answer is a 200 with JSON. It decodes the body into into, which may be nil.
func (a *Answer) OK(into any) *Answer {
	a.t.Helper()
	require.Equal(a.t, http.StatusOK, a.Status, "%s", a.Body)
	if into != nil {
		require.NoError(a.t, json.Unmarshal(a.Body, into), "%s", a.Body)
	}
	return a
}

// Object returns the body of OK as a map.
func (a *Answer) Object() map[string]any {
	a.t.Helper()
	var object map[string]any
	a.OK(&object)
	return object
}

// ID returns the member id of OK's body.
func (a *Answer) ID() string {
	a.t.Helper()
	id, _ := a.Object()["id"].(string)
	require.NotEmpty(a.t, id, "%s", a.Body)
	return id
}

// oauthFault is the body of an OAuth error (RFC 6749 §5.2).
type oauthFault struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

var (
	oauthCode        = regexp.MustCompile(`^[\x20-\x21\x23-\x5b\x5d-\x7e]+$`)
	oauthDescription = regexp.MustCompile(`^[\x20-\x21\x23-\x5b\x5d-\x7e]*$`)
)

// OAuthError fails the test unless the answer is an OAuth error with this status and code, in the form of RFC 6749
// §5.2, which caches must not store.
func (a *Answer) OAuthError(status int, code string) {
	a.t.Helper()
	require.Equal(a.t, code, a.oauthError(status).Error, "%s", a.Body)
}

func (a *Answer) oauthError(status int) (fault oauthFault) {
	a.t.Helper()
	require.Equal(a.t, status, a.Status, "%s", a.Body)
	require.Equal(a.t, "application/json; charset=utf-8", a.Header.Get("Content-Type"))
	require.Equal(a.t, "no-store", a.Header.Get("Cache-Control"))
	require.Equal(a.t, "no-cache", a.Header.Get("Pragma"))
	dec := json.NewDecoder(bytes.NewReader(a.Body))
	dec.DisallowUnknownFields()
	require.NoError(a.t, dec.Decode(&fault), "%s", a.Body)
	require.Regexp(a.t, oauthCode, fault.Error)
	require.Regexp(a.t, oauthDescription, fault.Description)
	return fault
}

// Problem fails the test unless the answer is a complete and consistent problem document with this status and code,
// whose faults are at exactly these locations.
func (a *Answer) Problem(status int, code string, locations ...string) problem.Document {
	a.t.Helper()
	require.Equal(a.t, status, a.Status, "%s", a.Body)
	require.Equal(a.t, problem.ContentType, a.Header.Get("Content-Type"))
	var doc problem.Document
	dec := json.NewDecoder(bytes.NewReader(a.Body))
	dec.DisallowUnknownFields()
	require.NoError(a.t, dec.Decode(&doc), "%s", a.Body)
	require.Equal(a.t, code, doc.Code, "%s", a.Body)
	require.Equal(a.t, "urn:idp:problem:"+code, doc.Type)
	require.Equal(a.t, status, doc.Status)
	require.NotEmpty(a.t, doc.Title)
	require.NotEmpty(a.t, doc.Detail)
	require.Equal(a.t, a.Header.Get("X-Request-Id"), doc.RequestID)
	require.NotEmpty(a.t, doc.RequestID)
	if code == "in_use" {
		require.NotEmpty(a.t, doc.Errors, "it says what refers to the record")
		for _, fault := range doc.Errors {
			require.Positive(a.t, fault.Count, "%s", a.Body)
			require.NotEmpty(a.t, fault.Location)
		}
	}
	if len(locations) > 0 {
		var found []string
		for _, fault := range doc.Errors {
			require.NotEmpty(a.t, fault.Message)
			found = append(found, fault.Location)
		}
		require.ElementsMatch(a.t, locations, found, "%s", a.Body)
	}
	return doc
}

// Items returns the members with the name in the records of a list.
func (c *Client) Items(url, member string) []any {
	c.t.Helper()
	values := []any{}
	for _, item := range c.Get(url).Object()["items"].([]any) {
		values = append(values, item.(map[string]any)[member])
	}
	return values
}
