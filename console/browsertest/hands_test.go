package browsertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// hand is how a person uses the page: every scenario is played by mouse, and again by keyboard alone.
type hand interface {
	// use clicks what a script finds, or walks there by keys and presses it.
	use(b *browser, find string)
	// reach puts the focus on an input.
	reach(b *browser, find string)
	// screen opens a screen by its title.
	screen(b *browser, title string)
}

// play runs a scenario by both hands, each in a tenant of its own.
func play(t *testing.T, name string, scenario func(*browser)) {
	t.Helper()
	t.Parallel()
	for handName, h := range map[string]hand{"mouse": mouse{}, "keyboard": keyboard{}} {
		t.Run(handName, func(t *testing.T) {
			t.Parallel()
			b := signedIn(t, name+"-"+handName)
			b.hand = h
			scenario(b)
			b.clean()
		})
	}
}

// click uses the button, link, tab, row, node, option or box that has a label.
func (b *browser) click(label string) {
	b.t.Helper()
	b.hand.use(b, fmt.Sprintf("labelled(%q)", label))
}

// clickIn is click within what a selector finds, where a label is there more than once.
func (b *browser) clickIn(within, label string) {
	b.t.Helper()
	b.hand.use(b, fmt.Sprintf("labelled(%q, %q)", label, within))
}

// fill replaces the text of the input with a label.
func (b *browser) fill(label, text string) {
	b.t.Helper()
	b.hand.reach(b, fmt.Sprintf("input(%q)", label))
	b.press("a", chromedp.KeyModifiers(kb.ModifierCtrl))
	if text == "" {
		b.press(kb.Delete)
		return
	}
	b.press(strings.ReplaceAll(text, "\n", "\r"))
}

// choose chooses in the list with a label: its own keys do that, since the list that opens belongs to the browser.
func (b *browser) choose(label, option string) {
	b.t.Helper()
	find := fmt.Sprintf("input(%q)", label)
	b.waitFor(fmt.Sprintf("[...%s.options].some((o) => o.text === %q)", find, option))
	if _, ok := b.hand.(mouse); ok {
		eval[bool](b, find+".focus(), true")
	} else {
		b.hand.reach(b, find)
	}
	b.press(option)
	b.waitFor(fmt.Sprintf("%s.selectedOptions[0].text === %q", find, option))
}

// pick types into a box that searches, and takes what it finds.
func (b *browser) pick(label, text, option string) {
	b.t.Helper()
	b.hand.reach(b, fmt.Sprintf("input(%q)", label))
	b.press(text)
	b.click(option)
}

// screen opens a screen as a person does: by the navigation, or by the palette.
func (b *browser) screen(title string) {
	b.t.Helper()
	b.hand.screen(b, title)
	b.waitFor(fmt.Sprintf("document.title.startsWith(%q) && document.querySelector('main h1')", title))
}

// undo uses the way back that the last toast offers.
func (b *browser) undo() {
	b.t.Helper()
	b.clickIn(".toast:last-of-type", "Undo")
}

// saved waits for the next file that the page offers, and returns its text.
func (b *browser) saved() string {
	b.t.Helper()
	b.waitFor("savedFiles.length")
	return eval[string](b, "savedFiles.splice(0, 1)[0].text()")
}

type mouse struct{}

// use clicks until it meets: on a busy machine things move between the look and the click.
func (mouse) use(b *browser, find string) {
	b.t.Helper()
	for range 5 {
		b.waitFor("onScreen(" + find + ")")
		at := eval[[]float64](b, "aim("+find+")")
		b.do(chromedp.MouseClickXY(at[0], at[1]))
		if met, err := tryEval[bool](b, "met()"); met || err != nil { // a page that is left has no answer
			return
		}
	}
	require.FailNow(b.t, "the mouse does not meet it", find)
}

// reach clicks until the input has the focus: something may have come before it meanwhile.
func (m mouse) reach(b *browser, find string) {
	b.t.Helper()
	for range 5 {
		m.use(b, find)
		if eval[bool](b, "document.activeElement === "+find) {
			return
		}
	}
	b.waitFor("document.activeElement === " + find)
}

func (mouse) screen(b *browser, title string) { b.clickIn("nav", title) }

type keyboard struct{}

// steps is how many keys a person has patience for.
const steps = 250

func (k keyboard) use(b *browser, find string) {
	b.t.Helper()
	k.reach(b, find)
	b.press(eval[string](b, "pressOn(document.activeElement)"))
}

func (keyboard) reach(b *browser, find string) {
	b.t.Helper()
	b.waitFor(find)
	way := ""
	for range steps {
		key := eval[string](b, fmt.Sprintf("((e) => e ? way(e, %q) : 'gone')(%s)", way, find))
		switch {
		case key == "":
			return
		case key == "gone": // it is drawn anew
			b.waitFor(find)
			continue
		case key == "Tab" || key == "Shift+Tab":
			way = key // not to and fro
		}
		b.pressNamed(key)
	}
	require.FailNow(b.t, "the keyboard does not get there", "%s; the focus is on %s", find,
		eval[string](b, "document.activeElement.outerHTML.slice(0, 300)"))
}

func (keyboard) screen(b *browser, title string) {
	b.press("k", chromedp.KeyModifiers(kb.ModifierCtrl))
	b.waitFor("document.activeElement.matches('.palette input')")
	b.press(title)
	b.waitFor(fmt.Sprintf("document.querySelector('.palette [aria-selected=true]')?.textContent.trim() === %q", title))
	b.press(kb.Enter)
}

func (b *browser) pressNamed(key string) {
	b.t.Helper()
	switch key {
	case "Tab":
		b.press(kb.Tab)
	case "Shift+Tab":
		b.press(kb.Tab, chromedp.KeyModifiers(kb.ModifierShift))
	case "ArrowDown":
		b.press(kb.ArrowDown)
	case "ArrowUp":
		b.press(kb.ArrowUp)
	case "ArrowLeft":
		b.press(kb.ArrowLeft)
	case "ArrowRight":
		b.press(kb.ArrowRight)
	default:
		b.press(key)
	}
}
