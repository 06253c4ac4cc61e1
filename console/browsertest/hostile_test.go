package browsertest

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Names that somebody may give to records: as script, as a link, with the writing turned round, and too long.
var hostile = map[string]string{
	"script": `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`,
	"link":   `javascript:document.title='owned'//`,
	"rtl":    "\u202e\u2067gnp.exe\u202d abc \u05d0\u05d1\u05d2 \u0301\u0302\u0303",
	"long":   strings.Repeat("Wörterverbindung", 12),
	"braces": "{name} ${name} {{name}} %s %00 \\u003cb\\u003e",
}

// TestHostileNames: no name runs as script, becomes a link, or pushes the page out of its frame.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	names := strings.NewReplacer("/", "-", "?", "-")
	for kind, name := range hostile {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := signedIn(t, "hostile-"+kind)
			paths := makeHostile(b, name)
			for _, size := range [][2]int64{{390, 844}, {1280, 800}} {
				b.size(size[0], size[1])
				for _, path := range paths {
					b.load("/console/" + b.tenant + "/" + path)
					b.rest()
					assert.NotContains(t, eval[string](b, "document.title"), "owned", path)
					assert.Empty(t, eval[[]string](b, "faults"), path)
					assert.Empty(t, eval[[]string](b, `[...document.querySelectorAll('a, iframe, img, form')].map((e) =>
						e.href || e.src || e.action || '').filter((u) => String(u).startsWith('javascript:'))`), path)
					if eval[int64](b, "document.documentElement.scrollWidth") > size[0] {
						t.Errorf("%s is wider than %d: %v", path, size[0], eval[[]string](b, "tooWide()"))
					}
					screen, _, _ := strings.Cut(path, "?q=")
					b.picture(fmt.Sprintf("hostile-%s-%d-%s", kind, size[0], names.Replace(screen)))
				}
			}
		})
	}
}

// makeHostile gives the name to a record of every kind, and returns where each is shown.
func makeHostile(b *browser, name string) (paths []string) {
	b.t.Helper()
	props := map[string]any{}
	for i := range 50 {
		props[fmt.Sprintf("column_%02d", i)] = name
	}
	post := func(path string, body map[string]any) string {
		b.t.Helper()
		made := b.call(b.t, b.tenant, "POST", path, body)
		id, _ := made["id"].(string)
		return id
	}
	user := post("/v1/users", map[string]any{"username": "hostile", "display_name": name, "free_ext_props": props})
	post("/v1/core-objects", map[string]any{"code": "hostile", "name": name, "description": name})
	node := post("/v1/tree-nodes",
		map[string]any{"object_code": "hostile", "parent_id": "", "name": name, "description": name})
	for range 3 { // deep
		node = post("/v1/tree-nodes", map[string]any{"object_code": "hostile", "parent_id": node, "name": name})
	}
	post("/v1/batch/tree-users", map[string]any{"items": []any{map[string]any{
		"node_id": node, "user_id": user, "title": short(name), "role": "leader"}}})
	app := post("/v1/applications", map[string]any{"name": short(name), "category": "4", "descr": name})
	post("/v1/resources", map[string]any{"application_id": app, "type": "data", "code": "hostile", "name": name,
		"actions": []any{map[string]any{"code": "read", "description": name}}})
	post("/v1/batch/auth-unit-rules", map[string]any{
		"identities": []any{map[string]any{"identity_type": "user", "identity_id": user, "identity_name": name}},
		"rules": []any{map[string]any{"application_id": app, "type": "data", "code": "hostile",
			"actions": []string{"read"}, "description": name}},
	})
	sub := post("/v1/event-subscriptions", map[string]any{"name": short(name), "event_types": []string{"*"},
		"delivery": map[string]any{"type": "nats"}})
	conn := post("/v1/idp/connections", map[string]any{"provider_code": "ldap", "display_name": short(name),
		"config_fields": map[string]any{"Url": "ldap://127.0.0.1:1", "BaseDn": "dc=acme"}, "status": "0"})
	may := url.Values{"who": {"user:" + user}, "app": {app}, "on": {"data:hostile"}, "do": {"read"}}
	return []string{
		"users", "users?open=" + user, "users?tab=json&open=" + user, "users?tab=audit&open=" + user,
		"users?tab=memberships&open=" + user, "users?q=" + url.QueryEscape(name), "tree", "tree/hostile?open=" + node,
		"members/" + node, "members/" + node + "?add=search", "apps", "apps?open=" + app, "grants", "grants/units",
		"grants/resources?app=" + app, "explorer?" + may.Encode(), "explorer?mode=what&" + may.Encode(), "audit",
		"subscriptions?open=" + sub, "connections?open=" + conn,
	}
}

// short is as much of a name as every kind of record takes.
func short(name string) string {
	letters := []rune(name)
	return string(letters[:min(len(letters), 60)])
}
