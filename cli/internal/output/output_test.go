package output

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bodies are answers of every kind, by name.
var bodies = []struct{ name, body string }{
	{"a list", list}, {"a record", single}, {"an empty list", `{"items":[],"total":0,"page_num":1,"page_size":20}`},
	{"a list with totals", `{"gained":2,"lost":0,"identities_gaining":{"users":1,"nodes":1},"complete":false,
		"items":[{"identity_id":"7","object_code":"invoice","action":"read","change":"gained"}],"total":2}`},
	{"a page", `{"items":[{"id":"7","username":"li.wei"}],"total":57,"page_num":1,"page_size":1,"next_page_token":"x"}`},
	{"an array", `[{"id":"1","username":"a"}]`}, {"an empty object", `{}`},
}

const list = `{"items":[
	{"id":"1048577","username":"li.wei","display_name":"李伟","email":"li.wei@acme.test","version":3,
	 "free_ext_props":{"big":12345678901234567890,"team":"平台, \"核心\""},"tags":["a","b"],"locked":false,"until":null},
	{"id":"2","username":"e\u0301mile\u001b[31m\u009b31m\u202e\u0007","display_name":"","email":"","version":1,
	 "free_ext_props":{},"tags":[],"locked":true,"until":"2026-01-31T09:30:00.000Z"},
	{"id":"3","username":"שרה","display_name":"سارة أحمد","email":"sara@acme.test","version":1,
	 "free_ext_props":{},"tags":["\u2068a\u2069"],"locked":false,"until":null},
	{"id":"9007199254740991","username":"long","display_name":"非常非常非常非常非常非常非常非常非常非常长的名字",
	 "email":"a.very.long.address.that.nobody.types.by.hand@a.very.long.subdomain.of.acme.test","version":1,
	 "free_ext_props":{"text":"one\ntwo\tthree"},"tags":[],"locked":false,"until":null}
	],"total":4,"page_num":1,"page_size":20}`

const single = `{"id":"1048577","username":"li.wei","count":12345678901234567890,"yes":"true","no":"0x1F","nil":null,
	"text":"two\nlines\u001b[2J","delivery":{"url":"https://acme.test","filter":{"type":["a"],"x":{"y":{"z":1}}}},
	"certificate":"-----BEGIN CERTIFICATE-----\r\nMIIB\r\n-----END CERTIFICATE-----\r\n","empty":{},
	"\u001b[31mname":"李伟","actions":[{"code":"read","description":"读"},{"code":"write","description":null}],
	"mixed":[{"a":1},"b"]}`

var people = View{
	Columns: []Column{
		MemberColumn("id"), MemberColumn("username"), MemberColumn("display_name"), MemberColumn("email"),
	},
	Wide: []Column{MemberColumn("free_ext_props"), MemberColumn("tags")}, Name: "username",
}

// TestGolden compares every form with a file of testdata. IDP_TEST_UPDATE=1 writes the files.
func TestGolden(t *testing.T) {
	t.Parallel()
	type form struct {
		name string
		form Form
		view View
	}
	forms := []form{
		{"template", Form{Format: "template={{.username}} {{.until}}"}, people},
		{"jq", Form{Format: "table", JQ: "if type == \"object\" then .items[]? // . else . end"}, people},
		{"table-40", Form{Format: "table", Width: 40}, people},
		{"table-colours", Form{Format: "table", Width: 100, Style: true}, people},
		{"table-piped", Form{Format: "table"}, people},
	}
	for _, format := range Formats {
		fields := []string{"username", "free_ext_props.team"}
		forms = append(forms,
			form{format, Form{Format: format, Width: 100}, people},
			form{format + "-guessed", Form{Format: format, Width: 100}, View{}},
			form{format + "-fields", Form{Format: format, Width: 100, Fields: fields}, people})
	}
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			f.form.Terminal = true
			p, err := New(&out, f.form)
			require.NoError(t, err)
			for _, b := range bodies {
				out.WriteString("== " + b.name + "\n")
				require.NoError(t, p.Body([]byte(b.body), f.view))
			}
			file := filepath.Join("testdata", f.name+".txt")
			if os.Getenv("IDP_TEST_UPDATE") != "" {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(file, out.Bytes(), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(want), out.String())
			if !f.form.Style {
				assertSafe(t, out.String())
			}
			if f.form.Format != "table" || f.form.JQ != "" || f.form.Style || f.form.Width == 0 {
				return
			}
			for line := range strings.Lines(strings.Split(out.String(), "== a record")[0]) {
				assert.LessOrEqual(t, width(strings.TrimSuffix(line, "\n")), p.width, p.width)
			}
		})
	}
}

// assertSafe checks that nothing in an output can steer a terminal.
func assertSafe(t *testing.T, text string) {
	t.Helper()
	for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
		require.False(t, steers(r) && r != '\n' && r != '\t', "%q has %q", text, r)
	}
}

// TestElsewhere checks that programs get texts as they are.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"csv": "id,name\n1,a\x1b\u009b\n", "template={{.name}}": "a\x1b\u009b\n",
		"jsonl": `{"id":"1","name":"a\u001b` + "\u009b\"}\n",
	} {
		var out bytes.Buffer
		p, err := New(&out, Form{Format: format})
		require.NoError(t, err)
		require.NoError(t, p.Body([]byte(`[{"id":"1","name":"a\u001b\u009b"}]`), View{}))
		assert.Equal(t, want, out.String())
	}
}

// TestSafe writes a text byte by byte: what comes in pieces is looked at as a whole.
func TestSafe(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := Safe(&out)
	for _, b := range []byte("李\r\na\rb\u009b\u202ec\x1b\xff\tz") {
		_, err := w.Write([]byte{b})
		require.NoError(t, err)
	}
	assert.Equal(t, "李\r\na\\u000db\\u009b\\u202ec\\u001b\xff\tz", out.String())
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ format, jq, want string }{
		{"template={{.display_name}} {{.free_ext_props.big}}", "", "李伟 12345678901234567890\n <no value>\n"},
		{"table", ".items[0] | .id, .free_ext_props.big, .tags", "1048577\n12345678901234567890\n[\"a\",\"b\"]\n"},
		{"json", ".total + 1", "5\n"},
	} {
		var out bytes.Buffer
		p, err := New(&out, Form{Format: c.format, JQ: c.jq})
		require.NoError(t, err)
		require.NoError(t, p.Body([]byte(list), people))
		assert.Contains(t, out.String(), c.want)
	}
	p, err := New(&bytes.Buffer{}, Form{Format: "template={{.a.b.c}}"})
	require.NoError(t, err)
	assert.ErrorContains(t, p.Body([]byte(single), people), "-o template")
}

func TestPagesGoOnInTheSameColumns(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p, err := New(&out, Form{Format: "table"})
	require.NoError(t, err)
	items := p.Items(people)
	for range 2*pageRows + 1 {
		require.NoError(t, items.Add(Object{{"id", "1"}, {"username", "李伟"}}))
	}
	require.NoError(t, items.Close())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	assert.Len(t, lines, 2*pageRows+2)
	assert.Equal(t, lines[1], lines[len(lines)-1])
	assert.Equal(t, 1, strings.Count(out.String(), "USERNAME"))
}

func TestWidths(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 4, width("李伟"))
	assert.Equal(t, 1, width("e\u0301"))
	assert.Equal(t, "李…", cut("李伟伟", 4))
	assert.Equal(t, "李伟", cut("李伟", 4))
	assert.Equal(t, "a b", Printable("a\nb"))
}

func TestFaultyForms(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{"nonsense", ""}, {"template={{", ""}, {"table", "]"}} {
		_, err := New(&bytes.Buffer{}, Form{Format: c[0], JQ: c[1]})
		assert.Error(t, err)
	}
	p, err := New(&bytes.Buffer{}, Form{Format: "json"})
	require.NoError(t, err)
	assert.Error(t, p.Body([]byte("<html>"), View{}))
	p, err = New(&bytes.Buffer{}, Form{Format: "json", JQ: ".a.b"})
	require.NoError(t, err)
	assert.Error(t, p.Body([]byte(`{"a":1}`), View{}))
}

func TestDifference(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ before, after, want string }{
		{`{"a":"x","b":"","version":1}`, `{"a":"y","b":"z","version":2}`, "- a: x\n+ a: y\n- b: \"\"\n+ b: z\n"},
		{`{"a":"x"}`, `{"a":"x","version":2}`, "no difference\n"},
		{`null`, `{"id":"1","n":12345678901234567890,"e":""}`, "+ id: 1\n+ n: 12345678901234567890\n"},
		{`{"id":"1"}`, `null`, "- id: 1\n"},
		{`{"a":"x"}`, `{"a":null}`, "- a: x\n"},
	} {
		before, err := Parse([]byte(c.before))
		require.NoError(t, err)
		after, err := Parse([]byte(c.after))
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, Difference(&out, false, before, after))
		assert.Equal(t, c.want, out.String())
	}
}

func FuzzBody(f *testing.F) {
	f.Add([]byte(list))
	f.Add([]byte(single))
	f.Add([]byte(`{"items":[1,[2],null,"\u0000"]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, format := range Formats {
			var out bytes.Buffer
			p, err := New(&out, Form{Format: format, Terminal: true})
			require.NoError(t, err)
			if p.Body(body, people) == nil {
				assertSafe(t, out.String())
			}
		}
	})
}
