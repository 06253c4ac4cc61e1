// Package claimmapping knows how the members of users are made of what other providers tell: identity-sources checks
// the mappings of its methods, and sign-in applies them.
package claimmapping

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/idplatform/idplatform/pkg/condition"
)

// Mapping has, for a member of a user, the name of a claim or an expression over the claims.
type Mapping map[string]string

// Members are the members of a user that a mapping can set, beside those of sys_ext_props.
var Members = []string{
	"username", "display_name", "email", "mobile", "employee_number", "gender", "locale", "zoneinfo",
}

// Props begins the names of the members of sys_ext_props.
const Props = "sys_ext_props."

var propName = regexp.MustCompile(`^sys_ext_props\.[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// Sets reports whether a mapping can set a member.
func Sets(member string) bool {
	return slices.Contains(Members, member) || propName.MatchString(member)
}

var expressions = environment()

func environment() *condition.Environment {
	env, err := condition.NewTexts(condition.Map("claims"))
	if err != nil {
		panic(err) // only if the declaration above is wrong
	}
	return env
}

// readsClaims is what tells an expression from the name of a claim.
var readsClaims = regexp.MustCompile(`\bclaims\s*[.\[]|\bin\s+claims\b|\bhas\(`)

// Check checks what a member is made of. The error is a *condition.Error.
func Check(source string) error {
	if !readsClaims.MatchString(source) {
		return nil
	}
	_, err := expressions.Cached(source)
	return err
}

// Apply returns the members that can be made of some claims, a JSON object. A member is missing if its claim is
// missing, or is neither a text nor a number nor a boolean, and if its expression cannot be decided.
func (m Mapping) Apply(ctx context.Context, claims json.RawMessage) (map[string]string, error) {
	if len(m) == 0 {
		return nil, nil
	}
	all, err := condition.FromJSON(claims)
	if err != nil {
		return nil, err
	}
	members := map[string]string{}
	for member, source := range m {
		if text, ok := valueOf(ctx, source, all); ok {
			members[member] = text
		}
	}
	return members, ctx.Err()
}

func valueOf(ctx context.Context, source string, claims map[string]any) (string, bool) {
	if readsClaims.MatchString(source) {
		program, err := expressions.Cached(source)
		if err != nil { // it was stored by a newer version
			return "", false
		}
		text, err := program.Text(ctx, map[string]any{"claims": claims})
		return text, err == nil
	}
	switch value := claims[source].(type) {
	case string:
		return value, true
	case bool:
		return strconv.FormatBool(value), true
	case int64:
		return strconv.FormatInt(value, 10), true
	case float64:
		return strconv.FormatFloat(value, 'g', -1, 64), true
	}
	return "", false
}

// Profile is a change of a user's profile that sets some members.
func Profile(members map[string]string) map[string]any {
	profile, more := map[string]any{}, map[string]any{}
	for member, value := range members {
		if prop, ok := strings.CutPrefix(member, Props); ok {
			more[prop] = value
		} else {
			profile[member] = value
		}
	}
	if len(more) > 0 {
		profile["sys_ext_props"] = more
	}
	return profile
}
