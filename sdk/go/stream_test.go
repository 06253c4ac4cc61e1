package idp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStream(t *testing.T) {
	t.Parallel()
	p, client := start(t, Config{}, func(w http.ResponseWriter, _ *http.Request, number int) {
		switch number {
		case 1:
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			_, _ = io.WriteString(w, ": stream\n\nid: c1\nevent: idp.user.created\ndata: {\"id\":\"e1\"}\n\nid: c2\n\n")
			w.(http.Flusher).Flush()
			lose(w)
		case 2:
			refuse(w, http.StatusServiceUnavailable, CodeUnavailable)
		case 3:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "id: c3\ndata: {\"id\":\ndata: \"e3\"}\n\nid: c4\ndata: {\"id\":\"half")
		default:
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"code":"invalid_state","status":409,
				"detail":"events after this cursor are no longer kept","next":"x.9"}`)
		}
	})
	var seen []string
	var breaks int
	var failed error
	for event, err := range client.StreamEvents(t.Context(), ListEventsParams{Types: "user.*"},
		OnBreak(func(error) { breaks++ })) {
		if failed = err; err == nil {
			seen = append(seen, event.Cursor+" "+event.Type+" "+event.Item.ID)
		}
	}
	assert.Equal(t, []string{"c1 idp.user.created e1", "c3  e3"}, seen, "what breaks off is no event")
	assert.Equal(t, 2, breaks)
	problem, ok := errors.AsType[*Problem](failed)
	require.True(t, ok, "%v", failed)
	assert.Equal(t, "x.9", problem.Next, "a gap says where the feed can go on")
	require.Len(t, p.asked(), 4)
	var after []string
	for _, one := range p.asked() {
		assert.Equal(t, "text/event-stream", one.header.Get("Accept"))
		after = append(after, one.header.Get("Last-Event-Id"))
	}
	assert.Equal(t, []string{"", "c2", "c2", "c3"}, after, "it goes on after the last place that it was told")
}

func TestStreamRefused(t *testing.T) {
	t.Parallel()
	p, client := start(t, Config{}, func(w http.ResponseWriter, _ *http.Request, number int) {
		if number == 1 {
			refuse(w, http.StatusForbidden, CodeForbidden)
			return
		}
		answerJSON(w, `{}`)
	})
	for _, want := range []string{
		"403 forbidden: because", "/v1/events: the answer is application/json, not an event stream",
	} {
		var got error
		for _, err := range client.StreamEvents(t.Context(), ListEventsParams{}) {
			got = err
		}
		assert.EqualError(t, got, want)
	}
	assert.Len(t, p.asked(), 2)
}

func TestStreamEndsWithTheCaller(t *testing.T) {
	t.Parallel()
	_, client := start(t, Config{}, func(w http.ResponseWriter, r *http.Request, _ int) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := 0; r.Context().Err() == nil; i++ {
			fmt.Fprintf(w, "id: %d\ndata: {}\n\n", i)
			w.(http.Flusher).Flush()
		}
	})
	var last string
	for event, err := range client.Events(t.Context(), Request{Method: http.MethodGet, Path: "/v1/events"}) {
		require.NoError(t, err)
		if last = event.Cursor; last == "3" {
			break
		}
	}
	assert.Equal(t, "3", last)
}

func parseEvents(text string) (got []string, err error) {
	lines := eventLines{reader: strings.NewReader(text), heard: func() {}}
	for e, failed := range lines.events() {
		if err = failed; err == nil {
			got = append(got, fmt.Sprintf("%s/%s/%q", e.id, e.name, e.data))
		}
	}
	return got, err
}

func TestEventLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                                    nil,
		": comment\n\n\n":                     nil,
		"data: a\ndata:b\n\n":                 {`//"a\nb"`},
		"\ufeffdata: a\r\n\r\n":               {`//"a"`},
		"data: a\r\rdata: b\r\r":              {`//"a"`, `//"b"`},
		"id: 1\n\ndata: x\n\n":                {`1//""`, `1//"x"`},
		"id: 1\nid: 2\x00\ndata: x\n\n":       {`1//"x"`},
		"event: e\nretry: 5\ndata\n\n":        {`/e/""`},
		"data: never ended":                   nil,
		"data: a\n\nevent: only\n\ndata: b\n": {`//"a"`, `/only/""`},
	} {
		got, err := parseEvents(text)
		require.NoError(t, err)
		assert.Equal(t, want, got, "%q", text)
	}
	_, err := parseEvents("data: " + strings.Repeat("x", maxStreamLine) + "\n\n")
	assert.Error(t, err, "a line has a bound")
}

func FuzzEventLines(f *testing.F) {
	f.Add("id: 1\nevent: e\ndata: {\"a\":1}\n\n: beat\n\n")
	f.Add("data: a\r\rdata: b\r\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseEvents(text)
		if err != nil {
			t.Skip()
		}
		again, err := parseEvents(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"))
		require.NoError(t, err)
		assert.Equal(t, got, again, "all ends of lines mean the same")
	})
}

func FuzzProblem(f *testing.F) {
	f.Add([]byte(`{"code":"invalid_state","next":"x.9"}`))
	f.Add([]byte(`{"error":"invalid_scope","error_description":"no"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		p := parseProblem(body)
		assert.NotNil(t, p)
		assert.True(t, p.Body == nil || json.Valid(p.Body))
		_ = p.Error()
	})
}

func FuzzSigningKey(f *testing.F) {
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"))
	f.Add([]byte(`{"kty":"OKP","crv":"Ed25519","d":"AA","x":"AA"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		key, err := ParseSigningKey(text)
		assert.Equal(t, err == nil, key != nil)
	})
}
