package browsertest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// changing are looks that show what happens in the whole platform, or on this machine, at this moment.
var changing = []string{
	"events", "event", "trail", "entry", "settings-platform", "settings-keys", "settings-tenants",
	"job", "jobs", "runs", "run", "calls",
}

// TestGoldenTrees compares what a screen reader is told with testdata/screens: a change of words, roles or order is
// read there before it is made. IDP_TEST_UPDATE=1 writes the files.
func TestGoldenTrees(t *testing.T) {
	t.Parallel()
	b := sample(t)
	b.speak("en")
	eval[bool](b, `(localStorage.setItem('idp.theme', 'light'), true)`)
	for _, look := range looks {
		if slices.Contains(changing, look.name) {
			continue
		}
		b.show(look.path, look.js)
		file := filepath.Join("testdata", "screens", look.name+".txt")
		is := b.outline()
		if os.Getenv("IDP_TEST_UPDATE") != "" {
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, []byte(is), 0o644))
			continue
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err, "IDP_TEST_UPDATE=1 writes it")
		assert.Equal(t, string(want), is, "%s: IDP_TEST_UPDATE=1 writes it anew", look.name)
	}
}

// outline is the accessibility tree of the screen, or of the dialog over it, a line for each element.
func (b *browser) outline() string {
	b.t.Helper()
	all, err := chromedp.Call(b.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	require.NoError(b.t, err)
	nodes := map[accessibility.NodeID]*accessibility.Node{}
	var main, dialog *accessibility.Node
	for _, n := range all.Nodes {
		nodes[n.NodeID] = n
		switch said(n.Role) {
		case "main":
			main = n
		case "dialog":
			dialog = n
		}
	}
	if dialog != nil {
		main = dialog
	}
	require.NotNil(b.t, main)
	var lines []string
	outline(nodes, main, 0, "", &lines)
	return masked(strings.Join(lines, "\n")) + "\n"
}

// shownOf is how many of equal neighbours are listed: rows are alike.
const shownOf = 3

func outline(nodes map[accessibility.NodeID]*accessibility.Node, n *accessibility.Node, depth int, above string,
	lines *[]string) {
	role, name := said(n.Role), strings.Join(strings.Fields(said(n.Name)), " ")
	inside := above
	switch {
	case n.Ignored || role == "none" || role == "generic" || role == "InlineTextBox" || role == "LineBreak":
	case role == "form" && name == "": // no landmark (HTML-AAM); earlier versions of Chromium list it
	case role == "StaticText":
		if name != "" && !strings.Contains(above, name) {
			*lines = append(*lines, strings.Repeat("  ", depth)+"“"+name+"”")
		}
	default:
		line := strings.Repeat("  ", depth) + role
		if name != "" {
			line += " “" + name + "”"
		}
		*lines = append(*lines, line+states(n))
		depth++
		inside = name
	}
	if role == "InlineTextBox" || role == "StaticText" {
		return
	}
	alike := map[string]int{}
	for _, id := range n.ChildIDs {
		child, ok := nodes[id]
		if !ok {
			continue
		}
		kind := said(child.Role)
		if kind == "row" || kind == "listitem" || kind == "treeitem" || kind == "option" {
			if alike[kind]++; alike[kind] == shownOf+1 {
				*lines = append(*lines, strings.Repeat("  ", depth)+"…")
			}
			if alike[kind] > shownOf {
				continue
			}
		}
		outline(nodes, child, depth, inside, lines)
	}
}

// states are the properties that a screen reader says, sorted: Chromium has them in any order.
func states(n *accessibility.Node) string {
	var all []string
	for _, p := range n.Properties {
		switch p.Name {
		case "level", "checked", "pressed", "expanded", "selected", "disabled", "invalid", "required",
			"hasPopup", "modal":
			value := said(p.Value)
			if value != "" && value != "false" && value != "0" || p.Name == "expanded" || p.Name == "checked" {
				all = append(all, " "+string(p.Name)+"="+value)
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

func said(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	var text string
	if json.Unmarshal(v.Value, &text) == nil {
		return text
	}
	return string(v.Value)
}

var masks = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "‹uuid›"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`), "‹time›"},
	{regexp.MustCompile(`\d{1,2} [A-Z][a-z]{2,3} \d{4}(, \d\d:\d\d)?`), "‹time›"},
	{regexp.MustCompile(`\b\d\d:\d\d(:\d\d)?(\.\d+)?\b`), "‹time›"},
	{regexp.MustCompile(`\b(now|this minute|\d+ (second|minute|hour)s? ago)\b`), "‹ago›"},
	{regexp.MustCompile(`\b(tomorrow|in \d+ (second|minute|hour|day)s?)\b`), "‹soon›"},
	{regexp.MustCompile(`\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{1,2} [A-Z][a-z]{2}, ‹time›`), "‹time›"},
	{regexp.MustCompile(`\b\d+ entries\b`), "‹n› entries"},
	{regexp.MustCompile(`\b\d{7,}\b`), "‹id›"},
	{regexp.MustCompile(`\b[0-9a-z]{16,}\b`), "‹id›"},
	{regexp.MustCompile(`“…[\w-]{4}”`), "“‹hint›”"},
	{regexp.MustCompile(`http://(127\.0\.0\.1|localhost):\d+`), "‹platform›"},
	{regexp.MustCompile(`\n *“Loading more…”`), ""}, // how far a list has come
}

func masked(text string) string {
	for _, m := range masks {
		text = m.what.ReplaceAllString(text, m.with)
	}
	return text
}
