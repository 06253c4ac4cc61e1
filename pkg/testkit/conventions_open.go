package testkit

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
)

// formType is rest.FormType, as clients write it.
const formType = "application/x-www-form-urlencoded"

// openOperations: an operation that needs no credential is open to everybody, whatever credential or tenant is sent,
// and has the same limits as all others.
func openOperations(t *testing.T, s *Service, r Resource) {
	found := map[string]bool{}
	for _, o := range s.operations() {
		if !o.open() {
			continue
		}
		found[o.OperationID] = true
		if o.documents("200", request.EventStreamType) {
			continue // its answer has no end: see eventStreams
		}
		body, contentType := o.exampleBody()
		ask := func(c *Client) *Answer { return c.With("Content-Type", contentType).Do(o.Method, o.url(), body) }
		for name, c := range map[string]*Client{
			"a stranger": s.Stranger(), "another's tenant": s.Stranger().With("X-Tenant-Id", "Not A Tenant"),
			"a token without scopes": s.As("acme"),
		} {
			answer := ask(c)
			assert.NotEqual(t, http.StatusForbidden, answer.Status, "%s with %s", o.OperationID, name)
			if !slices.Contains(r.OwnTokens, o.OperationID) {
				assert.NotContains(t, answer.Header.Get("WWW-Authenticate"), "Bearer", "%s with %s", o.OperationID,
					name)
			}
		}
		ask(s.Stranger().With("X-Payload-Origin", strings.Repeat("x", 4097))).refused(o, http.StatusBadRequest)
		c := s.Stranger().With("Content-Type", contentType)
		c.Do(o.Method, o.url()+"?x=%zz", body).refused(o, http.StatusBadRequest)
	}
	for _, id := range r.Open {
		assert.True(t, found[id], "%s is not an open operation", id)
	}
}

// exampleBody is the operation's example of a request, in the form that the operation reads.
func (o operation) exampleBody() (body, contentType string) {
	if o.RequestBody == nil {
		return "", ""
	}
	for contentType, media := range o.RequestBody.Content {
		if contentType == formType {
			return o.form(media.Example).Encode(), contentType
		}
		return string(media.Example), contentType
	}
	return "", ""
}

// form makes a form from an example's members.
func (o operation) form(example json.RawMessage) url.Values {
	members := map[string]string{}
	_ = json.Unmarshal(example, &members) // documented reports a missing example
	values := url.Values{}
	for name, text := range members {
		values.Set(name, text)
	}
	return values
}

// refused fails the test unless the answer is a refusal in the form of the operation's errors.
func (a *Answer) refused(o operation, status int) {
	a.t.Helper()
	switch {
	case o.Page:
		a.Page(status)
		return
	case o.oauth():
		a.oauthError(status)
		return
	}
	a.refusal(o, status, map[int]string{
		http.StatusBadRequest:            "invalid_parameters",
		http.StatusUnsupportedMediaType:  "unsupported_media_type",
		http.StatusRequestEntityTooLarge: "too_large",
	}[status])
}

// forms: what every operation with a form body refuses, without repeating values, and what it ignores.
func forms(t *testing.T, s *Service) {
	const value = "do-not-echo-me"
	for _, o := range s.operations() {
		if o.RequestBody == nil || o.RequestBody.Content[formType].Schema == nil {
			continue
		}
		example := o.RequestBody.Content[formType].Example
		require.NotEmpty(t, example, "%s has no example of a request", o.OperationID)
		for _, status := range []string{"413", "415"} {
			assert.Contains(t, o.Responses, status, o.OperationID)
		}
		c := s.As("acme", auth.PlatformAdmin)
		if o.open() {
			c = s.Stranger()
		}
		send := func(contentType, body string) *Answer {
			answer := c.With("Content-Type", contentType).Do(o.Method, o.url(), body)
			assert.NotContains(t, string(answer.Body), value, o.OperationID)
			return answer
		}
		good := o.form(example)
		for _, contentType := range []string{"application/json", "text/plain", "multipart/form-data; boundary=x", " "} {
			send(contentType, good.Encode()).refused(o, http.StatusUnsupportedMediaType)
		}
		send(formType, "x=%zz").refused(o, http.StatusBadRequest)
		send(formType, "x="+strings.Repeat("x", 64<<10)).refused(o, http.StatusRequestEntityTooLarge)
		for name := range good {
			send(formType, good.Encode()+"&"+url.Values{name: {value}}.Encode()).refused(o, http.StatusBadRequest)
			faulty := o.form(example)
			faulty.Set(name, value)
			send(formType, faulty.Encode())
		}
		plain, more := send(formType, good.Encode()), send(formType+"; charset=utf-8", good.Encode()+"&unknown="+value)
		assert.Equal(t, plain.Status, more.Status, "%s: an unknown parameter is ignored", o.OperationID)
	}
}

// secrets: a sealed member is shown as a mask everywhere, and a mask that is sent back keeps the value.
func secrets(t *testing.T, s *Service, r Resource) {
	if len(r.Sealed) == 0 {
		return
	}
	encoded, err := json.Marshal(r.Body(1))
	require.NoError(t, err)
	var sent map[string]any
	require.NoError(t, json.Unmarshal(encoded, &sent))
	c := r.editor(s, "acme")
	answer := c.Post(r.Collection, sent)
	record := answer.Object()
	path := r.Collection + "/" + record["id"].(string)
	shown := [][]byte{answer.Body, c.Get(path).OK(nil).Body, c.Get(r.list("")).OK(nil).Body}
	same := c.Patch(path, record)
	assert.Equal(t, record, same.Object(), "a mask is not a change")
	s.EventsUntil(func(e stream.Event) bool {
		shown = append(shown, e.Data)
		return e.Subject == record["id"]
	})
	for _, name := range r.Sealed {
		value, _ := sent[name].(string)
		require.NotEmpty(t, value, "Body has no text in %s", name)
		assert.Equal(t, "******", record[name])
		for _, body := range shown {
			assert.NotContains(t, string(body), value, name)
		}
	}
}
