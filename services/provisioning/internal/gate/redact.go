package gate

import (
	"encoding/json"
	"strings"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
)

// Redacted is a body without passwords: what is held can be read by those who approve it.
func Redacted(body string) string {
	v, err := resource.Decode([]byte(body))
	if err != nil {
		return ""
	}
	text, err := json.Marshal(redacted(v))
	if err != nil {
		return ""
	}
	return string(text)
}

func redacted(v any) any {
	switch v := v.(type) {
	case []any:
		kept := make([]any, 0, len(v))
		for _, item := range v {
			if o, is := item.(resource.Object); !is || !setsPassword(o) {
				kept = append(kept, redacted(item))
			}
		}
		return kept
	case resource.Object:
		kept := resource.Object{}
		for name, member := range v {
			if !isPassword(name) {
				kept[name] = redacted(member)
			}
		}
		return kept
	}
	return v
}

// setsPassword reports whether an operation of a PATCH has the password as its path.
func setsPassword(o resource.Object) bool {
	for name, v := range o {
		if path, is := v.(string); is && strings.EqualFold(name, "path") && isPassword(path) {
			return true
		}
	}
	return false
}

// isPassword recognizes the attribute, also after the URN of its schema.
func isPassword(path string) bool {
	path = strings.TrimSpace(path)
	return strings.EqualFold(path, "password") || strings.HasSuffix(strings.ToLower(path), ":password")
}
