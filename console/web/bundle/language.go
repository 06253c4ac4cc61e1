package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// languages are the languages of the console. Each has a bundle.
var languages = []string{"en", "zh"}

// calls begin the object literals that have texts in all languages: {save: ['Save', '保存']}.
var calls = regexp.MustCompile(`\b(?:texts|bilingual)\(\{`)

// languagePlugin leaves the texts of one language in the console's sources.
func languagePlugin(source, language string) api.Plugin {
	return api.Plugin{Name: "language", Setup: func(build api.PluginBuild) {
		build.OnLoad(api.OnLoadOptions{Filter: "^" + regexp.QuoteMeta(source) + `/.*\.tsx?$`},
			func(a api.OnLoadArgs) (api.OnLoadResult, error) {
				body, err := os.ReadFile(a.Path)
				if err != nil {
					return api.OnLoadResult{}, err
				}
				text, err := oneLanguage(string(body), language)
				if err != nil {
					return api.OnLoadResult{}, fmt.Errorf("%s: %w", a.Path, err)
				}
				loader := map[string]api.Loader{".ts": api.LoaderTS, ".tsx": api.LoaderTSX}[filepath.Ext(a.Path)]
				return api.OnLoadResult{Contents: &text, Loader: loader}, nil
			})
	}}
}

// oneLanguage replaces the pairs of texts in a source by the text of a language: save: ['Save', '保存'] becomes
// save: '保存'.
func oneLanguage(source, language string) (string, error) {
	var out strings.Builder
	written := 0
	for _, call := range calls.FindAllStringIndex(source, -1) {
		at := call[1] // after the brace
		for {
			at = blank(source, at)
			if at >= len(source) {
				return "", fmt.Errorf("the texts at byte %d do not end", call[0])
			}
			if source[at] == '}' {
				break
			}
			end := expression(source, at)
			value, err := pair(source, at, end)
			if err != nil {
				return "", err
			}
			if value > 0 {
				first := expression(source, value+1)
				second := expression(source, first+1)
				if second >= len(source) {
					return "", fmt.Errorf("the texts at byte %d do not end", call[0])
				}
				kept := source[value+1 : first]
				if language != languages[0] {
					kept = source[first+1 : second]
				}
				out.WriteString(source[written:value])
				out.WriteString(strings.TrimSpace(kept))
				written = end
			}
			if at = end; at < len(source) && source[at] == ',' {
				at++
			}
		}
	}
	out.WriteString(source[written:])
	return out.String(), nil
}

// word is the value of a member that takes its text from another literal, such as words.name.
var word = regexp.MustCompile(`^[\w.]+$`)

// pair returns where the array of a member begins; 0 for ...words and name: words.name.
func pair(source string, from, to int) (int, error) {
	key := from
	if quote := source[from]; quote == '\'' || quote == '"' {
		key += 1 + strings.IndexByte(source[from+1:to], quote)
	}
	colon := strings.IndexByte(source[key:to], ':')
	if colon < 0 {
		return 0, nil
	}
	value := blank(source, key+colon+1)
	switch {
	case source[value] == '[':
		return value, nil
	case word.MatchString(strings.TrimSpace(source[value:to])):
		return 0, nil
	default:
		return 0, fmt.Errorf("%s is not a pair of texts", source[from:to])
	}
}

// blank returns where the next token begins, after white space and comments.
func blank(source string, at int) int {
	for at < len(source) {
		switch rest := source[at:]; {
		case strings.ContainsRune(" \n\t", rune(source[at])):
			at++
		case strings.HasPrefix(rest, "//"):
			at += strings.IndexByte(rest+"\n", '\n')
		case strings.HasPrefix(rest, "/*"):
			at = min(at+strings.Index(rest+"*/", "*/")+2, len(source))
		default:
			return at
		}
	}
	return at
}

// expression returns where an expression ends: at the comma or closing bracket that does not belong to it.
func expression(source string, at int) int {
	for depth := 0; at < len(source); at++ {
		if at = blank(source, at); at >= len(source) {
			break
		}
		switch c := source[at]; c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth < 0 {
				return at
			}
		case ',':
			if depth == 0 {
				return at
			}
		case '\'', '"', '`':
			for at++; at < len(source) && source[at] != c; at++ {
				if source[at] == '\\' {
					at++
				}
			}
		}
	}
	return min(at, len(source))
}
