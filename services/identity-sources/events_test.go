package identitysources_test

import (
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// The events are a format that other services and clients rely on.
func TestGoldenEvents(t *testing.T) {
	t.Parallel()
	s, d := startNamed(t)
	began := s.Clock.Now()
	c := in(s, "acme")
	tick := func() { s.Clock.Advance(time.Second) }
	var all []object
	c.Get(connectionsPath).OK(&all) // the first request creates the native database connection
	tick()
	made := c.Post(connectionsPath, wechat()).Object()
	tick()
	c.With("X-Payload-Origin", "console").Do(http.MethodPut, one(made), wechat(object{"display_name": "微信"})).OK(nil)
	tick()
	method := c.Post(methodsPath, object{"code": "wechat", "name": "WeChat", "type": "social"}).Object()
	tick()
	c.Patch(methodsPath+"/"+id(method), object{"connection_ids": []any{made["id"]}}).OK(nil)
	tick()
	template := c.Post(templatesPath, object{"code": "staff", "name": "Staff", "steps": []any{
		object{"methods": []any{"wechat"}, "required": true},
	}}).Object()
	tick()
	c.Patch(templatesPath+"/"+id(template), object{"name": "Everybody"}).OK(nil)
	for _, path := range []string{one(made), methodsPath + "/" + id(method)} {
		for _, action := range []string{"/disable", "/enable"} {
			tick()
			c.Post(path+action, nil).OK(nil)
		}
	}
	tick()
	c.Post(one(made)+"/test?dry_run=true", nil).OK(nil)
	c.Post(one(made)+"/test", nil).OK(nil)
	tick()
	changeDomain(s, d, one(made)+"/domains")
	c = in(s, "acme")
	for _, path := range []string{templatesPath + "/" + id(template), methodsPath + "/" + id(method), one(made)} {
		tick()
		c.Delete(path, nil).OK(nil)
	}
	events := s.Events(22) // events of different records come in any order
	for i := range events {
		events[i].Data = randomText.ReplaceAll(events[i].Data, []byte("idplatform-verification=random"))
	}
	slices.SortStableFunc(events, func(a, b stream.Event) int { return a.Time.Std().Compare(b.Time.Std()) })
	testkit.GoldenEvents(t, began, events,
		"connection.created", "connection.updated", "connection.enabled", "connection.disabled", "connection.tested",
		"connection.deleted",
		"auth_method.created", "auth_method.updated", "auth_method.enabled", "auth_method.disabled",
		"auth_method.deleted",
		"auth_template.created", "auth_template.updated", "auth_template.deleted",
		"connection_domain.created", "connection_domain.updated", "connection_domain.checked",
		"connection_domain.verified", "connection_domain.unverified", "connection_domain.deleted",
	)
	testkit.EventTypes(t, s, "identity-sources", began, events, map[string]string{
		"connection": "Connection", "auth_method": "AuthMethod", "auth_template": "AuthTemplate",
		"connection_domain": "ConnectionDomain",
	})
}

// changeDomain makes a mail domain and deletes it, with all that happens to one between.
func changeDomain(s *testkit.Service, d *dns, at string) {
	c := in(s, "acme")
	made := c.Post(at, object{"domain": "acme.test"}).Object()
	one := at + "/" + id(made)
	do := func(after time.Duration, method, path string, body any) {
		s.Clock.Advance(after)
		in(s, "acme").Do(method, path, body).OK(nil)
	}
	do(time.Second, http.MethodPatch, one, object{"enforce": "1"})
	do(time.Second, http.MethodPost, one+"/verify", nil)
	d.change(func() { d.texts["_idplatform.acme.test."] = []string{made["record_value"].(string)} })
	do(time.Second, http.MethodPost, one+"/verify", nil)
	d.change(func() { d.texts = nil })
	do(time.Second, http.MethodPost, one+"/verify", nil)
	do(8*24*time.Hour, http.MethodPost, one+"/verify", nil)
	do(time.Second, http.MethodDelete, one, nil)
}

var randomText = regexp.MustCompile(`idplatform-verification=[A-Z2-7]{26}`)
