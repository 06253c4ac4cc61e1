package identitysources_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	identitysources "github.com/idplatform/idplatform/services/identity-sources"
	"github.com/idplatform/idplatform/services/questions"
)

// dns is a DNS with TXT records.
type dns struct {
	mu    sync.Mutex
	texts map[string][]string
	down  bool
	// meanwhile is called once, by the next question to the name server or the users service.
	meanwhile func()
}

func (d *dns) happens() {
	d.mu.Lock()
	happens := d.meanwhile
	d.meanwhile = nil
	d.mu.Unlock()
	if happens != nil {
		happens()
	}
}

func (d *dns) lookup(_ context.Context, name string) ([]string, error) {
	d.happens()
	d.mu.Lock()
	defer d.mu.Unlock()
	switch texts := d.texts[name]; {
	case d.down:
		return nil, &net.DNSError{Err: "server misbehaving", IsTemporary: true}
	case texts == nil:
		return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
	default:
		return texts, nil
	}
}

func (d *dns) change(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// startNamed starts a service with a DNS.
func startNamed(t testing.TB) (*testkit.Service, *dns) {
	t.Helper()
	d := &dns{texts: map[string][]string{}}
	s := testkit.Start(t, identitysources.SpecWith(d.lookup))
	others(s, 0, 0)
	require.NoError(t, questions.ExistingUsers.Answer(s.Deps.Bus,
		func(_ context.Context, q questions.UserIDs) (questions.UserIDs, error) {
			d.happens()
			known := []string{}
			for _, id := range q.IDs {
				if id == "20" {
					known = append(known, id)
				}
			}
			return questions.UserIDs{IDs: known}, nil
		}))
	return s, d
}

// named is such a service, with the domains of a connection through which people sign in.
func named(t *testing.T) (*testkit.Service, *dns, *testkit.Client, string) {
	t.Helper()
	s, d := startNamed(t)
	c := in(s, "acme")
	return s, d, c, one(c.Post(connectionsPath, wechat()).Object()) + "/domains"
}

func TestDomains(t *testing.T) {
	t.Parallel()
	s, d, c, at := named(t)
	made := c.Post(at, object{"domain": " Bücher.TEST. ", "exempt_user_ids": []any{"20"}}).Object()
	require.Equal(t, "xn--bcher-kva.test", made["domain"])
	require.Equal(t, []any{"pending", "0", "_idplatform.xn--bcher-kva.test", nil},
		[]any{made["status"], made["enforce"], made["record_name"], made["time_verified"]})
	require.Len(t, c.Get(at).Object()["items"], 1)
	one := at + "/" + id(made)
	require.Equal(t, made, c.Get(one).Object())

	for name, row := range map[string]struct {
		draft object
		code  string
		where string
	}{
		"taken":             {object{"domain": "bücher.test"}, "already_exists", "body.domain"},
		"an address":        {object{"domain": "a@acme.test"}, "invalid_parameters", "body.domain"},
		"one label":         {object{"domain": "localhost"}, "invalid_parameters", "body.domain"},
		"an IP address":     {object{"domain": "192.0.2.1"}, "invalid_parameters", "body.domain"},
		"none":              {object{}, "invalid_parameters", "body.domain"},
		"enforced at will":  {object{"domain": "b.test", "enforce": "2"}, "invalid_parameters", "body.enforce"},
		"an unknown exempt": {object{"domain": "b.test", "exempt_user_ids": []any{"20", "21"}}, "invalid_parameters", "body.exempt_user_ids[1]"},
	} {
		t.Run(name, func(*testing.T) {
			status := map[string]int{"already_exists": http.StatusConflict}[row.code]
			if status == 0 {
				status = http.StatusBadRequest
			}
			c.Post(at, row.draft).Problem(status, row.code, row.where)
		})
	}
	c.Post(connectionsPath+"/404/domains", object{"domain": "b.test"}).Problem(http.StatusNotFound, "not_found")
	c.Get(connectionsPath+"/404/domains").Problem(http.StatusNotFound, "not_found")
	native := listed(c)[0]
	c.Post(connectionsPath+"/"+id(native)+"/domains", object{"domain": "b.test"}).
		Problem(http.StatusConflict, "invalid_state")
	c.Get(connectionsPath+"/"+id(native)+"/domains/"+id(made)).Problem(http.StatusNotFound, "not_found")
	in(s, "globex").Get(one).Problem(http.StatusNotFound, "not_found")

	changed := c.Patch(one, object{"enforce": "1"}).Object()
	require.Equal(t, "1", changed["enforce"])
	c.Patch(one, object{"domain": "b.test"}).Problem(http.StatusBadRequest, "invalid_parameters", "body.domain")
	c.Patch(one, object{"domain": "bücher.test"}).OK(nil)
	c.Patch(one, object{"exempt_user_ids": []any{"21"}}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.exempt_user_ids[0]")

	d.change(func() { d.texts["_idplatform.xn--bcher-kva.test."] = []string{"v=spf1", made["record_value"].(string)} })
	require.Equal(t, "verified", c.Post(one+"/verify", nil).Object()["status"])
	require.Equal(t, object{"id": made["id"]}, c.Delete(one, nil).Object())
	c.Get(one).Problem(http.StatusNotFound, "not_found")

	c.Post(at, object{"domain": "acme.test"}).OK(nil)
	c.Delete(at[:len(at)-len("/domains")], nil).OK(nil)
	other := c.Post(connectionsPath, wechat()).Object()
	c.Post(connectionsPath+"/"+id(other)+"/domains", object{"domain": "acme.test"}).OK(nil)
}

// The record of a verified domain is looked up each week. It has a week to come back.
func TestDomainsAreLookedUpAgain(t *testing.T) {
	t.Parallel()
	s, d, c, at := named(t)
	made := c.Post(at, object{"domain": "acme.test"}).Object()
	one := at + "/" + id(made)
	const day = 24 * time.Hour
	verify := func() []any {
		now := c.Post(one+"/verify", nil).Object()
		return []any{now["status"], now["failure"]}
	}
	require.Equal(t, []any{"pending", "there is no such TXT record"}, verify())
	d.change(func() { d.texts["_idplatform.acme.test."] = []string{"idplatform-verification=other"} })
	require.Equal(t, []any{"pending", "there is no such TXT record"}, verify())
	d.change(func() { d.down = true })
	require.Equal(t, []any{"pending", "the name server does not answer"}, verify())
	record := []string{made["record_value"].(string)}
	d.change(func() { d.down, d.texts["_idplatform.acme.test."] = false, record })
	require.Equal(t, []any{"verified", ""}, verify())

	after := func(days int, status, failure string) {
		s.Clock.Advance(time.Duration(days) * day)
		s.RunTask("look up domains")
		now := in(s, "acme").Get(one).Object()
		require.Equal(t, []any{s.Clock.Now().String(), status, failure},
			[]any{now["time_checked"], now["status"], now["failure"]})
	}
	d.change(func() { d.down = true })
	after(7, "verified", "the name server does not answer")
	after(1, "verified", "the name server does not answer")
	d.change(func() { d.down, d.texts = false, nil })
	after(1, "verified", "there is no such TXT record")
	d.change(func() { d.texts = map[string][]string{"_idplatform.acme.test.": record} })
	after(1, "verified", "")
	require.Nil(t, in(s, "acme").Get(one).Object()["time_missing"])
	d.change(func() { d.texts = nil })
	after(7, "verified", "there is no such TXT record")
	for range 6 {
		after(1, "verified", "there is no such TXT record")
	}
	after(1, "pending", "there is no such TXT record")

	d.change(func() { d.texts = map[string][]string{"_idplatform.acme.test.": record} })
	c = in(s, "acme")
	require.Equal(t, []any{"verified", ""}, verify())
	d.change(func() { d.down = true })
	after(7, "verified", "the name server does not answer")
	for range 27 {
		after(1, "verified", "the name server does not answer")
	}
	after(1, "pending", "the name server does not answer")

	var told []string
	s.EventsUntil(func(e stream.Event) bool {
		if e.Subject == id(made) {
			told = append(told, e.Type)
		}
		return e.Type == "idp.connection_domain.unverified"
	})
	require.Equal(t, "idp.connection_domain.created", told[0])
	require.Contains(t, told, "idp.connection_domain.verified")
	require.Contains(t, told, "idp.connection_domain.checked")
}

// A check and a change of the same domain do not refuse each other.
func TestDomainsChangeDuringChecks(t *testing.T) {
	t.Parallel()
	_, d, c, at := named(t)
	made := c.Post(at, object{"domain": "acme.test"}).Object()
	one := at + "/" + id(made)
	d.texts["_idplatform.acme.test."] = []string{made["record_value"].(string)}
	d.meanwhile = func() { c.Patch(one, object{"enforce": "1"}).OK(nil) }
	now := c.Post(one+"/verify", nil).Object()
	require.Equal(t, []any{"verified", "1"}, []any{now["status"], now["enforce"]})
	d.change(func() { d.meanwhile = func() { c.Post(one+"/verify", nil).OK(nil) } })
	now = c.Patch(one, object{"exempt_user_ids": []string{"20"}}).Object()
	require.Equal(t, []any{"verified", []any{"20"}}, []any{now["status"], now["exempt_user_ids"]})
	c.Patch(one, object{"exempt_user_ids": []string{}}).OK(nil)
	d.change(func() { d.meanwhile = func() { c.Patch(one, object{"enforce": "0"}).OK(nil) } })
	require.Equal(t, http.StatusPreconditionFailed, c.Patch(one, object{"exempt_user_ids": []string{"20"}}).Status)
}

// Sign-in learns the verified domains with the template.
func TestDomainsForSignIn(t *testing.T) {
	t.Parallel()
	s, d, c, at := named(t)
	connection := at[len(connectionsPath)+1 : len(at)-len("/domains")]
	c.Post(methodsPath, object{
		"code": "sso", "name": "SSO", "type": "social", "connection_ids": []any{connection},
	}).OK(nil)
	c.Post(templatesPath, object{
		"code": "staff", "name": "Staff", "steps": []any{object{"methods": []any{"sso"}, "required": true}},
	}).OK(nil)
	of := func() []questions.ConnectionDomain {
		answer, err := questions.LoginTemplateOf.Ask(system(t, "acme"), s.Deps.Bus,
			questions.TemplateCode{Code: "staff"})
		require.NoError(t, err)
		return answer.Steps[0].Methods[0].Connections[0].Domains
	}
	made := c.Post(at, object{"domain": "acme.test", "enforce": "1", "exempt_user_ids": []any{"20"}}).Object()
	require.Empty(t, of(), "it is not verified")
	d.change(func() { d.texts["_idplatform.acme.test."] = []string{made["record_value"].(string)} })
	c.Post(at+"/"+id(made)+"/verify", nil).OK(nil)
	require.Equal(t, []questions.ConnectionDomain{
		{Name: "acme.test", Enforced: true, ExemptUserIDs: []string{"20"}},
	}, of())
}
