package plan

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/idplatform/idplatform/cli/internal/failure"
)

// variables names the variables that have the secrets of exported files, each for one secret.
type variables struct {
	same      map[string]int    // how many records have names that begin alike
	used      map[string]string // the secret of a variable
	collision error
}

// separator is between the words of a secret's name. No name has it, so no two secrets are called alike.
const separator = "\x00"

func variablesOf(records []*Record) *variables {
	out := &variables{same: map[string]int{}, used: map[string]string{}}
	for _, r := range records {
		out.same[variable(wordsOf(r))]++
	}
	return out
}

func wordsOf(r *Record) string { return r.Kind + separator + r.Key }

// begin is how the names of a record's variables begin. Where letters are lost, or another record's begin alike, a hash
// tells them apart.
func (e *variables) begin(r *Record) string {
	words := wordsOf(r)
	lost := strings.ContainsFunc(r.Key, func(c rune) bool { return c >= 128 })
	if !lost && e.same[variable(words)] == 1 {
		return words
	}
	return fmt.Sprintf("%s%s%08x", words, separator, crc32.ChecksumIEEE([]byte(r.Key)))
}

// of is the variable of a secret.
func (e *variables) of(secret string) string {
	name := variable(secret)
	if first, has := e.used[name]; has && first != secret && e.collision == nil {
		e.collision = failure.Usagef("two secrets would come from the variable %s, those of %s and %s: give one of "+
			"these records another name first", name, inWords(first), inWords(secret))
	}
	e.used[name] = secret
	return name
}

func inWords(secret string) string { return strings.ReplaceAll(secret, separator, " ") }

// yaml makes YAML of a value. A secret, which the platform does not show, becomes a place where it comes from.
func (e *variables) yaml(value any, secret string) *yaml.Node {
	out := &yaml.Node{}
	switch v := value.(type) {
	case map[string]any:
		out.Kind = yaml.MappingNode
		for _, name := range slices.Sorted(maps.Keys(v)) {
			text := &yaml.Node{}
			text.SetString(name)
			out.Content = append(out.Content, text, e.yaml(v[name], secret+separator+name))
		}
	case []any:
		out.Kind = yaml.SequenceNode
		for i, item := range v {
			out.Content = append(out.Content, e.yaml(item, fmt.Sprint(secret, separator, i+1)))
		}
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}
	case string:
		if v == masked {
			return e.yaml(map[string]any{"from": "env:" + e.of(secret)}, "")
		}
		out.SetString(v)
	default:
		_ = out.Encode(value) // true, false and null can be encoded
	}
	return out
}

// variable is a name that shells take for a variable: capital letters, digits and _.
func variable(name string) string {
	return strings.ToUpper(strings.Map(func(c rune) rune {
		if c < 128 && (unicode.IsLetter(c) || unicode.IsDigit(c)) {
			return c
		}
		return '_'
	}, name))
}
