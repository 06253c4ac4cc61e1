package scim_test

import (
	"math/rand/v2"
	"strconv"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
)

// random makes filters and users with few different values, so that many filters hold.
type random struct{ *rand.Rand }

func newRandom(seed uint64) random { return random{rand.New(rand.NewPCG(seed, seed))} }

func pick[T any](r random, from ...T) T { return from[r.IntN(len(from))] }

func (r random) chance(percent int) bool { return r.IntN(100) < percent }

func (r random) text() string { return pick(r, "a", "b", "ab", "ba", "abc", "A", "B@x.org", "b@x.org") }

func (r random) quoted() string { return strconv.Quote(r.text()) }

// filter is a filter of at most that depth.
func (r random) filter(depth int) string {
	if depth > 0 {
		switch r.IntN(8) {
		case 0, 1:
			return r.filter(depth-1) + pick(r, " and ", " AND ") + r.filter(depth-1)
		case 2, 3:
			return r.filter(depth-1) + pick(r, " or ", " Or ") + r.filter(depth-1)
		case 4:
			return pick(r, "not(", "not (") + r.filter(depth-1) + ")"
		case 5:
			return "(" + r.filter(depth-1) + ")"
		}
	}
	switch r.IntN(10) {
	case 0:
		return "emails[" + r.within(min(depth, 1)) + "]"
	case 1:
		return "active " + pick(r, "eq", "ne") + " " + pick(r, "true", "false")
	case 2:
		return "meta.created " + pick(r, "gt", "ge", "lt", "le", "eq", "ne") + ` "` + r.time() + `"`
	case 3:
		return pick(r, "userName", "title", "name.givenName", "emails", "active", "name") + " pr"
	}
	return pick(r, "userName", "title", "name.givenName", "nickName", "emails.value", "emails.type") + " " +
		r.op() + " " + r.quoted()
}

func (r random) op() string { return pick(r, "eq", "ne", "co", "sw", "ew", "gt", "ge", "lt", "le") }

func (r random) within(depth int) string {
	if depth > 0 {
		return r.within(0) + pick(r, " and ", " or ") + r.within(0)
	}
	switch r.IntN(5) {
	case 0:
		return "primary eq " + pick(r, "true", "false")
	case 1:
		return pick(r, "type", "value", "display") + " pr"
	}
	return pick(r, "type", "value") + " " + r.op() + " " + r.quoted()
}

func (r random) time() string {
	return pick(r, "2026-01-31T09:30:00Z", "2026-01-31T09:30:00.000Z", "2026-02-01T00:00:00Z", "2025-12-31T23:59:59Z")
}

func (r random) user() resource.Object {
	u := resource.Object{
		"userName": r.text(), "active": r.chance(50), "meta": resource.Object{"created": r.time()},
	}
	for _, name := range []string{"title", "nickName"} {
		if r.chance(60) {
			u[name] = r.text()
		}
	}
	if r.chance(60) {
		u["name"] = resource.Object{"givenName": r.text()}
	}
	var emails []any
	for range r.IntN(3) {
		e := resource.Object{"value": r.text()}
		if r.chance(70) {
			e["type"] = r.text()
		}
		if r.chance(30) {
			e["primary"] = r.chance(50)
		}
		emails = append(emails, e)
	}
	if len(emails) > 0 {
		u["emails"] = emails
	}
	return u
}
