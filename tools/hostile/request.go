package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// made is a request and what its answer is judged by.
type made struct {
	*http.Request
	operation *operation
	tenant    string // the X-Tenant-Id that was sent
	text      string // the body
}

func (m *made) String() string {
	text := m.text
	if len(text) > 600 {
		text = text[:600] + "…"
	}
	headers := m.Header.Clone()
	if strings.HasPrefix(headers.Get("Authorization"), "Bearer ey") {
		headers.Del("Authorization")
	}
	return fmt.Sprintf("%s %s %v\n%s", m.Method, m.URL.RequestURI(), headers, text)
}

// request makes a request of an operation. Every fourth is not spoilt, but for ids, so that there are records. It
// returns nil if net/http would not send it.
func (m *maker) request(ctx context.Context, o *operation) *made {
	chance := []int{0, 2, 6, 12}[m.IntN(4)]
	target, ok := m.target(o, chance)
	if !ok {
		return nil
	}
	var text []byte
	contentType := ""
	if len(o.bodies) > 0 {
		b := o.bodies[m.IntN(len(o.bodies))]
		contentType, text = b.contentType, m.body(b, chance)
	} else if chance > 0 && m.IntN(10) == 0 {
		contentType, text = "application/json", m.encode(m.value())
	}
	r, err := http.NewRequestWithContext(ctx, o.method, m.address+target, bytes.NewReader(text))
	if err != nil {
		return nil
	}
	out := &made{Request: r, operation: o, text: string(text)}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	r.Header.Set("Authorization", "Bearer "+m.token)
	if chance > 0 {
		m.headers(r.Header, o)
	}
	out.tenant = r.Header.Get("X-Tenant-Id")
	for _, values := range r.Header {
		if strings.ContainsAny(values[0], "\x00\r\n") {
			return nil
		}
	}
	return out
}

var segments = []string{"..", "%2e%2e", "%00", ";x=1", "%ff", "%252e", "", "//", "."}

// target is the path with its parameters, and the query.
func (m *maker) target(o *operation, chance int) (string, bool) {
	path := o.path
	query := url.Values{}
	for _, p := range o.parameters {
		spoil := chance > 0 && m.IntN(chance) == 0
		switch p.In {
		case "path":
			before, after, _ := strings.Cut(path, "{"+p.Name+"}")
			id := m.idBelow(before[:max(0, len(before)-1)])
			if one := m.resolve(&p.Schema); len(one.Enum) > 0 {
				id = fmt.Sprint(one.Enum[m.IntN(len(one.Enum))])
			}
			if spoil {
				id = m.text()
			}
			if path = before + url.PathEscape(id) + after; spoil && m.IntN(4) == 0 {
				path = before + segments[m.IntN(len(segments))] + after
			}
		case "query":
			if spoil {
				query.Add(p.Name, m.text())
			} else if p.Required || chance > 0 && m.IntN(6) == 0 {
				query.Add(p.Name, fmt.Sprint(m.spoil(m.fill(&p.Schema, 1), &p.Schema, p.Name, chance)))
			}
		}
	}
	if chance > 0 && m.IntN(20) == 0 {
		query.Add("dry_run", []string{"true", "1", m.text()}[m.IntN(3)])
	}
	target := path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	if len(target) > 60_000 { // net/http's servers stop reading: there is nothing to learn
		return "", false
	}
	_, err := url.Parse(target)
	return target, err == nil
}

func (m *maker) body(b body, chance int) []byte {
	switch b.contentType {
	case "application/json":
		example := b.example
		if example == nil {
			example = m.fill(b.schema, 0)
		}
		v := m.spoil(example, b.schema, "", chance)
		if chance == 0 {
			return m.plain(v)
		}
		return m.encode(v)
	case "application/x-www-form-urlencoded":
		form := url.Values{}
		if members, ok := m.fill(b.schema, 0).(map[string]any); ok {
			for _, name := range slices.Sorted(maps.Keys(members)) {
				form.Add(name, fmt.Sprint(m.spoil(members[name], nil, name, chance)))
			}
		}
		return []byte(form.Encode())
	}
	return []byte(m.text()) // images, programs and rows that are none
}

func (m *maker) headers(h http.Header, o *operation) {
	if m.IntN(12) == 0 || m.IntN(2) == 0 && needsTenant(o) {
		h.Set("X-Tenant-Id", []string{victims, attackers, "system", "*", m.text()}[m.IntN(5)])
	}
	for _, one := range headers {
		if m.IntN(25) > 0 {
			continue
		}
		value := m.IntN(len(one.values) + 1)
		if value < len(one.values) {
			h.Set(one.name, one.values[value])
		} else if one.name != "Traceparent" && one.name != "X-Request-Id" { // which answers repeat
			h.Set(one.name, m.text())
		}
	}
}

var headers = []struct {
	name   string
	values []string // besides hostile texts
}{
	{"Idempotency-Key", []string{"a"}},
	{"If-Match", []string{"*", `"1"`, `W/"1"`, `"1-1"`, `"`}},
	{"If-None-Match", []string{"*", `"1"`}},
	{"Content-Type", []string{"text/plain", "application/json; charset=utf-16", "multipart/form-data; boundary=x"}},
	{"X-Payload-Origin", nil},
	{"X-Request-Id", []string{"", "constructor", strings.Repeat("a", 5000), "<b>"}},
	{"X-Forwarded-For", []string{"127.0.0.1", "::1"}},
	{"X-Consistency-Token", nil},
	{"Traceparent", []string{"00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-ff", "00-0-0-0"}},
	{"Range", []string{"bytes=0-0,-1,5-2"}},
	{"Accept-Language", nil},
	{"Last-Event-ID", []string{"-1", "18446744073709551616"}},
	{"Authorization", []string{"", "Bearer", "Basic", "Bearer a.b.c"}},
}

func needsTenant(o *operation) bool { return strings.Contains(o.path, "resource-set") }
