package browsertest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// settingNames are titles of settings that Chinese keeps: their owners call them so in Chinese, too.
var settingNames = []string{
	"StartTLS", "APPID", "AppID", "AppSecret", "App ID", "App Secret", "SDK App ID", "Secret", "Services ID",
}

// settingSchema is as much of a JSON Schema as has words.
type settingSchema struct {
	Title, Description string
	Properties         map[string]settingSchema
}

// words lists the titles and the help texts.
func (s settingSchema) words() (titles, help []string) {
	if s.Title != "" {
		titles = append(titles, s.Title)
	}
	if s.Description != "" {
		help = append(help, s.Description)
	}
	for _, p := range s.Properties {
		t, h := p.words()
		titles, help = append(titles, t...), append(help, h...)
	}
	return titles, help
}

// TestWordsOfSettings: the forms that the platform's catalogues make are Chinese in a Chinese console.
func TestWordsOfSettings(t *testing.T) {
	t.Parallel()
	b := signedIn(t, "words-of-settings")
	b.open("start")
	b.speak("zh")
	list := func(path, id, schema string) map[string]settingSchema {
		t.Helper()
		var items []map[string]json.RawMessage
		text, ok := b.call(t, b.tenant, "GET", path, nil)["text"].(string)
		require.True(t, ok, path)
		require.NoError(t, json.Unmarshal([]byte(text), &items))
		found := map[string]settingSchema{}
		for _, item := range items {
			var code string
			var s settingSchema
			require.NoError(t, json.Unmarshal(item[id], &code))
			require.NoError(t, json.Unmarshal(item[schema], &s))
			if len(s.Properties) > 0 {
				found[code] = s
			}
		}
		require.NotEmpty(t, found)
		return found
	}
	seen := map[string]bool{}
	for screen, forms := range map[string]map[string]settingSchema{
		"connections": list("/v1/idp/providers", "provider_code", "config_schema"),
		"apps":        list("/v1/application-templates?name=", "template_id", "params_schema"),
	} {
		b.open(screen)
		for code, s := range forms {
			titles, help := s.words()
			fresh := false
			for _, text := range append(titles, help...) {
				fresh = fresh || !seen[text]
				seen[text] = true
			}
			if !fresh {
				continue
			}
			url := fmt.Sprintf("/console/%s/%s?create=%s", b.tenant, screen, code)
			eval[bool](b, fmt.Sprintf(`(history.pushState(null, '', %q), dispatchEvent(new PopStateEvent('popstate')),
				true)`, url))
			b.waitFor(fmt.Sprintf("document.querySelectorAll('dialog .field').length >= %d", len(s.Properties)))
			shown := eval[[]string](b, `[...document.querySelectorAll('dialog :is(label, .label, .help)')]
				.map((e) => e.textContent.replace(/ \*$/, ''))`)
			for _, text := range help {
				assert.NotContains(t, shown, text, "%s: no Chinese for it", code)
			}
			for _, title := range titles {
				if !slices.Contains(settingNames, title) {
					assert.NotContains(t, shown, title, "%s: no Chinese for it", code)
				}
			}
			for _, text := range shown {
				if !slices.Contains(settingNames, text) {
					assert.Regexp(t, `\p{Han}`, text, code)
				}
			}
		}
	}
	b.clean()
}

// TestOwnNames: constructor and toString, which every object of a browser has, are words like others in data.
func TestOwnNames(t *testing.T) {
	t.Parallel()
	for name, see := range map[string]func(*browser){
		"part": func(b *browser) {
			b.open("settings/constructor")
			b.see("What this session may do")
		},
		"code": func(b *browser) {
			b.proxy.fail(fault{call: "GET /v1/users", status: 409, code: "constructor"})
			b.open("users")
			b.see("Something went wrong in the platform")
		},
		"cron": func(b *browser) {
			b.open("jobs?create=1")
			b.fill("Cron expression", "constructor")
			b.see("must be a cron expression")
		},
		"member": func(b *browser) {
			props := map[string]any{"constructor": "stone", "toString": "thread"}
			id := b.call(b.t, b.tenant, "POST", "/v1/users",
				map[string]any{"username": "olga", "free_ext_props": props})["id"].(string)
			b.open("users?open=" + id)
			b.fill("Own properties", `{"toString": "thread"}`)
			b.click("Save")
			b.see("olga was saved")
			delete(props, "constructor")
			now := b.call(b.t, b.tenant, "GET", "/v1/users/"+id, nil)
			require.Equal(b.t, props, now["free_ext_props"])
		},
		"entry": func(b *browser) {
			id := b.call(b.t, b.tenant, "POST", "/v1/users", map[string]string{"username": "olga"})["id"].(string)
			b.call(b.t, b.tenant, "PATCH", "/v1/users/"+id, map[string]string{"display_name": "Olga"})
			b.recorded(id, 2)
			b.open("start")
			b.rewriteAudit(`text.replaceAll('"user"', '"toString"').replaceAll('"display_name"', '"constructor"')`)
			b.screen("Audit")
			b.see("toString updated")
			b.click("toString updated")
			b.waitFor(`[...document.querySelectorAll('.panel .diff tr')]
				.some((tr) => tr.innerText.split(/\s+/).join() === 'constructor,empty,Olga')`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := signedIn(t, "own-names-"+name)
			see(b)
			b.clean()
		})
	}
}
