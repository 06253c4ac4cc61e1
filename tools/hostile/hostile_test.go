package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const small = `{"paths":{"/v1/users":{"post":{"operationId":"create-user","requestBody":{"content":{"application/json":{
	"example":{"username":"li","email":"li@acme.test","url":"https://hr.acme.test/x","host":"ldap.acme.test"},
	"schema":{"$ref":"#/components/schemas/User"}}}}}},
	"/v1/users/{id}":{"get":{"operationId":"get-user","parameters":[{"name":"id","in":"path"}]}}},
	"components":{"schemas":{"User":{"type":"object","properties":{"password":{"type":"string","writeOnly":true}}}}}}`

func against(t *testing.T, answer http.HandlerFunc) *attack {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	a := newAttack(server.URL, "token", 7)
	require.NoError(t, a.read([]byte(small)))
	return a
}

func kinds(a *attack) map[string]bool {
	found := map[string]bool{}
	for _, f := range a.faults {
		found[f.what] = true
	}
	return found
}

func TestEachFaultIsFound(t *testing.T) {
	t.Parallel()
	problem := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
		}
	}
	for what, answer := range map[string]http.HandlerFunc{
		"5xx":                     problem(503, `{}`),
		"another tenant's record": problem(200, `{"name":"x-hzvmark0"}`),
		"a secret":                problem(200, `{"password":"A1.hzsmark9x"}`),
		"repeats what it refuses": problem(400, `{"detail":"hzqmark4x is wrong"}`),
		"a trace of the program":  problem(400, `{"detail":"goroutine 7 [running]"}`),
		"not JSON": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no", http.StatusNotFound)
		},
		"acts for another tenant": problem(200, `{}`),
		"no answer":               func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		a := against(t, answer)
		a.fire(t.Context(), 400, 2)
		require.True(t, kinds(a)[what], "%s: %v", what, a.faults)
	}
}

func TestNothingIsFoundInGoodAnswers(t *testing.T) {
	t.Parallel()
	a := against(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("X-Tenant-Id") != "" {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = w.Write([]byte(`{"id":"7"}`))
	})
	a.fire(t.Context(), 400, 2)
	require.Empty(t, a.faults)
	require.NotEmpty(t, a.own["/v1/users"])
	require.Zero(t, a.report())
}

func TestPlacesMayNameWhatIsRefused(t *testing.T) {
	t.Parallel()
	const place = `{"detail":"body.config.hzqmark4 is missing","errors":[{"location":"body.config.hzqmark4",` +
		`"message":"is missing"}]}`
	require.NotContains(t, withoutPlaces([]byte(place)), refusedMark)
	require.Contains(t, withoutPlaces([]byte(strings.Replace(place, "is missing", "is not hzqmark4", 1))), refusedMark)
	require.Contains(t, withoutPlaces([]byte(`hzqmark4`)), refusedMark)
}

// The same seed makes the same requests.
func TestSeeds(t *testing.T) {
	t.Parallel()
	text := func() string {
		var all strings.Builder
		for n := range int64(200) {
			a := newAttack("http://127.0.0.1:9", "token", 7)
			require.NoError(t, a.read([]byte(small)))
			for _, o := range a.operations {
				if r := a.maker(n).request(context.Background(), o); r != nil {
					all.WriteString(r.URL.RequestURI() + r.text)
				}
			}
		}
		return all.String()
	}
	require.Equal(t, text(), text())
	require.NotContains(t, text(), "acme.test/", "an address of another host")
	require.NotContains(t, text(), "ldap.acme.test")
}
