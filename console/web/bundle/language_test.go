package main

import (
	"strings"
	"testing"
)

func TestOneLanguage(t *testing.T) {
	t.Parallel()
	source := `import {texts} from 'x';
export const t = texts({
  ...words, // spread
  save: ['Save, [now]: \'all\' }', '保存'],
  /* ['not', 'this'] */ long: [
    "it's // no comment",
    '长',
  ],
  nodes: [{one: '{n} node', other: '{n} nodes'}, {one: '{n} 个', other: '{n} 个'}],
  'a:b': [` + "`x`" + `, ` + "`y`" + `],
  name: words.name,
});
const others = pairs({a: ['b', 'c']});
const w = bilingual({a: ['one', '一']}); const list = ['x', 'y'];
`
	for language, want := range map[string]string{
		"en": `import {texts} from 'x';
export const t = texts({
  ...words, // spread
  save: 'Save, [now]: \'all\' }',
  /* ['not', 'this'] */ long: "it's // no comment",
  nodes: {one: '{n} node', other: '{n} nodes'},
  'a:b': ` + "`x`" + `,
  name: words.name,
});
const others = pairs({a: ['b', 'c']});
const w = bilingual({a: 'one'}); const list = ['x', 'y'];
`,
		"zh": `import {texts} from 'x';
export const t = texts({
  ...words, // spread
  save: '保存',
  /* ['not', 'this'] */ long: '长',
  nodes: {one: '{n} 个', other: '{n} 个'},
  'a:b': ` + "`y`" + `,
  name: words.name,
});
const others = pairs({a: ['b', 'c']});
const w = bilingual({a: '一'}); const list = ['x', 'y'];
`,
	} {
		if got, err := oneLanguage(source, language); err != nil || got != want {
			t.Errorf("%s: %v\n%s", language, err, got)
		}
	}
	for _, broken := range []string{"texts({a: ['b', 'c']", "texts({a: ['b", "texts({ /* ", "texts({a: 'b'})"} {
		if _, err := oneLanguage(broken, "en"); err == nil {
			t.Errorf("%s was taken", broken)
		}
	}
}

// The bundle of a language has no text of another.
func TestBundlesHaveOneLanguage(t *testing.T) {
	t.Parallel()
	b, err := bundle("..", false)
	if err != nil {
		t.Fatal(err)
	}
	for language, texts := range map[string][2]string{"en": {"Discard", "放弃"}, "zh": {"放弃", "Discard"}} {
		var all strings.Builder
		for _, name := range b.scripts[language] {
			all.Write(b.files[name])
		}
		if !strings.Contains(all.String(), `"`+texts[0]+`"`) || strings.Contains(all.String(), `"`+texts[1]+`"`) {
			t.Errorf("the bundle of %s", language)
		}
	}
}
