package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/failure"
)

// Secret says where a secret comes from: env:NAME, file:PATH or command:WORDS. Documents have it as {from: env:NAME}.
type Secret string

// MarshalJSON writes what documents have.
func (s Secret) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"from": string(s)})
}

// secretPlaces are the members that can have secrets inside.
var secretPlaces = []string{"config_fields", "delivery", "protocol_prop"}

// markSecrets finds secrets in a value of documents, or of a state.
func markSecrets(value any) any {
	object, isObject := value.(map[string]any)
	if !isObject {
		return value
	}
	if from, isText := object["from"].(string); isText && len(object) == 1 {
		switch kind, _, _ := strings.Cut(from, ":"); kind {
		case "env", "file", "command":
			return Secret(from)
		}
	}
	for name, inner := range object {
		object[name] = markSecrets(inner)
	}
	return object
}

// secretMembers are the members of kinds that the platform takes and never shows; * stands for all of an object. Those
// of a connection are in the schema of its provider.
var secretMembers = map[string][]string{
	protocol:     {"protocol_prop.saml_response_signing_key"},
	subscription: {"delivery.secret", "delivery.headers.*"},
}

// literals are the faults of secrets that stand in the files themselves. They do not show them.
func (w *Desired) literals(members []string) []string {
	var faults []string
	for _, name := range members {
		for _, member := range w.spread(name) {
			value, _ := at(w.Values, member)
			if _, isSecret := value.(Secret); isSecret || value == nil || value == "" {
				continue
			}
			faults = append(faults, fmt.Sprintf("%s:%d: %s is a secret, which must not stand in a file: "+
				"{from: env:NAME}, {from: file:PATH} or {from: command:WORDS} says where it is",
				w.File, w.line(member), member))
		}
	}
	return faults
}

// spread makes members of one whose last name is *.
func (w *Desired) spread(member string) []string {
	of, all := strings.CutSuffix(member, ".*")
	if !all {
		return []string{member}
	}
	value, _ := at(w.Values, of)
	object, _ := value.(map[string]any)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		out = append(out, of+"."+name)
	}
	return out
}

// checkConnections finds secrets of connections that stand in the files. The schemas of the providers tell which are.
func checkConnections(ctx context.Context, platform Platform, desired []*Desired) error {
	if !slices.ContainsFunc(desired, func(w *Desired) bool { return w.Kind == connection }) {
		return nil
	}
	var providers []struct {
		Code   string `json:"provider_code"`
		Schema struct {
			Properties map[string]struct {
				WriteOnly bool `json:"writeOnly"`
			} `json:"properties"`
		} `json:"config_schema"`
	}
	if err := platform.Get(ctx, "/v1/idp/providers", nil, &providers); err != nil {
		return err
	}
	secretsOf := map[string][]string{}
	for _, provider := range providers {
		secretsOf[provider.Code] = []string{}
		for _, name := range slices.Sorted(maps.Keys(provider.Schema.Properties)) {
			if provider.Schema.Properties[name].WriteOnly {
				secretsOf[provider.Code] = append(secretsOf[provider.Code], "config_fields."+name)
			}
		}
	}
	var faults []string
	for _, w := range desired {
		if w.Kind != connection {
			continue
		}
		code, _ := w.Values["provider_code"].(string)
		members, known := secretsOf[code]
		if !known { // nobody could tell what is secret
			line := w.line("provider_code")
			faults = append(faults, fmt.Sprintf("%s:%d: there is no provider %q", w.File, line, code))
		}
		faults = append(faults, w.literals(members)...)
	}
	return unusable(faults)
}

// secrets fetches secrets, each once.
type secrets struct {
	getenv  func(string) string
	fetched map[string]string
	keep    bool // a secret that cannot be fetched stays what it is
	masked  bool // requests are only shown
}

// resolve returns a value with secrets in the places that say where they come from.
func (s *secrets) resolve(ctx context.Context, value any) (any, error) {
	switch v := value.(type) {
	case Secret:
		if s.masked {
			return masked, nil
		}
		secret, err := s.fetch(ctx, string(v))
		if err != nil && s.keep {
			return masked, nil // the platform keeps what it has, or refuses if it must be given again
		}
		return secret, err
	case map[string]any:
		out := map[string]any{}
		for name, inner := range v {
			resolved, err := s.resolve(ctx, inner)
			if err != nil {
				return nil, err
			}
			out[name] = resolved
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			resolved, err := s.resolve(ctx, inner)
			if err != nil {
				return nil, err
			}
			out[i] = resolved
		}
		return out, nil
	}
	return value, nil
}

func (s *secrets) fetch(ctx context.Context, from string) (string, error) {
	if secret, has := s.fetched[from]; has {
		return secret, nil
	}
	kind, name, _ := strings.Cut(from, ":")
	secret, err := "", error(nil)
	switch kind {
	case "env":
		if secret = s.getenv(name); secret == "" {
			err = fmt.Errorf("the variable %s is not set", name)
		}
	case "file":
		var text []byte
		text, err = os.ReadFile(name)
		secret = strings.TrimRight(string(text), "\r\n")
	case "command":
		secret, err = outputOf(ctx, strings.Fields(name))
	}
	if err == nil && secret == "" {
		err = fmt.Errorf("%s is empty", from)
	}
	if err != nil {
		return "", failure.Usagef("the secret {from: %s}: %w", from, err)
	}
	s.fetched[from] = secret
	return secret, nil
}

func outputOf(ctx context.Context, words []string) (string, error) {
	if len(words) == 0 {
		return "", errors.New("the command is missing")
	}
	command := exec.CommandContext(ctx, words[0], words[1:]...)
	command.Stderr = os.Stderr // a vault's own words to its user
	out, err := command.Output()
	return strings.TrimRight(string(out), "\r\n"), err
}

// SecretsOf are the secrets that the platform made for a new record: they are in no later answer.
func SecretsOf(s *Step, answer map[string]any) map[string]string {
	out := map[string]string{}
	if s.Action != Create {
		return out
	}
	delivery, _ := answer["delivery"].(map[string]any)
	wanted, _ := s.want.Values["delivery"].(map[string]any)
	_, keys := s.want.Values["jwks"]
	_, address := s.want.Values["jwks_uri"]
	if secret, _ := answer["client_secret"].(string); secret != "" && secret != masked && !keys && !address {
		out["client_id"], _ = answer["client_id"].(string)
		out["client_secret"] = secret
	}
	if secret, _ := delivery["secret"].(string); secret != "" && secret != masked && wanted["secret"] == nil {
		out["delivery.secret"] = secret
	}
	return out
}
