package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// attack is a run of hostile requests.
type attack struct {
	address, token string
	seed           uint64
	client         *http.Client
	document       document
	operations     []*operation
	sent           atomic.Int64

	planted []record // the other tenant's

	mu     sync.Mutex          // guards what follows
	own    map[string][]string // ids of records that the attacker has made, by their path
	states map[string]map[int]int
	faults map[string]fault
	count  int
}

// record is a record, by the path below which it is.
type record struct {
	path, id string
	stored   []byte // the answer of GET, of a planted record
}

const (
	patience = 60 * time.Second // for an answer; functions may run for 30 s
	maxOwn   = 200              // of a kind
)

func newAttack(address, token string, seed uint64) *attack {
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	return &attack{
		address: address, token: token, seed: seed, own: map[string][]string{},
		states: map[string]map[int]int{}, faults: map[string]fault{},
		client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
	}
}

// maker makes the n-th request.
func (a *attack) maker(n int64) *maker {
	return &maker{a, rand.New(rand.NewPCG(a.seed, uint64(n))), n} //nolint:gosec // both are numbers of ours
}

// plain is the JSON of a value.
func (m *maker) plain(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return []byte("{}")
	}
	return text
}

// fire sends the requests, each operation as often as the others.
func (a *attack) fire(ctx context.Context, requests, clients int) {
	began := time.Now()
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				n := a.sent.Add(1)
				if n > int64(requests) {
					return
				}
				if n%10_000 == 0 {
					fmt.Printf("%d requests, %.0f s\n", n, time.Since(began).Seconds())
				}
				if r := a.maker(n).request(ctx, a.operations[int(n)%len(a.operations)]); r != nil {
					a.send(r)
				}
			}
		})
	}
	all.Wait()
}

// send sends one request and judges its answer.
func (a *attack) send(r *made) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	answer, err := a.client.Do(r.WithContext(ctx))
	if err != nil {
		if r.Context().Err() == nil {
			a.fault(r, "no answer", err.Error(), nil)
		}
		return
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 16<<20))
	if err != nil && !errors.Is(err, context.Canceled) {
		a.fault(r, "half an answer", err.Error(), text)
		return
	}
	a.judge(r, answer, text)
	a.keep(r, answer.StatusCode, text)
}

// keep notes the record that a request has made.
func (a *attack) keep(r *made, status int, text []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.states[r.operation.id] == nil {
		a.states[r.operation.id] = map[int]int{}
	}
	a.states[r.operation.id][status]++
	if status != http.StatusOK || r.Method != http.MethodPost || r.URL.Query().Has("dry_run") {
		return
	}
	if one, ok := madeBy(r.URL.Path, text); ok {
		all := a.own[one.path]
		a.own[one.path] = append(all[max(0, len(all)-maxOwn):], one.id)
	}
}

// madeBy is the record in the answer of a POST; ok is false if it has none.
func madeBy(path string, text []byte) (record, bool) {
	var answer struct{ ID, Key, Name, Code string }
	if json.Unmarshal(text, &answer) != nil {
		return record{}, false
	}
	id := answer.ID
	if strings.HasSuffix(path, "/objects") && answer.Key != "" {
		id = answer.Key
	} else if strings.HasSuffix(path, "/buckets") {
		id = answer.Name
	} else if strings.HasSuffix(path, "/core-objects") {
		id = answer.Code
	}
	return record{path: path, id: id}, id != ""
}

// plant makes the other tenant's records: of each operation that makes one out of its example.
func (a *attack) plant(ctx context.Context, token string) error {
	for round := range 2 { // the second time, some refer to records of the first
		for _, o := range a.operations {
			if o.method != http.MethodPost || strings.Contains(o.path, "{") && round == 0 ||
				!strings.HasPrefix(o.id, "create-") || strings.Contains(o.path, "batch") || len(o.bodies) == 0 ||
				o.bodies[0].contentType != "application/json" {
				continue
			}
			m := a.maker(int64(-1 - round))
			path := o.path
			if before, after, ok := strings.Cut(path, "/{"); ok {
				_, after, _ = strings.Cut(after, "}")
				path = before + "/" + m.idBelow(before) + after
			}
			text := m.plain(m.named(o, round))
			answer, status, err := a.as(ctx, token, http.MethodPost, path, text)
			if err != nil {
				return err
			}
			if one, ok := madeBy(path, answer); ok && status == http.StatusOK {
				a.planted = append(a.planted, one)
			}
		}
	}
	return a.look(ctx, token)
}

// look keeps the planted records as GET answers them, and forgets those that it does not answer.
func (a *attack) look(ctx context.Context, token string) error {
	all := a.planted
	a.planted = nil
	for _, one := range all {
		var status int
		var err error
		if one.stored, status, err = a.as(ctx, token, http.MethodGet, one.path+"/"+one.id, nil); err != nil {
			return err
		}
		if status == http.StatusOK {
			a.planted = append(a.planted, one)
		}
	}
	if len(a.planted) < 5 {
		return fmt.Errorf("only %d records of another tenant could be made", len(a.planted))
	}
	return nil
}

// named is the operation's example with the mark in its names, but not in those that are ids.
func (m *maker) named(o *operation, round int) any {
	members, ok := o.bodies[0].example.(map[string]any)
	if !ok {
		return m.fill(o.bodies[0].schema, 0)
	}
	out := map[string]any{}
	for name, value := range members {
		out[name] = value
		text, ok := value.(string)
		switch {
		case !ok || name == "key" || name == "code" || strings.HasSuffix(o.path, "/buckets"):
		case unique.MatchString(name) && name != "email" && name != "mobile":
			out[name] = fmt.Sprintf("%s-%s%d", text, victimMark, round)
		case strings.HasSuffix(name, "_id"):
			out[name] = m.ofVictim(name)
		}
	}
	return out
}

// ofVictim is the id of a planted record to which a member refers.
func (m *maker) ofVictim(member string) string {
	noun, _, _ := strings.Cut(member, "_id")
	for _, one := range m.planted {
		if one.path == refers[noun] {
			return one.id
		}
	}
	return ""
}

func (a *attack) as(ctx context.Context, token, method, path string, text []byte) ([]byte, int, error) {
	r, err := http.NewRequestWithContext(ctx, method, a.address+path, bytes.NewReader(text))
	if err != nil {
		return nil, 0, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := a.client.Do(r)
	if err != nil {
		return nil, 0, err
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	return got, answer.StatusCode, err
}

// compare finds records of the other tenant that are not as they were.
func (a *attack) compare(ctx context.Context, token string) error {
	for _, one := range a.planted {
		now, status, err := a.as(ctx, token, http.MethodGet, one.path+"/"+one.id, nil)
		if err != nil {
			return err
		}
		if status != http.StatusOK || !same(now, one.stored) {
			a.mu.Lock()
			a.count++
			a.faults["changed "+one.path] = fault{what: "another tenant's record has changed",
				where: one.path + "/" + one.id, got: fmt.Sprintf("%d %s\nwas %s", status, now, one.stored)}
			a.mu.Unlock()
		}
	}
	return nil
}

// same compares two answers without what changes by itself: how far a subscription has come, and counts of use.
func same(x, y []byte) bool {
	var a, b map[string]any
	if json.Unmarshal(x, &a) != nil || json.Unmarshal(y, &b) != nil {
		return bytes.Equal(x, y)
	}
	for _, name := range []string{"cursor", "last_error", "counters", "state", "time_next", "time_last", "member_count",
		"child_count", "rule_count"} {
		delete(a, name)
		delete(b, name)
	}
	return reflect.DeepEqual(a, b)
}
