package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// load is a run.
type load struct {
	settings
	client  *http.Client
	tenants []*tenant
	kinds   []*kind
	all     histogram // since the last line
	samples []sample
	begun   time.Time
	took    time.Duration
	sent    atomic.Int64

	mu         sync.Mutex
	firstError string
}

// kind is one of the requests of the mix.
type kind struct {
	name   string
	weight int
	make   maker
	histogram
}

// maker makes a request.
type maker func(t *tenant, r *rand.Rand) (method, path, body string)

// tenant has the records that the requests are about.
type tenant struct {
	name   string
	users  []string
	node   string
	fresh  atomic.Int64
	object atomic.Int64
}

// sample is what one line of the progress says.
type sample struct {
	at        time.Duration
	perSecond float64
	p50, p99  time.Duration
	errors    int64
	memory    float64 // bytes; 0 if it is not known
	backlog   float64 // events that wait for NATS
	audit     float64 // events that wait for the audit log
}

const resources = 20 // of each tenant

func newLoad(s settings) *load {
	l := &load{settings: s}
	l.client = &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: s.clients + 1, DisableCompression: true}, Timeout: time.Minute,
	}
	l.kinds = append(readsOf(s), writesOf(s)...)
	return l
}

func user(t *tenant, r *rand.Rand) string { return t.users[r.IntN(len(t.users))] }

func readsOf(s settings) []*kind {
	get := func(path func(t *tenant, r *rand.Rand) string) maker {
		return func(t *tenant, r *rand.Rand) (string, string, string) { return http.MethodGet, path(t, r), "" }
	}
	return []*kind{
		{name: "read: user by id", weight: s.reads * 50, make: get(func(t *tenant, r *rand.Rand) string {
			return "/v1/users/" + user(t, r)
		})},
		{name: "read: page of 20 users", weight: s.reads * 15, make: get(func(t *tenant, r *rand.Rand) string {
			return fmt.Sprintf("/v1/users?page_num=%d", 1+r.IntN(max(1, s.users/20)))
		})},
		{name: "read: users by a word", weight: s.reads * 10, make: get(func(_ *tenant, r *rand.Rand) string {
			return fmt.Sprintf("/v1/users?keyword=person%d", r.IntN(s.users))
		})},
		{name: "read: members of a team", weight: s.reads * 10, make: get(func(t *tenant, _ *rand.Rand) string {
			return "/v1/tree-nodes/" + t.node + "/users"
		})},
		{name: "read: an object", weight: s.reads * 15, make: get(func(*tenant, *rand.Rand) string {
			return "/v1/kv/buckets/load/objects/first"
		})},
		{name: "check", weight: s.checks * 100, make: func(t *tenant, r *rand.Rand) (string, string, string) {
			return http.MethodPost, "/v1/auth-check", fmt.Sprintf(`{"identity_type":"user","identity_id":%q,`+
				`"application_id":"2001","object_type":"data","object_code":"record/%d","action":"read"}`, user(t, r),
				r.IntN(resources))
		}},
	}
}

func writesOf(s settings) []*kind {
	return []*kind{
		{name: "write: create a user", weight: s.writes * 40, make: func(t *tenant, _ *rand.Rand) (_, _, _ string) {
			return http.MethodPost, "/v1/users", fmt.Sprintf(`{"username":"new%d"}`, t.fresh.Add(1))
		}},
		{name: "write: change a user", weight: s.writes * 40, make: func(t *tenant, r *rand.Rand) (_, _, _ string) {
			return http.MethodPatch, "/v1/users/" + user(t, r), fmt.Sprintf(`{"display_name":"name %d"}`, r.IntN(1000))
		}},
		{name: "write: an object", weight: s.writes * 20, make: func(t *tenant, _ *rand.Rand) (string, string, string) {
			path := fmt.Sprintf("/v1/kv/buckets/load/objects/o%d", t.object.Add(1))
			return http.MethodPut, path, `{"value":{"a":1}}`
		}},
	}
}

// prepare makes the tenants' records.
func (l *load) prepare(ctx context.Context) error {
	for n := range l.settings.tenants {
		t := &tenant{name: fmt.Sprintf("load-%d", n)}
		if err := l.fill(ctx, t); err != nil {
			return fmt.Errorf("prepare %s: %w", t.name, err)
		}
		l.tenants = append(l.tenants, t)
	}
	return nil
}

func (l *load) fill(ctx context.Context, t *tenant) error {
	type object = map[string]any
	post := func(path string, body any) (id string, err error) {
		text, err := json.Marshal(body)
		if err != nil {
			return "", err
		}
		answer, err := l.send(ctx, t.name, http.MethodPost, path, string(text))
		var made struct{ ID string }
		_ = json.Unmarshal(answer, &made) // some answers are lists, which have no id
		return made.ID, err
	}
	for n := range l.settings.users {
		name := fmt.Sprint("person", n)
		id, err := post("/v1/users", object{"username": name, "display_name": name})
		if err != nil {
			return err
		}
		t.users = append(t.users, id)
	}
	if _, err := post("/v1/core-objects", object{"code": "company", "name": "Acme"}); err != nil {
		return err
	}
	var err error
	t.node, err = post("/v1/tree-nodes", object{"object_code": "company", "parent_id": "", "name": "Team"})
	if err != nil {
		return err
	}
	var members []object
	for _, user := range t.users[:min(len(t.users), 500)] {
		members = append(members, object{"node_id": t.node, "user_id": user})
	}
	if _, err := post("/v1/batch/tree-users", object{"items": members}); err != nil {
		return err
	}
	var rules []object
	for n := range resources {
		code := fmt.Sprint("record/", n)
		_, err := post("/v1/resources", object{"application_id": "2001", "type": "data", "code": code, "name": code,
			"actions": []object{{"code": "read"}}})
		if err != nil {
			return err
		}
		rules = append(rules, object{"application_id": "2001", "type": "data", "code": code,
			"actions": []string{"read"}})
	}
	_, err = post("/v1/batch/auth-unit-rules", object{
		"identities": []object{{"identity_type": "node", "identity_id": t.node}}, "rules": rules,
	})
	if err != nil {
		return err
	}
	if _, err := l.send(ctx, t.name, http.MethodPut, "/v1/kv/buckets/load", `{}`); err != nil {
		return err
	}
	_, err = l.send(ctx, t.name, http.MethodPut, "/v1/kv/buckets/load/objects/first", `{"value":{"a":1}}`)
	return err
}

// send sends a request; an answer other than 200 is an error.
func (l *load) send(ctx context.Context, tenant, method, path, body string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, l.address+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+l.token)
	r.Header.Set("X-Tenant-Id", tenant)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := l.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %d %.300s", method, path, answer.StatusCode, text)
	}
	return text, err
}
