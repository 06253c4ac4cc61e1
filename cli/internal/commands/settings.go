package commands

import (
	"encoding/json"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/session"
)

// settingKind is what a JSON Schema says of a setting.
type settingKind struct {
	Type   string `json:"type"`
	Secret bool   `json:"writeOnly"`
}

// settings sets members of an inner object by arguments such as acs_url=https://…: null takes one away, @file and @-
// read it. kinds are the only ones that there are; nil: the platform knows.
func (m members) settings(s *session.Session, of string, args []string, kinds map[string]settingKind) error {
	inner, isObject := m[of].(json.RawMessage)
	within, isMembers := rawMembers(inner)
	if !isObject || !isMembers {
		within = members{}
	}
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return failure.Usagef("%q must be SETTING=VALUE", arg)
		}
		kind, isKnown := kinds[name]
		switch {
		case kinds != nil && !isKnown:
			return failure.Usagef("there is no setting %q; there are %s", name,
				strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
		case kind.Secret && !strings.HasPrefix(text, "@") && text != "null":
			return failure.Usagef("%s is a secret, which other users of this machine could see here: "+
				"%s=@FILE reads it, %s=@- from standard input", name, name, name)
		case text == "null":
			delete(within, name)
			continue
		}
		value, err := settingValue(s, name, text, kind.Type)
		if err != nil {
			return err
		}
		within[name] = value
	}
	m[of] = within
	return nil
}

// settingValue makes the value: JSON, unless it is known to be a text or is none.
func settingValue(s *session.Session, name, text, kind string) (any, error) {
	if file, isFile := strings.CutPrefix(text, "@"); isFile {
		content, err := contentOf(s, file)
		if err != nil {
			return nil, failure.Usagef("%s: %w", name, err)
		}
		return content, nil
	}
	if kind != "string" && json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	return text, nil
}

// contentOf reads a file, or standard input, without the line end at its end.
func contentOf(s *session.Session, file string) (string, error) {
	var text []byte
	var err error
	if file == "-" {
		text, err = io.ReadAll(s.In)
	} else {
		text, err = os.ReadFile(file)
	}
	return strings.TrimRight(string(text), "\r\n"), err
}
