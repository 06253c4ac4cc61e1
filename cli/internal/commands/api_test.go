package commands

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/cli/internal/operations"
)

// TestEveryOperation calls each operation by its id, and looks at what reaches the platform.
func TestEveryOperation(t *testing.T) {
	t.Parallel()
	for _, o := range operations.CompiledIn().All {
		t.Run(o.ID, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"id":"1"}`)
			})
			args, path := []string{"api", o.ID}, o.Path
			for _, parameter := range o.In("path") {
				args = append(args, "4711")
				path = strings.Replace(path, "{"+parameter.Name+"}", "4711", 1)
			}
			for _, parameter := range o.In("query") {
				if parameter.Required {
					args = append(args, "--"+strings.ReplaceAll(parameter.Name, "_", "-"), "x")
				}
			}
			if len(o.Body) > 0 {
				args = append(args, "--data", `{"grant_type":"client_credentials"}`)
			}
			got := p.run(append(args, "--yes")...)
			require.Equal(t, 0, got.code, got.err)
			asked := p.last()
			sent, err := url.Parse(asked.target)
			require.NoError(t, err)
			assert.Equal(t, o.Method+" "+path, asked.method+" "+sent.Path)
			for _, parameter := range o.In("query") {
				assert.Equal(t, parameter.Required, sent.Query().Get(parameter.Name) == "x", parameter.Name)
			}
			keyed := o.Method == http.MethodPost && !o.Momentary
			assert.Equal(t, keyed, asked.header.Get("Idempotency-Key") != "")
			assert.Equal(t, !o.Open, asked.header.Get("Authorization") == "Bearer t0")
			switch {
			case len(o.Body) == 0:
				assert.Empty(t, asked.body)
			case o.TakesJSON():
				assert.JSONEq(t, `{"grant_type":"client_credentials"}`, asked.body)
			default:
				assert.Contains(t, o.Body, asked.header.Get("Content-Type"))
			}
			told := strings.Contains(got.err, "acme @ https://idp.example")
			assert.Equal(t, o.Changes(), told, "a change says where it goes")
		})
	}
}

// TestEveryFlag sets each parameter and member of each operation by its flag.
func TestEveryFlag(t *testing.T) {
	t.Parallel()
	root, _ := Root(newPlay(t, answers{}.serve).terminalOnly(), operations.CompiledIn())
	for _, o := range operations.CompiledIn().All {
		command, _, err := root.Find([]string{"api", o.ID})
		require.NoError(t, err)
		for _, parameter := range slices.Concat(o.In("query"), o.Members) {
			flag := strings.ToLower(strings.ReplaceAll(parameter.Name, "_", "-"))
			place := parameter.In
			if place == "" {
				place = "body"
			}
			found := command.Flags().Lookup(flag) != nil && !slices.Contains(reserved, flag) ||
				command.Flags().Lookup(place+"-"+flag) != nil
			assert.True(t, found, "%s has no flag for %s", o.ID, parameter.Name)
		}
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()
	p := newPlay(t, answers{"PATCH /v1/users/7": `{"id":"7"}`, "POST /v1/users": `{"id":"7"}`}.serve)
	file := filepath.Join(t.TempDir(), "body.json")
	text := `{"email":"a@b.c","sys_ext_props":{"big":12345678901234567890}}`
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	got := p.run("api", "update-user", "7", "--data", "@"+file, "-F", "mobile=null", "-F", "sys_ext_props.team=平台",
		"-F", "sys_ext_props.deep.n=1", "--display_name", "12", "--email-verified")
	require.Equal(t, 0, got.code, got.err)
	assert.Equal(t, `{"display_name":"12","email":"a@b.c","email_verified":true,"mobile":null,`+
		`"sys_ext_props":{"big":12345678901234567890,"deep":{"n":1},"team":"平台"}}`, p.last().body)

	p.input = `{"username":"li.wei"}`
	got = p.run("api", "create-user", "--data", "-", "-F", "employee_number=007")
	require.Equal(t, 0, got.code, got.err)
	assert.Equal(t, `{"employee_number":"007","username":"li.wei"}`, p.last().body, "a string stays one")

	for _, bad := range [][]string{
		{"--data", "{"}, {"--data", "@nowhere"}, {"-F", "novalue"}, {"--email-verified=maybe"}, {"--no-such-flag"},
		{"--data", "[1]", "-F", "a=1"}, {"extra"},
	} {
		got = p.run(append([]string{"api", "update-user", "7"}, bad...)...)
		assert.Equal(t, 2, got.code, "%v: %s", bad, got.err)
		assert.Empty(t, p.asked())
	}
}

func TestByPath(t *testing.T) {
	t.Parallel()
	p := newPlay(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"items":[]}`) })
	require.Equal(t, 0, p.run("api", "get", "/v1/users?keyword=li").code)
	assert.Equal(t, "/v1/users?keyword=li&page_size=200", p.last().target)
	require.Equal(t, 0, p.run("api", "POST", "/v9/newer", "-F", "a=1").code, "the table need not know it")
	assert.JSONEq(t, `{"a":1}`, p.last().body)
	assert.NotEmpty(t, p.last().header.Get("Idempotency-Key"))
	assert.Equal(t, 2, p.run("api", "GET", "https://elsewhere.example/v1/users").code, "a token goes nowhere else")
	assert.Equal(t, 2, p.run("api", "DELETE", "/v1/users/7").code)
	got := p.run("api", "list-user")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.err, "list-users")
}

func TestFromServer(t *testing.T) {
	t.Parallel()
	p := newPlay(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/openapi.json":
			_, _ = io.WriteString(w, `{"id":"1"}`)
		case r.Header.Get("If-None-Match") != "":
			w.WriteHeader(http.StatusNotModified)
		default:
			w.Header().Set("ETag", `"1"`)
			_, _ = io.WriteString(w, `{"paths":{"/v9/pets/{id}":{"get":{"operationId":"get-pet","summary":"Get a pet",
				"security":[{}],"parameters":[{"in":"path","name":"id","schema":{"type":"string"}},
				{"in":"query","name":"name_of","schema":{"type":"string"}}],
				"responses":{"200":{"content":{"application/json":{}}}}}}}}`)
		}
	})
	for range 2 { // the second time from the cache
		got := p.run("api", "--from-server", "get-pet", "7", "--name-of", "x")
		require.Equal(t, 0, got.code, got.err)
		assert.Equal(t, "/v9/pets/7?name_of=x", p.last().target)
	}
	assert.Equal(t, `"1"`, p.asked()[0].header.Get("If-None-Match"))
	assert.Equal(t, 2, p.run("api", "get-pet", "7").code, "this program does not know it")
	p.env["IDPCLI_URL"] = nobody
	assert.Equal(t, 7, p.run("api", "--from-server", "get-pet", "7", "--wait", "0").code)
}

func TestRetriesWithTheSameKey(t *testing.T) {
	t.Parallel()
	first := true
	p := newPlay(t, func(w http.ResponseWriter, _ *http.Request) {
		if first {
			first = false
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, `{"id":"7"}`)
	})
	require.Equal(t, 0, p.run("api", "create-user", "--username", "a", "--idempotency-key", "k1").code)
	require.Len(t, p.asked(), 2)
	for _, one := range p.asked() {
		assert.Equal(t, "k1", one.header.Get("Idempotency-Key"))
	}
}

func FuzzField(f *testing.F) {
	f.Add("a.b=1")
	f.Add("email=null")
	f.Add("..=")
	f.Fuzz(func(t *testing.T, field string) {
		if strings.Contains(field, "=@") {
			t.Skip() // reads files
		}
		body := members{"a": json.RawMessage(`{"b":12345678901234567890}`)}
		if body.set(nil, field, false) == nil {
			_, err := json.Marshal(body)
			require.NoError(t, err)
		}
	})
}
